//! The responder of the stack `ikp`: a server, each of whose operations handles the client's next message.

use super::failure::{from_transfer, read_failure, write_failure};
use super::options::settings;
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use stackline_endpoint::BulkDirection;
use stackline_proto::ikp::IkpOptions as Machine;
use stackline_proto::ikp::stack::{IkpReplyContent, Verb, both_wait};
use stackline_transfer::ikp::{self, IkpRequest, IkpUdpServer, Ticket};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of a data unit that are moved from the client at once.
const PIECE: usize = 1 << 20;

/// Identifies a client: its address and its number.
pub(super) type LiveIkpPeer = (SocketAddr, u32);

pub(super) fn peer_of(request: &IkpRequest<'_>) -> LiveIkpPeer {
    (request.client(), request.number())
}

/// Locks the server, or the job's flags, which the listener and the responder share.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message of the client that was not replied to yet.
#[derive(Clone, Copy)]
struct UnansweredIkpMessage {
    /// Finds the request in the server again.
    ticket: Ticket,
    verb: Verb,
    /// Sequence number of the message.
    number: u64,
}

/// The last reply, which is repeated if its message comes again.
#[derive(Clone, Copy)]
struct LastIkpAnswer {
    /// Sequence number of the message.
    number: u64,
    /// Bytes of the source that were moved to the client with the reply.
    moved: usize,
    answer: IkpReplyContent,
}

/// The responder's end of a connection with one client.
pub(super) struct Responder {
    server: Arc<Mutex<IkpUdpServer>>,
    peer: LiveIkpPeer,
    machine: Machine,
    /// A message that an operation has looked at and left to the next one.
    waits: Option<UnansweredIkpMessage>,
    /// A call that was received and waits for the program's response.
    call: Option<UnansweredIkpMessage>,
    last: LastIkpAnswer,
    /// Whether the client has said that no more data units come.
    over: bool,
    /// Whether the client has closed the connection.
    closed: bool,
}

impl Responder {
    pub(super) const fn new(
        server: Arc<Mutex<IkpUdpServer>>,
        peer: LiveIkpPeer,
        machine: Machine,
    ) -> Self {
        let last = LastIkpAnswer {
            number: 0,
            moved: 0,
            answer: IkpReplyContent::Done,
        };
        Self {
            server,
            peer,
            machine,
            waits: None,
            call: None,
            last,
            over: false,
            closed: false,
        }
    }

    /// Waits for the client's next message. Repeated messages are answered as before, or dropped if they are older than the last.
    fn next(&mut self, buffers: &mut LiveThreadBuffers) -> Result<UnansweredIkpMessage> {
        if let Some(message) = self.waits.take() {
            return Ok(message);
        }
        loop {
            let again = {
                let mut server = lock(&self.server);
                let request = server.receive().map_err(from_transfer)?;
                let from = peer_of(&request);
                // Messages of other clients are dropped.
                let Some((verb, number, _)) =
                    Verb::read(request.message()).filter(|_| from == self.peer)
                else {
                    continue;
                };
                let message = UnansweredIkpMessage {
                    ticket: request.later(),
                    verb,
                    number,
                };
                if number > self.last.number {
                    return Ok(message);
                }
                message
            };
            if again.number == self.last.number {
                self.answer(again, self.last.moved, self.last.answer, buffers)?;
            } else {
                self.with(again.ticket, |request| drop(request));
            }
        }
    }

    /// Calls `work` with the request of a ticket; `None` if the server no longer has it.
    fn with<T>(&self, ticket: Ticket, work: impl FnOnce(IkpRequest<'_>) -> T) -> Option<T> {
        lock(&self.server).again(ticket).map(work)
    }

    /// Moves `moved` bytes of the source to the client and replies, in one packet if both fit. Remembers the reply, because a client that
    /// gave the message up may send it again.
    fn answer(
        &mut self,
        message: UnansweredIkpMessage,
        moved: usize,
        answer: IkpReplyContent,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.last = LastIkpAnswer {
            number: message.number,
            moved,
            answer,
        };
        let data = if moved > 0 {
            buffers
                .source
                .outgoing(moved)
                .map_err(|error| read_failure(&error))?
        } else {
            &mut []
        };
        let replied = self.with(message.ticket, |mut request| {
            if request.writable() < data.len() {
                return Err(ikp::IkpTransferError::Outside {
                    granted: request.writable(),
                });
            }
            if answer.reply().len() + data.len() <= request.room() {
                return request.reply_with(answer.reply(), 0, data);
            }
            request.move_to(0, data)?;
            request.reply(answer.reply())
        });
        replied
            .unwrap_or(Err(ikp::IkpTransferError::Gone))
            .map_err(from_transfer)
    }

    /// Moves the data unit of a message from the client into the destination; the message stays unanswered.
    fn take(
        &mut self,
        message: UnansweredIkpMessage,
        bytes: usize,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        let mut from = 0;
        while from < bytes {
            let room = buffers.room((bytes - from).min(PIECE));
            let most = room.len();
            let taken = self.with(message.ticket, |mut request| {
                if request.readable() != bytes {
                    let _ = request.later();
                    return Err(Error::measurement(
                        "the peer's data unit has a different size",
                    ));
                }
                let moved = request.move_from(from, room).map_err(from_transfer);
                let _ = request.later();
                moved
            });
            taken.unwrap_or_else(|| Err(from_transfer(ikp::IkpTransferError::Gone)))?;
            buffers
                .arrived(most)
                .map_err(|error| write_failure(&error))?;
            from += most;
        }
        Ok(())
    }

    /// Handles a message that is not the one an operation awaits: the client's end is noted, anything else is an error.
    fn unexpected(
        &mut self,
        message: UnansweredIkpMessage,
        awaited: &str,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        match message.verb {
            Verb::End => {
                self.over = true;
                self.answer(message, 0, IkpReplyContent::Done, buffers)
            }
            Verb::Close | Verb::Closing => {
                (self.waits, self.closed) = (Some(message), true);
                Ok(())
            }
            verb => Err(both_wait(awaited, verb)),
        }
    }

    const fn ended(&self) -> bool {
        self.over || self.closed
    }
}

impl LiveConnection for Responder {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if times > 1 && buffers.flags.limit() {
                return Ok(done);
            }
            let message = self.next(buffers)?;
            if message.verb != Verb::Get {
                self.unexpected(message, "Get", buffers)?;
                return Err(connection_vanished("while data was in flight"));
            }
            self.answer(message, bytes, IkpReplyContent::Done, buffers)?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        for done in 0..times {
            if self.ended() {
                return Ok(done);
            }
            let message = self.next(buffers)?;
            if message.verb != Verb::Put {
                self.unexpected(message, "Put", buffers)?;
                return Ok(done);
            }
            self.take(message, bytes, buffers)?;
            self.answer(message, 0, IkpReplyContent::Done, buffers)?;
        }
        Ok(times)
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        let message = self.next(buffers)?;
        if message.verb != Verb::Call {
            return self.unexpected(message, "Call", buffers).map(|()| false);
        }
        self.take(message, bytes, buffers)?;
        self.call = Some(message);
        Ok(true)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(message) = self.call.take() else {
            return Err(Error::measurement("no call is waiting for a response"));
        };
        self.answer(message, bytes, IkpReplyContent::Done, buffers)
    }

    fn confirms(&self) -> bool {
        true
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        let message = self.next(buffers)?;
        let begins = message.verb
            == if direction == BulkDirection::Get {
                Verb::Get
            } else {
                Verb::Put
            };
        if begins {
            self.waits = Some(message);
        } else {
            self.unexpected(message, "a transfer", buffers)?;
        }
        Ok(begins)
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let message = self.next(buffers)?;
        match message.verb {
            Verb::Get | Verb::Call => self.answer(message, 0, IkpReplyContent::Over, buffers),
            _ => {
                self.waits = Some(message);
                Ok(())
            }
        }
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let message = self.next(buffers)?;
        match message.verb {
            Verb::Closing | Verb::Close => self.answer(message, 0, IkpReplyContent::Done, buffers),
            _ => self.unexpected(message, "the end", buffers),
        }
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        loop {
            let message = self.next(buffers)?;
            match message.verb {
                Verb::Close => return self.answer(message, 0, IkpReplyContent::Done, buffers),
                Verb::End => self.unexpected(message, "the end", buffers)?,
                _ => {
                    return Err(Error::measurement(
                        "the peer sent data after the last data unit",
                    ));
                }
            }
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        settings(&self.machine)
    }
}
