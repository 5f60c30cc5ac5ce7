//! What one look at all sources gave, as it was read: nothing of it is decoded, so that reading it costs next to nothing, and it can be
//! kept until there is time for it.

use crate::followed_threads::FollowedProcess;
use stackline_monitor::capture::Packet;
use stackline_monitor::observe::UndecodedTrace;
use stackline_monitor::observe::datagram_sockets::DatagramEnds;
use stackline_monitor::observe::sockets::SocketEvent;
use stackline_monitor::observe::threads::{ThreadEvent, UndecodedThreads};

/// What one look gave.
#[derive(Debug, Default)]
pub(crate) struct SourceReading {
    /// When, ns.
    pub(crate) now_ns: u64,
    /// No other comes after it.
    pub(crate) is_last: bool,
    /// Processes that are followed since the reading before.
    pub(crate) newcomers: Vec<FollowedProcess>,
    /// Sockets of UDP, by what passes them, and the kernel's numbers of the processes that have them.
    pub(crate) datagram_owners: Vec<(DatagramEnds, u32)>,
    pub(crate) packets: PacketReading,
    pub(crate) sockets: UndecodedTrace,
    pub(crate) threads: UndecodedThreads,
    /// Packets made of what programs send and receive that are stopped at their calls.
    pub(crate) made: PacketReading,
    /// What else these do.
    pub(crate) stopped: (Vec<SocketEvent>, Vec<ThreadEvent>),
    pub(crate) lost_packets: u64,
    pub(crate) lost_records: u64,
}

impl SourceReading {
    /// How much memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let packets = self.packets.memory() + self.made.memory();
        packets + self.sockets.bytes() + self.threads.bytes()
    }
}

/// Packets, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct PacketReading {
    pub(crate) bytes: Vec<u8>,
    pub(crate) heads: Vec<PacketHead>,
}

/// A packet of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketHead {
    pub(crate) at_ns: u64,
    pub(crate) host: usize,
    pub(crate) outgoing: bool,
    pub(crate) length: u32,
    /// Where its bytes begin and end.
    pub(crate) bytes: (usize, usize),
}

impl PacketReading {
    /// With room for so many bytes and packets.
    pub(crate) fn with_room_for(bytes: usize, packets: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            heads: Vec::with_capacity(packets),
        }
    }

    /// How much it holds: bytes and packets.
    pub(crate) const fn size(&self) -> (usize, usize) {
        (self.bytes.len(), self.heads.len())
    }

    /// How many bytes of memory it takes, about.
    const fn memory(&self) -> usize {
        self.bytes.len() + self.heads.len() * size_of::<PacketHead>()
    }

    /// Adds a packet at the door of that host.
    pub(crate) fn push(&mut self, host: usize, packet: &Packet<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(packet.bytes);
        self.heads.push(PacketHead {
            at_ns: packet.at_ns,
            host,
            outgoing: packet.outgoing,
            length: packet.length,
            bytes: (begin, self.bytes.len()),
        });
    }
}
