//! A reading: what one pass over all sources read. Nothing is decoded yet, so that reading is cheap, and readings can wait for their
//! analysis.

use crate::followed_threads::FollowedProcess;
use stackline_monitor::capture::Packet;
use stackline_monitor::observe::UndecodedTrace;
use stackline_monitor::observe::datagram_sockets::DatagramEnds;
use stackline_monitor::observe::sockets::SocketEvent;
use stackline_monitor::observe::threads::{ThreadEvent, UndecodedThreads};
use stackline_monitor::observe::transfer_sampler::TransferSample;

/// What one pass over all sources read.
#[derive(Debug, Default)]
pub(crate) struct SourceReading {
    /// When it was read, ns.
    pub(crate) now_ns: u64,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
    /// Processes that are followed since the last reading.
    pub(crate) newcomers: Vec<FollowedProcess>,
    /// Ends of UDP datagrams, and the kernel's numbers of the processes that own the sockets.
    pub(crate) datagram_owners: Vec<(DatagramEnds, u32)>,
    /// What the kernel says of connections that carry much data, with the numbers of their hosts.
    pub(crate) transfers: Vec<(usize, TransferSample)>,
    /// Captured packets.
    pub(crate) packets: PacketReading,
    /// Trace events of sockets.
    pub(crate) sockets: UndecodedTrace,
    /// Trace events of threads.
    pub(crate) threads: UndecodedThreads,
    /// Packets that were made from the calls of stopped programs.
    pub(crate) made: PacketReading,
    /// Socket and thread events of stopped programs.
    pub(crate) stopped: (Vec<SocketEvent>, Vec<ThreadEvent>),
    /// Packets that were lost since the last reading.
    pub(crate) lost_packets: u64,
    /// Records that were lost since the last reading.
    pub(crate) lost_records: u64,
}

impl SourceReading {
    /// Its approximate size in memory, bytes.
    pub(crate) fn bytes(&self) -> usize {
        let packets = self.packets.memory() + self.made.memory();
        let transfers = self.transfers.capacity() * size_of::<(usize, TransferSample)>();
        packets + transfers + self.sockets.bytes() + self.threads.bytes()
    }
}

/// Packets in one buffer.
#[derive(Debug, Default)]
pub(crate) struct PacketReading {
    /// The bytes of all packets.
    pub(crate) bytes: Vec<u8>,
    /// What is known of each packet.
    pub(crate) heads: Vec<PacketHead>,
}

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketHead {
    /// When it passed, ns.
    pub(crate) at_ns: u64,
    /// The host at whose door it passed, by number.
    pub(crate) host: usize,
    /// Whether it left that host.
    pub(crate) outgoing: bool,
    /// Its length before the capture cut it, bytes.
    pub(crate) length: u32,
    /// Where its bytes begin and end.
    pub(crate) bytes: (usize, usize),
}

impl PacketReading {
    /// Creates an empty reading with room for that many bytes and packets.
    pub(crate) fn with_room_for(bytes: usize, packets: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            heads: Vec::with_capacity(packets),
        }
    }

    /// How many bytes and packets it holds.
    pub(crate) const fn size(&self) -> (usize, usize) {
        (self.bytes.len(), self.heads.len())
    }

    /// Its approximate size in memory, bytes.
    const fn memory(&self) -> usize {
        self.bytes.len() + self.heads.len() * size_of::<PacketHead>()
    }

    /// Adds a packet at the door of a host.
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
