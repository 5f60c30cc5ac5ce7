//! Observed datagram loss: datagrams of any program that an emulated network dropped, with their flow, place and reason.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::path::{is_secondary_drop, on_the_link};
use crate::findings::packets::{PacketEventFields, datagram_stream, read_port_name};
use crate::findings::requests::network::flow_name;
use crate::findings::requests::path_rates::port_rates;
use crate::statistics::to_f64;
use stackline_core::units;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_datagram_loss",
    meaning: "in traced flows of datagrams: the network drops at least 0.1 % of them in one place",
    find: &[Find::Run(find)],
};

/// The least share of a flow's datagrams that one place must drop for a finding.
const LEAST: f64 = 0.001;
/// The least number of datagrams for a finding.
const FEWEST: u64 = 3;
/// The rates of a flow and of a link are measured in the periods of this length in which the flow lost datagrams, ns.
const PERIOD_NS: u64 = 100_000_000;
/// A link that carries at least this fraction of its rate is full.
const FULL: f64 = 0.8;
/// A flow that sends at least this fraction of what a link carries fills it by itself.
const MOSTLY: f64 = 0.5;
/// How the reasons of drops by queues begin.
const OF_QUEUES: [&str; 7] = [
    "queue full",
    "switch buffer full",
    "displaced",
    "RED",
    "CoDel",
    "PIE",
    "DualPI2",
];

/// The datagrams of one flow in one direction that one place dropped for one reason.
#[derive(Default)]
struct DroppedDatagrams {
    count: u64,
    rows: Vec<u32>,
}

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !log.input.plan.measurements.is_empty() {
        return None;
    }
    let fields = PacketEventFields::new()?;
    let mut dropped: BTreeMap<(i64, &str, &str), DroppedDatagrams> = BTreeMap::new();
    for row in log.rows("NET_DROP").iter().copied() {
        let reason = log.text(row, "reason").unwrap_or_default();
        if let Some(stream) = datagram_stream(log, row, fields)
            && !is_secondary_drop(reason)
        {
            let place = read_port_name(log, row, fields);
            let here = dropped.entry((stream, place, reason)).or_default();
            here.count += segments(log, row, fields);
            here.rows.push(row);
        }
    }
    let ((stream, place, reason), here) = dropped.iter().max_by_key(|(_, here)| here.count)?;
    let delivered = log.rows("NET_DELIVER").iter().copied();
    let delivered = delivered.filter(|row| datagram_stream(log, *row, fields) == Some(*stream));
    let delivered: u64 = delivered.map(|row| segments(log, row, fields)).sum();
    let of_flow = dropped.iter().filter(|((of, ..), _)| of == stream);
    let sent = delivered + of_flow.map(|(_, here)| here.count).sum::<u64>();
    let share = to_f64(here.count) / to_f64(sent.max(1));
    if here.count < FEWEST || share < LEAST {
        return None;
    }
    let flow = flow_name(log, *stream).unwrap_or_else(|| "one flow".to_owned());
    let of = format!(
        "{} of {sent} datagrams ({}) of {flow}",
        here.count,
        percent(share)
    );
    let (sentence, attempt) = if on_the_link(reason) {
        (
            format!("the link {place} loses {of}: {reason}"),
            "find out what disturbs the link, or add redundancy or retransmission",
        )
    } else if OF_QUEUES.iter().any(|begins| reason.starts_with(begins)) {
        let load = PortLoad::from_log(log, *stream, place, &here.rows, fields);
        (
            format!(
                "the queue before {place} drops {of}: {reason}{}",
                load.words()
            ),
            load.attempt(),
        )
    } else if *reason == "larger than the MTU" {
        (
            format!("{place} drops {of}: {reason}"),
            "send smaller datagrams",
        )
    } else {
        (
            format!("{place} drops {of}: {reason}"),
            "find out why datagrams are dropped there",
        )
    };
    let evidence = log.evidence(
        format!(
            "{} dropped at {place}: {reason}",
            units::counted(here.count, "datagram")
        ),
        &here.rows,
    );
    let found = KIND.of_run(share, 0.9, sentence).because(evidence);
    Some(found.attempt(attempt))
}

/// The number of datagrams in the packet of an event: one, unless several are sent as one (segmentation offload).
fn segments(log: &FindingEventLog<'_>, row: u32, fields: PacketEventFields) -> u64 {
    let count = log.input.events.number(row as usize, fields.segments);
    count.map_or(1, |count| count.max(1).unsigned_abs())
}

/// The rates of a flow and of a link in the periods in which the flow loses datagrams, bit/s.
struct PortLoad {
    /// The rate at which the flow sends.
    own: f64,
    /// The rate that the link carries of all flows.
    carried: f64,
    /// The rate of the link, where it is known.
    rate: Option<f64>,
}

impl PortLoad {
    fn from_log(
        log: &FindingEventLog<'_>,
        stream: i64,
        place: &str,
        drops: &[u32],
        fields: PacketEventFields,
    ) -> Self {
        let period = |row: &u32| log.at(*row) / PERIOD_NS;
        let periods: BTreeSet<u64> = drops.iter().map(period).collect();
        let length = |row: &u32| {
            let bytes = log.input.events.number(*row as usize, fields.length);
            bytes.unwrap_or(0).max(0).unsigned_abs()
        };
        let sum = |keyword: &str, counts: &dyn Fn(u32) -> bool| -> u64 {
            let rows = log.rows(keyword).iter();
            let rows = rows.filter(|row| periods.contains(&period(row)) && counts(**row));
            rows.map(length).sum()
        };
        let is_own = |row| datagram_stream(log, row, fields) == Some(stream);
        let own = sum("NET_DROP", &is_own) + sum("NET_DELIVER", &is_own);
        let carried = sum("NET_DEQUEUE", &|row| {
            read_port_name(log, row, fields) == place
        });
        let seconds = to_f64(periods.len().max(1) as u64 * PERIOD_NS) / 1e9;
        Self {
            own: 8.0 * to_f64(own) / seconds,
            carried: 8.0 * to_f64(carried) / seconds,
            rate: port_rates(log).get(place).copied(),
        }
    }

    /// Whether the link is full; `None` if its rate is not known.
    fn is_full(&self) -> Option<bool> {
        self.rate.map(|rate| self.carried >= FULL * rate)
    }

    fn words(&self) -> String {
        if self.is_full() != Some(true) {
            return String::new();
        }
        format!(
            "; meanwhile the flow sends {}, and the link carries {} in all",
            units::format_rate(self.own),
            units::format_rate(self.carried)
        )
    }

    fn attempt(&self) -> &'static str {
        match self.is_full() {
            Some(true) if self.own >= MOSTLY * self.carried => {
                "send less than the link carries, or use a faster path"
            }
            Some(true) => {
                "reduce the other traffic there, or keep it apart with a queue for each flow (fq_codel)"
            }
            Some(false) => "send evenly instead of in bursts, or enlarge that queue",
            None => "send less, send more evenly, enlarge that queue, or use a faster path",
        }
    }
}
