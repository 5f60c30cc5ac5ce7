//! The outcome of each unit, from where its line begins and ends, never from how long it took.
//!
//! A line *arrives* when one of its points is a last one: of stackline's own units the response, the receipt, the connection; in logs of
//! others, a point behind which hardly any line (1 %) goes on. It has its *beginning* when its first point is one where lines begin,
//! found alike. A *stretch* is what lies between two points that follow each other.
//!
//! | outcome | rule; the first that holds counts |
//! | --- | --- |
//! | headless | its beginning is missing |
//! | retried | it arrived, and something of it was sent again or dropped |
//! | cache hit | it arrived, and its events say that a server had it in memory; without such events see below |
//! | flushed | an event says so |
//! | unfinished | its run, or all that was recorded, ended sooner after its last point than the slowest line took from there (or from any point, where none went on from there) |
//! | flushed | it ends inside a host (the next point would be there too), and the host got a newer request after |
//! | never arrived | none of these: lost after its last point |
//!
//! Where no event says what was in memory, a line is a cache hit when it left out a point of a host that at least half of those
//! that arrived passed there.
//! Where no line does, it is one when it passed a stretch within one host in less than a tenth of the median, on a stretch that takes at
//! least 5 % of the median line.
//!
//! Cache hits and flushes are found in keywords of others only: stackline's own operations have neither. Where events were
//! lost, a line may end although its unit went on: the index says how many were.

use crate::assemble::roles::{EventClass, KeywordRole};
use crate::assemble::unit_id_index::ByNumber;
use crate::lifelines::{Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use crate::segments::{self, SegmentTimes};
use stackline_core::trace_index::Index;
use stackline_events::catalogue::DataFate;
use std::collections::BTreeMap;

/// A stretch that takes less than this share of the median way is not evidence of caches.
const LEAST_SHARE: f64 = 0.05;
/// A stretch passed in less than this share of its median is near-vertical.
const NEAR_VERTICAL: f64 = 0.1;

/// Sets the outcome of every line. `until_ns`: the last event of all, also of those on no line. `in_memory`: of every line, whether a
/// server had its unit in memory, where an event says so.
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

/// What is known of all lines before one can be judged.
struct Rules {
    roles: Vec<KeywordRole>,
    /// The number of each point's host.
    hosts: Vec<u32>,
    beside: Vec<EventClass>,
    begins: Vec<bool>,
    ends: Vec<bool>,
    /// The longest that an arrived line took from each point to its end, ns.
    longest_ns: Vec<Option<u64>>,
    /// The point that most lines come to next.
    next: Vec<Option<u32>>,
    /// When each host last got something from another.
    entered_ns: Vec<Option<u64>>,
    /// When a run of a flow was over.
    runs_ns: BTreeMap<u32, u64>,
    until_ns: u64,
    cached: Cached,
}

/// How a cache hit is recognised.
#[derive(Default)]
struct Cached {
    /// Points that most lines through their host meet there.
    usual: Vec<bool>,
    /// How many of them each host has.
    of_host: Vec<u32>,
    /// Whether some lines leave out such points.
    left_out: bool,
    /// Below how many ns a stretch is near-vertical.
    below_ns: ByNumber<(u32, u32), f64>,
}

/// How often one point follows another on a line.
type Followers = ByNumber<(u32, u32), u64>;

/// How often lines meet a point, begin there, end there.
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
            .map(|point| KeywordRole::of(&point.keyword))
            .collect();
        let beside = lifelines
            .marked
            .iter()
            .map(|point| KeywordRole::of(&point.keyword).class)
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

    /// Of a line that did not arrive.
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

    /// Whether it waited inside a host that then got a newer request.
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
        // Where lines leave out points, that tells; a short stay may be one of an idle server.
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

    /// The hosts a line passes, each once, and how much it met there.
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

    /// When hosts of others last got something: at points that most lines come to from another host.
    fn arrivals(&self, lifelines: &Lifelines, followers: &Followers) -> Vec<Option<u64>> {
        let mut before: Vec<(u64, Option<u32>)> = vec![(0, None); lifelines.points.len()];
        for ((from, to), count) in followers {
            // Of two that are as many, the later point.
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

/// The number of each point's host, the first of its points.
fn numbered_hosts(lifelines: &Lifelines) -> Vec<u32> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let hosts = lifelines.points.iter().zip(0..);
    hosts
        .map(|(point, at)| *numbers.entry(&point.host).or_insert(at))
        .collect()
}

/// Where the way of a unit of stackline's own begins.
const BEGIN: [&str; 4] = ["APP_CALL", "APP_SEND", "APP_CONNECT", "DISPLAY_CALL"];

/// Where ways begin and where they end.
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

/// Where the unit that an operation of stackline's own is about arrives at last.
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

/// How often lines meet each point, and how often one point follows another.
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

/// The point that most lines come to from each, of two the first; where none went on, the next of all.
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
