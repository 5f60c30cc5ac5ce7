//! The sentence and the hint of the last error of each thread, as C reads them, and the number that a function returns for it.

use stackline_core::error::{Blame, Error};
use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    static LAST: RefCell<(CString, CString)> = RefCell::default();
}

/// Keeps the error; its number: -1 what was asked for cannot be, -2 this machine, a server or the master cannot do it, -3 it failed
/// on its way, -4 a callback ended it.
pub(crate) fn keep_last_error(error: &Error) -> i32 {
    let words = |words: &str| CString::new(words.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| {
        *last.borrow_mut() = (
            words(&error.message),
            words(error.hint.as_deref().unwrap_or("")),
        )
    });
    match error.blame {
        Blame::Input => -1,
        Blame::Environment => -2,
        Blame::Measurement => -3,
        Blame::Interrupted => -4,
    }
}

/// The sentence, until the next call of this thread.
pub(crate) fn sentence() -> *const c_char {
    LAST.with(|last| last.borrow().0.as_ptr())
}

/// The hint, until the next call of this thread; empty where there is none.
pub(crate) fn hint() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}
