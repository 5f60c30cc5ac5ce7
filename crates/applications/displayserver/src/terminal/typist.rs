//! A typist: a thread that types what comes over a connection into a terminal, so that the connection's reader is never blocked by a
//! program that does not read, and still sees interrupts and the end of the connection.
//!
//! It buffers a bounded amount. It never changes the order of what is typed, and drops only what an interrupt or a Synch drops.

use pty_process::blocking::Pty;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Signal, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
use rustix::termios::{LocalModes, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr, tcgetpgrp};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that may wait for the program; above this nothing more is read from the connection.
const MOST: usize = 256 << 10;
/// How often to try a terminal that takes no input, and to check whether somebody is still there.
const LOOK: Duration = Duration::from_millis(100);
/// If the person is gone and the program has taken nothing for this long, the rest is given up.
const STUCK: Duration = Duration::from_secs(1);

/// What waits to be typed.
struct TypistQueue {
    bytes: VecDeque<u8>,
    /// When the program last took something, or nothing waited.
    moved: Instant,
    /// Whether typing has ended.
    is_over: bool,
}

struct TypistShared {
    pty: Arc<Pty>,
    queue: Mutex<TypistQueue>,
    changed: Condvar,
}

impl TypistShared {
    fn queue(&self) -> MutexGuard<'_, TypistQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, queue: MutexGuard<'q, TypistQueue>) -> MutexGuard<'q, TypistQueue> {
        self.changed
            .wait_timeout(queue, LOOK)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// Types until typing has ended.
    fn work(&self) {
        let mut queue = self.queue();
        while !queue.is_over {
            if queue.bytes.is_empty() {
                queue = self.wait(queue);
                continue;
            }
            match (&*self.pty).write(queue.bytes.as_slices().0) {
                Ok(count @ 1..) => {
                    queue.bytes.drain(..count);
                    queue.moved = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drop(queue);
                    wait_for(&self.pty, PollFlags::OUT, Some(LOOK));
                    queue = self.queue();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The terminal is gone.
                Ok(0) | Err(_) => queue.is_over = true,
            }
            self.changed.notify_all();
        }
    }
}

/// Types into one terminal until it is dropped.
pub(super) struct Typist(Arc<TypistShared>);

impl Typist {
    /// Makes reads and writes of the terminal non-blocking, and starts the thread.
    pub(super) fn new(pty: &Arc<Pty>) -> io::Result<Self> {
        ioctl_fionbio(pty, true)?;
        let queue = TypistQueue {
            bytes: VecDeque::new(),
            moved: Instant::now(),
            is_over: false,
        };
        let shared = Arc::new(TypistShared {
            pty: Arc::clone(pty),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        });
        let works = Arc::clone(&shared);
        thread::spawn(move || works.work());
        Ok(Self(shared))
    }

    /// Types these bytes after those that wait.
    pub(super) fn types(&self, bytes: &[u8]) {
        let mut queue = self.0.queue();
        if queue.bytes.is_empty() {
            queue.moved = Instant::now();
        }
        queue.bytes.extend(bytes);
        self.0.changed.notify_all();
    }

    /// Types the key that a line-buffered terminal has for that function; none if the program takes bytes unchanged.
    pub(super) fn presses(&self, code: SpecialCodeIndex) {
        if let Ok(attributes) = tcgetattr(&self.0.pty)
            && attributes.local_modes.contains(LocalModes::ICANON)
        {
            self.types(&[attributes.special_codes[code]]);
        }
    }

    /// Interrupts the program of the terminal, in whatever mode the terminal is. Unread input is dropped, as a terminal does, unless it is
    /// set not to.
    pub(super) fn interrupts(&self) {
        let pty = &*self.0.pty;
        if !tcgetattr(pty)
            .is_ok_and(|attributes| attributes.local_modes.contains(LocalModes::NOFLSH))
        {
            self.drops();
        }
        if let Ok(group) = tcgetpgrp(pty) {
            let _ = kill_process_group(group, Signal::INT);
        }
    }

    /// Drops all input that the program has not read: here, on its way to the terminal, and in the terminal.
    pub(super) fn drops(&self) {
        let pty = &*self.0.pty;
        let mut queue = self.0.queue();
        queue.bytes.clear();
        let _ = tcflush(pty, QueueSelector::OFlush);
        let other = ioctl_tiocgptpeer(pty, OpenptFlags::RDWR | OpenptFlags::NOCTTY);
        let _ = other.map(|other| tcflush(other, QueueSelector::IFlush));
        self.0.changed.notify_all();
    }

    /// Waits until more may be typed, or something urgent comes. Returns false if the terminal is gone, or if the person is gone and the
    /// program takes nothing.
    pub(super) fn has_room(
        &self,
        is_gone: impl FnMut() -> bool,
        hurries: impl FnMut() -> bool,
    ) -> bool {
        self.falls_below(MOST, is_gone, hurries)
    }

    /// Waits until everything is typed, as long as the program takes it.
    pub(super) fn finishes(&self) {
        self.falls_below(1, || true, || false);
    }

    fn falls_below(
        &self,
        most: usize,
        mut is_gone: impl FnMut() -> bool,
        mut hurries: impl FnMut() -> bool,
    ) -> bool {
        loop {
            let queue = self.0.queue();
            if queue.is_over || queue.bytes.len() < most {
                return !queue.is_over;
            }
            let is_stuck = queue.moved.elapsed() >= STUCK;
            drop(self.0.wait(queue));
            if hurries() {
                return true;
            }
            if is_gone() && is_stuck {
                return false;
            }
        }
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        self.0.queue().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Reads a program's output; returns 0 when it is gone, even if programs that it started still hold the terminal.
pub(super) fn read(mut pty: &Pty, into: &mut [u8], is_gone: impl Fn() -> bool) -> usize {
    let mut was_gone = false;
    loop {
        match pty.read(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && was_gone => return 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // If the program is gone, its last output can be read by one more read.
                was_gone = is_gone();
                if !was_gone {
                    wait_for(pty, PollFlags::IN, Some(LOOK));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A terminal whose program is gone reports an error, which means the end.
            read => return read.unwrap_or(0),
        }
    }
}

fn wait_for(pty: &Pty, what: PollFlags, patience: Option<Duration>) {
    let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
    let _ = poll(&mut [PollFd::new(pty, what)], patience.as_ref());
}
