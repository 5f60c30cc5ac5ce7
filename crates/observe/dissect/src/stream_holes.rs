//! Tracks gaps in one direction of a connection and how long each was open: bytes that fill a gap late were lost before the capture point
//! and retransmitted.

use crate::left_out::{Bound, LeftOut};
use std::collections::VecDeque;

/// The most gaps that are remembered; beyond it, the oldest is forgotten.
const MOST: usize = Bound::Repeated.most();
/// Without a known round-trip time: a gap that is filled sooner than this (ns) was only reordering.
const REORDERED_NS: u64 = 3_000_000;
/// A gap that is filled sooner than this (ns) is never taken as a loss.
const SOONEST_NS: u64 = 200_000;

/// A gap: bytes that had not been seen when later bytes arrived.
#[derive(Clone, Copy, Debug)]
struct StreamHole {
    from: u64,
    end: u64,
    since_ns: u64,
}

/// The gaps of one direction.
#[derive(Clone, Debug, Default)]
pub struct StreamHoles {
    /// The offset just after the farthest byte seen.
    end: u64,
    has_begun: bool,
    holes: VecDeque<StreamHole>,
}

impl StreamHoles {
    /// Notes that the bytes from `from` to before `end` were seen. If they fill a gap or a part of it, returns how long it was open, ns.
    pub fn pass(&mut self, from: u64, end: u64, at_ns: u64, left_out: &mut LeftOut) -> Option<u64> {
        let before = self.end;
        self.end = before.max(end);
        if !std::mem::replace(&mut self.has_begun, true) || from == before {
            return None;
        }
        if from > before {
            if self.holes.len() >= MOST {
                self.holes.pop_front();
                left_out.add(Bound::Repeated, 1);
            }
            self.holes.push_back(StreamHole {
                from: before,
                end: from,
                since_ns: at_ns,
            });
            return None;
        }
        let at = self
            .holes
            .iter()
            .position(|hole| hole.from < end && hole.end > from)?;
        let hole = &mut self.holes[at];
        let open_ns = at_ns.saturating_sub(hole.since_ns);
        match (from <= hole.from, end >= hole.end) {
            (true, true) => {
                self.holes.remove(at);
            }
            (true, false) => hole.from = end,
            (false, true) => hole.end = from,
            (false, false) => {
                let rest = StreamHole { from: end, ..*hole };
                hole.end = from;
                self.holes.insert(at + 1, rest);
            }
        }
        Some(open_ns)
    }
}

/// Whether bytes that filled a gap after `open_ns` were lost and retransmitted rather than reordered: a retransmission takes about a
/// round-trip time, so less than three quarters of it means reordering.
#[must_use]
pub fn is_mended_loss(open_ns: u64, round_trip_ns: Option<u64>) -> bool {
    let least = round_trip_ns.map_or(REORDERED_NS, |trip| trip / 4 * 3);
    open_ns >= least.max(SOONEST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hole_has_its_own_time() {
        let (mut holes, mut left_out) = (StreamHoles::default(), LeftOut::default());
        let mut pass = |from, end, at_ns| holes.pass(from, end, at_ns, &mut left_out);
        assert_eq!(pass(0, 100, 10), None);
        assert_eq!(pass(200, 300, 20), None);
        assert_eq!(pass(500, 600, 30), None);
        // In its midst, at its edges, all of it; and what was there before.
        assert_eq!(pass(400, 450, 40), Some(10));
        assert_eq!(pass(300, 400, 50), Some(20));
        assert_eq!(pass(0, 300, 60), Some(40));
        assert_eq!(pass(100, 200, 70), None);
        assert_eq!(pass(450, 500, 80), Some(50));
        assert_eq!(pass(600, 700, 90), None);
    }

    #[test]
    fn out_of_order_is_sooner_than_a_loss_is_mended() {
        assert!(!is_mended_loss(2_000_000, None) && is_mended_loss(3_000_000, None));
        let trip = Some(20_000_000);
        assert!(!is_mended_loss(10_000_000, trip) && is_mended_loss(20_000_000, trip));
        assert!(!is_mended_loss(100_000, Some(50_000)));
    }
}
