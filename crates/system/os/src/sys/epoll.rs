//! Waits for many file descriptors and for a time, with a resolution of nanoseconds.

use super::length;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null;

/// Most descriptors reported at once.
const EVENTS: usize = 64;

/// Descriptors to wait for.
#[derive(Debug)]
pub struct EpollWaiter {
    epoll: OwnedFd,
    /// Whether the kernel has `epoll_pwait2` (since Linux 5.11); otherwise a wait takes two calls.
    fine: bool,
    events: [libc::epoll_event; EVENTS],
    /// How many of `events` the last wait returned.
    ready: usize,
}

impl EpollWaiter {
    /// A waiter without descriptors.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes a number only.
        let number = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        let epoll = unsafe { OwnedFd::from_raw_fd(number) };
        // SAFETY: epoll_event is plain data, for which all bytes zero is a value.
        let events = unsafe { zeroed() };
        let mut waiter = Self {
            epoll,
            fine: true,
            events,
            ready: 0,
        };
        waiter.fine = waiter.wait_fine(Some(0)).is_ok();
        Ok(waiter)
    }

    /// Whether the kernel has `epoll_pwait2`.
    pub const fn is_fine(&self) -> bool {
        self.fine
    }

    /// Reports `token` whenever that descriptor is readable.
    pub fn add(&self, descriptor: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: token,
        };
        // SAFETY: the pointer is to a live value.
        let done = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        };
        length(done as isize).map(drop)
    }

    /// Stops reporting that descriptor.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: no event is needed to remove one.
        let done = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                descriptor.as_raw_fd(),
                none,
            )
        };
        length(done as isize).map(drop)
    }

    /// Waits for at most `ns` ns, or without limit. Afterwards [`Self::ready_tokens`] has the readable descriptors. A signal ends the wait
    /// early, with none.
    pub fn wait(&mut self, ns: Option<u64>) -> io::Result<()> {
        let waited = match (ns, self.fine) {
            (Some(0), _) => self.wait_coarse(0),
            (_, true) => self.wait_fine(ns),
            (_, false) => self.wait_twice(ns),
        };
        match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.ready = 0;
                Ok(())
            }
            other => other,
        }
    }

    /// Tokens of readable descriptors.
    pub fn ready_tokens(&self) -> impl Iterator<Item = u64> {
        self.events[..self.ready].iter().map(|event| event.u64)
    }

    fn wait_coarse(&mut self, ms: i32) -> io::Result<()> {
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the pointer is to that many live values.
        let ready = unsafe { libc::epoll_wait(epoll, self.events.as_mut_ptr(), EVENTS as i32, ms) };
        self.note(i64::from(ready))
    }

    fn wait_fine(&mut self, ns: Option<u64>) -> io::Result<()> {
        let time = ns.map(timespec);
        let until = time.as_ref().map_or(null(), |time| &raw const *time);
        let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
        // SAFETY: the pointers are to that many live events and to a live time, or null where null is allowed.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll,
                events,
                EVENTS,
                until,
                null::<libc::sigset_t>(),
                0_usize,
            )
        };
        self.note(ready)
    }

    /// Waits without `epoll_pwait2`: first `ppoll` on the epoll descriptor, which has a resolution of nanoseconds, then `epoll_wait`.
    fn wait_twice(&mut self, ns: Option<u64>) -> io::Result<()> {
        let time = ns.map(timespec);
        let until = time.as_ref().map_or(null(), |time| &raw const *time);
        let mut poll = libc::pollfd {
            fd: self.epoll.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the pointers are to one live pollfd and to a live time, or null where null is allowed.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, until, null()) };
        if ready < 0 {
            Err(io::Error::last_os_error())
        } else {
            self.wait_coarse(0)
        }
    }

    fn note(&mut self, ready: i64) -> io::Result<()> {
        self.ready = usize::try_from(ready).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{SystemClock, read_clock};
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn it_wakes_for_readable_sockets_and_not_before_the_time() {
        for fine in [true, false] {
            let mut waiter = EpollWaiter::new().unwrap();
            waiter.fine &= fine;
            let (mut here, there) = UnixStream::pair().unwrap();
            waiter.add(there.as_fd(), 7).unwrap();
            let before = read_clock(SystemClock::Monotonic);
            waiter.wait(Some(300_000)).unwrap();
            assert!(read_clock(SystemClock::Monotonic) >= before + 300_000);
            assert_eq!(waiter.ready_tokens().count(), 0);
            here.write_all(b"x").unwrap();
            waiter.wait(None).unwrap();
            assert_eq!(waiter.ready_tokens().collect::<Vec<_>>(), [7]);
        }
    }
}
