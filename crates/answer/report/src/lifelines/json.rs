//! The stable schema of `stackline lifelines --json`, described in `docs/JSON.md`. Fields may be added, but never renamed or removed.

use super::Shown;
use serde_json::{Value, json as object};
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, LifelinePoint};
use stackline_analyze::names::{SENDS_AGAIN, segment_name};
use stackline_analyze::segments::{LifelineSegment, lifeline_duration_ns};
use stackline_analyze::stages::Stages;

/// The whole report as JSON; with `lines`, also every line with its passages.
#[must_use]
pub fn lifelines_json(shown: &Shown<'_>, lines: bool) -> Value {
    let (lifelines, statistics) = (shown.lifelines, shown.statistics);
    let stages = Stages::from_lifelines(lifelines);
    let every = || {
        lifelines
            .lines
            .iter()
            .map(|line| one(shown, line))
            .collect::<Vec<_>>()
    };
    object!({
        "units": lifelines.lines.len(),
        "points": lifelines.points.iter().zip(&stages.of).map(|(of, stage)| staged(of, *stage)).collect::<Vec<_>>(),
        "stages": stages.names,
        "marked": lifelines.marked.iter().map(point).collect::<Vec<_>>(),
        "by": shown.by,
        "groups": lifelines.groups,
        "clock_error_ns": lifelines.clock_error_ns,
        "outcomes": statistics.outcomes.iter().map(|count| object!({
            "connections": count.connections, "group": count.group, "outcome": name(count.outcome), "at": at(count.outcome), "units": count.lines,
        })).collect::<Vec<_>>(),
        "requests": shown.requests,
        "whole": statistics.whole,
        "segments": statistics.segments.iter().map(|one| segment(&lifelines.points, one)).collect::<Vec<_>>(),
        "by_stage": statistics.by_stage.as_ref().map(|stages| object!({
            "points": stages.points.iter().map(point).collect::<Vec<_>>(),
            "segments": stages.segments.iter().map(|one| segment(&stages.points, one)).collect::<Vec<_>>(),
        })),
        "reached": statistics.reached,
        "rates": statistics.rates,
        "blocked": statistics.blocked,
        "synchrony": statistics.synchrony.iter().map(|pair| object!({
            "a": pair.a, "b": pair.b, "share": pair.share, "expected": pair.expected, "p": pair.p, "seen": pair.is_significant(),
        })).collect::<Vec<_>>(),
        "together": statistics.together,
        "profiles": statistics.profiles,
        "slowest": statistics.slowest.iter().map(|line| one(shown, &lifelines.lines[*line as usize])).collect::<Vec<_>>(),
        "lines": if lines { Value::from(every()) } else { Value::Null },
        "notes": shown.notes,
    })
}

fn point(point: &LifelinePoint) -> Value {
    object!(point)
}

/// A point on the units' way, with its stage.
fn staged(of: &LifelinePoint, stage: u32) -> Value {
    let mut value = point(of);
    value["stage"] = stage.into();
    value
}

/// A segment with its name.
fn segment(points: &[LifelinePoint], segment: &LifelineSegment) -> Value {
    let point = |at: u32| &points[at as usize];
    let mut value = object!(segment);
    value["name"] = match segment.waits {
        true => SENDS_AGAIN.into(),
        false => segment_name(point(segment.from), point(segment.to)).into(),
    };
    value
}

fn one(shown: &Shown<'_>, line: &Lifeline) -> Value {
    let passages = |passages: &[LifelinePassage]| -> Vec<Value> {
        passages
            .iter()
            .map(|passage| object!({ "at_ns": passage.at_ns, "point": passage.point }))
            .collect()
    };
    let times = if let LifelineOutcome::Retried { times } = line.outcome {
        Some(times)
    } else {
        None
    };
    object!({
        "unit": line.unit,
        "name": line.unit.number().and_then(|unit| shown.names.get(&unit)),
        "group": line.group,
        "flow": line.flow,
        "bytes": line.bytes,
        "outcome": name(line.outcome),
        "at": at(line.outcome),
        "times": times,
        "took_ns": lifeline_duration_ns(shown.lifelines, line),
        "passages": passages(shown.lifelines.passages_of(line)),
        "marks": passages(shown.lifelines.marks_of(line)),
    })
}

const fn name(outcome: LifelineOutcome) -> &'static str {
    match outcome {
        LifelineOutcome::Complete => "complete",
        LifelineOutcome::CacheHit => "cache_hit",
        LifelineOutcome::Retried { .. } => "retried",
        LifelineOutcome::Flushed { .. } => "flushed",
        LifelineOutcome::NeverArrived { .. } => "never_arrived",
        LifelineOutcome::Unfinished { .. } => "unfinished",
        LifelineOutcome::Headless { .. } => "headless",
    }
}

/// The point where a line ends or begins, for outcomes that have one.
const fn at(outcome: LifelineOutcome) -> Option<u32> {
    match outcome {
        LifelineOutcome::Flushed { after }
        | LifelineOutcome::NeverArrived { after }
        | LifelineOutcome::Unfinished { after } => Some(after),
        LifelineOutcome::Headless { before } => Some(before),
        LifelineOutcome::Complete | LifelineOutcome::CacheHit | LifelineOutcome::Retried { .. } => {
            None
        }
    }
}
