//! Remembers the datagrams that were seen lately. A datagram that is seen at both ends, or captured twice, is recognised: its
//! contents are parsed once, and pass each end at their own time.

use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The most datagrams that are remembered.
const MOST: usize = Bound::Doors.most();
/// For how long a datagram is remembered, ns.
const REMEMBERED_NS: u64 = 2_000_000_000;

/// A range of bytes of a stream that a datagram holds; `end` is exclusive.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassedPiece {
    pub(super) stream: u64,
    pub(super) from: u64,
    pub(super) end: u64,
}

/// A datagram that was seen.
#[derive(Clone, Debug)]
pub(super) struct SeenDatagram {
    /// The hash of its direction and bytes.
    hash: u64,
    at_ns: u64,
    /// Whether it was seen to leave its sender's host.
    pub(super) has_left: bool,
    /// Whether it was seen to arrive at its receiver's host.
    pub(super) has_arrived: bool,
    /// Whether it belongs to the handshake.
    pub(super) is_handshake: bool,
    /// The stream bytes that it holds.
    pub(super) pieces: Vec<PassedPiece>,
}

/// The datagrams of one connection that were seen lately.
#[derive(Debug, Default)]
pub(super) struct SeenDatagrams {
    /// The datagrams, oldest first.
    latest: VecDeque<SeenDatagram>,
    /// How many datagrams before these are forgotten already: the number of the first one in `latest`.
    before: u64,
    /// The number of each datagram by its hash.
    numbers: HashMap<u64, u64>,
}

/// The hash that identifies a datagram. QUIC packets are encrypted with their numbers, so no two are alike.
pub(super) fn hash_datagram(direction: EventStreamDirection, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (direction as u8, bytes).hash(&mut hasher);
    hasher.finish()
}

impl SeenDatagrams {
    /// The datagram with that hash, if it was seen lately.
    pub(super) fn find(&mut self, hash: u64, at_ns: u64) -> Option<&mut SeenDatagram> {
        self.forget_old(at_ns);
        let number = self.numbers.get(&hash)?;
        self.latest
            .get_mut(usize::try_from(number - self.before).ok()?)
    }

    /// Forgets datagrams that were seen longer than [`REMEMBERED_NS`] ago.
    pub(super) fn forget_old(&mut self, now_ns: u64) {
        let is_old = |seen: &SeenDatagram| seen.at_ns.saturating_add(REMEMBERED_NS) < now_ns;
        while self.latest.front().is_some_and(is_old) {
            self.forget_first();
        }
    }

    /// Adds a datagram; at the bound the oldest is forgotten.
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

    /// A datagram that is seen for the first time.
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
