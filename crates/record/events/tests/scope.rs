//! Events of system calls carry what their thread works for.

use stackline_events::scope::ConnectionStep;
use stackline_events::unit_ids::{EventStreamDirection, Numbering};
use stackline_events::{EventRecorder, EventValue, MemoryEventSink, scope};
use std::io::{Error, ErrorKind};

#[test]
fn a_call_tells_its_unit_stream_and_place() {
    // Nobody records: nothing is counted.
    assert_eq!(scope::sending(5, || Ok::<_, Error>(5)).unwrap(), 5);
    let kept = MemoryEventSink::default();
    let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
    let mut numbering = Numbering::new(3, false);
    let streams = (
        numbering.stream(EventStreamDirection::There),
        numbering.stream(EventStreamDirection::Back),
    );
    let connection = numbering.connect();
    scope::begin_connection(connection, streams);
    scope::begin_byte_count();
    scope::connection_step(|| ConnectionStep::Tcp);
    scope::connection_step(|| ConnectionStep::Tls {
        version: Some("TLSv1_3"),
        handshake: Some("resumed"),
    });
    scope::unit_framed();
    scope::sending(16, || Ok::<_, Error>(16)).unwrap();
    let unit = numbering.next(EventStreamDirection::There);
    scope::work_for(Some(unit));
    scope::unit_framed();
    scope::send_unit(unit, 5);
    scope::sending(32, || Ok::<_, Error>(20)).unwrap();
    // Everything is sent: what is waited for is no window.
    scope::wait_with_room();
    scope::unit_framed();
    scope::unit_framed();
    for _ in 0..3 {
        assert!(scope::receiving(64, || Err(Error::from(ErrorKind::WouldBlock))).is_err());
    }
    scope::receiving(64, || Ok::<_, Error>(40)).unwrap();
    assert_eq!(scope::position(), Some((36, 40)));
    scope::end_byte_count();
    scope::send_unit(unit, 5);
    scope::sending(9, || Ok::<_, Error>(9)).unwrap();
    scope::unit_framed();
    scope::begin_connection(connection, streams);
    scope::sending(9, || Ok::<_, Error>(9)).unwrap();
    assert_eq!((scope::position(), scope::unit()), (None, None));
    assert_eq!(recorder.stop().lost, 0);
    let (of, there, back) = (
        EventValue::from(unit),
        EventValue::from(streams.0),
        EventValue::from(streams.1),
    );
    let none = EventValue::Absent;
    let opens = EventValue::from(connection);
    let (version, handshake) = (EventValue::Text("TLSv1_3"), EventValue::Text("resumed"));
    // What is framed before the thread works for a unit is no unit's, and a unit's frames are reported once.
    let expected = [
        ("TCP_CONNECTED", vec![opens, there, none, none]),
        (
            "TLS_CONNECTED",
            vec![opens, there, none, none, version, handshake],
        ),
        ("SOCK_SEND", vec![none, there, 0.into(), 16.into()]),
        ("SOCK_SENT", vec![none, there, 0.into(), 16.into()]),
        ("SOCK_SEND", vec![of, there, 16.into(), 32.into()]),
        ("SOCK_SENT", vec![of, there, 16.into(), 20.into()]),
        (
            "UNIT_FRAMED",
            vec![of, there, 16.into(), 20.into(), 5.into()],
        ),
        ("SOCK_RECEIVE", vec![of, back, 0.into(), 64.into()]),
        ("SOCK_RECEIVED", vec![of, back, 0.into(), 40.into()]),
        ("SOCK_SEND", vec![of, there, none, 9.into()]),
        ("SOCK_SENT", vec![of, there, none, 9.into()]),
        ("SOCK_SEND", vec![none, there, none, 9.into()]),
        ("SOCK_SENT", vec![none, there, none, 9.into()]),
    ];
    let event_log = kept.event_log();
    let recorded: Vec<_> = event_log
        .records()
        .map(|record| (record.keyword, record.values))
        .collect();
    assert_eq!(recorded, expected);
}
