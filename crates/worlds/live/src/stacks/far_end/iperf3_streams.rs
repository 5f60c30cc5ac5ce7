//! Several TCP streams of a test of iperf3, driven by one thread: whichever can go on does, as in iperf3's own client.

use super::socket::FarEndSocket;
use crate::error::{Error, Result};
use nix::poll::{PollFd, PollFlags};
use std::time::Duration;

/// Bytes that are received at a time: iperf3's blocks.
const BLOCK_BYTES: usize = 128 << 10;

/// The streams of a test, in the order in which they were opened.
pub(super) struct Iperf3Streams {
    sockets: Vec<FarEndSocket>,
    /// What each has moved.
    moved: Vec<u64>,
    /// The one that is tried next.
    next: usize,
    room: Vec<u8>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
}

impl Iperf3Streams {
    pub(super) fn new(sockets: Vec<FarEndSocket>) -> Self {
        Self {
            moved: vec![0; sockets.len()],
            sockets,
            next: 0,
            room: vec![0; BLOCK_BYTES],
            ahead: 0,
        }
    }

    /// Sends all of it, on as many streams as take a part of it.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        let mut waited = Duration::ZERO;
        while !bytes.is_empty() {
            let mut tried = 0;
            while tried < self.sockets.len() && !bytes.is_empty() {
                let at = self.step();
                match self.sockets[at].try_send(bytes)? {
                    Some(0) => return Err(cut_short(&self.sockets[at])),
                    Some(sent) => {
                        self.moved[at] += sent as u64;
                        bytes = &bytes[sent..];
                        (tried, waited) = (0, Duration::ZERO);
                    }
                    None => tried += 1,
                }
            }
            if !bytes.is_empty() {
                self.wait(PollFlags::POLLOUT, &mut waited)?;
            }
        }
        Ok(())
    }

    /// Receives so many bytes, of all streams together.
    pub(super) fn receive(&mut self, bytes: u64) -> Result<()> {
        let mut waited = Duration::ZERO;
        while self.ahead < bytes {
            let mut tried = 0;
            while tried < self.sockets.len() && self.ahead < bytes {
                let at = self.step();
                match self.sockets[at].try_receive(&mut self.room)? {
                    Some(0) => return Err(cut_short(&self.sockets[at])),
                    Some(got) => {
                        self.moved[at] += got as u64;
                        self.ahead += got as u64;
                        (tried, waited) = (0, Duration::ZERO);
                    }
                    None => tried += 1,
                }
            }
            if self.ahead < bytes {
                self.wait(PollFlags::POLLIN, &mut waited)?;
            }
        }
        self.ahead -= bytes;
        Ok(())
    }

    /// Waits until the server's kernel has acknowledged everything.
    pub(super) fn settle(&self) -> Result<()> {
        self.sockets.iter().try_for_each(FarEndSocket::settle)
    }

    /// What each stream has moved.
    pub(super) fn moved(&self) -> &[u64] {
        &self.moved
    }

    fn step(&mut self) -> usize {
        let at = self.next;
        self.next = (at + 1) % self.sockets.len();
        at
    }

    /// Waits for a while until a stream can go on; `waited` is how long it was waited in vain.
    fn wait(&self, for_what: PollFlags, waited: &mut Duration) -> Result<()> {
        let all = self.sockets.iter();
        let mut watched: Vec<PollFd<'_>> = all
            .map(|socket| PollFd::new(socket.fd(), for_what))
            .collect();
        let Some(first) = self.sockets.first() else {
            return Ok(());
        };
        first.wait_for_any(&mut watched, for_what == PollFlags::POLLOUT, waited)
    }
}

fn cut_short(socket: &FarEndSocket) -> Error {
    let (server, left) = (socket.server(), socket.left());
    Error::measurement(format!(
        "the server at {server} {left} the connection within a test"
    ))
}
