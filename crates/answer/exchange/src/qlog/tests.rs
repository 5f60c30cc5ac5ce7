//! Both framings, drafts old and new, what is cut off, what is hostile.

use super::*;
use proptest::prelude::*;

fn lines(bytes: &[u8], host: Option<&str>) -> (Vec<String>, u64) {
    let read = read(bytes, host, false).unwrap();
    (
        (0..read.table.len())
            .map(|row| read.table.event(row).to_string())
            .collect(),
        read.mistakes.count,
    )
}

#[test]
fn a_sequence_as_quinn_writes_it() {
    let records = [
        r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"client"},"common_fields":{"reference_time":0.0,"time_format":"relative"}}}"#,
        r#"{"time":1.5,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":1200},"frames":[{"frame_type":"ack"},{"frame_type":"stream","stream_id":4,"offset":1000,"length":900},{"frame_type":"stream","stream_id":8,"offset":0,"length":10}]}}"#,
        r#"{"time":2.0,"name":"transport:packet_received","data":{"header":{"packet_type":"initial","packet_number":0},"raw":{"length":1200}}}"#,
        r#"{"time":9.25,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":3},"trigger":"reordering_threshold"}}"#,
        r#"{"time":10.0,"name":"recovery:metrics_updated","data":{"congestion_window":12000}}"#,
        r#"{"time":11.0,"name":"transport:pac"#,
    ];
    let text: String = records
        .iter()
        .map(|record| format!("\u{1e}{record}\n"))
        .collect();
    let (lines, mistakes) = lines(text.as_bytes(), None);
    assert_eq!(
        lines,
        [
            "QUIC_SENT; client; 0; 1500000; ; 4; 1000; 900; 3; 1RTT",
            "QUIC_SENT; client; 0; 1500000; ; 8; 0; 10; 3; 1RTT",
            "QUIC_RECEIVED; client; 0; 2000000; ; ; ; 1200; 0; initial",
            "QUIC_LOST; client; 0; 9250000; ; ; ; ; 3; reordering_threshold",
            r#"QLOG_RECOVERY_METRICS_UPDATED; client; 0; 10000000; ; ; ; ; ; {"congestion_window":12000}"#,
        ]
    );
    assert_eq!(mistakes, 1, "a record that was cut off");
}

#[test]
fn one_object_with_a_wall_clock_and_deltas() {
    let text = r#"{"qlog_version":"0.4","traces":[{"common_fields":{"time_format":"relative_to_previous_event",
        "reference_time":{"clock_type":"system","wall_clock_time":"2024-02-29T12:00:00.5Z"},"group_id":"abc"},
        "events":[{"time":1,"name":"quic:a-b","data":null},{"time":2,"name":"quic:a-b","data":{}},{"name":"x"},{"time":-1e300,"name":"y"}]}]}"#;
    let (lines, mistakes) = lines(text.as_bytes(), Some("khons"));
    assert_eq!(
        lines,
        [
            "QLOG_QUIC_A_B; khons; 1709208000; 501000000; ; ; ; ; abc",
            "QLOG_QUIC_A_B; khons; 1709208000; 503000000; ; ; ; ; abc; {}"
        ]
    );
    assert_eq!(mistakes, 2);
}

#[test]
fn what_is_no_qlog_is_refused() {
    for text in ["", "[]", "{}", "\u{1e}{}\n", "\u{1e}x"] {
        assert!(
            read(text.as_bytes(), None, false)
                .unwrap_err()
                .to_string()
                .starts_with("this is no qlog"),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn hostile_events_are_harmless(text in r#"(\x1e|[{}\[\]":,0-9a-z]|"time"|"name"|"data"|"frames"){0,60}"#) {
        let header = "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{}}\n";
        let _ = read(format!("{header}\u{1e}{text}").as_bytes(), None, false);
        let _ = read(text.as_bytes(), None, false);
    }
}
