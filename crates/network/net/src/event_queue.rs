//! Pending events: a monotone radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990) of items keyed by their instant.
//!
//! Items of one instant come out in the order in which they went in, so the order of events is total without a sequence
//! number. Nothing can be put in before the instant that came out last: time does not go back. In steady state it
//! allocates nothing.

use alloc::vec::Vec;
use stackline_core::time::Instant;

/// One bucket for each bit in which a key can first differ from the last one out, and one for equal keys.
// Keys are instants in ns (64 bits).
const BUCKETS: usize = 65;

/// A priority queue of items in the order of their instants; items of one instant leave in the order of entry.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    buckets: Vec<EventBucket<T>>,
    /// Bit `b` is set when bucket `b` holds something.
    occupied: u128,
    /// How many items of the first bucket have been taken already; they stay in it until it is empty.
    taken: usize,
    /// The instant of the item taken last.
    last: u64,
    /// The number of items that have not been taken.
    length: usize,
}

#[derive(Clone, Debug)]
struct EventBucket<T> {
    /// Keys (instants in ns) and items, in the order of entry.
    items: Vec<(u64, T)>,
    /// The least key in it.
    least: u64,
}

impl<T: Copy> Default for EventQueue<T> {
    fn default() -> Self {
        let buckets = (0..BUCKETS)
            .map(|_| EventBucket {
                items: Vec::new(),
                least: u64::MAX,
            })
            .collect();
        Self {
            buckets,
            occupied: 0,
            taken: 0,
            last: 0,
            length: 0,
        }
    }
}

impl<T: Copy> EventQueue<T> {
    /// Number of items.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds an item. An instant before that of the last item taken counts as that instant.
    #[inline]
    pub fn put(&mut self, at: Instant, item: T) {
        let key = at.0.max(self.last);
        self.place(key, item);
        self.length += 1;
    }

    /// Puts an item into the bucket given by the highest bit in which its key differs from `last`; equal keys go to
    /// bucket 0.
    #[inline]
    fn place(&mut self, key: u64, item: T) {
        let number = (64 - (key ^ self.last).leading_zeros()) as usize;
        self.occupied |= 1 << number;
        let bucket = &mut self.buckets[number];
        bucket.least = bucket.least.min(key);
        bucket.items.push((key, item));
    }

    /// The instant of the next item.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        // All keys of a bucket are below those of the buckets above it.
        let first = self.occupied.trailing_zeros() as usize;
        self.buckets.get(first).map(|bucket| Instant(bucket.least))
    }

    /// Takes the next item if its instant is not after `until`.
    #[inline]
    pub fn take(&mut self, until: Instant) -> Option<(Instant, T)> {
        if self.next()? > until {
            return None;
        }
        if self.occupied & 1 == 0 {
            self.spread();
        }
        let now = &mut self.buckets[0];
        let (key, item) = now.items[self.taken];
        self.taken += 1;
        self.length -= 1;
        if self.taken == now.items.len() {
            now.items.clear();
            now.least = u64::MAX;
            self.taken = 0;
            self.occupied &= !1;
        }
        Some((Instant(key), item))
    }

    /// Refills bucket 0: the least key of the earliest bucket becomes `last`, and that bucket's items move to lower
    /// buckets, those with the least key to bucket 0.
    fn spread(&mut self) {
        let first = self.occupied.trailing_zeros() as usize;
        let bucket = &mut self.buckets[first];
        self.last = core::mem::replace(&mut bucket.least, u64::MAX);
        let mut items = core::mem::take(&mut bucket.items);
        self.occupied &= !(1 << first);
        for (key, item) in items.drain(..) {
            self.place(key, item);
        }
        // Its capacity is kept for later items.
        self.buckets[first].items = items;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn items_of_one_instant_keep_their_order() {
        let mut queue = EventQueue::default();
        for (at, item) in [(5, 'a'), (3, 'b'), (5, 'c'), (4, 'd')] {
            queue.put(Instant(at), item);
        }
        assert_eq!(queue.take(Instant(4)), Some((Instant(3), 'b')));
        queue.put(Instant(5), 'e');
        assert_eq!(queue.take(Instant(4)), Some((Instant(4), 'd')));
        assert_eq!(queue.take(Instant(4)), None);
        let rest: Vec<char> =
            core::iter::from_fn(|| queue.take(Instant(9)).map(|(_, item)| item)).collect();
        assert_eq!(rest, ['a', 'c', 'e']);
    }

    #[test]
    fn time_does_not_go_back() {
        let mut queue = EventQueue::default();
        queue.put(Instant(10), 0);
        assert_eq!(queue.take(Instant(10)), Some((Instant(10), 0)));
        queue.put(Instant(3), 1);
        assert_eq!(queue.take(Instant(10)), Some((Instant(10), 1)));
    }

    proptest! {
        #[test]
        fn it_sorts_like_a_stable_sort(steps in proptest::collection::vec((0_u64..1 << 20, any::<bool>()), 0..400)) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, usize)> = Vec::new();
            let mut now = 0;
            for (index, (ahead, take)) in steps.into_iter().enumerate() {
                if take {
                    model.sort_by_key(|(at, _)| *at);
                    let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                    prop_assert_eq!(queue.next().map(|at| at.0), expected.map(|(at, _)| at));
                    let got = queue.take(Instant(u64::MAX));
                    prop_assert_eq!(got.map(|(at, item)| (at.0, item)), expected);
                    now = expected.map_or(now, |(at, _)| at);
                } else {
                    queue.put(Instant(now + ahead), index);
                    model.push((now + ahead, index));
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
