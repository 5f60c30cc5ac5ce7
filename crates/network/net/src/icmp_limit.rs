//! How many ICMP errors a router sends: Linux's two token buckets (ip-sysctl: `icmp_msgs_per_sec`, `icmp_msgs_burst`,
//! `icmp_ratelimit`), one for all errors and one for each destination.

use crate::packet::NodeIndex;
use crate::routed_packet::RouterIcmpError;
use alloc::collections::BTreeMap;
use stackline_core::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
/// Time between two errors in the long run, to all destinations together (`icmp_msgs_per_sec` = 1000).
const BETWEEN_ANY: Duration = Duration(SECOND / 1000);
/// Errors at once to all destinations together (`icmp_msgs_burst`).
const BURST_ANY: u64 = 50;
/// Time between two errors to one destination in the long run (`icmp_ratelimit` = 1000 ms).
const BETWEEN_ONE: Duration = Duration(SECOND);
/// Errors at once to one destination (`XRLIM_BURST_FACTOR`).
const BURST_ONE: u64 = 6;

/// A token bucket as the instant at which it was, or would have been, empty.
#[derive(Clone, Copy, Debug)]
struct IcmpBucket {
    /// It is full from `empty` plus the burst on.
    empty: Instant,
}

impl IcmpBucket {
    /// Whether a token is there at `now`, which is not before `between * burst`.
    fn has_token(&mut self, now: Instant, between: Duration, burst: u64) -> bool {
        let full = Instant(now.0.saturating_sub(between.0 * burst));
        self.empty = self.empty.max(full);
        now.since(self.empty) >= between
    }

    fn take(&mut self, between: Duration) {
        self.empty += between;
    }
}

/// The limits of one router.
#[derive(Clone, Debug)]
pub struct IcmpLimit {
    any: IcmpBucket,
    /// By destination; there is at most one for each node of the network.
    one: BTreeMap<NodeIndex, IcmpBucket>,
}

/// The network's time begins here for the buckets, so that they are full at its instant zero.
const BEGINNING: u64 = 60 * SECOND;

impl Default for IcmpLimit {
    fn default() -> Self {
        Self {
            any: IcmpBucket { empty: Instant(0) },
            one: BTreeMap::new(),
        }
    }
}

impl IcmpLimit {
    /// Whether the error may be sent to that node now; then it counts. "Fragmentation needed" is not limited, as in
    /// Linux: path MTU discovery depends on it.
    pub fn allows(&mut self, now: Instant, to: NodeIndex, error: RouterIcmpError) -> bool {
        if matches!(error, RouterIcmpError::FragmentationNeeded { .. }) {
            return true;
        }
        let now = Instant(now.0 + BEGINNING);
        let one = self
            .one
            .entry(to)
            .or_insert(IcmpBucket { empty: Instant(0) });
        let may = self.any.has_token(now, BETWEEN_ANY, BURST_ANY)
            && one.has_token(now, BETWEEN_ONE, BURST_ONE);
        if may {
            self.any.take(BETWEEN_ANY);
            one.take(BETWEEN_ONE);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(limit: &mut IcmpLimit, at_ms: u64, to: u32, times: usize) -> usize {
        let now = Instant(at_ms * 1_000_000);
        (0..times)
            .filter(|_| limit.allows(now, NodeIndex(to), RouterIcmpError::TimeExceeded))
            .count()
    }

    #[test]
    fn six_at_once_then_one_a_second() {
        let mut limit = IcmpLimit::default();
        assert_eq!(allowed(&mut limit, 0, 1, 10), 6);
        assert_eq!(allowed(&mut limit, 999, 1, 10), 0);
        assert_eq!(allowed(&mut limit, 1_000, 1, 10), 1);
        assert_eq!(
            allowed(&mut limit, 60_000, 1, 10),
            6,
            "no more than six are saved"
        );
    }

    #[test]
    fn fifty_at_once_to_all() {
        let mut limit = IcmpLimit::default();
        let sent: usize = (0..20).map(|to| allowed(&mut limit, 0, to, 6)).sum();
        assert_eq!(sent, 50);
        assert_eq!(allowed(&mut limit, 2, 30, 6), 2, "a thousand in a second");
    }

    #[test]
    fn fragmentation_needed_is_not_limited() {
        let mut limit = IcmpLimit::default();
        let error = RouterIcmpError::FragmentationNeeded { mtu: 1280 };
        let to = NodeIndex(1);
        assert!((0..1000).all(|_| limit.allows(Instant(0), to, error)));
    }
}
