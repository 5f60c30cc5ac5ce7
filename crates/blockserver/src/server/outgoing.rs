//! What is on its way to a client: messages, and blocks with what precedes them. All are handed to the transport with one
//! system call, as far as there is room, and without waiting.

use super::Block;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};
use stackline_blocks::wire::message::Message;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// A message, and the data of a block behind it.
#[derive(Debug)]
struct Piece {
    /// Where it is in the words.
    words: Range<usize>,
    /// The block, by its unit.
    block: Option<(u64, Block)>,
}

impl Piece {
    fn data(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |(_, block)| block.data())
    }

    fn bytes(&self) -> usize {
        self.words.len() + self.data().len()
    }
}

/// What is on its way.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    words: Vec<u8>,
    pieces: Vec<Piece>,
    /// Bytes of the first piece that the transport has.
    done: usize,
}

impl Outgoing {
    /// Whether the transport has all of it.
    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a message, and the data of a block behind it, by its unit.
    pub(super) fn add(&mut self, message: &Message, block: Option<(u64, Block)>) {
        if self.pieces.is_empty() {
            self.words.clear();
        }
        let from = self.words.len();
        message.put(&mut self.words);
        self.pieces.push(Piece { words: from..self.words.len(), block });
    }

    /// Hands over as much as there is room for, and says how many bytes that was; `sent` gets the units of blocks that the
    /// transport now has.
    ///
    /// # Errors
    /// When the connection is gone.
    pub(super) fn send(&mut self, stream: &TcpStream, sent: &mut Vec<u64>) -> io::Result<u64> {
        let mut taken = 0;
        while !self.pieces.is_empty() {
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match sendmsg::<()>(stream.as_raw_fd(), &self.parts(), &[], flags, None) {
                Ok(count) => {
                    taken += count as u64;
                    self.advance(count, sent);
                }
                Err(Errno::EAGAIN) => return Ok(taken),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(taken)
    }

    /// Takes back the blocks that were not begun; the unit of the one that was.
    pub(super) fn take_back(&mut self) -> Option<u64> {
        let is_begun = self.done > 0;
        let mut at = 0;
        self.pieces.retain(|piece| {
            at += 1;
            piece.block.is_none() || (is_begun && at == 1)
        });
        let first = self.pieces.first().filter(|_| is_begun)?;
        first.block.as_ref().map(|(unit, _)| *unit)
    }

    fn parts(&self) -> Vec<IoSlice<'_>> {
        let mut parts = Vec::with_capacity(2 * self.pieces.len());
        let mut done = self.done;
        for piece in &self.pieces {
            let (words, data) = (&self.words[piece.words.clone()], piece.data());
            let skipped = done.min(words.len());
            parts.push(IoSlice::new(&words[skipped..]));
            parts.push(IoSlice::new(&data[done - skipped..]));
            done = 0;
        }
        parts
    }

    fn advance(&mut self, count: usize, sent: &mut Vec<u64>) {
        self.done += count;
        let mut whole = 0;
        for piece in &self.pieces {
            let bytes = piece.bytes();
            if self.done < bytes {
                break;
            }
            self.done -= bytes;
            whole += 1;
        }
        sent.extend(self.pieces.drain(..whole).filter_map(|piece| piece.block.map(|(unit, _)| unit)));
    }
}
