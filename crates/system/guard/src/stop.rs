//! A switch that one thread throws to end the waits of others.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A switch that is thrown once. It wakes all threads that wait on it, also those that wait for a socket besides.
#[derive(Clone, Debug)]
pub struct StopSwitch {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    is_thrown: AtomicBool,
    /// An eventfd that is readable once the switch is thrown; `None` for a switch that is never thrown.
    event: Option<OwnedFd>,
}

impl StopSwitch {
    /// A switch that is not thrown yet.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self::with(Some(event)))
    }

    /// A switch that is never thrown, for work that ends with its process.
    #[must_use]
    pub fn never() -> Self {
        Self::with(None)
    }

    fn with(event: Option<OwnedFd>) -> Self {
        let is_thrown = AtomicBool::new(false);
        Self {
            inner: Arc::new(Inner { is_thrown, event }),
        }
    }

    /// Throws the switch: all waits end. Does nothing on one made by [`Self::never`].
    pub fn stop(&self) {
        if let Some(event) = &self.inner.event {
            self.inner.is_thrown.store(true, Ordering::SeqCst);
            // Writing fails only if the counter is full, and then the descriptor is readable already.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// Whether it was thrown.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.inner.is_thrown.load(Ordering::SeqCst)
    }

    /// Waits for `time`, or until the switch is thrown or a signal comes.
    pub fn pause(&self, time: Duration) {
        let Some(event) = &self.inner.event else {
            return std::thread::sleep(time);
        };
        let most = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // The result is ignored: the caller checks what it waits for again, also after a signal.
        let _ = poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&most));
    }

    /// Waits until the socket is readable. Returns at once on a switch that is never thrown: then the caller blocks in its own call.
    ///
    /// # Errors
    /// `Interrupted` if the switch was thrown; the kernel's.
    pub fn wait_readable(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let Some(event) = &self.inner.event else {
            return Ok(());
        };
        let mut waiting = [
            PollFd::from_borrowed_fd(socket, PollFlags::IN),
            PollFd::new(event, PollFlags::IN),
        ];
        poll(&mut waiting, None)?;
        if self.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    #[test]
    fn who_waits_goes_on_when_it_is_thrown() {
        let stop = StopSwitch::new().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| stop.wait_readable(listener.as_fd()));
            // An hour, unless it is thrown.
            scope.spawn(|| stop.pause(Duration::from_secs(3600)));
            stop.stop();
            let ended = waits.join().unwrap().unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::Interrupted);
        });
        assert!(stop.is_stopped());
        let never = StopSwitch::never();
        never.stop();
        assert!(!never.is_stopped());
    }
}
