//! What is written has the fields that the schema requires, and our own reader reads it.

use super::*;
use stackline_core::trace_index::HostTrace;
use stackline_events::text::EventTextReader;

/// A simulated connection of QUIC and one of TCP: of the second nothing is written.
fn written() -> QlogDocument {
    let log = "\
APP_CONNECT; a; 1700000000; 0; 274877906944; 0
NET_ENQUEUE; a; 1700000000; 0; ; 0; ; ; a>x; a>b; 0; 1; 1; 1228; 1228
NET_ENQUEUE; x; 1700000000; 500000; ; 0; ; ; x>b; a>b; 0; 1; 1; 1228; 1228
NET_DELIVER; b; 1700000000; 1000001; ; 0; ; ; b; a>b; 0; 1; 1; 1228
NET_ENQUEUE; b; 1700000000; 1100000; ; 1; ; ; b>x; b>a; 0; 2; 3; 3684; 3684
NET_DELIVER; a; 1700000000; 2000000; ; 1; ; ; a; b>a; 0; 2; 3; 3684
QUIC_CONNECTED; a; 1700000000; 2100000; 274877906944; 0; ; ; full
APP_CONNECTED; a; 1700000000; 2100000; 274877906944; 0; 16
APP_ACCEPTED; b; 1700000000; 2200000; 274877906944; 1; 0
QUIC_INFO; a; 1700000000; 100000000; 100000000; 0; ; ; 12000; 2400; 2000000; 1; 0; 0
QUIC_LOST; a; 1700000000; 3000000; ; 0; ; 1200
APP_DISCONNECTED; a; 1700000001; 0; 274877906944; 0
APP_CONNECT; a; 1700000000; 0; 824633720832; 2
NET_DELIVER; b; 1700000000; 1000001; ; 2; 0; 16; b; a>b; 1; 1; 1; 68
QUIC_SENT; other; 1700000000; 5000000; ; 4; 1000; 900; 3; 1RTT
QUIC_RECEIVED; other; 1700000000; 6000000; ; ; ; 1200; 0; initial
";
    let mut table = EventTable::default();
    EventTextReader::new(log.as_bytes(), "log").for_each(|event| table.push_event(&event.unwrap()));
    let flow = |id: u32, stack: &str| RunFlow {
        id,
        measurement: 0,
        part: 0,
        run: 0,
        warmup: false,
        replica: id,
        hosts: ("a".into(), "b".into()),
        stack: stack.into(),
        service: String::new(),
    };
    let mut index = Index {
        flows: vec![flow(0, "quic(congestion = cubic)"), flow(1, "tcp")],
        ..Index::default()
    };
    index.hosts.insert("a".into(), HostTrace::default());
    document(&table, &index)
}

/// Fields that every object of that kind has, by the schemas' CDDL.
fn has(object: &Json, fields: &[&str]) {
    for field in fields {
        assert!(!object[*field].is_null(), "no {field} in {object}");
    }
}

#[test]
fn every_field_that_the_schema_requires_is_there() {
    let QlogDocument { json, events } = written();
    has(&json, &["file_schema", "serialization_format", "traces"]);
    let text = json.to_string();
    assert!(
        text.find(SERIALIZATION).unwrap() < 256,
        "the schema is named at the beginning"
    );
    let traces = json["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 3, "both ends of the flow, and the other host");
    let mut count = 0;
    for trace in traces {
        has(
            trace,
            &["common_fields", "vantage_point", "event_schemas", "events"],
        );
        has(&trace["vantage_point"], &["type"]);
        has(&trace["common_fields"], &["time_format", "reference_time"]);
        has(
            &trace["common_fields"]["reference_time"],
            &["clock_type", "epoch"],
        );
        let mut before = 0.0;
        for event in trace["events"].as_array().unwrap() {
            count += 1;
            has(event, &["time", "name", "data"]);
            let time = event["time"].as_f64().unwrap();
            assert!(time >= before, "{trace}");
            before = time;
            match event["name"].as_str().unwrap() {
                "quic:connection_started" => {
                    has(&event["data"]["local"], &["connection_ids"]);
                    has(&event["data"]["remote"], &["connection_ids"]);
                }
                "quic:connection_state_updated" => has(&event["data"], &["new"]),
                "quic:packet_sent" | "quic:packet_received" => {
                    has(&event["data"], &["header"]);
                    has(&event["data"]["header"], &["packet_type"]);
                }
                "quic:udp_datagrams_sent" | "quic:udp_datagrams_received" => {
                    has(&event["data"], &["count", "datagram_ids"]);
                }
                "quic:connection_closed" | "quic:packet_lost" | "quic:recovery_metrics_updated" => {
                }
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(count, events);
    let client = &traces[1];
    assert_eq!(
        client["vantage_point"],
        json!({ "name": "a", "type": "client" })
    );
    let names: Vec<&str> = client["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    let expected = [
        "quic:connection_started",
        "quic:udp_datagrams_sent",
        "quic:udp_datagrams_received",
        "quic:connection_state_updated",
        "quic:packet_lost",
        "quic:recovery_metrics_updated",
        "quic:connection_closed",
    ];
    assert_eq!(names, expected);
}

#[test]
fn our_own_reader_reads_what_was_written() {
    let QlogDocument { json, .. } = written();
    let read = crate::qlog::read(json.to_string().as_bytes(), None, false).unwrap();
    assert_eq!(read.imported.mistakes.count, 0);
    let table = read.imported.table;
    let lines: Vec<String> = (0..table.len())
        .map(|row| table.event(row).to_string())
        .filter(|line| line.starts_with("QUIC_"))
        .collect();
    let expected = [
        "QUIC_SENT; other; 1700000000; 5000000; ; 4; 1000; 900; 3; 1RTT",
        "QUIC_RECEIVED; other; 1700000000; 6000000; ; ; ; 1200; 0; initial",
        "QUIC_LOST; a-client; 1700000000; 3000000; ; ; ; 1200",
        "QUIC_INFO; a-client; 1700000000; 100000000; 100000000; ; ; ; 12000; 2400; 2000000; 1; 0; 0",
    ];
    assert_eq!(lines, expected);
}
