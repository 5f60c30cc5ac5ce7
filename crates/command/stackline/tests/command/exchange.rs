//! Logs of events in, events of a run out.

use crate::support::{Place, events};
use std::fs;
use std::process::Command;

const LOG: &str = "\
DPSS_START_WRITE; dpss1; 10; 500; 7; 1; 0; 49152; a b
APP_SEND; khons; 10; 0; 7; 1; 0; 49152
# a comment
DPSS_START_WRITE; dpss1; 9; 1
DPSS_START_WRITE; dpss1; nine; 1
APP_SEND; kh";

#[test]
fn a_log_becomes_a_run_that_is_sorted_and_says_what_it_left_out() {
    let place = Place::new();
    place.write("server.log", LOG);
    let done = place.stackline(&["import", "server.log", "--name", "first try"]);
    assert!(
        done.succeeds()
            .out
            .ends_with("  server.log (text): 3 events, 1 cut short, 1 no time\n"),
        "{}",
        done.out
    );
    assert!(
        done.err
            .contains("server.log, line 5, is not an event: `nine` is not a whole number"),
        "{}",
        done.err
    );
    let run = place.kept().0;
    assert!(run.to_str().unwrap().ends_with("-first-try"));
    let lines = [
        "DPSS_START_WRITE; dpss1; 9; 1",
        "DPSS_START_WRITE; dpss1; 10; 500; 7; 1; 0; 49152; a b",
    ];
    assert_eq!(events::lines(&run.join("events/dpss1.parquet")), lines);
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(run.join("events/index.json")).unwrap()).unwrap();
    assert_eq!(index["imports"][0]["refused"]["cut short"], 1);
    assert_eq!(index["hosts"]["dpss1"]["recorded"], 2);
    place
        .stackline(&["lifelines", run.to_str().unwrap()])
        .succeeds();
}

#[test]
fn exports_are_in_the_order_of_time_in_every_form() {
    let place = Place::new();
    place.write("a.log", LOG);
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let text = place
        .stackline(&["export", run, "--text"])
        .succeeds()
        .out
        .clone();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "DPSS_START_WRITE; dpss1; 9; 1",
        "APP_SEND; khons; 10; 0; 7; 1; 0; 49152",
        "DPSS_START_WRITE; dpss1; 10; 500; 7; 1; 0; 49152; a b",
    ];
    assert_eq!(lines, expected);
    place
        .stackline(&["export", run, "--text", "out.log", "--tape", "out.tape"])
        .succeeds();
    assert_eq!(fs::read_to_string(place.path("out.log")).unwrap(), text);
    for log in ["out.log", "out.tape"] {
        let json = place
            .stackline(&["import", log, "--json", "--name", "again"])
            .json();
        let again = json["run"].as_str().unwrap();
        assert_eq!(
            place
                .stackline(&["export", again, "--text", "-"])
                .succeeds()
                .out,
            text,
            "{log}"
        );
    }
    assert_eq!(
        place.stackline(&["export", run]).status.code(),
        Some(2),
        "in no form"
    );
    let away = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{} export {run} --text | head -c 1",
            crate::support::program()
        ))
        .output();
    assert!(
        away.unwrap().stderr.is_empty(),
        "a reader that has seen enough is no error"
    );
}

#[test]
fn what_has_no_room_in_a_tape_is_counted_by_reason() {
    let place = Place::new();
    let (many, long) = (vec!["1"; 20].join("; "), "x".repeat(5000));
    place.write(
        "a.log",
        format!("A; h; 1; 0; {many}\nA; h; 2; 0; {long}\nA; h; 3; 0; 1\n"),
    );
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let said = [
        "left out: trailing fields of events with more than 16: 1\n",
        "left out: ends of texts longer than 4096 bytes: 1\n",
    ];
    let done = place.stackline(&["export", run, "--tape", "a.tape"]);
    assert!(
        done.succeeds().err.ends_with(&said.concat()),
        "{}",
        done.err
    );
    assert!(
        !place
            .stackline(&["export", run, "--text", "b.log"])
            .succeeds()
            .err
            .contains("left out")
    );
}

#[test]
fn a_log_comes_in_once_however_it_is_called() {
    let place = Place::new();
    place.write("a.log", "A; h; 1; 0\n");
    place
        .stackline(&["import", "a.log", "a.log"])
        .fails(2, &["a.log is specified twice"]);
    place
        .stackline(&["import", "a.log", "./a.log"])
        .fails(2, &["a.log and ./a.log are the same file"]);
    place
        .stackline(&["import", "-", "-"])
        .fails(2, &["- is specified twice"]);
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    place
        .stackline(&["import", "./a.log", "--into", run])
        .fails(2, &["this run already contains ./a.log"]);
    fs::create_dir(place.path("other")).unwrap();
    place.write("other/a.log", "A; h; 2; 0\n");
    place
        .stackline(&["import", "other/a.log", "--into", run])
        .succeeds();
    assert_eq!(
        place.stackline(&["export", run, "--text"]).succeeds().out,
        "A; h; 1; 0\nA; h; 2; 0\n"
    );
}

#[test]
fn what_no_line_could_say_is_refused_from_a_tape_too() {
    let place = Place::new();
    let mut event_log = stackline_events::EventLog::default();
    event_log.host("h");
    for at in [1, u64::MAX] {
        event_log.push(stackline_events::keyword::intern("A"), at, &[]);
    }
    fs::write(place.path("a.tape"), event_log.bytes()).unwrap();
    let json = place.stackline(&["import", "a.tape", "--json"]).json();
    assert_eq!(json["imports"][0]["events"], 1);
    assert_eq!(json["imports"][0]["refused"]["time out of range"], 1);
}

#[test]
fn a_run_whose_events_are_being_written_is_not_added_to() {
    let place = Place::new();
    place.write("a.log", "A; h; 1; 0\n");
    place.write("b.log", "A; h; 2; 0\n");
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let held = fs::File::open(run.join("events")).unwrap();
    held.try_lock().unwrap();
    let into = ["import", "b.log", "--into", run.to_str().unwrap()];
    place
        .stackline(&into)
        .fails(3, &["are being written by another process"])
        .hints("wait until");
    drop(held);
    place.stackline(&into).succeeds();
}

#[test]
fn more_hosts_than_files_may_be_open_go_out_in_order() {
    let place = Place::new();
    let (hosts, mut lines) = (150, String::new());
    for n in 0..2 * hosts {
        lines.push_str(&format!("A; h{}; 1; {n}\n", n % hosts));
    }
    place.write("a.log", &lines);
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let script = format!(
        "ulimit -n 100; TMPDIR=. exec {} export {} --text",
        crate::support::program(),
        run.display()
    );
    let before = fs::read_dir(place.path(".")).unwrap().count();
    let done = place.finish(
        Command::new("bash")
            .arg("-c")
            .arg(script)
            .current_dir(place.path(".")),
    );
    assert_eq!(done.succeeds().out, lines);
    assert_eq!(
        fs::read_dir(place.path(".")).unwrap().count(),
        before,
        "nothing temporary is left"
    );
}

#[test]
fn hosts_of_one_name_are_kept_apart() {
    let place = Place::new();
    place.write("a.log", "A; localhost; 1; 0\n");
    place.write("b.log", "A; localhost; 2; 0\nA; other; 3; 0\n");
    let done = place.stackline(&["import", "a.log", "b.log"]);
    assert!(
        done.succeeds()
            .err
            .contains("events of localhost come from several logs (a.log, b.log)"),
        "{}",
        done.err
    );
    place
        .stackline(&[
            "import",
            "b.log",
            "--into",
            place.kept().0.to_str().unwrap(),
        ])
        .fails(2, &["this run already contains b.log"]);
    let json = place
        .stackline(&[
            "import",
            "a.log",
            "b.log",
            "--host",
            "rack1=a.log",
            "--host",
            "*-rack2=b.log",
            "--json",
        ])
        .json();
    let hosts: Vec<&String> = json["hosts"].as_object().unwrap().keys().collect();
    assert_eq!(hosts, ["localhost-rack2", "other-rack2", "rack1"]);
    place
        .stackline(&["import", "a.log", "--host", "x=c.log"])
        .fails(2, &["c.log is not one of the logs"]);
    place
        .stackline(&["import", "a.log", "--as", "xml"])
        .fails(2, &["unknown format xml"])
        .hints("text");
    place
        .stackline(&["import", "nowhere.log"])
        .fails(2, &["cannot read nowhere.log"]);
    assert_eq!(place.runs().len(), 2, "what failed left no run");
}

#[test]
fn a_run_takes_more_from_standard_input() {
    let place = Place::new();
    place.write("a.log", "A; h; 2; 0\n");
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let mut more =
        place.start(&mut place.command(&["import", "-", "--into", run.to_str().unwrap()]));
    more.say(b"A; h; 1; 0\nA; ../../etc/passwd; 3; 0\n");
    more.finish().succeeds();
    assert_eq!(
        events::lines(&run.join("events/h.parquet")),
        ["A; h; 1; 0", "A; h; 2; 0"]
    );
    assert_eq!(
        events::lines(&run.join("events/%2E.%2F..%2Fetc%2Fpasswd.parquet")),
        ["A; ../../etc/passwd; 3; 0"]
    );
}

#[test]
fn where_there_is_no_room_nothing_is_half_written() {
    let place = Place::new();
    let lines: String = (0..200_000)
        .map(|n: u64| {
            format!(
                "A; h; {n}; 0; {}\n",
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2
            )
        })
        .collect();
    place.write("long.log", lines);
    place.write("a.log", "A; h; 2; 0\n");
    place.stackline(&["import", "a.log"]).succeeds();
    let run = place.kept().0;
    let into = format!("--into {}", run.display());
    place
        .finish(&mut limited(&place, &into))
        .fails(3, &["cannot write", "File too large"])
        .hints("disk");
    assert_eq!(events::lines(&run.join("events/h.parquet")), ["A; h; 2; 0"]);
    let left: Vec<_> = fs::read_dir(run.join("events"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    place
        .finish(&mut limited(&place, ""))
        .fails(3, &["cannot write"]);
    assert_eq!(place.runs().len(), 1, "a run that holds nothing is none");
}

#[test]
fn results_that_cannot_be_kept_are_shown() {
    let place = Place::new();
    let script =
        "trap '' XFSZ; ulimit -f 60; exec \"$0\" run -e '100 rr 32*50; 100 bulk_put 1000*50'";
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script, crate::support::program()])
        .current_dir(place.path("."));
    shell.env("STACKLINE_RUNS", place.path("runs"));
    let output = place.finish(&mut shell);
    assert_eq!(output.status.code(), Some(3), "{}", output.err);
    assert!(
        output.err.starts_with("warning: ") && output.err.contains("runs.jsonl"),
        "{}",
        output.err
    );
    assert_eq!(output.err.matches("warning: ").count(), 1, "{}", output.err);
    for words in [
        "rr 32*50",
        "bulk_put 1000*50",
        "INCOMPLETE: some of the runs above could not be kept",
    ] {
        assert!(output.out.contains(words), "{}", output.out);
    }
    // What was kept before that is whole.
    let kept = place.kept();
    let status: serde_json::Value =
        serde_json::from_slice(&fs::read(kept.0.join("status.json")).unwrap()).unwrap();
    assert!(
        status["complete"] == false && status["reason"].to_string().contains("runs.jsonl"),
        "{status}"
    );
    assert!((1..200).contains(&kept.journal()));
}

/// An import that may make no file longer than 512 kB, as a full disk would have it.
fn limited(place: &Place, more: &str) -> Command {
    let script = format!(
        "trap '' XFSZ; ulimit -f 500; exec {} import long.log {more}",
        crate::support::program()
    );
    let mut shell = Command::new("bash");
    shell
        .arg("-c")
        .arg(script)
        .current_dir(place.path("."))
        .env("STACKLINE_RUNS", place.path("runs"));
    shell
}

/// Calls of a client, 100 ms apart, that a server answers after 5 to 23 ms, a millisecond each way; its clock is so much ahead.
fn calls(ahead_ms: i64, work_ms: impl Fn(i64) -> i64) -> (String, String) {
    let line = |keyword: &str, host: &str, ms: i64, unit: i64| {
        format!(
            "{keyword}; {host}; {}; {}; {unit}\n",
            ms / 1000,
            ms % 1000 * 1_000_000
        )
    };
    let (mut client, mut server) = (String::new(), String::new());
    for unit in 0..40 {
        let (sent, work) = (1_700_000_000_000 + unit * 100, work_ms(unit));
        client += &line("GO", "client", sent, unit);
        server += &line("COME", "server", sent + 1 + ahead_ms, unit);
        server += &line("LEAVE", "server", sent + 1 + work + ahead_ms, unit);
        client += &line("BACK", "client", sent + 2 + work, unit);
    }
    (client, server)
}

#[test]
fn a_clock_by_which_answers_come_before_their_requests_is_corrected_and_reported() {
    let place = Place::new();
    let (client, server) = calls(-1000, |unit| 5 + unit % 7 * 3);
    place.write("client.log", &client);
    place.write("server.log", &server);
    let json = place
        .stackline(&["import", "client.log", "server.log", "--json"])
        .json();
    let clock = &json["clocks"]["server"];
    let (offset, error) = (
        clock["offset_ns"].as_i64().unwrap(),
        clock["error_ns"].as_i64().unwrap(),
    );
    assert!(
        (offset + 1_000_000_000).abs() <= error && error < 3_000_000,
        "{clock}"
    );
    assert_eq!(json["reference"], "client");
    let lifelines = place.stackline(&["lifelines", "last", "--json"]).json();
    let points: Vec<&str> = lifelines["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["keyword"].as_str().unwrap())
        .collect();
    assert_eq!(points, ["GO", "COME", "LEAVE", "BACK"]);
    let text = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("the clock of server is 1.00 s behind that of client"),
        "{text}"
    );
}

#[test]
fn a_clock_that_may_be_wrong_is_a_doubt_and_the_hint_corrects_it() {
    let place = Place::new();
    let (client, server) = calls(-1000, |_| 9);
    place.write("client.log", &client);
    place.write("server.log", &server);
    let done = place.stackline(&["import", "client.log", "server.log"]);
    let doubt = done.succeeds().err.clone();
    assert!(doubt.contains("one of the clocks may be wrong"), "{doubt}");
    let option = doubt
        .split('`')
        .nth(1)
        .unwrap()
        .strip_prefix("import ")
        .unwrap();
    let (flag, value) = option.split_once(' ').unwrap();
    let done = place.stackline(&[
        "import",
        "client.log",
        "server.log",
        flag,
        value,
        "--name",
        "mended",
    ]);
    assert!(
        done.succeeds()
            .err
            .contains("is 1.00 s behind, as specified"),
        "{}",
        done.err
    );
    let lifelines = place.stackline(&["lifelines", "last", "--json"]).json();
    assert_eq!(lifelines["points"][1]["keyword"], "COME");
    place
        .stackline(&["import", "client.log", "--clock", "server=+1s"])
        .fails(2, &["that host has no events"]);
    let wrong = place.stackline(&["import", "client.log", "--clock", "client=soon"]);
    assert!(
        wrong.status.code() == Some(2) && wrong.err.contains("such as server=+1s"),
        "{}",
        wrong.err
    );
}

#[test]
fn two_traces_are_compared_segment_by_segment() {
    let place = Place::new();
    for (name, more) in [("before", 0), ("after", 20)] {
        let (client, server) = calls(0, |unit| 5 + unit % 7 * 3 + more);
        place.write(&format!("{name}.log"), client + &server);
        place
            .stackline(&["import", &format!("{name}.log"), "--name", name])
            .succeeds();
    }
    let json = place
        .stackline(&["compare", "before", "after", "--json"])
        .json();
    let segments = json["segments"].as_array().unwrap();
    let verdicts: Vec<(&str, &str)> = segments
        .iter()
        .map(|one| {
            (
                one["to"]["keyword"].as_str().unwrap_or("whole"),
                one["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    let none = "no_difference_seen";
    assert_eq!(
        verdicts,
        [
            ("whole", "slower"),
            ("COME", none),
            ("LEAVE", "slower"),
            ("BACK", none)
        ]
    );
    let ratio = segments[2]["ratio"].as_f64().unwrap();
    assert!((ratio - 34.0 / 14.0).abs() < 1e-9, "{json}");
    let text = place
        .stackline(&["compare", "before", "after"])
        .succeeds()
        .out
        .clone();
    let slower = text
        .lines()
        .find(|line| line.starts_with("  to LEAVE server "));
    assert!(
        slower.is_some_and(|line| line.ends_with("slower")),
        "{text}"
    );
    assert_eq!(
        place
            .stackline(&["compare", "before", "after", "--fail-above", "5%"])
            .status
            .code(),
        Some(4)
    );
    place
        .stackline(&["compare", "before", "before", "--fail-above", "5%"])
        .succeeds();
}

#[test]
fn traced_runs_are_compared_by_measurement_and_by_segment() {
    let place = Place::new();
    for (name, delay) in [("near", 1), ("far", 5)] {
        let text = format!(
            "network n {{ host a, b; link a - b 10 Mbit/s {delay} ms; }} 2 from a to b rr 100*20 over tcp across n in simulated;"
        );
        place
            .stackline(&["run", "-e", &text, "--trace", "--name", name])
            .succeeds();
    }
    let json = place
        .stackline(&["compare", "near", "far", "--json"])
        .json();
    assert_eq!(json["comparisons"][0]["metrics"][0]["verdict"], "slower");
    let segments = json["segments"].as_array().unwrap();
    assert_eq!(segments[0]["verdict"], "slower", "{json}");
    assert!(
        segments
            .iter()
            .any(|one| one["verdict"] == "no_difference_seen"),
        "{json}"
    );
    // Both commands call the parts of the way alike.
    let compared = place
        .stackline(&["compare", "near", "far"])
        .succeeds()
        .out
        .clone();
    let lines = place
        .stackline(&["lifelines", "near"])
        .succeeds()
        .out
        .clone();
    for name in [
        "TCP hold a",
        "host output a",
        "queue a>b",
        "link a>b",
        "receive call b",
        "service time b",
    ] {
        let has = |text: &str| {
            text.lines()
                .any(|line| line.starts_with(&format!("  {name} ")))
        };
        assert!(
            has(&compared) && has(&lines),
            "no {name} in\n{compared}\n{lines}"
        );
    }
    assert!(
        segments.iter().any(|one| one["name"] == "TCP hold"),
        "{json}"
    );
}
