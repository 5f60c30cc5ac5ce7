//! The initiator: it logs in, asks for files to be stored or retrieved, and quits.

use super::control::FtpControl;
use super::data::{self, FtpArrival, FtpDataListener, PATIENCE};
use super::file::{FtpFiles, FtpTransfer};
use super::login::{USER, password};
use super::mode::{FtpMode, no_calls};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnectParameters, LiveConnection};
use socket2::Socket;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_proto::datagram::DatagramToken;
use stackline_proto::ftp::{
    extended_port_command, port_command, read_extended_passive, read_passive,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The name of the file.
const FILENAME: &str = "stackline";

/// How the connection for a file comes about, agreed upon before its command.
enum FtpAgreement {
    Connected(Socket),
    Listening(FtpDataListener),
}

pub(super) struct FtpInitiator {
    control: FtpControl,
    files: FtpFiles,
    mode: FtpMode,
}

impl FtpInitiator {
    pub(super) const fn new(
        control: FtpControl,
        parameters: Arc<LiveConnectParameters>,
        mode: FtpMode,
    ) -> Self {
        Self {
            control,
            files: FtpFiles::new(parameters),
            mode,
        }
    }

    /// Logs in, and has files moved byte by byte.
    pub(super) fn log_in(&mut self, token: &DatagramToken) -> Result<()> {
        let control = &mut self.control;
        control.await_reply("the connection", 220)?;
        control.demand(&format!("USER {USER}"), "USER", 331)?;
        control.demand(&format!("PASS {}", password(token)), "PASS", 230)?;
        control.demand("TYPE I", "TYPE I", 200).map(drop)
    }

    pub(super) const fn control(&self) -> &FtpControl {
        &self.control
    }

    /// Agrees with the responder on the connection for a file.
    fn agree(&mut self, buffers: &LiveThreadBuffers) -> Result<FtpAgreement> {
        let parameters = Arc::clone(self.files.parameters());
        if self.mode.is_active {
            let listener = FtpDataListener::new(&self.control, &parameters)?;
            match (listener.address(), self.mode.is_classic) {
                (SocketAddr::V4(address), true) => {
                    self.control.demand(&port_command(address), "PORT", 200)
                }
                (SocketAddr::V6(_), true) => return Err(self.needs_ipv4("PORT")),
                (address, false) => {
                    let command = extended_port_command(address);
                    self.control.demand(&command, "EPRT", 200)
                }
            }?;
            return Ok(FtpAgreement::Listening(listener));
        }
        let port = if self.mode.is_classic {
            self.passive_port()?
        } else {
            let reply = self.control.demand("EPSV", "EPSV", 229)?;
            read_extended_passive(&reply.text).ok_or_else(|| self.names_no_port())?
        };
        let flags = &buffers.flags;
        let socket = data::connect_to_responder(port, &self.control, &parameters, flags)?;
        Ok(FtpAgreement::Connected(socket))
    }

    fn passive_port(&mut self) -> Result<u16> {
        let peer = self.control.peer();
        if peer.is_ipv6() {
            return Err(self.needs_ipv4("PASV"));
        }
        let reply = self.control.demand("PASV", "PASV", 227)?;
        let place = read_passive(&reply.text).ok_or_else(|| self.names_no_port())?;
        if IpAddr::V4(*place.ip()) != peer.ip() {
            let message = format!(
                "the responder at {peer} wants the file to go over another host, {}",
                place.ip()
            );
            return Err(Error::measurement(message)
                .hint("behind network address translation omit `classic`: EPSV names no host"));
        }
        Ok(place.port())
    }

    fn needs_ipv4(&self, command: &str) -> Error {
        let peer = self.control.peer();
        Error::input(format!(
            "{command} has no room for addresses of IPv6, and the responder is at {peer}"
        ))
        .hint("omit `classic`")
    }

    fn names_no_port(&self) -> Error {
        self.control.foreign("names no port for the file")
    }

    /// Has a file begin, when the one before has ended.
    fn begin(&mut self, direction: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.finish(buffers)?;
        let (verb, transfer) = match direction {
            BulkDirection::Get => ("RETR", FtpTransfer::Reading { ended: false }),
            BulkDirection::Put => ("STOR", FtpTransfer::Writing { ended: false }),
        };
        let agreed = self.agree(buffers)?;
        self.control
            .demand(&format!("{verb} {FILENAME}"), verb, 150)?;
        let socket = match agreed {
            FtpAgreement::Connected(socket) => socket,
            FtpAgreement::Listening(listener) => {
                let address = listener.address();
                match listener.accept(&buffers.flags)? {
                    FtpArrival::Peer(socket) => socket,
                    FtpArrival::Several => return Err(self.came_with_another(address)),
                    FtpArrival::Nobody => return Err(self.never_came(address)),
                }
            }
        };
        self.files.begin(socket, transfer)
    }

    fn never_came(&self, address: SocketAddr) -> Error {
        let (peer, patience) = (self.control.peer(), PATIENCE.as_secs());
        Error::measurement(format!(
            "the responder at {peer} did not connect to {address} for the file within {patience} s, though it had announced that"
        ))
        .hint("a firewall between may forbid it: write `mode = passive`")
    }

    fn came_with_another(&self, address: SocketAddr) -> Error {
        let peer = self.control.peer();
        Error::measurement(format!(
            "another program on the host of the responder at {peer} has connected to {address}, where its file alone is expected"
        ))
        .hint("FTP knows a file's connection by its host: end that program, or write `mode = passive`")
    }

    /// Ends the file that moves, if one does: nothing of it is in transit then.
    fn finish(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let verb = match self.files.transfer {
            FtpTransfer::Idle => return Ok(()),
            FtpTransfer::Reading { .. } => {
                self.files.await_end(buffers)?;
                "RETR"
            }
            FtpTransfer::Writing { ended } => {
                if !ended {
                    self.files.end_sending(buffers)?;
                }
                "STOR"
            }
        };
        self.files.transfer = FtpTransfer::Idle;
        self.control.await_reply(verb, 226).map(drop)
    }

    fn release(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.finish(buffers)?;
        self.control.demand("QUIT", "QUIT", 221).map(drop)
    }
}

impl LiveConnection for FtpInitiator {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.control.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        if self.files.transfer != (FtpTransfer::Writing { ended: false }) {
            self.begin(BulkDirection::Put, buffers)?;
        }
        self.files.send(bytes, times, buffers)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        match self.files.transfer {
            FtpTransfer::Reading { ended: false } => {}
            FtpTransfer::Reading { ended: true } => return Ok(0),
            _ => self.begin(BulkDirection::Get, buffers)?,
        }
        let done = self.files.receive(bytes, times, buffers)?;
        self.files.transfer = FtpTransfer::Reading {
            ended: done < times,
        };
        Ok(done)
    }

    fn call(&mut self, _: usize, _: usize, _: Instant, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(no_calls())
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.begin(direction, buffers)
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Ok(true)
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.finish(buffers)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.files.transfer == (FtpTransfer::Writing { ended: false }) {
            self.files.end_sending(buffers)?;
            self.files.transfer = FtpTransfer::Writing { ended: true };
        }
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.release(buffers)
    }

    /// Only the initiator quits, so it does what the other side asks for.
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
