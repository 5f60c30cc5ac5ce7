//! Work that is set aside while it waits and goes on later, on a stack of its own: many on one thread.
//!
//! It decides nothing: who is resumed, and when, is the caller's.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine as Stackful, CoroutineResult, Yielder};
use stackline_core::time::Instant;
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;

/// What a coroutine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoroutineWait {
    /// That something happens to one of its sockets, until a moment if there is one.
    Socket(Option<Instant>),
    /// A moment.
    Until(Instant),
    /// That the clocks of the run may start.
    Barrier,
    /// Nothing: the others have their turn.
    Turn,
}

/// What ended its wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// The peer has closed one of its sockets, or half of it.
    pub hangup: bool,
}

thread_local! {
    /// The way back of the coroutine that runs now.
    static RUNNING: Cell<Option<NonNull<Yielder<Wake, CoroutineWait>>>> = const { Cell::new(None) };
}

/// Work on a stack of its own.
pub struct Coroutine<T: 'static>(Stackful<Wake, CoroutineWait, T>);

impl<T: 'static> Coroutine<T> {
    /// Work that has not begun, with so many bytes of stack. It must not panic.
    pub fn new(stack: usize, work: impl FnOnce() -> T + 'static) -> io::Result<Self> {
        let begin = move |yielder: &Yielder<Wake, CoroutineWait>, _| {
            RUNNING.set(Some(NonNull::from(yielder)));
            work()
        };
        Ok(Self(Stackful::with_stack(DefaultStack::new(stack)?, begin)))
    }

    /// Goes on until it waits, or is done.
    pub fn resume(&mut self, wake: Wake) -> Result<T, CoroutineWait> {
        let result = self.0.resume(wake);
        RUNNING.set(None);
        match result {
            CoroutineResult::Yield(wait) => Err(wait),
            CoroutineResult::Return(value) => Ok(value),
        }
    }
}

/// Sets the running coroutine aside until it is woken. `None` outside of any: nobody waited.
pub fn suspend(wait: CoroutineWait) -> Option<Wake> {
    let yielder = RUNNING.get()?;
    // SAFETY: it was set by the coroutine that runs now, in a frame below this one on the same stack, which lives until its
    // work returns; `resume` unsets it whenever that stack is left.
    let wake = unsafe { yielder.as_ref() }.suspend(wait);
    RUNNING.set(Some(yielder));
    Some(wake)
}
