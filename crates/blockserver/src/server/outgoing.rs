//! What is on its way to a client: a message, or a block with what precedes it. It is handed to the transport as far as
//! there is room, and never waits.

use super::Block;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, sendmsg};
use stackline_blocks::wire::message::Message;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// What is on its way.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    words: Vec<u8>,
    /// The block behind the words.
    block: Option<Block>,
    done: usize,
}

impl Outgoing {
    /// Begins with a message, and the data of a block behind it.
    pub(super) fn begin(&mut self, message: &Message, block: Option<Block>) {
        self.words.clear();
        message.put(&mut self.words);
        (self.block, self.done) = (block, 0);
    }

    /// Hands over as much as there is room for; whether that was all.
    ///
    /// # Errors
    /// When the connection is gone.
    pub(super) fn send(&mut self, stream: &TcpStream) -> io::Result<bool> {
        let data = self.block.as_ref().map_or(&[][..], |block| block.data());
        let (head, all) = (self.words.len(), self.words.len() + data.len());
        while self.done < all {
            let words = IoSlice::new(&self.words[self.done.min(head)..]);
            let parts = [words, IoSlice::new(&data[self.done.saturating_sub(head)..])];
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match sendmsg::<()>(stream.as_raw_fd(), &parts, &[], flags, None) {
                Ok(count) => self.done += count,
                Err(Errno::EAGAIN) => return Ok(false),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        // Its memory may be used again.
        self.block = None;
        Ok(true)
    }
}
