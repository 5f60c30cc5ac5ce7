//! Everything that is computed from lifelines, together: where the time went, what became of units, how fast they came, when
//! servers were blocked.

use crate::blocked::{Blocked, Synchrony, blocked, synchrony};
use crate::lifelines::{Lifelines, Outcome};
use crate::percentiles::Spread;
use crate::rates::{Rates, rates};
use crate::segments::{Reached, Segment, reached, segments, took, whole};
use serde::Serialize;
use stackline_core::trace::Index;
use std::collections::BTreeMap;

/// What is to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Segments of each group of lines for itself beside those of all.
    pub grouped: bool,
    /// Size of units whose events do not tell it, bytes.
    pub bytes: Option<u64>,
    /// How many of the slowest lines are named.
    pub slowest: usize,
}

/// What lifelines say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ways {
    /// How many lines have each outcome, in each group.
    pub outcomes: Vec<Count>,
    /// From first to last point of the lines that arrived: of all, then of each group.
    pub whole: Vec<Whole>,
    /// The time between points: of all lines, then of each group.
    pub segments: Vec<Segment>,
    /// The time from the first point to each: of all lines, then of each group.
    pub reached: Vec<Reached>,
    /// Throughput of each group.
    pub rates: Vec<Rates>,
    /// When each group was blocked.
    pub blocked: Vec<Blocked>,
    /// Whether groups were blocked together.
    pub synchrony: Vec<Synchrony>,
    /// Index of the lines that took longest of those that arrived, the slowest first.
    pub slowest: Vec<u32>,
}

/// Lines with one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Count {
    /// Whether they are of connections and not of data units.
    pub connections: bool,
    /// The group.
    pub group: u32,
    /// What became of them; of retried ones without how often.
    pub outcome: Outcome,
    /// How many.
    pub lines: u64,
}

/// From the first to the last point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Whole {
    /// The group; `None` for all.
    pub group: Option<u32>,
    /// The times.
    pub ns: Spread,
}

/// Computes it.
#[must_use]
pub fn ways(made: &Lifelines, index: Option<&Index>, wanted: Wanted) -> Ways {
    let groups = || std::iter::once(None).chain((0..made.groups.len() as u32).map(Some).filter(|_| wanted.grouped));
    let mut found = segments(made, index, false);
    let mut points = reached(made, false);
    if wanted.grouped {
        found.extend(segments(made, index, true));
        points.extend(reached(made, true));
    }
    let blocked = blocked(made);
    Ways {
        outcomes: outcomes(made),
        whole: groups().filter_map(|group| Some(Whole { group, ns: whole(made, group)? })).collect(),
        segments: found,
        reached: points,
        rates: rates(made, index, wanted.bytes),
        synchrony: synchrony(&blocked),
        blocked,
        slowest: slowest(made, wanted.slowest),
    }
}

fn outcomes(made: &Lifelines) -> Vec<Count> {
    let mut counts: BTreeMap<(bool, u32, u32, u32), (Outcome, u64)> = BTreeMap::new();
    for line in &made.lines {
        let (kind, point, outcome) = match line.outcome {
            outcome @ Outcome::Complete => (0, 0, outcome),
            outcome @ Outcome::CacheHit => (1, 0, outcome),
            Outcome::Retried { .. } => (2, 0, Outcome::Retried { times: 0 }),
            outcome @ Outcome::Flushed { after } => (3, after, outcome),
            outcome @ Outcome::NeverArrived { after } => (4, after, outcome),
            outcome @ Outcome::Unfinished { after } => (5, after, outcome),
            outcome @ Outcome::Headless { before } => (6, before, outcome),
        };
        counts.entry((made.is_connection(line), line.group, kind, point)).or_insert((outcome, 0)).1 += 1;
    }
    counts
        .into_iter()
        .map(|((connections, group, ..), (outcome, lines))| Count { connections, group, outcome, lines })
        .collect()
}

fn slowest(made: &Lifelines, count: usize) -> Vec<u32> {
    let arrived = (0_u32..).zip(&made.lines).filter(|(_, line)| line.has_arrived() && !made.is_connection(line));
    let mut lines: Vec<(i64, u32)> = arrived.map(|(number, line)| (-took(made, line), number)).collect();
    let count = count.min(lines.len());
    if count > 0 && count < lines.len() {
        lines.select_nth_unstable(count);
    }
    lines.truncate(count);
    lines.sort_unstable();
    lines.into_iter().map(|(_, number)| number).collect()
}
