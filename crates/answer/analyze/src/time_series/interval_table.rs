//! The intervals of a run as a table: what both sides of a part did in each, by pair and all together.

use serde::Serialize;
use stackline_core::far_end::is_address;
use stackline_core::interval_record::{IntervalRow, SideIntervals};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;

/// The intervals of one part in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalTable {
    /// Index of the measurement.
    pub measurement: usize,
    /// Index of the part.
    pub part: usize,
    /// Index of the run.
    pub run: u32,
    /// The text of the part.
    #[serde(skip)]
    pub text: String,
    /// The length of an interval, s.
    pub every_s: f64,
    /// The intervals by time; of each one the pairs, where there are several, and then their sum.
    pub rows: Vec<IntervalFigures>,
}

/// The figures of an interval. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IntervalFigures {
    /// The number of the pair, from 0; absent for all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<usize>,
    /// When the interval began, s since the clock started.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Bytes of data units that arrived; of a server outside the run, also those that it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// These bytes, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_s: Option<f64>,
    /// Segments that were sent again, by both sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// The congestion window of the side that sends more, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Its smoothed round trip, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_s: Option<f64>,
    /// Interarrival jitter, s (RFC 3550, section 6.4.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_s: Option<f64>,
    /// Datagrams that were found missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Datagrams that arrived or were found missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<u64>,
    /// Calls that ended, or connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The same in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_s: Option<f64>,
    /// The median of their times, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// The 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    /// The longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_s: Option<f64>,
}

/// The tables of all counted runs that kept intervals, in the order of the records.
#[must_use]
pub fn interval_tables(plan: &Plan, records: &[RunRecord]) -> Vec<IntervalTable> {
    let counted = records.iter().filter(|record| !record.warmup);
    counted.filter_map(|record| table(plan, record)).collect()
}

fn table(plan: &Plan, record: &RunRecord) -> Option<IntervalTable> {
    let measurement = plan.measurements.get(record.measurement)?;
    let part = measurement.parts.get(record.part)?;
    let sides = PartSides::new(record, part.to.as_ref().is_some_and(|to| is_address(to)))?;
    let pairs = sides.grid.pairs.len();
    let mut rows = Vec::new();
    for index in 0..sides.grid.sum.len() {
        rows.extend((0..pairs).map(|pair| sides.figures(index, Some(pair))));
        rows.push(sides.figures(index, None));
    }
    Some(IntervalTable {
        measurement: record.measurement,
        part: record.part,
        run: record.run,
        text: match measurement.parts.len() {
            1 => measurement.text.clone(),
            _ => part.text.clone(),
        },
        every_s: sides.grid.every_ns as f64 * 1e-9,
        rows,
    })
}

/// Both sides of a part.
struct PartSides<'r> {
    initiator: Option<&'r SideIntervals>,
    responder: Option<&'r SideIntervals>,
    /// The side whose intervals are the rows.
    grid: &'r SideIntervals,
    is_far: bool,
    responder_sends: bool,
    has_data: bool,
    has_calls: bool,
}

impl<'r> PartSides<'r> {
    fn new(record: &'r RunRecord, is_far: bool) -> Option<Self> {
        let initiator = record.initiator_intervals.as_ref();
        let responder = record.responder_intervals.as_ref();
        let received = |side: Option<&SideIntervals>| -> u64 {
            let rows = side.into_iter().flat_map(|side| &side.sum);
            total(rows.map(|row| row.received_bytes))
        };
        let is_put = received(responder) > received(initiator);
        let grid = if is_put { responder } else { initiator };
        let grid = grid.or(initiator).or(responder)?;
        let rows = || initiator.into_iter().flat_map(|side| &side.sum);
        let sent = total(rows().map(|row| row.sent_bytes));
        Some(Self {
            has_data: received(initiator) > 0 || received(responder) > 0 || is_far && sent > 0,
            has_calls: rows().any(|row| row.calls.is_some()),
            responder_sends: record.responder.sent_bytes > record.initiator.sent_bytes,
            initiator,
            responder,
            grid,
            is_far,
        })
    }

    /// The row of a side; a side whose intervals have another length has none.
    fn row(
        &self,
        side: Option<&'r SideIntervals>,
        index: usize,
        pair: Option<usize>,
    ) -> Option<&'r IntervalRow> {
        let side = side.filter(|side| side.every_ns == self.grid.every_ns)?;
        let rows = match pair {
            Some(pair) => side.pairs.get(pair)?,
            None => &side.sum,
        };
        rows.get(index)
    }

    fn figures(&self, index: usize, pair: Option<usize>) -> IntervalFigures {
        let initiator = self.row(self.initiator, index, pair);
        let responder = self.row(self.responder, index, pair);
        let both = || initiator.into_iter().chain(responder);
        let (from_ns, to_ns) = self.grid.bounds_ns(index);
        let (from_s, to_s) = (from_ns as f64 * 1e-9, to_ns as f64 * 1e-9);
        let per_s = |count: u64| {
            let length_s = to_s - from_s;
            (length_s > 0.0).then(|| count as f64 / length_s)
        };
        let sent = initiator.map_or(0, |row| row.sent_bytes);
        let bytes = total(both().map(|row| row.received_bytes));
        let bytes = bytes.saturating_add(if self.is_far { sent } else { 0 });
        let bytes = self.has_data.then_some(bytes);
        let sender = if self.responder_sends {
            responder
        } else {
            initiator
        };
        let transport = sender.and_then(|row| row.transport);
        let transports = || both().filter_map(|row| row.transport);
        let lost = both().filter(|row| row.received_units > 0 || row.lost > Some(0));
        let lost = lost.filter_map(|row| row.lost).reduce(u64::saturating_add);
        let units = total(both().map(|row| row.received_units));
        let calls = initiator.and_then(|row| row.calls);
        let ended = self.has_calls.then(|| calls.map_or(0, |calls| calls.n));
        let seconds = |ns: u64| ns as f64 * 1e-9;
        IntervalFigures {
            pair,
            from_s,
            to_s,
            bytes,
            bit_s: bytes.and_then(per_s).map(|bytes_s| 8.0 * bytes_s),
            retransmits: transports()
                .map(|one| one.retransmits)
                .reduce(u64::saturating_add),
            window_bytes: transport.and_then(|one| one.window_bytes),
            round_trip_s: transport
                .filter(|one| one.round_trip_ns > 0)
                .map(|one| seconds(one.round_trip_ns)),
            jitter_s: both().filter_map(|row| row.jitter_ns).max().map(seconds),
            lost,
            datagrams: lost.map(|lost| lost.saturating_add(units)),
            calls: ended,
            calls_per_s: ended.and_then(per_s),
            median_s: calls.and_then(|calls| calls.median_ns).map(seconds),
            p99_s: calls.and_then(|calls| calls.p99_ns).map(seconds),
            max_s: calls.map(|calls| seconds(calls.max_ns)),
        }
    }
}

/// The sum of counts that a file says; it may say anything.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}
