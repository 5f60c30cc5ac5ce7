//! Reads messages from a connection. Each read also takes what has already come after a message, so that a message and a block take at most
//! one system call each. It never holds more than the longest message that is allowed.

use super::{BlockConnectionEnd, KEPT};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use stackline_blocks::limits;
use stackline_blocks::wire::block_parts::{self, PART};
use stackline_blocks::wire::message::{self, Message};
use stackline_blocks::wire::server_messages::BLOCK_HEAD;
use stackline_blocks::wire::{HEAD, MalformedBlockMessage};
use stackline_guard::deadline::Deadline;
use std::io::{self, IoSliceMut, Read};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of room for reading when a message is expected.
const AT_ONCE: usize = 4096;
/// Bytes that are read after the data of a block: what precedes the next block.
const BEHIND: usize = HEAD + BLOCK_HEAD + PART;

/// Reads messages and block data from a connection.
#[derive(Debug)]
pub struct BlockMessageReceiver {
    pub(super) stream: TcpStream,
    /// Bytes that have come and are not used yet are at `from..until`.
    memory: Vec<u8>,
    from: usize,
    until: usize,
    /// Bytes of the longest message.
    most: usize,
    /// Where the memory of this connection is counted together with others.
    counted: Option<ReceiveMemoryShare>,
}

/// The memory of incomplete messages, over all connections that share this counter, bytes.
#[derive(Debug, Default)]
pub struct Incoming(AtomicU64);

/// This connection's part of the counter; it is given back on drop.
#[derive(Debug)]
struct ReceiveMemoryShare {
    all: Arc<Incoming>,
    own: u64,
}

impl Drop for ReceiveMemoryShare {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.own, Ordering::Relaxed);
    }
}

impl BlockMessageReceiver {
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            memory: Vec::new(),
            from: 0,
            until: 0,
            most: limits::LONGEST_MESSAGE,
            counted: None,
        }
    }

    /// Sets limits for an untrusted peer: the longest message, and a counter that its memory shares with others.
    pub(crate) fn bound(&mut self, most: usize, all: &Arc<Incoming>) {
        (self.most, self.counted) = (
            most,
            Some(ReceiveMemoryShare {
                all: Arc::clone(all),
                own: 0,
            }),
        );
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`BlockConnectionEnd`] if there is none.
    pub fn message(&mut self) -> Result<Message, BlockConnectionEnd> {
        self.next(self.most, |_| Ok(()))
    }

    /// Waits for the next message, of at most `most` bytes, which has to be complete by the deadline.
    pub(super) fn message_by(
        &mut self,
        deadline: &Deadline,
        most: usize,
    ) -> Result<Message, BlockConnectionEnd> {
        self.next(most, |stream| {
            stream.set_read_timeout(Some(deadline.timeout()?))
        })
    }

    fn next(
        &mut self,
        most: usize,
        before: impl Fn(&TcpStream) -> io::Result<()>,
    ) -> Result<Message, BlockConnectionEnd> {
        loop {
            if let Some(message) = self.parse(most)? {
                return Ok(message);
            }
            self.make_room(AT_ONCE)?;
            before(&self.stream)?;
            match self.stream.read(&mut self.memory[self.until..]) {
                Ok(0) => return Err(self.over()),
                Ok(count) => self.until += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what has come, without waiting; [`BlockMessageReceiver::come`] returns the messages. Returns whether more may be there.
    ///
    /// # Errors
    /// [`BlockConnectionEnd`].
    pub fn take(&mut self) -> Result<bool, BlockConnectionEnd> {
        self.make_room(AT_ONCE)?;
        match recv(
            self.stream.as_raw_fd(),
            &mut self.memory[self.until..],
            MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(0) => Err(self.over()),
            Ok(count) => {
                self.until += count;
                // Only a read that filled all the room leaves a doubt.
                Ok(self.until == self.memory.len())
            }
            Err(Errno::EAGAIN) => Ok(false),
            Err(Errno::EINTR) => Ok(true),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    /// The next complete message of what was read with [`BlockMessageReceiver::take`].
    ///
    /// # Errors
    /// [`BlockConnectionEnd`] if it is malformed.
    pub fn come(&mut self) -> Result<Option<Message>, BlockConnectionEnd> {
        self.parse(self.most)
    }

    /// Reads the data after a message; the same system call reads what precedes the next block.
    ///
    /// # Errors
    /// [`BlockConnectionEnd`].
    pub fn data(&mut self, data: &mut [u8]) -> Result<(), BlockConnectionEnd> {
        let mut done = data.len().min(self.until - self.from);
        data[..done].copy_from_slice(&self.memory[self.from..self.from + done]);
        self.from += done;
        while done < data.len() {
            // All bytes that were read are used, so the memory is free.
            (self.from, self.until) = (0, 0);
            self.make_room(BEHIND)?;
            let left = data.len() - done;
            let mut parts = [
                IoSliceMut::new(&mut data[done..]),
                IoSliceMut::new(&mut self.memory[..BEHIND]),
            ];
            match self.stream.read_vectored(&mut parts) {
                Ok(0) => {
                    return Err(BlockConnectionEnd::Broken(
                        "the connection ended in the middle of a block".into(),
                    ));
                }
                Ok(count) => {
                    done += count.min(left);
                    self.until = count.saturating_sub(left);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the data of a block that comes in parts. Returns whether it is whole; if not, a newer list superseded it and the rest is not
    /// sent.
    ///
    /// # Errors
    /// [`BlockConnectionEnd`].
    pub fn parts(&mut self, data: &mut [u8]) -> Result<bool, BlockConnectionEnd> {
        let mut done = 0;
        while done < data.len() {
            let mut before = [0; PART];
            self.data(&mut before)?;
            let part = block_parts::parse_part_length(before, data.len() - done)
                .map_err(|fault| BlockConnectionEnd::Broken(fault.to_string()))?;
            let Some(part) = part else { return Ok(false) };
            self.data(&mut data[done..done + part])?;
            done += part;
        }
        Ok(true)
    }

    /// The TCP connection.
    #[must_use]
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn parse(&mut self, most: usize) -> Result<Option<Message>, BlockConnectionEnd> {
        let malformed =
            |fault: MalformedBlockMessage| BlockConnectionEnd::Broken(fault.to_string());
        let here = &self.memory[self.from..self.until];
        let Some(([a, b, c, d, kind], rest)) = here.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        // The length counts the kind, which is taken off already.
        let length = message::parse_message_length([*a, *b, *c, *d], most).map_err(malformed)? - 1;
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message = Message::read(*kind, body).map_err(malformed)?;
        message::check_message_bounds(&message).map_err(malformed)?;
        self.from += HEAD + length;
        Ok(Some(message))
    }

    /// Moves unused bytes to the beginning, and makes room for `bytes` more. The memory grows with the bytes that have come, never with an
    /// announced length.
    fn make_room(&mut self, bytes: usize) -> Result<(), BlockConnectionEnd> {
        if self.from > 0 {
            self.memory.copy_within(self.from..self.until, 0);
            (self.from, self.until) = (0, self.until - self.from);
        }
        if self.until == 0 && self.memory.len() > KEPT {
            // A long message was used up: its memory is freed.
            self.memory = Vec::new();
        }
        if self.memory.len() < self.until + bytes {
            self.memory
                .resize((2 * self.until).max(self.until + bytes), 0);
        }
        let Some(ReceiveMemoryShare { all, own }) = &mut self.counted else {
            return Ok(());
        };
        let now = self.memory.len() as u64;
        let before = std::mem::replace(own, now);
        if now == before {
            return Ok(());
        }
        all.0.fetch_sub(before, Ordering::Relaxed);
        match all.0.fetch_add(now, Ordering::Relaxed) + now {
            // A connection may always hold one read: a full counter must not stop short messages.
            too_much if too_much > limits::ALL_INCOMING && now > AT_ONCE as u64 => {
                Err(BlockConnectionEnd::Broken(
                    "too much data from incomplete messages has arrived".into(),
                ))
            }
            _ => Ok(()),
        }
    }

    fn over(&self) -> BlockConnectionEnd {
        match self.until - self.from {
            0 => BlockConnectionEnd::Closed,
            _ => {
                BlockConnectionEnd::Broken("the connection ended in the middle of a message".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    #[test]
    fn what_has_come_of_all_messages_that_are_not_whole_is_bounded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = BlockMessageReceiver::new(listener.accept().unwrap().0);
        // Of others so much has come that a short message has room and a long one has not.
        let all = Arc::new(Incoming::default());
        let others = limits::ALL_INCOMING - 2 * AT_ONCE as u64;
        all.0.store(others, Ordering::Relaxed);
        receiver.bound(limits::LONGEST_REQUEST, &all);
        let short = Message::from(stackline_blocks::wire::master_messages::Ask { request: 7 });
        sender.write_all(&short.bytes()).unwrap();
        assert_eq!(receiver.message().unwrap(), short);
        sender
            .write_all(&[&(64_u32 << 10).to_be_bytes()[..], &[19], &[0; 32 << 10]].concat())
            .unwrap();
        let ended = receiver.message().unwrap_err();
        assert!(
            matches!(&ended, BlockConnectionEnd::Broken(words) if words.contains("from incomplete messages")),
            "{ended:?}"
        );
        drop(receiver);
        assert_eq!(all.0.load(Ordering::Relaxed), others);
    }
}
