//! The answers to blasts: when they are sent, and how they are written.

use super::BlastReceiver;
use crate::blast::options::BlastStrategy;
use crate::blast::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, COMPLETE, UNSOLICITED};
use alloc::vec::Vec;

/// The most answers that may wait; requests of a faster peer are left unanswered.
pub(super) const ANSWERS: usize = 1 << 12;

/// An answer that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlastPendingAnswer {
    pub(super) number: u32,
    pub(super) round: u16,
    pub(super) kind: AnswerKind,
}

/// The content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Complete,
    Missing,
    /// Missing packets, reported without a request.
    Unsolicited,
}

impl BlastReceiver {
    /// Queues the answer that the packet calls for.
    pub(super) fn answer(&mut self, header: &BlastHeader, place: usize, whole: bool) {
        let Some(reassembly) = self.reassemblies[place].as_mut() else {
            return;
        };
        if reassembly.unchecked {
            return;
        }
        if whole {
            let round = reassembly.ack_requested.unwrap_or(header.round);
            self.push(BlastPendingAnswer {
                number: header.blast,
                round,
                kind: AnswerKind::Complete,
            });
        } else if reassembly.complete {
            self.queue_answer(header, AnswerKind::Complete);
        } else if header.has(ACK_REQUEST) && self.options.strategy != BlastStrategy::Full {
            // A requesting packet that was overtaken is reported as missing; what was discarded has to come again in
            // any case.
            self.push(BlastPendingAnswer {
                number: header.blast,
                round: header.round,
                kind: AnswerKind::Missing,
            });
        }
    }

    pub(super) fn queue_answer(&mut self, header: &BlastHeader, kind: AnswerKind) {
        if header.has(ACK_REQUEST) {
            self.push(BlastPendingAnswer {
                number: header.blast,
                round: header.round,
                kind,
            });
        }
    }

    pub(super) fn push(&mut self, owed: BlastPendingAnswer) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back(owed);
        }
    }

    pub(super) const fn header(&self) -> BlastHeader {
        BlastHeader {
            start: self.limit(),
            ..BlastHeader::new(BlastPacketKind::Answer, self.connection)
        }
    }

    pub(super) fn encode_answer(
        &mut self,
        owed: BlastPendingAnswer,
    ) -> Option<(BlastHeader, Vec<u8>)> {
        let header = BlastHeader {
            round: owed.round,
            blast: owed.number,
            ..self.header()
        };
        if owed.kind == AnswerKind::Complete {
            return Some((
                BlastHeader {
                    flags: COMPLETE,
                    ..header
                },
                Vec::new(),
            ));
        }
        let place = owed.number.wrapping_sub(self.base) as usize;
        let strategy = self.options.strategy;
        let reassembly = self
            .reassemblies
            .get_mut(place)?
            .as_mut()
            .filter(|reassembly| !reassembly.complete)?;
        let (first, body) = reassembly.bitmap.missing()?;
        let missing = reassembly.bitmap.bound() - reassembly.bitmap.count();
        let body = match strategy {
            BlastStrategy::Selective => body,
            // Everything from the first missing packet on has to be sent again.
            BlastStrategy::Partial => {
                reassembly.bitmap.cut(first);
                Vec::new()
            }
            // All of it has to come again, and is discarded as soon as it does: packets still in flight may complete
            // it.
            BlastStrategy::Full | BlastStrategy::FullNak => Vec::new(),
        };
        self.counters.refusals += 1;
        let flags = if owed.kind == AnswerKind::Unsolicited {
            UNSOLICITED
        } else {
            0
        };
        Some((
            BlastHeader {
                flags,
                index: first as u16,
                check: missing,
                ..header
            },
            body,
        ))
    }
}
