//! Both framings, drafts old and new, what is cut off, what is hostile.

use super::*;
use proptest::prelude::*;

fn lines(bytes: &[u8], host: Option<&str>) -> (Vec<String>, u64) {
    let read = read(bytes, host, false).unwrap().imported;
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
            "QUIC_INFO; client; 0; 10000000; 8500000; ; ; ; 12000; ; ; 1; 0; 0",
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

/// A packet with 1000 bytes of stream 0, in the form of drafts from 2 on.
fn packet(time: u32, number: u32) -> String {
    format!(
        r#"{{"time":{time}.0,"name":"transport:packet_sent","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"frames":[{{"frame_type":"stream","stream_id":0,"offset":{},"length":1000}}]}}}}"#,
        number * 1000
    )
}

const SENT: [&str; 2] = [
    "QUIC_SENT; client; 1700000000; 0; ; 0; 0; 1000; 0; 1RTT",
    "QUIC_SENT; client; 1700000000; 20000000; ; 0; 1000; 1000; 1; 1RTT",
];

#[test]
fn lines_are_records_too() {
    let header = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"client"},"common_fields":{"reference_time":1700000000000.0}}}"#;
    let text = format!(
        "{header}\n{}\n\n{}\n{{\"time\"",
        packet(0, 0),
        packet(20, 1)
    );
    assert_eq!(
        lines(text.as_bytes(), None),
        (SENT.map(str::to_owned).to_vec(), 1)
    );
}

#[test]
fn events_as_arrays_have_the_columns_that_their_trace_names() {
    let event = |time: u32, number: u32| {
        format!(
            r#"[{time},"TRANSPORT","PACKET_SENT","",{{"packet_type":"1RTT","header":{{"packet_number":"{number}","packet_size":1200}},"frames":[{{"frame_type":"stream","id":"0","offset":"{}","length":"1000"}}]}}]"#,
            number * 1000
        )
    };
    for (columns, second) in [("relative_time", 20_000), ("delta_time", 20_000)] {
        let text = format!(
            r#"{{"qlog_version":"draft-01","traces":[{{"vantage_point":{{"type":"client"}},"configuration":{{"time_units":"us"}},
            "common_fields":{{"reference_time":"1700000000000"}},"event_fields":["{columns}","CATEGORY","EVENT_TYPE","TRIGGER","DATA"],
            "events":[{},{},[3,"recovery"]]}}]}}"#,
            event(0, 0),
            event(second, 1)
        );
        assert_eq!(
            lines(text.as_bytes(), None),
            (SENT.map(str::to_owned).to_vec(), 1),
            "{columns}"
        );
    }
}

#[test]
fn a_document_is_read_up_to_where_it_was_cut() {
    let whole = format!(
        r#"{{"qlog_version":"0.3","traces":[{{"vantage_point":{{"type":"client","name":"a \"]}} b"}},"common_fields":{{"reference_time":1700000000000}},"events":[{},{}]}}]}}"#,
        packet(0, 0),
        packet(20, 1)
    );
    assert_eq!(
        lines(whole.as_bytes(), Some("client")),
        (SENT.map(str::to_owned).to_vec(), 0)
    );
    let first = whole.find("},{\"time\"").unwrap() + 1;
    for end in 0..whole.len() {
        match read(&whole.as_bytes()[..end], Some("client"), false) {
            Ok(read) => {
                let events = if end + 4 < whole.len() { 1 } else { 2 };
                assert!(end >= first, "{end}");
                assert_eq!(
                    (read.imported.table.len(), read.imported.mistakes.count),
                    (events, 1),
                    "{end}"
                );
            }
            Err(_) => assert!(end < first, "{end}"),
        }
    }
    let broken = whole.replacen("\"time\":20.0", "\"time\":#", 1);
    assert_eq!(
        lines(broken.as_bytes(), Some("client")),
        (vec![SENT[0].to_owned()], 1)
    );
}

#[test]
fn fields_are_found_where_each_draft_has_them() {
    let lost = |data: &str| {
        let text = format!(
            r#"{{"qlog_version":"0.4","traces":[{{"vantage_point":{{"type":"client"}},"events":[{{"time":1,"name":"recovery:packet_lost","data":{data}}}]}}]}}"#
        );
        let found = lines(text.as_bytes(), None).0;
        found[0]
            .strip_prefix("QUIC_LOST; client; 0; 1000000; ; ; ; ")
            .unwrap()
            .to_owned()
    };
    // aioquic has no header, ngtcp2 a number as a text; quic-go has all in the header.
    assert_eq!(lost(r#"{"type":"1RTT","packet_number":9}"#), "; 9; 1RTT");
    assert_eq!(
        lost(r#"{"packet_type":"1RTT","packet_number":"9","trigger":"pto_expired"}"#),
        "; 9; pto_expired"
    );
    assert_eq!(
        lost(
            r#"{"header":{"packet_type":"1RTT","packet_number":9},"raw":{"length":1200},"trigger":"time_threshold"}"#
        ),
        "1200; 9; time_threshold"
    );
    // The newest: a schema, relative to an epoch, lengths in `raw`, and no offset at the beginning of a stream.
    let newest = "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"serialization_format\":\"application/qlog+json-seq\",\"trace\":{\"vantage_point\":{\"type\":\"server\"},\"common_fields\":{\"time_format\":\"relative_to_epoch\",\"reference_time\":{\"clock_type\":\"system\",\"epoch\":\"1970-01-01T00:00:00.000Z\"}}}}\n\u{1e}{\"time\":1700000000000,\"name\":\"quic:packet_received\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":4},\"raw\":{\"length\":1200},\"frames\":[{\"frame_type\":\"stream\",\"stream_id\":0,\"raw\":{\"length\":1003,\"payload_length\":1000}}]}}\n";
    assert_eq!(
        lines(newest.as_bytes(), None).0,
        ["QUIC_RECEIVED; server; 1700000000; 0; ; 0; 0; 1000; 4; 1RTT"]
    );
    // A clock whose beginning nobody knows: the log was begun then.
    let monotonic = newest.replace(
        "1970-01-01T00:00:00.000Z",
        "unknown\",\"wall_clock_time\":\"2023-11-14T22:13:20Z",
    );
    assert_eq!(
        lines(monotonic.as_bytes(), None).0,
        ["QUIC_RECEIVED; server; 1700000000; 0; ; 0; 0; 1000; 4; 1RTT"]
    );
}

#[test]
fn both_ends_of_one_library_are_two_hosts() {
    let host = |point: &str| name_host(&serde_json::from_str(point).unwrap());
    assert_eq!(
        host(r#"{"name":"aioquic","type":"client"}"#),
        "aioquic-client"
    );
    assert_eq!(
        host(r#"{"name":"aioquic","type":"server"}"#),
        "aioquic-server"
    );
    assert_eq!(host(r#"{"name":"my server","type":"server"}"#), "my server");
    assert_eq!(host(r#"{"name":"","type":"server"}"#), "server");
    assert_eq!(
        (host(r#"{"name":"a"}"#), host("null")),
        ("a".to_owned(), "quic".to_owned())
    );
}

#[test]
fn figures_of_the_sender_say_what_it_waited_for() {
    let event = |time: u32, name: &str, data: &str| {
        format!("{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}\n")
    };
    let text = [
        "{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n".to_owned(),
        event(100, "recovery:metrics_updated", r#"{"congestion_window":12000,"bytes_in_flight":11500,"smoothed_rtt":40.5}"#),
        event(140, "recovery:metrics_updated", r#"{"bytes_in_flight":2000}"#),
        event(200, "transport:packet_sent", r#"{"frames":[{"frame_type":"stream","stream_id":0,"length":1},{"frame_type":"data_blocked","limit":5}]}"#),
        event(230, "recovery:packet_lost", r#"{"header":{"packet_number":1}}"#),
        event(250, "transport:packet_received", r#"{"frames":[{"frame_type":"max_data","maximum":9}]}"#),
        event(260, "recovery:congestion_state_updated", r#"{"old":"slow_start","new":"application_limited"}"#),
    ]
    .concat();
    let (lines, mistakes) = lines(text.as_bytes(), None);
    let info: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("QUIC_INFO; server; 0; "))
        .collect();
    assert_eq!(
        (info, mistakes),
        (
            vec![
                "100000000; 0; ; ; ; 12000; 11500; 40500000; 0; 0; 0",
                "140000000; 40000000; ; ; ; 12000; 2000; 40500000; 0; 40000000; 0",
                "260000000; 120000000; ; ; ; 12000; 2000; 40500000; 1; 50000000; 50000000",
            ],
            0
        )
    );
    assert!(
        lines
            .iter()
            .any(|line| line.ends_with(r#"{"new":"application_limited","old":"slow_start"}"#)),
        "{lines:?}"
    );
}

#[test]
fn what_is_no_qlog_is_refused() {
    for text in ["", "[]", "{}", "\u{1e}{}\n", "\u{1e}x"] {
        assert!(
            read(text.as_bytes(), None, false)
                .unwrap_err()
                .to_string()
                .starts_with("this is not qlog"),
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
