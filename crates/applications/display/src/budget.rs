//! The memory budget that all displays of a service share. Each client has a share, which can grow while the budget is not used up.
//!
//! A share is enlarged before the memory is allocated, and set to the real size afterwards, so that clients that work at the same time do
//! not count on the same bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of all displays of a service by default, bytes.
pub const BYTES: usize = 512 << 20;

/// The memory of all displays of a service together; clones share it.
#[derive(Clone, Debug)]
pub struct DisplayMemoryBudget(Arc<Total>);

#[derive(Debug)]
struct Total {
    most: usize,
    taken: AtomicUsize,
}

impl Default for DisplayMemoryBudget {
    fn default() -> Self {
        Self::new(BYTES)
    }
}

impl DisplayMemoryBudget {
    /// A budget of `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Total {
            most,
            taken: AtomicUsize::new(0),
        }))
    }

    /// Bytes that are in use.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// A new share of 0 bytes.
    pub(crate) fn share(&self) -> DisplayMemoryShare {
        DisplayMemoryShare {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

/// The share of one client. It is given back on drop.
#[derive(Debug)]
pub(crate) struct DisplayMemoryShare {
    budget: DisplayMemoryBudget,
    bytes: usize,
}

impl Default for DisplayMemoryShare {
    fn default() -> Self {
        DisplayMemoryBudget::default().share()
    }
}

impl DisplayMemoryShare {
    /// Enlarges the share by `bytes`, or by what is left of the budget. Returns by how many bytes.
    pub(crate) fn grow(&mut self, bytes: usize) -> usize {
        let total = &self.budget.0;
        let grown = |taken: usize| bytes.min(total.most.saturating_sub(taken));
        // Other threads change the total at the same time.
        let before = total
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                Some(taken + grown(taken))
            });
        let more = grown(before.unwrap_or(total.most));
        self.bytes += more;
        more
    }

    /// Sets the share to `bytes`.
    pub(crate) fn settle(&mut self, bytes: usize) {
        let taken = &self.budget.0.taken;
        if bytes < self.bytes {
            taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        } else {
            taken.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for DisplayMemoryShare {
    fn drop(&mut self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_grow_to_the_budget_and_are_given_back() {
        let budget = DisplayMemoryBudget::new(100);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert_eq!(
            (one.grow(70), other.grow(70), budget.taken()),
            (70, 30, 100)
        );
        one.settle(10);
        assert_eq!((other.grow(70), budget.taken()), (60, 100));
        drop(other);
        assert_eq!(budget.taken(), 10);
    }
}
