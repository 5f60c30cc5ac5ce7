//! What happened when in one run of a measurement: throughput, calls and latency, windows, round trips, retransmissions, queues, losses,
//! jitter and processors, each by intervals of one time axis that begins when the clock starts.
//!
//! Two sources: the sums that endpoints keep (`run --interval`), and events (`run --trace`). What neither has is absent, with the reason.

pub mod interval_table;
mod recorded;
mod series_data;
mod traced;
mod traced_queues;
mod traced_units;

use crate::findings::AnalysisInput;
pub use series_data::{
    AbsentSeries, MOST_LINES, SeriesKind, SeriesLine, SeriesPanel, SeriesPoint, TimeSeries,
};
use series_data::{SeriesLines, SeriesRun};
use stackline_core::run_record::RunRecord;

/// Which series are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesQuestion {
    /// Index of the measurement; by default the first of which something was kept.
    pub measurement: Option<usize>,
    /// Index of the run; by default the first of which something was kept.
    pub run: Option<u32>,
    /// The length of an interval of events, s; by default, a run has about 60.
    pub every_s: Option<f64>,
    /// What is shown; all if empty.
    pub only: Vec<SeriesKind>,
}

/// The series of a run.
///
/// # Errors
/// One sentence: the measurement or the run does not exist, nothing was kept of it, or the intervals are too short.
pub fn time_series(
    input: &AnalysisInput<'_>,
    question: &SeriesQuestion,
) -> Result<TimeSeries, String> {
    let run = chosen_run(input, question)?;
    let recorded = recorded::lines(&run);
    let bins = traced::bins(input, &run, question.every_s)?;
    let traced = bins.map_or_else(Vec::new, |bins| traced::lines(input, &run, bins));
    let recorded_every_s = recorded::every_s(&run);
    let recorded_length_s = recorded::length_s(&run);
    // Where calls are made, no other data is expected.
    let has_calls = [&recorded, &traced]
        .into_iter()
        .flatten()
        .any(|(kind, _)| *kind == SeriesKind::Calls);
    let (mut panels, mut absent) = (Vec::new(), Vec::new());
    for kind in SeriesKind::ALL {
        if !question.only.is_empty() && !question.only.contains(&kind) {
            continue;
        }
        let of = |all: &SeriesLines| {
            let found = all.iter().find(|(found, _)| *found == kind);
            found.map(|(_, lines)| lines.clone())
        };
        // Sums of endpoints count from intended moments; monitors see connections more often.
        let mine = || of(&recorded).map(|lines| (lines, recorded_every_s));
        let events = || of(&traced).zip(bins.map(|bins| bins.every_ns as f64 * 1e-9));
        let is_monitored = matches!(
            kind,
            SeriesKind::Window | SeriesKind::RoundTrip | SeriesKind::Retransmissions
        );
        let found = match is_monitored {
            true => events().or_else(mine),
            false => mine().or_else(events),
        };
        match found {
            Some((lines, every_s)) => panels.push(panel(kind, every_s, lines)),
            None => absent.push(AbsentSeries {
                kind,
                reason: reason(kind, &run, bins.is_some()),
                is_notable: question.only.contains(&kind)
                    || !(kind.is_special() || kind == SeriesKind::Throughput && has_calls),
            }),
        }
    }
    let traced_length_s = bins.map(|bins| bins.length_ns as f64 * 1e-9);
    Ok(TimeSeries {
        measurement: run.index,
        text: run.measurement.text.clone(),
        run: run.run,
        length_s: traced_length_s.unwrap_or(0.0).max(recorded_length_s),
        panels,
        absent,
    })
}

/// A panel of the lines with the largest values.
fn panel(kind: SeriesKind, every_s: f64, mut lines: Vec<SeriesLine>) -> SeriesPanel {
    let most = |line: &SeriesLine| {
        let values = line.points.iter().map(|point| point.value);
        values.fold(0.0, f64::max)
    };
    let left_out = lines.len().saturating_sub(MOST_LINES);
    if left_out > 0 {
        let mut largest: Vec<f64> = lines.iter().map(most).collect();
        largest.sort_by(|a, b| b.total_cmp(a));
        let least = largest[MOST_LINES - 1];
        lines.retain(|line| most(line) >= least);
        lines.truncate(MOST_LINES);
    }
    if let [only] = &mut lines[..]
        && kind != SeriesKind::Queue
        && kind != SeriesKind::Processor
    {
        only.name.clear();
    }
    SeriesPanel {
        kind,
        every_s,
        lines,
        left_out,
    }
}

/// The run that the question is about.
fn chosen_run<'r>(
    input: &AnalysisInput<'r>,
    question: &SeriesQuestion,
) -> Result<SeriesRun<'r>, String> {
    let plan = input.plan;
    if let Some(index) = question
        .measurement
        .filter(|n| *n >= plan.measurements.len())
    {
        let count = plan.measurements.len();
        return Err(format!(
            "measurement {} does not exist: the run has {count}",
            index + 1
        ));
    }
    let mut known = false;
    let wanted = |record: &&RunRecord| {
        !record.warmup
            && question.measurement.is_none_or(|n| n == record.measurement)
            && question.run.is_none_or(|n| n == record.run)
    };
    for record in input.records.iter().filter(wanted) {
        known = true;
        let Some(measurement) = plan.measurements.get(record.measurement) else {
            continue;
        };
        let span = input.index.runs.iter().find(|span| {
            let is_same = span.measurement == record.measurement && span.run == record.run;
            is_same && !span.warmup
        });
        let records = input.records.iter().filter(|other| {
            let is_same = other.measurement == record.measurement && other.run == record.run;
            is_same && !other.warmup
        });
        let run = SeriesRun {
            measurement,
            index: record.measurement,
            run: record.run,
            records: records.collect(),
            span,
        };
        if span.is_some() || recorded::length_s(&run) > 0.0 {
            return Ok(run);
        }
    }
    Err(match (known, question.run) {
        (true, _) => NOTHING_KEPT.into(),
        (false, Some(run)) => format!("run {} was not made, or not kept", run + 1),
        (false, None) => "no run was kept".into(),
    })
}

/// Why a run has no series at all.
pub const NOTHING_KEPT: &str =
    "of this run neither intervals nor events were kept, so nothing is known over time";

fn reason(kind: SeriesKind, run: &SeriesRun<'_>, is_traced: bool) -> String {
    let has_intervals = recorded::length_s(run) > 0.0;
    let words = match kind {
        SeriesKind::Queue | SeriesKind::Processor if !is_traced => "not traced: run with --trace",
        SeriesKind::Window | SeriesKind::RoundTrip if !is_traced && !has_intervals => {
            "not traced: run with --trace"
        }
        SeriesKind::Queue if run.measurement.across.is_none() => "no modelled network",
        SeriesKind::Queue => "no packet entered a queue",
        SeriesKind::Processor => "no monitor reported it",
        SeriesKind::Window | SeriesKind::RoundTrip => "the stack does not report it",
        SeriesKind::Retransmissions => "none was seen",
        SeriesKind::Throughput => "no data unit arrived",
        SeriesKind::Calls | SeriesKind::Latency => "no call ended",
        SeriesKind::Lost => "none was lost, or the stack does not lose any",
        SeriesKind::Jitter => "of datagrams at even intervals, or traced, alone",
    };
    words.into()
}

#[cfg(test)]
mod tests;
