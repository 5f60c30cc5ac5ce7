//! Joins a request's lifeline with those of the requests that were made for it, so that a user's request shows every host
//! behind the first.
//!
//! Of requests that were under way at the same time, the line takes those that it waited for: from its end backwards, each time
//! the one that ended last before the next began ([`waited_for`]). The others keep lines of their own.

use super::UnitEvents;
use super::line_rows::{LifelineRows, RawLifeline};
use super::order::PointOrderVotes;
use super::points::ClassifiedPoint;
use crate::critical_path::waited_for;
use std::collections::BTreeMap;

/// Longest chain of requests that were made for each other; requests beyond it keep lines of their own.
const DEEPEST: usize = 32;

/// Which lines become parts of which others, by their places in [`LifelineRows::raw`].
pub(super) struct Chains {
    /// The parts of each line that has any, in the order of time.
    parts: BTreeMap<usize, Vec<usize>>,
    /// Whether each line is a part of another one.
    is_part: Vec<bool>,
}

impl Chains {
    /// Finds the parts. `parents` has pairs (unit, the unit that it was made for); `traces` has pairs (foreign trace, unit of one of
    /// its spans), where the one that encloses the other in time counts as the parent. Times that do not enclose are ignored.
    pub(super) fn new(
        drawn: &LifelineRows,
        met: &UnitEvents,
        parents: &[(u32, u32)],
        traces: &[(u32, u32)],
    ) -> Self {
        let mut chains = Self {
            parts: BTreeMap::new(),
            is_part: vec![false; drawn.raw.len()],
        };
        if parents.is_empty() && traces.is_empty() {
            return chains;
        }
        let lines: BTreeMap<u32, usize> = drawn
            .raw
            .iter()
            .enumerate()
            .map(|(at, line)| (line.id, at))
            .collect();
        let spans: Vec<(u64, u64)> = drawn
            .raw
            .iter()
            .map(|line| span(drawn.kept_of(line), met))
            .collect();
        let mut parent_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (child, parent) in parents {
            let Some((child, parent)) = lines.get(child).zip(lines.get(parent)) else {
                continue;
            };
            let (inner, outer) = (spans[*child], spans[*parent]);
            if outer.0 <= inner.0 && inner.1 <= outer.1 && inner != outer {
                parent_of.insert(*child, *parent);
            }
        }
        for (trace, unit) in traces {
            let Some((trace, unit)) = lines.get(trace).zip(lines.get(unit)) else {
                continue;
            };
            for (child, parent) in [(trace, unit), (unit, trace)] {
                let (inner, outer) = (spans[*child], spans[*parent]);
                // Of two equal spans, either could be the parent of the other.
                if outer.0 <= inner.0 && inner.1 <= outer.1 && inner != outer {
                    parent_of.entry(*child).or_insert(*parent);
                }
            }
        }
        let depth = |line: usize| {
            let above = std::iter::successors(Some(line), |line| parent_of.get(line).copied());
            above.take(DEEPEST + 1).count()
        };
        let mut made_for: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (child, parent) in &parent_of {
            if depth(*child) <= DEEPEST {
                made_for.entry(*parent).or_default().push(*child);
            }
        }
        for (parent, children) in made_for {
            let mut children = children;
            children.sort_unstable();
            children.dedup();
            let parts = waited_for(children, |child| spans[*child]);
            parts.iter().for_each(|part| chains.is_part[*part] = true);
            chains.parts.insert(parent, parts);
        }
        chains
    }

    /// Votes for the order of points: those of a part lie between the points of its parent's line.
    pub(super) fn vote(
        &self,
        drawn: &LifelineRows,
        met: &UnitEvents,
        known: &[ClassifiedPoint],
        votes: &mut PointOrderVotes,
    ) {
        let point = |row: u32| met.point[row as usize];
        for (parent, parts) in &self.parts {
            for part in parts {
                let rows = drawn.kept_of(&drawn.raw[*part]);
                let own = drawn.kept_of(&drawn.raw[*parent]);
                let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
                    continue;
                };
                let at = place_of(own, *first, met, known);
                if let Some(before) = at.checked_sub(1).and_then(|at| own.get(at)) {
                    votes.cast(point(*before), point(*first));
                }
                if let Some(after) = own.get(at) {
                    votes.cast(point(*last), point(*after));
                }
            }
        }
    }

    /// The lines with their parts inserted. If all hosts have one clock, a line is in the order of time; else each part is inserted
    /// as a whole after the last earlier event of its first host.
    pub(super) fn join(
        &self,
        drawn: &LifelineRows,
        met: &UnitEvents,
        known: &[ClassifiedPoint],
        is_one_clock: bool,
    ) -> LifelineRows {
        let mut joined = LifelineRows::default();
        for (at, line) in drawn.raw.iter().enumerate() {
            if self.is_part[at] {
                continue;
            }
            let mut marks = Vec::new();
            let mut kept = self.gather(at, drawn, met, known, &mut marks);
            if is_one_clock {
                kept.sort_by_key(|row| met.at_ns[*row as usize]);
            }
            marks.sort_by_key(|row| met.at_ns[*row as usize]);
            joined.raw.push(RawLifeline {
                id: line.id,
                first: joined.kept.len() as u32,
                count: kept.len() as u32,
                first_mark: joined.marks.len() as u32,
                mark_count: marks.len() as u32,
            });
            joined.kept.append(&mut kept);
            joined.marks.append(&mut marks);
        }
        joined
    }

    /// The events that a line and its parts passed; the marks (events beside the path, such as drops) are added to `marks`.
    fn gather(
        &self,
        line: usize,
        drawn: &LifelineRows,
        met: &UnitEvents,
        known: &[ClassifiedPoint],
        marks: &mut Vec<u32>,
    ) -> Vec<u32> {
        let mut kept = drawn.kept_of(&drawn.raw[line]).to_vec();
        marks.extend(drawn.marks_of(&drawn.raw[line]));
        for part in self.parts.get(&line).into_iter().flatten() {
            let rows = self.gather(*part, drawn, met, known, marks);
            if let Some(first) = rows.first() {
                let at = place_of(&kept, *first, met, known);
                kept.splice(at..at, rows);
            }
        }
        kept
    }
}

/// The first and the last time of a line's events, ns.
fn span(rows: &[u32], met: &UnitEvents) -> (u64, u64) {
    let times = || rows.iter().map(|row| met.at_ns[*row as usize]);
    (times().min().unwrap_or(0), times().max().unwrap_or(0))
}

/// The place in a line at which event `row` is inserted: after the last event of the same host that is not later.
fn place_of(line: &[u32], row: u32, met: &UnitEvents, known: &[ClassifiedPoint]) -> usize {
    let host = |row: u32| known[met.point[row as usize] as usize].point.host.as_str();
    let is_before = |other: &u32| {
        host(*other) == host(row) && met.at_ns[*other as usize] <= met.at_ns[row as usize]
    };
    line.iter().rposition(is_before).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use crate::assemble::{LifelineOptions, lifelines};
    use crate::lifelines::{Id, Lifelines};
    use crate::segments::{lifeline_duration_ns, segments};
    use proptest::prelude::*;
    use stackline_core::trace_index::{Index, RunFlow};
    use stackline_events::EventTable;
    use stackline_events::text::EventTextReader;
    use stackline_events::unit_ids::{EventStreamDirection, stream, unit};
    use std::fmt::Write as _;

    /// A request as a server has it: how long each message and each piece of its own work takes, and what it asks meanwhile.
    #[derive(Clone, Debug)]
    struct Asked {
        transit: u64,
        work: u64,
        /// Whether all are asked at once.
        parallel: bool,
        /// How often it is asked before, without an answer.
        attempts: u8,
        children: Vec<Self>,
    }

    /// Writes what a chain of requests leaves in a log.
    #[derive(Default)]
    struct ChainLog {
        text: String,
        index: Index,
        is_loopback: bool,
        units: Vec<u64>,
    }

    impl ChainLog {
        /// Asks at a moment. Returns the unit and when it is answered.
        fn ask(&mut self, asked: &Asked, depth: usize, at: u64) -> (i64, u64) {
            let flow = depth as u32;
            self.units.resize(self.units.len().max(depth + 1), 0);
            let id = unit(flow, self.units[depth]);
            self.units[depth] += 1;
            let host = |depth: usize| {
                if self.is_loopback {
                    "here".to_owned()
                } else {
                    format!("h{depth}")
                }
            };
            let (client, server) = (host(depth), host(depth + 1));
            if self.index.flow(flow).is_none() {
                self.index.flows.push(RunFlow {
                    id: flow,
                    hosts: (client.clone(), server.clone()),
                    service: format!("{server}:{}", 80 + depth),
                    ..RunFlow::default()
                });
            }
            let begun = at + asked.transit;
            let there = stream(flow, EventStreamDirection::There);
            let mut put = |keyword: &str, host: &str, at: u64| {
                let _ = writeln!(self.text, "{keyword}; {host}; 0; {at}; {id}; {there}");
            };
            put("APP_CALL", &client, at);
            put("SOCK_RECEIVED", &server, begun);
            put("APP_INDICATION", &server, begun);
            let mut now = begun + asked.work;
            let mut latest = now;
            for child in &asked.children {
                for _ in 0..child.attempts {
                    now = self.give_up(&server, depth + 1, now, id);
                }
                let (part, end) = self.ask(child, depth + 1, now);
                let _ = writeln!(
                    self.text,
                    "REQUEST_PARENT; {server}; 0; {end}; {part}; {id}; 980000"
                );
                latest = latest.max(end);
                if !asked.parallel {
                    now = end + asked.work;
                    latest = now;
                }
            }
            let replied = latest + asked.work;
            let end = replied + asked.transit;
            let back = stream(flow, EventStreamDirection::Back);
            let mut put = |keyword: &str, host: &str, at: u64| {
                let _ = writeln!(self.text, "{keyword}; {host}; 0; {at}; {id}; {back}");
            };
            put("APP_REPLY", &server, replied);
            put("SOCK_RECEIVED", &client, end);
            put("APP_RESPONSE", &client, end);
            (id, end)
        }

        /// Asks at a moment, and gives up before anything arrives. Returns when.
        fn give_up(&mut self, client: &str, depth: usize, at: u64, parent: i64) -> u64 {
            self.units.resize(self.units.len().max(depth + 1), 0);
            let id = unit(depth as u32, self.units[depth]);
            self.units[depth] += 1;
            let there = stream(depth as u32, EventStreamDirection::There);
            let end = at + 5_000;
            let _ = writeln!(
                self.text,
                "APP_CALL; {client}; 0; {at}; {id}; {there}\nREQUEST_PARENT; {client}; 0; {end}; {id}; {parent}; 980000"
            );
            end
        }

        fn lifelines(&self) -> Lifelines {
            let mut table = EventTable::default();
            EventTextReader::new(self.text.as_bytes(), "log")
                .for_each(|event| table.push_event(&event.unwrap()));
            lifelines(&table, Some(&self.index), &LifelineOptions::default())
        }
    }

    fn asked(transit: u64, work: u64, parallel: bool, children: Vec<Asked>) -> Asked {
        Asked {
            transit,
            work,
            parallel,
            attempts: 0,
            children,
        }
    }

    /// Chains of two to six hosts; servers ask up to three times, one after the other or at once, and some of it again.
    fn chains() -> impl Strategy<Value = Asked> {
        let alone = || {
            let times = 1..1_000_000_u64;
            (times.clone(), times, any::<bool>(), 0..3_u8).prop_map(
                |(transit, work, parallel, attempts)| Asked {
                    attempts,
                    ..asked(transit, work, parallel, Vec::new())
                },
            )
        };
        alone().prop_recursive(5, 40, 3, move |inner| {
            (alone(), prop::collection::vec(inner, 1..4))
                .prop_map(|(asked, children)| Asked { children, ..asked })
        })
    }

    proptest! {
        #[test]
        fn no_part_of_a_chain_is_negative_or_longer_than_its_request(chain in chains(), is_loopback: bool) {
            let mut log = ChainLog { is_loopback, ..ChainLog::default() };
            let (root, end) = log.ask(&chain, 0, 1_000);
            let made = log.lifelines();
            let first = made.lines.iter().find(|line| line.unit == Id::Number(root)).unwrap();
            prop_assert_eq!(lifeline_duration_ns(&made, first), (end - 1_000) as i64);
            for segment in segments(&made, Some(&log.index), false) {
                prop_assert!(segment.negative == 0 && segment.ns.max_ns <= (end - 1_000) as i64);
            }
            for line in &made.lines {
                let passages = made.passages_of(line);
                prop_assert!(passages.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
            }
            let rows = log.text.lines().filter(|line| !line.starts_with("REQUEST_PARENT")).count();
            prop_assert_eq!(made.passages.len(), rows);
        }
    }

    #[test]
    fn a_line_has_the_requests_that_it_waited_for() {
        let leaf = |work| asked(100, work, false, Vec::new());
        let sequential = asked(1_000, 10, false, vec![leaf(500), leaf(700)]);
        let mut log = ChainLog::default();
        log.ask(&sequential, 0, 0);
        assert_eq!(log.lifelines().lines.len(), 1);
        // Of two at once the line waits for the longer one; the other keeps its own.
        let parallel = asked(1_000, 10, true, vec![leaf(500), leaf(700)]);
        let mut log = ChainLog::default();
        let (root, _) = log.ask(&parallel, 0, 0);
        let made = log.lifelines();
        let lengths: Vec<(bool, u32)> = made
            .lines
            .iter()
            .map(|line| (line.unit == Id::Number(root), line.count))
            .collect();
        assert_eq!(lengths, [(true, 12), (false, 6)]);
        let services: Vec<&str> = made
            .points
            .iter()
            .map(|point| point.service.as_str())
            .collect();
        let mut order = services.clone();
        order.dedup();
        assert_eq!(order, ["h1:80", "h2:81", "h1:80"]);
    }
    #[test]
    fn spans_of_the_trace_that_a_request_names_are_on_its_line() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        for (from, to, is_within) in [(300, 900, true), (0, 99_000, true), (300, 99_000, false)] {
            let mut log = ChainLog::default();
            let (root, end) = log.ask(&asked(100, 5_000, false, Vec::new()), 0, 200);
            assert!(end < 99_000);
            let _ = writeln!(
                log.text,
                "REQUEST_TRACE; h0; 0; {end}; {root}; {trace}; b7ad6b7169203331\n\
                 WEB_GET_START; h1; 0; {from}; {trace}; b7ad6b7169203331; ; GET /\n\
                 WEB_GET_END; h1; 0; {to}; {trace}; b7ad6b7169203331; ; GET /"
            );
            let lines = log.lifelines().lines.len();
            assert_eq!(lines, if is_within { 1 } else { 2 }, "{from} to {to}");
        }
    }
}
