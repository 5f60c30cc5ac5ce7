//! Coroutines: work with a stack of its own that is suspended while it waits and resumed later, many on one thread.
//!
//! The caller decides which coroutine is resumed, and when.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine as Stackful, CoroutineResult, Yielder};
use stackline_core::time::Instant;
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;

/// What a coroutine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoroutineWait {
    /// An event of one of its sockets, at most until a moment if one is given.
    Socket(Option<Instant>),
    /// A moment.
    Until(Instant),
    /// The barrier at which the clocks of a run start.
    Barrier,
    /// Nothing: it lets the other coroutines run first.
    Turn,
}

/// What a coroutine learns when its wait ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Whether the peer has closed one of its connections, or its half of it.
    pub hangup: bool,
}

thread_local! {
    /// Suspends the coroutine that runs on this thread; `None` if none does.
    static RUNNING: Cell<Option<NonNull<Yielder<Wake, CoroutineWait>>>> = const { Cell::new(None) };
}

/// Work on a stack of its own.
pub struct Coroutine<T: 'static>(Stackful<Wake, CoroutineWait, T>);

impl<T: 'static> Coroutine<T> {
    /// A coroutine that has not begun, with a stack of `stack` bytes. The work must not panic.
    pub fn new(stack: usize, work: impl FnOnce() -> T + 'static) -> io::Result<Self> {
        let begin = move |yielder: &Yielder<Wake, CoroutineWait>, _| {
            RUNNING.set(Some(NonNull::from(yielder)));
            work()
        };
        Ok(Self(Stackful::with_stack(DefaultStack::new(stack)?, begin)))
    }

    /// Runs the coroutine until it is done (`Ok`, with its result) or waits (`Err`, with what it waits for).
    pub fn resume(&mut self, wake: Wake) -> Result<T, CoroutineWait> {
        let result = self.0.resume(wake);
        RUNNING.set(None);
        match result {
            CoroutineResult::Yield(wait) => Err(wait),
            CoroutineResult::Return(value) => Ok(value),
        }
    }
}

/// Suspends the running coroutine until it is resumed. Outside of a coroutine, returns `None` at once.
pub fn suspend(wait: CoroutineWait) -> Option<Wake> {
    let yielder = RUNNING.get()?;
    // SAFETY: it was set by the coroutine that runs now, in a frame below this one on the same stack, which lives until its
    // work returns; `resume` unsets it whenever that stack is left.
    let wake = unsafe { yielder.as_ref() }.suspend(wait);
    RUNNING.set(Some(yielder));
    Some(wake)
}
