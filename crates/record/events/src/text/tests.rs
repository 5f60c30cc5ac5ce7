//! Events as text: exact both ways, mistakes named with their line, hostile text harmless.

use super::*;
use proptest::prelude::*;

fn event(keyword: &str, at_ns: u64, data: &[&str]) -> TextEvent {
    let data = data.iter().map(|&field| field.to_owned()).collect();
    TextEvent {
        keyword: keyword.into(),
        host: "khons".into(),
        at_ns,
        data,
    }
}

#[test]
fn the_printed_form() {
    let drop = event(
        "NET_DROP",
        3_000_000_042,
        &["khons>edge", "7", "1500", "queue full"],
    );
    assert_eq!(
        drop.line().unwrap(),
        "NET_DROP; khons; 3; 42; khons>edge; 7; 1500; queue full"
    );
    assert_eq!(
        event("APP_SEND", 999_999_999, &[]).line().unwrap(),
        "APP_SEND; khons; 0; 999999999"
    );
    assert_eq!(
        event("A", 0, &["", ""]).line().unwrap(),
        "A; khons; 0; 0; ; ;"
    );
}

#[test]
fn what_others_print_is_read_too() {
    let read = |line: &str| line.parse::<TextEvent>();
    let expected = event(
        "DPSS_START_WRITE",
        839_886_160_456_000_000,
        &["17", "set 3"],
    );
    assert_eq!(
        read("DPSS_START_WRITE;khons;839886160;456000000;17;set 3;"),
        Ok(expected.clone())
    );
    assert_eq!(
        read("  DPSS_START_WRITE ; khons ;\t839886160 ; 0456000000 ; 17 ; set 3 ; "),
        Ok(expected)
    );
    assert_eq!(read("A; khons; 0; 0;"), Ok(event("A", 0, &[])));
    assert_eq!(read("A; khons; 0; 0; ;"), Ok(event("A", 0, &[""])));
}

#[test]
fn what_would_not_read_back_is_written_as_its_code() {
    let coded = [
        ("a;b", "a%3Bb"),
        ("two\nlines", "two%0Alines"),
        (" blank", "%20blank"),
        ("blank ", "blank%20"),
        ("\t", "%09"),
        ("nul\0", "nul%00"),
        ("95%", "95%"),
        ("%41", "%41"),
        ("%3B", "%253B"),
        ("100%25", "100%2525"),
        ("#1", "#1"),
    ];
    for (field, written) in coded {
        assert_eq!(
            (escape_field(field), unescape_field(written)),
            (written.into(), field.into())
        );
        let line = event("A", 0, &[field]).line().unwrap();
        assert_eq!(line, format!("A; khons; 0; 0; {written}"));
        assert_eq!(TextEvent::parse(&line).unwrap().data, [field]);
    }
    let comment = event("#A", 0, &[]);
    assert_eq!(comment.line().unwrap(), "%23A; khons; 0; 0");
    assert_eq!(TextEvent::parse("%23A; khons; 0; 0"), Ok(comment));
    assert_eq!(
        event("", 0, &[]).line().unwrap_err(),
        "an event has an empty keyword"
    );
}

#[test]
fn mistakes_say_their_line_and_the_rest_is_read() {
    let long = "x".repeat(2 << 20);
    let text = format!(
        "# made by hand\nA; khons; 0; 1\n\nB; khons; x; 1\nC; khons; 1\nD; khons; 0; 1000000000\nE; khons; 18446744074; 0\nF; khons; 2; 0\nG; \n{long}"
    );
    let read: Vec<Result<TextEvent, EventLineMistake>> =
        EventTextReader::new(text.as_bytes(), "t").collect();
    let said: Vec<String> = read
        .iter()
        .filter_map(|r| r.as_ref().err())
        .map(ToString::to_string)
        .collect();
    let form = "expected `KEYWORD; host; seconds; nanoseconds; data; ...`";
    assert_eq!(
        said,
        [
            "t, line 4, is not an event: `x` is not a whole number in range".to_owned(),
            format!("t, line 5, is not an event: the number of nanoseconds is missing; {form}"),
            "t, line 6, is not an event: the nanoseconds must be less than one second, but are 1000000000".to_owned(),
            "t, line 7, is not an event: 18446744074 s is more than 584 years".to_owned(),
            format!("t, line 9, is not an event: the host is missing; {form}"),
            "t, line 10, is not an event: it is longer than 1 MiB".to_owned(),
        ]
    );
    let good: Vec<&TextEvent> = read.iter().flatten().collect();
    assert_eq!(good, [&event("A", 1, &[]), &event("F", 2 * NANOS, &[])]);
}

proptest! {
    #[test]
    fn what_is_written_reads_back(keyword in ".*", host in ".*", at_ns: u64, data in proptest::collection::vec(".*", 0..6)) {
        let event = TextEvent { keyword, host, at_ns, data };
        if let Ok(line) = event.line() {
            prop_assert_eq!(TextEvent::parse(&line), Ok(event));
        }
    }

    #[test]
    fn what_others_wrote_is_written_so_again(field in "[%;0-9A-F a-z]{0,12}") {
        let written = escape_field(&field);
        prop_assert_eq!(unescape_field(&written), field.as_str());
    }

    #[test]
    fn plain_fields_are_always_writable(keyword in "[A-Z_]{1,9}", at_ns: u64, data in proptest::collection::vec("([!-:<-~]( ?[!-:<-~])*)?", 0..6)) {
        let event = TextEvent { keyword, host: "h".into(), at_ns, data };
        prop_assert_eq!(TextEvent::parse(&event.line().unwrap()), Ok(event));
    }

    #[test]
    fn hostile_text_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400), line in "(;|[ -~]|[0-9]|\\PC){0,80}") {
        for event in EventTextReader::new(&bytes[..], "t").flatten() {
            prop_assert!(event.line().is_ok());
        }
        if let Ok(event) = TextEvent::parse(&line) {
            prop_assert_eq!(TextEvent::parse(&event.line().unwrap()), Ok(event));
        }
    }
}
