//! Two kept runs, or the stacks of one, compared by their measurements and, where both were traced, by their traces.

use crate::assemble::LifelineOptions;
use crate::compare::{MeasurementComparison, Pairing, compare, compare_stacks};
use crate::compare_segments::{SegmentComparison, compare_requests, compare_segments};
use crate::findings::find_named_requests;
use crate::gate::{GateOutcome, judge_gate};
use crate::loaded_run::assembly::{MOST_EVENTS, assembled};
use crate::loaded_run::{LoadedRun, incomplete};
use crate::summarise::summarise;
use crate::summary::Summary;
use stackline_core::error::Result;
use stackline_core::units::counted;
use stackline_runs::events::{event_files, read_index};
use stackline_runs::{StoredRun, directory_of, results_digest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The comparisons of two runs, or of the stacks of one.
#[derive(Clone, Debug, Default)]
pub struct RunComparison {
    /// Measurements with the same text or application type.
    pub measurements: Vec<MeasurementComparison>,
    /// Requests of traced programs, by name.
    pub requests: Vec<SegmentComparison>,
    /// Times between points of traces.
    pub segments: Vec<SegmentComparison>,
    /// The digest of the results, if both runs have the same to the last bit.
    pub same_digest: Option<String>,
}

impl RunComparison {
    /// Whether no figure has a counterpart.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_no_metric = |comparison: &MeasurementComparison| comparison.metrics.is_empty();
        self.measurements.iter().all(has_no_metric) && self.segments.is_empty()
    }

    /// Judges it against a limit, a share: 0.05 is 5 %. The gate judges measurements where there are any; between traces it judges the
    /// requests, or else the first segment, the whole path of a unit.
    #[must_use]
    pub fn judge(&self, limit: f64) -> GateOutcome {
        let decisive = match self.measurements.is_empty() {
            false => &[][..],
            true if self.requests.is_empty() => &self.segments[..self.segments.len().min(1)],
            true => &self.requests,
        };
        judge_gate(&self.measurements, decisive, limit)
    }

    /// The texts of measurements that are compared although they differ.
    pub fn unlike_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let by_position =
            |comparison: &&MeasurementComparison| comparison.pairing == Pairing::Position;
        let all = self.measurements.iter().filter(by_position);
        all.filter_map(|one| Some((one.a.as_ref()?.text.as_str(), one.b.as_ref()?.text.as_str())))
    }
}

/// Compares the stacks of one run, each with its first. `warn` gets what reduces the meaning of the comparison.
///
/// # Errors
/// If the run cannot be read.
pub fn compare_stacks_of(run: &Path, warn: &mut dyn FnMut(String)) -> Result<RunComparison> {
    let run = StoredRun::open(run)?;
    Ok(RunComparison {
        measurements: compare_stacks(&read(&run, warn)),
        ..RunComparison::default()
    })
}

/// Compares the measurements of two runs, and their traces where both have one. `warn` gets what reduces the meaning of the comparison.
///
/// # Errors
/// If a run cannot be read.
pub fn compare_runs(
    before: &Path,
    after: &Path,
    warn: &mut dyn FnMut(String),
) -> Result<RunComparison> {
    let runs = [
        StoredRun::open_events(before)?,
        StoredRun::open_events(after)?,
    ];
    let [first, second] = runs.each_ref().map(|run| read(run, warn));
    let comparisons = compare(&first, &second);
    let same_digest = same_results(&runs[0], &runs[1])?;
    let has_events = |run: &StoredRun| event_files(&run.path).is_ok_and(|files| !files.is_empty());
    // Units of several measurements cannot be compared with each other.
    let is_one = |run: &StoredRun| run.plan.measurements.len() <= 1;
    if !runs.iter().all(|run| has_events(run) && is_one(run)) {
        return Ok(RunComparison {
            measurements: comparisons,
            same_digest,
            ..RunComparison::default()
        });
    }
    let mut trace = |run: &StoredRun| -> Result<_> {
        let (lifelines, note) = assembled(
            &run.path,
            read_index(&run.path)?.as_ref(),
            &LifelineOptions::default(),
            MOST_EVENTS,
        )?;
        note.iter().for_each(|note| warn(format!("note: {note}")));
        Ok(lifelines)
    };
    let segments = compare_segments(&trace(&runs[0])?, &trace(&runs[1])?);
    // Only traces have requests; the events of a measured run need not be read again.
    if !runs.iter().all(|run| run.plan.measurements.is_empty()) {
        return Ok(RunComparison {
            measurements: comparisons,
            segments,
            same_digest,
            ..RunComparison::default()
        });
    }
    let requests = [before, after].map(|run| -> Result<_> {
        let loaded = LoadedRun::whatever(run, MOST_EVENTS)?;
        Ok(find_named_requests(&loaded.input()))
    });
    let [first, second] = requests;
    let requests = compare_requests(&first?, &second?);
    Ok(RunComparison {
        measurements: comparisons,
        // A median over requests of different names says nothing beside the medians by name.
        segments: match requests.len() {
            0 | 1 => segments,
            _ => segments.into_iter().filter(is_of_two_points).collect(),
        },
        requests,
        same_digest,
    })
}

/// The digest of the results of both runs, if they have some and all are equal.
fn same_results(first: &StoredRun, second: &StoredRun) -> Result<Option<String>> {
    if first.records.is_empty() || first.records.len() != second.records.len() {
        return Ok(None);
    }
    let digest = results_digest(&first.records)?;
    Ok((results_digest(&second.records)? == digest).then_some(digest))
}

/// Whether a compared time is between two points, and not a unit's whole time.
const fn is_of_two_points(segment: &SegmentComparison) -> bool {
    segment.from.is_some() && segment.to.is_some()
}

/// The summaries of a run, with warnings about it.
fn read(run: &StoredRun, warn: &mut dyn FnMut(String)) -> Vec<Summary> {
    incomplete(run, "compared").into_iter().for_each(&mut *warn);
    let summaries = summarise(&run.plan, &run.records);
    overload(&run.path, &summaries, warn);
    summaries
}

/// Warns of measurements in which the emulator could not keep up.
fn overload(path: &Path, summaries: &[Summary], warn: &mut dyn FnMut(String)) {
    let overloaded = summaries.iter().filter(|summary| summary.overloaded() > 0);
    let measurements: BTreeMap<usize, &Summary> = overloaded
        .map(|summary| (summary.measurement, summary))
        .collect();
    for summary in measurements.values() {
        let (n, text) = (summary.overloaded(), &summary.text);
        let runs = counted(summary.runs as u64, "run");
        let path = path.display();
        warn(format!(
            "warning: {path}: in {n} of {runs} of `{text}`, the emulator was overloaded; the figures reflect the machine, not the network"
        ));
    }
}

/// The run's directory, if both names refer to the same run.
#[must_use]
pub fn same_run(before: &Path, after: &Path) -> Option<PathBuf> {
    let real = |name| directory_of(name).and_then(|directory| directory.canonicalize().ok());
    real(before).filter(|run| real(after).as_ref() == Some(run))
}
