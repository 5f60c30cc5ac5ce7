//! Events of a connection, derived from what it sends: packets sent first and again with the reason, missing packets,
//! complete blasts, timers. A driver keeps a tracer while events are recorded.

use super::connection::Output;
use super::run::{Reason, Run};
use super::wire::{COMPLETE, Header, Kind, LIMIT, UNSOLICITED};
use alloc::collections::BTreeMap;

/// Blasts of the peer's stream whose positions are kept.
const REMEMBERED: usize = 256;

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Packets leave for the first time.
    Send,
    /// Packets leave again.
    Retransmit,
    /// A timer ran out.
    Timer,
    /// It reports missing packets of the peer's stream.
    Nak,
    /// It reports a blast of the peer's stream as complete.
    Ack,
}

impl EventKind {
    /// Its keyword in events.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Send => "BLAST_SEND",
            Self::Retransmit => "BLAST_RETRANSMIT",
            Self::Timer => "BLAST_TIMER",
            Self::Nak => "BLAST_NAK",
            Self::Ack => "BLAST_ACK",
        }
    }

    /// Whether it is about the own stream.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Send | Self::Retransmit | Self::Timer)
    }
}

/// Something that a connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// The stream's bytes it is about: where they begin.
    pub offset: Option<u64>,
    /// How many; of what is missing, from the first to all of them.
    pub bytes: u64,
    /// The reason.
    pub cause: &'static str,
}

/// Reads off.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// Where blasts of the peer's stream begin, and their bytes.
    blasts: BTreeMap<u32, (u64, u32)>,
    /// The round that a timer began last.
    timed: Option<(u32, u16)>,
}

impl Tracer {
    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, header: &Header) {
        if header.kind == Kind::Data {
            self.blasts
                .insert(header.blast, (header.start, header.length));
            if self.blasts.len() > REMEMBERED {
                self.blasts.pop_first();
            }
        }
    }

    /// Something leaves; `packet` is the size of a full packet's data.
    pub fn leaves(&mut self, output: &Output, packet: u32, emit: impl FnMut(Event)) {
        match output {
            Output::Run(run) => self.run(run, emit),
            Output::Control(header, _) => self.answer(header, packet, emit),
        }
    }

    /// Packets of a blast leave.
    pub fn run(&mut self, run: &Run, mut emit: impl FnMut(Event)) {
        let ((start, _), (last, length)) = (run.span(0), run.span(run.count.saturating_sub(1)));
        let (offset, bytes, cause) = (
            Some(start),
            last + u64::from(length) - start,
            run.reason.word(),
        );
        let round = (run.blast.number, run.round);
        if matches!(run.reason, Reason::Timeout | Reason::Overtaken) && self.timed != Some(round) {
            self.timed = Some(round);
            let bytes = u64::from(run.blast.length);
            emit(Event {
                kind: EventKind::Timer,
                offset: Some(run.blast.start),
                bytes,
                cause,
            });
        }
        let kind = if run.reason == Reason::New {
            EventKind::Send
        } else {
            EventKind::Retransmit
        };
        emit(Event {
            kind,
            offset,
            bytes,
            cause,
        });
    }

    fn answer(&self, header: &Header, packet: u32, mut emit: impl FnMut(Event)) {
        if header.kind != Kind::Answer || header.has(LIMIT) {
            return;
        }
        let cause = if header.has(UNSOLICITED) {
            "silence"
        } else {
            "asked"
        };
        let known = self.blasts.get(&header.blast);
        let event = if header.has(COMPLETE) {
            Event {
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
            Event {
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
    use crate::blast::Blast;
    use alloc::vec::Vec;

    const BLAST: Blast = Blast {
        number: 3,
        start: 5000,
        length: 950,
        last: false,
    };

    fn events(
        tracer: &mut Tracer,
        output: &Output,
    ) -> Vec<(EventKind, Option<u64>, u64, &'static str)> {
        let mut all = Vec::new();
        tracer.leaves(output, 100, |event| {
            all.push((event.kind, event.offset, event.bytes, event.cause))
        });
        all
    }

    fn run(first: u32, count: u32, round: u16, reason: Reason) -> Output {
        Output::Run(Run {
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
        let mut tracer = Tracer::default();
        assert_eq!(
            events(&mut tracer, &run(0, 10, 0, Reason::New)),
            [(EventKind::Send, Some(5000), 950, "new")]
        );
        let again = (EventKind::Retransmit, Some(5900), 50, "timeout");
        assert_eq!(
            events(&mut tracer, &run(9, 1, 1, Reason::Timeout)),
            [(EventKind::Timer, Some(5000), 950, "timeout"), again]
        );
        assert_eq!(events(&mut tracer, &run(9, 1, 1, Reason::Timeout)), [again]);
        assert_eq!(events(&mut tracer, &run(9, 1, 2, Reason::Timeout)).len(), 2);
    }

    #[test]
    fn answers_are_emitted_with_their_bytes_if_the_blast_is_known() {
        let mut tracer = Tracer::default();
        let misses = Header {
            blast: 3,
            index: 8,
            check: 2,
            ..Header::new(Kind::Answer, 1)
        };
        let answer = |header: Header| Output::Control(header, Vec::new());
        assert_eq!(
            events(&mut tracer, &answer(misses)),
            [(EventKind::Nak, None, 200, "asked")]
        );
        tracer.arrived(&Header {
            blast: 3,
            start: 5000,
            length: 950,
            ..Header::new(Kind::Data, 1)
        });
        assert_eq!(
            events(&mut tracer, &answer(misses)),
            [(EventKind::Nak, Some(5800), 150, "asked")]
        );
        let all = Header {
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
                &answer(Header {
                    flags: LIMIT,
                    ..misses
                })
            ),
            []
        );
    }
}
