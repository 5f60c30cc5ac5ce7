//! A first-in, first-out queue that keeps each item's instant of entry and the total of bytes. It has no limit and
//! drops nothing.

use alloc::collections::VecDeque;
use stackline_core::time::Instant;

/// A queue of items with their instants of entry and their sizes. It allocates only when it grows longer than it ever
/// was.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    /// Instant of entry, bytes, and the item.
    waiting: VecDeque<(Instant, u64, T)>,
    /// The sum of the items' bytes.
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<T> Fifo<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an item of `bytes` bytes at the tail.
    pub fn push(&mut self, now: Instant, bytes: u64, item: T) {
        self.waiting.push_back((now, bytes, item));
        self.bytes += bytes;
    }

    /// Takes the item at the head, with its instant of entry and its bytes.
    pub fn pop(&mut self) -> Option<(Instant, u64, T)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.1;
        Some(head)
    }

    /// Takes the item at the tail, with its instant of entry and its bytes.
    pub fn pop_newest(&mut self) -> Option<(Instant, u64, T)> {
        let tail = self.waiting.pop_back()?;
        self.bytes -= tail.1;
        Some(tail)
    }

    /// The item at the head, as [`Self::pop`] would return it.
    #[must_use]
    pub fn head(&self) -> Option<(Instant, u64, &T)> {
        self.waiting
            .front()
            .map(|(since, bytes, item)| (*since, *bytes, item))
    }

    /// The total of the items' bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn the_first_in_is_the_first_out() {
        let mut queue = Fifo::new();
        queue.push(Instant(1), 1500, 'a');
        queue.push(Instant(2), 40, 'b');
        assert_eq!(
            (queue.bytes(), queue.len(), queue.head()),
            (1540, 2, Some((Instant(1), 1500, &'a')))
        );
        assert_eq!(queue.pop(), Some((Instant(1), 1500, 'a')));
        assert_eq!(queue.pop(), Some((Instant(2), 40, 'b')));
        assert_eq!(
            (queue.pop(), queue.bytes(), queue.is_empty()),
            (None, 0, true)
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_bytes_add_up(steps in proptest::collection::vec(proptest::option::of(1_u64..9000), 0..200)) {
            let (mut queue, mut model) = (Fifo::new(), Vec::new());
            for (index, step) in steps.into_iter().enumerate() {
                let at = Instant(index as u64);
                match step {
                    Some(bytes) => {
                        queue.push(at, bytes, index);
                        model.push((at, bytes, index));
                    }
                    None => {
                        let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                        prop_assert_eq!(queue.pop(), expected);
                    }
                }
                prop_assert_eq!(queue.bytes(), model.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
