//! Forks: the process that is forked off has none of the other threads, so it records nothing, and finds every lock free
//! when it starts a recorder of its own.

use super::state::{STATE, ThreadRings, rings};
use crate::{keyword, sinks, sys};
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, Once};

/// Every lock of this crate that a thread may hold.
struct ForkHeldLocks {
    _names: MutexGuard<'static, keyword::InternedKeywords>,
    rings: MutexGuard<'static, ThreadRings>,
    files: MutexGuard<'static, Vec<RawFd>>,
}

thread_local! {
    static HELD: RefCell<Option<ForkHeldLocks>> = const { RefCell::new(None) };
}

/// From now on forks are noticed.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| sys::around_fork(before, parent, child));
}

extern "C" fn before() {
    let held = ForkHeldLocks {
        _names: keyword::lock_names(),
        rings: rings(),
        files: sinks::lock_open_files(),
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
            sinks::detach_open_files(&mut held.files);
        }
    });
}
