//! One end of an association: its socket, what waits to be sent, and what arrives. Both ends share it; which message comes when is theirs.

use crate::buffers::{LiveThreadBuffers, READ_BYTES};
use crate::error::{self, Error, Result};
use crate::stacks::authentication::ProvenConnection;
use crate::stacks::byte_channel::ChannelEnd;
use crate::stacks::contract::connection_vanished;
use crate::stacks::layered::wire::{LayeredSocket, LayeredWire};
use socket2::Socket;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use stackline_proto::datagram::DatagramToken;
use stackline_proto::papers::ftam::{
    CotpConnect, CotpOpening, FtamMessage, FtamPdu, FtamReceived, FtamReceiver, OsiError, TpduSize,
    UnitFraming,
};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// The called TSAP-ID.
const CALLED: &[u8] = b"ftam";
/// Room for what opening and closing an association needs.
const OPENING_BYTES: usize = 2048;
/// Most pieces of one system call.
const MOST_SLICES: usize = 64;

/// Which way data is moved, and whether the sender has ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FtamTransfer {
    Idle,
    /// From the responder.
    Reading {
        ended: bool,
    },
    /// To the responder.
    Writing {
        ended: bool,
    },
}

pub(super) struct FtamAssociation {
    wire: LayeredWire,
    /// The largest TPDU, as agreed.
    size: TpduSize,
    receiver: FtamReceiver,
    framing: UnitFraming,
    /// What waits to be sent, before the next data unit.
    before: Vec<u8>,
    /// What is sent behind the next data unit.
    behind: Vec<u8>,
    input: Vec<u8>,
    /// Which bytes of `input` were received and not taken.
    from: usize,
    to: usize,
}

impl FtamAssociation {
    fn over(socket: Socket, stack: &Stack, buffers: &LiveThreadBuffers) -> Result<Self> {
        let socket = LayeredSocket::new(socket, stack, None, &buffers.flags)?;
        Ok(Self {
            wire: LayeredWire::Plain(socket),
            size: TpduSize::default(),
            receiver: FtamReceiver::new(TpduSize::default()),
            framing: UnitFraming::default(),
            before: Vec::with_capacity(OPENING_BYTES),
            behind: Vec::new(),
            input: vec![0; OPENING_BYTES],
            from: 0,
            to: 0,
        })
    }

    /// Opens an association over a connected socket; `None` if the peer does not answer in time.
    pub(super) fn connect(
        socket: Socket,
        stack: &Stack,
        token: &DatagramToken,
        size: TpduSize,
        buffers: &LiveThreadBuffers,
    ) -> Result<Option<Self>> {
        scope::begin_byte_count();
        let mut association = Self::over(socket, stack, buffers)?;
        let request = CotpConnect {
            destination: 0,
            source: 1,
            size,
            calling: token.to_vec(),
            called: CALLED.to_vec(),
        };
        request.write_request(&mut association.before);
        match association.complete(size) {
            Err(_) if association.has_waited_in_vain() => Ok(None),
            opened => opened.map(|()| Some(association)),
        }
    }

    /// The initiator's part of opening, behind the connect request.
    fn complete(&mut self, size: TpduSize) -> Result<()> {
        self.flush()?;
        match self.opening()? {
            CotpOpening::Confirm(confirm) if confirm.size.bytes() <= size.bytes() => {
                self.agree(confirm.size);
            }
            _ => return Err(self.misplaced("COTP CC")),
        }
        self.queue(&FtamMessage::connect());
        self.flush()?;
        match self.message()? {
            FtamMessage::Accept(_) => Ok(()),
            _ => Err(self.misplaced("F-INITIALIZE response")),
        }
    }

    /// Whether the last read found nothing in its time.
    fn has_waited_in_vain(&self) -> bool {
        self.wire.shared().awaits_input.load(Ordering::Relaxed)
    }

    /// Opens the responder's end over an accepted connection, whose request has shown the token.
    pub(super) fn accept(
        proven: ProvenConnection,
        stack: &Stack,
        most: TpduSize,
        buffers: &LiveThreadBuffers,
    ) -> Result<Self> {
        let shown = proven.dialogue.shown().to_vec();
        let mut association = Self::over(proven.socket, stack, buffers)?;
        association.input[..shown.len()].copy_from_slice(&shown);
        association.to = shown.len();
        let CotpOpening::Request(request) = association.opening()? else {
            return Err(association.misplaced("COTP CR"));
        };
        let size = request.size.smaller(most);
        let confirm = CotpConnect {
            destination: request.source,
            source: 1,
            size,
            ..request
        };
        confirm.write_confirm(&mut association.before);
        association.flush()?;
        association.agree(size);
        let FtamMessage::Connect(_) = association.message()? else {
            return Err(association.misplaced("F-INITIALIZE request"));
        };
        association.queue(&FtamMessage::accept());
        association.flush()?;
        Ok(association)
    }

    fn agree(&mut self, size: TpduSize) {
        self.size = size;
        self.receiver = FtamReceiver::new(size);
    }

    /// The TPDU that opens the transport connection.
    fn opening(&mut self) -> Result<CotpOpening> {
        loop {
            let read = CotpOpening::read(&self.input[self.from..self.to]);
            if let Some((opening, length)) = read.map_err(|error| self.broken(&error))? {
                self.from += length;
                return Ok(opening);
            }
            self.receive_more()?;
        }
    }

    // --- sending ---

    /// Has a message sent before all that follows.
    pub(super) fn queue(&mut self, message: &FtamMessage) {
        message.write(self.size, &mut self.before);
    }

    /// Has PDUs sent in one P-DATA before all that follows.
    pub(super) fn queue_pdus(&mut self, pdus: Vec<FtamPdu>) {
        self.queue(&FtamMessage::Data(pdus));
    }

    /// Has a PDU sent behind the next data unit, in the same system call.
    pub(super) fn queue_behind(&mut self, pdu: FtamPdu) {
        FtamMessage::Data(vec![pdu]).write(self.size, &mut self.behind);
    }

    /// Sends what waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        let sent = self.wire.write_all(&self.before);
        self.before.clear();
        sent.map_err(|error| self.wire.failure("send", &error))
    }

    /// Sends what waits, a data unit, and what is to be sent behind it.
    pub(super) fn send_unit(
        &mut self,
        bytes: usize,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.framing.prepare(bytes, self.size);
        let unit = buffers.source.outgoing(bytes);
        let unit = unit.map_err(|error| error::io_error("reading the source", &error))?;
        let mut slices = [IoSlice::new(&[]); MOST_SLICES];
        slices[0] = IoSlice::new(&self.before);
        let (mut filled, mut index) = (1, 0);
        let mut sent = Ok(());
        while let Some((head, piece)) = self.framing.piece(index) {
            slices[filled] = IoSlice::new(head);
            slices[filled + 1] = IoSlice::new(&unit[piece]);
            (filled, index) = (filled + 2, index + 1);
            // One is left for what is sent behind.
            if filled + 2 >= MOST_SLICES {
                sent = sent.and_then(|()| write_slices(&mut self.wire, &mut slices[..filled]));
                filled = 0;
            }
        }
        slices[filled] = IoSlice::new(&self.behind);
        let sent = sent.and_then(|()| write_slices(&mut self.wire, &mut slices[..=filled]));
        self.before.clear();
        self.behind.clear();
        sent.map_err(|error| self.wire.failure("send", &error))
    }

    // --- receiving ---

    /// Waits for more bytes.
    fn receive_more(&mut self) -> Result<()> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.input.len() {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let received = self.wire.read(&mut self.input[self.to..]);
        match received.map_err(|error| self.wire.failure("recv", &error))? {
            0 => Err(connection_vanished(
                "before it had released the association",
            )),
            received => {
                self.to += received;
                Ok(())
            }
        }
    }

    fn next(&mut self) -> Result<FtamReceived> {
        loop {
            let read = self.receiver.take(&self.input[self.from..self.to]);
            let (taken, received) = read.map_err(|error| self.broken(&error))?;
            self.from += taken;
            if received != FtamReceived::Nothing {
                return Ok(received);
            }
            self.receive_more()?;
        }
    }

    /// The next message; a data unit is an error.
    pub(super) fn message(&mut self) -> Result<FtamMessage> {
        match self.next()? {
            FtamReceived::Message => self.read_message(),
            _ => Err(
                Error::measurement("the peer sent data where a message of FTAM was expected")
                    .hint("over FTAM, data goes one way at a time: both sides have to agree on it"),
            ),
        }
    }

    fn read_message(&self) -> Result<FtamMessage> {
        self.receiver.message().map_err(|error| self.broken(&error))
    }

    /// Awaits these PDUs in one P-DATA.
    pub(super) fn expect(&mut self, pdus: &[FtamPdu]) -> Result<()> {
        match self.message()? {
            FtamMessage::Data(read) if read == pdus => Ok(()),
            _ => Err(self.misplaced(pdus.first().map_or("", FtamPdu::name))),
        }
    }

    /// Receives a data unit of so many bytes into the destination; a message that comes instead is returned.
    pub(super) fn receive_unit(
        &mut self,
        bytes: usize,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Option<FtamMessage>> {
        if self.input.len() < READ_BYTES {
            self.input.resize(READ_BYTES, 0);
        }
        let mut have = 0;
        loop {
            let (here, left) = match self.next()? {
                FtamReceived::Data { bytes, left } => (bytes, left),
                _ if have > 0 => {
                    return Err(connection_vanished("in the middle of a data unit"));
                }
                _ => return self.read_message().map(Some),
            };
            have += here as u64;
            if have + left != bytes as u64 {
                return Err(Error::measurement(
                    "the peer's data unit has a different size",
                ));
            }
            let arrived = &self.input[self.from - here..self.from];
            let stored = buffers.store(arrived);
            stored.map_err(|error| error::io_error("writing the destination", &error))?;
            if left == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits until the peer closes the connection.
    pub(super) fn await_close(&mut self) -> Result<()> {
        if self.from < self.to {
            return Err(self.misplaced("the end"));
        }
        match self.wire.read(&mut self.input) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.misplaced("the end")),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(self.wire.failure("recv", &error)),
        }
    }

    // --- errors ---

    fn peer(&self) -> String {
        let addresses = self.wire.addresses();
        addresses.map_or_else(String::new, |(_, peer)| format!(" {peer}"))
    }

    /// The error when the peer breaks a protocol, refuses or aborts.
    fn broken(&self, error: &OsiError) -> Error {
        let peer = self.peer();
        match error {
            OsiError::Malformed { layer, what } => Error::measurement(format!(
                "the peer{peer} sent what is malformed as {layer}: {what}"
            ))
            .hint("another program listens there, or the two ends are of different versions"),
            OsiError::Refused { layer, reason } => Error::measurement(format!(
                "{layer} of the peer{peer} ended the connection: {reason}"
            ))
            .hint("its own error message, if any, gives the cause"),
        }
    }

    /// The error when the peer sends another message than the one that is awaited.
    pub(super) fn misplaced(&self, awaited: &str) -> Error {
        let peer = self.peer();
        Error::measurement(format!(
            "the peer{peer} sent another message where {awaited} was expected"
        ))
        .hint("over FTAM, data goes one way at a time: both sides have to agree on it")
    }

    // --- facts ---

    pub(super) fn socket(&self) -> &Socket {
        &self.wire.shared().socket
    }

    pub(super) fn settle(&self) -> Result<()> {
        self.wire.settle()
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        self.wire.transport()
    }

    pub(super) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.wire.addresses()
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.wire.settings();
        settings.insert("tpdu".into(), format!("{} B", self.size.bytes()));
        settings
    }
}

/// Sends all slices.
fn write_slices(wire: &mut LayeredWire, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut rest = slices;
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match wire.write_vectored(rest)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            sent => IoSlice::advance_slices(&mut rest, sent),
        }
    }
    Ok(())
}
