//! docs/EVENTS.md shows the programs that are tested, and bytes that are read as it says.

use std::path::Path;

fn text(path: &str) -> String {
    std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../..")
            .join(path),
    )
    .unwrap()
}

#[test]
fn its_examples_are_the_programs() {
    let page = text("docs/EVENTS.md");
    for (language, path) in [
        ("rust", "crates/record/events/examples/emit.rs"),
        ("c", "clients/c/example.c"),
        ("python", "python/example.py"),
    ] {
        assert!(
            page.contains(&format!("```{language}\n{}```\n", text(path))),
            "{path} is not in docs/EVENTS.md"
        );
    }
}

#[test]
fn its_bytes_are_the_event_log_it_describes() {
    let page = text("docs/EVENTS.md");
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("02 00 00 01"))
        .take_while(|line| *line != "```");
    let bytes: Vec<u8> = lines
        .flat_map(|line| {
            line.split_whitespace()
                .map(|byte| u8::from_str_radix(byte, 16).unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    let mut expected = stackline_events::EventLog::default();
    expected.host("khons");
    // Nothing else of this process has a number yet, so it is the first.
    let send = stackline_events::keyword::intern("APP_SEND");
    let values = [
        7_i64.into(),
        stackline_events::EventValue::Absent,
        "hi".into(),
    ];
    expected.push(send, 5, &values);
    let event_log = stackline_events::EventLog::from_bytes(bytes);
    assert_eq!(
        event_log.records().collect::<Vec<_>>(),
        expected.records().collect::<Vec<_>>()
    );
    assert_eq!(event_log.bytes(), expected.bytes());
}
