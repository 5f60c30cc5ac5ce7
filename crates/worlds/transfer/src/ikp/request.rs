//! A message that a server has received: its content, moves of data to and from its client, and the reply.

use super::error::IkpTransferError;
use super::server::IkpUdpServer;
use super::table::{ClientEntry, Ticket};
use crate::carrier::PacketCarrier;
use crate::stream_memory::Posted;
use stackline_core::time::Duration;
use stackline_proto::ikp::server::{IkpMessage, IkpReplyError, IkpServerCounters};
use std::net::SocketAddr;
use std::time;

/// A message that has been received. Its client is blocked until the reply.
///
/// If it is dropped without a reply, none is ever sent: the client gives up after its patience. To reply later, keep a
/// [`Ticket`] of it.
#[must_use = "its client waits for a reply"]
pub struct IkpRequest<'a> {
    server: &'a mut IkpUdpServer,
    ticket: Ticket,
    /// Whether there is neither a reply nor a ticket yet: if it is dropped then, the message is never replied to.
    open: bool,
}

impl IkpUdpServer {
    /// Waits for the next message, however long it takes.
    ///
    /// # Errors
    /// [`IkpTransferError::Interrupted`] and [`IkpTransferError::Io`].
    pub fn receive(&mut self) -> Result<IkpRequest<'_>, IkpTransferError> {
        loop {
            if let Some(ticket) = self.next() {
                return Ok(IkpRequest {
                    server: self,
                    ticket,
                    open: true,
                });
            }
            self.pause(Duration(u64::MAX))?;
        }
    }

    /// Waits for the next message, at most for `most`; `None` when none came.
    ///
    /// # Errors
    /// As [`IkpUdpServer::receive`].
    pub fn receive_within(
        &mut self,
        most: time::Duration,
    ) -> Result<Option<IkpRequest<'_>>, IkpTransferError> {
        let until = self.clock.now() + Duration(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if let Some(ticket) = self.next() {
                return Ok(Some(IkpRequest {
                    server: self,
                    ticket,
                    open: true,
                }));
            }
            let left = until.since(self.clock.now());
            if left == Duration::ZERO {
                return Ok(None);
            }
            self.pause(left)?;
        }
    }

    /// The request of a ticket; `None` when its client has given it up.
    pub fn again(&mut self, ticket: Ticket) -> Option<IkpRequest<'_>> {
        let entry = self.table.entries.get(ticket.entry)?;
        let same =
            entry.address == ticket.address && entry.machine.open() == Some(ticket.transaction);
        same.then_some(IkpRequest {
            server: self,
            ticket,
            open: true,
        })
    }
}

impl IkpRequest<'_> {
    /// The client's entry and its message; `None` when the client has given it up for its next message.
    fn entry(&self) -> Option<(&ClientEntry, &IkpMessage)> {
        let entry = &self.server.table.entries[self.ticket.entry];
        let message = entry
            .message
            .as_ref()
            .filter(|message| message.transaction == self.ticket.transaction)?;
        (entry.address == self.ticket.address).then_some((entry, message))
    }

    /// The message. Empty, like everything else of it, when the client has given it up and sent another.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.entry().map_or(&[], |(entry, message)| {
            &entry.body[..message.bytes as usize]
        })
    }

    /// The first bytes of the readable segment that came with the message: [`IkpRequest::move_from`] does not request them
    /// again.
    #[must_use]
    pub fn carried(&self) -> &[u8] {
        self.entry().map_or(&[], |(entry, message)| {
            &entry.body[message.bytes as usize..]
        })
    }

    /// Bytes of the segment that may be read.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.entry()
            .map_or(0, |(_, message)| message.grants.readable as usize)
    }

    /// Bytes of the segment that may be written.
    #[must_use]
    pub fn writable(&self) -> usize {
        self.entry()
            .map_or(0, |(_, message)| message.grants.writable as usize)
    }

    /// Bytes that a reply has room for, message and data together.
    #[must_use]
    pub fn room(&self) -> usize {
        self.entry().map_or(0, |(_, message)| message.room as usize)
    }

    /// [`IkpTransferError::Gone`] unless the client still waits for the reply to this message.
    fn waits(&self) -> Result<(), IkpTransferError> {
        self.entry().map(|_| ()).ok_or(IkpTransferError::Gone)
    }

    /// The address of its sender.
    #[must_use]
    pub const fn client(&self) -> SocketAddr {
        self.ticket.address
    }

    /// The number that distinguishes its client from others at the same address, also earlier ones.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.server.table.entries[self.ticket.entry].connection
    }

    /// Records that the client has proven who it is: a new client does not take its place.
    pub fn known(&mut self) {
        if self.waits().is_ok() {
            self.server.table.entries[self.ticket.entry].is_known = true;
        }
    }

    /// Counters of the protocol for this client.
    #[must_use]
    pub fn counters(&self) -> IkpServerCounters {
        self.server.table.entries[self.ticket.entry]
            .machine
            .counters()
    }

    /// Moves data to `offset` of the client's writable segment; returns when all of it is there.
    ///
    /// # Errors
    /// [`IkpTransferError::Outside`]: the data reaches beyond the segment, nothing was moved. [`IkpTransferError::Gone`]: the client has
    /// given the message up. [`IkpTransferError::Silent`]: the client was silent for its patience in the middle of the move; further
    /// moves of this request fail with [`IkpTransferError::Failed`].
    /// [`IkpTransferError::Interrupted`], after which the request cannot move anything, and [`IkpTransferError::Io`].
    pub fn move_to(&mut self, offset: usize, data: &[u8]) -> Result<(), IkpTransferError> {
        self.waits()?;
        let (offset, bytes) = span(offset, data.len(), self.writable())?;
        let machine = &mut self.server.table.entries[self.ticket.entry].machine;
        machine.move_to(self.ticket.transaction, offset, bytes)?;
        self.server
            .move_on(self.ticket, data, offset, &mut Posted::once(&mut [], 0))
    }

    /// Moves the bytes at `offset` of the client's readable segment here; returns when all of them are there. Bytes
    /// that came with the message are not requested.
    ///
    /// # Errors
    /// As [`IkpRequest::move_to`].
    pub fn move_from(&mut self, offset: usize, into: &mut [u8]) -> Result<(), IkpTransferError> {
        self.waits()?;
        span(offset, into.len(), self.readable())?;
        let here = self.carried().get(offset..).unwrap_or_default();
        let (ready, into) = into.split_at_mut(here.len().min(into.len()));
        ready.copy_from_slice(&here[..ready.len()]);
        let (offset, bytes) = span(offset + ready.len(), into.len(), self.readable())?;
        let now = self.server.clock.now();
        let machine = &mut self.server.table.entries[self.ticket.entry].machine;
        machine.move_from(now, self.ticket.transaction, offset, bytes)?;
        let many = |server: &mut IkpUdpServer, many| {
            server
                .carrier
                .expect_many(many)
                .map_err(|error| IkpTransferError::new("receiving", error))
        };
        let worth = bytes > 2 * machine.options().packet;
        if worth {
            many(self.server, true)?;
        }
        let moved = self
            .server
            .move_on(self.ticket, &[], 0, &mut Posted::once(into, 0));
        if worth {
            many(self.server, false)?;
        }
        moved
    }

    /// Replies, which unblocks the client.
    ///
    /// # Errors
    /// [`IkpTransferError::Long`]: more than [`IkpRequest::room`]. [`IkpTransferError::Gone`]: the client has given the message up.
    /// [`IkpTransferError::Interrupted`] and [`IkpTransferError::Io`].
    pub fn reply(self, message: &[u8]) -> Result<(), IkpTransferError> {
        self.reply_with(message, 0, &[])
    }

    /// Replies with data in the same packet, which belongs at `offset` of the client's writable segment.
    ///
    /// # Errors
    /// As [`IkpRequest::reply`], and [`IkpTransferError::Outside`].
    pub fn reply_with(
        mut self,
        message: &[u8],
        offset: usize,
        data: &[u8],
    ) -> Result<(), IkpTransferError> {
        self.waits()?;
        let room = self.room();
        if message.len() + data.len() > room {
            return Err(IkpTransferError::Long { room });
        }
        let (offset, bytes) = if data.is_empty() {
            (0, 0)
        } else {
            span(offset, data.len(), self.writable())?
        };
        let now = self.server.clock.now();
        let Ticket {
            entry, transaction, ..
        } = self.ticket;
        let known = &mut self.server.table.entries[entry];
        known
            .machine
            .reply(now, transaction, message.len() as u32, offset, bytes)?;
        self.open = false;
        known.reply.clear();
        known.reply.extend_from_slice(message);
        known.reply.extend_from_slice(data);
        self.server.flush(entry, now, &[], 0).map(|_| ())
    }

    /// Leaves the client blocked, to be replied to later: see [`IkpUdpServer::again`].
    #[must_use]
    pub fn later(mut self) -> Ticket {
        self.open = false;
        self.ticket
    }
}

impl Drop for IkpRequest<'_> {
    fn drop(&mut self) {
        if self.open {
            self.server.table.entries[self.ticket.entry]
                .machine
                .ignore(self.ticket.transaction);
        }
    }
}

/// Checks that `bytes` bytes at `offset` lie inside a segment of `granted` bytes; returns offset and number of bytes.
fn span(offset: usize, bytes: usize, granted: usize) -> Result<(u32, u32), IkpTransferError> {
    let outside = IkpReplyError::Outside(u32::try_from(granted).unwrap_or(u32::MAX));
    let end = offset
        .checked_add(bytes)
        .filter(|end| *end <= granted)
        .ok_or(outside)?;
    match (u32::try_from(offset), u32::try_from(end - offset)) {
        (Ok(offset), Ok(bytes)) => Ok((offset, bytes)),
        _ => Err(outside.into()),
    }
}
