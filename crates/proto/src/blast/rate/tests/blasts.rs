//! A sender of blasts that repeats what an answer says is missing, and its receiver.

use crate::blast::rate::{Answered, Rate};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Bytes of a packet on the wire, and of its data.
pub(super) const PACKET: u64 = 1500;
const DATA: u64 = 1440;
/// Most bytes of a blast, and how many may be in flight.
const LARGEST: u64 = 512 << 10;
const FLIGHT: u32 = 16;

/// A packet of a blast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    blast: u32,
    index: u32,
    /// The round whose answer it asks for.
    ask: Option<u32>,
}

/// What the receiver says of a blast.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    blast: u32,
    round: u32,
    missing: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Blast {
    packets: u32,
    /// What has to leave in this round.
    waiting: Vec<u32>,
    round: u32,
    of_round: u32,
    /// When the answer was asked for.
    asked: Option<Instant>,
    missing: u32,
}

/// Both ends.
#[derive(Clone, Debug)]
pub(super) struct Blasts {
    pub(super) rate: Rate,
    blasts: BTreeMap<u32, Blast>,
    arrived: BTreeMap<u32, Vec<bool>>,
    next: u32,
    /// How many blasts the application still has.
    pub(super) left: u64,
    /// Round trips and their deviation in ns.
    trip: u64,
    deviation: u64,
    doubled: u32,
    /// Packets sent and packets that completed blasts had.
    pub(super) sent: u64,
    pub(super) useful: u64,
}

impl Blasts {
    pub(super) fn new(ceiling: Option<f64>) -> Self {
        Self {
            rate: Rate::new(PACKET as u32, ceiling),
            blasts: BTreeMap::new(),
            arrived: BTreeMap::new(),
            next: 0,
            left: u64::MAX,
            trip: 200_000_000,
            deviation: 50_000_000,
            doubled: 0,
            sent: 0,
            useful: 0,
        }
    }

    /// Packets that leave now, or when to ask again.
    pub(super) fn poll(&mut self, now: Instant) -> (Vec<Piece>, Option<Instant>) {
        let mut pieces = Vec::new();
        self.repeat(now);
        while self.has_something() {
            match self.rate.may_send(now) {
                Ok(bytes) => {
                    for _ in 0..(bytes / PACKET) {
                        let Some(piece) = self.piece(now) else { break };
                        self.rate.sent(now, PACKET);
                        pieces.push(piece);
                    }
                }
                Err(at) => return (pieces, Some(at)),
            }
        }
        let patience = self.patience();
        let silent = self.blasts.values().filter_map(|blast| blast.asked).min().map(|asked| asked + patience);
        (pieces, silent)
    }

    fn patience(&self) -> Duration {
        Duration((self.trip + (self.deviation * 4).max(self.trip / 2).max(10_000_000)) << self.doubled.min(6))
    }

    fn repeat(&mut self, now: Instant) {
        let patience = self.patience();
        let mut silent = false;
        for blast in self.blasts.values_mut() {
            if blast.asked.is_some_and(|asked| asked + patience <= now) {
                self.rate.silent(now);
                silent = true;
                blast.asked = None;
                blast.waiting.push(blast.packets - 1);
                (blast.round, blast.of_round) = (blast.round + 1, blast.of_round + 1);
            }
        }
        self.doubled += u32::from(silent);
    }

    fn has_something(&mut self) -> bool {
        if self.blasts.values().any(|blast| !blast.waiting.is_empty()) {
            return true;
        }
        let length = self.rate.blast(FLIGHT).clamp(PACKET, LARGEST);
        if self.blasts.len() >= FLIGHT as usize || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let packets = length.div_ceil(PACKET) as u32;
        let waiting = (0..packets).rev().collect();
        let blast = Blast { packets, waiting, round: 0, of_round: packets, asked: None, missing: packets };
        self.blasts.insert(self.next, blast);
        self.arrived.insert(self.next, alloc::vec![false; packets as usize]);
        self.next += 1;
        true
    }

    fn piece(&mut self, now: Instant) -> Option<Piece> {
        let (&number, blast) = self.blasts.iter_mut().find(|(_, blast)| !blast.waiting.is_empty())?;
        let index = blast.waiting.pop()?;
        self.sent += 1;
        let last = blast.waiting.is_empty();
        if last {
            blast.asked = Some(now);
        }
        Some(Piece { blast: number, index, ask: last.then_some(blast.round) })
    }

    fn measure(&mut self, trip: u64) {
        self.deviation = (self.deviation * 3 + trip.abs_diff(self.trip)) / 4;
        self.trip = (self.trip * 7 + trip) / 8;
        self.doubled = 0;
    }

    /// At the receiver.
    pub(super) fn arrives(&mut self, piece: Piece) -> Option<Answer> {
        let mut missing = Vec::new();
        if let Some(arrived) = self.arrived.get_mut(&piece.blast) {
            arrived[piece.index as usize] = true;
            piece.ask?;
            missing = (0..arrived.len() as u32).filter(|index| !arrived[*index as usize]).collect();
            if missing.is_empty() {
                self.arrived.remove(&piece.blast);
            }
        }
        piece.ask.map(|round| Answer { blast: piece.blast, round, missing })
    }

    /// Back at the sender.
    pub(super) fn answered(&mut self, now: Instant, answer: Answer) {
        let Some(blast) = self.blasts.get_mut(&answer.blast) else { return };
        let Some(asked) = blast.asked.filter(|_| blast.round == answer.round) else { return };
        let missing = answer.missing.len() as u32;
        self.useful += u64::from(blast.missing - missing);
        let lost = (blast.of_round + missing).saturating_sub(blast.missing);
        let sample = Answered { sent: asked, delivered: self.useful * DATA, packets: blast.of_round, lost };
        blast.asked = None;
        (blast.missing, blast.of_round, blast.round) = (missing, missing, blast.round + 1);
        blast.waiting = answer.missing;
        blast.waiting.reverse();
        if missing == 0 {
            self.blasts.remove(&answer.blast);
        }
        self.measure(now.since(asked).0);
        self.rate.answered(now, sample);
    }
}
