//! Throughput, calls, losses and jitter from the events of data units.

use super::series_data::{SeriesBins, SeriesKind, SeriesLine, SeriesLines, SeriesRun};
use crate::findings::AnalysisInput;
use stackline_events::EventTable;
use stackline_events::unit_ids::parts;
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a unit's event, by place.
const UNIT: usize = 0;
const BYTES: usize = 3;

/// What became of the units of a run.
pub(super) struct TracedUnits {
    bins: SeriesBins,
    /// By flow: bytes that arrived in each interval.
    arrived: BTreeMap<u32, Vec<f64>>,
    /// When units were sent, and when they arrived, by their ids.
    sent: BTreeMap<i64, u64>,
    received: Vec<(u64, i64)>,
    /// When calls were made, and when they ended.
    called: BTreeMap<i64, u64>,
    answered: Vec<(u64, i64)>,
}

/// The last transit of a pair's units, ns, the estimate until then, ns, and the one at the end of each interval, s.
type JitterOfPair = (Option<i64>, f64, Vec<Option<f64>>);

impl TracedUnits {
    pub(super) fn new(bins: SeriesBins) -> Self {
        Self {
            bins,
            arrived: BTreeMap::new(),
            sent: BTreeMap::new(),
            received: Vec::new(),
            called: BTreeMap::new(),
            answered: Vec::new(),
        }
    }

    /// Adds an event of a unit, if its flow belongs to the run.
    pub(super) fn event(
        &mut self,
        keyword: &str,
        events: &EventTable,
        row: usize,
        at_ns: u64,
        is_of_run: impl Fn(u32) -> bool,
    ) {
        let is_known = matches!(
            keyword,
            "APP_SEND" | "APP_RECEIVED" | "APP_CALL" | "APP_RESPONSE"
        );
        let Some(unit) = events.number(row, UNIT).filter(|_| is_known) else {
            return;
        };
        let (flow, _, is_connection) = parts(unit);
        if is_connection || !is_of_run(flow) {
            return;
        }
        match keyword {
            "APP_SEND" => {
                self.sent.entry(unit).or_insert(at_ns);
            }
            "APP_CALL" => {
                self.called.insert(unit, at_ns);
            }
            "APP_RESPONSE" => self.answered.push((at_ns, unit)),
            _ => {
                self.received.push((at_ns, unit));
                let bytes = events.number(row, BYTES).unwrap_or(0);
                let count = self.bins.count();
                let bytes_of = self.arrived.entry(flow).or_insert_with(|| vec![0.0; count]);
                if let Some(bin) = self.bins.index(at_ns) {
                    bytes_of[bin] += bytes as f64;
                }
            }
        }
    }

    /// All lines.
    pub(super) fn lines(mut self, input: &AnalysisInput<'_>, run: &SeriesRun<'_>) -> SeriesLines {
        self.received.sort_unstable();
        let mut all = vec![(SeriesKind::Throughput, self.throughput(input, run))];
        all.extend(self.calls());
        let may_lose = run
            .records
            .iter()
            .any(|record| record.initiator.lost.is_some() || record.responder.lost.is_some());
        if may_lose && !self.received.is_empty() {
            all.push((SeriesKind::Lost, vec![self.lost()]));
            all.push((SeriesKind::Jitter, self.jitter(input, run)));
        }
        all
    }

    /// Of each pair, and of all pairs of a part together where there are several.
    fn throughput(&self, input: &AnalysisInput<'_>, run: &SeriesRun<'_>) -> Vec<SeriesLine> {
        let bins = self.bins;
        let rate = |bytes: &[f64]| -> Vec<Option<f64>> {
            let bytes = bytes.iter().enumerate();
            bytes
                .map(|(bin, bytes)| Some(bytes * 8.0 / bins.seconds(bin).max(1e-9)))
                .collect()
        };
        let mut sums: BTreeMap<usize, (u32, Vec<f64>)> = BTreeMap::new();
        let mut pairs = Vec::new();
        for (flow, bytes) in &self.arrived {
            let Some(flow) = input.index.flow(*flow) else {
                continue;
            };
            let count = bins.count();
            let (n, sum) = sums
                .entry(flow.part)
                .or_insert_with(|| (0, vec![0.0; count]));
            *n += 1;
            sum.iter_mut().zip(bytes).for_each(|(sum, one)| *sum += one);
            pairs.push(bins.line(run.name(flow.part, Some(flow.replica)), rate(bytes)));
        }
        let several = sums.into_iter().filter(|(_, (n, _))| *n > 1);
        let whole = several.map(|(part, (_, sum))| bins.line(run.name(part, None), rate(&sum)));
        whole.chain(pairs).collect()
    }

    /// Calls a second, and their response times, of all parts together.
    fn calls(&self) -> SeriesLines {
        let bins = self.bins;
        let mut took: Vec<Vec<f64>> = vec![Vec::new(); bins.count()];
        for (at_ns, unit) in &self.answered {
            if let (Some(bin), Some(called)) = (bins.index(*at_ns), self.called.get(unit)) {
                took[bin].push(at_ns.saturating_sub(*called) as f64 * 1e-9);
            }
        }
        if took.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        took.iter_mut()
            .for_each(|times| times.sort_by(f64::total_cmp));
        let rates = took.iter().enumerate();
        let rates =
            rates.map(|(bin, times)| Some(times.len() as f64 / bins.seconds(bin).max(1e-9)));
        let percentile = |share: f64| {
            // The nearest rank.
            let of = move |times: &Vec<f64>| {
                let rank = (share * times.len() as f64).ceil() as usize;
                times.get(rank.saturating_sub(1)).copied()
            };
            took.iter().map(of).collect::<Vec<_>>()
        };
        let figures = [("median", 0.5), ("p99", 0.99), ("max", 1.0)];
        let latency = figures.map(|(name, share)| bins.line(name.into(), percentile(share)));
        vec![
            (SeriesKind::Calls, vec![bins.line(String::new(), rates)]),
            (SeriesKind::Latency, latency.into()),
        ]
    }

    /// Units that never arrived, in the interval in which they were sent.
    fn lost(&self) -> SeriesLine {
        let arrived: BTreeSet<i64> = self.received.iter().map(|(_, unit)| *unit).collect();
        let mut lost = vec![0.0; self.bins.count()];
        for (unit, at_ns) in &self.sent {
            if let Some(bin) = self.bins.index(*at_ns).filter(|_| !arrived.contains(unit)) {
                lost[bin] += 1.0;
            }
        }
        self.bins.line(String::new(), lost.into_iter().map(Some))
    }

    /// The estimate of each pair at the end of each interval (RFC 3550, section 6.4.1).
    fn jitter(&self, input: &AnalysisInput<'_>, run: &SeriesRun<'_>) -> Vec<SeriesLine> {
        let count = self.bins.count();
        let mut pairs: BTreeMap<u32, JitterOfPair> = BTreeMap::new();
        for (at_ns, unit) in &self.received {
            let Some(sent) = self.sent.get(unit) else {
                continue;
            };
            let transit = *at_ns as i64 - *sent as i64;
            let (last, estimate, values) = pairs
                .entry(parts(*unit).0)
                .or_insert_with(|| (None, 0.0, vec![None; count]));
            if let Some(last) = last {
                *estimate += (transit.abs_diff(*last) as f64 - *estimate) / 16.0;
            }
            *last = Some(transit);
            if let Some(bin) = self.bins.index(*at_ns) {
                values[bin] = Some(*estimate * 1e-9);
            }
        }
        let named = pairs.into_iter().filter_map(|(flow, (_, _, values))| {
            let flow = input.index.flow(flow)?;
            let name = run.name(flow.part, Some(flow.replica));
            Some(self.bins.line(name, values))
        });
        named.collect()
    }
}
