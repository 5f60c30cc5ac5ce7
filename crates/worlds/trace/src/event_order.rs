//! What was read of all sources, decoded and in the order of time, some milliseconds late. It decides nothing.

use crate::source_reading::{PacketReading, SourceReading};
use stackline_monitor::observe::sockets::{SocketEvent, SocketEventDecoder};
use stackline_monitor::observe::threads::{ThreadEvent, ThreadEventDecoder};
use std::sync::Arc;

/// Packets come in blocks that the kernel keeps for this long, and events of cores one after the other: what is younger is not in
/// order yet.
const SETTLES_NS: u64 = 60_000_000;
/// What was read is put into order no more often than this: each time, what is not in order yet is moved.
const GATHERS_NS: u64 = 40_000_000;

/// What happened, and when.
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

/// The bytes of a packet, among those of others.
#[derive(Clone, Debug)]
pub(crate) struct PacketBytes {
    all: Arc<Vec<u8>>,
    own: (usize, usize),
}

impl PacketBytes {
    /// The packet's own, from its IP header on.
    pub(crate) fn own(&self) -> &[u8] {
        self.all.get(self.own.0..self.own.1).unwrap_or_default()
    }
}

/// Puts what was read into order.
pub(crate) struct EventOrder {
    sockets: Option<SocketEventDecoder>,
    threads: Option<ThreadEventDecoder>,
    /// These threads are left out.
    without: Vec<u32>,
    pending: Vec<(u64, TraceSourceEvent)>,
    /// It is put into order then.
    gives_at_ns: u64,
    pub(crate) packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) records: u64,
    pub(crate) lost_records: u64,
}

impl EventOrder {
    /// Of sources whose records are decoded so, without those threads.
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

    /// Gives what happened by a reading, in the order of time, but for the last moments; of the last reading those too. Readings soon behind
    /// one that gave are gathered, unless something was lost.
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
        // What comes from one source is in order nearly, which this makes use of; what was first stays first.
        self.pending.sort_by_key(|(at_ns, _)| *at_ns);
        let ready = self.pending.partition_point(|(at_ns, _)| *at_ns <= until);
        self.pending
            .drain(..ready)
            .for_each(|(at_ns, seen)| give(at_ns, seen));
    }

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
