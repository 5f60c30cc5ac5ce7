//! One end of a connection of blasts, of stop-and-wait or of a sliding window (Zwaenepoel 1985). What is written at
//! once is one blast, and counts as sent when the other end has all of it. One connection serves both directions; live,
//! each direction has a connection of its own.

use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::stacks::packet_wire::{BELOW, PacketWire, seeded_token};
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::{NetworkPacket, NodeIndex};
use stackline_proto::blast::wire::{HEADER, SEAL};
use stackline_proto::blast::{
    BlastArrival, BlastConnection, BlastOptions, BlastOutput, BlastState, stack as words,
};

/// Bytes of the length field before each message.
pub(super) const LENGTH: u64 = 4;
/// The UDP ports of the two sides.
const PORTS: [u16; 2] = [49_152, 7089];

/// One end of a blast connection of an application.
pub(crate) struct MessageBlastEnd {
    connection: BlastConnection,
    wire: PacketWire,
    /// Bytes that were written and have not arrived at the other end; 0 when nothing is being written.
    writing: u64,
    /// Bytes of the stream that the application has read.
    taken: u64,
}

impl MessageBlastEnd {
    /// The two ends of a new connection, over a path with packets of at most `mtu` bytes.
    ///
    /// # Errors
    /// When packets of that stack do not fit the path.
    pub(super) fn both(
        now: Instant,
        nodes: [NodeIndex; 2],
        number: u32,
        stack: &Stack,
        mtu: u64,
    ) -> Result<[Self; 2]> {
        let seal = if stack.flag("sealed") { SEAL as u32 } else { 0 };
        let room = mtu.saturating_sub((BELOW + HEADER) as u64 + u64::from(seal));
        let hint = "give the path's links a larger `mtu`, or omit `packet`";
        if room == 0 {
            return Err(Error::input(format!(
                "a packet of {mtu} B leaves no room for a blast's data"
            ))
            .hint(hint));
        }
        let buffer = stack.number("buffer").unwrap_or(words::GRANT);
        let options = words::options(stack, u32::try_from(room).unwrap_or(u32::MAX), buffer);
        let options: BlastOptions = options.map_err(|cause| Error::input(cause).hint(hint))?;
        let (token, nonce) = (seeded_token(u64::from(number)), [0; 16]);
        let connections = [
            BlastConnection::connect(now, &options, token, nonce, number.wrapping_add(1)),
            BlastConnection::listen(&options, token, nonce),
        ];
        let mut sides = [PairSide::Initiator, PairSide::Responder].into_iter();
        Ok(connections.map(|connection| {
            let side = sides.next().unwrap_or(PairSide::Responder);
            let (near, far) = (side.index(), side.other().index());
            let (nodes, ports) = ([nodes[near], nodes[far]], [PORTS[near], PORTS[far]]);
            Self {
                connection,
                wire: PacketWire {
                    pair: number,
                    side,
                    nodes,
                    ports,
                    seal,
                },
                writing: 0,
                taken: 0,
            }
        }))
    }

    pub(super) fn is_there(&self) -> bool {
        self.connection.state() == BlastState::Open
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(
            self.connection.state(),
            BlastState::Closed | BlastState::Failed(_)
        )
    }

    /// Whether the other end has everything that was written.
    pub(super) fn has_room(&self) -> bool {
        self.connection.sender().is_idle()
    }

    /// Writes bytes. The first call returns 0; later calls return `None` until the other end has all of them, then the
    /// number of bytes.
    pub(super) fn send(&mut self, bytes: u64) -> Option<u64> {
        if self.writing == 0 {
            self.writing = bytes;
            self.connection.send(bytes);
            return Some(0);
        }
        self.has_room().then(|| std::mem::take(&mut self.writing))
    }

    /// Reads at most `most` bytes; `None` when there are none.
    pub(super) fn receive(&mut self, most: u64) -> Option<u64> {
        let bytes = (self.connection.receiver().delivered() - self.taken).min(most);
        self.taken += bytes;
        self.connection.consume(self.taken);
        (bytes > 0).then_some(bytes)
    }

    pub(super) fn handle(&mut self, now: Instant, datagram: &SimDatagram) {
        let Some(arrived) = self.wire.read(datagram) else {
            return;
        };
        let came = self
            .connection
            .handle(now, &arrived.header, arrived.body, arrived.payload);
        if let BlastArrival::Place {
            check: Some(check), ..
        } = came
        {
            // No simulated network corrupts bytes, so every check succeeds.
            self.connection.checked(check.blast.number, true);
        }
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<NetworkPacket<SimDatagram>> {
        Some(match self.connection.poll(now, 1)? {
            BlastOutput::Run(run) => {
                let (place, bytes) = run.span(0);
                self.wire.data_at(&run.header(0, 0), place, bytes)
            }
            BlastOutput::Control(header, body) => self.wire.control(&header, body),
        })
    }

    pub(super) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        self.connection.deadline(now).map(|(at, _)| at)
    }
}
