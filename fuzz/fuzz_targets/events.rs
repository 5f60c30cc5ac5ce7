//! Any bytes as a tape and as lines of the text form: nothing is read twice or beyond the end, and what was read is read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_events::text::{EventTextReader, line};
use stackline_events::traceparent::Traceparent;
use stackline_events::{EventLog, event_log};

fuzz_target!(|bytes: &[u8]| {
    let read = EventLog::from_bytes(bytes.to_vec());
    let mut count = 0;
    read.each(&mut event_log::EventLogNames::default(), |_, _, _, _| {
        count += 1
    });
    assert_eq!(read.records().count(), count);
    assert!(count <= bytes.len() / 16);
    if let Ok(Some(whole)) = event_log::measure_whole_records(bytes) {
        assert!(whole <= bytes.len() as u64);
    }
    for record in read
        .records()
        .filter(|record| !record.keyword.is_empty() && !record.host.is_empty())
    {
        let text = line(record.keyword, record.host, record.at_ns, &record.values);
        let event: stackline_events::TextEvent =
            text.parse().expect("a line that was written is read");
        assert_eq!((event.to_string(), event.at_ns), (text, record.at_ns));
    }
    for event in EventTextReader::new(bytes, "fuzz").flatten() {
        assert_eq!(event.to_string().parse(), Ok(event));
    }
    if let Some(parent) = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse::<Traceparent>().ok())
    {
        assert_eq!(
            parent
                .to_string()
                .parse::<Traceparent>()
                .map(|again| again.unit()),
            Ok(parent.unit())
        );
    }
});
