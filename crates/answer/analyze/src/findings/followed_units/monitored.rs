//! What monitors saw of ports and processors over all of a session. It judges nothing.

use crate::findings::finding::{Evidence, percent};
use crate::findings::rows::EventRows;
use crate::statistics::to_f64;
use std::collections::{BTreeMap, BTreeSet};

/// From when to when a session was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionSpan {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl SessionSpan {
    /// How long it was, ns; at least 1.
    pub(crate) fn length_ns(self) -> f64 {
        to_f64(self.to_ns.saturating_sub(self.from_ns).max(1))
    }
}

/// One port over all of the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortSeen {
    pub(crate) name: String,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) queue_drops: u64,
    pub(crate) losses: u64,
    pub(crate) spoilt: u64,
    /// Share of the time that its rate was spent.
    pub(crate) busy: f64,
    pub(crate) rate_bit_s: Option<f64>,
    pub(crate) holds_bytes: Option<u64>,
    pub(crate) cell_bytes: Option<u64>,
    pub(crate) rows: Vec<u32>,
}

/// A host's processor, or all its cores together, over all of the session.
#[derive(Clone, Debug)]
pub(crate) struct ProcessorSeen {
    pub(crate) host: String,
    pub(crate) cores: usize,
    /// Share of the time that it was not idle.
    pub(crate) busy: f64,
    pub(crate) rows: Vec<u32>,
}

impl ProcessorSeen {
    /// `the processor of vax`, `the 8 cores of here`.
    pub(crate) fn name(&self) -> String {
        if self.cores > 1 {
            format!("the {} cores of {}", self.cores, self.host)
        } else {
            format!("the processor of {}", self.host)
        }
    }

    pub(crate) fn evidence(&self, log: &EventRows<'_>) -> Evidence {
        log.evidence(
            format!("{}: busy {} of the time", self.name(), percent(self.busy)),
            &self.rows,
        )
    }
}

/// Whether an interval is of the session: what was before it is not.
fn is_within(log: &EventRows<'_>, row: u32, span: SessionSpan) -> bool {
    let interval = log.number(row, "interval_ns").unwrap_or(0).unsigned_abs();
    log.at(row) > span.from_ns && log.at(row) <= span.to_ns.saturating_add(2 * interval)
}

/// What was added up of a host's cores, ns.
#[derive(Default)]
struct Cores {
    known: BTreeSet<i64>,
    busy: f64,
    time: f64,
    rows: Vec<u32>,
}

/// Processors that did anything.
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
    // Of intervals in which a modelled processor did nothing there are no events.
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

/// Ports through which something went.
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
    // Of intervals in which nothing went through it there are no events.
    let span = span.length_ns();
    // What leaves is counted when it is certain to leave, which can be an interval before.
    let of = |(port, busy, time): (PortSeen, u64, u64)| PortSeen {
        busy: (to_f64(busy) / span.max(to_f64(time))).min(1.0),
        ..port
    };
    ports.into_values().map(of).collect()
}
