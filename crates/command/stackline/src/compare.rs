//! `stackline compare`: compares two kept runs, or the stacks of one run, by ratios; compares two traces segment by
//! segment.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::assemble::LifelineOptions;
use stackline_analyze::findings::find_named_requests;
use stackline_analyze::loaded_run::assembly::{MOST_EVENTS, assembled};
use stackline_analyze::loaded_run::{LoadedRun, incomplete};
use stackline_analyze::{
    GateOutcome, GateVerdict, MeasurementComparison, Pairing, SegmentComparison, Summary,
    judge_gate,
};
use stackline_runs::events::{event_files, read_index};
use stackline_runs::{StoredRun, directory_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compares the second run with the first, or the stacks of one run with its first stack.
pub(crate) fn compare(flags: &flags::Compare) -> Result {
    let Compared {
        measurements: comparisons,
        requests,
        segments,
    } = match &flags.after {
        Some(after) => pair(&flags.before, after)?,
        None => Compared {
            measurements: stackline_analyze::compare_stacks(&read(&StoredRun::open(
                &flags.before,
            )?)),
            ..Compared::default()
        },
    };
    if comparisons
        .iter()
        .all(|comparison| comparison.metrics.is_empty())
        && segments.is_empty()
    {
        let hint = match &flags.after {
            Some(_) => {
                "`stackline compare A B` compares traces, and measurements with the same text or application type"
            }
            None => {
                "list several stacks, as in `over tcp, unix`, or compare two runs with `stackline compare A B`"
            }
        };
        return Err(Error::input("nothing to compare").hint(hint));
    }
    let after = flags.after.as_ref();
    if let Some(run) = after.and_then(|after| itself(&flags.before, after)) {
        output::say(&format_args!(
            "note: both arguments name the same run, {}; comparing it with itself",
            run.display()
        ));
    }
    // The gate judges measurements where there are any; between traces it judges the requests, or else the first
    // segment, the whole path of a unit.
    let decisive = match comparisons.is_empty() {
        false => &[][..],
        true if requests.is_empty() => &segments[..segments.len().min(1)],
        true => &requests,
    };
    let gate = flags
        .fail_above
        .map(|limit| judge_gate(&comparisons, decisive, limit));
    let compared = Compared {
        measurements: comparisons,
        requests,
        segments,
    };
    print(&compared, gate.as_ref(), flags.json)?;
    let Some(gate) = gate else {
        return Ok(Exit::Done);
    };
    note_unlike_texts(flags, &compared.measurements);
    Ok(report_gate(&gate))
}

fn print(compared: &Compared, gate: Option<&GateOutcome>, json: bool) -> Result<()> {
    let Compared {
        measurements: comparisons,
        requests,
        segments,
    } = compared;
    if json {
        let mut json = stackline_report::comparison_json(comparisons);
        json["segments"] = stackline_report::segment_comparison_json(segments);
        if !requests.is_empty() {
            json["requests"] = stackline_report::segment_comparison_json(requests);
        }
        if let Some(gate) = gate {
            json["gate"] = stackline_report::gate_json(gate);
        }
        output::json(&json, false)?;
    } else {
        let mut texts = Vec::new();
        texts.extend((!comparisons.is_empty()).then(|| stackline_report::comparison(comparisons)));
        texts
            .extend((!requests.is_empty()).then(|| stackline_report::request_comparison(requests)));
        texts
            .extend((!segments.is_empty()).then(|| stackline_report::segment_comparison(segments)));
        output::print(&texts.join("\n"))?;
    }
    Ok(())
}

/// Notes that the gate compares measurements of two runs whose texts differ, for instance because an option was
/// changed.
fn note_unlike_texts(flags: &flags::Compare, comparisons: &[MeasurementComparison]) {
    for comparison in comparisons.iter().filter(|_| flags.after.is_some()) {
        if let (Pairing::Position, Some(a), Some(b)) =
            (comparison.pairing, &comparison.a, &comparison.b)
        {
            output::say(&format_args!(
                "note: the texts differ: `{}` is compared with `{}`",
                a.text, b.text
            ));
        }
    }
}

/// Prints the result of a gate and returns its exit code.
fn report_gate(outcome: &GateOutcome) -> Exit {
    let limit = outcome.limit * 100.0;
    match (outcome.verdict, &outcome.worst) {
        (GateVerdict::Worse, Some(worst)) => {
            output::say(&format_args!(
                "failed: {} is worse by {:.1} %, over the {limit:.1} % limit",
                worst.name,
                worst.by * 100.0
            ));
            Exit::Worse
        }
        (GateVerdict::Undecided, _) => {
            output::say(&format_args!(
                "cannot decide whether anything is worse by more than {limit:.1} %: {}",
                outcome.reasons.join("; ")
            ));
            Exit::Unclear
        }
        _ => {
            output::say(&format_args!(
                "passed: nothing is shown to be worse by more than {limit:.1} %"
            ));
            if let Some(possible) = &outcome.possible {
                output::say(&format_args!(
                    "note: {} may be up to {:.0} % worse (95 % confidence): more runs would narrow this",
                    possible.name,
                    possible.by * 100.0
                ));
            }
            Exit::Done
        }
    }
}

/// The run's directory, if both names refer to the same run.
fn itself(before: &Path, after: &Path) -> Option<PathBuf> {
    let real = |name| directory_of(name).and_then(|directory| directory.canonicalize().ok());
    real(before).filter(|run| real(after).as_ref() == Some(run))
}

/// The comparisons of two runs.
#[derive(Default)]
struct Compared {
    measurements: Vec<MeasurementComparison>,
    /// Requests of traced programs, by name.
    requests: Vec<SegmentComparison>,
    segments: Vec<SegmentComparison>,
}

/// Compares the measurements of two runs, and their traces where both have one.
fn pair(before: &Path, after: &Path) -> Result<Compared> {
    let runs = [
        StoredRun::open_events(before)?,
        StoredRun::open_events(after)?,
    ];
    let [first, second] = runs.each_ref().map(read);
    let comparisons = stackline_analyze::compare(&first, &second);
    let has_events = |run: &StoredRun| event_files(&run.path).is_ok_and(|files| !files.is_empty());
    // Units of several measurements cannot be compared with each other.
    let is_one = |run: &StoredRun| run.plan.measurements.len() <= 1;
    if !runs.iter().all(|run| has_events(run) && is_one(run)) {
        return Ok(Compared {
            measurements: comparisons,
            ..Compared::default()
        });
    }
    let trace = |run: &StoredRun| -> Result<_> {
        let (lifelines, note) = assembled(
            &run.path,
            read_index(&run.path)?.as_ref(),
            &LifelineOptions::default(),
            MOST_EVENTS,
        )?;
        note.iter()
            .for_each(|note| output::say(&format_args!("note: {note}")));
        Ok(lifelines)
    };
    let segments = stackline_analyze::compare_segments(&trace(&runs[0])?, &trace(&runs[1])?);
    // Only traces have requests; the events of a measured run need not be read again.
    if !runs.iter().all(|run| run.plan.measurements.is_empty()) {
        return Ok(Compared {
            measurements: comparisons,
            segments,
            ..Compared::default()
        });
    }
    let requests = [before, after].map(|run| -> Result<_> {
        let loaded = LoadedRun::whatever(run, MOST_EVENTS)?;
        Ok(find_named_requests(&loaded.input()))
    });
    let [first, second] = requests;
    let requests = stackline_analyze::compare_requests(&first?, &second?);
    Ok(Compared {
        measurements: comparisons,
        // A median over requests of different names says nothing beside the medians by name.
        segments: match requests.len() {
            0 | 1 => segments,
            _ => segments.into_iter().filter(is_of_two_points).collect(),
        },
        requests,
    })
}

/// Whether a compared time is between two points, and not a unit's whole time.
const fn is_of_two_points(segment: &SegmentComparison) -> bool {
    segment.from.is_some() && segment.to.is_some()
}

/// The summaries of a run; prints warnings about it.
fn read(run: &StoredRun) -> Vec<Summary> {
    incomplete(run, "compared").iter().for_each(output::say);
    let summaries = stackline_analyze::summarise(&run.plan, &run.records);
    overload(&run.path, &summaries);
    summaries
}

/// Warns of measurements in which the emulator could not keep up.
fn overload(path: &Path, summaries: &[Summary]) {
    let overloaded = summaries.iter().filter(|summary| summary.overloaded() > 0);
    let measurements: BTreeMap<usize, &Summary> = overloaded
        .map(|summary| (summary.measurement, summary))
        .collect();
    for summary in measurements.values() {
        let (n, text) = (summary.overloaded(), &summary.text);
        let runs = stackline_core::units::counted(summary.runs as u64, "run");
        let path = path.display();
        output::say(&format_args!(
            "warning: {path}: in {n} of {runs} of `{text}`, the emulator was overloaded; the figures reflect the machine, not the network"
        ));
    }
}
