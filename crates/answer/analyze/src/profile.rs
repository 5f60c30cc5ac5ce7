//! An operation profile of each host: for each stretch of the units' way inside the host, how much of the time units were in it and
//! how many at once; which stretches are queues, and for what the units in them waited.
//!
//! A *stretch* lies between two points of a host that follow each other. A host is a series of stretches, such as waiting to be read,
//! being read, waiting to be written, being written. A stretch is a *waiting room* (a queue) of the next one if the next is as full
//! as it usually gets while units are in the first. Consecutive stretches that never hold units at the same time are steps of one
//! server, which is as full as all of them together. At any moment, what limits a host is the stretch that the last occupied waiting
//! room waits for: after a bottleneck nothing waits (as in any series of queues). Units that were given up wait until that moment.
//! Keywords play no role, except those that say a unit was flushed: only points, hosts and times are used.

use crate::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use serde::Serialize;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::{BTreeMap, BTreeSet};

/// A stretch is a waiting room if the server after it is at least this full (0 to 1) on average while units are in the stretch.
const CROWDED: f64 = 0.5;
/// A stretch that takes less than this share of the mean lifeline delays nothing by itself.
const NEGLIGIBLE: f64 = 0.01;
/// Two stretches are steps of one server if they hold units at the same time for at most this share of the busier one's time.
const SELDOM: f64 = 0.05;
/// Units leave in bursts if the median gap between departures is at most this share of the mean gap.
const BURST: f64 = 0.02;
/// With fewer gaps than this, departures are not judged to be bursts.
const FEW: usize = 20;
/// The usual most units of a stretch are the number that it does not exceed for this share of its busy time.
const USUALLY: f64 = 0.95;

/// A host with more stretches gets no profile: it would be unreadable.
const MOST_STRETCHES: usize = 64;

/// How one host spent its time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The name of the host.
    pub host: String,
    /// The stretches of the units' way inside the host, in the order of the way.
    pub stretches: Vec<HostStretch>,
    /// The time from the first passage of all lines to the last, ns; the same for all hosts.
    pub span_ns: u64,
    /// Time without any unit in the host, apart from units that are held ([`HostStretch::holds`]), ns.
    pub idle_ns: u64,
    /// Units that were given up inside the host.
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
    /// How many of these were given up in it.
    pub flushed: u64,
    /// Sum of the times of all units in it, ns.
    pub unit_ns: u64,
    /// Time with at least one unit in it, ns.
    pub busy_ns: u64,
    /// The most units at once, without the fullest 5 % of its busy time.
    pub most: u32,
    /// The stretch that units in it wait for, as an index into [`Profile::stretches`]. `None` if units are served in this stretch; its
    /// own index if they wait for a point that no unit reached.
    pub waits_for: Option<usize>,
    /// Time in which it limited its host, ns: units waited for it, and none waited further along the way.
    pub limits_ns: u64,
    /// Whether units leave it in bursts: they are held there until something else happens, and nothing works on them.
    pub holds: bool,
    /// Whether it is the last stretch before units leave for the host where their ways end.
    pub leaves: bool,
}

impl HostStretch {
    /// The mean number of units in it while it is busy.
    #[must_use]
    pub fn at_once(&self) -> f64 {
        self.unit_ns as f64 / self.busy_ns.max(1) as f64
    }
}

impl Profile {
    /// A time in ns as a share of the span.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.span_ns.max(1) as f64
    }

    /// The share of the span in which a stretch limited the host. `None` if the stretch has no waiting room: then waiting units and those
    /// being served cannot be distinguished.
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

    /// Whether units leave this host for the host where their ways end.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.stretches.iter().any(|stretch| stretch.leaves)
    }
}

/// The time in which one unit was in a stretch.
#[derive(Clone, Copy, Debug)]
struct StretchStay {
    from_ns: u64,
    to_ns: u64,
    /// The number of the stretch, at first in the order of appearance.
    stretch: usize,
}

/// The profiles of all hosts that units pass at two points or more, in the order of the way. Units of stackline's own measurements
/// (those with a flow) are left out: segments of their operations show where their time went.
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

/// The time from the earliest passage to the latest, ns.
fn lasted(passages: &[LifelinePassage]) -> u64 {
    let times = || passages.iter().map(|passage| passage.at_ns);
    times().max().unwrap_or(0) - times().min().unwrap_or(0)
}

/// By point: the one that most lines pass next, if it is on the same host.
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

/// By point: whether most lines that leave the host there go to the host where they end; also true if no line goes elsewhere.
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

/// Collects the data of one host's profile.
#[derive(Default)]
struct HostProfileBuilder {
    /// By stretch (from, to): its number and how many units entered it.
    stretches: BTreeMap<(u32, u32), (usize, u64)>,
    stays: Vec<StretchStay>,
    /// By number of the stretch: units that were given up in it.
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

/// Adds the stays of one line in the stretches of each host.
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
        // If no unit ever went on from this point, the stretch begins and ends at it.
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

/// When units enter (+1) and leave (-1) stretches, in the order of time: (ns, change, stretch).
fn changes(stays: &[StretchStay]) -> Vec<(u64, i32, usize)> {
    let both = |stay: &StretchStay| {
        [
            (stay.from_ns, 1, stay.stretch),
            (stay.to_ns, -1, stay.stretch),
        ]
    };
    let mut changes: Vec<(u64, i32, usize)> = stays.iter().flat_map(both).collect();
    // At one moment units enter before others leave, so that a stay of no length is counted too.
    changes.sort_by_key(|(at, change, stretch)| (*at, -*change, *stretch));
    changes
}

/// Calls `during` for each time range without a change, with the number of units in each stretch and its length in ns.
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

/// Sets how long each stretch was busy and how many units it usually held at most.
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

/// Sets which stretches hold units until something else happens: the median gap between departures is far less than the mean. Only
/// stretches with more than two units on average from which units leave the host count, and none where ways begin: there the client
/// holds them.
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

/// The index of the stretch that most units enter after one.
fn next(stretches: &[HostStretch], at: usize) -> Option<usize> {
    let follows = |(next, one): &(usize, &HostStretch)| *next != at && one.from == stretches[at].to;
    stretches
        .iter()
        .enumerate()
        .filter(follows)
        .max_by_key(|(_, one)| one.units)
        .map(|(next, _)| next)
}

/// By stretch: the steps of the server that begins with it, which are the stretch itself and those after it that hold a unit only
/// while the steps before hold none.
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

/// By stretch: how full (0 to 1) the server after it was while units were in it, as a mean weighted by the units.
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

/// Sets which stretches are waiting rooms, the last first, as a stretch that is itself a waiting room is not waited for. Of a server
/// with several steps, the one that was busy longest is what the units wait for.
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
        // A short stretch that is busier than the next one is no mere passage: it may itself be the bottleneck.
        let is_short =
            mean_ns < NEGLIGIBLE * mean_line_ns && stretches[at].busy_ns <= stretches[next].busy_ns;
        if !stretches[longest].holds && (crowds[at] >= CROWDED || is_short) {
            stretches[at].waits_for = Some(longest);
        }
    }
}

/// Sets how long each stretch limited the host, ns. Returns how long any unit that is not held was in the host, ns.
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
        // Without a waiting room of its own, a stretch holds both the units that wait and those being served.
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
