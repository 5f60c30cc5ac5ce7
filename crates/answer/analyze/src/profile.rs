//! What each host did with the units that came to it: an operation profile. Of each stretch of the way inside a host, how much of
//! the time units were in it and how many at once; which stretches are waiting rooms, and what units in them waited for.
//!
//! A host is a row of stretches, such as waiting to be read, being read, waiting to be written, being written. A stretch is a
//! *waiting room* of the next one when the next is as full as it gets while units are in it. Stretches one after the other that never
//! hold units at the same time are steps of one server, which is as full as all of them together. What limits a host at a moment is
//! the stretch that the furthest waiting room waits for: behind a bottleneck nothing waits (as in any queues one after the other).
//! Units that were given up wait until then. It knows no keyword: points, hosts and moments are all it looks at.

use crate::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use serde::Serialize;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::{BTreeMap, BTreeSet};

/// While units wait, what they wait for is at least so full, on the average.
const CROWDED: f64 = 0.5;
/// A stretch that takes less of the mean way than this holds nothing up.
const NEGLIGIBLE: f64 = 0.01;
/// Steps of one server hold units at the same time for at most this share of the time that the longer of them does.
const SELDOM: f64 = 0.05;
/// Units leave in bursts where the usual gap between them is at most this part of the mean, and there are so many.
const BURST: f64 = 0.02;
const FEW: usize = 20;
/// A stretch holds at most its usual most for this share of the time that any unit is in it.
const USUALLY: f64 = 0.95;

/// A host with more stretches has no profile that anybody could read.
const MOST_STRETCHES: usize = 64;

/// What one host did with its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The host.
    pub host: String,
    /// Stretches of the way inside it, in the order of the way.
    pub stretches: Vec<HostStretch>,
    /// From the first passage of all lines to their last, ns: the same of all hosts.
    pub span_ns: u64,
    /// Time without any unit in it but those that are held, ns.
    pub idle_ns: u64,
    /// Units that were given up inside it.
    pub flushed: u64,
}

/// A stretch of the way inside a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostStretch {
    /// Index of the point where it begins.
    pub from: u32,
    /// Index of the point where it ends.
    pub to: u32,
    /// Units that entered it.
    pub units: u64,
    /// Of them, those that were given up in it.
    pub flushed: u64,
    /// Time of all units in it, ns.
    pub unit_ns: u64,
    /// Time with at least one unit in it, ns.
    pub busy_ns: u64,
    /// Units at once that it hardly ever exceeds.
    pub most: u32,
    /// The stretch that units in it wait for, by its place in the profile; none where units are served in it, itself where they wait
    /// for what no unit reached.
    pub waits_for: Option<usize>,
    /// Time that it limited its host, ns: units waited for it and nothing waited behind it.
    pub limits_ns: u64,
    /// Whether units go back from it in bursts: they are held there until something else happens, and nothing works on them.
    pub holds: bool,
    /// Whether it is the last before units leave for the host where their ways end.
    pub leaves: bool,
}

impl HostStretch {
    /// Units in it at once while there are any.
    #[must_use]
    pub fn at_once(&self) -> f64 {
        self.unit_ns as f64 / self.busy_ns.max(1) as f64
    }
}

impl Profile {
    /// A time as a share of the span.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.span_ns.max(1) as f64
    }

    /// The share of the span that a stretch limited the host, where units wait apart for it: elsewhere those that wait and those that
    /// are served are not distinguished.
    #[must_use]
    pub fn limits(&self, at: usize) -> Option<f64> {
        let has_room = self
            .stretches
            .iter()
            .any(|stretch| stretch.waits_for == Some(at));
        self.stretches
            .get(at)
            .filter(|stretch| has_room && stretch.limits_ns > 0)
            .map(|one| self.share(one.limits_ns))
    }

    /// Whether units leave it for the host where their ways end.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.stretches.iter().any(|stretch| stretch.leaves)
    }
}

/// The time that a unit was in a stretch.
#[derive(Clone, Copy, Debug)]
struct StretchStay {
    from_ns: u64,
    to_ns: u64,
    stretch: usize,
}

/// The profiles of all hosts that have several points of data units, in the order of the way. Units of measurements are left out:
/// where their time went is asked of their operations.
#[must_use]
pub fn profiles(lifelines: &Lifelines) -> Vec<Profile> {
    let lines: Vec<&Lifeline> = lifelines
        .lines
        .iter()
        .filter(|line| line.flow.is_none())
        .collect();
    let moments = || {
        lines
            .iter()
            .flat_map(|line| lifelines.passages_of(line))
            .map(|passage| passage.at_ns)
    };
    let (Some(begun), Some(end)) = (moments().min(), moments().max()) else {
        return Vec::new();
    };
    let whole = lines
        .iter()
        .map(|line| lasted(lifelines.passages_of(line)))
        .fold(0, u64::saturating_add);
    let mean_line_ns = whole as f64 / lines.len().max(1) as f64;
    let mut hosts: BTreeMap<&str, HostProfileBuilder> = BTreeMap::new();
    let next = usual_next(lifelines, &lines);
    for line in &lines {
        stays(lifelines, line, &next, &mut hosts);
    }
    let ends = ends(lifelines, &lines);
    let first = lines
        .iter()
        .filter_map(|line| Some(lifelines.passages_of(line).first()?.point))
        .collect();
    let mut made: Vec<Profile> = hosts
        .into_iter()
        .filter(|(_, host)| (1..=MOST_STRETCHES).contains(&host.stretches.len()))
        .map(|(name, host)| host.profile(name, &ends, &first, end - begun, mean_line_ns))
        .collect();
    made.sort_by_key(|profile| profile.stretches.first().map(|stretch| stretch.from));
    made
}

fn lasted(passages: &[LifelinePassage]) -> u64 {
    let times = || passages.iter().map(|passage| passage.at_ns);
    times().max().unwrap_or(0) - times().min().unwrap_or(0)
}

/// The point that most lines go to from each, where that is on the same host.
fn usual_next(lifelines: &Lifelines, lines: &[&Lifeline]) -> BTreeMap<u32, u32> {
    let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for line in lines {
        for pair in lifelines.passages_of(line).windows(2) {
            *counts.entry((pair[0].point, pair[1].point)).or_default() += 1;
        }
    }
    let mut most: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    for ((from, to), count) in counts {
        let best = most.entry(from).or_default();
        if count > best.0 {
            *best = (count, to);
        }
    }
    let host = |point: u32| &lifelines.points[point as usize].host;
    most.into_iter()
        .filter(|(from, (_, to))| host(*from) == host(*to))
        .map(|(from, (_, to))| (from, to))
        .collect()
}

/// For each point whether the host that most lines go to from there is the one where they end; where none goes on, it may be.
fn ends(lifelines: &Lifelines, lines: &[&Lifeline]) -> Vec<bool> {
    let mut votes = vec![(0_u64, 0_u64); lifelines.points.len()];
    let host = |passage: &LifelinePassage| &lifelines.points[passage.point as usize].host;
    for line in lines {
        let passages = lifelines.passages_of(line);
        let Some(last) = passages.last() else {
            continue;
        };
        for pair in passages
            .windows(2)
            .filter(|pair| host(&pair[0]) != host(&pair[1]))
        {
            let vote = &mut votes[pair[0].point as usize];
            if line.has_arrived() && host(&pair[1]) == host(last) {
                vote.0 += 1
            } else {
                vote.1 += 1
            }
        }
    }
    votes
        .into_iter()
        .map(|(ends, goes_on)| ends > goes_on || goes_on == 0)
        .collect()
}

/// What is gathered of one host.
#[derive(Default)]
struct HostProfileBuilder {
    stretches: BTreeMap<(u32, u32), (usize, u64)>,
    stays: Vec<StretchStay>,
    flushed: BTreeMap<usize, u64>,
}

impl HostProfileBuilder {
    fn stay(&mut self, from: (u32, u64), to: (u32, u64), flushed: bool) {
        let next = self.stretches.len();
        let (stretch, count) = self.stretches.entry((from.0, to.0)).or_insert((next, 0));
        *count += 1;
        if flushed {
            *self.flushed.entry(*stretch).or_default() += 1;
        }
        self.stays.push(StretchStay {
            from_ns: from.1,
            to_ns: to.1.max(from.1),
            stretch: *stretch,
        });
    }
}

/// Adds what a line was in, inside each host.
fn stays<'l>(
    lifelines: &'l Lifelines,
    line: &Lifeline,
    next: &BTreeMap<u32, u32>,
    hosts: &mut BTreeMap<&'l str, HostProfileBuilder>,
) {
    let passages = lifelines.passages_of(line);
    let host = |point: u32| lifelines.points[point as usize].host.as_str();
    for pair in passages
        .windows(2)
        .filter(|pair| host(pair[0].point) == host(pair[1].point))
    {
        let (from, to) = (
            (pair[0].point, pair[0].at_ns),
            (pair[1].point, pair[1].at_ns),
        );
        hosts
            .entry(host(pair[0].point))
            .or_default()
            .stay(from, to, false);
    }
    let (LifelineOutcome::Flushed { .. }, Some(last)) = (line.outcome, passages.last()) else {
        return;
    };
    let is_flush = |mark: &&LifelinePassage| {
        fate(&lifelines.marked[mark.point as usize].keyword) == Some(DataFate::Flushed)
    };
    let given_up = lifelines.marks_of(line).iter().rev().find(is_flush);
    if let Some(given_up) = given_up {
        // Where no unit ever went on, its way out is behind that point.
        let (from, to) = (
            (last.point, last.at_ns),
            next.get(&last.point).copied().unwrap_or(last.point),
        );
        hosts
            .entry(host(last.point))
            .or_default()
            .stay(from, (to, given_up.at_ns), true);
    }
}

impl HostProfileBuilder {
    fn profile(
        self,
        name: &str,
        ends: &[bool],
        first: &BTreeSet<u32>,
        span_ns: u64,
        mean_line_ns: f64,
    ) -> Profile {
        let mut stretches = vec![HostStretch::default(); self.stretches.len()];
        for ((from, to), (at, units)) in &self.stretches {
            let flushed = self.flushed.get(at).copied().unwrap_or(0);
            stretches[*at] = HostStretch {
                from: *from,
                to: *to,
                units: *units,
                flushed,
                ..HostStretch::default()
            };
        }
        // In the order of the way, which is that of the points.
        let mut order: Vec<usize> = (0..stretches.len()).collect();
        order.sort_by_key(|at| (stretches[*at].from, stretches[*at].to));
        let mut place = vec![0; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(to, at)| place[*at] = to);
        let mut sorted: Vec<HostStretch> = order.iter().map(|at| stretches[*at].clone()).collect();
        let mut stays = self.stays;
        stays
            .iter_mut()
            .for_each(|stay| stay.stretch = place[stay.stretch]);
        for at in 0..sorted.len() {
            let goes_on = sorted
                .iter()
                .enumerate()
                .any(|(next, one)| next != at && one.from == sorted[at].to);
            sorted[at].leaves = !goes_on && ends.get(sorted[at].to as usize) == Some(&true);
        }
        let changes = changes(&stays);
        occupied(&mut sorted, &changes);
        holding(&mut sorted, &changes, first);
        let servers = servers(&sorted, &changes);
        let crowds = crowds(&sorted, &servers, &changes);
        rooms(&mut sorted, &servers, &crowds, mean_line_ns);
        let busy_ns = limits(&mut sorted, &changes);
        let flushed = sorted.iter().map(|stretch| stretch.flushed).sum();
        Profile {
            host: name.to_owned(),
            stretches: sorted,
            span_ns,
            idle_ns: span_ns.saturating_sub(busy_ns),
            flushed,
        }
    }
}

/// When units enter and leave stretches, in the order of time.
fn changes(stays: &[StretchStay]) -> Vec<(u64, i32, usize)> {
    let both = |stay: &StretchStay| {
        [
            (stay.from_ns, 1, stay.stretch),
            (stay.to_ns, -1, stay.stretch),
        ]
    };
    let mut changes: Vec<(u64, i32, usize)> = stays.iter().flat_map(both).collect();
    // Of one moment those that leave come last: what takes no time was there.
    changes.sort_by_key(|(at, change, stretch)| (*at, -*change, *stretch));
    changes
}

/// Calls `during` with how many units are in each stretch, and for how long.
fn sweep(stretches: usize, changes: &[(u64, i32, usize)], mut during: impl FnMut(&[u32], u64)) {
    let mut inside = vec![0_u32; stretches];
    let mut since = changes.first().map_or(0, |change| change.0);
    for (at, change, stretch) in changes {
        if *at > since {
            during(&inside, at - since);
            since = *at;
        }
        inside[*stretch] = inside[*stretch].saturating_add_signed(*change);
    }
}

/// Sets how long each stretch was occupied and how many were in it at most.
fn occupied(stretches: &mut [HostStretch], changes: &[(u64, i32, usize)]) {
    let mut levels: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); stretches.len()];
    sweep(stretches.len(), changes, |inside, ns| {
        for (at, count) in inside.iter().enumerate().filter(|(_, count)| **count > 0) {
            *levels[at].entry(*count).or_default() += ns;
        }
    });
    for (stretch, levels) in stretches.iter_mut().zip(&levels) {
        stretch.busy_ns = levels.values().sum();
        stretch.unit_ns = levels
            .iter()
            .map(|(count, ns)| u64::from(*count) * ns)
            .sum();
        let usual = stretch.busy_ns as f64 * USUALLY;
        let mut sum = 0;
        for (count, ns) in levels {
            sum += ns;
            stretch.most = *count;
            if sum as f64 >= usual {
                break;
            }
        }
    }
}

/// Says which stretches hold units until others are there: the usual gap between two that leave is far less than the mean.
/// Where ways begin they are held by whoever makes them, and what works on many at once sends them on.
fn holding(stretches: &mut [HostStretch], changes: &[(u64, i32, usize)], first: &BTreeSet<u32>) {
    let mut left: Vec<Vec<u64>> = vec![Vec::new(); stretches.len()];
    changes
        .iter()
        .filter(|(_, change, _)| *change < 0)
        .for_each(|(at, _, stretch)| left[*stretch].push(*at));
    for (stretch, left) in stretches.iter_mut().zip(left) {
        let mut gaps: Vec<u64> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len().max(1) as f64;
        let median = gaps.get(gaps.len() / 2).copied().unwrap_or(0) as f64;
        let bursts = gaps.len() >= FEW && median <= BURST * mean;
        stretch.holds =
            bursts && stretch.leaves && stretch.at_once() > 2.0 && !first.contains(&stretch.from);
    }
}

/// The stretch that most units go on to from one, by its place.
fn next(stretches: &[HostStretch], at: usize) -> Option<usize> {
    let follows = |(next, one): &(usize, &HostStretch)| *next != at && one.from == stretches[at].to;
    stretches
        .iter()
        .enumerate()
        .filter(follows)
        .max_by_key(|(_, one)| one.units)
        .map(|(next, _)| next)
}

/// Of each stretch, the steps of the server whose first step it is: itself, and those that follow it and hold a unit only while none
/// before them does.
fn servers(stretches: &[HostStretch], changes: &[(u64, i32, usize)]) -> Vec<Vec<usize>> {
    let all = stretches.len();
    let mut both = vec![0; all * all];
    sweep(all, changes, |inside, ns| {
        for a in (0..all).filter(|a| inside[*a] > 0) {
            (a + 1..all)
                .filter(|b| inside[*b] > 0)
                .for_each(|b| both[a * all + b] += ns);
        }
    });
    let is_apart = |a: usize, b: usize| {
        let together = both[a.min(b) * all + a.max(b)] as f64;
        let longer = stretches[a].busy_ns.max(stretches[b].busy_ns) as f64;
        stretches[a].most <= 1 && stretches[b].most <= 1 && together <= SELDOM * longer
    };
    let steps = |first: usize| {
        let mut steps = vec![first];
        while let Some(next) = next(stretches, steps[steps.len() - 1])
            && steps
                .iter()
                .all(|step| *step != next && is_apart(*step, next))
        {
            steps.push(next);
        }
        steps
    };
    (0..all).map(steps).collect()
}

/// Of each stretch how full the server behind it was, from 0 to 1, while units were in it: the mean over these.
fn crowds(
    stretches: &[HostStretch],
    servers: &[Vec<usize>],
    changes: &[(u64, i32, usize)],
) -> Vec<f64> {
    let behind: Vec<Option<&[usize]>> = (0..stretches.len())
        .map(|at| next(stretches, at).map(|next| &servers[next][..]))
        .collect();
    let mut sums = vec![(0.0, 0.0); stretches.len()];
    sweep(stretches.len(), changes, |inside, ns| {
        for (at, steps) in behind.iter().enumerate().filter(|(at, _)| inside[*at] > 0) {
            let weight = f64::from(inside[at]) * ns as f64;
            let full =
                |step: &usize| f64::from(inside[*step]) / f64::from(stretches[*step].most.max(1));
            let full: f64 = steps.iter().copied().flatten().map(full).sum();
            sums[at].0 += weight * full.min(1.0);
            sums[at].1 += weight;
        }
    });
    sums.into_iter()
        .map(|(full, weight)| full / f64::max(weight, 1.0))
        .collect()
}

/// Says which stretches are waiting rooms, the last first: what is waited for is never itself a room. Of a server with several steps
/// the longest is waited for.
fn rooms(stretches: &mut [HostStretch], servers: &[Vec<usize>], crowds: &[f64], mean_line_ns: f64) {
    for at in (0..stretches.len()).rev() {
        if stretches[at].from == stretches[at].to {
            stretches[at].waits_for = Some(at);
            continue;
        }
        let Some(next) = next(stretches, at) else {
            continue;
        };
        let longest = servers[next]
            .iter()
            .copied()
            .max_by_key(|step| stretches[*step].busy_ns)
            .unwrap_or(next);
        if stretches[longest].waits_for.is_some() {
            continue;
        }
        let mean_ns = stretches[at].unit_ns as f64 / stretches[at].units.max(1) as f64;
        // What is busier than the next holds up more.
        let is_short =
            mean_ns < NEGLIGIBLE * mean_line_ns && stretches[at].busy_ns <= stretches[next].busy_ns;
        if !stretches[longest].holds && (crowds[at] >= CROWDED || is_short) {
            stretches[at].waits_for = Some(longest);
        }
    }
}

/// Sets how long each stretch limited the host. Returns how long any unit was in it.
fn limits(stretches: &mut [HostStretch], changes: &[(u64, i32, usize)]) -> u64 {
    let mut limits = vec![0_u64; stretches.len()];
    let mut busy_ns = 0;
    let rooms: Vec<Option<usize>> = stretches.iter().map(|stretch| stretch.waits_for).collect();
    let holds: Vec<bool> = stretches
        .iter()
        .map(|stretch| stretch.holds && stretch.waits_for.is_none())
        .collect();
    let has_room: Vec<bool> = (0..stretches.len())
        .map(|at| rooms.contains(&Some(at)))
        .collect();
    sweep(stretches.len(), changes, |inside, ns| {
        let waiting = (0..inside.len())
            .rev()
            .filter(|at| inside[*at] > 0)
            .find_map(|at| rooms[at]);
        // Where nobody can wait apart, those that are served and those that wait are together.
        let alone = || {
            (0..inside.len())
                .rev()
                .find(|at| inside[*at] > 0 && rooms[*at].is_none() && !has_room[*at] && !holds[*at])
        };
        busy_ns += if inside
            .iter()
            .zip(&holds)
            .any(|(count, holds)| *count > 0 && !holds)
        {
            ns
        } else {
            0
        };
        if let Some(limit) = waiting.or_else(alone) {
            limits[limit] += ns;
        }
    });
    stretches
        .iter_mut()
        .zip(limits)
        .for_each(|(stretch, ns)| stretch.limits_ns = ns);
    busy_ns
}

#[cfg(test)]
mod tests;
