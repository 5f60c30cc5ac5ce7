//! Datagrams that were seen lately, so that one that passes at both ends, or is captured twice, is known again: what it holds is read
//! once, and passes each end at its own time.

use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Datagrams that are remembered, and for how long, ns.
const MOST: usize = Bound::Doors.most();
const REMEMBERED_NS: u64 = 2_000_000_000;

/// Bytes of a stream that a datagram holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassedPiece {
    pub(super) stream: u64,
    pub(super) from: u64,
    pub(super) end: u64,
}

/// A datagram.
#[derive(Clone, Debug)]
pub(super) struct SeenDatagram {
    hash: u64,
    at_ns: u64,
    pub(super) has_left: bool,
    pub(super) has_arrived: bool,
    /// Whether it is of the flight that sets the connection up.
    pub(super) is_handshake: bool,
    pub(super) pieces: Vec<PassedPiece>,
}

/// Those of one connection.
#[derive(Debug, Default)]
pub(super) struct SeenDatagrams {
    latest: VecDeque<SeenDatagram>,
    /// How many came before the first of them.
    before: u64,
    /// By their hashes their numbers.
    numbers: HashMap<u64, u64>,
}

/// Packets are protected, so no two are alike.
pub(super) fn hash_datagram(direction: EventStreamDirection, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (direction as u8, bytes).hash(&mut hasher);
    hasher.finish()
}

impl SeenDatagrams {
    /// The one of that hash, if it was seen lately.
    pub(super) fn find(&mut self, hash: u64, at_ns: u64) -> Option<&mut SeenDatagram> {
        self.forget_old(at_ns);
        let number = self.numbers.get(&hash)?;
        self.latest
            .get_mut(usize::try_from(number - self.before).ok()?)
    }

    /// Forgets those that were seen long before.
    pub(super) fn forget_old(&mut self, now_ns: u64) {
        let is_old = |seen: &SeenDatagram| seen.at_ns.saturating_add(REMEMBERED_NS) < now_ns;
        while self.latest.front().is_some_and(is_old) {
            self.forget_first();
        }
    }

    /// Adds one.
    pub(super) fn add(&mut self, seen: SeenDatagram, left_out: &mut LeftOut) {
        if self.latest.len() >= MOST {
            self.forget_first();
            left_out.add(Bound::Doors, 1);
        }
        self.numbers
            .insert(seen.hash, self.before + self.latest.len() as u64);
        self.latest.push_back(seen);
    }

    fn forget_first(&mut self) {
        if let Some(seen) = self.latest.pop_front() {
            self.numbers.remove(&seen.hash);
            self.before += 1;
        }
    }

    /// One that is seen first.
    pub(super) const fn first(hash: u64, at_ns: u64) -> SeenDatagram {
        SeenDatagram {
            hash,
            at_ns,
            has_left: false,
            has_arrived: false,
            is_handshake: false,
            pieces: Vec::new(),
        }
    }
}
