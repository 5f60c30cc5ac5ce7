//! Events that say data was retransmitted, dropped or given up but that are on no lifeline: their bytes are not known, or a monitor
//! only counted them.

use crate::lifelines::Lifelines;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::BTreeMap;

/// The keyword of NetLogger's monitor of retransmitted segments. Its value is a running count, or the count since the event before.
const COUNTED: &str = "NETSTAT_RETRANSSEGS";

/// All such events in the order of time: reference time in ns, and what became of the data.
#[must_use]
pub fn find_data_fates(
    events: &EventTable,
    index: &Index,
    lifelines: &Lifelines,
) -> Vec<(u64, DataFate)> {
    let mut on_lines = vec![false; events.len()];
    for passage in lifelines.passages.iter().chain(&lifelines.marks) {
        if let Some(on) = on_lines.get_mut(passage.row as usize) {
            *on = true;
        }
    }
    let at_ns = |row: usize| {
        let clock = index.hosts.get(events.host(row)).map(|host| &host.clock);
        clock.map_or(events.at_ns[row], |clock| {
            clock.reference_ns(events.at_ns[row])
        })
    };
    let fates: Vec<Option<DataFate>> = (0..events.names.len() as u32)
        .map(|name| fate(events.names.text(name)))
        .collect();
    let loose = (0..events.len()).filter(|row| !on_lines[*row]);
    let mut found: Vec<(u64, DataFate)> = loose
        .filter_map(|row| Some((at_ns(row), fates[events.keyword[row] as usize]?)))
        .collect();
    found.extend(
        counted(events)
            .into_iter()
            .map(|row| (at_ns(row), DataFate::SentAgain)),
    );
    found.sort_by_key(|(at_ns, _)| *at_ns);
    found
}

/// Rows of the monitor whose count says that segments were retransmitted. Values that never fall are taken for a running count.
fn counted(events: &EventTable) -> Vec<usize> {
    let keyword = events.names.find(COUNTED);
    let mut hosts: BTreeMap<u32, Vec<(usize, i64)>> = BTreeMap::new();
    for row in (0..events.len()).filter(|row| Some(events.keyword[*row]) == keyword) {
        if let Some(count) = events.number(row, 0) {
            hosts
                .entry(events.host[row])
                .or_default()
                .push((row, count));
        }
    }
    let mut rows = Vec::new();
    for mut series in hosts.into_values() {
        series.sort_by_key(|(row, _)| events.at_ns[*row]);
        let is_counter = series.is_sorted_by_key(|(_, count)| *count);
        let rises = series
            .windows(2)
            .filter(|pair| pair[1].1 > pair[0].1)
            .map(|pair| pair[1].0);
        match is_counter {
            true => rows.extend(rises),
            // Each value is the count since the event before.
            false => rows.extend(
                series
                    .iter()
                    .filter(|(_, count)| *count > 0)
                    .map(|(row, _)| *row),
            ),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use stackline_events::EventValue;

    fn times(events: &EventTable) -> Vec<u64> {
        let lines = lifelines(events, None, &LifelineOptions::default());
        find_data_fates(events, &Index::default(), &lines)
            .into_iter()
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn a_count_that_rises_and_counts_since_the_last_are_both_read() {
        for (counts, expected) in [
            ([7, 7, 9, 12], vec![2, 3]),
            ([0, 3, 0, 2], vec![1, 3]),
            ([5, 5, 5, 5], vec![]),
        ] {
            let mut events = EventTable::default();
            for (at, count) in counts.into_iter().enumerate() {
                events.push(COUNTED, "khons", at as u64, &[EventValue::Number(count)]);
            }
            assert_eq!(times(&events), expected, "{counts:?}");
        }
    }

    #[test]
    fn what_names_a_unit_is_on_its_line() {
        let mut events = EventTable::default();
        events.push("APP_SEND", "khons", 1, &[EventValue::Number(1)]);
        events.push("TCP_RETRANSMIT", "khons", 2, &[EventValue::Number(1)]);
        events.push("TCP_RETRANSMIT", "khons", 3, &[]);
        events.push("RTP_DROP", "khons", 4, &[]);
        assert_eq!(times(&events), [3, 4]);
    }
}
