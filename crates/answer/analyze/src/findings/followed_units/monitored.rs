//! The use of ports (directions of links) and processors over a whole session, from the events of monitors. A session is a run without
//! measurements, whose units are followed through events. Nothing is judged here.

use crate::findings::finding::{Evidence, percent};
use crate::findings::rows::EventRows;
use crate::statistics::to_f64;
use std::collections::{BTreeMap, BTreeSet};

/// The time range of a session, from the first event of a unit to the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionSpan {
    /// Its begin, reference time.
    pub(crate) from_ns: u64,
    /// Its end, reference time.
    pub(crate) to_ns: u64,
}

impl SessionSpan {
    /// The length of the session, ns; at least 1.
    pub(crate) fn length_ns(self) -> f64 {
        to_f64(self.to_ns.saturating_sub(self.from_ns).max(1))
    }
}

/// One port over the whole session.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortSeen {
    /// Its name, from node to node.
    pub(crate) name: String,
    /// Packets (or cells) that left through it.
    pub(crate) packets: u64,
    /// Bytes that left through it.
    pub(crate) bytes: u64,
    /// Packets (or cells) that its queue dropped.
    pub(crate) queue_drops: u64,
    /// Packets (or cells) that the link lost.
    pub(crate) losses: u64,
    /// Frames that were incomplete because a cell of theirs was dropped or lost.
    pub(crate) spoilt: u64,
    /// The share of the session in which the port was transmitting, 0 to 1.
    pub(crate) busy: f64,
    /// Its rate, where it is known.
    pub(crate) rate_bit_s: Option<f64>,
    /// The capacity of its queue, where it is known.
    pub(crate) holds_bytes: Option<u64>,
    /// The size of a cell, if it transmits cells.
    pub(crate) cell_bytes: Option<u64>,
    /// The rows of its events.
    pub(crate) rows: Vec<u32>,
}

/// A host's processor, or all its cores together, over the whole session.
#[derive(Clone, Debug)]
pub(crate) struct ProcessorSeen {
    pub(crate) host: String,
    /// The number of cores seen.
    pub(crate) cores: usize,
    /// The share of the session in which it was not idle, the mean over its cores, 0 to 1.
    pub(crate) busy: f64,
    pub(crate) rows: Vec<u32>,
}

impl ProcessorSeen {
    /// Its name in a sentence: `the processor of vax`, `the 8 cores of here`.
    pub(crate) fn name(&self) -> String {
        if self.cores > 1 {
            format!("the {} cores of {}", self.cores, self.host)
        } else {
            format!("the processor of {}", self.host)
        }
    }

    /// Evidence of how busy it was.
    pub(crate) fn evidence(&self, log: &EventRows<'_>) -> Evidence {
        log.evidence(
            format!("{}: busy {} of the time", self.name(), percent(self.busy)),
            &self.rows,
        )
    }
}

/// Whether the interval of an event belongs to the session. The last interval may end after the session; those before it do not count.
fn is_within(log: &EventRows<'_>, row: u32, span: SessionSpan) -> bool {
    let interval = log.number(row, "interval_ns").unwrap_or(0).unsigned_abs();
    log.at(row) > span.from_ns && log.at(row) <= span.to_ns.saturating_add(2 * interval)
}

/// Sums over the cores of a host.
#[derive(Default)]
struct Cores {
    /// The numbers of the cores seen.
    known: BTreeSet<i64>,
    /// The time in which they were not idle, ns.
    busy: f64,
    /// The time of all their intervals, ns.
    time: f64,
    rows: Vec<u32>,
}

/// The processors that have events in the session.
pub(crate) fn processors(log: &EventRows<'_>, span: SessionSpan) -> Vec<ProcessorSeen> {
    let mut hosts: BTreeMap<&str, Cores> = BTreeMap::new();
    for row in log
        .rows("CPU_USE")
        .iter()
        .copied()
        .filter(|row| is_within(log, *row, span))
    {
        let number = |field: &str| log.number(row, field).map_or(0.0, |figure| figure as f64);
        let cores = hosts.entry(log.host(row)).or_default();
        cores.known.insert(log.number(row, "core").unwrap_or(0));
        cores.busy +=
            number("interval_ns") * (1.0 - (number("idle_ppm") + number("iowait_ppm")) / 1e6);
        cores.time += number("interval_ns");
        cores.rows.push(row);
    }
    // A modelled processor has no events for intervals in which it did nothing: the time is at least the whole session.
    let all = span.length_ns();
    let of = |(
        host,
        Cores {
            known,
            busy,
            time,
            rows,
        },
    ): (&str, Cores)| ProcessorSeen {
        host: host.to_owned(),
        cores: known.len(),
        busy: (busy / f64::max(time, all * known.len() as f64)).min(1.0),
        rows,
    };
    hosts.into_iter().map(of).collect()
}

/// The ports that have events in the session.
pub(crate) fn ports(log: &EventRows<'_>, span: SessionSpan) -> Vec<PortSeen> {
    let mut ports: BTreeMap<&str, (PortSeen, u64, u64)> = BTreeMap::new();
    for row in log
        .rows("PORT_USE")
        .iter()
        .copied()
        .filter(|row| is_within(log, *row, span))
    {
        let Some(name) = log.text(row, "port") else {
            continue;
        };
        let number = |field: &str| log.number(row, field).unwrap_or(0).unsigned_abs();
        let (port, busy, time) = ports.entry(name).or_default();
        port.name = name.to_owned();
        port.packets += number("packets");
        port.bytes += number("bytes");
        port.queue_drops += number("queue_drops");
        port.losses += number("losses");
        port.spoilt += number("spoilt_frames");
        port.rows.push(row);
        *busy += number("busy_ns");
        *time += number("interval_ns");
    }
    for row in log.rows("PORT_SETUP").iter().copied() {
        if let Some((port, ..)) = log.text(row, "port").and_then(|name| ports.get_mut(name)) {
            let number = |field: &str| log.number(row, field).map(i64::unsigned_abs);
            port.rate_bit_s = number("rate_bit_s").map(to_f64);
            port.holds_bytes = number("queue_bytes");
            port.cell_bytes = number("cell_bytes");
        }
    }
    // A port has no events for intervals in which nothing left through it: the time is at least the whole session.
    let span = span.length_ns();
    // A packet is counted when it is certain to leave, which can be one interval earlier: hence the limit to 1.
    let of = |(port, busy, time): (PortSeen, u64, u64)| PortSeen {
        busy: (to_f64(busy) / span.max(to_f64(time))).min(1.0),
        ..port
    };
    ports.into_values().map(of).collect()
}
