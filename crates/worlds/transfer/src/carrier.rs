//! The interface of carriers: what sends and receives the packets of a protocol (over UDP, over Ethernet), straight from and into the
//! caller's memory.
//!
//! A packet is a *head* (the 32-byte header of `proto::blast`; longer where a connection is sealed, that is, encrypted) and a payload. A
//! *run* is a number of packets that are sent together. A carrier
//! reads neither the head's fields nor its connection: that is the task of the protocol's state machine. It never blocks without a bound,
//! never cuts a packet silently, and never keeps the caller's memory beyond a call.

use stackline_events::{recorder, scope};
pub use stackline_os::receive_buffers::{LONGEST_HEAD, PacketHeadBuffer, PayloadPlace};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How often an interrupt is checked: the longest that a system call waits, for packets or for room.
pub(crate) const INTERRUPT_INTERVAL: Duration = Duration::from_nanos(INTERRUPT_INTERVAL_NS);
/// The same in ns.
pub(crate) const INTERRUPT_INTERVAL_NS: u64 = 20_000_000;

/// Packets to send: `heads.len()` of them, whose payloads lie behind each other in memory.
#[derive(Clone, Copy, Debug)]
pub struct PacketRun<'a> {
    /// Bytes of each head that go out, at most [`LONGEST_HEAD`].
    pub head: usize,
    /// The heads, one for each packet.
    pub heads: &'a [PacketHeadBuffer],
    /// All payloads, one behind the other: each has `each` bytes, the last one what is left (it may be shorter, or empty).
    pub payload: &'a [u8],
    /// Bytes of every payload but the last.
    pub each: usize,
}

impl<'a> PacketRun<'a> {
    /// The payload of packet `index`; empty beyond the end.
    #[must_use]
    pub fn payload_of(&self, index: usize) -> &'a [u8] {
        let from = (index * self.each).min(self.payload.len());
        let to = if index + 1 == self.heads.len() {
            self.payload.len()
        } else {
            from + self.each
        };
        &self.payload[from..to.min(self.payload.len())]
    }

    /// Bytes of the run's first `packets` packets, heads and payloads.
    fn bytes(&self, packets: usize) -> usize {
        let whole = packets == self.heads.len();
        packets * self.head
            + if whole {
                self.payload.len()
            } else {
                (packets * self.each).min(self.payload.len())
            }
    }

    /// The same run without its first `packets`, which have been sent.
    #[must_use]
    pub fn after(&self, packets: usize) -> Self {
        let packets = packets.min(self.heads.len());
        let from = (packets * self.each).min(self.payload.len());
        Self {
            heads: &self.heads[packets..],
            payload: &self.payload[from..],
            ..*self
        }
    }
}

/// How long to wait for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierWait {
    /// Not at all.
    No,
    /// Asleep in the kernel, at most so long.
    Block(Duration),
    /// Looking again and again, at most so long: it uses a core fully, and saves the time that waking up takes.
    Spin(Duration),
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct CarrierPacket<'a> {
    /// As many bytes as requested for a head; fewer when the whole packet is shorter.
    pub head: &'a [u8],
    /// The bytes behind the head.
    pub payload: CarrierPayload<'a>,
}

/// Where the payload of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierPayload<'a> {
    /// In place i for packet i; the number of its bytes, from the beginning of the place. The protocol's state machine decides whether it
    /// belongs there.
    Placed(usize),
    /// In the carrier's memory until the next [`PacketCarrier::receive`].
    Here(&'a [u8]),
}

impl CarrierPayload<'_> {
    /// The number of its bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Placed(length) => *length,
            Self::Here(bytes) => bytes.len(),
        }
    }
}

/// What a carrier can do on the path it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierFacts {
    /// The kind of carrier: `udp`, `ethernet`, ...
    pub name: &'static str,
    /// Most bytes of a packet, head and payload together, that go without fragmentation.
    pub packet: usize,
    /// Most packets that are best sent as one run: the kernel takes them as one and cuts them itself or in the device, or
    /// takes so many in one call; 1 where neither is so.
    pub joined_out: usize,
    /// Whether packets can come joined, many to one call.
    pub joined_in: bool,
    /// Bytes of receive buffer granted by the kernel (its own accounting, overhead included).
    pub receive_buffer: usize,
}

/// What a carrier counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarrierCounters {
    /// Packets handed to the kernel.
    pub sent: u64,
    /// Packets that came.
    pub received: u64,
    /// System calls that sent.
    pub send_calls: u64,
    /// System calls that received something.
    pub receive_calls: u64,
    /// Received packets that were longer than the memory for them: cut off by the kernel, and dropped.
    pub cut: u64,
    /// Received packets that the kernel dropped for lack of room, as far as it reports them.
    pub lost: u64,
    /// Times a joined run was refused and sent again in single packets.
    pub fallbacks: u64,
}

/// Sends and receives packets between this end and one other.
pub trait PacketCarrier: Send {
    /// What the carrier can do; `packet` and `joined_out` may shrink during its life.
    fn facts(&self) -> CarrierFacts;

    /// What the carrier has counted so far.
    fn counters(&self) -> CarrierCounters;

    /// Sends packets in order and returns how many went: fewer than all, even 0, when there was no room for more in the
    /// time it is willing to wait (tens of milliseconds); the caller decides whether to go on.
    ///
    /// # Errors
    /// `ConnectionRefused`: the peer's process is gone. `Interrupted`: a signal came first. Others: the path is broken.
    fn send(&mut self, run: PacketRun<'_>) -> io::Result<usize>;

    /// Takes available packets, or waits for them, and returns how many came (0: none in that time). The payload of
    /// packet i goes to place i of `into` where that is possible without a copy; where a packet is longer than its
    /// place, or there are more packets than places, payloads are kept by the carrier (see [`CarrierPayload`]). With no
    /// places, all are. The contents of the places are undefined afterwards, except for payloads reported as placed.
    ///
    /// # Errors
    /// `ConnectionRefused`: the peer's process is gone. `Interrupted`: a signal came first. Others: the path is broken.
    ///
    /// # Panics
    /// When a place reaches beyond `into`, or `head` is beyond [`LONGEST_HEAD`].
    fn receive(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        wait: CarrierWait,
    ) -> io::Result<usize>;

    /// A hint: whether many packets are about to come, as in a large transfer, or single ones, for which a carrier may have a cheaper way
    /// to receive.
    ///
    /// # Errors
    /// The path is broken.
    fn expect_many(&mut self, many: bool) -> io::Result<()> {
        let _ = many;
        Ok(())
    }

    /// Packet `index` of those that the last [`PacketCarrier::receive`] returned.
    ///
    /// # Panics
    /// When there were not so many.
    fn packet(&self, index: usize) -> CarrierPacket<'_>;

    /// The two ends' addresses, own first, where they have some.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
}

/// [`PacketCarrier::send`], with an event while a recorder is on.
#[inline]
pub(crate) fn send<C: PacketCarrier>(carrier: &mut C, run: PacketRun<'_>) -> io::Result<usize> {
    if !recorder::is_recording() {
        return carrier.send(run);
    }
    let mut packets = 0;
    scope::sending(run.bytes(run.heads.len()), || {
        packets = carrier.send(run)?;
        Ok::<_, io::Error>(run.bytes(packets))
    })?;
    Ok(packets)
}

/// [`PacketCarrier::receive`], with an event while a recorder is on; a wait without packets is merged with the next.
#[inline]
pub(crate) fn receive<C: PacketCarrier>(
    carrier: &mut C,
    head: usize,
    into: &mut [u8],
    places: &[PayloadPlace],
    wait: CarrierWait,
) -> io::Result<usize> {
    if !recorder::is_recording() {
        return carrier.receive(head, into, places, wait);
    }
    let mut packets = 0;
    let event = scope::receiving(into.len(), || {
        packets = carrier.receive(head, into, places, wait).map_err(Some)?;
        let length = |packet: CarrierPacket<'_>| packet.head.len() + packet.payload.length();
        if packets == 0 {
            Err(None)
        } else {
            Ok((0..packets)
                .map(|index| length(carrier.packet(index)))
                .sum())
        }
    });
    match event {
        Err(Some(error)) => Err(error),
        _ => Ok(packets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_where_its_packets_end() {
        let bytes = [1, 2, 3, 4, 5, 6, 7];
        let heads = [PacketHeadBuffer::EMPTY; 3];
        let run = PacketRun {
            head: 32,
            heads: &heads,
            payload: &bytes,
            each: 3,
        };
        assert_eq!(
            [0, 1, 2].map(|i| run.payload_of(i)),
            [&bytes[..3], &bytes[3..6], &bytes[6..]]
        );
        assert_eq!(run.after(1).payload_of(0), &bytes[3..6]);
        assert_eq!(run.after(1).payload_of(1), &bytes[6..]);
        assert!(run.after(3).heads.is_empty() && run.after(3).payload.is_empty());
    }

    #[test]
    fn a_run_of_one_without_data_has_an_empty_payload() {
        let run = PacketRun {
            head: 32,
            heads: &[PacketHeadBuffer::EMPTY],
            payload: &[],
            each: 1440,
        };
        assert!(run.payload_of(0).is_empty());
        assert!(run.payload_of(1).is_empty());
    }
}
