//! Events of a kept run, and what stands in them.

use stackline_core::trace_index::Index;
use stackline_events::text::TextEvent;
use std::path::Path;

fn read(run: &Path) -> Vec<TextEvent> {
    let table = stackline_runs::events::read_run(run).unwrap();
    (0..table.len()).map(|row| table.event(row)).collect()
}

/// The events of a run, in the order of their own hosts' times.
pub(crate) fn events(run: &Path) -> Vec<TextEvent> {
    let mut events = read(run);
    events.sort_by_key(|event| event.at_ns);
    events
}

/// Index and events of a run, in reference time and its order.
pub(crate) fn referred(run: &Path) -> (Index, Vec<TextEvent>) {
    let index = stackline_runs::events::read_index(run).unwrap().unwrap();
    let mut events = read(run);
    for event in &mut events {
        let clock = index.hosts.get(&event.host).map(|host| &host.clock);
        event.at_ns = clock.map_or(event.at_ns, |clock| clock.reference_ns(event.at_ns));
    }
    events.sort_by_key(|event| event.at_ns);
    (index, events)
}

/// The events of one file of a run, in the text form.
pub(crate) fn lines(file: &Path) -> Vec<String> {
    let table = stackline_runs::events::read_table(file).unwrap();
    (0..table.len())
        .map(|row| table.event(row).to_string())
        .collect()
}

/// A number among the data of an event.
pub(crate) fn field(event: &TextEvent, name: &str) -> Option<i64> {
    let place = stackline_events::catalogue::find(&event.keyword)?.field(name)?;
    event.data.get(place)?.parse().ok()
}

/// The bytes of a stream, from and to, that an event is about.
pub(crate) fn range(event: &TextEvent) -> Option<(i64, i64)> {
    let offset = field(event, "offset")?;
    Some((offset, offset + field(event, "bytes")?))
}
