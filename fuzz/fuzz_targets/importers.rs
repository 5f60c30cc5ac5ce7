//! Any bytes as a file of another tool: what is read is whole events, what is not is counted, nothing is read for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_events::EventTable;
use stackline_exchange::capture::{
    CaptureEventReader, CapturePlan, CaptureReadOptions, StreamRegistry, Survey,
};
use stackline_exchange::{access, jaeger, netlogger, otlp, qlog};
use std::collections::BTreeMap;

/// Every event can be written as a line and read again.
fn whole(table: &EventTable) {
    for row in 0..table.len() {
        let event = table.event(row);
        if !event.keyword.is_empty() && !event.host.is_empty() {
            assert_eq!(event.to_string().parse(), Ok(event));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    for contents in [false, true] {
        let all = [
            otlp::read(bytes, contents),
            jaeger::read(bytes, contents),
            qlog::read(bytes, None, contents).map(|log| {
                whole(&log.requests(contents));
                log.imported
            }),
        ];
        for read in all.into_iter().flatten() {
            whole(&read.table);
            assert!(read.mistakes.first.len() as u64 <= read.mistakes.count);
        }
    }
    for form in [netlogger::NetLoggerForm::Ulm, netlogger::NetLoggerForm::Bp] {
        whole(&netlogger::read(bytes, form, false).table);
    }
    let _ = netlogger::recognise(bytes);
    let _ = access::read(bytes);
    if let Ok(survey) = Survey::read(bytes, "a", None) {
        let plan = CapturePlan::from_surveys(&[survey], &BTreeMap::new());
        let known = StreamRegistry::new(BTreeMap::new(), 0);
        if let Ok(mut reader) = CaptureEventReader::open(
            vec![Box::new(bytes)],
            &plan,
            known,
            CaptureReadOptions::default(),
        ) {
            while let Some(tables) = reader.next_batch() {
                tables.for_each(whole);
            }
            let _ = reader.finish();
        }
    }
});
