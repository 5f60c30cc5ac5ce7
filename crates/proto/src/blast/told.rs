//! What a connection tells of its own doing, read off what it sends: packets for the first time and again and why, what is
//! missing, that everything is there, timers. Whoever drives a connection keeps one while somebody listens.

use super::connection::Output;
use super::sender::{Run, Why};
use super::wire::{COMPLETE, HUSH, Header, Kind, LIMIT};
use alloc::collections::BTreeMap;

/// Blasts of the peer's stream whose places are remembered.
const REMEMBERED: usize = 256;

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Packets leave for the first time.
    Sends,
    /// Packets leave again.
    Repeats,
    /// A timer ran out.
    Timer,
    /// It says what of the peer's stream is missing.
    Misses,
    /// It says that it has everything of a blast of the peer's stream.
    Has,
}

impl Deed {
    /// Its keyword in events.
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Sends => "BLAST_SEND",
            Self::Repeats => "BLAST_RETRANSMIT",
            Self::Timer => "BLAST_TIMER",
            Self::Misses => "BLAST_NAK",
            Self::Has => "BLAST_ACK",
        }
    }

    /// Whether it is about the own stream.
    #[must_use]
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Sends | Self::Repeats | Self::Timer)
    }
}

/// Something that a connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// What.
    pub deed: Deed,
    /// The stream's bytes it is about: where they begin.
    pub offset: Option<u64>,
    /// How many; of what is missing, from the first to all of them.
    pub bytes: u64,
    /// Why, in a word.
    pub cause: &'static str,
}

/// Reads off.
#[derive(Clone, Debug, Default)]
pub struct Teller {
    /// Where blasts of the peer's stream begin, and their bytes.
    blasts: BTreeMap<u32, (u64, u32)>,
    /// The round that a timer began last.
    timed: Option<(u32, u16)>,
}

impl Teller {
    /// A packet has arrived.
    #[inline]
    pub fn arrived(&mut self, header: &Header) {
        if header.kind == Kind::Data {
            self.blasts.insert(header.blast, (header.start, header.length));
            if self.blasts.len() > REMEMBERED {
                self.blasts.pop_first();
            }
        }
    }

    /// Something leaves; `packet` is the size of a full packet's data.
    pub fn leaves(&mut self, output: &Output, packet: u32, tell: impl FnMut(Told)) {
        match output {
            Output::Run(run) => self.run(run, tell),
            Output::Control(header, _) => self.answer(header, packet, tell),
        }
    }

    /// Packets of a blast leave.
    pub fn run(&mut self, run: &Run, mut tell: impl FnMut(Told)) {
        let ((start, _), (last, length)) = (run.span(0), run.span(run.count.saturating_sub(1)));
        let (offset, bytes, cause) = (Some(start), last + u64::from(length) - start, run.why.word());
        let round = (run.blast.number, run.round);
        if matches!(run.why, Why::Timeout | Why::Overtaken) && self.timed != Some(round) {
            self.timed = Some(round);
            let bytes = u64::from(run.blast.length);
            tell(Told { deed: Deed::Timer, offset: Some(run.blast.start), bytes, cause });
        }
        let deed = if run.why == Why::New { Deed::Sends } else { Deed::Repeats };
        tell(Told { deed, offset, bytes, cause });
    }

    fn answer(&self, header: &Header, packet: u32, mut tell: impl FnMut(Told)) {
        if header.kind != Kind::Answer || header.has(LIMIT) {
            return;
        }
        let cause = if header.has(HUSH) { "silence" } else { "asked" };
        let known = self.blasts.get(&header.blast);
        let told = if header.has(COMPLETE) {
            Told {
                deed: Deed::Has,
                offset: known.map(|(start, _)| *start),
                bytes: known.map_or(0, |(_, length)| u64::from(*length)),
                cause,
            }
        } else {
            let before = u64::from(header.index) * u64::from(packet);
            let rest = known.map_or(u64::MAX, |(_, length)| u64::from(*length).saturating_sub(before));
            let bytes = (u64::from(header.check) * u64::from(packet)).min(rest);
            Told { deed: Deed::Misses, offset: known.map(|(start, _)| start + before), bytes, cause }
        };
        tell(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::Blast;
    use alloc::vec::Vec;

    const BLAST: Blast = Blast { number: 3, start: 5000, length: 950, last: false };

    fn told(teller: &mut Teller, output: &Output) -> Vec<(Deed, Option<u64>, u64, &'static str)> {
        let mut all = Vec::new();
        teller.leaves(output, 100, |told| all.push((told.deed, told.offset, told.bytes, told.cause)));
        all
    }

    fn run(first: u32, count: u32, round: u16, why: Why) -> Output {
        Output::Run(Run { connection: 1, blast: BLAST, round, first, count, asks: false, packet: 100, why })
    }

    #[test]
    fn a_timer_is_told_once_a_round() {
        let mut teller = Teller::default();
        assert_eq!(told(&mut teller, &run(0, 10, 0, Why::New)), [(Deed::Sends, Some(5000), 950, "new")]);
        let again = (Deed::Repeats, Some(5900), 50, "timeout");
        assert_eq!(told(&mut teller, &run(9, 1, 1, Why::Timeout)), [(Deed::Timer, Some(5000), 950, "timeout"), again]);
        assert_eq!(told(&mut teller, &run(9, 1, 1, Why::Timeout)), [again]);
        assert_eq!(told(&mut teller, &run(9, 1, 2, Why::Timeout)).len(), 2);
    }

    #[test]
    fn answers_are_told_with_their_bytes_where_the_blast_is_known() {
        let mut teller = Teller::default();
        let misses = Header { blast: 3, index: 8, check: 2, ..Header::new(Kind::Answer, 1) };
        let answer = |header: Header| Output::Control(header, Vec::new());
        assert_eq!(told(&mut teller, &answer(misses)), [(Deed::Misses, None, 200, "asked")]);
        teller.arrived(&Header { blast: 3, start: 5000, length: 950, ..Header::new(Kind::Data, 1) });
        assert_eq!(told(&mut teller, &answer(misses)), [(Deed::Misses, Some(5800), 150, "asked")]);
        let all = Header { flags: COMPLETE | HUSH, ..misses };
        assert_eq!(told(&mut teller, &answer(all)), [(Deed::Has, Some(5000), 950, "silence")]);
        assert_eq!(told(&mut teller, &answer(Header { flags: LIMIT, ..misses })), []);
    }
}
