//! Keeps some lifelines of a run, with errors where none is left; and what has to be said beside those that are shown.

use crate::duration_filter::DurationFilter;
use crate::lifelines::Lifelines;
use crate::loaded_run::missing;
use crate::segments::lifeline_duration_ns;
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::Index;
use stackline_core::units;
use stackline_runs::StoredRun;

/// Keeps only the lifelines of one measurement, which is counted from 0.
///
/// # Errors
/// If it has none.
pub fn keep_measurement(
    made: &mut Lifelines,
    index: Option<&Index>,
    measurement: usize,
) -> Result<()> {
    let of = |flow: u32| {
        index
            .and_then(|index| index.flow(flow))
            .map(|flow| flow.measurement)
    };
    made.lines
        .retain(|line| line.flow.and_then(of) == Some(measurement));
    if made.lines.is_empty() {
        let last = index.and_then(|index| index.flows.iter().map(|flow| flow.measurement).max());
        let hint = last.map_or_else(
            || "events of other programs do not belong to a measurement".to_owned(),
            |last| format!("the last measurement traced is {}", last + 1),
        );
        let message = format!("measurement {} has no lifelines", measurement + 1);
        return Err(Error::input(message).hint(hint));
    }
    Ok(())
}

/// Keeps only the lifelines whose duration passes the filter.
///
/// # Errors
/// If there is a limit and no lifeline is left.
pub fn keep_durations(made: &mut Lifelines, chosen: DurationFilter) -> Result<()> {
    let longest = made
        .lines
        .iter()
        .filter(|line| line.has_arrived())
        .map(|line| lifeline_duration_ns(made, line))
        .max();
    chosen.leave(made);
    if made.lines.is_empty() && !chosen.is_any() {
        let hint = longest.map_or_else(
            || "no unit arrived, and only units that arrived have a time".to_owned(),
            |ns| format!("the slowest took {}", units::format_time(ns as f64 / 1e9)),
        );
        return Err(Error::input("no unit has a time in that range").hint(hint));
    }
    Ok(())
}

/// Notes about the events of a run and their completeness. `unseen` says what its trace left out.
#[must_use]
pub fn lifeline_notes(
    run: &StoredRun,
    index: Option<&Index>,
    made: &Lifelines,
    unseen: &[String],
) -> Vec<String> {
    let mut notes = Vec::new();
    if !run.complete {
        let reason = run.reason.as_deref().unwrap_or("it was killed");
        notes.push(format!(
            "The run is incomplete ({reason}); its contents so far are shown."
        ));
    }
    notes.extend(missing(run).map(|what| format!("In this run, {what}; the others are shown.")));
    let Some(index) = index else { return notes };
    if index.runs.is_empty() {
        // These are mostly about the clocks of imported logs.
        let traces = index.hosts.values().flat_map(|trace| &trace.notes);
        notes.extend(traces.map(|note| format!("{note}.")));
    }
    notes.extend(unseen.iter().map(|line| format!("{line}.")));
    for (host, trace) in index.hosts.iter().filter(|(_, trace)| trace.lost > 0) {
        let lost = trace.lost;
        notes.push(format!(
            "Events from {host} lost because a buffer was full: {lost}. A lifeline may end before its unit does."
        ));
    }
    let mut measurements: Vec<usize> = made
        .lines
        .iter()
        .filter_map(|line| Some(index.flow(line.flow?)?.measurement))
        .collect();
    measurements.sort_unstable();
    measurements.dedup();
    if measurements.len() > 1 {
        let count = measurements.len();
        notes.push(format!(
            "Units of {count} measurements are shown together; select one with --measurement NUMBER."
        ));
    }
    notes
}
