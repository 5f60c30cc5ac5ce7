//! Lines of both forms as NetLogger, Globus and Pegasus wrote them; what is none is counted; any bytes are harmless.

use super::*;
use proptest::prelude::*;

fn events(text: &str) -> (Vec<String>, Vec<String>) {
    let form = recognise(text.as_bytes()).unwrap();
    let read = read(text.as_bytes(), form, false);
    (
        (0..read.table.len())
            .map(|row| read.table.event(row).to_string())
            .collect(),
        read.mistakes.first,
    )
}

#[test]
fn lines_of_the_first_form() {
    let text = r#"# NetLogger
DATE=20000330112320.957943 HOST=dpss1.lbl.gov PROG=testprog LVL=Usage NL.EVNT=DPSS_SERV_IN BLOCK.ID=7 SEND.SZ=49332
DATE=20070215110703.2102 HOST=pdsfgrid1 PROG=gridftp NL.EVNT=ftp.info FILE="//tmp/a \"b\" c" DEST=[129.79.4.64] CODE=226

DATE=2007 HOST=h PROG=p NL.EVNT=X
HOST=h NL.EVNT=X
DATE=20070215110703 HOST=h PROG=p
DATE=20070215110703 HOST=h FILE="open NL.EVNT=X
just words
"#;
    let (lines, mistakes) = events(text);
    assert_eq!(
        lines,
        [
            "DPSS_SERV_IN; dpss1.lbl.gov; 954415400; 957943000; 7; PROG=testprog; LVL=Usage; BLOCK.ID=7; SEND.SZ=49332",
            r#"FTP_INFO; pdsfgrid1; 1171537623; 210200000; ; PROG=gridftp; NL.EVNT=ftp.info; FILE=//tmp/a "b" c; DEST=[129.79.4.64]; CODE=226"#,
        ]
    );
    assert_eq!(
        mistakes,
        [
            "line 5: DATE=2007 is not a time between 1970 and 2262",
            "line 6: DATE is missing",
            "line 7: NL.EVNT is missing",
            "line 8: the quoted value of FILE is not closed",
            "line 9: expected NAME=VALUE, found `just`",
        ]
    );
}

#[test]
fn lines_of_the_later_form() {
    let text = r#"ts=2010-04-19T18:26:43.123456Z event=stampede.job.start level=Info job.id=j-7 host=condor1 msg="it said \"go\""
ts=1271701603.5 event=stampede.job.end guid=4 status=0 empty=""
"#;
    let (lines, mistakes) = events(text);
    assert_eq!(
        lines,
        [
            r#"STAMPEDE_JOB_START; condor1; 1271701603; 123456000; j-7; event=stampede.job.start; level=Info; job.id=j-7; msg=it said "go""#,
            "STAMPEDE_JOB_END; unknown; 1271701603; 500000000; 4; event=stampede.job.end; guid=4; status=0; empty=",
        ]
    );
    assert!(mistakes.is_empty(), "{mistakes:?}");
}

#[test]
fn other_texts_are_not_recognised() {
    for text in [
        "",
        "A; h; 1; 0",
        "ts=1 level=x",
        "DATE=20000330112320 HOST=h",
        "event=x ts=1",
    ] {
        assert_eq!(recognise(text.as_bytes()), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_lines_are_harmless(text in r#"(DATE=|ts=|NL.EVNT=|event=|HOST=|[0-9T:.\-Z]{1,20}|["\\ \n;=a-z]){0,60}"#) {
        for form in [NetLoggerForm::Ulm, NetLoggerForm::Bp] {
            let _ = read(text.as_bytes(), form, false);
        }
        let _ = recognise(text.as_bytes());
    }
}
