//! Datagrams of any program that a modelled network dropped: of which flow, where, and how much arrived there.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::path::on_the_link;
use crate::findings::packets::{PacketEventFields, read_port_name};
use crate::findings::requests::network::flow_name;
use crate::statistics::to_f64;
use stackline_core::units;
use std::collections::BTreeMap;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_datagram_loss",
    meaning: "in traced flows of datagrams: a link or its queue drops at least 0.1 % of them",
    find: &[Find::Run(find)],
};

/// Smaller shares, and fewer datagrams, are not worth a finding.
const LEAST: f64 = 0.001;
const FEWEST: u64 = 3;

/// Datagrams of one flow and direction that one place dropped for one reason.
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
        let Some(stream) = stream_of_datagram(log, row) else {
            continue;
        };
        let reason = log.text(row, "reason").unwrap_or_default();
        let place = read_port_name(log, row, fields);
        let here = dropped.entry((stream, place, reason)).or_default();
        here.count += segments(log, row);
        here.rows.push(row);
    }
    let ((stream, place, reason), here) = dropped.iter().max_by_key(|(_, here)| here.count)?;
    let delivered = log.rows("NET_DELIVER").iter().copied();
    let delivered = delivered.filter(|row| stream_of_datagram(log, *row) == Some(*stream));
    let delivered: u64 = delivered.map(|row| segments(log, row)).sum();
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
    let evidence = log.evidence(
        format!(
            "{} dropped at {place}: {reason}",
            units::counted(here.count, "datagram")
        ),
        &here.rows,
    );
    if on_the_link(reason) {
        let damaged = match reason {
            &"lost on the link" => String::new(),
            _ => format!(": {reason}"),
        };
        let sentence = format!("the link {place} loses {of}{damaged}");
        let found = KIND.of_run(share, 0.9, sentence).because(evidence);
        return Some(found.attempt("find out what disturbs the link, or add redundancy (forward error correction) or retransmission"));
    }
    let load = PortLoad::of(log, place, fields);
    let too_much = load.as_ref().filter(|load| load.arrives > load.carries);
    let why = too_much.map_or_else(String::new, |load| {
        format!(
            "; {} arrives there, and the link carries {}",
            units::format_rate(load.arrives),
            units::format_rate(load.carries)
        )
    });
    let sentence = format!("the queue before {place} drops {of}: {reason}{why}");
    let found = KIND.of_run(share, 0.9, sentence).because(evidence);
    Some(found.attempt(match too_much {
        Some(_) => "send less than the link carries, or use a faster path",
        None => "send evenly instead of in bursts, or enlarge that queue",
    }))
}

/// The stream of a datagram: data without a position in it. Data of TCP has one.
fn stream_of_datagram(log: &FindingEventLog<'_>, row: u32) -> Option<i64> {
    let has_data = log.number(row, "bytes").is_some_and(|bytes| bytes > 0);
    let stream = log.number(row, "stream")?;
    (has_data && log.number(row, "offset").is_none()).then_some(stream)
}

fn segments(log: &FindingEventLog<'_>, row: u32) -> u64 {
    log.number(row, "segments")
        .map_or(1, |count| count.max(1).unsigned_abs())
}

/// What arrives at a port while anything does, and what its link carries, bit/s.
struct PortLoad {
    arrives: f64,
    carries: f64,
}

impl PortLoad {
    fn of(log: &FindingEventLog<'_>, place: &str, fields: PacketEventFields) -> Option<Self> {
        let mut setups = log.rows("PORT_SETUP").iter().copied();
        let setup = setups.find(|row| log.text(*row, "port") == Some(place))?;
        let carries = log.number(setup, "rate_bit_s").filter(|rate| *rate > 0)?;
        let (mut bytes, mut from_ns, mut to_ns) = (0, u64::MAX, 0);
        for keyword in ["NET_ENQUEUE", "NET_DROP"] {
            let rows = log.rows(keyword).iter().copied();
            for row in rows.filter(|row| read_port_name(log, *row, fields) == place) {
                bytes += log.number(row, "length").unwrap_or(0).max(0);
                from_ns = from_ns.min(log.at(row));
                to_ns = to_ns.max(log.at(row));
            }
        }
        let seconds = to_f64(to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)?) / 1e9;
        Some(Self {
            arrives: 8.0 * bytes as f64 / seconds,
            carries: carries as f64,
        })
    }
}
