//! What was watched or captured and never measured: found from monitors and connections alone, and said what for.

use super::*;
use crate::scope::{RunOrigin, origin, scope};
use stackline_core::trace_index::TraceImport;
use stackline_events::EventValue;

/// A run with events and no measurement.
fn observed(events: EventTable, form: Option<&str>) -> Given {
    let imports = form.map(|form| TraceImport {
        form: form.to_owned(),
        ..TraceImport::default()
    });
    let plan = Plan {
        measurements: Vec::new(),
        ..plan_of(1.0, 1, None, 1, "bulk_put 1*1")
    };
    let index = Index {
        imports: imports.into_iter().collect(),
        ..Index::default()
    };
    Given {
        plan,
        records: Vec::new(),
        index,
        events,
        lifelines: Lifelines::default(),
    }
}

fn input(given: &Given) -> AnalysisInput<'_> {
    let Given {
        plan,
        records,
        index,
        events,
        lifelines,
    } = given;
    AnalysisInput {
        plan,
        records,
        index,
        events,
        lifelines,
    }
}

fn kinds(given: &Given) -> Vec<&'static str> {
    diagnose(&input(given))
        .iter()
        .map(|finding| finding.kind)
        .collect()
}

/// A second of a connection, ten intervals: limited by the window for so many ms of each, and so many bytes unread.
fn watched(limited_ms: u64, unread: i64, retransmits: i64) -> EventTable {
    let mut events = EventTable::default();
    for at in 1..=10 {
        let mut values = [EventValue::Number(0); 16];
        (values[0], values[1]) = (EventValue::from(100 * MS), EventValue::Absent);
        (values[2], values[3]) = (
            EventValue::Text("10.0.0.1:9009"),
            EventValue::Text("10.0.0.2:4000"),
        );
        values[7] = EventValue::Number(retransmits);
        values[9] = EventValue::from(limited_ms * MS);
        values[12] = EventValue::Number(unread);
        (values[14], values[15]) = (EventValue::Number(1448), EventValue::Number(1_448_000));
        events.push("TCP_INFO", "khons", at * 100 * MS, &values);
    }
    events
}

#[test]
fn monitors_alone_show_windows_unread_data_and_losses() {
    let given = observed(watched(80, 468_000, 0), None);
    assert_eq!(kinds(&given), ["observed_unread", "observed_window"]);
    let found = diagnose(&input(&given));
    // The reader is the cause, and comes first.
    assert!(
        found[1]
            .sentence
            .contains("10.0.0.1:9009 was held back by the window of 10.0.0.2:4000 for 80 %"),
        "{found:?}"
    );
    assert_eq!(
        kinds(&observed(watched(0, 1000, 20), None)),
        ["observed_loss"]
    );
    assert!(
        kinds(&observed(watched(4, 1000, 0), None)).is_empty(),
        "a little of each is usual"
    );
}

/// A connection of two seconds.
fn connection(again: i64, full_ms: u64, quiet_ms: u64, until: &str) -> EventTable {
    let mut events = EventTable::default();
    let mut values = [EventValue::Number(0); 16];
    (values[1], values[2]) = (
        EventValue::Text("10.0.0.1:9009"),
        EventValue::Text("10.0.0.2:80"),
    );
    values[3] = EventValue::from(2 * SECOND);
    values[7] = EventValue::Number(14_480_000);
    values[9] = EventValue::Number(again);
    values[12] = EventValue::from(full_ms * MS);
    (values[13], values[14]) = (EventValue::from(quiet_ms * MS), EventValue::from(until));
    events.push("TCP_CONNECTION", "khons", SECOND, &values);
    events
}

#[test]
fn a_capture_shows_who_was_waited_for() {
    let found = diagnose(&input(&observed(
        connection(0, 0, 1500, "responder"),
        Some("capture"),
    )));
    assert_eq!(found[0].kind, "observed_quiet");
    assert!(
        found[0]
            .sentence
            .ends_with("75 % of their connection time: waiting for 10.0.0.2:80 to send")
    );
    let found = diagnose(&input(&observed(
        connection(0, 0, 1500, "retransmission"),
        Some("capture"),
    )));
    assert!(
        found[0]
            .sentence
            .ends_with("waiting for a retransmission after a loss"),
        "{found:?}"
    );
    assert_eq!(
        kinds(&observed(
            connection(0, 1900, 300, "initiator"),
            Some("capture")
        )),
        ["observed_window"]
    );
    assert_eq!(
        kinds(&observed(connection(200, 0, 0, ""), Some("capture"))),
        ["observed_loss"]
    );
    assert!(
        kinds(&observed(
            connection(5, 50, 300, "initiator"),
            Some("capture")
        ))
        .is_empty()
    );
}

#[test]
fn a_segment_that_was_sent_again_takes_a_round_trip_of_the_time() {
    let said = |again: i64, round_trip_ms: u64| {
        let events = connection(again, 0, 0, "");
        let mut values: Vec<EventValue<'_>> = (0..16).map(|field| events.value(0, field)).collect();
        (values[4], values[7]) = (
            EventValue::from(round_trip_ms * MS),
            EventValue::Number(12_000),
        );
        let mut one = EventTable::default();
        one.push("TCP_CONNECTION", "khons", SECOND, &values);
        let found = diagnose(&input(&observed(one, Some("capture"))));
        (found[0].share, found[0].sentence.clone())
    };
    let (share, sentence) = said(1, 200);
    assert!((share - 0.1).abs() < 1e-9, "200 ms of 2 s, not {share}");
    assert!(
        sentence.starts_with("1 segment between")
            && sentence.contains(" was retransmitted, in addition to 12.0 kB"),
        "{sentence}"
    );
    let (share, sentence) = said(4, 200);
    assert!(
        (share - 0.4).abs() < 1e-9 && sentence.starts_with("4 segments between"),
        "{share} {sentence}"
    );
    assert_eq!((said(1, 1).0, said(40, 200).0), (0.05, 1.0));
}

#[test]
fn what_was_looked_for_is_said_once_nothing_was_measured() {
    for (given, expected, words) in [
        (
            observed(watched(0, 0, 0), None),
            RunOrigin::Watch,
            "unread data",
        ),
        (
            observed(connection(0, 0, 0, ""), Some("capture")),
            RunOrigin::Capture,
            "long quiet periods",
        ),
        (
            observed(connection(0, 0, 0, ""), Some("text")),
            RunOrigin::Import,
            "full receive windows",
        ),
    ] {
        assert_eq!(origin(&input(&given)), Some(expected));
        let said = scope(&input(&given)).unwrap();
        assert!(
            said.starts_with("Looked for: ") && said.contains(words) && said.contains("; not for "),
            "{said}"
        );
    }
    let mut measured = observed(watched(80, 468_000, 0), None);
    measured.plan = plan_of(1.0, 1, None, 1, "bulk_put 1*1");
    assert_eq!(
        (scope(&input(&measured)), origin(&input(&measured))),
        (None, None)
    );
    assert!(
        !kinds(&measured)
            .iter()
            .any(|kind| kind.starts_with("observed"))
    );
}

/// A second of a sender of QUIC, ten intervals of which it was busy and blocked for so many ms each; so many packets of 100 lost.
fn logged(busy_ms: u64, blocked_ms: u64, lost: i64) -> EventTable {
    let mut events = EventTable::default();
    let absent = EventValue::Absent;
    for at in 1..=10 {
        let mut values = [absent; 16];
        values[0] = EventValue::from(100 * MS);
        (values[4], values[5]) = (EventValue::Number(12_000), EventValue::Number(11_000));
        values[6] = EventValue::from(40 * MS);
        (values[8], values[9]) = (
            EventValue::from(busy_ms * MS),
            EventValue::from(blocked_ms * MS),
        );
        events.push("QUIC_INFO", "client", at * 100 * MS, &values);
    }
    for packet in 0..100 {
        let at_ns = packet * 10 * MS;
        let number = EventValue::from(packet);
        // Two frames of one packet.
        for stream in [0, 4] {
            let range = [absent, stream.into(), 0.into(), 600.into()];
            let values = [&range[..], &[number, "1RTT".into()]].concat();
            events.push("QUIC_SENT", "client", at_ns, &values);
        }
    }
    for packet in 0..lost {
        let values = [
            absent,
            absent,
            absent,
            absent,
            packet.into(),
            "time_threshold".into(),
        ];
        events.push("QUIC_LOST", "client", 500 * MS, &values);
    }
    events
}

#[test]
fn a_log_of_quic_shows_losses_and_what_held_its_sender_back() {
    let found = |busy, blocked, lost| {
        let given = observed(logged(busy, blocked, lost), Some("qlog"));
        let found = diagnose(&input(&given));
        let said: Vec<(&str, String)> = found
            .into_iter()
            .map(|one| (one.kind, one.sentence))
            .collect();
        said
    };
    let lost = found(20, 0, 17);
    assert_eq!(
        lost[0],
        (
            "observed_loss",
            "lost: 17 of 100 packets that client sent, 17 % (17 by time_threshold); the congestion window, reduced by these losses, was full for 20 % of the connection time".to_owned()
        )
    );
    assert_eq!(
        found(80, 10, 0)[0],
        ("observed_congestion", "the congestion window of client was full for 70 % of its connection time; a round trip takes up to 40.0 ms".to_owned())
    );
    assert_eq!(
        found(90, 85, 0)[0],
        (
            "observed_window",
            "the receiver's flow control held client back for 85 % of its connection time"
                .to_owned()
        )
    );
    assert_eq!(
        found(4, 0, 0)[0],
        (
            "observed_application",
            "client could have sent data for 96 % of its connection time, but its program gave it nothing to send"
                .to_owned()
        )
    );
    let words = scope(&input(&observed(logged(0, 0, 0), Some("qlog")))).unwrap();
    assert!(words.contains("lost QUIC packets"), "{words}");
}

/// A second in which a host sends a datagram of 1,250 bytes each `every_us` over a link of 10 Mbit/s, of which one in `one_in` is dropped.
fn datagrams(every_us: u64, one_in: u64, reason: &str) -> Given {
    let mut given = observed(EventTable::default(), None);
    given.event(0, "a", "PORT_SETUP", "a>b; 10000000; 65536");
    given.event(0, "a", "NET_FLOW", "4; 10.0.0.1:4000; 10.0.0.2:5201");
    for n in 0..1_000_000 / every_us {
        let at = n * every_us;
        let packet = format!("; 4; ; 1222; a>b; a>b; 9; {n}; 1; 1250");
        if n % one_in == 0 {
            given.event(at, "a", "NET_DROP", &format!("{packet}; {reason}"));
        } else {
            given.event(at, "a", "NET_ENQUEUE", &format!("{packet}; 1250"));
            given.event(at, "a", "NET_DEQUEUE", &packet);
            given.event(at, "b", "NET_DELIVER", &packet);
        }
    }
    given
}

#[test]
fn dropped_datagrams_are_named_with_their_flow_and_what_arrives() {
    let first = |given: Given| {
        let finding = given.found().remove(0);
        (finding.kind, finding.sentence)
    };
    let flow = "of 10.0.0.1:4000 > 10.0.0.2:5201";
    let (kind, sentence) = first(datagrams(500, 2, "queue full"));
    assert_eq!(kind, "observed_datagram_loss");
    assert_eq!(
        sentence,
        format!(
            "the queue before a>b drops 1000 of 2000 datagrams (50 %) {flow}: queue full; meanwhile the flow sends 20.0 Mbit/s, and the link carries 10.0 Mbit/s in all"
        )
    );
    // Half of what the link carries: bursts, or a link that loses.
    let (_, sentence) = first(datagrams(2000, 100, "queue full"));
    assert_eq!(
        sentence,
        format!("the queue before a>b drops 5 of 500 datagrams (1 %) {flow}: queue full")
    );
    let (_, sentence) = first(datagrams(2000, 100, "lost on the link"));
    assert_eq!(
        sentence,
        format!("the link a>b loses 5 of 500 datagrams (1 %) {flow}: lost on the link")
    );
    // What follows from another drop is none of its own.
    assert!(kinds(&datagrams(500, 2, "early packet discard")).is_empty());
    assert!(kinds(&datagrams(500, 1500, "queue full")).is_empty());
}

/// A transfer of the initiator, which pauses for so many ms in all; the longest pause takes so many.
fn transfer(full_ms: u64, paused_ms: u64, longest_ms: u64) -> EventTable {
    let mut events = connection(0, full_ms, longest_ms, "initiator");
    let mut values = [EventValue::Number(0); 7];
    (values[1], values[2]) = (EventValue::from("backup"), EventValue::from("curl"));
    (values[3], values[4]) = (EventValue::Number(9), EventValue::from(paused_ms * MS));
    events.push("TCP_TRANSFER", "khons", SECOND, &values);
    events
}

#[test]
fn of_a_transfer_the_side_that_holds_it_up_is_named_with_its_program() {
    let sentences = |events| {
        let given = observed(events, Some("capture"));
        let found = diagnose(&input(&given));
        let said = |one: Finding| format!("{} {}", one.kind, one.sentence);
        found.into_iter().map(said).collect::<Vec<_>>()
    };
    // Many pauses are one finding, also where one of them is long.
    let paused = sentences(transfer(0, 1_800, 600));
    assert_eq!(paused.len(), 1, "{paused:?}");
    let wanted = "observed_application backup (10.0.0.1:9009) sends 14.5 MB to curl (10.0.0.2:80) with 9 pauses of 1.80 s in all, 90 % of their connection time";
    assert!(paused[0].starts_with(wanted), "{paused:?}");
    let unread = sentences(transfer(1_900, 0, 0));
    let wanted = "observed_window the window of curl (10.0.0.2:80) was full for 95 % of its connection time: backup (10.0.0.1:9009) waits";
    assert!(unread[0].starts_with(wanted), "{unread:?}");
    assert!(sentences(transfer(0, 50, 5)).is_empty());
    let given = observed(transfer(0, 1_800, 600), Some("capture"));
    let found = find_transfers(&input(&given));
    let [one] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((one.bytes, one.seconds, one.paused), (14_480_000, 2.0, 0.9));
    assert!((one.goodput_bit_s - 57.92e6).abs() < 1.0);
}

#[test]
fn a_program_that_waits_for_its_send_buffer_does_not_pause() {
    let mut events = transfer(0, 1_740, 60);
    for (at_ms, stream) in [(1_000, 0), (2_000, 0), (2_000, 1)] {
        let mut values = [EventValue::Number(0); 16];
        (values[0], values[1]) = (EventValue::from(SECOND), EventValue::Number(stream));
        (values[5], values[6]) = (EventValue::Number(64_000), EventValue::from(50 * MS));
        values[10] = EventValue::from(850 * MS);
        events.push("TCP_INFO", "khons", at_ms * MS, &values);
    }
    let given = observed(events, Some("capture"));
    let found = diagnose(&input(&given));
    let wanted = "the send buffer of backup (10.0.0.1:9009) was full for at least 85 % of its time to curl (10.0.0.2:80): at most 64.0 kB are under way in a round trip of up to 50.0 ms (10.2 Mbit/s), and its program waits to write more";
    assert_eq!(found[0].sentence, wanted);
    assert_eq!(found.len(), 1, "{found:?}");
    let transfers = find_transfers(&input(&given));
    assert_eq!(transfers[0].send_buffer, Some(0.85));
    assert!((transfers[0].paused - 0.02).abs() < 1e-9);
}
