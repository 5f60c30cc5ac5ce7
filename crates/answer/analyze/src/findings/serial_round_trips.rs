//! Serial round trips: calls or connections one after the other, each waiting for the network and nothing else.

use super::change::{Change, Ends};
use super::context::Context;
use super::finding::{Finding, LEAST};
use super::kind::{Find, Kind};
use super::log::Log;
use super::part::{LEAST_TRIP_S, Part, Work};
use super::{session_left, session_turns};
use crate::statistics::real;
use stackline_core::program::Side;
use stackline_core::units;
use stackline_model::Path;

pub(super) const KIND: Kind = Kind {
    name: "serial_round_trips",
    meaning: "calls or connections one after the other, each waiting for the network; of units that events follow over hosts: each waits for the one before",
    find: &[Find::Run(in_session), Find::Part(find)],
};

/// Of units that events follow, where nothing was measured.
fn in_session(log: &Log<'_>) -> Option<Finding> {
    session_turns::serial_round_trips(&KIND, log)
        .or_else(|| session_left::serial_round_trips(&KIND, log))
}

/// A chain has at least so many links.
const CHAIN: u64 = 5;

fn find(context: &Context<'_>, part: &Part<'_>) -> Option<Finding> {
    let (times, what) = match part.work {
        Work::Calls => (part.calls().n(), "calls"),
        Work::Connects => (
            part.records.iter().map(|record| record.connects.n()).sum(),
            "connections",
        ),
        Work::Bulk(_) => return None,
    };
    let pairs = u64::from(part.plan.replicas.max(1)) * part.records.len().max(1) as u64;
    let (each, trip) = (times / pairs, trip_s(part)?);
    // Calls that the application begins at moments of its own are no chain.
    let behind = part.falls_behind();
    let paced = (part.paces(Side::Initiator) && !behind)
        || context.outside_share(part.index, Side::Initiator) > 0.5;
    let own = (real(times) * trip / part.pairs_s()).min(1.0);
    let share = own * part.weight;
    if each < CHAIN || paced || trip < LEAST_TRIP_S || share < LEAST {
        return None;
    }
    let saves = real(each - 1) * trip;
    let takes = part.elapsed_s / real(part.records.len().max(1) as u64);
    let but = if behind {
        "their caller falls behind the pace it was given".to_owned()
    } else {
        let (saves, then) = (units::time(saves), units::time((takes - saves).max(trip)));
        format!(
            "sent without waiting they would take {saves} less, {then} instead of {}",
            units::time(takes)
        )
    };
    let sentence = format!(
        "{each} {what} go one after the other and each waits a round trip of {}: {}; {but}",
        units::time(trip),
        part.of_its_time(own),
    );
    let rows = match part.work {
        Work::Calls => context.measurement.rows("APP_CALL"),
        _ => context.measurement.rows("APP_CONNECT"),
    };
    let figure = format!(
        "{times} {what} x {} = {} of {}",
        units::time(trip),
        units::time(real(times) * trip),
        units::time(part.elapsed_s)
    );
    let evidence = context.measurement.evidence(figure, &rows);
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(evidence);
    Some(if part.work == Work::Calls {
        finding
            .attempt("send requests without waiting for responses: `repeat count { DataRequest(unit); }` then await them, or several pairs")
            .attempt("put several requests into one (batching)")
            .attempt_by("send them to a nearer host: a cache, a replica", nearer(part))
    } else {
        finding.attempt("keep connections open and use them again: connect before the clock, in one `repeat` of calls")
    })
}

/// Everything between the two hosts is half as far.
fn nearer(part: &Part<'_>) -> Change {
    let (there, back) = part
        .paths
        .as_ref()
        .map_or((&[][..], &[][..]), |(there, back)| {
            (&there.hops, &back.hops)
        });
    let mut links: Vec<Ends> = Vec::new();
    for (a, b) in there.iter().chain(back).map(|hop| &hop.ends) {
        let (known, other) = ((a.clone(), b.clone()), (b.clone(), a.clone()));
        if !links.contains(&known) && !links.contains(&other) {
            links.push(known);
        }
    }
    Change::Nearer(links)
}

/// From this many cores on that both sides compute on one machine, they wait for one another's processor and not for a network.
const COMPUTING: f64 = 0.5;

/// The network's own round trip, s: propagation where it is modelled, else what the transport measured.
fn trip_s(part: &Part<'_>) -> Option<f64> {
    let cores = |side| part.computed(side) * f64::from(part.threads(side));
    let nowhere = part.paths.is_none() && part.plan.from.is_none() && part.plan.to.is_none();
    if nowhere && cores(Side::Initiator) + cores(Side::Responder) >= COMPUTING {
        return None;
    }
    match &part.paths {
        Some((there, back)) => Some(Path::delay_s(there) + Path::delay_s(back)),
        None => part.round_trip_s(),
    }
}
