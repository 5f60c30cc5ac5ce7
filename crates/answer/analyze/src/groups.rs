//! Groups the parts of a measurement that give one summary, and collects the counted runs of each group.
//!
//! A single part is a group of one, so that the same code computes parts and aggregates.

use crate::statistics::{SampleStatistics, cluster_half_width, to_f64};
use crate::summary::{RepeatedWork, RunMetric, RunValues};
use stackline_core::plan::{Composer, Measurement, MeasurementPart};
use stackline_core::procedure::{OperationCall, PairSide};
use stackline_core::run_record::{Histogram, RunRecord, SideRecord};
use std::collections::BTreeMap;

/// Parts of one measurement that give one summary.
#[derive(Clone, Debug)]
pub(crate) struct SummaryGroup<'p> {
    /// Indices of the parts in the measurement.
    pub(crate) indices: Vec<usize>,
    /// The parts, in the same order.
    pub(crate) parts: Vec<&'p MeasurementPart>,
    /// Whether the group is all measured parts of `parallel` or `total` together.
    pub(crate) aggregate: bool,
}

/// The groups of a measurement: each part alone; for `parallel` also all measured parts together; for `total` only these together,
/// and each background part alone.
pub(crate) fn groups(measurement: &Measurement) -> Vec<SummaryGroup<'_>> {
    let parts = || measurement.parts.iter().enumerate();
    let total = measurement.composer == Composer::Total;
    let mut groups: Vec<SummaryGroup<'_>> = parts()
        .filter(|(_, part)| !total || part.background)
        .map(|(index, part)| SummaryGroup {
            indices: vec![index],
            parts: vec![part],
            aggregate: false,
        })
        .collect();
    let (indices, measured): (Vec<_>, Vec<_>) =
        parts().filter(|(_, part)| !part.background).unzip();
    if total || measurement.composer == Composer::Parallel && measured.len() > 1 {
        groups.push(SummaryGroup {
            indices,
            parts: measured,
            aggregate: true,
        });
    }
    groups
}

impl SummaryGroup<'_> {
    /// Whether all its parts are background load, which is not measured.
    pub(crate) fn background(&self) -> bool {
        self.parts.iter().all(|part| part.background)
    }

    /// The part with this index in the measurement, if it is in the group.
    pub(crate) fn part(&self, index: usize) -> Option<&MeasurementPart> {
        let at = self.indices.iter().position(|mine| *mine == index);
        at.and_then(|at| self.parts.get(at)).copied()
    }

    /// Whether its procedures move data units (calls are not data units).
    pub(crate) fn moves_data(&self) -> bool {
        let data = |call: &&OperationCall| {
            matches!(
                call,
                OperationCall::DataRequest(_) | OperationCall::AwaitDataIndication(_)
            )
        };
        let sides = [PairSide::Initiator, PairSide::Responder];
        self.parts.iter().any(|part| {
            sides
                .iter()
                .any(|side| part.procedure.calls(*side).iter().any(data))
        })
    }

    /// The counted (not warm-up) runs that have a record of every part of the group, in order. `records` are those of the measurement.
    pub(crate) fn runs<'r>(
        &self,
        records: impl Iterator<Item = &'r RunRecord>,
    ) -> Vec<GroupRun<'r>> {
        let mut runs: BTreeMap<u32, Vec<&RunRecord>> = BTreeMap::new();
        for record in records.filter(|record| !record.warmup && self.indices.contains(&record.part))
        {
            runs.entry(record.run).or_default().push(record);
        }
        let data = self.moves_data();
        let whole = runs
            .into_values()
            .filter(|records| records.len() >= self.indices.len());
        whole.map(|records| GroupRun { records, data }).collect()
    }
}

/// One counted run of a group: a record of each of its parts.
#[derive(Clone, Debug)]
pub(crate) struct GroupRun<'r> {
    pub(crate) records: Vec<&'r RunRecord>,
    /// Whether the group moves data units.
    data: bool,
}

impl GroupRun<'_> {
    /// The longest measured period of its parts, in seconds.
    pub(crate) fn elapsed_s(&self) -> f64 {
        self.records
            .iter()
            .map(|record| elapsed_s(record))
            .fold(0.0, f64::max)
    }

    /// Bytes of data units that arrived; 0 if the group makes only calls.
    pub(crate) fn bytes(&self) -> u64 {
        if self.data {
            self.records.iter().map(|record| record.data_bytes()).sum()
        } else {
            0
        }
    }

    /// The number of data units that arrived; if none, of calls made; if none, of connections.
    pub(crate) fn units(&self) -> u64 {
        let arrived = |r: &&RunRecord| r.initiator.received_units + r.responder.received_units;
        let units = if self.data {
            self.records.iter().map(arrived).sum()
        } else {
            0
        };
        let counts = [
            units,
            self.merged(|r| &r.calls).n(),
            self.merged(|r| &r.connects).n(),
        ];
        counts.into_iter().find(|n| *n > 0).unwrap_or(0)
    }

    /// Bytes of data units over the measured period, bit/s; `None` without data, or if a side's bytes do not belong to that period.
    pub(crate) fn throughput_bit_s(&self) -> Option<f64> {
        let (bytes, elapsed) = (self.bytes(), self.elapsed_s());
        let timed = self.sides().all(SideRecord::bytes_are_timed);
        (timed && bytes > 0 && elapsed > 0.0).then(|| to_f64(bytes) * 8.0 / elapsed)
    }

    /// How many calls or connections the run made.
    pub(crate) fn times(&self, work: RepeatedWork) -> u64 {
        match work {
            RepeatedWork::Call => self.count_and_sum(|r| &r.calls).0,
            RepeatedWork::Connection => self.count_and_sum(|r| &r.connects).0,
        }
    }

    /// Calls or connections per second.
    pub(crate) fn rate_per_s(&self, work: RepeatedWork) -> Option<f64> {
        let (times, elapsed) = (self.times(work), self.elapsed_s());
        (times > 0 && elapsed > 0.0).then(|| to_f64(times) / elapsed)
    }

    /// For runs that open connections and make calls on them: the mean time of one connection with its calls, in seconds (the time of
    /// all pairs over the number of connections).
    pub(crate) fn transaction_s(&self) -> Option<f64> {
        let (calls, connections) = (
            self.times(RepeatedWork::Call),
            self.times(RepeatedWork::Connection),
        );
        let spent = |record: &&RunRecord| elapsed_s(record) * f64::from(record.replicas.max(1));
        let made = self.records.iter().filter(|record| record.connects.n() > 0);
        (calls > 0 && connections > 0).then(|| made.map(spent).sum::<f64>() / to_f64(connections))
    }

    /// CPU seconds of both sides over `work`; `None` if there is no work or no CPU time.
    fn cpu_s_per(&self, work: f64) -> Option<f64> {
        let cpu: f64 = self.sides().map(|side| side.usage.cpu_s()).sum();
        (work > 0.0 && cpu > 0.0).then(|| cpu / work)
    }

    /// The histograms of all its parts merged into one.
    pub(crate) fn merged(&self, get: fn(&RunRecord) -> &Histogram) -> Histogram {
        Histogram::merged(self.records.iter().map(|record| get(record)))
    }

    /// The number and the sum (ns) of the values of a histogram, over all parts.
    fn count_and_sum(&self, get: fn(&RunRecord) -> &Histogram) -> (u64, u64) {
        self.records
            .iter()
            .map(|record| get(record))
            .fold((0, 0), |(n, sum), h| (n + h.n(), sum + h.sum))
    }

    fn mean_s(&self, get: fn(&RunRecord) -> &Histogram) -> Option<f64> {
        let (n, sum) = self.count_and_sum(get);
        (n > 0).then(|| to_f64(sum) / to_f64(n) / 1e9)
    }

    /// Both sides of all its records.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &SideRecord> {
        self.records
            .iter()
            .flat_map(|record| [&record.initiator, &record.responder])
    }
}

/// The measured period of one record, in seconds. With several replicas it is from the first start to the last stop, if known.
pub(crate) fn elapsed_s(record: &RunRecord) -> f64 {
    let ns = if record.replicas > 1 && record.span_ns > 0 {
        record.span_ns
    } else {
        record.elapsed_ns
    };
    to_f64(ns) / 1e9
}

/// Which work rates and costs are about: calls if any were made, else connections; `None` without either.
pub(crate) fn work(runs: &[GroupRun<'_>]) -> Option<RepeatedWork> {
    [RepeatedWork::Call, RepeatedWork::Connection]
        .into_iter()
        .find(|work| runs.iter().any(|run| run.times(*work) > 0))
}

/// The values per run by which runs are judged and compared.
pub(crate) fn run_values(runs: &[GroupRun<'_>]) -> RunValues {
    let work = work(runs);
    RunValues {
        throughput_bit_s: runs.iter().filter_map(GroupRun::throughput_bit_s).collect(),
        response_s: runs
            .iter()
            .filter_map(|run| run.mean_s(|r| &r.calls))
            .collect(),
        connect_s: runs
            .iter()
            .filter_map(|run| run.mean_s(|r| &r.connects))
            .collect(),
        cpu_s_per_gb: runs
            .iter()
            .filter_map(|run| run.cpu_s_per(to_f64(run.bytes()) / 1e9))
            .collect(),
        cpu_us_per_call: runs
            .iter()
            .filter_map(|run| run.cpu_s_per(to_f64(run.times(work?)) / 1e6))
            .collect(),
        ..RunValues::default()
    }
}

/// Half the width of the main metric's 95 % interval over its mean; `None` with fewer than two runs.
pub(crate) fn half_width_share(runs: &[GroupRun<'_>]) -> Option<f64> {
    let values = run_values(runs);
    let clusters = |get: fn(&RunRecord) -> &Histogram| -> Option<f64> {
        let sums: Vec<(u64, u64)> = runs
            .iter()
            .map(|run| run.count_and_sum(get))
            .filter(|(n, _)| *n > 0)
            .collect();
        let mean = to_f64(sums.iter().map(|(_, sum)| sum).sum())
            / to_f64(sums.iter().map(|(n, _)| n).sum());
        cluster_half_width(&sums)
            .filter(|_| mean > 0.0)
            .map(|half| half / mean)
    };
    match values.main()? {
        RunMetric::Throughput => {
            let over_runs = SampleStatistics::from_values(&values.throughput_bit_s)?;
            over_runs.half_width().map(|half| half / over_runs.mean)
        }
        RunMetric::Response => clusters(|r| &r.calls),
        RunMetric::Connect => clusters(|r| &r.connects),
        _ => None,
    }
}
