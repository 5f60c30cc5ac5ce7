//! Events of a connection, derived from what it sends: packets sent first and again with the reason, missing packets,
//! complete blasts, timers. A driver keeps a tracer while events are recorded.

use super::connection::BlastOutput;
use super::packet_run::{BlastPacketRun, BlastSendReason};
use super::wire::{BlastHeader, BlastPacketKind, COMPLETE, LIMIT, UNSOLICITED};
use alloc::collections::BTreeMap;

/// The number of the peer's blasts whose positions are kept.
const REMEMBERED: usize = 256;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Packets leave for the first time.
    Send,
    /// Packets leave again.
    Retransmit,
    /// A timer has expired.
    Timer,
    /// The connection reports missing packets of the peer's stream.
    Nak,
    /// The connection reports a blast of the peer's stream as complete.
    Ack,
}

impl EventKind {
    /// Whether it concerns the connection's own stream, not the peer's.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Send | Self::Retransmit | Self::Timer)
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastEvent {
    /// Its kind.
    pub kind: EventKind,
    /// The stream position of the first byte concerned; `None` if it is not known.
    pub offset: Option<u64>,
    /// The number of bytes concerned; of missing packets, as if all of them were full.
    pub bytes: u64,
    /// The reason.
    pub cause: &'static str,
}

/// Derives the events from a connection's packets.
#[derive(Clone, Debug, Default)]
pub struct BlastTracer {
    /// By number: where the peer's last blasts begin in the stream, and their lengths in bytes.
    blasts: BTreeMap<u32, (u64, u32)>,
    /// The last round that a timer began: the number of the blast, and of the round.
    timed: Option<(u32, u16)>,
}

impl BlastTracer {
    /// Notes a packet that has arrived.
    #[inline]
    pub fn arrived(&mut self, header: &BlastHeader) {
        if header.kind == BlastPacketKind::Data {
            self.blasts
                .insert(header.blast, (header.start, header.length));
            if self.blasts.len() > REMEMBERED {
                self.blasts.pop_first();
            }
        }
    }

    /// Emits the events of an output; `packet` is the number of data bytes in a full packet.
    pub fn leaves(&mut self, output: &BlastOutput, packet: u32, emit: impl FnMut(BlastEvent)) {
        match output {
            BlastOutput::Run(run) => self.run(run, emit),
            BlastOutput::Control(header, _) => self.answer(header, packet, emit),
        }
    }

    /// Emits the events of packets of a blast that are sent.
    pub fn run(&mut self, run: &BlastPacketRun, mut emit: impl FnMut(BlastEvent)) {
        let ((start, _), (last, length)) = (run.span(0), run.span(run.count.saturating_sub(1)));
        let (offset, bytes, cause) = (
            Some(start),
            last + u64::from(length) - start,
            run.reason.word(),
        );
        let round = (run.blast.number, run.round);
        if matches!(
            run.reason,
            BlastSendReason::Timeout | BlastSendReason::Overtaken
        ) && self.timed != Some(round)
        {
            self.timed = Some(round);
            let bytes = u64::from(run.blast.length);
            emit(BlastEvent {
                kind: EventKind::Timer,
                offset: Some(run.blast.start),
                bytes,
                cause,
            });
        }
        let kind = if run.reason == BlastSendReason::New {
            EventKind::Send
        } else {
            EventKind::Retransmit
        };
        emit(BlastEvent {
            kind,
            offset,
            bytes,
            cause,
        });
    }

    /// Emits the event of an acknowledgement that is sent.
    fn answer(&self, header: &BlastHeader, packet: u32, mut emit: impl FnMut(BlastEvent)) {
        if header.kind != BlastPacketKind::Answer || header.has(LIMIT) {
            return;
        }
        let cause = if header.has(UNSOLICITED) {
            "silence"
        } else {
            "asked"
        };
        let known = self.blasts.get(&header.blast);
        let event = if header.has(COMPLETE) {
            BlastEvent {
                kind: EventKind::Ack,
                offset: known.map(|(start, _)| *start),
                bytes: known.map_or(0, |(_, length)| u64::from(*length)),
                cause,
            }
        } else {
            let before = u64::from(header.index) * u64::from(packet);
            let rest = known.map_or(u64::MAX, |(_, length)| {
                u64::from(*length).saturating_sub(before)
            });
            let bytes = (u64::from(header.check) * u64::from(packet)).min(rest);
            BlastEvent {
                kind: EventKind::Nak,
                offset: known.map(|(start, _)| start + before),
                bytes,
                cause,
            }
        };
        emit(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::BlastExtent;
    use alloc::vec::Vec;

    const BLAST: BlastExtent = BlastExtent {
        number: 3,
        start: 5000,
        length: 950,
        last: false,
    };

    fn events(
        tracer: &mut BlastTracer,
        output: &BlastOutput,
    ) -> Vec<(EventKind, Option<u64>, u64, &'static str)> {
        let mut all = Vec::new();
        tracer.leaves(output, 100, |event| {
            all.push((event.kind, event.offset, event.bytes, event.cause))
        });
        all
    }

    fn run(first: u32, count: u32, round: u16, reason: BlastSendReason) -> BlastOutput {
        BlastOutput::Run(BlastPacketRun {
            connection: 1,
            blast: BLAST,
            round,
            first,
            count,
            requests_ack: false,
            packet: 100,
            reason,
        })
    }

    #[test]
    fn a_timer_is_emitted_once_a_round() {
        let mut tracer = BlastTracer::default();
        assert_eq!(
            events(&mut tracer, &run(0, 10, 0, BlastSendReason::New)),
            [(EventKind::Send, Some(5000), 950, "new")]
        );
        let again = (EventKind::Retransmit, Some(5900), 50, "timeout");
        assert_eq!(
            events(&mut tracer, &run(9, 1, 1, BlastSendReason::Timeout)),
            [(EventKind::Timer, Some(5000), 950, "timeout"), again]
        );
        assert_eq!(
            events(&mut tracer, &run(9, 1, 1, BlastSendReason::Timeout)),
            [again]
        );
        assert_eq!(
            events(&mut tracer, &run(9, 1, 2, BlastSendReason::Timeout)).len(),
            2
        );
    }

    #[test]
    fn answers_are_emitted_with_their_bytes_if_the_blast_is_known() {
        let mut tracer = BlastTracer::default();
        let misses = BlastHeader {
            blast: 3,
            index: 8,
            check: 2,
            ..BlastHeader::new(BlastPacketKind::Answer, 1)
        };
        let answer = |header: BlastHeader| BlastOutput::Control(header, Vec::new());
        assert_eq!(
            events(&mut tracer, &answer(misses)),
            [(EventKind::Nak, None, 200, "asked")]
        );
        tracer.arrived(&BlastHeader {
            blast: 3,
            start: 5000,
            length: 950,
            ..BlastHeader::new(BlastPacketKind::Data, 1)
        });
        assert_eq!(
            events(&mut tracer, &answer(misses)),
            [(EventKind::Nak, Some(5800), 150, "asked")]
        );
        let all = BlastHeader {
            flags: COMPLETE | UNSOLICITED,
            ..misses
        };
        assert_eq!(
            events(&mut tracer, &answer(all)),
            [(EventKind::Ack, Some(5000), 950, "silence")]
        );
        assert_eq!(
            events(
                &mut tracer,
                &answer(BlastHeader {
                    flags: LIMIT,
                    ..misses
                })
            ),
            []
        );
    }
}
