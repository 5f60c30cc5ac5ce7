//! The order of monitor points: the one in which most units pass them.
//!
//! Each unit votes for every two points that follow each other on its line. The pairs with the clearest majority are taken
//! first, each unless it contradicts those taken before (ranked pairs, Tideman 1987). Points that no vote orders are in the order
//! of `ties`.

use super::unit_id_index::ByNumber;
use std::cmp::Reverse;

/// Most majorities that are used, the clearest ones: it bounds the time, as each is checked for a contradiction.
const MOST: usize = 20_000;

/// Votes for one point (by its number) to come before another.
#[derive(Debug, Default)]
pub(crate) struct PointOrderVotes {
    /// By pair of points (see [`pair`]): the number of votes.
    counts: ByNumber<u64, u64>,
}

impl PointOrderVotes {
    #[inline]
    pub(crate) fn cast(&mut self, before: u32, after: u32) {
        self.cast_often(before, after, 1);
    }

    /// Casts several equal votes.
    #[inline]
    pub(crate) fn cast_often(&mut self, before: u32, after: u32, votes: u64) {
        *self.counts.entry(pair(before, after)).or_default() += votes;
    }

    /// The rank of each point. `ties` has one value for each point; where votes do not decide, the smaller one comes first.
    pub(crate) fn ranks(&self, ties: &[u32]) -> Vec<u32> {
        let mut graph = vec![Vec::new(); ties.len()];
        for (before, after) in self.majorities(ties) {
            if !reaches(&graph, after, before) {
                graph[before as usize].push(after);
            }
        }
        sorted(&graph, ties)
    }

    /// Pairs (before, after) of points with a majority for this order, the clearest first.
    fn majorities(&self, ties: &[u32]) -> Vec<(u32, u32)> {
        let lead = |(key, count): (&u64, &u64)| {
            let (before, after) = ((*key >> 32) as u32, *key as u32);
            let against = self.counts.get(&pair(after, before)).copied().unwrap_or(0);
            count
                .checked_sub(against)
                .filter(|lead| *lead > 0)
                .map(|lead| (lead, before, after))
        };
        let mut leads: Vec<(u64, u32, u32)> = self.counts.iter().filter_map(lead).collect();
        let key = |(lead, before, after): &(u64, u32, u32)| {
            (
                Reverse(*lead),
                ties[*before as usize],
                ties[*after as usize],
            )
        };
        leads.sort_unstable_by_key(key);
        leads.truncate(MOST);
        leads
            .into_iter()
            .map(|(_, before, after)| (before, after))
            .collect()
    }
}

/// Key of a pair of points: `before` in the upper 32 bits, `after` in the lower.
const fn pair(before: u32, after: u32) -> u64 {
    (before as u64) << 32 | after as u64
}

/// Whether the edges of `graph` lead from one point to another.
fn reaches(graph: &[Vec<u32>], from: u32, to: u32) -> bool {
    let mut visited = vec![false; graph.len()];
    let mut next = vec![from];
    while let Some(point) = next.pop() {
        if point == to {
            return true;
        }
        if !std::mem::replace(&mut visited[point as usize], true) {
            next.extend(&graph[point as usize]);
        }
    }
    false
}

/// Ranks of points such that every edge leads to a higher rank. Points at equal distance (the longest path to them) lie together,
/// so that the same point of several hosts does too.
fn sorted(graph: &[Vec<u32>], ties: &[u32]) -> Vec<u32> {
    let mut before = vec![0_u32; graph.len()];
    graph
        .iter()
        .flatten()
        .for_each(|after| before[*after as usize] += 1);
    let mut ready: Vec<u32> = (0..graph.len() as u32)
        .filter(|point| before[*point as usize] == 0)
        .collect();
    let mut level = vec![0_u32; graph.len()];
    while let Some(point) = ready.pop() {
        for after in &graph[point as usize] {
            level[*after as usize] = level[*after as usize].max(level[point as usize] + 1);
            before[*after as usize] -= 1;
            if before[*after as usize] == 0 {
                ready.push(*after);
            }
        }
    }
    let mut order: Vec<usize> = (0..graph.len()).collect();
    order.sort_unstable_by_key(|point| (level[*point], ties[*point]));
    let mut ranks = vec![0; graph.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(rank, point)| ranks[*point] = rank as u32);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(lines: &[&[u32]], ties: &[u32]) -> Vec<u32> {
        let mut votes = PointOrderVotes::default();
        lines.iter().for_each(|line| {
            line.windows(2)
                .for_each(|pair| votes.cast(pair[0], pair[1]))
        });
        votes.ranks(ties)
    }

    #[test]
    fn the_majority_decides() {
        assert_eq!(
            ranks(&[&[2, 1, 0], &[2, 1, 0], &[0, 1, 2]], &[0, 1, 2]),
            [2, 1, 0]
        );
    }

    #[test]
    fn votes_against_a_clearer_majority_are_dropped() {
        let lines: [&[u32]; 6] = [&[0, 1], &[0, 1], &[0, 1], &[1, 2], &[1, 2], &[2, 0]];
        assert_eq!(ranks(&lines, &[0, 1, 2]), [0, 1, 2]);
    }

    #[test]
    fn without_votes_the_catalogue_orders() {
        // 0 -> 1 -> 3 and 0 -> 2 -> 3; 4 stands alone.
        assert_eq!(
            ranks(&[&[0, 1, 3], &[0, 2, 3]], &[0, 2, 1, 3, 4]),
            [0, 3, 2, 4, 1]
        );
        assert_eq!(ranks(&[], &[1, 0]), [1, 0]);
    }
}
