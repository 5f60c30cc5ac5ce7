//! Handles forks. A forked process has only the forking thread, so it records nothing, and it must find all locks free
//! when it starts a recorder of its own.

use super::state::{STATE, ThreadRings, rings};
use crate::{file_sinks, keyword, sys};
use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, Once};

/// Guards of every lock of this crate that a thread may hold.
struct ForkHeldLocks {
    _names: MutexGuard<'static, keyword::InternedKeywords>,
    rings: MutexGuard<'static, ThreadRings>,
    files: MutexGuard<'static, Vec<RawFd>>,
}

// The guards that the forking thread holds during the fork.
thread_local! {
    static HELD: RefCell<Option<ForkHeldLocks>> = const { RefCell::new(None) };
}

/// Installs the handlers of forks, once.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| sys::around_fork(before, parent, child));
}

/// Before a fork: takes all locks, so that no other thread holds one.
extern "C" fn before() {
    let held = ForkHeldLocks {
        _names: keyword::lock_names(),
        rings: rings(),
        files: file_sinks::lock_open_files(),
    };
    let _ = HELD.try_with(|place| place.replace(Some(held)));
}

/// After a fork, in the parent: releases the locks.
extern "C" fn parent() {
    let _ = HELD.try_with(RefCell::take);
}

/// After a fork, in the child: stops recording there and releases the locks.
extern "C" fn child() {
    STATE.store(0, Ordering::Relaxed);
    let _ = HELD.try_with(|place| {
        if let Some(mut held) = place.take() {
            held.rings.state = 0;
            held.rings.reader = None;
            held.rings.rings.clear();
            file_sinks::detach_open_files(&mut held.files);
        }
    });
}
