//! Backlog: the time that received bytes waited at a host while the application was outside its operations. Time before anything had
//! arrived, or before an operation that receives nothing, is not counted, as it is not known whether bytes waited then.

use crate::findings::event_log::{FindingEventLog, MOST};
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::procedure::{self, OperationCall, PairSide};
use stackline_events::unit_ids::{EventStreamDirection, stream, stream_parts};
use std::collections::BTreeMap;

/// The backlog of a part, over all its flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog {
    /// Seconds in which bytes waited.
    pub(crate) total_s: f64,
    /// The seconds of it after all data had arrived.
    pub(crate) at_end_s: f64,
    /// The number of periods in which bytes waited.
    pub(crate) times: u64,
    /// The rows of the events around the longest periods.
    pub(crate) rows: Vec<u32>,
}

/// What an event says about the reader of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderStep {
    /// An operation that does not receive has ended.
    Over,
    /// The reader begins to wait for a data unit.
    Awaits,
    /// It has received a data unit.
    Has,
    /// It begins an operation that does not receive.
    Else,
}

/// The reader's events: keyword, what it says, and whether its stream is the one that the reader reads (else the one that it writes).
const STEPS: [(&str, ReaderStep, bool); 5] = [
    ("APP_AWAIT", ReaderStep::Awaits, true),
    ("APP_RECEIVED", ReaderStep::Has, true),
    ("APP_SEND", ReaderStep::Else, false),
    ("APP_SENT", ReaderStep::Over, false),
    ("APP_START", ReaderStep::Over, false),
];

/// A period between two operations of the reader in which bytes waited.
struct AwayTime {
    /// How long bytes waited, s.
    seconds: f64,
    /// The row of the event that ended the operation before.
    over: u32,
    /// The row of the event that began to take the bytes.
    takes: u32,
}

impl AwayTime {
    /// How much of it lies after a moment, s.
    fn after(&self, log: &FindingEventLog<'_>, moment: u64) -> f64 {
        self.seconds
            .min(to_f64(log.at(self.takes).saturating_sub(moment)) / 1e9)
    }
}

/// The time that received bytes waited for the application of the side `reader`.
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

/// The events of each reader of a part in the order of time, by the stream that it reads.
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
    // A reader that asks for the data waits in `StartBulkGet` for the sender's confirmation, while the first data may have arrived already:
    // `APP_START` does not mean that it is away then.
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

/// The arrivals of packets by stream: offset of the first byte, offset behind the last, time (ns); in the order of the bytes.
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

/// The periods between two operations of which the second takes bytes that had already arrived.
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
            // A unit that is received without waiting was already there.
            ReaderStep::Has => Some(takes),
            ReaderStep::Over | ReaderStep::Else => None,
        };
        let Some(has) = has else { continue };
        // If the operation then waits longer than its reader was away, the bytes had not arrived: nothing was held up.
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

/// The most arrivals of the same bytes that are looked at.
const MOST_TIMES: usize = 64;

/// When the first byte of a unit arrived; `None` for a unit whose offset in the stream is not known.
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
