//! Decodes what was read of all sources and returns the events in order of time, some milliseconds late. It interprets nothing.

use crate::source_reading::{PacketReading, SourceReading};
use stackline_monitor::observe::sockets::{SocketEvent, SocketEventDecoder};
use stackline_monitor::observe::threads::{ThreadEvent, ThreadEventDecoder};
use std::sync::Arc;

/// Events younger than this may be out of order still, ns: the kernel holds blocks of packets for up to this long, and the buffers
/// of cores are read one after the other.
const SETTLES_NS: u64 = 60_000_000;
/// Events are sorted no more often than this, ns, as each time the younger ones are moved.
const GATHERS_NS: u64 = 40_000_000;

/// An event of one of the sources.
#[derive(Clone, Debug)]
pub(crate) enum TraceSourceEvent {
    Packet {
        host: usize,
        outgoing: bool,
        length: u64,
        bytes: PacketBytes,
    },
    Socket(SocketEvent),
    Thread(ThreadEvent),
}

/// The bytes of a packet, as a range of a shared buffer of packets.
#[derive(Clone, Debug)]
pub(crate) struct PacketBytes {
    all: Arc<Vec<u8>>,
    own: (usize, usize),
}

impl PacketBytes {
    /// The bytes of this packet, from its IP header on.
    pub(crate) fn own(&self) -> &[u8] {
        self.all.get(self.own.0..self.own.1).unwrap_or_default()
    }
}

/// Decodes readings and sorts their events.
pub(crate) struct EventOrder {
    sockets: Option<SocketEventDecoder>,
    threads: Option<ThreadEventDecoder>,
    /// Threads whose events are left out, as they are the observer's.
    without: Vec<u32>,
    /// Events that were not returned yet, each with its time in ns.
    pending: Vec<(u64, TraceSourceEvent)>,
    /// When events are sorted next, ns.
    gives_at_ns: u64,
    /// Packets that were seen so far.
    pub(crate) packets: u64,
    pub(crate) lost_packets: u64,
    /// Records of sockets and threads that were seen so far.
    pub(crate) records: u64,
    pub(crate) lost_records: u64,
}

impl EventOrder {
    /// Creates it with the decoders of sockets and threads, if these are observed; events of the threads `without` are left out.
    pub(crate) const fn new(
        sockets: Option<SocketEventDecoder>,
        threads: Option<ThreadEventDecoder>,
        without: Vec<u32>,
    ) -> Self {
        Self {
            sockets,
            threads,
            without,
            pending: Vec::new(),
            gives_at_ns: 0,
            packets: 0,
            lost_packets: 0,
            records: 0,
            lost_records: 0,
        }
    }

    /// Adds a reading and gives the events so far in order of time, except the latest [`SETTLES_NS`]; after the last reading all of
    /// them. Readings right after one that gave events are only added, unless something was lost.
    pub(crate) fn take(
        &mut self,
        reading: SourceReading,
        mut give: impl FnMut(u64, TraceSourceEvent),
    ) {
        let now_ns = reading.now_ns;
        let is_lossy = reading.lost_packets + reading.lost_records > 0;
        let until = match reading.is_last {
            true => u64::MAX,
            false => now_ns.saturating_sub(SETTLES_NS),
        };
        let waits = !reading.is_last && !is_lossy && now_ns < self.gives_at_ns;
        self.add(reading);
        if waits {
            return;
        }
        self.gives_at_ns = now_ns.saturating_add(GATHERS_NS);
        // The events of one source are almost sorted, which this sort makes use of; it is stable.
        self.pending.sort_by_key(|(at_ns, _)| *at_ns);
        let ready = self.pending.partition_point(|(at_ns, _)| *at_ns <= until);
        self.pending
            .drain(..ready)
            .for_each(|(at_ns, seen)| give(at_ns, seen));
    }

    /// Decodes a reading and appends its events.
    fn add(&mut self, reading: SourceReading) {
        let (mut sockets, mut threads) = (Vec::new(), Vec::new());
        if let Some(decoder) = &mut self.sockets {
            decoder.decode(&reading.sockets, &mut sockets);
        }
        if let Some(decoder) = &mut self.threads {
            decoder.decode(&reading.threads, &mut threads);
        }
        sockets.extend(reading.stopped.0);
        threads.extend(reading.stopped.1);
        sockets.retain(|event| !self.without.contains(&event.thread));
        threads.retain(|event| !self.without.contains(&event.thread));
        self.packets += reading.packets.heads.len() as u64;
        self.records += (sockets.len() + threads.len()) as u64;
        self.lost_packets += reading.lost_packets;
        self.lost_records += reading.lost_records;
        self.add_packets(reading.packets);
        self.add_packets(reading.made);
        let sockets = sockets.into_iter();
        self.pending
            .extend(sockets.map(|event| (event.at_ns, TraceSourceEvent::Socket(event))));
        let threads = threads.into_iter();
        self.pending
            .extend(threads.map(|event| (event.at_ns, TraceSourceEvent::Thread(event))));
    }

    fn add_packets(&mut self, packets: PacketReading) {
        let all = Arc::new(packets.bytes);
        let packets = packets.heads.into_iter().map(|head| {
            let packet = TraceSourceEvent::Packet {
                host: head.host,
                outgoing: head.outgoing,
                length: head.length.into(),
                bytes: PacketBytes {
                    all: Arc::clone(&all),
                    own: head.bytes,
                },
            };
            (head.at_ns, packet)
        });
        self.pending.extend(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_monitor::capture::Packet;

    fn reading(now_ns: u64, is_last: bool, packets: &[(u64, u8)]) -> SourceReading {
        let mut reading = SourceReading {
            now_ns,
            is_last,
            ..SourceReading::default()
        };
        for (at_ns, byte) in packets {
            let packet = Packet {
                at_ns: *at_ns,
                interface: 1,
                outgoing: false,
                length: 1,
                bytes: &[*byte],
            };
            reading.packets.push(0, &packet);
        }
        reading
    }

    #[test]
    fn what_settled_is_given_in_the_order_of_time() {
        let mut order = EventOrder::new(None, None, Vec::new());
        let mut given = Vec::new();
        let mut take = |reading| {
            order.take(reading, |at_ns, seen| {
                if let TraceSourceEvent::Packet { bytes, .. } = seen {
                    given.push((at_ns, bytes.own().to_vec()));
                }
            });
        };
        let at = |past: u64| SETTLES_NS + past;
        take(reading(at(5), false, &[(4, b'a'), (7, b'd')]));
        take(reading(at(6), false, &[(6, b'c'), (5, b'b'), (7, b'e')]));
        take(reading(at(6), true, &[]));
        let letters: Vec<u8> = given.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        assert_eq!(letters, b"abcde");
        assert!(given.is_sorted_by_key(|(at_ns, _)| *at_ns));
        assert_eq!(order.packets, 5);
    }
}
