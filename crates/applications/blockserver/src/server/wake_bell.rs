//! Wakes a thread that waits for a connection or for work, whichever comes first. Whoever has work for a thread that is
//! awake makes no system call.

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use stackline_core::time::Instant;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What a thread waits for, beside what comes over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BellWaitPurpose {
    /// That somebody rings.
    Work,
    /// That the transport has room.
    Room,
    /// That so much time has passed, or that somebody rings.
    Later(Duration),
    /// Nothing: it only looks.
    Now,
}

impl BellWaitPurpose {
    /// Whether it is the transport that is waited for.
    pub(super) const fn is_for_the_transport(self) -> bool {
        matches!(self, Self::Room | Self::Later(_))
    }
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct BellReadiness {
    /// Something has come over the connection, or it is gone.
    pub(super) come: bool,
    /// The transport has room, where that was asked.
    pub(super) room: bool,
}

/// What a thread is woken by.
#[derive(Debug)]
pub(super) struct Bell {
    event: EventFd,
    asleep: AtomicBool,
    /// When the transport took something last, ns.
    moved: AtomicU64,
    is_over: AtomicBool,
}

impl Bell {
    /// That nobody has rung.
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

    /// There is work: wakes the thread if it said that it has none.
    pub(super) fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The transport took something then.
    pub(super) fn move_on(&self, at: Instant) {
        self.moved.store(at.0, Ordering::Relaxed);
    }

    /// When it did so last.
    pub(super) fn moved(&self) -> Instant {
        Instant(self.moved.load(Ordering::Relaxed))
    }

    /// The connection ends; whether it was not to before.
    pub(super) fn end(&self) -> bool {
        let is_first = !self.is_over.swap(true, Ordering::SeqCst);
        self.wake();
        is_first
    }

    /// Whether the connection is to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Wakes the thread, whatever it waits for.
    pub(super) fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = self.event.write(1);
    }

    /// There is nothing to do until somebody rings. Said before [`Bell::wait`], while nobody can add work.
    pub(super) fn nothing_to_do(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Waits as it is asked to, and says what there is.
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
