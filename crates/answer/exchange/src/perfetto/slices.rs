//! Makes slices of units for Perfetto: from a unit's first event to its last, on the host where it begins. Slices of one track must nest,
//! but units overlap, so each is put on the first lane that is free when it begins.

use stackline_analyze::lifelines::Lifelines;
use std::collections::BTreeMap;

/// The most lanes of a host; units beyond it are shown as instants and flows only.
const MOST_LANES: usize = 64;

/// The slice of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// The lane, counted from 0.
    pub(super) lane: usize,
    /// The index of the unit's lifeline.
    pub(super) line: usize,
}

/// The slices of each host, in the order in which they begin.
pub(super) fn collect_slices(lifelines: &Lifelines) -> BTreeMap<&str, Vec<Slice>> {
    let mut hosts: BTreeMap<&str, Vec<Slice>> = BTreeMap::new();
    for (line, unit) in lifelines.lines.iter().enumerate() {
        let passages = lifelines.passages_of(unit);
        let ([first, ..], Some(last)) = (passages, passages.last()) else {
            continue;
        };
        let host = lifelines.points[first.point as usize].host.as_str();
        if last.at_ns > first.at_ns {
            let slice = Slice {
                from_ns: first.at_ns,
                to_ns: last.at_ns,
                lane: 0,
                line,
            };
            hosts.entry(host).or_default().push(slice);
        }
    }
    hosts.values_mut().for_each(spread);
    hosts
}

/// Assigns lanes to the slices of a host.
fn spread(slices: &mut Vec<Slice>) {
    slices.sort_unstable_by_key(|slice| (slice.from_ns, slice.to_ns));
    let mut free_at: Vec<u64> = Vec::new();
    slices.retain_mut(|slice| {
        let lane = free_at
            .iter()
            .position(|at| *at <= slice.from_ns)
            .unwrap_or(free_at.len());
        if lane >= MOST_LANES {
            return false;
        }
        if lane == free_at.len() {
            free_at.push(0);
        }
        (free_at[lane], slice.lane) = (slice.to_ns, lane);
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(times: &[(u64, u64)]) -> Vec<usize> {
        let slice = |(line, (from_ns, to_ns)): (usize, &(u64, u64))| Slice {
            from_ns: *from_ns,
            to_ns: *to_ns,
            lane: 0,
            line,
        };
        let mut slices: Vec<Slice> = times.iter().enumerate().map(slice).collect();
        spread(&mut slices);
        slices.iter().map(|slice| slice.lane).collect()
    }

    #[test]
    fn units_that_overlap_have_lanes_of_their_own() {
        assert_eq!(lanes(&[(0, 10), (10, 20), (20, 25)]), [0, 0, 0]);
        assert_eq!(lanes(&[(0, 10), (5, 20), (10, 12), (15, 16)]), [0, 1, 0, 0]);
    }

    #[test]
    fn there_is_an_end_to_lanes() {
        let all: Vec<(u64, u64)> = (0..1000).map(|at| (at, 5000)).collect();
        assert_eq!(lanes(&all).len(), MOST_LANES);
    }
}
