//! Unexplained: time of transfers or calls in which the path was not full and for which no finding gives a cause.

use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::answered_time;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::unaccounted;
use stackline_core::procedure::PairSide;

pub(super) const KIND: FindingKind = FindingKind {
    name: "unexplained",
    meaning: "a transfer's path is not full or its load is unknown, or calls take longer than distance, data and service explain, and no cause accounts for this time; ranked below every cause",
    find: &[Find::Rest(find)],
};

/// Confidence of the finding: it is known only that a cause is missing.
const SURE: f64 = 0.3;

/// Confidence if both ends are on one machine: that no limit was found there is weak evidence.
const CALM: f64 = 0.1;

/// The finding where both ends are on one machine without a link between them: CPU time counts as explained, and of the rest it is known
/// only that no resource was at its limit. `rest` is the share of the time without a cause.
fn in_one_machine(context: &FindingContext<'_>, rest: f64) -> Option<Finding> {
    let of = |side: PairSide| {
        context
            .measurement
            .over_parts(|part| part.computed(side).min(1.0))
    };
    let ends = (of(PairSide::Initiator), of(PairSide::Responder));
    // Both sides may have computed at the same time, so only the greater share is subtracted.
    let share = rest - ends.0.max(ends.1);
    let mean = match context
        .measurement
        .parts
        .iter()
        .map(|part| part.plan.replicas)
        .sum::<u32>()
    {
        0 | 1 => String::new(),
        pairs => format!(" (means over {pairs} pairs)"),
    };
    let sentence = format!(
        "no monitored resource was at its limit; initiator and responder, both on one machine, are on the CPU {} and {} of the time{mean}",
        percent(ends.0),
        percent(ends.1)
    );
    let figure = format!(
        "initiators were on the CPU {} of the time, responders {}",
        percent(ends.0),
        percent(ends.1)
    );
    (share >= LEAST).then(|| {
        KIND.finding(context, share, CALM, sentence)
            .because(context.measurement.figure(figure))
    })
}

/// The sentence and the evidence of the finding, from three shares of the time: unexplained, not used by the path, explained by others.
/// `known` says whether the load of the path is known.
fn words(
    measurement: &FindingMeasurement<'_>,
    [share, unused, explained]: [f64; 3],
    known: bool,
) -> (String, String) {
    let (path, whole) = if measurement.has_calls_or_connects() {
        (
            "distance, data and service do not account for it",
            "distance, data and service do not account for",
        )
    } else if known {
        ("no link was full in that time", "links were not full")
    } else {
        ("the load on the network is unknown", "")
    };
    let sentence = format!(
        "{} of the time is unexplained: {path}, and no other limit was found",
        percent(share)
    );
    let explained = percent(explained);
    let figure = if known {
        format!(
            "{whole} {} of the time; other findings explain {explained}",
            percent(unused)
        )
    } else {
        format!("{explained} of the time is explained")
    };
    (sentence, figure)
}

/// What the findings so far leave unexplained; `found` includes those below [`LEAST`].
fn find(context: &FindingContext<'_>, found: &[Finding]) -> Option<Finding> {
    let measurement = &context.measurement;
    let known = measurement
        .parts
        .iter()
        .all(|part| measurement.fullness(part).is_some());
    // If either side has a pace, the specification itself leaves the path empty.
    let paced = |part: &MeasuredPart<'_>| {
        [PairSide::Initiator, PairSide::Responder]
            .into_iter()
            .any(|side| part.paces(side))
    };
    let unused = measurement.over_parts(|part| match part.work {
        PartWorkload::Bulk(_) if !paced(part) => {
            let used = measurement.fullness(part).unwrap_or(0.0);
            (1.0 - used - answered_time::trips(part)).max(0.0)
        }
        PartWorkload::Calls | PartWorkload::Turns if !paced(part) => {
            unaccounted::unaccounted(context, part)
        }
        _ => 0.0,
    });
    let explained: f64 = found
        .iter()
        .filter(|finding| {
            !measurement.has_calls_or_connects() || !unaccounted::has(context, finding)
        })
        .map(|finding| finding.share)
        .fold(0.0, |sum, share| sum + share);
    let share = unused - explained;
    if share < LEAST {
        return None;
    }
    if measurement.parts.iter().all(MeasuredPart::in_one_machine) {
        return in_one_machine(context, share);
    }
    let (sentence, figure) = words(measurement, [share, unused, explained], known);
    let finding = KIND
        .finding(context, share, SURE, sentence)
        .because(measurement.figure(figure));
    Some(if measurement.log.is_empty() {
        finding.attempt(
            "trace the run (`run --trace`): its events show how both ends spent their time",
        )
    } else {
        finding.attempt("monitor hosts and switches during the run (`stackline watch`)")
    })
}
