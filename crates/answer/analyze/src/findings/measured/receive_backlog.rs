//! How long received bytes waited at a host for an application that was away from its operations. Time before anything had
//! arrived, or before an operation that receives nothing, is not counted: no backlog is known then.

use crate::findings::event_log::{FindingEventLog, MOST};
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::procedure::{self, OperationCall, PairSide};
use stackline_events::unit_ids::{EventStreamDirection, stream, stream_parts};
use std::collections::BTreeMap;

/// The backlog of all flows of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// Seconds in which bytes waited.
    pub(crate) total_s: f64,
    /// Of it, after everything had arrived.
    pub(crate) at_end_s: f64,
    /// How often.
    pub(crate) times: u64,
    /// The rows around the longest times.
    pub(crate) rows: Vec<u32>,
}

/// What a reader does, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderStep {
    /// An operation is over.
    Over,
    /// It awaits a data unit.
    Awaits,
    /// It has one.
    Has,
    /// It begins something else.
    Else,
}

/// The reader's events: those of the stream it reads, and those of the one it writes.
const STEPS: [(&str, ReaderStep, bool); 5] = [
    ("APP_AWAIT", ReaderStep::Awaits, true),
    ("APP_RECEIVED", ReaderStep::Has, true),
    ("APP_SEND", ReaderStep::Else, false),
    ("APP_SENT", ReaderStep::Over, false),
    ("APP_START", ReaderStep::Over, false),
];

/// A time between two operations in which bytes waited, and the rows around it.
struct AwayTime {
    seconds: f64,
    over: u32,
    takes: u32,
}

impl AwayTime {
    /// What of it lies after a moment, s.
    fn after(&self, log: &FindingEventLog<'_>, moment: u64) -> f64 {
        self.seconds
            .min(to_f64(log.at(self.takes).saturating_sub(moment)) / 1e9)
    }
}

/// The time that received bytes waited for that side's application.
pub(crate) fn measure_receive_backlog(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    reader: PairSide,
) -> Backlog {
    let arrived = arrivals(measurement);
    let mut found: Vec<AwayTime> = Vec::new();
    let mut at_end_s = 0.0;
    for (stream, walk) in walks(measurement, part, reader) {
        let arrived = arrived.get(&stream).map(Vec::as_slice);
        let away = away(measurement.log, &walk, arrived);
        if let Some(last) = arrived.and_then(|packets| packets.iter().map(|(.., at)| *at).max()) {
            at_end_s += away
                .iter()
                .map(|found| found.after(measurement.log, last))
                .sum::<f64>();
        }
        found.extend(away);
    }
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Backlog {
        total_s: found.iter().map(|found| found.seconds).sum(),
        at_end_s,
        times: found.len() as u64,
        rows: found
            .iter()
            .take(MOST)
            .flat_map(|found| [found.over, found.takes])
            .collect(),
    }
}

/// What each reader of a part did, in the order of its host's time, by the stream it reads.
fn walks(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    reader: PairSide,
) -> BTreeMap<i64, Vec<(u32, ReaderStep)>> {
    let log = measurement.log;
    let (read, written) = match reader {
        PairSide::Initiator => (EventStreamDirection::Back, EventStreamDirection::There),
        PairSide::Responder => (EventStreamDirection::There, EventStreamDirection::Back),
    };
    let mut walks: BTreeMap<i64, Vec<(u32, ReaderStep)>> = BTreeMap::new();
    // Until the sender confirms that it was asked, an operation waits for the network, while its first data may be there.
    let asks = procedure::contains_call(part.plan.procedure.side(reader), &|call| {
        matches!(call, OperationCall::StartBulkGet)
    });
    let steps = STEPS
        .into_iter()
        .filter(|(keyword, ..)| !asks || *keyword != "APP_START");
    for (keyword, step, reads) in steps {
        for row in measurement.rows(keyword) {
            let Some((flow, direction)) = log.number(row, "stream").map(stream_parts) else {
                continue;
            };
            let mine = direction == if reads { read } else { written };
            if mine
                && log
                    .input
                    .index
                    .flow(flow)
                    .is_some_and(|flow| flow.part == part.index)
            {
                walks
                    .entry(stream(flow, read))
                    .or_default()
                    .push((row, step));
            }
        }
    }
    walks
        .values_mut()
        .for_each(|walk| walk.sort_by_key(|(row, _)| (log.at(*row), *row)));
    walks
}

/// When bytes of each stream arrived at a host: the first byte, the one behind the last, time; in the order of the bytes.
fn arrivals(measurement: &FindingMeasurement<'_>) -> BTreeMap<i64, Vec<(i64, i64, u64)>> {
    let mut arrived: BTreeMap<i64, Vec<(i64, i64, u64)>> = BTreeMap::new();
    for row in measurement.rows("NET_DELIVER") {
        if let Some(range) = measurement.log.range(row) {
            arrived.entry(range.stream).or_default().push((
                range.from,
                range.to,
                measurement.log.at(row),
            ));
        }
    }
    arrived
        .values_mut()
        .for_each(|packets| packets.sort_unstable());
    arrived
}

/// Each time between two operations of which the second takes what was there.
fn away(
    log: &FindingEventLog<'_>,
    walk: &[(u32, ReaderStep)],
    arrived: Option<&[(i64, i64, u64)]>,
) -> Vec<AwayTime> {
    let mut found = Vec::new();
    for (at, pair) in walk.windows(2).enumerate() {
        let ((over, ReaderStep::Over | ReaderStep::Has), (takes, step)) = (pair[0], pair[1]) else {
            continue;
        };
        let (from, to) = (log.at(over), log.at(takes));
        let has = match step {
            ReaderStep::Awaits => walk
                .get(at + 2)
                .filter(|(_, step)| *step == ReaderStep::Has)
                .map(|(row, _)| *row),
            // What is never waited for was there.
            ReaderStep::Has => Some(takes),
            ReaderStep::Over | ReaderStep::Else => None,
        };
        let Some(has) = has else { continue };
        // An operation that waits longer than its reader was away was not held up by that.
        let held_up = log.at(has).saturating_sub(to) <= to.saturating_sub(from);
        let there = arrived
            .map_or(Some(from), |arrived| first_arrival(log, has, arrived))
            .map(|arrived| arrived.max(from));
        if let Some(there) = there.filter(|there| held_up && *there < to) {
            let seconds = to_f64(to - there) / 1e9;
            found.push(AwayTime {
                seconds,
                over,
                takes,
            });
        }
    }
    found
}

/// As often as the same bytes are looked for.
const MOST_TIMES: usize = 64;

/// When the first of a unit's bytes arrived; `None` for a unit whose place in the stream is not known.
fn first_arrival(log: &FindingEventLog<'_>, unit: u32, arrived: &[(i64, i64, u64)]) -> Option<u64> {
    let range = log.range(unit)?;
    let from = arrived
        .partition_point(|(from, ..)| *from <= range.from)
        .checked_sub(1)?;
    // Bytes that were sent again count from their first arrival.
    let packets = arrived[..=from]
        .iter()
        .rev()
        .take(MOST_TIMES)
        .take_while(|(_, to, _)| *to > range.from);
    packets.map(|(.., at)| *at).min()
}
