//! Wakes a thread that waits for a connection or for work, whichever comes first. Whoever has work for a thread that is
//! awake makes no system call.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a thread is woken by.
#[derive(Debug)]
pub(super) struct Bell {
    event: EventFd,
    asleep: AtomicBool,
}

impl Bell {
    /// That nobody has rung.
    pub(super) fn new() -> io::Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self { event, asleep: AtomicBool::new(false) })
    }

    /// There is work: wakes the thread if it said that it has none.
    pub(super) fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
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

    /// Waits until something comes over the connection, somebody rings, or, where something is left to be sent, there is room.
    /// Whether something came.
    pub(super) fn wait(&self, stream: &TcpStream, to_send: bool) -> io::Result<bool> {
        let wanted = if to_send { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut waiting = [PollFd::new(stream.as_fd(), wanted), PollFd::new(self.event.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
        if waiting[1].any() == Some(true) {
            let _ = self.event.read();
        }
        self.asleep.store(false, Ordering::SeqCst);
        let room = waiting[0].revents() == Some(PollFlags::POLLOUT);
        Ok(waiting[0].any() != Some(false) && !room)
    }
}
