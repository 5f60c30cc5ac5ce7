//! Application-limited: the side that has to send or answer is outside its operations, and the other side waits for it.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::endpoints::Outside;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::statistics::to_f64;
use stackline_core::distribution::Distribution;
use stackline_core::procedure::{
    CountArgument, DelayArgument, OperationCall, PairSide, ProcedureStep,
};
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "application_limited",
    meaning: "the side that sends or answers pauses between its operations, or the caller delays its calls with `Delay`. A `Pace` in the specification does not count as a limit",
    find: &[Find::Part(between_operations), Find::Part(between_calls)],
};

/// The finding about time that a sender, or the side that answers calls, spends between its operations.
fn between_operations(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let outside = |side: &PairSide| context.outside.get(part.index)?.get(side);
    let (side, what) = match part.work {
        PartWorkload::Bulk(side) => (side, "the next data unit"),
        PartWorkload::Calls => (PairSide::Responder, "the response"),
        PartWorkload::Turns => {
            let away = |side: PairSide| outside(&side).map_or(0.0, |outside| outside.total_s);
            let initiators = away(PairSide::Initiator) > away(PairSide::Responder);
            let side = if initiators {
                PairSide::Initiator
            } else {
                PairSide::Responder
            };
            (side, "the next data unit")
        }
        PartWorkload::Connects => return None,
    };
    let host = part.host(side);
    let Some(outside) = outside(&side) else {
        return as_written(context, part, side, host);
    };
    let own = held_up_share(context, part, outside.total_s);
    let share = own * part.weight;
    // A pace in the specification makes the side wait by intention.
    if share < LEAST || part.paces(side) {
        return None;
    }
    let each = outside.total_s / to_f64(outside.times.max(1));
    let sentence = format!(
        "the application on {host} is the limit: it spends {} on average before handing over {what} ({}, {})",
        units::format_time(each),
        units::counted(outside.times, "time"),
        part.of_its_time(own)
    );
    let longest = outside
        .longest
        .first()
        .map_or(0.0, |(seconds, ..)| *seconds);
    let evidence = context.measurement.log.evidence(
        format!(
            "the time between operations on {host} is {} on average, {} at most",
            units::format_time(each),
            units::format_time(longest)
        ),
        &outside.rows(),
    );
    let finding = KIND
        .finding(context, share, 0.95, sentence)
        .because(evidence);
    let advice = if part.work.is_answered() && side == PairSide::Responder {
        format!("make the service on {host} faster, or serve several calls at once (several pairs)")
    } else {
        format!(
            "make the application on {host} prepare units in advance, or in a thread other than the sending one"
        )
    };
    Some(finding.attempt_by(advice, PlanChange::NoDelays(part.index, side)))
}

/// The finding about delays (`Delay`) that the caller's procedure has between its calls. A pace is intended load and does not count.
/// Procedures without calls of the language (traced programs of others) are not judged: their calls may begin at any moment.
fn between_calls(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let steps = part.plan.procedure.side(PairSide::Initiator);
    let calls = part.calls();
    let a_pass = a_pass(steps, 1.0, &|call| {
        if matches!(call, OperationCall::RpcCall(..)) {
            1.0
        } else {
            0.0
        }
    });
    if part.work != PartWorkload::Calls || a_pass <= 0.0 || part.paces(PairSide::Initiator) {
        return None;
    }
    let measured = part.pairs_s();
    let written = to_f64(calls.n()) / a_pass * delays_s(part, steps);
    // The caller can only have delayed while it did not wait for a response.
    let own = (written.min(measured - to_f64(calls.sum) / 1e9) / measured).max(0.0);
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let (host, each) = (&part.hosts.0, own * measured / to_f64(calls.n()));
    let sentence = format!(
        "the application on {host} is the limit: it delays {} by {} ({})",
        match calls.n() {
            1 => "its call".to_owned(),
            n => format!("each of its {n} calls"),
        },
        units::format_time(each),
        part.of_its_time(own)
    );
    let what = format!(
        "{host} spent {} in its calls, and {} per call outside them",
        part.of_its_time(1.0 - own),
        units::format_time(each)
    );
    let outside = context
        .outside
        .get(part.index)
        .and_then(|sides| sides.get(&PairSide::Initiator));
    let rows = outside.map_or_else(Vec::new, Outside::rows);
    let sure = if rows.is_empty() { 0.8 } else { 0.95 };
    let evidence = context.measurement.evidence(what, &rows);
    let finding = KIND
        .finding(context, share, sure, sentence)
        .because(evidence);
    let advice = format!(
        "make the application on {host} call without the delay, or do its own work in parallel with the calls"
    );
    Some(finding.attempt_by(
        advice,
        PlanChange::NoDelays(part.index, PairSide::Initiator),
    ))
}

/// The share of the time that a side held the other up by being away for `away_s`. A sender that is away while its buffer still holds data
/// holds nothing up.
fn held_up_share(context: &FindingContext<'_>, part: &MeasuredPart<'_>, away_s: f64) -> f64 {
    let away = (away_s / part.basis_s()).min(1.0);
    let account = context.account(part).filter(|_| !part.work.is_answered());
    account.map_or(away, |account| account.away(away))
}

/// The finding without events: the delays of the side according to the specification.
fn as_written(
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    side: PairSide,
    host: &str,
) -> Option<Finding> {
    let units: u64 = part
        .records
        .iter()
        .map(|record| {
            record
                .calls
                .n()
                .max(record.initiator.sent_units.max(record.responder.sent_units))
        })
        .sum();
    let each = delays_s(part, part.plan.procedure.side(side));
    let own = held_up_share(context, part, to_f64(units) * each);
    let share = own * part.weight;
    if !context.measurement.log.is_empty() || share < LEAST {
        return None;
    }
    let sentence = format!(
        "the application on {host} is the limit: as its procedure specifies, it waits {} per data unit ({})",
        units::format_time(each),
        part.of_its_time(own)
    );
    let figure = format!("{units} units x {}", units::format_time(each));
    Some(
        KIND.finding(context, share, 0.8, sentence)
            .because(context.measurement.figure(figure)),
    )
}

/// The mean time of all delays in one pass of a repeat whose count is that of the data, s.
fn delays_s(part: &MeasuredPart<'_>, steps: &[ProcedureStep]) -> f64 {
    let mean = |delay: &DelayArgument| match delay {
        DelayArgument::Timing(at) => part.plan.data.timings.get(*at).and_then(Distribution::mean),
        DelayArgument::Drawn(distribution) => distribution.mean(),
    };
    a_pass(steps, 1.0, &|call| match call {
        OperationCall::Delay(delay) => mean(delay).unwrap_or(0.0),
        _ => 0.0,
    })
}

/// The sum of a figure over all operations in one pass of a repeat whose count is that of the data; a repeat of `n` counts `n` times.
fn a_pass(steps: &[ProcedureStep], times: f64, figure: &impl Fn(&OperationCall) -> f64) -> f64 {
    let of = |step: &ProcedureStep| match step {
        ProcedureStep::Call(call) => times * figure(call),
        ProcedureStep::Repeat(CountArgument::Count, body) => a_pass(body, times, figure),
        ProcedureStep::Repeat(CountArgument::Times(n), body) => {
            a_pass(body, times * to_f64(*n), figure)
        }
    };
    steps.iter().map(of).sum()
}
