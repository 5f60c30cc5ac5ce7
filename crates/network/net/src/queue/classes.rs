//! Classes by code point (RFC 2474): those of strict priority in their order, then the others by deficit round robin
//! (Shreedhar and Varghese 1995), each with a limit of its own and perhaps its own CoDel.
//!
//! A class with a weight may send that many packets of full size in its turn, so each turn passes at least one packet.

use super::codel::CoDel;
use super::fifo::Fifo;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use stackline_core::network::{ClassService, LARGEST_DSCP, QueueClass};
use stackline_core::time::Instant;

/// Queues of items by class.
#[derive(Clone, Debug)]
pub struct ClassQueues<T> {
    /// By code point: the index of its class.
    class_of: [u8; LARGEST_DSCP as usize + 1],
    queues: Vec<ClassQueue<T>>,
    /// The classes with a weight that hold something, in the order of their turns.
    turns: VecDeque<u8>,
    /// Bytes that may wait behind a packet without being a standing queue.
    mtu: u64,
    /// Bytes in all classes.
    bytes: u64,
    /// Items in all classes.
    items: usize,
}

#[derive(Clone, Debug)]
struct ClassQueue<T> {
    waiting: Fifo<T>,
    codel: Option<CoDel>,
    /// Bytes added in each turn; 0 with strict priority.
    quantum: u64,
    /// Bytes that it may still send in this turn.
    deficit: u64,
    /// Whether its turn has begun, so that its quantum was added.
    in_turn: bool,
    limit_bytes: u64,
    limit_packets: u64,
}

impl<T> ClassQueues<T> {
    /// Empty queues for at most 64 classes; code points that none names belong to the class without code points, or to the
    /// last. `mtu` is the largest packet of the link in bytes.
    #[must_use]
    pub fn new(classes: &[QueueClass], mtu: u64) -> Self {
        let others = classes
            .iter()
            .position(|class| class.dscps.is_empty())
            .unwrap_or(classes.len().saturating_sub(1));
        let mut class_of = [others as u8; LARGEST_DSCP as usize + 1];
        for (index, class) in classes.iter().enumerate() {
            for dscp in &class.dscps {
                class_of[usize::from(*dscp & LARGEST_DSCP)] = index as u8;
            }
        }
        let queue = |class: &QueueClass| ClassQueue {
            waiting: Fifo::new(),
            codel: class
                .codel
                .map(|(target, interval)| CoDel::new(target, interval)),
            quantum: match class.service {
                ClassService::Strict => 0,
                ClassService::Weight(weight) => u64::from(weight.max(1)) * mtu.max(1),
            },
            deficit: 0,
            in_turn: false,
            limit_bytes: class.limit_bytes.unwrap_or(u64::MAX),
            limit_packets: class.limit_packets.unwrap_or(u64::MAX),
        };
        Self {
            class_of,
            queues: classes.iter().map(queue).collect(),
            turns: VecDeque::new(),
            mtu,
            bytes: 0,
            items: 0,
        }
    }

    /// Bytes in all classes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Items in all classes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items
    }

    /// Whether all classes are empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Puts an item of `bytes` bytes at the tail of its class; returns it where the class is full.
    pub fn push(&mut self, now: Instant, dscp: u8, bytes: u64, item: T) -> Option<T> {
        let at = self.class_of[usize::from(dscp & LARGEST_DSCP)];
        let Some(queue) = self.queues.get_mut(usize::from(at)) else {
            return Some(item);
        };
        let was_empty = queue.waiting.is_empty();
        if queue.waiting.bytes() + bytes > queue.limit_bytes
            || queue.waiting.len() as u64 + 1 > queue.limit_packets
        {
            return Some(item);
        }
        queue.waiting.push(now, bytes, item);
        self.bytes += bytes;
        self.items += 1;
        if was_empty && queue.quantum > 0 {
            self.turns.push_back(at);
        }
        None
    }

    /// Takes the next item. An item that waited too long goes to `marked_or_dropped`, which returns it marked, or keeps
    /// it: then the next item is tried.
    pub fn pop(
        &mut self,
        now: Instant,
        mut marked_or_dropped: impl FnMut(T) -> Option<T>,
    ) -> Option<T> {
        while self.items > 0 {
            let at = self.next_class()?;
            let (bytes, item, waited_too_long) = self.take(at, now)?;
            let item = if waited_too_long {
                marked_or_dropped(item)
            } else {
                Some(item)
            };
            let queue = &mut self.queues[at];
            if queue.quantum > 0 {
                // What CoDel dropped costs no turn.
                queue.deficit -= if item.is_some() { bytes } else { 0 };
                if queue.waiting.is_empty() {
                    (queue.deficit, queue.in_turn) = (0, false);
                    self.turns.pop_front();
                }
            }
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// Takes the newest item of the class with the most bytes, for the caller to drop when the total exceeds its limit.
    pub fn drop_from_longest(&mut self) -> Option<T> {
        let (at, queue) = self
            .queues
            .iter_mut()
            .enumerate()
            .max_by_key(|(at, queue)| (queue.waiting.bytes(), *at))?;
        let (_, bytes, item) = queue.waiting.pop_newest()?;
        self.bytes -= bytes;
        self.items -= 1;
        if queue.waiting.is_empty() && queue.quantum > 0 {
            (queue.deficit, queue.in_turn) = (0, false);
            self.turns.retain(|turn| usize::from(*turn) != at);
        }
        Some(item)
    }

    /// The class whose head is next: the first of strict priority that holds something, else the one whose turn it is.
    fn next_class(&mut self) -> Option<usize> {
        let strict = |queue: &ClassQueue<T>| queue.quantum == 0 && !queue.waiting.is_empty();
        if let Some(at) = self.queues.iter().position(strict) {
            return Some(at);
        }
        loop {
            let at = *self.turns.front()?;
            let queue = &mut self.queues[usize::from(at)];
            if !queue.in_turn {
                queue.in_turn = true;
                queue.deficit = queue.deficit.saturating_add(queue.quantum);
            }
            let (_, bytes, _) = queue.waiting.head()?;
            if bytes <= queue.deficit {
                return Some(usize::from(at));
            }
            queue.in_turn = false;
            self.turns.rotate_left(1);
        }
    }

    /// Takes the head of a class: its bytes, itself, and whether it waited too long.
    fn take(&mut self, at: usize, now: Instant) -> Option<(u64, T, bool)> {
        let queue = self.queues.get_mut(at)?;
        let (since, bytes, item) = queue.waiting.pop()?;
        self.bytes -= bytes;
        self.items -= 1;
        let behind = queue.waiting.bytes();
        let waited_too_long = queue
            .codel
            .as_mut()
            .is_some_and(|codel| codel.signals_congestion(now, now.since(since), behind, self.mtu));
        Some((bytes, item, waited_too_long))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use stackline_core::time::Duration;

    const NOW: Instant = Instant(0);
    const EF: u8 = 46;
    const AF: u8 = 34;

    fn class(dscps: &[u8], service: ClassService) -> QueueClass {
        QueueClass {
            dscps: dscps.to_vec(),
            service,
            ..QueueClass::default()
        }
    }

    fn queues(classes: &[QueueClass]) -> ClassQueues<(u8, u64)> {
        ClassQueues::new(classes, 1500)
    }

    fn drain(queues: &mut ClassQueues<(u8, u64)>) -> Vec<(u8, u64)> {
        core::iter::from_fn(|| queues.pop(NOW, |_| None)).collect()
    }

    #[test]
    fn strict_classes_go_first_in_their_order() {
        let mut queues = queues(&[
            class(&[EF], ClassService::Strict),
            class(&[48, 56], ClassService::Strict),
            class(&[], ClassService::Weight(1)),
        ]);
        for (number, dscp) in [0, 56, EF, 7, 48, EF].into_iter().enumerate() {
            assert_eq!(queues.push(NOW, dscp, 1500, (dscp, number as u64)), None);
        }
        let order: Vec<u64> = drain(&mut queues)
            .iter()
            .map(|(_, number)| *number)
            .collect();
        assert_eq!(order, [2, 5, 1, 4, 0, 3]);
    }

    #[test]
    fn deficits_by_hand() {
        // Quanta of 3000 and 1500 bytes; packets of 1200 and of 1000 bytes.
        let mut queues = queues(&[
            class(&[AF], ClassService::Weight(2)),
            class(&[], ClassService::Weight(1)),
        ]);
        for number in 0..6 {
            queues.push(NOW, AF, 1200, (1, number));
            queues.push(NOW, 0, 1000, (0, number));
        }
        // AF: 3000 - 2 x 1200 = 600 left; 3600 in the next turn: three. Default: 500 left, then 2000: two.
        let classes: Vec<u8> = drain(&mut queues).iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, [1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn bytes_are_shared_by_weight_whatever_the_sizes() {
        let mut queues = queues(&[
            class(&[AF], ClassService::Weight(3)),
            class(&[], ClassService::Weight(1)),
        ]);
        for number in 0..4000 {
            queues.push(NOW, AF, 300, (1, number));
            queues.push(NOW, 0, 1500, (0, number));
        }
        let mut sent = [0_u64; 2];
        for (class, _) in core::iter::from_fn(|| queues.pop(NOW, |_| None)).take(2000) {
            sent[usize::from(class)] += [1500, 300][usize::from(class)];
        }
        assert!(sent[1].abs_diff(3 * sent[0]) <= 3 * 1500, "{sent:?}");
    }

    #[test]
    fn a_class_has_its_limit_and_the_longest_gives_way() {
        let limited = QueueClass {
            limit_packets: Some(2),
            ..class(&[EF], ClassService::Strict)
        };
        let mut queues = queues(&[limited, class(&[], ClassService::Weight(1))]);
        assert_eq!(queues.push(NOW, EF, 100, (1, 0)), None);
        assert_eq!(queues.push(NOW, EF, 100, (1, 1)), None);
        assert_eq!(queues.push(NOW, EF, 100, (1, 2)), Some((1, 2)));
        queues.push(NOW, 0, 1500, (0, 3));
        queues.push(NOW, 0, 1500, (0, 4));
        assert_eq!((queues.bytes(), queues.len()), (3200, 4));
        assert_eq!(queues.drop_from_longest(), Some((0, 4)), "the newest");
        assert_eq!(drain(&mut queues), [(1, 0), (1, 1), (0, 3)]);
        assert_eq!(queues.drop_from_longest(), None);
    }

    #[test]
    fn a_class_may_have_its_own_codel() {
        let controlled = QueueClass {
            codel: Some((Duration(5_000_000), Duration(100_000_000))),
            ..class(&[], ClassService::Weight(1))
        };
        let mut queues = queues(&[class(&[EF], ClassService::Strict), controlled]);
        let mut dropped = [0, 0];
        for ms in 0..1000_u64 {
            let now = Instant(ms * 1_000_000);
            // Twice what leaves, in the class with CoDel; the other one is never above its share.
            queues.push(now, 0, 1500, (0, ms));
            queues.push(now, 0, 1500, (0, ms));
            if ms % 4 == 0 {
                queues.push(now, EF, 1500, (1, ms));
            }
            let taken = queues.pop(now, |(class, _)| {
                dropped[usize::from(class)] += 1;
                None
            });
            assert!(taken.is_some());
        }
        assert!(dropped[0] > 20 && dropped[1] == 0, "{dropped:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_a_class_keeps_its_order(
            steps in proptest::collection::vec((0_u8..4, 1_u64..1500, 0_u8..5), 1..300), strict: bool, weight in 1_u32..5,
        ) {
            let first = if strict { ClassService::Strict } else { ClassService::Weight(weight) };
            let mut queues = queues(&[class(&[1], first), class(&[2], ClassService::Weight(2)), class(&[], ClassService::Weight(1))]);
            let (mut inside, mut pushed, mut gone) = (0_u64, 0, vec![]);
            let mut sizes = vec![];
            for (dscp, bytes, action) in steps {
                match action {
                    0 => gone.extend(queues.pop(NOW, |_| None)),
                    1 => if let Some((_, number)) = queues.drop_from_longest() {
                        inside -= sizes[number as usize];
                        pushed -= 1;
                    },
                    _ => {
                        prop_assert_eq!(queues.push(NOW, dscp, bytes, (dscp.min(3) % 3, sizes.len() as u64)), None);
                        sizes.push(bytes);
                        (inside, pushed) = (inside + bytes, pushed + 1);
                    }
                }
                let left: u64 = gone.iter().map(|(_, number)| sizes[*number as usize]).sum();
                prop_assert_eq!((queues.bytes(), queues.len()), (inside - left, pushed - gone.len()));
            }
            gone.extend(drain(&mut queues));
            prop_assert_eq!((gone.len(), queues.bytes(), queues.is_empty()), (pushed, 0, true));
            for class in 0..3 {
                prop_assert!(gone.iter().filter(|(of, _)| *of == class).is_sorted());
            }
        }
    }
}
