//! What the clients and servers of message passing share: a clock, and sending packets through a carrier. What is sent and when is
//! decided by the protocol's state machines.

use super::error::IkpTransferError;
use crate::carrier::{self, INTERRUPT_INTERVAL_NS, PacketCarrier, PacketHeadBuffer, PacketRun};
use crate::options::Interrupt;
use crate::packet_train::{self, PACKETS};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::{BlastHeader, HEADER};
use stackline_proto::ikp;
use std::io::{self, ErrorKind};
use std::time;

/// How often an interrupt is checked, which is also the longest wait.
pub(super) const INTERRUPT_INTERVAL: Duration = Duration(INTERRUPT_INTERVAL_NS);

/// A clock that starts when it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct IkpClock(time::Instant);

impl IkpClock {
    /// A clock that starts at this moment.
    pub(super) fn start() -> Self {
        Self(time::Instant::now())
    }

    /// The time since the clock was made, in ns, plus 1.
    pub(super) fn now(&self) -> Instant {
        Instant(1 + u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX / 2))
    }
}

/// Sends packets: memory for their heads, and the interrupt to check while they cannot be sent.
pub(super) struct Out {
    heads: Vec<PacketHeadBuffer>,
    pub(super) interrupt: Option<Interrupt>,
}

impl Out {
    pub(super) fn new(interrupt: Option<Interrupt>) -> Self {
        Self {
            heads: vec![PacketHeadBuffer::EMPTY; PACKETS],
            interrupt,
        }
    }

    /// An error if the operation is to be interrupted.
    pub(super) fn check_interrupt(&self) -> Result<(), IkpTransferError> {
        let asked = self.interrupt.as_ref().is_some_and(Interrupt::is_asked);
        if asked {
            Err(IkpTransferError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Sends one packet.
    pub(super) fn packet(
        &mut self,
        carrier: &mut impl PacketCarrier,
        header: &BlastHeader,
        payload: &[u8],
    ) -> Result<(), IkpTransferError> {
        self.heads[0].0[..HEADER].copy_from_slice(&header.write());
        let run = PacketRun {
            head: HEADER,
            heads: &self.heads[..1],
            payload,
            each: payload.len(),
        };
        self.put(carrier, run)
    }

    /// Sends the packets of a run (consecutive packets of a move). `data` is what they carry together.
    pub(super) fn run(
        &mut self,
        carrier: &mut impl PacketCarrier,
        run: &ikp::IkpPacketRun,
        data: &[u8],
    ) -> Result<(), IkpTransferError> {
        let packets = run.count() as usize;
        for (n, head) in self.heads[..packets].iter_mut().enumerate() {
            head.0[..HEADER].copy_from_slice(&run.header(n as u32).write());
        }
        let each = run.span(0).1 as usize;
        self.put(
            carrier,
            PacketRun {
                head: HEADER,
                heads: &self.heads[..packets],
                payload: data,
                each,
            },
        )
    }

    /// Gives packets to the carrier, in at most 8 attempts. Packets that it does not take are lost to the protocol, which sends them
    /// again later. The carrier itself waits while a queue is full.
    fn put(
        &self,
        carrier: &mut impl PacketCarrier,
        run: PacketRun<'_>,
    ) -> Result<(), IkpTransferError> {
        let mut gone = 0;
        for _ in 0..8 {
            match carrier::send(carrier, run.after(gone)) {
                Ok(packets) => gone += packets,
                Err(error) if error.kind() == ErrorKind::Interrupted => self.check_interrupt()?,
                Err(error) => return Err(IkpTransferError::new("sending", error)),
            }
            if gone == run.heads.len() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// How many packets with `packet` bytes of data the carrier sends as one.
pub(super) fn packets_per_call(carrier: &impl PacketCarrier, packet: u32) -> u32 {
    let joined = carrier.facts().joined_out;
    packet_train::joined_packets(packet as usize + HEADER, joined.min(PACKETS)) as u32
}

/// The part of a segment that a run carries: offset of its first byte, and of the byte behind its last.
pub(super) fn run_range(run: &ikp::IkpPacketRun) -> (usize, usize) {
    let (from, _) = run.span(0);
    let (last, bytes) = run.span(run.count() - 1);
    (from as usize, last as usize + bytes as usize)
}

/// Whether a signal came while the carrier waited for packets.
pub(super) fn is_interruption(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Interrupted
}
