//! The order in which units can have passed their points: by time where the clocks allow it; within the error of two hosts'
//! clocks, by the stages of the event catalogue.

use super::UnitEvents;
use super::line_rows::LifelineRows;
use super::order::PointOrderVotes;
use super::points::{self, ClassifiedPoint};
use crate::clock_error::clock_error;
use stackline_core::trace_index::Index;
use std::collections::BTreeSet;

/// Lets every line vote for the order of each two points that follow each other on it.
pub(super) fn cast_votes(
    drawn: &LifelineRows,
    met: &UnitEvents,
    known: &[ClassifiedPoint],
    error: &ClockErrors,
) -> PointOrderVotes {
    let mut votes = PointOrderVotes::default();
    let mut line: Vec<(u32, u64)> = Vec::new();
    for raw in &drawn.raw {
        line.clear();
        line.extend(
            drawn
                .kept_of(raw)
                .iter()
                .map(|row| (met.point[*row as usize], met.at_ns[*row as usize])),
        );
        if !error.is_one_clock()
            && line
                .iter()
                .all(|(point, _)| known[*point as usize].role.stage > 0)
        {
            line = in_path_order(line, known, error);
        }
        line.windows(2)
            .for_each(|pair| votes.cast(pair[0].0, pair[1].0));
    }
    votes
}

/// A line's points and times (ns) in an order in which its unit can have passed them. Events on one clock, or further apart than
/// the error of their two clocks, stay in the order of time. The stage in the catalogue decides between the others; of equal
/// stages (as at two ports of the network) the one with the same clock as the event before comes first.
fn in_path_order(
    mut left: Vec<(u32, u64)>,
    known: &[ClassifiedPoint],
    error: &ClockErrors,
) -> Vec<(u32, u64)> {
    let mut sorted: Vec<(u32, u64)> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_before = |earlier: &(u32, u64), later: &(u32, u64)| {
            let error_ns = error.error_between(earlier.0, later.0);
            error_ns == 0 || later.1 - earlier.1 > error_ns
        };
        let is_next = |at: &usize| {
            !left[..*at]
                .iter()
                .any(|earlier| is_before(earlier, &left[*at]))
        };
        let key = |at: &usize| {
            let elsewhere = sorted
                .last()
                .is_some_and(|last| error.error_between(last.0, left[*at].0) > 0);
            (points::stage(&known[left[*at].0 as usize]), elsewhere)
        };
        let next = (0..left.len()).filter(is_next).min_by_key(key).unwrap_or(0);
        sorted.push(left.remove(next));
    }
    sorted
}

/// The error of the clocks of each pair of hosts, ns.
pub(super) struct ClockErrors {
    /// By number of the point: the number of its host.
    host: Vec<u32>,
    /// The number of hosts.
    hosts: usize,
    /// A square table by two hosts; empty if all hosts have one clock.
    ns: Vec<u64>,
}

impl ClockErrors {
    /// Looks up the errors of each pair of hosts. With more than 1024 hosts the table would be too large: all clocks then count as
    /// one.
    pub(super) fn new(index: Option<&Index>, known: &[ClassifiedPoint]) -> Self {
        let names: BTreeSet<&str> = known
            .iter()
            .map(|known| known.point.host.as_str())
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        let place = |host: &str| names.binary_search(&host).unwrap_or(0) as u32;
        let error = |a: &str, b: &str| clock_error(index, a, b).unwrap_or(0);
        let mut ns: Vec<u64> = Vec::new();
        if index.is_some() && names.len() <= 1024 {
            ns.extend(names.iter().flat_map(|a| names.iter().map(|b| error(a, b))));
        }
        if ns.iter().all(|ns| *ns == 0) {
            ns.clear();
        }
        Self {
            host: known.iter().map(|known| place(&known.point.host)).collect(),
            hosts: names.len(),
            ns,
        }
    }

    /// Whether the events of all hosts can be ordered by time alone.
    pub(super) fn is_one_clock(&self) -> bool {
        self.ns.is_empty()
    }

    #[inline]
    fn error_between(&self, a: u32, b: u32) -> u64 {
        if self.ns.is_empty() {
            return 0;
        }
        self.ns[self.host[a as usize] as usize * self.hosts + self.host[b as usize] as usize]
    }
}
