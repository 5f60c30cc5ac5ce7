//! Runs many computations on all processors. The results are in the order of the input, so neither the order of
//! computation nor the number of processors changes a figure.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Computes the result for each item, in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, compute(item)))
    };
    let workers = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(items.len().max(1));
    let mut found: Vec<(usize, R)> = thread::scope(|scope| {
        let work = || std::iter::from_fn(take).collect::<Vec<_>>();
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started
            .into_iter()
            .flat_map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
            })
            .collect()
    });
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, result)| result).collect()
}
