//! Nagle's algorithm with delayed acknowledgements: the sender holds a small segment back until the data before it is acknowledged, and the
//! receiver delays just that acknowledgement: some 40 ms in which both sides are idle.

use crate::findings::calls::connection_per_call;
use crate::findings::calls::held_arrivals::held_arrivals;
use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, side_of};
use crate::statistics::to_f64;
use stackline_core::procedure::{self, OperationCall, PairSide, ProcedureStep};
use stackline_core::run_record::SideRecord;
use stackline_core::units;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "nagle_delayed_ack",
    meaning: "Nagle's algorithm waits for a delayed acknowledgement",
    find: &[Find::Measurement(by_segments), Find::Part(by_times)],
};

/// How long Linux delays an acknowledgement, s.
const DELAYED_ACK_S: f64 = 0.04;
/// How far a time may differ from a delayed acknowledgement, as a fraction of its delay.
const NEAR: f64 = 0.25;

/// The finding from segments, states or arrivals: of all parts the one with the greatest share.
fn by_segments(context: &FindingContext<'_>) -> Option<Finding> {
    let of = |part| {
        // Offsets begin anew on each connection, so the bytes of several connections are not one stream.
        let one_stream = !connection_per_call::comes_and_goes(part);
        let late = one_stream.then(|| late_ends(context, part)).flatten();
        late.or_else(|| by_states(context, part))
            .or_else(|| by_arrivals(context, part))
    };
    context
        .measurement
        .parts
        .iter()
        .filter_map(of)
        .max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The finding from the states that senders report, where other waits hide the delay of single units.
fn by_states(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    terms(part)?;
    let held = context.account(part)?.most(|states| states.nagle)?;
    let own = held.share;
    let (share, host) = (own * part.weight, held.hosts(part));
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "Nagle's algorithm on {host} holds back the end of a message until the data before it is acknowledged: {}",
        part.of_its_time(own)
    );
    let figure = format!(
        "{host}: {} of the time with open windows and less than a segment to send",
        percent(own)
    );
    Some(tries(
        KIND.finding(context, share, 0.95, sentence)
            .because(context.measurement.figure(figure)),
        part,
    ))
}

/// How long acknowledgements are delayed, s; `None` if Nagle's algorithm is off on both sides or acknowledgements are not delayed.
fn terms(part: &MeasuredPart<'_>) -> Option<f64> {
    let record = part.records.first()?;
    let sides = [&record.initiator.settings, &record.responder.settings];
    let off = sides
        .iter()
        .all(|settings| settings.get("nodelay").is_none_or(|word| word == "on"));
    let reported = sides
        .iter()
        .find_map(|settings| settings.get("delayed_ack"))
        .and_then(|text| seconds(text));
    let delay = reported.unwrap_or(DELAYED_ACK_S);
    (!off && delay > 0.0).then_some(delay)
}

/// Parses a time such as `40.0 ms` into seconds.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let scale = units::find_factor(units::TIME_UNITS, unit)?;
    Some(number.parse::<f64>().ok()? * scale)
}

/// The finding from recorded segments: the last bytes of units were sent about one delayed acknowledgement after they were handed over.
fn late_ends(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let (log, delay) = (context.measurement.log, terms(part)?);
    let segment = part.segment_bytes()? as i64;
    let streams = streams(context);
    let trip = part.round_trip_s().unwrap_or(0.0);
    // A transport's own round trips may hold delayed acknowledgements already.
    let empty = if part.paths.is_some() { trip } else { 0.0 };
    let (least, most) = (
        ((1.0 - NEAR) * delay + empty).max(trip),
        (1.0 + NEAR) * (delay + trip),
    );
    let (mut held, mut rows, mut ends) = (0.0, Vec::new(), BTreeSet::new());
    let (mut units, mut late_at_all) = (0_u64, BTreeSet::new());
    for keyword in ["APP_SEND", "APP_CALL", "APP_REPLY"] {
        for row in context.measurement.rows(keyword) {
            let Some(range) = log.range(row) else {
                continue;
            };
            let Some(segments) = streams.get(&range.stream) else {
                continue;
            };
            let behind = segments.partition_point(|(from, ..)| *from < range.to);
            let Some(last) = behind.checked_sub(1) else {
                continue;
            };
            let (from, to, sent) = segments[last];
            units += 1;
            let late = to_f64(log.at(sent).saturating_sub(log.at(row))) / 1e9;
            if late >= delay / 8.0 {
                late_at_all.insert(sent);
            }
            // The segment before was sent about one delayed acknowledgement and a round trip ago, so only that acknowledgement is missing.
            // If the window were the limit, it would let the next bytes go within a round trip.
            let before = last.checked_sub(1).map(|before| segments[before].2);
            let idle =
                before.map(|before| to_f64(log.at(sent).saturating_sub(log.at(before))) / 1e9);
            let waits = idle.is_some_and(|idle| (least..=most).contains(&idle));
            // Only a segment that is not full can be held back; if it carries several units, the first of them waited longest.
            let small = to - from < segment && late >= (1.0 - NEAR) * delay && late <= most;
            if small && waits && ends.insert(sent) {
                held += late;
                rows.extend([row, sent]);
            }
        }
    }
    let times = ends.len() as u64;
    let share = held_share(context, part, held);
    // Units that wait for a window are late by arbitrary times, some of them by chance by this one: most late units must match.
    if share < LEAST || 2 * ends.len() <= late_at_all.len() {
        return None;
    }
    let sentence = format!(
        "Nagle's algorithm waits for a delayed acknowledgement: the end of {times} of {units} units is sent {} after it was handed over ({} of the time)",
        units::format_time(held / to_f64(times)),
        percent(share)
    );
    let what = format!(
        "handed over, but sent {} later although the network was idle",
        units::format_time(held / to_f64(times))
    );
    Some(tries(
        KIND.finding(context, share, 0.95, sentence)
            .because(log.evidence(what, &rows)),
        part,
    ))
}

/// The finding from arrivals of units at the receiving program, where segments are not recorded.
fn by_arrivals(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if !context.measurement.rows("TCP_SEGMENT").is_empty() {
        return None;
    }
    let delay = terms(part)?;
    let held = held_arrivals(context, part, delay, near)?;
    // Time that programs spend outside their operations is not waiting time.
    let outside = [PairSide::Initiator, PairSide::Responder]
        .map(|side| context.outside_share(part.index, side));
    let left = 1.0 - outside.into_iter().fold(0.0, f64::max);
    let share = (held.held_s / context.measurement.basis_s()).min(left);
    if share < LEAST {
        return None;
    }
    let each = units::format_time(held.held_s / to_f64(held.times));
    let sentence = format!(
        "Nagle's algorithm waits for a delayed acknowledgement: {} of {} units arrive {each} after they were handed over ({} of the time)",
        held.times,
        held.units,
        percent(share)
    );
    let what = format!(
        "handed over right after another unit, but received {each} later although the receiver was waiting"
    );
    Some(tries(
        KIND.finding(context, share, 0.9, sentence)
            .because(context.measurement.log.evidence(what, &held.rows)),
        part,
    ))
}

/// The share of the time that `held_s` seconds of delays take. For calls and turns it is limited to what the sender reports for Nagle's
/// algorithm, if it does: a closed window would look the same from outside.
fn held_share(context: &FindingContext<'_>, part: &MeasuredPart<'_>, held_s: f64) -> f64 {
    let share = held_s / context.measurement.basis_s();
    if part.work.is_answered() {
        context.at_most(part, share, |states| states.nagle)
    } else {
        share
    }
}

/// The segments of each stream in the order of their bytes: offset of the first byte, offset behind the last, row.
fn streams(context: &FindingContext<'_>) -> BTreeMap<i64, Vec<(i64, i64, u32)>> {
    let mut streams: BTreeMap<i64, Vec<(i64, i64, u32)>> = BTreeMap::new();
    for row in context.measurement.rows("TCP_SEGMENT") {
        if let Some(range) = context.measurement.log.range(row) {
            streams
                .entry(range.stream)
                .or_default()
                .push((range.from, range.to, row));
        }
    }
    streams
        .values_mut()
        .for_each(|segments| segments.sort_unstable_by_key(|(from, ..)| *from));
    streams
}

/// The finding without segments or arrivals: response times or turns are about as long as a delayed acknowledgement makes them.
fn by_times(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if !context.measurement.rows("TCP_SEGMENT").is_empty() || by_arrivals(context, part).is_some() {
        return None;
    }
    let (delay, trip) = (terms(part)?, part.round_trip_s()?);
    // A service that takes as long would look the same, so parts with much service are left out.
    let served = context.outside_share(part.index, PairSide::Responder);
    let calls = part.work == PartWorkload::Calls;
    // On longer paths the times of calls may have other causes; a procedure that writes and reads in turns has nothing else to wait for.
    if trip > if calls { delay / 2.0 } else { 2.0 * delay } || served > 0.5 {
        return None;
    }
    let (waits, sentence) = match part.work {
        PartWorkload::Calls => of_calls(part, delay, trip)?,
        _ => of_turns(part, delay, trip)?,
    };
    let share = waits.share * part.weight;
    if share < LEAST {
        return None;
    }
    let about = if calls {
        delay + trip
    } else {
        delay + 2.0 * trip
    };
    let figure = format!(
        "{} {} of about {}",
        waits.times,
        waits.what,
        units::format_time(about)
    );
    Some(tries(
        KIND.finding(context, share, 0.7, sentence)
            .because(context.measurement.figure(figure)),
        part,
    ))
}

/// Waits that are as long as a delayed acknowledgement makes them.
struct NagleWaits {
    /// What waited, in words: calls or turns.
    what: &'static str,
    /// The number of waits.
    times: u64,
    /// The share of the part's time, 0 to 1.
    share: f64,
}

/// Whether a time is about a round trip and a delayed acknowledgement. It may be longer by more than shorter, as the timer of the
/// acknowledgement may fire one or two ticks of a coarse clock late.
fn near(time_s: f64, delay: f64, trip: f64) -> bool {
    (-NEAR..=2.0 * NEAR).contains(&((time_s - trip - delay) / delay))
}

/// The waits of calls, by their response times. If callers fell behind their schedule, response times include the wait for earlier calls;
/// then the mean without that wait is judged.
fn of_calls(part: &MeasuredPart<'_>, delay: f64, trip: f64) -> Option<(NagleWaits, String)> {
    let calls = part.calls();
    let late: u64 = part.records.iter().map(|record| record.lateness.sum).sum();
    let own_s = to_f64(calls.sum.saturating_sub(late)) / 1e9;
    let behind = 2 * late > calls.sum;
    let mean_s = own_s / to_f64(calls.n().max(1));
    let each = || {
        calls
            .counts
            .iter()
            .filter(|(value, _)| near(to_f64(*value) / 1e9, delay, trip))
            .map(|(_, n)| n)
            .sum()
    };
    let times = if behind {
        if near(mean_s, delay, trip) {
            calls.n()
        } else {
            0
        }
    } else {
        each()
    };
    let basis_s = if behind {
        own_s
    } else {
        to_f64(calls.sum) / 1e9
    };
    let (n, more, trip) = (
        calls.n(),
        units::format_time(delay),
        units::format_time(trip),
    );
    let take = if behind {
        "take, on average and without their caller's backlog,"
    } else {
        "take"
    };
    let sentence = format!(
        "{times} of {n} calls {take} {more} longer than the round trip of {trip}, which matches the delayed-ACK timer; Nagle's algorithm is on and holds back the end of a request"
    );
    Some((
        NagleWaits {
            what: "calls",
            times,
            share: (to_f64(times) * delay / basis_s).min(1.0),
        },
        sentence,
    ))
}

/// The waits of turns in which one side writes several data units before it reads: each of them takes a delayed acknowledgement longer.
/// `None` for procedures with specified pauses, which would look the same, and for units that fill segments.
fn of_turns(part: &MeasuredPart<'_>, delay: f64, trip: f64) -> Option<(NagleWaits, String)> {
    let sides = [PairSide::Initiator, PairSide::Responder];
    let pauses =
        |call: &OperationCall| matches!(call, OperationCall::Delay(_) | OperationCall::Pace(_));
    let segment = to_f64(part.segment_bytes()?);
    let is_large = |side: &SideRecord| {
        side.sent_units > 0 && to_f64(side.sent_bytes) >= segment * to_f64(side.sent_units)
    };
    let large = part
        .records
        .iter()
        .any(|record| is_large(&record.initiator) || is_large(&record.responder));
    let busy = part.computed(PairSide::Initiator) + part.computed(PairSide::Responder);
    if large
        || busy > 0.5
        || sides
            .iter()
            .any(|side| procedure::contains_call(part.plan.procedure.side(*side), &pauses))
    {
        return None;
    }
    let (mut times, mut host) = (0, PairSide::Initiator);
    for side in sides {
        let (held, reads) = held_turns(part.plan.procedure.side(side));
        let received: u64 = part
            .records
            .iter()
            .map(|record| side_of(record, side).received_units)
            .sum();
        let turns = (received * held).checked_div(reads).unwrap_or(0);
        (times, host) = (
            times + turns,
            if turns > 0 && times == 0 { side } else { host },
        );
    }
    let each_s = part.pairs_s() / to_f64(times.max(1));
    // The units held back are sent after the acknowledgement and then answered: a second round trip.
    if !near(each_s, delay, 2.0 * trip) {
        return None;
    }
    let (each, host) = (units::format_time(each_s), part.host(host));
    let sentence = format!(
        "{times} times, {host} writes several data units before it reads, and each time this takes {each}, which matches two round trips plus the delayed-ACK timer: Nagle's algorithm holds back all but the first until the first is acknowledged"
    );
    Some((
        NagleWaits {
            what: "turns",
            times,
            share: ((delay + trip) / each_s).min(1.0),
        },
        sentence,
    ))
}

/// How many reads in these steps (one pass of each repeat) follow several writes, and how many reads there are in total.
fn held_turns(steps: &[ProcedureStep]) -> (u64, u64) {
    let (mut writes, mut held, mut reads) = (0, 0, 0);
    for step in steps {
        match step {
            ProcedureStep::Repeat(_, body) => {
                let inner = held_turns(body);
                (held, reads) = (held + inner.0, reads + inner.1);
            }
            ProcedureStep::Call(OperationCall::DataRequest(_)) => writes += 1,
            ProcedureStep::Call(OperationCall::AwaitDataIndication(_)) => {
                reads += 1;
                held += u64::from(writes > 1);
                writes = 0;
            }
            ProcedureStep::Call(_) => {}
        }
    }
    // Writes after the last read of a pass come before the first read of the next pass.
    (held + u64::from(writes > 1 && reads > 0), reads)
}

fn tries(finding: Finding, part: &MeasuredPart<'_>) -> Finding {
    let at_once = PlanChange::nodelay(part.index);
    finding
        .attempt_by("send immediately: `tcp(nodelay)` (TCP_NODELAY)", at_once)
        .attempt("hand over a request in one operation instead of several")
}
