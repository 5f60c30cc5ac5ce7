//! The control connection: lines that are sent, lines that come, and the errors of what is wrong with them.

use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd;
use crate::stacks::contract::connection_vanished;
use crate::stacks::layered::wire::{LayeredSocket, LayeredWire};
use socket2::Socket;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_proto::ftp::{FtpReply, FtpReplyLines};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The longest line, bytes with its end.
const LONGEST_LINE: usize = 512;

pub(super) struct FtpControl {
    wire: LayeredWire,
    peer: SocketAddr,
    local: SocketAddr,
    input: [u8; LONGEST_LINE],
    /// Which bytes of `input` were received and not taken.
    waiting: Range<usize>,
}

impl FtpControl {
    /// Over a connected socket; `first` is what has been read from it already.
    pub(super) fn new(
        socket: Socket,
        stack: &Stack,
        first: &[u8],
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        let wire = LayeredWire::Plain(LayeredSocket::new(socket, stack, None, flags)?);
        let Some((local, peer)) = wire.addresses() else {
            return Err(connection_vanished("as soon as it had opened it"));
        };
        let mut input = [0; LONGEST_LINE];
        input[..first.len()].copy_from_slice(first);
        Ok(Self {
            wire,
            peer: canonical(peer),
            local: canonical(local),
            input,
            waiting: 0..first.len(),
        })
    }

    /// The address of the other end.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of this end.
    pub(super) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends a command or a reply.
    pub(super) fn say(&mut self, line: &str) -> Result<()> {
        let sent = self.wire.write_all(format!("{line}\r\n").as_bytes());
        sent.map_err(|error| self.wire.failure("send", &error))
    }

    /// Receives a line; where it stands in the input, without its end.
    fn line(&mut self) -> Result<Range<usize>> {
        let mut seen = 0;
        loop {
            let Range { start, end } = self.waiting.clone();
            let found = self.input[start + seen..end]
                .iter()
                .position(|b| *b == b'\n');
            if let Some(at) = found {
                let at = start + seen + at;
                self.waiting.start = at + 1;
                let line = self.input[start..at].trim_ascii_end().len();
                return Ok(start..start + line);
            }
            seen = end - start;
            self.receive_more()?;
        }
    }

    fn receive_more(&mut self) -> Result<()> {
        let Range { start, end } = self.waiting.clone();
        if start > 0 {
            self.input.copy_within(start..end, 0);
            self.waiting = 0..end - start;
        }
        let end = self.waiting.end;
        if end == LONGEST_LINE {
            return Err(self.foreign("sent a line that is too long"));
        }
        match self.wire.read(&mut self.input[end..]) {
            Ok(0) => Err(connection_vanished("before it had said all of FTP")),
            Ok(received) => {
                self.waiting.end += received;
                Ok(())
            }
            Err(error) => Err(self.wire.failure("recv", &error)),
        }
    }

    // --- the client's side ---

    /// Receives a reply.
    pub(super) fn reply(&mut self) -> Result<FtpReply> {
        let mut lines = FtpReplyLines::default();
        loop {
            let line = self.line()?;
            let line = &self.input[line];
            match lines.take(line) {
                Ok(None) => {}
                Ok(Some(code)) => {
                    let text = String::from_utf8_lossy(line);
                    let text = text.chars().filter(|c| !c.is_control()).collect();
                    return Ok(FtpReply { code, text });
                }
                Err(_) => return Err(self.foreign("sent a reply that is not of FTP")),
            }
        }
    }

    /// Sends a command, and receives the reply, which has to have this code. `what` is the command without its argument.
    pub(super) fn demand(&mut self, command: &str, what: &str, code: u16) -> Result<FtpReply> {
        self.say(command)?;
        self.await_reply(what, code)
    }

    /// Receives a reply that has to have this code.
    pub(super) fn await_reply(&mut self, what: &str, code: u16) -> Result<FtpReply> {
        let reply = self.reply()?;
        if reply.code == code {
            return Ok(reply);
        }
        let peer = self.peer;
        let error = Error::measurement(format!(
            "the responder at {peer} answers {what} with {}",
            reply.text
        ));
        Err(match reply.code {
            425 => error.hint(
                "a firewall between may forbid the connection for the file, or another program has connected in its place: with \
                 `mode = active` the responder opens it, with `mode = passive` the initiator",
            ),
            530 => error.hint("its token is that of another run: another responder listens there"),
            _ => error.hint("its own error message, if any, gives the cause"),
        })
    }

    // --- the server's side ---

    /// Receives a command's line.
    pub(super) fn command(&mut self) -> Result<&[u8]> {
        let line = self.line()?;
        Ok(&self.input[line])
    }

    /// Waits until the peer closes the connection.
    pub(super) fn await_close(&mut self) -> Result<()> {
        let more = !self.waiting.is_empty()
            || match self.wire.read(&mut self.input) {
                Ok(received) => received > 0,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
                Err(error) => return Err(self.wire.failure("recv", &error)),
            };
        if more {
            return Err(self.foreign("goes on after QUIT"));
        }
        Ok(())
    }

    // --- errors and facts ---

    /// The error when the peer breaks the protocol.
    pub(super) fn foreign(&self, what: &str) -> Error {
        let peer = self.peer;
        Error::measurement(format!("the peer at {peer} {what}"))
            .hint("another program listens there, or the two ends are of different versions")
    }

    /// Whether the last read found nothing in its time.
    pub(super) fn has_waited_in_vain(&self) -> bool {
        self.wire.shared().awaits_input.load(Ordering::Relaxed)
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.wire.shared().socket
    }

    pub(super) fn settle(&self) -> Result<()> {
        self.wire.settle()
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        self.wire.transport()
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        self.wire.settings()
    }
}

/// An address of IPv4 as such: a socket of IPv6 has it mapped.
pub(super) const fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(host) => SocketAddr::new(IpAddr::V4(host), address.port()),
        IpAddr::V6(_) => address,
    }
}
