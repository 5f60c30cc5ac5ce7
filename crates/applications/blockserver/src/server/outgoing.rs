//! What is being sent to a client: messages, and blocks with their heads, whole or in parts. As much as fits is handed to the transport
//! with one system call and without waiting. Block data is not copied.

use super::SharedPooledBlock;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};
use stackline_blocks::send_window::part_length;
use stackline_blocks::wire::block_parts::{self, CUT};
use stackline_blocks::wire::message::Message;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// A part of a block's data.
#[derive(Debug)]
struct OutgoingBlockData {
    /// The unit of the block.
    unit: u64,
    block: SharedPooledBlock,
    /// The range of its bytes.
    range: Range<usize>,
}

/// Bytes of messages, and block data that follows them.
#[derive(Debug)]
struct OutgoingBlockPiece {
    /// The range of the message bytes in [`Outgoing::words`].
    words: Range<usize>,
    data: Option<OutgoingBlockData>,
}

impl OutgoingBlockPiece {
    fn data(&self) -> &[u8] {
        self.data
            .as_ref()
            .map_or(&[], |data| &data.block.data()[data.range.clone()])
    }

    fn bytes(&self) -> usize {
        self.words.len() + self.data().len()
    }
}

/// The queue of what is being sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The encoded messages of all pieces.
    words: Vec<u8>,
    pieces: Vec<OutgoingBlockPiece>,
    /// Bytes of the first piece that the transport has taken.
    done: usize,
    /// The block under way: its unit, its data, and how many bytes the transport has taken.
    under_way: Option<(u64, SharedPooledBlock, usize)>,
}

/// Whether blocks are sent whole or in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WholeBlockRule {
    /// Whole: the data follows the head without part lengths.
    Always,
    /// In parts of about this many bytes.
    Within(usize),
}

impl Outgoing {
    /// Whether the transport has taken everything.
    pub(super) const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The unit of the block of which the transport has some parts.
    pub(super) fn under_way(&self) -> Option<u64> {
        self.under_way.as_ref().map(|(unit, ..)| *unit)
    }

    /// Whether the last piece is a part that other parts of its block have to follow.
    pub(super) fn is_in_parts(&self) -> bool {
        let last = self.pieces.last().and_then(|piece| piece.data.as_ref());
        last.is_some_and(|data| data.range.end < data.block.data().len())
    }

    /// Adds a message.
    pub(super) fn add(&mut self, message: &Message) {
        let from = self.begin();
        message.put(&mut self.words);
        self.pieces.push(OutgoingBlockPiece {
            words: from..self.words.len(),
            data: None,
        });
    }

    /// Adds a block with its head: whole, or its first part. Nothing else may be sent before its last part. Returns the number of data
    /// bytes added.
    pub(super) fn add_block(
        &mut self,
        head: &Message,
        unit: u64,
        block: SharedPooledBlock,
        whole: WholeBlockRule,
    ) -> usize {
        let from = self.begin();
        head.put(&mut self.words);
        let range = match whole {
            WholeBlockRule::Always => 0..block.data().len(),
            WholeBlockRule::Within(most) => self.part(&block, 0, most),
        };
        let bytes = range.len();
        self.pieces.push(OutgoingBlockPiece {
            words: from..self.words.len(),
            data: Some(OutgoingBlockData { unit, block, range }),
        });
        bytes
    }

    /// Adds the next part of the block under way. Returns the number of data bytes added.
    pub(super) fn add_part(&mut self, most: usize) -> usize {
        let from = self.begin();
        let Some((unit, block, at)) = self.under_way.take() else {
            return 0;
        };
        let range = self.part(&block, at, most);
        let bytes = range.len();
        self.pieces.push(OutgoingBlockPiece {
            words: from..self.words.len(),
            data: Some(OutgoingBlockData { unit, block, range }),
        });
        bytes
    }

    /// Adds the mark that the rest of the block under way is not sent.
    pub(super) fn cut(&mut self) {
        let from = self.begin();
        if self.under_way.take().is_some() {
            self.words.extend_from_slice(&CUT);
            self.pieces.push(OutgoingBlockPiece {
                words: from..self.words.len(),
                data: None,
            });
        }
    }

    /// Where the message bytes of the next piece begin.
    fn begin(&mut self) -> usize {
        if self.pieces.is_empty() {
            self.words.clear();
        }
        self.words.len()
    }

    /// Appends the length of the next part of a block, and returns the range of its bytes.
    fn part(&mut self, block: &SharedPooledBlock, at: usize, most: usize) -> Range<usize> {
        let left = block.data().len() - at;
        let length = part_length(left as u64, Some(most as u64)) as usize;
        if length > 0 {
            self.words
                .extend_from_slice(&block_parts::encode_part_length(length as u32));
        }
        at..at + length
    }

    /// Hands over as much as there is room for. Returns how many bytes that was; `sent` gets the units of blocks that the transport has
    /// taken completely.
    ///
    /// # Errors
    /// If the connection is lost.
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

    /// Takes back the blocks and parts that were not begun. Returns the unit of the block that was begun.
    pub(super) fn take_back(&mut self) -> Option<u64> {
        let begun = usize::from(self.done > 0);
        let has_words = self.pieces.iter().any(|piece| piece.data.is_none());
        let pieces = std::mem::take(&mut self.pieces).into_iter().enumerate();
        for (at, piece) in pieces {
            match piece.data {
                Some(data) if at >= begun && data.range.start == 0 => {}
                // A message cannot overtake the rest of this block, so this piece has to stay.
                Some(data) if at >= begun && !has_words => {
                    self.under_way = Some((data.unit, data.block, data.range.start));
                }
                data => self.pieces.push(OutgoingBlockPiece {
                    words: piece.words,
                    data,
                }),
            }
        }
        let first = self.pieces.first().and_then(|piece| piece.data.as_ref());
        self.under_way().or_else(|| first.map(|data| data.unit))
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
        for OutgoingBlockData { unit, block, range } in
            self.pieces.drain(..whole).filter_map(|piece| piece.data)
        {
            if range.end == block.data().len() {
                sent.push(unit);
            } else {
                self.under_way = Some((unit, block, range.end));
            }
        }
    }
}
