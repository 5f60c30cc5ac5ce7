//! Events of system calls carry what their thread works for.

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
    scope::begin_connection(streams);
    scope::begin_byte_count();
    scope::sending(16, || Ok::<_, Error>(16)).unwrap();
    let unit = numbering.next(EventStreamDirection::There);
    scope::work_for(Some(unit));
    scope::sending(32, || Ok::<_, Error>(20)).unwrap();
    for _ in 0..3 {
        assert!(scope::receiving(64, || Err(Error::from(ErrorKind::WouldBlock))).is_err());
    }
    scope::receiving(64, || Ok::<_, Error>(40)).unwrap();
    assert_eq!(scope::position(), Some((36, 40)));
    scope::begin_connection(streams);
    scope::sending(9, || Ok::<_, Error>(9)).unwrap();
    assert_eq!((scope::position(), scope::unit()), (None, None));
    assert_eq!(recorder.stop().lost, 0);
    let (of, there, back) = (
        EventValue::from(unit),
        EventValue::from(streams.0),
        EventValue::from(streams.1),
    );
    let none = EventValue::Absent;
    let expected = [
        ("SOCK_SEND", [none, there, 0.into(), 16.into()]),
        ("SOCK_SENT", [none, there, 0.into(), 16.into()]),
        ("SOCK_SEND", [of, there, 16.into(), 32.into()]),
        ("SOCK_SENT", [of, there, 16.into(), 20.into()]),
        ("SOCK_RECEIVE", [of, back, 0.into(), 64.into()]),
        ("SOCK_RECEIVED", [of, back, 0.into(), 40.into()]),
        ("SOCK_SEND", [none, there, none, 9.into()]),
        ("SOCK_SENT", [none, there, none, 9.into()]),
    ];
    let event_log = kept.event_log();
    let recorded: Vec<_> = event_log
        .records()
        .map(|record| (record.keyword, record.values))
        .collect();
    assert_eq!(
        recorded,
        expected.map(|(keyword, values)| (keyword, values.to_vec()))
    );
}
