//! Wakes a thread that waits for its connection or for work. Ringing for a thread that is awake costs no system call.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use stackline_core::time::Instant;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What a thread waits for, besides bytes on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BellWaitPurpose {
    /// Until somebody rings.
    Work,
    /// Until the transport has room.
    Room,
    /// Until this time has passed, or somebody rings.
    Later(Duration),
    /// It does not wait, it only checks.
    Now,
}

impl BellWaitPurpose {
    /// Whether it waits for the transport.
    pub(super) const fn is_for_the_transport(self) -> bool {
        matches!(self, Self::Room | Self::Later(_))
    }
}

/// The result of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct BellReadiness {
    /// Bytes have come over the connection, or it has ended.
    pub(super) come: bool,
    /// The transport has room; only if that was waited for.
    pub(super) room: bool,
}

/// Wakes one thread.
#[derive(Debug)]
pub(super) struct Bell {
    /// A descriptor that becomes readable when the thread has to wake.
    event: EventFd,
    /// Whether the thread has said that it has nothing to do.
    asleep: AtomicBool,
    /// When the transport last took something, ns.
    moved: AtomicU64,
    /// Whether the connection should end.
    is_over: AtomicBool,
}

impl Bell {
    /// A bell that nobody has rung.
    pub(super) fn new() -> io::Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let moved = AtomicU64::new(super::now().0);
        Ok(Self {
            event,
            asleep: AtomicBool::new(false),
            moved,
            is_over: AtomicBool::new(false),
        })
    }

    /// Wakes the thread because there is work, if it has said that it has nothing to do.
    pub(super) fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Records that the transport took something at that time.
    pub(super) fn move_on(&self, at: Instant) {
        self.moved.store(at.0, Ordering::Relaxed);
    }

    /// When the transport last took something.
    pub(super) fn moved(&self) -> Instant {
        Instant(self.moved.load(Ordering::Relaxed))
    }

    /// Asks the connection to end. Returns whether this was the first request.
    pub(super) fn end(&self) -> bool {
        let is_first = !self.is_over.swap(true, Ordering::SeqCst);
        self.wake();
        is_first
    }

    /// Whether the connection should end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Wakes the thread, whatever it waits for.
    pub(super) fn wake(&self) {
        // A write to a full counter fails, but then the descriptor is readable anyway.
        let _ = self.event.write(1);
    }

    /// Records that the thread has nothing to do until somebody rings. To be called before [`Bell::wait`], under the lock that adding work
    /// needs.
    pub(super) fn nothing_to_do(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Waits as asked, and returns what there is.
    pub(super) fn wait(
        &self,
        stream: &TcpStream,
        until: BellWaitPurpose,
    ) -> io::Result<BellReadiness> {
        let (wanted, within) = match until {
            BellWaitPurpose::Work => (PollFlags::POLLIN, None),
            BellWaitPurpose::Room => (PollFlags::POLLIN | PollFlags::POLLOUT, None),
            BellWaitPurpose::Later(time) => (PollFlags::POLLIN, Some(time.into())),
            BellWaitPurpose::Now => (PollFlags::POLLIN, Some(TimeSpec::new(0, 0))),
        };
        let mut waiting = [
            PollFd::new(stream.as_fd(), wanted),
            PollFd::new(self.event.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut waiting, within, None) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => {
                return Ok(BellReadiness {
                    come: true,
                    room: false,
                });
            }
            Err(errno) => return Err(errno.into()),
        }
        if waiting[1].any() == Some(true) {
            let _ = self.event.read();
        }
        self.asleep.store(false, Ordering::SeqCst);
        let events = waiting[0].revents().unwrap_or(PollFlags::POLLERR);
        Ok(BellReadiness {
            come: events.intersects(!PollFlags::POLLOUT),
            room: events.contains(PollFlags::POLLOUT),
        })
    }
}
