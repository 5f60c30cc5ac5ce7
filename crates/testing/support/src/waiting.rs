//! Waiting for what will be: however busy the machine is, it is waited for, and only a hang fails.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Longer than anything takes here on a machine that many share: what has not come by then never comes.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// Looks again and again until something is there; `what` says what is waited for.
///
/// # Panics
/// When it does not come.
#[track_caller]
pub fn wait_for<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(LOOK);
    }
}

/// Looks again and again until it is so.
///
/// # Panics
/// When it never is.
#[track_caller]
pub fn wait_until(what: impl Display, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}
