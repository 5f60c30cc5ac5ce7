//! Segments: the time between each two points that follow each other on lifelines, and from the beginning to each point.
//!
//! Every line counts with all its segments, whatever its outcome, so that the segments of a line add up to the time between its
//! first and its last point. A negative time is kept: then two clocks disagree, or two things happened at once.

use crate::clock_error::clock_error;
use crate::lifeline_percentiles::{TimeSpread, continuous};
use crate::lifelines::{Lifeline, LifelinePassage, LifelinePoint, Lifelines};
use crate::stages::Stages;
use serde::Serialize;
use stackline_core::trace_index::Index;
use stackline_events::catalogue::{self, Layer};
use std::collections::HashMap;

/// The times between two points, over all lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LifelineSegment {
    /// Index of the point where it begins.
    pub from: u32,
    /// Index of the point where it ends.
    pub to: u32,
    /// Whether it is about connections, and not about data units.
    pub connections: bool,
    /// Whether it is the wait for the retransmission of what was lost between the two points: no link takes that time.
    pub waits: bool,
    /// The group of lines it is about; `None` for all.
    pub group: Option<u32>,
    /// The times.
    pub ns: TimeSpread,
    /// Its share of the time of all units, or of all connections (of the group); 0 to 1 if no time is negative.
    pub share: f64,
    /// How many of the times are negative.
    pub negative: u64,
    /// The error of the two hosts' clocks together, ns; `None` if it is not known. Shorter times are not reliable.
    pub clock_error_ns: Option<u64>,
}

/// Times from the beginning of lines to a point (Figure 3 of Tierney et al. 1996).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// Index of the point.
    pub point: u32,
    /// The group of lines it is about; `None` for all.
    pub group: Option<u32>,
    /// The times.
    pub ns: TimeSpread,
}

/// All segments, those of units before those of connections, in the order of the points; with `grouped`, of each group separately.
#[must_use]
pub fn segments(
    lifelines: &Lifelines,
    index: Option<&Index>,
    grouped: bool,
) -> Vec<LifelineSegment> {
    let group_of = |line: &Lifeline| if grouped { line.group } else { 0 };
    let found = collect(lifelines, group_of, |point| point, |_| true, |_| true);
    finished(found, &lifelines.points, index, grouped)
}

/// The segments between stages: `from` and `to` are numbers of stages, and `points` has one representative point for each stage.
#[must_use]
pub fn stage_segments(
    lifelines: &Lifelines,
    stages: &Stages,
    points: &[LifelinePoint],
) -> Vec<LifelineSegment> {
    let found = collect(
        lifelines,
        |_| 0,
        |point| stages.of[point as usize],
        |_| true,
        |_| true,
    );
    finished(found, points, None, false)
}

/// Sorts segments and computes their figures.
fn finished(
    mut found: Vec<SegmentTimes>,
    points: &[LifelinePoint],
    index: Option<&Index>,
    grouped: bool,
) -> Vec<LifelineSegment> {
    let mut totals: HashMap<(bool, u32), i128> = HashMap::new();
    for stretch in &found {
        *totals
            .entry((stretch.connections, stretch.group))
            .or_default() += stretch.total();
    }
    found.sort_unstable_by_key(|stretch| {
        (
            stretch.connections,
            stretch.group,
            stretch.from,
            stretch.to,
            !stretch.waits,
        )
    });
    let segment = |mut stretch: SegmentTimes| {
        let total = totals[&(stretch.connections, stretch.group)];
        let share = if total == 0 {
            0.0
        } else {
            stretch.total() as f64 / total as f64
        };
        let negative = stretch.ns.iter().filter(|ns| **ns < 0).count() as u64;
        let host = |point: u32| points[point as usize].host.as_str();
        let clock_error_ns = clock_error(index, host(stretch.from), host(stretch.to));
        let ns = TimeSpread::from_values(&mut stretch.ns)?;
        let group = grouped.then_some(stretch.group);
        let (from, to, connections) = (stretch.from, stretch.to, stretch.connections);
        Some(LifelineSegment {
            from,
            to,
            connections,
            waits: stretch.waits,
            group,
            ns,
            share,
            negative,
            clock_error_ns,
        })
    };
    found.into_iter().filter_map(segment).collect()
}

/// Times from the first point of each line to each of its points; lines without their beginning (headless) are left out.
#[must_use]
pub fn measure_reach_times(lifelines: &Lifelines, grouped: bool) -> Vec<Reached> {
    let mut times: HashMap<(u32, u32), Vec<i64>> = HashMap::new();
    for line in lifelines.lines.iter().filter(|line| has_beginning(line)) {
        let passages = lifelines.passages_of(line);
        let begun = passages.first().map_or(0, |passage| passage.at_ns);
        let group = if grouped { line.group } else { 0 };
        for passage in passages {
            times
                .entry((group, passage.point))
                .or_default()
                .push(signed_difference_ns(begun, passage.at_ns));
        }
    }
    let mut keys: Vec<(u32, u32)> = times.keys().copied().collect();
    keys.sort_unstable();
    let reached = |(group, point): (u32, u32)| {
        let ns = TimeSpread::from_values(times.get_mut(&(group, point))?)?;
        Some(Reached {
            point,
            group: grouped.then_some(group),
            ns,
        })
    };
    keys.into_iter().filter_map(reached).collect()
}

/// Times from the first to the last point of the units that arrived, of one group or all; connections are left out.
#[must_use]
pub fn measure_total_times(lifelines: &Lifelines, group: Option<u32>) -> Option<TimeSpread> {
    let of = |line: &&Lifeline| {
        line.has_arrived()
            && !lifelines.is_connection(line)
            && group.is_none_or(|group| line.group == group)
    };
    let mut times: Vec<i64> = lifelines
        .lines
        .iter()
        .filter(of)
        .map(|line| lifeline_duration_ns(lifelines, line))
        .collect();
    TimeSpread::from_values(&mut times)
}

/// The time from the first to the last point of a line, ns; 0 with fewer than two points.
#[must_use]
pub fn lifeline_duration_ns(lifelines: &Lifelines, line: &Lifeline) -> i64 {
    match lifelines.passages_of(line) {
        [first, .., last] => signed_difference_ns(first.at_ns, last.at_ns),
        _ => 0,
    }
}

const fn has_beginning(line: &Lifeline) -> bool {
    !matches!(
        line.outcome,
        crate::lifelines::LifelineOutcome::Headless { .. }
    )
}

/// All times of one segment, ns, before statistics are computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentTimes {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) connections: bool,
    pub(crate) waits: bool,
    pub(crate) group: u32,
    ns: Vec<i64>,
}

impl SegmentTimes {
    /// The mean of its times, ns; 0 without any.
    pub(crate) fn mean_ns(&self) -> f64 {
        self.total() as f64 / self.ns.len().max(1) as f64
    }

    pub(crate) fn total(&self) -> i128 {
        self.ns.iter().map(|ns| i128::from(*ns)).sum()
    }

    pub(crate) fn into_times(self) -> Vec<i64> {
        self.ns
    }

    pub(crate) fn into_median(mut self) -> f64 {
        continuous(&mut self.ns, 0.5).unwrap_or(0.0)
    }
}

/// The segments that satisfy `wanted`, with the times of the lines that satisfy `of`.
pub(crate) fn stretches(
    lifelines: &Lifelines,
    wanted: impl Fn(&SegmentTimes) -> bool,
    of: impl Fn(&Lifeline) -> bool,
) -> Vec<SegmentTimes> {
    collect(lifelines, |_| 0, |point| point, wanted, of)
}

/// All segments of the lines that have a group, group by group.
pub(crate) fn grouped_stretches(
    lifelines: &Lifelines,
    group_of: impl Fn(&Lifeline) -> Option<u32>,
) -> Vec<SegmentTimes> {
    let number = |line: &Lifeline| group_of(line).unwrap_or_default();
    let has_group = |line: &Lifeline| group_of(line).is_some();
    collect(lifelines, number, |point| point, |_| true, has_group)
}

/// The median time from the first to the last point of the lines that satisfy `of`, ns; 0 without any.
pub(crate) fn median_duration_ns(lifelines: &Lifelines, of: impl Fn(&Lifeline) -> bool) -> f64 {
    let mut times: Vec<i64> = lifelines
        .lines
        .iter()
        .filter(|line| of(line))
        .map(|line| lifeline_duration_ns(lifelines, line))
        .collect();
    continuous(&mut times, 0.5).unwrap_or(0.0)
}

/// Collects the times of all segments, apart for each group of lines. `named` maps a point to the number that stands for it (itself, or its stage).
fn collect(
    lifelines: &Lifelines,
    group_of: impl Fn(&Lifeline) -> u32,
    named: impl Fn(u32) -> u32,
    wanted: impl Fn(&SegmentTimes) -> bool,
    of: impl Fn(&Lifeline) -> bool,
) -> Vec<SegmentTimes> {
    const UNWANTED: usize = usize::MAX;
    let again = SentAgain::from_lifelines(lifelines);
    let mut found: Vec<SegmentTimes> = Vec::new();
    let mut places: HashMap<(u32, u32, bool, u32, bool), usize> = HashMap::new();
    // A cache by point: where the last line went on to, and the place of that segment; most often the next line goes there too.
    let mut latest = vec![((u32::MAX, false, 0), UNWANTED); lifelines.points.len()];
    let mut times: Vec<(usize, i64)> = Vec::new();
    for line in lifelines.lines.iter().filter(|line| of(line)) {
        let group = group_of(line);
        let connections = lifelines.is_connection(line);
        let mut place = |from, to, waits| {
            *places
                .entry((from, to, connections, group, waits))
                .or_insert_with(|| {
                    let stretch = SegmentTimes {
                        from,
                        to,
                        connections,
                        waits,
                        group,
                        ns: Vec::new(),
                    };
                    if wanted(&stretch) {
                        found.push(stretch);
                        found.len() - 1
                    } else {
                        UNWANTED
                    }
                })
        };
        for pair in lifelines.passages_of(line).windows(2) {
            let (from, to) = (named(pair[0].point), named(pair[1].point));
            let mut since_ns = pair[0].at_ns;
            if let Some(again_ns) = again.within(line, pair[0], pair[1]) {
                times.push((
                    place(from, to, true),
                    signed_difference_ns(since_ns, again_ns),
                ));
                since_ns = again_ns;
            }
            let latest = &mut latest[from as usize];
            if latest.0 != (to, connections, group) {
                *latest = ((to, connections, group), place(from, to, false));
            }
            times.push((latest.1, signed_difference_ns(since_ns, pair[1].at_ns)));
        }
        for (place, ns) in times.drain(..) {
            if let Some(stretch) = found.get_mut(place) {
                stretch.ns.push(ns);
            }
        }
    }
    found
}

/// Finds when protocols retransmitted the data of lines.
struct SentAgain<'l> {
    lifelines: &'l Lifelines,
    /// By point: whether it is one of the network.
    is_network: Vec<bool>,
    /// By point: whether it is one of a protocol.
    is_protocol: Vec<bool>,
    /// By point of a mark: whether it reports a retransmission.
    is_again: Vec<bool>,
}

impl<'l> SentAgain<'l> {
    fn from_lifelines(lifelines: &'l Lifelines) -> Self {
        let layer = |point: &LifelinePoint| catalogue::find(&point.keyword).map(|it| it.layer);
        let is = |wanted| {
            let points = lifelines.points.iter();
            points.map(|point| layer(point) == Some(wanted)).collect()
        };
        let is_again = |point: &LifelinePoint| point.keyword.ends_with("_RETRANSMIT");
        Self {
            lifelines,
            is_network: is(Layer::Network),
            is_protocol: is(Layer::Protocol),
            is_again: lifelines.marked.iter().map(is_again).collect(),
        }
    }

    /// The time of the last retransmission of a line's data between two of its points, if a loss between them is possible: the first is
    /// a point of the network, or one of the protocol before the network (the first queue dropped it).
    fn within(&self, line: &Lifeline, from: LifelinePassage, to: LifelinePassage) -> Option<u64> {
        let (begins, ends) = (from.point as usize, to.point as usize);
        let is_lost_between =
            self.is_network[begins] || self.is_protocol[begins] && self.is_network[ends];
        if line.mark_count == 0 || !is_lost_between {
            return None;
        }
        let marks = self.lifelines.marks_of(line).iter().rev();
        let mut again = marks.filter(|mark| self.is_again[mark.point as usize]);
        again
            .find(|mark| from.at_ns < mark.at_ns && mark.at_ns <= to.at_ns)
            .map(|mark| mark.at_ns)
    }
}

/// The time from one moment to another, ns; negative if the other is earlier.
pub(crate) const fn signed_difference_ns(from_ns: u64, to_ns: u64) -> i64 {
    to_ns.wrapping_sub(from_ns) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use crate::names::segment_label;
    use stackline_events::table::EventTable;
    use stackline_events::text::EventTextReader;
    use stackline_events::unit_ids::{EventStreamDirection, stream, unit};

    #[test]
    fn what_the_first_queue_dropped_waits_until_it_is_sent_again() {
        let (one, bulk) = (unit(1, 0), stream(1, EventStreamDirection::There));
        let log = format!(
            "\
APP_SEND; khons; 0; 10000000; {one}; {bulk}; 0; 1000
TCP_SEGMENT; khons; 0; 11000000; ; {bulk}; 0; 1000
NET_DROP; khons; 0; 12000000; ; {bulk}; 0; 1000; khons>x; a; 2; 5; 1; 1040; queue full
TCP_RETRANSMIT; khons; 0; 212000000; ; {bulk}; 0; 1000; timeout; 1
NET_ENQUEUE; khons; 0; 213000000; ; {bulk}; 0; 1000; khons>x; a; 2; 7; 1; 1040
APP_RECEIVED; udjat; 0; 220000000; {one}; {bulk}; 0; 1000
"
        );
        let mut table = EventTable::default();
        EventTextReader::new(log.as_bytes(), "log")
            .for_each(|event| table.push_event(&event.unwrap()));
        let made = lifelines(&table, None, &LifelineOptions::default());
        let shown: Vec<String> = segments(&made, None, false)
            .iter()
            .map(|one| {
                let point = |at: u32| &made.points[at as usize];
                let label = segment_label(point(one.from), point(one.to));
                format!("{label} {} {}", one.waits, one.ns.median_ns / 1e6)
            })
            .collect();
        let expected = [
            "TCP hold khons false 1",
            "host output khons true 201",
            "host output khons false 1",
            "path khons>x false 7",
        ];
        assert_eq!(shown, expected);
    }
}
