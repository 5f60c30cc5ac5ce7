//! Serial round trips: calls or connections are made one after another, and each waits for a round trip of the network.

use crate::findings::change::{LinkEnds, PlanChange};
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::followed_units::left_over;
use crate::findings::followed_units::turns;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{LEAST_TRIP_S, MeasuredPart, PartWorkload};
use crate::statistics::to_f64;
use stackline_core::procedure::PairSide;
use stackline_core::units;
use stackline_model::PathModel;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "serial_round_trips",
    meaning: "calls or connections are made one after another, each waiting for the network; for units tracked across hosts: each waits for the previous one",
    find: &[Find::Run(in_session), Find::Part(find)],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    turns::serial_round_trips(&KIND, log).or_else(|| left_over::serial_round_trips(&KIND, log))
}

/// The least number of calls, turns or connections per pair and run that count as a chain.
const CHAIN: u64 = 5;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let (times, what) = match part.work {
        PartWorkload::Calls => (part.exchanges(), "calls"),
        PartWorkload::Turns => (part.exchanges(), "exchanges of data units"),
        PartWorkload::Connects => (
            part.records.iter().map(|record| record.connects.n()).sum(),
            "connections",
        ),
        PartWorkload::Bulk(_) => return None,
    };
    let pairs = u64::from(part.plan.replicas.max(1)) * part.records.len().max(1) as u64;
    let each = times / pairs;
    // The round trip may have been measured at another moment: it cannot be longer than calls took on average.
    let trip = trip_s(part)?.min(part.pairs_s() / to_f64(times.max(1)));
    // Calls that the application starts at scheduled moments do not wait for each other, so they are not a chain.
    let behind = part.falls_behind();
    let paced = (part.paces(PairSide::Initiator) && !behind)
        || context.outside_share(part.index, PairSide::Initiator) > 0.5;
    let own = (to_f64(times) * trip / part.pairs_s()).min(1.0);
    let share = own * part.weight;
    if each < CHAIN || paced || trip < LEAST_TRIP_S || share < LEAST {
        return None;
    }
    let saves = to_f64(each - 1) * trip;
    let takes = part.elapsed_s / to_f64(part.records.len().max(1) as u64);
    let but = if behind {
        "their caller falls behind its specified pace".to_owned()
    } else {
        let (saves, then) = (
            units::format_time(saves),
            units::format_time((takes - saves).max(trip)),
        );
        format!(
            "without waiting, they would take {saves} less: {then} instead of {}",
            units::format_time(takes)
        )
    };
    let sentence = format!(
        "{each} {what} are made one after another, and each waits for a round trip of {}: {}; {but}",
        units::format_time(trip),
        part.of_its_time(own),
    );
    let rows = match part.work {
        PartWorkload::Calls => context.measurement.rows("APP_CALL"),
        PartWorkload::Turns => context.measurement.rows("APP_RECEIVED"),
        _ => context.measurement.rows("APP_CONNECT"),
    };
    let figure = format!("{times} {what} x {}", sum(part, times, trip));
    let evidence = context.measurement.evidence(figure, &rows);
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(evidence);
    Some(if part.work.is_answered() {
        finding
            .attempt("send requests without waiting for responses: `repeat count { DataRequest(unit); }`, then await them; or use several pairs")
            .attempt("put several requests into one (batching)")
            .attempt_by("send requests to a nearer host: a cache, a replica", nearer(part))
    } else {
        finding.attempt("keep connections open and reuse them: connect before the clock starts, with all calls in one `repeat`")
    })
}

/// A round trip, the sum over all `times`, and the measured time, in words: `20.0 ms = 400 ms of 1.00 s`.
fn sum(part: &MeasuredPart<'_>, times: u64, trip: f64) -> String {
    let together = match part.plan.replicas {
        0 | 1 => String::new(),
        pairs => format!(" of {pairs} pairs"),
    };
    format!(
        "{} = {} of {}{together}",
        units::format_time(trip),
        units::format_time(to_f64(times) * trip),
        units::format_time(part.pairs_s())
    )
}

/// The change of the plan that halves the delays of all links between the two hosts.
fn nearer(part: &MeasuredPart<'_>) -> PlanChange {
    let (there, back) = part
        .paths
        .as_ref()
        .map_or((&[][..], &[][..]), |(there, back)| {
            (&there.hops, &back.hops)
        });
    let mut links: Vec<LinkEnds> = Vec::new();
    for (a, b) in there.iter().chain(back).map(|hop| &hop.ends) {
        let (known, other) = ((a.clone(), b.clone()), (b.clone(), a.clone()));
        if !links.contains(&known) && !links.contains(&other) {
            links.push(known);
        }
    }
    PlanChange::Nearer(links)
}

/// If both sides run on one machine and use at least this many cores together, they wait for each other's processor and not for a network.
const COMPUTING: f64 = 0.5;

/// The round trip of the network, s: propagation alone if it is modelled, else what the transport measured; `None` if both sides run on one
/// machine and are busy computing.
fn trip_s(part: &MeasuredPart<'_>) -> Option<f64> {
    let cores = |side| part.computed(side) * f64::from(part.threads(side));
    let nowhere = part.paths.is_none() && part.plan.from.is_none() && part.plan.to.is_none();
    if nowhere && cores(PairSide::Initiator) + cores(PairSide::Responder) >= COMPUTING {
        return None;
    }
    match &part.paths {
        Some((there, back)) => Some(PathModel::delay_s(there) + PathModel::delay_s(back)),
        None => part.round_trip_s(),
    }
}
