//! Collects all statistics of lifelines: where the time went, what became of the units, their throughput, when servers were blocked.

use crate::blocked::{
    Blocked, ConcurrentBlocking, Synchrony, blocked, measure_concurrency, synchrony,
};
use crate::lifeline_percentiles::TimeSpread;
use crate::lifelines::{LifelineOutcome, LifelinePoint, Lifelines};
use crate::profile::{Profile, profiles};
use crate::rates::{Rates, rates};
use crate::segments::{
    LifelineSegment, Reached, lifeline_duration_ns, measure_reach_times, measure_total_times,
    segments, stage_segments,
};
use crate::stages::Stages;
use serde::Serialize;
use stackline_core::trace_index::Index;
use std::collections::BTreeMap;

/// Options of the statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LifelineQuery {
    /// Whether to compute segments and totals for each group of lines too, besides those of all lines.
    pub grouped: bool,
    /// The size of units whose events do not say it, bytes.
    pub bytes: Option<u64>,
    /// How many of the slowest lines to list.
    pub slowest: usize,
}

/// Statistics of lifelines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LifelineStatistics {
    /// How many lines have each outcome, in each group.
    pub outcomes: Vec<LifelineOutcomeCount>,
    /// Times from the first to the last point of the lines that arrived: of all, then of each group.
    pub whole: Vec<LifelineTotalSpread>,
    /// The time between points: of all lines, then of each group.
    pub segments: Vec<LifelineSegment>,
    /// The time from stage to stage; present only if a stage is on so many hosts or ports that listing each would be unreadable.
    pub by_stage: Option<ByStage>,
    /// The time from the first point to each: of all lines, then of each group.
    pub reached: Vec<Reached>,
    /// Throughput of each group, at the sender and at the receiver.
    pub rates: Vec<Rates>,
    /// When each group was blocked.
    pub blocked: Vec<Blocked>,
    /// For each two groups: how long they were blocked at the same time, and whether chance explains it.
    pub synchrony: Vec<Synchrony>,
    /// How often several groups were blocked at once.
    pub together: Option<ConcurrentBlocking>,
    /// How each host spent its time.
    pub profiles: Vec<Profile>,
    /// Indices of the lines that took longest of those that arrived, the slowest first.
    pub slowest: Vec<u32>,
}

/// The number of lines with one outcome in one group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LifelineOutcomeCount {
    /// Whether they are of connections and not of data units.
    pub connections: bool,
    /// Index of the group.
    pub group: u32,
    /// What became of them. All retried lines count together: `times` is 0.
    pub outcome: LifelineOutcome,
    /// How many lines.
    pub lines: u64,
}

/// The time from stage to stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByStage {
    /// A point for each stage; its host and place say on how many hosts or links the stage is.
    pub points: Vec<LifelinePoint>,
    /// The time between them; `from` and `to` are stages.
    pub segments: Vec<LifelineSegment>,
}

/// Times from the first to the last point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LifelineTotalSpread {
    /// The group; `None` for all.
    pub group: Option<u32>,
    /// The times.
    pub ns: TimeSpread,
}

impl LifelineStatistics {
    /// Computes all statistics. `index` is that of the run's events, for clocks and flows.
    #[must_use]
    pub fn from_lifelines(
        lifelines: &Lifelines,
        index: Option<&Index>,
        request: LifelineQuery,
    ) -> Self {
        let groups = (0..lifelines.groups.len() as u32)
            .map(Some)
            .filter(|_| request.grouped);
        let whole = |group| {
            Some(LifelineTotalSpread {
                group,
                ns: measure_total_times(lifelines, group)?,
            })
        };
        let mut found = segments(lifelines, index, false);
        let mut points = measure_reach_times(lifelines, false);
        if request.grouped {
            found.extend(segments(lifelines, index, true));
            points.extend(measure_reach_times(lifelines, true));
        }
        let blocked = blocked(lifelines);
        Self {
            outcomes: outcomes(lifelines),
            whole: std::iter::once(None)
                .chain(groups)
                .filter_map(whole)
                .collect(),
            segments: found,
            by_stage: by_stage(lifelines),
            reached: points,
            rates: rates(lifelines, index, request.bytes),
            synchrony: synchrony(&blocked),
            together: measure_concurrency(&blocked),
            profiles: profiles(lifelines),
            blocked,
            slowest: slowest(lifelines, request.slowest),
        }
    }
}

fn by_stage(lifelines: &Lifelines) -> Option<ByStage> {
    let stages = Stages::from_lifelines(lifelines);
    let points = stages.points(lifelines)?;
    Some(ByStage {
        segments: stage_segments(lifelines, &stages, &points),
        points,
    })
}

fn outcomes(lifelines: &Lifelines) -> Vec<LifelineOutcomeCount> {
    let mut counts: BTreeMap<(bool, u32, u32, u32), (LifelineOutcome, u64)> = BTreeMap::new();
    for line in &lifelines.lines {
        let (kind, point, outcome) = match line.outcome {
            outcome @ LifelineOutcome::Complete => (0, 0, outcome),
            outcome @ LifelineOutcome::CacheHit => (1, 0, outcome),
            LifelineOutcome::Retried { .. } => (2, 0, LifelineOutcome::Retried { times: 0 }),
            outcome @ LifelineOutcome::Flushed { after } => (3, after, outcome),
            outcome @ LifelineOutcome::NeverArrived { after } => (4, after, outcome),
            outcome @ LifelineOutcome::Unfinished { after } => (5, after, outcome),
            outcome @ LifelineOutcome::Headless { before } => (6, before, outcome),
        };
        counts
            .entry((lifelines.is_connection(line), line.group, kind, point))
            .or_insert((outcome, 0))
            .1 += 1;
    }
    counts
        .into_iter()
        .map(
            |((connections, group, ..), (outcome, lines))| LifelineOutcomeCount {
                connections,
                group,
                outcome,
                lines,
            },
        )
        .collect()
}

fn slowest(lifelines: &Lifelines, count: usize) -> Vec<u32> {
    let arrived = (0_u32..)
        .zip(&lifelines.lines)
        .filter(|(_, line)| line.has_arrived() && !lifelines.is_connection(line));
    // Negative, so that the slowest come first, and of equal ones the first line.
    let mut lines: Vec<(i64, u32)> = arrived
        .map(|(number, line)| (-lifeline_duration_ns(lifelines, line), number))
        .collect();
    let count = count.min(lines.len());
    if count > 0 && count < lines.len() {
        lines.select_nth_unstable(count);
    }
    lines.truncate(count);
    lines.sort_unstable();
    lines.into_iter().map(|(_, number)| number).collect()
}
