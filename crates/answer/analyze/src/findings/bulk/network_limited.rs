//! Network-limited: a link is full, transmitting takes most of the time of calls, or other traffic is in the way.

use crate::findings::change::{LinkEnds, PlanChange};
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Evidence, Finding, LEAST, counted, percent};
use crate::findings::followed_units::between;
use crate::findings::followed_units::left_over;
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::measured::path::{self, FULL, PathPort};
use crate::statistics::to_f64;
use stackline_core::procedure::PairSide;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "network_limited",
    meaning: "a link is busy at least 90 % of the time, transmitting the data of calls takes at least 40 % of their time, or other traffic takes at least 15 % of the time",
    find: &[Find::Run(in_session), Find::Measurement(find)],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    between::network_limited(&KIND, log)
        .or_else(|| network::network_limited(&KIND, log))
        .or_else(|| left_over::network_limited(&KIND, log))
}

/// If transmitting their own data takes at least this share of response times, the link limits calls; less is normal for any path.
const MOST: f64 = 0.4;
/// Other traffic is a finding if it takes at least this share of the time.
const PART: f64 = 0.15;

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    full(context)
        .or_else(|| sending(context))
        .or_else(|| others(context))
}

/// The finding about a link that is full.
fn full(context: &FindingContext<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let port = measurement.fullest()?;
    let busy = measurement.busy(port);
    // Of a link and a processor in a row, the one that is busier limits.
    let slower = context
        .processors
        .iter()
        .any(|processor| processor.share > busy);
    if busy < FULL || (slower && !measurement.has_calls_or_connects()) {
        return None;
    }
    let calls = measurement
        .parts
        .iter()
        .any(|part| part.work == PartWorkload::Calls);
    let finding = if calls {
        full_for_calls(context, port, busy)?
    } else {
        full_for_streams(context, port, busy)
    };
    // What runs alone has no other traffic to blame.
    let alone = measurement.plan.parts.len() == 1;
    Some(if alone {
        finding
    } else {
        finding.attempt_by(ELSEWHERE, PlanChange::NoLoad)
    })
}

/// The finding about calls that wait for a full link.
fn full_for_calls(context: &FindingContext<'_>, port: &PathPort, busy: f64) -> Option<Finding> {
    let share = waiting(context);
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "the link {} ({}) is full {} of the time: {} of the response time is spent waiting for it",
        port.name,
        port.rate(),
        percent(busy),
        percent(share)
    );
    let finding = KIND
        .finding(context, share, 0.95, sentence)
        .because(carried(&context.measurement, port))
        .attempt_by_unless(
            context.has_imps(),
            shorter_queue(port),
            PlanChange::FairQueue(port.hop.ends.clone()),
        );
    Some(finding.attempt_by(faster_link(port), faster(std::iter::once(port))))
}

/// The finding about streams that fill one link, or several about equally.
fn full_for_streams(context: &FindingContext<'_>, port: &PathPort, busy: f64) -> Finding {
    let measurement = &context.measurement;
    let mut sentence = format!(
        "the link {} is full: {} of {} is used, by {}",
        port.name,
        percent(busy),
        port.rate(),
        match port.streams {
            0 => "acknowledgements".to_owned(),
            streams => counted(u64::from(streams), "stream"),
        }
    );
    let equal: Vec<&str> = measurement
        .fullest_ports()
        .skip(1)
        .map(|port| port.name.as_str())
        .collect();
    let mut advice = faster_link(port);
    if !equal.is_empty() {
        let equal = equal.join(", ");
        sentence += &format!("; equally full: {equal}");
        advice = format!(
            "faster links {}, {equal} (all of them), or fewer bytes",
            port.name
        );
    }
    KIND.finding(context, busy, 0.95, sentence)
        .because(carried(measurement, port))
        .attempt_by(advice, faster(measurement.fullest_ports()))
}

const ELSEWHERE: &str = "move other traffic to another time, or to another path";

/// The finding about other traffic on a link that is not full all the time, but that a transfer would use.
fn others(context: &FindingContext<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let [part] = measurement.parts.as_slice() else {
        return None;
    };
    let port = measurement.fullest()?;
    let busy = measurement.busy(port);
    let others = busy - measurement.own_use(part);
    let loaded = measurement.plan.parts.iter().any(|part| part.background);
    if !loaded || others < PART {
        return None;
    }
    if part.work == PartWorkload::Calls {
        return behind_others(context, port, others);
    }
    let sentence = format!(
        "other traffic uses the link {} ({}) {}, and the measured traffic {}",
        port.name,
        port.rate(),
        part.of_its_time(others),
        percent(busy - others)
    );
    let finding = KIND
        .finding(context, others, 0.8, sentence)
        .because(carried(measurement, port));
    let advice =
        "move other traffic to another time, another path, or a separate queue (`queue fq_codel`)";
    Some(finding.attempt_by(advice, PlanChange::NoLoad))
}

/// Data of calls occupies a link for at most this many times as long as the calls took (more than 1, as several may be in flight at once).
const WITHIN_CALLS: f64 = 1.5;

/// The finding about calls or turns made one after another whose data takes long to transmit: the link is idle between them, but each
/// waits for it, in both directions.
fn sending(context: &FindingContext<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let [part] = measurement.parts.as_slice() else {
        return None;
    };
    let port = measurement.fullest()?;
    let (own, bytes) = own_sending(measurement, part, port)?;
    // If transmitting takes longer than all calls, the procedure moves other data too.
    if own > WITHIN_CALLS {
        return None;
    }
    // What goes the other way over the same link is sent while nothing comes back.
    let (back, back_bytes) = opposite_port(measurement, port)
        .and_then(|back| own_sending(measurement, part, back))
        .filter(|(back, _)| *back >= LEAST && own + back <= WITHIN_CALLS)
        .unwrap_or_default();
    let (own, bytes) = ((own + back).min(1.0), bytes + back_bytes);
    if !part.work.is_answered() || own < MOST {
        return None;
    }
    let directions = if back > 0.0 {
        " in both directions"
    } else {
        ""
    };
    let (whose, each) = match part.work {
        PartWorkload::Calls => (
            "the calls' data",
            format!(
                ", {} per call",
                units::format_size(bytes / part.calls().n().max(1))
            ),
        ),
        _ => ("the turns' data", String::new()),
    };
    let sentence = format!(
        "the link {} ({}) spends {} transmitting {whose}{directions}{each}",
        port.name,
        port.rate(),
        part.of_its_time(own),
    );
    let figure = format!(
        "{}: {} at {}{directions}",
        port.name,
        units::format_size(bytes),
        port.rate()
    );
    let finding = KIND
        .finding(context, own, 0.9, sentence)
        .because(measurement.figure(figure));
    Some(finding.attempt_by(faster_link(port), faster(std::iter::once(port))))
}

/// The share of a part's time in which a port transmits the part's data, and how many bytes these are; `None` without a rate.
fn own_sending(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    port: &PathPort,
) -> Option<(f64, u64)> {
    let (there, _) = part.paths.as_ref()?;
    let side = match path::path_contains_port(there, port) {
        true => PairSide::Initiator,
        false => PairSide::Responder,
    };
    // Acknowledgements of what goes the other way are no data.
    let bytes = measurement
        .own_bytes(part, side, port)
        .min(most_bytes(part, side));
    let share = 8.0 * to_f64(bytes) / port.hop.rate_bit_s? / part.basis_s();
    Some((share, bytes))
}

/// The most bytes that a side's data takes on a link: its payload, and as much again for headers of small packets and retransmissions.
fn most_bytes(part: &MeasuredPart<'_>, side: PairSide) -> u64 {
    let payload = part.records.iter().map(|record| match side {
        PairSide::Initiator => record
            .initiator
            .sent_bytes
            .max(record.responder.received_bytes),
        PairSide::Responder => record
            .responder
            .sent_bytes
            .max(record.initiator.received_bytes),
    });
    payload.sum::<u64>().saturating_mul(2)
}

/// The other direction of a port's link, if measured packets cross it.
fn opposite_port<'m>(
    measurement: &'m FindingMeasurement<'_>,
    port: &PathPort,
) -> Option<&'m PathPort> {
    let (from, to) = &port.hop.ends;
    let mut ports = measurement.ports.iter();
    ports.find(|other| (&other.hop.ends.0, &other.hop.ends.1) == (to, from))
}

/// The finding about calls that wait behind other traffic, which does not fill the link all the time.
fn behind_others(context: &FindingContext<'_>, port: &PathPort, others: f64) -> Option<Finding> {
    let measurement = &context.measurement;
    let own = measurement.over_parts(|part| measurement.own_use(part));
    let share = waiting(context) - own;
    if share < PART {
        return None;
    }
    let sentence = format!(
        "other traffic uses the link {} ({}) {} of the time, and {} of the response time is spent waiting behind it",
        port.name,
        port.rate(),
        percent(others),
        percent(share)
    );
    let finding = KIND
        .finding(context, share, 0.8, sentence)
        .because(carried(measurement, port));
    let finding = finding.attempt_by_unless(
        context.has_imps(),
        shorter_queue(port),
        PlanChange::FairQueue(port.hop.ends.clone()),
    );
    Some(finding.attempt_by(ELSEWHERE, PlanChange::NoLoad))
}

/// The share of response times beyond the round trip of an idle path, without Nagle's algorithm and service.
fn waiting(context: &FindingContext<'_>) -> f64 {
    let measurement = &context.measurement;
    let of = |part: &MeasuredPart<'_>| {
        let held = context
            .account(part)
            .map_or(0.0, |account| account.explained(account.states.nagle));
        let served = context.outside_share(part.index, PairSide::Responder);
        let calls = part.calls();
        let mean = part.own_calls_s() / to_f64(calls.n().max(1));
        let alone = part.round_trip_s().unwrap_or(mean);
        if mean > 0.0 {
            ((mean - alone) / mean - held - served).max(0.0)
        } else {
            0.0
        }
    };
    measurement.over_parts(of)
}

/// Evidence of the packets that went over a link.
fn carried(measurement: &FindingMeasurement<'_>, port: &PathPort) -> Evidence {
    let (size, time) = (
        units::format_size(port.bytes),
        units::format_time(measurement.span_s),
    );
    measurement.figure(format!(
        "{}: {} packets, {size} in {time}",
        port.name, port.packets
    ))
}

fn shorter_queue(port: &PathPort) -> String {
    format!(
        "a shorter or actively managed queue before {}: `queue fq_codel`",
        port.name
    )
}

fn faster<'p>(ports: impl Iterator<Item = &'p PathPort>) -> PlanChange {
    let links: Vec<LinkEnds> = ports.map(|port| port.hop.ends.clone()).collect();
    PlanChange::Faster(links)
}

fn faster_link(port: &PathPort) -> String {
    format!(
        "a faster link {}, or fewer bytes: compression, caching",
        port.name
    )
}
