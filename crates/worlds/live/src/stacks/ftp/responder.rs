//! The responder: each of its operations answers what the initiator asks until its own part has come.

use super::control::FtpControl;
use super::data::{self, FtpArrival, FtpDataListener, PATIENCE};
use super::file::{FtpFiles, FtpTransfer};
use super::mode::{FtpMode, no_calls};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnectParameters, LiveConnection, connection_vanished};
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_proto::ftp::{FtpCommand, extended_passive_reply, passive_reply};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The first port that is no well-known one: to those no connection is opened (RFC 2577, 3).
const FIRST_PORT: u16 = 1024;

/// How the connection for the next file comes about.
enum FtpOffer {
    /// The initiator connects to it.
    Listening(FtpDataListener),
    /// It is opened to this port of the initiator's.
    Port(u16),
}

/// What a command asks for that is not answered by a line alone.
enum FtpTask {
    Answer(&'static str),
    Listen { is_extended: bool },
    ConnectTo(SocketAddr),
    Open(FtpTransfer),
    Quit,
}

pub(super) struct FtpResponder {
    control: FtpControl,
    files: FtpFiles,
    mode: FtpMode,
    offer: Option<FtpOffer>,
    /// Whether it was said that files are bytes.
    is_binary: bool,
    /// Whether no data unit is sent any more: what is asked for ends at once.
    silent: bool,
    /// Whether the initiator has quit.
    released: bool,
}

impl FtpResponder {
    pub(super) const fn new(
        control: FtpControl,
        parameters: Arc<LiveConnectParameters>,
        mode: FtpMode,
    ) -> Self {
        Self {
            control,
            files: FtpFiles::new(parameters),
            mode,
            offer: None,
            is_binary: false,
            silent: false,
            released: false,
        }
    }

    /// Answers until files are known to be bytes: the initiator is connected then.
    pub(super) fn await_type(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.is_binary {
            if self.released {
                return Err(connection_vanished("as soon as it had logged in"));
            }
            self.serve(buffers)?;
        }
        Ok(())
    }

    /// Answers the next command. No file moves.
    fn serve(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let task = match FtpCommand::read(self.control.command()?) {
            FtpCommand::ImageType => {
                self.is_binary = true;
                FtpTask::Answer("200 files are bytes")
            }
            FtpCommand::StreamMode | FtpCommand::FileStructure | FtpCommand::Noop => {
                FtpTask::Answer("200 yes")
            }
            FtpCommand::ExtendedPassive => FtpTask::Listen { is_extended: true },
            FtpCommand::Passive => FtpTask::Listen { is_extended: false },
            FtpCommand::ExtendedPort(address) => FtpTask::ConnectTo(address),
            FtpCommand::Port(address) => FtpTask::ConnectTo(address.into()),
            FtpCommand::Store(_) => FtpTask::Open(FtpTransfer::Writing { ended: false }),
            FtpCommand::Retrieve(_) => FtpTask::Open(FtpTransfer::Reading { ended: false }),
            FtpCommand::Quit => FtpTask::Quit,
            FtpCommand::User(_) | FtpCommand::Pass(_) => FtpTask::Answer("503 logged in already"),
            FtpCommand::Wrong => FtpTask::Answer("501 this argument is not served"),
            FtpCommand::Other => FtpTask::Answer("502 this command is not served"),
        };
        match task {
            FtpTask::Answer(line) => self.control.say(line),
            FtpTask::Listen { is_extended } => self.listen(is_extended),
            FtpTask::ConnectTo(address) => self.note_port(address),
            FtpTask::Open(transfer) => self.open(transfer, buffers),
            FtpTask::Quit => {
                self.released = true;
                Ok(())
            }
        }
    }

    /// Listens for the connection of the next file.
    fn listen(&mut self, is_extended: bool) -> Result<()> {
        if !is_extended && self.control.local().is_ipv6() {
            return self.control.say("522 this connection is of IPv6: use EPSV");
        }
        let listener = FtpDataListener::new(&self.control, self.files.parameters())?;
        let reply = match listener.address() {
            SocketAddr::V4(address) if !is_extended => passive_reply(address),
            address => extended_passive_reply(address.port()),
        };
        self.offer = Some(FtpOffer::Listening(listener));
        self.control.say(&reply)
    }

    /// Notes where the connection of the next file is opened to: the initiator's own host alone.
    fn note_port(&mut self, address: SocketAddr) -> Result<()> {
        if address.ip() != self.control.peer().ip() {
            return self
                .control
                .say("501 files go to the host of this connection alone");
        }
        if address.port() < FIRST_PORT {
            return self
                .control
                .say("501 no connection is opened to a well-known port");
        }
        self.offer = Some(FtpOffer::Port(address.port()));
        self.control.say("200 yes")
    }

    /// Opens the connection of a file, which begins then.
    fn open(&mut self, transfer: FtpTransfer, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let (parameters, flags) = (self.files.parameters(), &buffers.flags);
        let socket = match self.offer.take() {
            None => return self.control.say("425 first EPSV, PASV, EPRT or PORT"),
            Some(FtpOffer::Listening(listener)) => match listener.accept(flags)? {
                FtpArrival::Peer(socket) => socket,
                FtpArrival::Several => {
                    let line = "425 another program on your host has connected here, too";
                    return self.control.say(line);
                }
                FtpArrival::Nobody => {
                    let patience = PATIENCE.as_secs();
                    let line = format!("425 no connection for the file came within {patience} s");
                    return self.control.say(&line);
                }
            },
            Some(FtpOffer::Port(port)) => {
                match data::connect_to_initiator(port, &self.control, parameters, flags)? {
                    Ok(socket) => socket,
                    Err(error) => {
                        let line = format!("425 cannot connect to port {port}: {error}");
                        return self.control.say(&line);
                    }
                }
            }
        };
        self.control
            .say("150 the connection for the file is open")?;
        self.files.begin(socket, transfer)?;
        if self.silent {
            self.end_data(buffers)?;
        }
        Ok(())
    }

    /// Ends the file that is sent, if one is.
    fn end_data(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if let FtpTransfer::Reading { .. } = self.files.transfer {
            self.files.end_sending(buffers)?;
            self.complete()?;
        }
        Ok(())
    }

    /// Awaits the end of the file that is received, if one is.
    fn await_end(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if let FtpTransfer::Writing { .. } = self.files.transfer {
            self.files.await_end(buffers)?;
            self.complete()?;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        self.files.transfer = FtpTransfer::Idle;
        self.control.say("226 the file is complete")
    }

    /// Answers until the initiator retrieves.
    fn await_retrieval(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.await_end(buffers)?;
        while self.files.transfer == FtpTransfer::Idle && !self.released {
            self.serve(buffers)?;
        }
        match self.files.transfer {
            FtpTransfer::Reading { .. } => Ok(()),
            FtpTransfer::Writing { .. } => Err(wrong_direction()),
            FtpTransfer::Idle => Err(connection_vanished("while data was in flight")),
        }
    }

    fn release(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.silent = true;
        self.end_data(buffers)?;
        while !self.released {
            self.await_end(buffers)?;
            self.serve(buffers)?;
        }
        self.control.say("221 goodbye")?;
        self.control.await_close()
    }
}

/// The error when both ends send, or both receive.
fn wrong_direction() -> Error {
    Error::measurement("the peer moves data the other way: both sides would wait without end")
        .hint("let both sides of the procedure agree on the direction")
}

impl LiveConnection for FtpResponder {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.control.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        if !matches!(self.files.transfer, FtpTransfer::Reading { .. }) {
            self.await_retrieval(buffers)?;
        }
        self.files.send(bytes, times, buffers)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        self.end_data(buffers)?;
        loop {
            match self.files.transfer {
                FtpTransfer::Writing { ended: false } => {
                    let done = self.files.receive(bytes, times, buffers)?;
                    self.files.transfer = FtpTransfer::Writing {
                        ended: done < times,
                    };
                    return Ok(done);
                }
                FtpTransfer::Writing { ended: true } => self.await_end(buffers)?,
                // The initiator sends no more.
                FtpTransfer::Reading { .. } => return Ok(0),
                FtpTransfer::Idle if self.released => return Ok(0),
                FtpTransfer::Idle => self.serve(buffers)?,
            }
        }
    }

    fn await_call(&mut self, _: usize, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(no_calls())
    }

    fn reply(&mut self, _: usize, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(no_calls())
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        self.end_data(buffers)?;
        self.await_end(buffers)?;
        while self.files.transfer == FtpTransfer::Idle {
            if self.released {
                return Ok(false);
            }
            self.serve(buffers)?;
        }
        match (self.files.transfer, direction) {
            (FtpTransfer::Reading { .. }, BulkDirection::Get)
            | (FtpTransfer::Writing { .. }, BulkDirection::Put) => Ok(true),
            _ => Err(wrong_direction()),
        }
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.end_data(buffers)?;
        self.await_end(buffers)
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.silent = true;
        self.end_data(buffers)
    }

    /// Only the initiator quits, so its word is awaited.
    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.release(buffers)
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.release(buffers)
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.files.transport(&self.control)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.mode.settings(&self.control)
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.control.local(), self.control.peer()))
    }
}
