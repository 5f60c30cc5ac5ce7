//! The least a program can do: system calls in a loop, both ends processes of their own. Nothing of stackline is used.

mod bulk;
mod calls;
mod connects;
mod datagrams;

pub(crate) use bulk::{Bulk, bulk};
pub(crate) use calls::{Socket, calls};
pub(crate) use connects::{called, connects};
pub(crate) use datagrams::datagrams;

use super::sys;
use serde_json::{Value, json};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{IntoRawFd as _, RawFd};

/// Two connected TCP sockets: the initiator's and the responder's.
fn tcp_pair() -> io::Result<[RawFd; 2]> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let initiator = TcpStream::connect(listener.local_addr()?)?;
    let (responder, _) = listener.accept()?;
    Ok([initiator.into_raw_fd(), responder.into_raw_fd()])
}

/// Closes both ends when the processes that use them have been forked off.
struct Both([RawFd; 2]);

impl Drop for Both {
    fn drop(&mut self) {
        self.0.into_iter().for_each(sys::close);
    }
}

/// Wall and CPU time of one process over the transfer only.
struct Meter {
    wall_ns: u64,
    cpu_s: f64,
}

impl Meter {
    fn start() -> Self {
        let cpu_s = sys::cpu_s();
        Self {
            wall_ns: sys::now_ns(),
            cpu_s,
        }
    }

    /// What an end says, with the bytes it received.
    fn stop(self, bytes: u64) -> Value {
        let wall_ns = sys::now_ns() - self.wall_ns;
        json!({"wall_s": wall_ns as f64 / 1e9, "cpu_s": sys::cpu_s() - self.cpu_s, "bytes": bytes})
    }
}

/// A number an end said.
fn said(end: &Value, name: &str) -> f64 {
    end.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// A stream that ends too early.
fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the other end went away")
}

/// Writes all of it, a unit at a time.
fn send_units(fd: RawFd, unit: &[u8], count: u64) -> io::Result<()> {
    for _ in 0..count {
        let mut rest = unit;
        while !rest.is_empty() {
            rest = &rest[sys::write(fd, rest)?..];
        }
    }
    Ok(())
}

/// Reads exactly so many bytes.
fn receive(fd: RawFd, buffer: &mut [u8]) -> io::Result<()> {
    let mut have = 0;
    while have < buffer.len() {
        match sys::read(fd, &mut buffer[have..])? {
            0 => return Err(cut()),
            n => have += n,
        }
    }
    Ok(())
}
