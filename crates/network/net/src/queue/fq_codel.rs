//! A queue for each flow, served by deficit round robin, each with its own CoDel; flows that send little go first
//! (FQ-CoDel, RFC 8290).
//!
//! [`FqCoDel`] has no limit of its own: the caller drops from the longest queue until everything fits.

use super::DisciplineVerdict;
use super::codel::CoDel;
use super::fifo::Fifo;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// The entry of `queue_of` for a hash value without a queue.
const NONE: u32 = u32::MAX;

/// Queues of items by flow. A queue is made for the first packet with its hash value; after that memory is allocated
/// only when a queue grows.
#[derive(Clone, Debug)]
pub struct FqCoDel<T> {
    /// CoDel in its first state, copied into each queue that is made.
    codel: CoDel,
    /// Bytes that a queue may send in one turn.
    quantum: i64,
    /// Bytes that may wait behind a packet without being a standing queue.
    mtu: u64,
    /// The key of the hash of flows.
    perturbation: Seed,
    /// By hash value: the index of its queue in `queues`, or [`NONE`].
    queue_of: Vec<u32>,
    queues: Vec<FqCoDelQueue<T>>,
    /// Queues that became non-empty a short while ago; they are served first. A queue is in at most one of the two
    /// lists.
    new: VecDeque<u32>,
    /// The other queues that may hold something.
    old: VecDeque<u32>,
    /// Bytes in all queues.
    bytes: u64,
    /// Items in all queues.
    items: usize,
}

#[derive(Clone, Debug)]
struct FqCoDelQueue<T> {
    waiting: Fifo<T>,
    codel: CoDel,
    /// Bytes that the queue may still send in this turn.
    deficit: i64,
    /// Whether the queue is in one of the two lists.
    listed: bool,
}

impl<T> FqCoDel<T> {
    /// `target`, `interval` and `mtu` (bytes) are CoDel's; flows are hashed to `flows` queues in a way that
    /// `perturbation` changes; a queue sends up to `quantum` bytes in its turn.
    #[must_use]
    pub fn new(
        target: Duration,
        interval: Duration,
        flows: u32,
        quantum: u32,
        mtu: u64,
        perturbation: u64,
    ) -> Self {
        Self {
            codel: CoDel::new(target, interval),
            quantum: i64::from(quantum.max(1)),
            mtu,
            perturbation: Seed(perturbation),
            queue_of: vec![NONE; flows.max(1) as usize],
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            items: 0,
        }
    }

    /// Bytes in all queues.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Items in all queues.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items
    }

    /// Whether all queues are empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Puts an item of `bytes` bytes at the tail of its flow's queue.
    pub fn push(&mut self, now: Instant, flow: u32, bytes: u64, item: T) {
        let at = self.queue(flow);
        let queue = &mut self.queues[at as usize];
        queue.waiting.push(now, bytes, item);
        self.bytes += bytes;
        self.items += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(at);
        }
    }

    /// Takes the next item. An item that CoDel wants dropped or marked goes to `marked_or_dropped`, which returns it
    /// marked, or keeps it: then the next item is tried.
    pub fn pop(
        &mut self,
        now: Instant,
        mut marked_or_dropped: impl FnMut(T, DisciplineVerdict) -> Option<T>,
    ) -> Option<T> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new {
                &mut self.new
            } else {
                &mut self.old
            };
            let at = *list.front()?;
            let queue = &mut self.queues[at as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            if let Some((bytes, item)) = self.head(at, now, &mut marked_or_dropped) {
                let spent = i64::try_from(bytes).unwrap_or(i64::MAX);
                let queue = &mut self.queues[at as usize];
                queue.deficit = queue.deficit.saturating_sub(spent);
                return Some(item);
            }
            // A new queue that has run empty waits among the old ones, so that it cannot be new all the time.
            if from_new {
                self.new.pop_front();
                self.old.push_back(at);
            } else {
                self.old.pop_front();
                self.queues[at as usize].listed = false;
            }
        }
    }

    /// Takes the head of the queue with the most bytes, for the caller to drop when the total exceeds its limit.
    pub fn drop_from_longest(&mut self) -> Option<T> {
        let longest = self
            .queues
            .iter_mut()
            // `max_by_key` takes the last of equals: reversed, that is the queue made first.
            .rev()
            .max_by_key(|queue| queue.waiting.bytes())?;
        let (_, bytes, item) = longest.waiting.pop()?;
        self.bytes -= bytes;
        self.items -= 1;
        Some(item)
    }

    /// The index of the flow's queue, which is made if the hash value has none.
    fn queue(&mut self, flow: u32) -> u32 {
        let hash = self.perturbation.index(u64::from(flow)).0;
        // The upper half of the product: even over all queues, without a division.
        let place = (u128::from(hash) * self.queue_of.len() as u128) >> 64;
        let known = &mut self.queue_of[place as usize];
        if *known == NONE {
            *known = self.queues.len() as u32;
            let codel = self.codel.clone();
            self.queues.push(FqCoDelQueue {
                waiting: Fifo::new(),
                codel,
                deficit: 0,
                listed: false,
            });
        }
        *known
    }

    /// The first item of a queue that CoDel lets pass or that `marked_or_dropped` returned, with its bytes.
    fn head(
        &mut self,
        at: u32,
        now: Instant,
        marked_or_dropped: &mut impl FnMut(T, DisciplineVerdict) -> Option<T>,
    ) -> Option<(u64, T)> {
        let queue = &mut self.queues[at as usize];
        while let Some((since, bytes, item)) = queue.waiting.pop() {
            self.bytes -= bytes;
            self.items -= 1;
            let sojourn = now.since(since);
            if !queue
                .codel
                .signals_congestion(now, sojourn, queue.waiting.bytes(), self.mtu)
            {
                return Some((bytes, item));
            }
            if let Some(item) = marked_or_dropped(item, DisciplineVerdict { bytes, sojourn }) {
                return Some((bytes, item));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const NOW: Instant = Instant(0);

    fn fair<T>() -> FqCoDel<T> {
        FqCoDel::new(Duration(5 * MS), Duration(100 * MS), 1024, 1514, 1514, 1)
    }

    fn drop_item<T>(_: T, _: DisciplineVerdict) -> Option<T> {
        None
    }

    fn drain<T>(queue: &mut FqCoDel<T>) -> Vec<T> {
        core::iter::from_fn(|| queue.pop(NOW, drop_item)).collect()
    }

    #[test]
    fn two_flows_get_equal_shares_of_the_bytes() {
        let mut queue = fair();
        for _ in 0..300 {
            queue.push(NOW, 1, 1500, 1);
        }
        for _ in 0..3000 {
            queue.push(NOW, 2, 300, 2);
        }
        let mut sent = [0_u64; 3];
        for flow in core::iter::from_fn(|| queue.pop(NOW, drop_item)).take(600) {
            sent[flow] += [0, 1500, 300][flow];
        }
        assert!(sent[1].abs_diff(sent[2]) <= 2 * 1514, "{sent:?}");
    }

    #[test]
    fn round_robin_by_hand() {
        let mut queue = FqCoDel::new(Duration(5 * MS), Duration(100 * MS), 1024, 1000, 1514, 1);
        for (flow, bytes, name) in [
            (1, 600, "a1"),
            (1, 600, "a2"),
            (1, 600, "a3"),
            (2, 1000, "b1"),
            (2, 1000, "b2"),
        ] {
            queue.push(NOW, flow, bytes, name);
        }
        // a has 1000, sends 600 and 600 and owes 200; b sends 1000 and has none left; both are old then. a gets to 800.
        assert_eq!(drain(&mut queue), ["a1", "a2", "b1", "a3", "b2"]);
        // A flow that comes anew goes before those that have had their turn.
        for name in ["a4", "a5", "a6"] {
            queue.push(NOW, 1, 600, name);
        }
        assert_eq!(
            [queue.pop(NOW, drop_item), queue.pop(NOW, drop_item)],
            [Some("a4"), Some("a5")]
        );
        queue.push(NOW, 2, 100, "b3");
        assert_eq!(drain(&mut queue), ["b3", "a6"]);
    }

    #[test]
    fn a_sparse_flow_does_not_wait_behind_a_fat_one() {
        // Two fat flows fill a link of 1 ms a packet twice over; a sparse one sends a packet of 100 bytes each 20 ms.
        let mut queue = fair();
        let mut sparse = 0;
        for ms in 0..10_000 {
            let now = Instant(ms * MS);
            for flow in [1, 2] {
                queue.push(now, flow, 1500, (flow, now));
            }
            if ms % 20 == 10 {
                queue.push(now, 3, 100, (3, now));
            }
            while queue.bytes() > 150_000 {
                assert_ne!(queue.drop_from_longest().unwrap().0, 3);
            }
            let (flow, since) = queue.pop(now, drop_item).unwrap();
            if flow == 3 {
                sparse += 1;
                assert_eq!(now, since, "it leaves when it comes");
            }
        }
        assert_eq!(sparse, 500);
    }

    #[test]
    fn overload_drops_the_head_of_the_longest_queue() {
        let mut queue = fair();
        for (flow, bytes, name) in [
            (1, 100, "a1"),
            (2, 900, "b1"),
            (2, 200, "b2"),
            (3, 1000, "c1"),
        ] {
            queue.push(NOW, flow, bytes, name);
        }
        assert_eq!((queue.bytes(), queue.len()), (2200, 4));
        assert_eq!(
            [
                queue.drop_from_longest(),
                queue.drop_from_longest(),
                queue.drop_from_longest()
            ],
            [Some("b1"), Some("c1"), Some("b2")]
        );
        assert_eq!((queue.bytes(), queue.len()), (100, 1));
        assert_eq!(drain(&mut queue), ["a1"]);
        assert_eq!((queue.drop_from_longest(), queue.is_empty()), (None, true));
    }

    #[test]
    fn each_flow_is_judged_by_its_own_delay_and_marks_are_sent() {
        // One flow at twice the rate of a link of 1 ms a packet, marked instead of dropped; another with little.
        let mut queue = fair();
        let (mut marked, mut sent) = (0, 0);
        for ms in 0..1000 {
            let now = Instant(ms * MS);
            for _ in 0..2 {
                queue.push(now, 1, 1500, 1);
            }
            if ms % 4 == 0 {
                queue.push(now, 2, 1500, 2);
            }
            sent += u32::from(
                queue
                    .pop(now, |flow, verdict| {
                        assert_eq!((flow, verdict.bytes), (1, 1500));
                        assert!(verdict.sojourn >= Duration(5 * MS));
                        marked += 1;
                        Some(flow)
                    })
                    .is_some(),
            );
        }
        assert_eq!(sent, 1000, "what is marked is sent");
        // The first a little after 100 ms, then 100, 100 / sqrt(2) ... ms later: n of them take 200 sqrt(n) - 146 ms.
        assert!((26..=28).contains(&marked), "{marked}");
    }

    #[test]
    fn the_perturbation_changes_who_shares_a_queue() {
        let places = |perturbation| -> Vec<u32> {
            let mut queue: FqCoDel<()> =
                FqCoDel::new(Duration(0), Duration(0), 4, 1, 1, perturbation);
            (0..16).map(|flow| queue.queue(flow)).collect()
        };
        assert_ne!(places(1), places(2));
        assert_eq!(places(1), places(1));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_a_flow_keeps_its_order(
            steps in proptest::collection::vec((0_u32..6, 1_u64..5000, 0_u8..4), 1..300), flows in 1_u32..5, quantum in 1_u32..3000,
        ) {
            let mut queue = FqCoDel::new(Duration(3), Duration(20), flows, quantum, 1500, 9);
            let (mut inside, mut pushed, mut gone) = (0_u64, 0, Vec::new());
            for (at, (flow, bytes, action)) in steps.into_iter().enumerate() {
                let now = Instant(at as u64);
                match action {
                    0 => {
                        let mut fallen = Vec::new();
                        let taken = queue.pop(now, |item, _| { fallen.push(item); None });
                        gone.extend(fallen.into_iter().chain(taken));
                    }
                    1 => gone.extend(queue.drop_from_longest()),
                    _ => {
                        queue.push(now, flow, bytes, (flow, at, bytes));
                        (inside, pushed) = (inside + bytes, pushed + 1);
                    }
                }
                prop_assert_eq!(queue.bytes(), inside - gone.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
                prop_assert_eq!(queue.len(), pushed - gone.len());
            }
            gone.extend(core::iter::from_fn(|| queue.pop(Instant(1000), |item, _| Some(item))));
            prop_assert_eq!(gone.len(), pushed);
            prop_assert_eq!((queue.bytes(), queue.len()), (0, 0));
            for flow in 0..6 {
                let order: Vec<usize> = gone.iter().filter(|item| item.0 == flow).map(|item| item.1).collect();
                prop_assert!(order.is_sorted());
            }
        }
    }
}
