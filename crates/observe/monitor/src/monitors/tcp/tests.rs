//! Which events are recorded of which connection, with what cause and when. No trace of the kernel is read.

use super::super::sample::testing::lines;
use super::congestion::{LOSS, RECOVERY};
use super::*;
use crate::watch_config::WatchedConnections;

fn tcp() -> (TcpMonitor, AddressPair) {
    let ports = WatchedPorts {
        local: [5_001].into(),
        ..WatchedPorts::default()
    };
    let config = Config {
        kernel: false,
        connections: WatchedConnections::Ports(ports),
        ..Config::new("khons")
    };
    let tcp = TcpMonitor::new(&config, Arc::default());
    assert!(tcp.absent["kernel"].contains("per interval, not"));
    (tcp, AddressPair::parse("127.0.0.1:5001", "127.0.0.1:40000"))
}

fn event(event: TcpEvent, pair: AddressPair) -> TraceEvent {
    TraceEvent {
        event,
        pair: Some(pair),
        socket: None,
    }
}

fn socket(pair: AddressPair, cookie: u64, counters: TcpInfoCounters) -> DiagSocket {
    DiagSocket {
        pair,
        state: 1,
        inode: 1,
        cookie,
        receive_queue_bytes: 0,
        received_bytes: None,
        counters: Some(counters),
    }
}

const RETRANSMIT: TcpEvent = TcpEvent::Retransmit {
    handshake: false,
    error: None,
};

#[test]
fn the_cause_of_a_retransmission_is_the_senders_congestion_state() {
    let (mut tcp, watched) = tcp();
    let mut log = EventLog::default();
    let other = AddressPair::parse("127.0.0.1:9", "127.0.0.1:8");
    tcp.events = vec![
        (10, event(RETRANSMIT, watched)),
        (20, event(TcpEvent::Congestion(RECOVERY), watched)),
        (21, event(RETRANSMIT, watched)),
        (30, event(TcpEvent::Congestion(LOSS), watched)),
        (
            31,
            event(
                TcpEvent::Retransmit {
                    handshake: false,
                    error: Some(105),
                },
                watched,
            ),
        ),
        (
            40,
            event(
                TcpEvent::Drop {
                    reason: "socket_rcvbuff".into(),
                },
                other,
            ),
        ),
    ];
    tcp.record_events(&mut log);
    tcp.retransmissions.record(false, &mut log);
    tcp.retransmissions.record(true, &mut log);
    let pair = "127.0.0.1:5001;127.0.0.1:40000";
    assert_eq!(
        lines(&log),
        [
            format!("TCP_STATE ;;;;recovery;{pair}"),
            format!("TCP_STATE ;;;;loss;{pair}"),
            format!("TCP_RETRANSMIT ;;;;probe;;{pair}"),
            format!("TCP_RETRANSMIT ;;;;fast;;{pair}"),
            format!("TCP_RETRANSMIT ;;;;timeout, not sent: error 105;;{pair}"),
        ]
    );
    assert_eq!(tcp.undecided.len(), 1, "not watched, as far as is known");
}

#[test]
fn a_closed_connections_retransmissions_are_recorded() {
    let (mut tcp, watched) = tcp();
    let mut log = EventLog::default();
    tcp.retransmissions.push(1, watched, "fast".into());
    tcp.record_connections(&[], 10, &mut log);
    tcp.retransmissions.record(false, &mut log);
    assert_eq!(
        lines(&log),
        ["TCP_RETRANSMIT ;;;;fast;;127.0.0.1:5001;127.0.0.1:40000"]
    );
}

#[test]
fn a_connection_is_recorded_over_the_time_since_its_last_change() {
    let (mut tcp, watched) = tcp();
    let mut log = EventLog::default();
    let first = TcpInfoCounters {
        acked_bytes: Some(100),
        mss_bytes: 1_448,
        retransmits: 3,
        ..TcpInfoCounters::default()
    };
    let later = TcpInfoCounters {
        acked_bytes: Some(900),
        retransmits: 5,
        busy_ns: Some(4),
        ..first
    };
    tcp.record_connections(&[socket(watched, 7, first)], 10, &mut log);
    tcp.record_connections(&[socket(watched, 7, first)], 20, &mut log);
    assert!(lines(&log).is_empty(), "it did not change");
    tcp.record_connections(
        &[socket(watched, 7, later), socket(watched, 9, first)],
        30,
        &mut log,
    );
    let pair = "127.0.0.1:5001;127.0.0.1:40000";
    assert_eq!(
        lines(&log),
        [
            format!("TCP_INFO 20;;{pair};0;0;0;2;4;;;;0;;1448;800"),
            format!("TCP_INFO 10;;{pair};0;0;0;3;;;;;0;;1448;100"),
        ],
        "the second was opened in between"
    );
}

#[test]
fn a_connection_whose_reader_is_stuck_is_recorded_each_time_though_nothing_changes() {
    let recorded = |unread: u32| {
        let (mut tcp, watched) = tcp();
        let mut log = EventLog::default();
        let stuck = DiagSocket {
            receive_queue_bytes: unread,
            ..socket(watched, u64::from(unread), TcpInfoCounters::default())
        };
        for at_ns in [10, 20, 30] {
            tcp.record_connections(std::slice::from_ref(&stuck), at_ns, &mut log);
        }
        lines(&log)
    };
    // The first poll of a monitor has no interval before it.
    let row = "TCP_INFO 10;;127.0.0.1:5001;127.0.0.1:40000;0;0;0;0;;;;;5000;;0;";
    assert_eq!(recorded(5_000), [row, row]);
    assert!(
        recorded(1).is_empty(),
        "a peer that closed, which nobody waits for"
    );
}

#[test]
fn ports_added_later_are_watched_from_the_start() {
    let (mut tcp, _) = tcp();
    let late = AddressPair::parse("127.0.0.1:6000", "127.0.0.1:40000");
    let mut log = EventLog::default();
    tcp.events = vec![(
        10,
        event(
            TcpEvent::Reset {
                reason: "received".into(),
            },
            late,
        ),
    )];
    tcp.record_events(&mut log);
    assert!(lines(&log).is_empty());
    tcp.more_ports.lock().unwrap().local.insert(6_000);
    tcp.sample(&mut log).unwrap();
    assert_eq!(
        lines(&log),
        ["TCP_RESET ;;;;received;127.0.0.1:6000;127.0.0.1:40000"]
    );
}

#[test]
fn events_of_other_connections_are_left_out_after_some_samples_and_counted() {
    let (mut tcp, watched) = tcp();
    let mut log = EventLog::default();
    let other = AddressPair::parse("127.0.0.1:9", "127.0.0.1:8");
    tcp.events = (0..=MOST_UNDECIDED as u64)
        .map(|at| (at, event(RETRANSMIT, other)))
        .collect();
    tcp.record_events(&mut log);
    assert_eq!(
        (tcp.undecided.len(), tcp.unwatched),
        (MOST_UNDECIDED, 1),
        "the oldest is left out"
    );
    tcp.events = vec![(
        70_000,
        event(
            TcpEvent::Drop {
                reason: "socket_rcvbuff".into(),
            },
            watched,
        ),
    )];
    (0..MOST_SAMPLES).for_each(|_| tcp.record_events(&mut log));
    assert_eq!(
        (tcp.undecided.len(), tcp.unwatched),
        (0, MOST_UNDECIDED as u64 + 1)
    );
    assert_eq!(
        lines(&log).len(),
        1,
        "the watched one is recorded: {:?}",
        lines(&log)
    );
    let mut observed = Observed::default();
    tcp.finish(&mut log, &mut observed);
    assert!(
        observed.notes[0].ends_with("left out: 65537"),
        "{:?}",
        observed.notes
    );
}

#[test]
fn a_congestion_state_ends_with_its_connection() {
    let (mut tcp, watched) = tcp();
    let mut log = EventLog::default();
    tcp.events = vec![(10, event(TcpEvent::Congestion(LOSS), watched))];
    tcp.record_events(&mut log);
    tcp.record_connections(&[], 5, &mut log);
    assert_eq!(
        tcp.congestion.all(),
        [(watched, 10, LOSS)],
        "it was set after the poll"
    );
    let lossy = TcpInfoCounters {
        congestion_state: LOSS,
        ..TcpInfoCounters::default()
    };
    tcp.record_connections(&[socket(watched, 7, lossy)], 20, &mut log);
    assert_eq!(tcp.congestion.all().len(), 1);
    tcp.events = vec![
        (30, event(TcpEvent::Established, watched)),
        (31, event(RETRANSMIT, watched)),
    ];
    tcp.record_events(&mut log);
    tcp.record_connections(&[], 40, &mut log);
    assert!(tcp.congestion.all().is_empty());
    tcp.retransmissions.record(true, &mut log);
    let last = lines(&log).pop().unwrap();
    assert!(
        last.starts_with("TCP_RETRANSMIT ;;;;probe;"),
        "another connection with the same addresses: {last}"
    );
}
