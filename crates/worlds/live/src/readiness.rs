//! How an endpoint waits if its thread drives several (see `reactor`): its coroutine is suspended until epoll reports an event of its
//! socket, or until a moment.
//!
//! On a thread with a single endpoint these functions return at once; the caller blocks in a system call instead.

use crate::error::{self, Result};
use rustix::event::epoll;
use rustix::io::Errno;
use stackline_core::time::Instant;
use stackline_os::coroutine::{CoroutineWait, suspend};
use std::cell::{Cell, RefCell};
use std::os::fd::{BorrowedFd, OwnedFd};

/// After so many operations without a wait, an endpoint lets the others run.
pub(crate) const AT_ONCE: u32 = 64;

thread_local! {
    /// The thread's epoll descriptor, if it drives several endpoints.
    static HERE: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
    /// Index of the endpoint that runs, and how many operations it has done since it was resumed.
    static RUNNING: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// Registers a socket of the running endpoint with epoll, for arriving data and hang-ups.
pub(crate) fn watch(socket: BorrowedFd<'_>) -> Result<()> {
    register(socket, epoll::EventFlags::empty())
}

/// Waits until a socket may have room to send, or until the moment `until`. The wait may end for another event of the socket: the caller
/// tries again.
pub(crate) fn wait_for_room(socket: BorrowedFd<'_>, until: Option<Instant>) -> Result<()> {
    register(socket, epoll::EventFlags::OUT)?;
    wait_for_socket(until);
    Ok(())
}

/// Registers a socket edge-triggered. Registering it again re-arms it: if it is ready already, epoll reports that as an event.
fn register(socket: BorrowedFd<'_>, more: epoll::EventFlags) -> Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET | more;
    let data = epoll::EventData::new_u64(RUNNING.get().0 as u64);
    let registered = of_thread(|epoll| match epoll::add(epoll, socket, data, flags) {
        Err(Errno::EXIST) => epoll::modify(epoll, socket, data, flags),
        result => result,
    });
    registered
        .unwrap_or(Ok(()))
        .map_err(|e| error::io_error("epoll_ctl", &e.into()))
}

/// Waits for an event of any registered socket of this endpoint, at most until the moment `until`. Returns whether a peer has closed its
/// connection, or its half of it.
pub(crate) fn wait_for_socket(until: Option<Instant>) -> bool {
    suspend(CoroutineWait::Socket(until)).is_some_and(|wake| wake.hangup)
}

/// Waits until the moment; returns false at once if the thread has only one endpoint.
pub(crate) fn sleep_until(moment: Instant) -> bool {
    suspend(CoroutineWait::Until(moment)).is_some()
}

/// Waits at the barrier; returns false at once if the thread has only one endpoint.
pub(crate) fn wait_at_barrier() -> bool {
    suspend(CoroutineWait::Barrier).is_some()
}

/// Counts an operation; after more than [`AT_ONCE`] of them without a wait, lets the thread's other endpoints run.
#[inline]
pub(crate) fn take_turns() {
    let (index, done) = RUNNING.get();
    RUNNING.set((index, done + 1));
    if done >= AT_ONCE {
        suspend(CoroutineWait::Turn);
    }
}

/// What is known of a registered socket's input, so that no system call is made if nothing can have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketInputState {
    /// Whether the last call took everything that had arrived: then the next has to wait for an event first.
    drained: bool,
    /// Whether the peer has closed. Epoll reports this only once, so from then on no call waits: it finds the remaining data or the end.
    ends: bool,
}

impl SocketInputState {
    /// Called before a receiving call: waits for an event if everything was taken.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if self.drained {
            self.ends |= wait_for_socket(None);
            self.drained = false;
        } else {
            take_turns();
        }
    }

    /// Called after a receiving call that had room for `most` bytes and got `bytes`: fewer mean that nothing more is there.
    #[inline]
    pub(crate) const fn got(&mut self, bytes: usize, most: usize) {
        self.drained = bytes < most && !self.ends;
    }

    /// Called after a receiving call that found nothing.
    pub(crate) const fn nothing(&mut self) {
        self.drained = true;
    }
}

/// Whether a reactor runs on the calling thread, that is, whether the thread drives several endpoints.
pub(crate) fn is_here() -> bool {
    HERE.with_borrow(Option::is_some)
}

// --- called by the reactor ---

/// Makes the calling thread one that drives several endpoints, with this epoll descriptor.
pub(crate) fn begin_reactor(epoll: OwnedFd) {
    HERE.set(Some(epoll));
}

/// Makes the calling thread an ordinary one again; closes the epoll descriptor.
pub(crate) fn end_reactor() {
    HERE.set(None);
}

/// Notes that the endpoint with this index runs from here on.
pub(crate) fn enter_endpoint(index: usize) {
    RUNNING.set((index, 0));
}

/// Calls `call` with the thread's epoll descriptor; `None` if the thread has none.
pub(crate) fn of_thread<T>(call: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
    HERE.with_borrow(|here| here.as_ref().map(call))
}
