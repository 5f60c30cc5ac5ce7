//! Polls the port counters of switches by SNMP: IF-MIB's 64-bit counters of each port (RFC 2863), with GETBULK over v2c or v3.
//!
//! A switch may answer late, and updates its counters when it likes. Therefore each switch has a thread of its own, and a port is
//! recorded when its counters have changed, over the interval since their previous change.

use crate::clock::thread_cpu_s;
use crate::event_buffer::EventBuffer;
use crate::monitors::sample::growths;
use crate::snmp::{Binding, ObjectValue, SnmpSwitch, bulk, open, retry};
use snmp2::SyncSession;
use stackline_events::catalogue::rows::SwitchPort;
use stackline_events::{EventLog, EventValue, clock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time that a poll may go on after the watch ends, and that the last poll takes.
const LAST: Duration = Duration::from_secs(1);
/// The most ports of a switch that are recorded.
const MOST_PORTS: usize = 4_096;
/// The object `ifName`: the name of a port.
const NAME: [u64; 11] = [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1];
/// The objects of 64-bit counters (ifXTable), each with the index of the field of `SWITCH_PORT` to which it is added.
const COLUMNS: [([u64; 11], usize); 8] = [
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6], 0),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 8], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 9], 1),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10], 4),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11], 5),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 12], 5),
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 13], 5),
];
/// The objects of 32-bit counters (ifTable): discards and errors, with the index of their field.
const OLDER: [([u64; 10], usize); 4] = [
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 13], 2),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 14], 3),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 19], 6),
    ([1, 3, 6, 1, 2, 1, 2, 2, 1, 20], 7),
];

/// A thread that polls a switch until `stop` is set.
#[derive(Debug)]
pub(crate) struct Poller {
    /// The entry of [`crate::Observed::absent`] for this switch.
    pub(crate) name: String,
    thread: JoinHandle<(f64, Option<String>)>,
}

impl Poller {
    /// Starts the thread.
    pub(crate) fn start(
        switch: SnmpSwitch,
        interval: Duration,
        buffer: Arc<EventBuffer>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let name = format!("switch {}", switch.address);
        let work = move || {
            let end =
                open(&switch).and_then(|mut session| poll(&mut session, interval, &buffer, &stop));
            (thread_cpu_s(), end.err())
        };
        let thread = std::thread::Builder::new()
            .name("switch".into())
            .spawn(work);
        thread
            .map(|thread| Self { name, thread })
            .map_err(|error| error.to_string())
    }

    /// Waits for the thread's end, after `stop` was set. Returns the CPU seconds it used, and why it ended early, if it did.
    pub(crate) fn finish(self) -> (f64, Option<String>) {
        self.thread.thread().unpark();
        self.thread
            .join()
            .unwrap_or_else(|_| (0.0, Some("its replies are not valid SNMP".into())))
    }
}

/// Polls a switch every interval, and once more after `stop` is set.
fn poll(
    session: &mut SyncSession,
    interval: Duration,
    buffer: &EventBuffer,
    stop: &AtomicBool,
) -> Result<(), String> {
    let mut ports = RecordedSwitchPorts::default();
    loop {
        let began = Instant::now();
        // Read before the poll, so that the last one begins after the stop.
        let last = stop.load(Ordering::Acquire);
        let rows = walk(|columns| {
            if stop.load(Ordering::Acquire) && began.elapsed() > LAST {
                return Err(
                    "it was still replying when the watch ended: its last interval is missing"
                        .into(),
                );
            }
            retry(|| bulk(session, columns))
        })?;
        let at_ns = clock::now_ns();
        buffer.add(|log| ports.record(at_ns, rows, log));
        if last {
            return Ok(());
        }
        // The owner unparks this thread when `stop` is set.
        while began.elapsed() < interval && !stop.load(Ordering::Acquire) {
            std::thread::park_timeout(interval.saturating_sub(began.elapsed()));
        }
    }
}

/// The name and counters of one port, by the fields of `SWITCH_PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SwitchPortRow {
    name: Option<String>,
    counts: [Option<u64>; 8],
}

/// Reads all columns to their ends; `request` returns several rows behind each of the names it is given. The result has the port's
/// index as key.
fn walk(
    mut request: impl FnMut(&[Vec<u64>]) -> Result<Vec<Binding>, String>,
) -> Result<BTreeMap<u64, SwitchPortRow>, String> {
    let columns: Vec<(Vec<u64>, Option<usize>)> = std::iter::once((NAME.to_vec(), None))
        .chain(
            COLUMNS
                .iter()
                .map(|(column, field)| (column.to_vec(), Some(*field))),
        )
        .chain(
            OLDER
                .iter()
                .map(|(column, field)| (column.to_vec(), Some(*field))),
        )
        .collect();
    let mut rows: BTreeMap<u64, SwitchPortRow> = BTreeMap::new();
    let mut at: Vec<Vec<u64>> = columns.iter().map(|(column, _)| column.clone()).collect();
    // The loop is bounded, as a faulty switch may repeat itself.
    for _ in 0..MOST_PORTS {
        let mut advanced = false;
        for (name, value) in request(&at)? {
            let Some(which) = columns
                .iter()
                .position(|(column, _)| name.len() == column.len() + 1 && name.starts_with(column))
            else {
                continue;
            };
            if name <= at[which] || rows.len() >= MOST_PORTS {
                continue;
            }
            let row = rows.entry(name[name.len() - 1]).or_default();
            match (value, columns[which].1) {
                (ObjectValue::Number(number), Some(field)) => {
                    let count = row.counts[field].get_or_insert(0);
                    *count = count.wrapping_add(number);
                }
                (ObjectValue::Name(name), None) => {
                    row.name = Some(name).filter(|name| !name.is_empty())
                }
                _ => {}
            }
            at[which] = name;
            advanced = true;
        }
        if !advanced {
            break;
        }
    }
    if rows.is_empty() {
        Err("it has no interfaces (IF-MIB)".into())
    } else {
        Ok(rows)
    }
}

/// The ports as they were last recorded, by index, with when their counters last changed, ns.
#[derive(Default)]
struct RecordedSwitchPorts(BTreeMap<u64, (u64, SwitchPortRow)>);

impl RecordedSwitchPorts {
    /// Records the ports that changed.
    fn record(&mut self, at_ns: u64, rows: BTreeMap<u64, SwitchPortRow>, log: &mut EventLog) {
        for (index, row) in rows {
            match self.0.get(&index) {
                Some((_, before)) if *before == row => continue,
                Some((before_ns, before)) if before.name == row.name => {
                    let name = row.name.clone().unwrap_or_else(|| index.to_string());
                    let [
                        in_bytes,
                        in_packets,
                        in_discards,
                        in_errors,
                        out_bytes,
                        out_packets,
                        out_discards,
                        out_errors,
                    ] = growths(&before.counts, &row.counts);
                    SwitchPort {
                        interval_ns: at_ns.saturating_sub(*before_ns).into(),
                        port: EventValue::Text(&name),
                        in_bytes,
                        in_packets,
                        in_discards,
                        in_errors,
                        out_bytes,
                        out_packets,
                        out_discards,
                        out_errors,
                    }
                    .write(log, at_ns);
                }
                // It is the first sample of a port, or another port has taken the index.
                _ => {}
            }
            self.0.insert(index, (at_ns, row));
        }
    }
}

#[cfg(test)]
mod tests;
