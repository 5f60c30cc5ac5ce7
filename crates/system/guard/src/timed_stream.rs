//! A blocking connection whose reads and writes can be given a time limit.

use crate::deadline::Deadline;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A connection on which a thread blocks in reads and writes, for a limited time.
pub trait TimedStream: Read + Write {
    /// Sets the longest time that a read may take before it fails; `None`: without limit.
    ///
    /// # Errors
    /// The kernel's error.
    fn limit_reads(&self, time: Option<Duration>) -> io::Result<()>;

    /// Sets the longest time that a write may take before it fails.
    ///
    /// # Errors
    /// The kernel's error.
    fn limit_writes(&self, time: Duration) -> io::Result<()>;

    /// Closes the sending direction; the peer may still write.
    fn close_sending(&self);
}

impl TimedStream for TcpStream {
    fn limit_reads(&self, time: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(time)
    }

    fn limit_writes(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))
    }

    fn close_sending(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

/// Reads and drops what comes, until the connection ends or this time has passed. If a connection is closed with unread bytes, the kernel
/// resets it, and the last answer is lost.
pub fn hear_out(stream: &mut impl TimedStream, time: Duration) {
    let (deadline, mut piece) = (Deadline::within(time), [0; 4096]);
    while let Some(rest) = deadline.rest() {
        let read = stream
            .limit_reads(Some(rest))
            .and_then(|()| stream.read(&mut piece));
        if !matches!(read, Ok(1..)) {
            return;
        }
    }
}
