//! Segments of lifelines run by run: the mean time of each in every run of a trace, so that two traces can be judged by what varies
//! between runs.

use crate::compare::{Label, match_summaries};
use crate::lifelines::{Lifeline, LifelinePoint, Lifelines};
use crate::names::{SENDS_AGAIN, segment_label};
use crate::regression_gate::{ComparedFigure, GateFigure};
use crate::segments::grouped_stretches;
use crate::statistics::SampleStatistics;
use crate::summary::Summary;
use stackline_core::trace_index::Index;
use std::collections::BTreeMap;

/// The least share of the time of units, or of connections, that a segment has to have on a side to be judged. What is shorter
/// cannot matter, but every further figure raises what all others have to show.
const LEAST_SHARE: f64 = 0.005;

/// A segment of a measurement's part with its mean time in each run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegmentRuns {
    place: SegmentPlace,
    /// Its share of the time of all units, or of all connections, over all runs.
    share: f64,
    /// The mean of its times in each run that has it, in seconds.
    means_s: Vec<f64>,
}

/// By what a segment is found again in another trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SegmentPlace {
    /// Index of the measurement, and of the part.
    part: (usize, usize),
    connections: bool,
    from: LifelinePoint,
    to: LifelinePoint,
    /// Whether it is the wait for a retransmission.
    waits: bool,
}

/// The segments of counted runs, in the order of units' way.
pub(crate) fn segment_runs(lifelines: &Lifelines, index: &Index) -> Vec<SegmentRuns> {
    let counted = index.flows.iter().filter(|flow| !flow.warmup);
    let mut numbers: BTreeMap<(usize, usize, u32), u32> = BTreeMap::new();
    let mut of_flow: BTreeMap<u32, u32> = BTreeMap::new();
    for flow in counted {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let key = (flow.measurement, flow.part, flow.run);
        of_flow.insert(flow.id, *numbers.entry(key).or_insert(next));
    }
    let parts: BTreeMap<u32, (usize, usize)> = numbers
        .iter()
        .map(|(&(measurement, part, _), number)| (*number, (measurement, part)))
        .collect();
    let group_of = |line: &Lifeline| of_flow.get(&line.flow?).copied();
    let mut stretches = grouped_stretches(lifelines, group_of);
    stretches.sort_by_key(|one| (one.group, one.connections, one.from, one.to, !one.waits));
    let mut found: Vec<(SegmentRuns, i128)> = Vec::new();
    let mut places: BTreeMap<SegmentPlace, usize> = BTreeMap::new();
    let mut totals: BTreeMap<((usize, usize), bool), i128> = BTreeMap::new();
    for stretch in stretches {
        let point = |at: u32| lifelines.points[at as usize].clone();
        let place = SegmentPlace {
            part: parts[&stretch.group],
            connections: stretch.connections,
            from: point(stretch.from),
            to: point(stretch.to),
            waits: stretch.waits,
        };
        *totals.entry((place.part, place.connections)).or_default() += stretch.total();
        let at = *places.entry(place.clone()).or_insert(found.len());
        if at == found.len() {
            let (share, means_s) = (0.0, Vec::new());
            found.push((
                SegmentRuns {
                    place,
                    share,
                    means_s,
                },
                0,
            ));
        }
        let (segment, total) = &mut found[at];
        segment.means_s.push(stretch.mean_ns() * 1e-9);
        *total += stretch.total();
    }
    let shared = found.into_iter().map(|(segment, total)| {
        let all = totals[&(segment.place.part, segment.place.connections)];
        let share = if all == 0 {
            0.0
        } else {
            total as f64 / all as f64
        };
        SegmentRuns { share, ..segment }
    });
    shared.collect()
}

/// A traced side of a gate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedSide<'t> {
    pub(crate) summaries: &'t [Summary],
    pub(crate) segments: &'t [SegmentRuns],
}

/// The segments that both sides have, of measurements that belong together.
pub(crate) fn compared_segments(base: TracedSide<'_>, new: TracedSide<'_>) -> Vec<ComparedFigure> {
    let of = |summary: &Summary| Some((summary.measurement, summary.part_index?));
    let matched = match_summaries(base.summaries, new.summaries);
    let parts = matched.iter().filter_map(|one| {
        let (a, b) = (one.a?, one.b?);
        Some((of(a)?, of(b)?, Label::from_summary(b)))
    });
    parts
        .flat_map(|(a, b, label)| {
            let others = new.segments.iter();
            let others: BTreeMap<&SegmentPlace, &SegmentRuns> = others
                .filter(|segment| segment.place.part == b)
                .map(|segment| (&segment.place, segment))
                .collect();
            let mine = base.segments.iter().filter(|one| one.place.part == a);
            let both = mine.filter_map(|one| {
                let place = SegmentPlace {
                    part: b,
                    ..one.place.clone()
                };
                compared(one, others.get(&place)?, &label)
            });
            both.collect::<Vec<_>>()
        })
        .collect()
}

/// A segment of both sides; `None` where it is too short to matter, or too seldom for an interval.
fn compared(base: &SegmentRuns, new: &SegmentRuns, label: &Label) -> Option<ComparedFigure> {
    let matters = base.share.max(new.share) >= LEAST_SHARE;
    let is_frequent = base.means_s.len() > 1 && new.means_s.len() > 1;
    if !matters || !is_frequent {
        return None;
    }
    let place = &new.place;
    let label_of = segment_label(&place.from, &place.to);
    let name = match place.waits {
        true => format!("{SENDS_AGAIN}, {label_of}"),
        false => label_of,
    };
    Some(ComparedFigure {
        label: label.clone(),
        figure: GateFigure::Segment(name),
        base: SampleStatistics::from_values(&base.means_s)?,
        new: SampleStatistics::from_values(&new.means_s)?,
    })
}
