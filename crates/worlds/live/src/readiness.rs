//! Where a connection waits on a thread that has others to drive: it is set aside until epoll says that something happened to its
//! socket, or until a moment.
//!
//! On a thread of one endpoint nothing here waits: the caller blocks in the kernel.

use crate::error::{self, Result};
use rustix::event::epoll;
use rustix::io::Errno;
use stackline_core::time::Instant;
use stackline_os::coroutine::{CoroutineWait, suspend};
use std::cell::{Cell, RefCell};
use std::os::fd::{BorrowedFd, OwnedFd};

/// As many operations without a wait, and the others have their turn.
pub(crate) const AT_ONCE: u32 = 64;

thread_local! {
    static HERE: RefCell<Option<OwnedFd>> = const { RefCell::new(None) };
    /// The coroutine that runs, and how many operations it has done since it last waited.
    static RUNNING: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// Watches a socket of the running coroutine for what comes in. A second time it looks again.
pub(crate) fn watch(socket: BorrowedFd<'_>) -> Result<()> {
    register(socket, epoll::EventFlags::empty())
}

/// Waits until a socket has room, or at least may have.
pub(crate) fn wait_for_room(socket: BorrowedFd<'_>, until: Option<Instant>) -> Result<()> {
    register(socket, epoll::EventFlags::OUT)?;
    wait_for_socket(until);
    Ok(())
}

/// Registering again arms anew: what is there already is an event.
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

/// Waits until something happened to a socket, until that moment at most. Whether a peer has closed or half closed.
pub(crate) fn wait_for_socket(until: Option<Instant>) -> bool {
    suspend(CoroutineWait::Socket(until)).is_some_and(|wake| wake.hangup)
}

/// Waits until that moment; false, at once, where the thread belongs to one endpoint alone.
pub(crate) fn sleep_until(moment: Instant) -> bool {
    suspend(CoroutineWait::Until(moment)).is_some()
}

/// Waits at the barrier, likewise.
pub(crate) fn wait_at_barrier() -> bool {
    suspend(CoroutineWait::Barrier).is_some()
}

/// After many operations without a wait the other connections have their turn.
#[inline]
pub(crate) fn take_turns() {
    let (index, done) = RUNNING.get();
    RUNNING.set((index, done + 1));
    if done >= AT_ONCE {
        suspend(CoroutineWait::Turn);
    }
}

/// What is known of a watched socket, so that no call asks it for what cannot be there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketInputState {
    /// The last call took all there was.
    drained: bool,
    /// The peer ends: that is noticed once only, so every call may find it.
    ends: bool,
}

impl SocketInputState {
    /// Before a receiving call.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if self.drained {
            self.ends |= wait_for_socket(None);
            self.drained = false;
        } else {
            take_turns();
        }
    }

    /// A call had room for `most` bytes and got so many.
    #[inline]
    pub(crate) const fn got(&mut self, bytes: usize, most: usize) {
        self.drained = bytes < most && !self.ends;
    }

    /// A call found nothing.
    pub(crate) const fn nothing(&mut self) {
        self.drained = true;
    }
}

/// Whether the calling thread drives many endpoints.
pub(crate) fn is_here() -> bool {
    HERE.with_borrow(Option::is_some)
}

// --- what the reactor says ---

/// The thread drives many endpoints from now on, by this epoll.
pub(crate) fn begin_reactor(epoll: OwnedFd) {
    HERE.set(Some(epoll));
}

/// It no longer does.
pub(crate) fn end_reactor() {
    HERE.set(None);
}

/// The endpoint of that index runs.
pub(crate) fn enter_endpoint(index: usize) {
    RUNNING.set((index, 0));
}

/// With the thread's epoll, when it has one.
pub(crate) fn of_thread<T>(call: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
    HERE.with_borrow(|here| here.as_ref().map(call))
}
