//! Far end takes: calls to a server outside the run take their time there and on the way, where nothing of it is seen.

use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::far_end::is_address;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "far_end_takes",
    meaning: "calls wait for a server outside the run, and for the way to it",
    find: &[Find::Part(find)],
};

/// Calls that take more than this many times the time of their connections wait for each other.
const BACKLOG: f64 = 1.05;
/// How long a call in datagrams waits for its answer where no `timeout` is written, s.
const TIMEOUT_S: f64 = 1.0;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let server = part.plan.to.as_deref().filter(|to| is_address(to))?;
    let calls = part.calls();
    let in_calls = to_f64(calls.sum) / 1e9;
    if calls.n() == 0 || in_calls == 0.0 {
        return None;
    }
    // Where calls have times of their own to begin, they may wait for those before them: then the time is that of the connections.
    let waits = in_calls > BACKLOG * part.pairs_s();
    let (lost, in_losses) = losses(part);
    let time = if waits {
        part.pairs_s() - in_losses
    } else {
        in_calls
    };
    if time <= 0.0 {
        return None;
    }
    let here: f64 = part
        .records
        .iter()
        .map(|record| record.initiator.usage.cpu_s())
        .sum();
    let own = (1.0 - here / time).clamp(0.0, 1.0);
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let each = |seconds: f64| units::format_time(seconds / to_f64(calls.n()));
    let (own_each, all_each) = (each(own * time), each(time));
    let sentence = if waits {
        let held_up = match units::format_time(in_losses) {
            _ if lost == 0 => String::new(),
            time => format!(
                ", and {} held up the next for {time}",
                units::counted(lost, "lost call")
            ),
        };
        format!(
            "calls wait for those before them: {} calls were all that {server} and the way to it answered, {own_each} of {all_each} each{held_up}; the rest is this side",
            calls.n(),
        )
    } else {
        format!(
            "{server} and the way to it take {} of the time of {} calls: {own_each} of {all_each} each; the rest is this side's processor",
            percent(own),
            calls.n(),
        )
    };
    // With more pairs than cores, calls wait for this side's processor too.
    let sure = if part.plan.replicas == 1 { 0.9 } else { 0.7 };
    let trips = part
        .records
        .iter()
        .filter_map(|record| record.initiator.transport);
    let trip = trips.map(|(_, stop)| stop.rtt_s).reduce(f64::max);
    let seen = match trip {
        Some(trip) => format!(
            "round trips, which include what the server takes where it acknowledges with its answer: {}",
            units::format_time(trip)
        ),
        None => "the server's time and that of the way are not seen apart".to_owned(),
    };
    let finding = KIND
        .finding(context, share, sure, sentence)
        .because(context.measurement.figure(seen));
    Some(finding.attempt("trace the server where it runs (`stackline trace --pid PID`): what it does in that time, and what the way takes"))
}

/// How many calls were lost, and for how long they held up the next ones, s: each until its timeout.
fn losses(part: &MeasuredPart<'_>) -> (u64, f64) {
    let losses = part.records.iter().filter_map(|r| r.initiator.lost);
    let lost: u64 = losses.sum();
    let timeout = part.plan.stack.seconds("timeout").unwrap_or(TIMEOUT_S);
    (lost, to_f64(lost) * timeout)
}
