//! Something done for each of many seeds, by as many threads as there are cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// What came of each seed from `from` on, in order, until one of the limits is reached. Each thread has a place of its own.
pub fn for_each_seed<P, T: Send>(
    from: u64,
    count: u64,
    until: Instant,
    place: impl Fn() -> P + Sync,
    one: impl Fn(&P, u64) -> Result<T, String> + Sync,
) -> Vec<(u64, Result<T, String>)> {
    let next = AtomicU64::new(0);
    let all: Mutex<Vec<(u64, Result<T, String>)>> = Mutex::default();
    let work = || {
        let place = place();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || Instant::now() > until {
                return;
            }
            let made = one(&place, from + number);
            if let Ok(mut all) = all.lock() {
                all.push((from + number, made));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let mut all = all.into_inner().unwrap_or_default();
    all.sort_by_key(|(seed, _)| *seed);
    all
}
