//! A connection of blasts: the machines of this crate, both ends.

use crate::blast::{
    BlastConnection, BlastHeader, BlastOptions, BlastOutput, BlastPacing, BlastState,
    BlastStrategy, HEADER,
};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// Bytes of data in a packet.
pub(super) const DATA: u32 = 1440;
/// Bytes of the headers below blast's own: IPv4 and UDP.
const BELOW: usize = 28;

/// What travels: a header, the body of a control packet, bytes of data.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    header: BlastHeader,
    body: Vec<u8>,
    data: u32,
}

impl Packet {
    /// Bytes on the link.
    pub(super) fn bytes(&self) -> u64 {
        (BELOW + HEADER + self.body.len()) as u64 + u64::from(self.data)
    }
}

/// Both ends.
pub(super) struct Blasts {
    ends: [BlastConnection; 2],
    /// Bytes that the application hands over next.
    pub(super) left: u64,
}

impl Blasts {
    /// With as many blasts in flight and as much buffer as the stack has by default; `left` bytes are to be sent.
    pub(super) fn new(now: Instant, pacing: BlastPacing, left: u64) -> Self {
        let options = BlastOptions {
            pacing,
            buffer: 4 << 20,
            ..BlastOptions::usual(BlastStrategy::Selective, DATA)
        };
        let dialling = BlastConnection::connect(now, &options, [5; 16], [1; 16], 77);
        Self {
            ends: [
                dialling,
                BlastConnection::listen(&options, [5; 16], [2; 16]),
            ],
            left,
        }
    }

    /// Bytes that arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.ends[1].receiver().counters().packets * u64::from(DATA)
    }

    /// Packets that were sent again, and all.
    pub(super) fn sent(&self) -> (u64, u64) {
        let sent = self.ends[0].sender().counters();
        (sent.repeated, sent.packets)
    }

    /// The rate in bit/s, once it is paced.
    pub(super) fn rate(&self) -> Option<f64> {
        self.ends[0].sender().rate()
    }

    /// Packets that this end sends now, and its next deadline.
    pub(super) fn poll(&mut self, now: Instant, end: usize) -> (Vec<Packet>, Option<Instant>) {
        let connection = &mut self.ends[end];
        if end == 0 && connection.state() == BlastState::Open && self.left > 0 {
            connection.send(core::mem::take(&mut self.left));
        }
        let mut packets = Vec::new();
        while let Some(output) = connection.poll(now, 44) {
            match output {
                BlastOutput::Control(header, body) => packets.push(Packet {
                    header,
                    body,
                    data: 0,
                }),
                BlastOutput::Run(run) => packets.extend((0..run.count).map(|n| {
                    let (header, data) = (run.header(n, 0), run.span(n).1);
                    Packet {
                        header,
                        body: Vec::new(),
                        data,
                    }
                })),
            }
        }
        (packets, connection.deadline(now).map(|(at, _)| at))
    }

    /// A packet arrives at an end.
    pub(super) fn arrives(&mut self, now: Instant, end: usize, packet: &Packet) {
        let connection = &mut self.ends[end];
        connection.handle(
            now,
            &packet.header,
            &packet.body,
            packet.data as usize + packet.body.len(),
        );
        connection.consume(connection.receiver().delivered());
    }
}
