//! Classifies the outcome of each unit (complete, retried, lost and so on) from the points at which its lifeline begins and ends.
//!
//! A line *arrives* when one of its points is an end: for stackline's own units the response, the receipt or the connection; in
//! foreign logs, a point after which at most 1 % of the lines go on. It has its *beginning* when its first point is one where lines
//! begin, found in the same way. A *stretch* lies between two points that follow each other on a line.
//!
//! | outcome | rule; the first that holds counts |
//! | --- | --- |
//! | headless | its beginning is missing |
//! | retried | it arrived, and something of it was sent again or dropped |
//! | cache hit | it arrived, and its events say that a server had it in memory; without such events see below |
//! | flushed | an event says so |
//! | unfinished | its run, or the recording, ended sooner after its last point than the slowest arrived line took from there |
//! | flushed | it ends inside a host (the next point would be on the same host), and the host then received a newer request |
//! | never arrived | none of these: lost after its last point |
//!
//! If no arrived line passed the last point, the slowest line from any point counts for "unfinished".
//!
//! If no event says what was in memory, a line is a cache hit if it left out a point of a host that at least half of the arrived
//! lines through that host passed.
//! If no line left out such a point, a line is a cache hit if it passed a stretch within one host in less than a tenth of the
//! stretch's median; only stretches that take at least 5 % of the median line count.
//!
//! Without an event that says so, cache hits and flushes are found only among foreign keywords: stackline's own operations have
//! neither. If events were lost, a line may end although its unit went on; the index has the number of lost events.

use crate::assemble::roles::{EventClass, KeywordRole};
use crate::assemble::unit_id_index::ByNumber;
use crate::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use crate::segments::{self, SegmentTimes};
use stackline_core::trace_index::Index;
use stackline_events::catalogue::DataFate;
use std::collections::BTreeMap;

/// A stretch whose median is less than this share of the median line is no evidence of caches.
const LEAST_SHARE: f64 = 0.05;
/// A stretch passed in less than this share of its median is near-vertical.
const NEAR_VERTICAL: f64 = 0.1;

/// Sets the outcome of every line. `until_ns` is the time of the last event of all, on a line or not. `in_memory` says for every line
/// whether a server had its unit in memory, if an event says so.
pub(crate) fn classify(
    lifelines: &mut Lifelines,
    index: Option<&Index>,
    until_ns: u64,
    in_memory: &[Option<bool>],
) {
    let rules = Rules::new(lifelines, index, until_ns);
    let outcomes: Vec<LifelineOutcome> = lifelines
        .lines
        .iter()
        .zip(in_memory)
        .map(|(line, in_memory)| rules.outcome(lifelines, line, *in_memory))
        .collect();
    lifelines
        .lines
        .iter_mut()
        .zip(outcomes)
        .for_each(|(line, outcome)| line.outcome = outcome);
}

/// Properties of all lines that are needed to classify each.
struct Rules {
    /// By point: the role of its keyword.
    roles: Vec<KeywordRole>,
    /// By point: the number of its host.
    hosts: Vec<u32>,
    /// By point of a mark: the class of its keyword.
    beside: Vec<EventClass>,
    /// By point: whether lines begin there.
    begins: Vec<bool>,
    /// By point: whether lines end there, so that they have arrived.
    ends: Vec<bool>,
    /// By point: the longest time that an arrived line took from there to its end, ns.
    longest_ns: Vec<Option<u64>>,
    /// By point: the point that most lines pass next.
    next: Vec<Option<u32>>,
    /// By host: when it last received something from another host, ns; only for foreign keywords.
    entered_ns: Vec<Option<u64>>,
    /// By flow: the end of its run, ns.
    runs_ns: BTreeMap<u32, u64>,
    /// The time of the last event of all, ns.
    until_ns: u64,
    cached: Cached,
}

/// Criteria for a cache hit.
#[derive(Default)]
struct Cached {
    /// By point: whether at least half of the arrived lines through its host pass it.
    usual: Vec<bool>,
    /// By host: how many such points it has.
    of_host: Vec<u32>,
    /// Whether some arrived lines leave out such points.
    left_out: bool,
    /// By stretch (from, to): the time below which it is near-vertical, ns.
    below_ns: ByNumber<(u32, u32), f64>,
}

/// How often one point follows another on a line.
type Followers = ByNumber<(u32, u32), u64>;

/// How many lines pass a point, begin there, and end there.
#[derive(Clone, Copy, Default)]
struct OutcomePointCounts {
    all: u64,
    first: u64,
    last: u64,
}

impl Rules {
    fn new(lifelines: &Lifelines, index: Option<&Index>, until_ns: u64) -> Self {
        let roles: Vec<KeywordRole> = lifelines
            .points
            .iter()
            .map(|point| KeywordRole::from_keyword(&point.keyword))
            .collect();
        let beside = lifelines
            .marked
            .iter()
            .map(|point| KeywordRole::from_keyword(&point.keyword).class)
            .collect();
        let hosts = numbered_hosts(lifelines);
        let (met, followers) = counted(lifelines);
        let (begins, ends) = edges(lifelines, &roles, &met);
        let mut rules = Self {
            begins,
            ends,
            longest_ns: vec![None; roles.len()],
            next: next(&followers, roles.len()),
            entered_ns: Vec::new(),
            runs_ns: runs(index),
            until_ns,
            cached: Cached::default(),
            hosts,
            roles,
            beside,
        };
        rules.longest(lifelines);
        if rules.roles.iter().any(|role| !role.is_own()) {
            rules.entered_ns = rules.arrivals(lifelines, &followers);
            rules.cached = rules.caches(lifelines);
            let arrived = |line: &&Lifeline| rules.arrived(lifelines.passages_of(line));
            let left_out = lifelines
                .lines
                .iter()
                .filter(arrived)
                .any(|line| rules.leaves_out(lifelines.passages_of(line)));
            rules.cached.left_out = left_out;
        }
        rules
    }

    fn outcome(
        &self,
        lifelines: &Lifelines,
        line: &Lifeline,
        in_memory: Option<bool>,
    ) -> LifelineOutcome {
        let passages = lifelines.passages_of(line);
        let Some(first) = passages.first() else {
            return LifelineOutcome::default();
        };
        let marks: Vec<DataFate> = lifelines
            .marks_of(line)
            .iter()
            .filter_map(|mark| self.happened(mark))
            .collect();
        let count = |what| marks.iter().filter(|mark| **mark == what).count() as u32;
        if !self.begins[first.point as usize] {
            return LifelineOutcome::Headless {
                before: first.point,
            };
        }
        if !self.arrived(passages) {
            return self.ended(lifelines, line, &marks);
        }
        match (count(DataFate::SentAgain), count(DataFate::Dropped)) {
            (0, 0) if in_memory.unwrap_or_else(|| self.is_cache_hit(passages)) => {
                LifelineOutcome::CacheHit
            }
            (0, 0) => LifelineOutcome::Complete,
            (0, times) | (times, _) => LifelineOutcome::Retried { times },
        }
    }

    /// The fate that a mark reports, if any.
    fn happened(&self, mark: &LifelinePassage) -> Option<DataFate> {
        match self.beside.get(mark.point as usize) {
            Some(EventClass::Beside(fate)) => *fate,
            _ => None,
        }
    }

    fn arrived(&self, passages: &[LifelinePassage]) -> bool {
        passages
            .iter()
            .rev()
            .any(|passage| self.ends[passage.point as usize])
    }

    /// The outcome of a line that did not arrive.
    fn ended(&self, lifelines: &Lifelines, line: &Lifeline, marks: &[DataFate]) -> LifelineOutcome {
        let passages = lifelines.passages_of(line);
        let on_path = passages
            .iter()
            .rev()
            .find(|passage| !self.roles[passage.point as usize].returns());
        let Some(last) = on_path.or(passages.last()) else {
            return LifelineOutcome::default();
        };
        let after = last.point;
        if marks.contains(&DataFate::Flushed) {
            return LifelineOutcome::Flushed { after };
        }
        if !marks.contains(&DataFate::GivenUp) && self.is_under_way(line, last) {
            return LifelineOutcome::Unfinished { after };
        }
        if self.is_replaced(last) {
            LifelineOutcome::Flushed { after }
        } else {
            LifelineOutcome::NeverArrived { after }
        }
    }

    /// Whether a line may still have been under way when its run or the recording ended.
    fn is_under_way(&self, line: &Lifeline, last: &LifelinePassage) -> bool {
        let until = line
            .flow
            .and_then(|flow| self.runs_ns.get(&flow))
            .copied()
            .unwrap_or(self.until_ns);
        let needed = self.longest_ns[last.point as usize]
            .or_else(|| self.longest_ns.iter().flatten().max().copied());
        until.saturating_sub(last.at_ns) <= needed.unwrap_or(0)
    }

    /// Whether a line ends inside a host that received a newer request afterwards.
    fn is_replaced(&self, last: &LifelinePassage) -> bool {
        let host = self.host(last.point);
        let next = self.next[last.point as usize];
        let inside = next.is_some_and(|next| self.host(next) == host)
            && !self.roles[last.point as usize].is_own();
        inside && self.entered_ns[host].is_some_and(|entry_ns| entry_ns > last.at_ns)
    }

    fn host(&self, point: u32) -> usize {
        self.hosts[point as usize] as usize
    }

    fn is_cache_hit(&self, passages: &[LifelinePassage]) -> bool {
        if self.cached.usual.is_empty() {
            return false;
        }
        // If lines leave out points, only that counts: a short stretch may also be that of an idle server.
        if self.cached.left_out {
            return self.leaves_out(passages);
        }
        passages.windows(2).any(|pair| {
            let below = self.cached.below_ns.get(&(pair[0].point, pair[1].point));
            below.is_some_and(|below| ((pair[1].at_ns as f64) - pair[0].at_ns as f64) < *below)
        })
    }

    /// Whether a line leaves out a point that most lines through its host meet.
    fn leaves_out(&self, passages: &[LifelinePassage]) -> bool {
        let usual = |point: u32| u32::from(self.cached.usual[point as usize]);
        self.met_by_host(passages, usual)
            .iter()
            .any(|(host, met)| *met < self.cached.of_host[*host])
    }

    /// The hosts that a line passes, each once, with the sum of the weights of its points there.
    fn met_by_host(
        &self,
        passages: &[LifelinePassage],
        weight: impl Fn(u32) -> u32,
    ) -> Vec<(usize, u32)> {
        let mut hosts: Vec<(usize, u32)> = Vec::with_capacity(4);
        for passage in passages {
            let (host, weight) = (self.host(passage.point), weight(passage.point));
            match hosts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, met)) => *met += weight,
                None => hosts.push((host, weight)),
            }
        }
        hosts
    }

    /// Sets `longest_ns`.
    fn longest(&mut self, lifelines: &Lifelines) {
        for line in &lifelines.lines {
            let passages = lifelines.passages_of(line);
            if !self.arrived(passages) {
                continue;
            }
            for passage in passages {
                let took = passages[passages.len() - 1]
                    .at_ns
                    .saturating_sub(passage.at_ns);
                let longest = &mut self.longest_ns[passage.point as usize];
                *longest = Some(longest.map_or(took, |longest| longest.max(took)));
            }
        }
    }

    /// By host: the last time of a foreign point that most lines reach from another host.
    fn arrivals(&self, lifelines: &Lifelines, followers: &Followers) -> Vec<Option<u64>> {
        let mut before: Vec<(u64, Option<u32>)> = vec![(0, None); lifelines.points.len()];
        for ((from, to), count) in followers {
            // Of two with equal counts, the later point.
            before[*to as usize] = before[*to as usize].max((*count, Some(*from)));
        }
        let enters = |(point, (_, from)): (u32, &(u64, Option<u32>))| {
            !self.roles[point as usize].is_own()
                && from.is_some_and(|from| self.host(from) != self.host(point))
        };
        let enters: Vec<bool> = (0_u32..).zip(&before).map(enters).collect();
        let mut entered_ns = vec![None; lifelines.points.len()];
        for passage in lifelines
            .passages
            .iter()
            .filter(|passage| enters[passage.point as usize])
        {
            let latest = &mut entered_ns[self.host(passage.point)];
            *latest = (*latest).max(Some(passage.at_ns));
        }
        entered_ns
    }

    fn caches(&self, lifelines: &Lifelines) -> Cached {
        let arrived = |line: &&Lifeline| self.arrived(lifelines.passages_of(line));
        let foreign = |point: u32| !self.roles[point as usize].is_own();
        let mut through = vec![0_u64; lifelines.points.len()];
        let mut met = vec![0_u64; lifelines.points.len()];
        for line in lifelines.lines.iter().filter(arrived) {
            let passages = lifelines.passages_of(line);
            self.met_by_host(passages, |_| 1)
                .iter()
                .for_each(|(host, _)| through[*host] += 1);
            passages
                .iter()
                .for_each(|passage| met[passage.point as usize] += 1);
        }
        let mut cached = Cached {
            of_host: vec![0; lifelines.points.len()],
            ..Cached::default()
        };
        for (point, count) in (0_u32..).zip(&met) {
            let all = through[self.host(point)];
            let usual = foreign(point) && all > 0 && count * 2 >= all;
            cached.usual.push(usual);
            cached.of_host[self.host(point)] += u32::from(usual);
        }
        let whole = segments::median_duration_ns(lifelines, |line| {
            self.arrived(lifelines.passages_of(line))
        });
        let inside = |stretch: &SegmentTimes| {
            self.host(stretch.from) == self.host(stretch.to)
                && foreign(stretch.from)
                && foreign(stretch.to)
        };
        for stretch in segments::stretches(lifelines, inside, |line| {
            self.arrived(lifelines.passages_of(line))
        }) {
            let (key, median) = ((stretch.from, stretch.to), stretch.into_median());
            if median >= LEAST_SHARE * whole {
                cached.below_ns.insert(key, median * NEAR_VERTICAL);
            }
        }
        cached
    }
}

/// By point: the number of its host, which is the number of the host's first point.
fn numbered_hosts(lifelines: &Lifelines) -> Vec<u32> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let hosts = lifelines.points.iter().zip(0..);
    hosts
        .map(|(point, at)| *numbers.entry(&point.host).or_insert(at))
        .collect()
}

/// Keywords at which stackline's own units begin.
const BEGIN: [&str; 4] = ["APP_CALL", "APP_SEND", "APP_CONNECT", "DISPLAY_CALL"];

/// By point: whether lines begin there, and whether they end there.
fn edges(
    lifelines: &Lifelines,
    roles: &[KeywordRole],
    met: &[OutcomePointCounts],
) -> (Vec<bool>, Vec<bool>) {
    let hardly = |others: u64, all: u64| all > 0 && others * 100 <= all;
    let there = |keyword: &str| {
        lifelines
            .points
            .iter()
            .any(|point| point.keyword == keyword)
    };
    let ends_at = |point: usize| {
        let keyword = lifelines.points[point].keyword.as_str();
        let expected = goal(keyword);
        match expected.filter(|goal| there(goal)) {
            Some(goal) => keyword == goal,
            None => hardly(met[point].all - met[point].last, met[point].all),
        }
    };
    let begins_at = |point: usize| match lifelines.points[point].keyword.as_str() {
        keyword if BEGIN.contains(&keyword) => true,
        _ if roles[point].is_own() && BEGIN.iter().any(|keyword| there(keyword)) => false,
        _ => hardly(met[point].all - met[point].first, met[point].all),
    };
    (
        (0..roles.len()).map(begins_at).collect(),
        (0..roles.len()).map(ends_at).collect(),
    )
}

/// The keyword at which a unit of one of stackline's own operations has arrived.
fn goal(keyword: &str) -> Option<&'static str> {
    match keyword {
        "APP_CALL" | "APP_INDICATION" | "APP_REPLY" | "APP_REPLIED" | "APP_RESPONSE" => {
            Some("APP_RESPONSE")
        }
        "APP_SEND" | "APP_SENT" | "APP_RECEIVED" => Some("APP_RECEIVED"),
        "APP_CONNECT" | "APP_CONNECTED" => Some("APP_CONNECTED"),
        "DISPLAY_CALL" | "DISPLAY_SEND" | "DISPLAY_ARRIVE" | "DISPLAY_INTERNET"
        | "DISPLAY_AGENT" | "DISPLAY_PARSE" | "DISPLAY_STORE" | "DISPLAY_RENDER"
        | "DISPLAY_DONE" => Some("DISPLAY_DONE"),
        _ => None,
    }
}

/// Counts how many lines pass, begin and end at each point, and how often one point follows another.
fn counted(lifelines: &Lifelines) -> (Vec<OutcomePointCounts>, Followers) {
    let mut met = vec![OutcomePointCounts::default(); lifelines.points.len()];
    let mut followers = Followers::default();
    for line in &lifelines.lines {
        let passages = lifelines.passages_of(line);
        passages
            .iter()
            .for_each(|passage| met[passage.point as usize].all += 1);
        passages
            .first()
            .into_iter()
            .for_each(|first| met[first.point as usize].first += 1);
        passages
            .last()
            .into_iter()
            .for_each(|last| met[last.point as usize].last += 1);
        passages
            .windows(2)
            .for_each(|pair| *followers.entry((pair[0].point, pair[1].point)).or_default() += 1);
    }
    (met, followers)
}

/// By point: the one that most lines pass next, of two the smaller; if no line went on, the next in the order of points.
fn next(followers: &Followers, points: usize) -> Vec<Option<u32>> {
    let mut most: Vec<(u64, Option<u32>)> = (0..points)
        .map(|at| {
            (
                0,
                Some(at as u32 + 1).filter(|next| (*next as usize) < points),
            )
        })
        .collect();
    for ((from, to), count) in followers {
        let best = &mut most[*from as usize];
        if *count > best.0 || *count == best.0 && Some(*to) < best.1 {
            *best = (*count, Some(*to));
        }
    }
    most.into_iter().map(|(_, next)| next).collect()
}

/// By flow: the end of its run, ns.
fn runs(index: Option<&Index>) -> BTreeMap<u32, u64> {
    let Some(index) = index else {
        return BTreeMap::new();
    };
    let spans: BTreeMap<(usize, u32, bool), u64> = index
        .runs
        .iter()
        .map(|run| ((run.measurement, run.run, run.warmup), run.to_ns))
        .collect();
    let over = index.flows.iter().filter_map(|flow| {
        Some((
            flow.id,
            *spans.get(&(flow.measurement, flow.run, flow.warmup))?,
        ))
    });
    over.collect()
}
