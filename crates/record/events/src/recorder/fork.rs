//! Forks: the process that is forked off has none of the other threads, so it records nothing, and finds every lock free
//! when it starts a recorder of its own.

use super::state::{Rings, STATE, rings};
use crate::{keyword, sinks, sys};
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, Once};

/// Every lock of this crate that a thread may hold.
struct Held {
    _names: MutexGuard<'static, keyword::Names>,
    rings: MutexGuard<'static, Rings>,
    files: MutexGuard<'static, Vec<RawFd>>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// From now on forks are noticed.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| sys::around_fork(before, parent, child));
}

extern "C" fn before() {
    let held = Held {
        _names: keyword::held(),
        rings: rings(),
        files: sinks::held(),
    };
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

extern "C" fn parent() {
    let _ = HELD.try_with(RefCell::take);
}

extern "C" fn child() {
    STATE.store(0, Ordering::Relaxed);
    let _ = HELD.try_with(|place| {
        if let Some(mut held) = place.take() {
            held.rings.state = 0;
            held.rings.reader = None;
            held.rings.rings.clear();
            sinks::leave(&mut held.files);
        }
    });
}
