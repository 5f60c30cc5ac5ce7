//! The last error of each thread, for C: its message, its hint, and the number that the failed function returns.

use stackline_core::error::{Blame, Error};
use std::cell::RefCell;
use std::ffi::{CString, c_char};

thread_local! {
    /// The message and the hint.
    static LAST: RefCell<(CString, CString)> = RefCell::default();
}

/// Stores the error, and returns its number: -1 for invalid input, -2 if this machine, a server or the master cannot do what was asked for,
/// -3 if it failed while running, -4 if a callback stopped it.
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

/// The message; valid until the next call in this thread.
pub(crate) fn sentence() -> *const c_char {
    LAST.with(|last| last.borrow().0.as_ptr())
}

/// The hint, empty if there is none; valid until the next call in this thread.
pub(crate) fn hint() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}
