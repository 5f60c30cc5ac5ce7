//! A blast in flight: its current round (transmission), and the packets of that round that have not been sent yet.
//!
//! This state knows neither strategy nor deadlines: its [sender](super::sender) decides what a round contains.

use super::bitmap::Bitmap;
use super::options::BlastExtent;
use super::packet_run::{BlastPacketRun, BlastSendReason};
use stackline_core::time::Instant;

/// The packets of a round that are not sent yet, by index.
#[derive(Clone, Debug)]
pub(super) enum Unsent {
    Nothing,
    /// All packets from this one on.
    From(u32),
    /// The packets in the set, from this index on.
    Selected(Bitmap, u32),
}

/// A blast in flight.
#[derive(Clone, Debug)]
pub(super) struct BlastInFlight {
    pub(super) blast: BlastExtent,
    pub(super) round: u16,
    /// Why the round is sent.
    pub(super) reason: BlastSendReason,
    /// NAKs count only for rounds from this one on: earlier NAKs have been answered by sending this round.
    pub(super) valid_from: u16,
    pub(super) unsent: Unsent,
    /// The index of the last packet of the round, which requests the answer.
    pub(super) last_packet: u32,
    /// The number of packets in the round.
    pub(super) packets: u32,
    /// When the round's request was sent, and its number among all requests.
    pub(super) ack_requested_at: Option<(Instant, u64)>,
    /// The number of packets of the blast that have arrived.
    pub(super) arrived: u32,
    pub(super) complete: bool,
}

impl BlastInFlight {
    /// A blast of `packets` packets, of which nothing has been sent.
    pub(super) const fn new(blast: BlastExtent, packets: u32) -> Self {
        let (ack_requested_at, unsent) = (None, Unsent::From(0));
        let reason = BlastSendReason::New;
        Self {
            blast,
            round: 0,
            reason,
            valid_from: 0,
            unsent,
            last_packet: 0,
            packets,
            ack_requested_at,
            arrived: 0,
            complete: false,
        }
    }

    /// Whether an answer to that round is awaited: it is the current round and is sent wholly.
    pub(super) fn awaits_answer(&self, round: u16) -> bool {
        !self.complete && matches!(self.unsent, Unsent::Nothing) && self.round == round
    }

    /// Begins a new round.
    pub(super) fn begin(&mut self, unsent: Unsent, packets: u32, reason: BlastSendReason) {
        self.reason = reason;
        self.round = self.round.wrapping_add(1);
        (self.unsent, self.packets, self.ack_requested_at) = (unsent, packets, None);
    }

    /// Takes the next packets of the round, at most `most`; `total` is the number of packets of the blast.
    pub(super) fn take(
        &mut self,
        most: u32,
        total: u32,
        connection: u32,
        packet: u32,
    ) -> BlastPacketRun {
        let (first, count, next) = match &self.unsent {
            Unsent::Nothing => (0, 0, None),
            Unsent::From(from) => {
                let count = most.min(total - from);
                (*from, count, (from + count < total).then_some(from + count))
            }
            Unsent::Selected(bitmap, from) => {
                let first = bitmap.next(*from, true).unwrap_or(0);
                let until = bitmap.next(first, false).unwrap_or(total);
                let count = most.min(until - first);
                (first, count, bitmap.next(first + count, true))
            }
        };
        match (&mut self.unsent, next) {
            (Unsent::From(from) | Unsent::Selected(_, from), Some(next)) => *from = next,
            (unsent, _) => {
                self.last_packet = first + count - 1;
                *unsent = Unsent::Nothing;
            }
        }
        let requests_ack = next.is_none();
        BlastPacketRun {
            connection,
            blast: self.blast,
            round: self.round,
            first,
            count,
            requests_ack,
            packet,
            reason: self.reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn in_flight() -> BlastInFlight {
        BlastInFlight::new(
            BlastExtent {
                number: 3,
                start: 5000,
                length: 950,
                last: false,
            },
            10,
        )
    }

    /// First packet, count and whether it requests an answer, of each run of at most `most` packets.
    fn runs(in_flight: &mut BlastInFlight, most: u32) -> Vec<(u32, u32, bool)> {
        let mut runs = Vec::new();
        while !matches!(in_flight.unsent, Unsent::Nothing) {
            let run = in_flight.take(most, 10, 77, 100);
            runs.push((run.first, run.count, run.requests_ack));
        }
        runs
    }

    #[test]
    fn the_last_packet_of_a_round_requests_an_answer() {
        let mut in_flight = in_flight();
        assert_eq!(
            runs(&mut in_flight, 4),
            [(0, 4, false), (4, 4, false), (8, 2, true)]
        );
        assert_eq!(in_flight.last_packet, 9);
        in_flight.begin(Unsent::From(7), 3, BlastSendReason::Missing);
        assert_eq!(runs(&mut in_flight, 128), [(7, 3, true)]);
    }

    #[test]
    fn only_missing_packets_leave() {
        let mut missing = Bitmap::none(10);
        for index in [1, 5, 7, 8] {
            missing.put(index);
        }
        let mut in_flight = in_flight();
        in_flight.begin(Unsent::Selected(missing, 1), 4, BlastSendReason::Missing);
        assert_eq!(
            runs(&mut in_flight, 128),
            [(1, 1, false), (5, 1, false), (7, 2, true)]
        );
        assert_eq!((in_flight.last_packet, in_flight.round), (8, 1));
    }

    #[test]
    fn only_the_round_that_has_left_is_waited_for() {
        let mut in_flight = in_flight();
        assert!(!in_flight.awaits_answer(0));
        runs(&mut in_flight, 128);
        assert!(in_flight.awaits_answer(0) && !in_flight.awaits_answer(1));
        in_flight.begin(Unsent::From(0), 10, BlastSendReason::Timeout);
        assert!(!in_flight.awaits_answer(0) && !in_flight.awaits_answer(1));
        runs(&mut in_flight, 128);
        assert!(in_flight.awaits_answer(1));
        in_flight.complete = true;
        assert!(!in_flight.awaits_answer(1));
    }
}
