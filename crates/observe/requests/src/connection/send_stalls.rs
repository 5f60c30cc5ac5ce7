//! Send stalls: times in which a sender waited for an acknowledgement although its receiver had room and nothing was lost. It had as
//! many bytes in flight as its congestion window or its send buffer allows. A saturated path shows no such gaps: it carries data all
//! the time, and its queue makes acknowledgements come later than a round trip.

use super::stream_state::{LETS_GO_NS, PAUSE_NS, RequestStreamState, SEGMENT, SendStall};
use super::{RequestConnection, remember};
use stackline_events::unit_ids::EventStreamDirection;

/// A gap shorter than the round trip divided by this is no stall: segments on a slow path are spaced too.
const PART_OF_TRIP: u64 = 4;
/// A gap after fewer bytes than this is the spacing of segments on a slow path.
const FEWEST: u64 = 6 * SEGMENT;

/// By how much the time between an acknowledgement and the data it releases may differ from a round trip, ns.
fn tolerance_ns(trip_ns: u64) -> u64 {
    (trip_ns / 8).min(LETS_GO_NS)
}

impl RequestConnection {
    /// New data from offset `from` on passes, at the sender's door or, if that host is not observed, at the receiver's: notes a
    /// stall if one ended.
    pub(super) fn note_stall(&mut self, at_ns: u64, direction: EventStreamDirection, from: u64) {
        let is_sender_seen = self.ends[direction as usize].host.is_some();
        let acknowledged = self.directions[1 - direction as usize].acknowledged;
        let Some(trip_ns) = self.round_trip_ns.or(self.least_ack_ns) else {
            return;
        };
        let own = &self.directions[direction as usize];
        let Some(since_ns) = own.unhindered_since(from) else {
            return;
        };
        let ns = at_ns.saturating_sub(since_ns);
        let tolerance_ns = tolerance_ns(trip_ns);
        let is_gap = ns >= PAUSE_NS.max(trip_ns / PART_OF_TRIP)
            && ns <= trip_ns.saturating_add(tolerance_ns);
        let is_let_go = match (is_sender_seen, acknowledged) {
            (true, Some((up_to, acked_ns))) => {
                let left_ns = own.left.whole(up_to).map(|left| left.at_ns);
                let took_ns = left_ns.map(|left_ns| acked_ns.saturating_sub(left_ns));
                let in_time_ns = trip_ns + trip_ns / PART_OF_TRIP + tolerance_ns;
                // A later acknowledgement waited in a queue: then the path is saturated.
                at_ns.saturating_sub(acked_ns) <= LETS_GO_NS
                    && took_ns.is_some_and(|took_ns| took_ns <= in_time_ns)
            }
            (true, None) => false,
            // Seen at the receiver: it acknowledged what arrived one round trip before.
            (false, _) => {
                let heard_ns = at_ns.saturating_sub(trip_ns);
                let progress = own.passed();
                let before_ns = heard_ns.saturating_sub(tolerance_ns + 1);
                progress.end_at(before_ns) < progress.end_at(heard_ns + tolerance_ns)
            }
        };
        let own = &mut self.directions[direction as usize];
        if is_gap && is_let_go && from.saturating_sub(own.stalled_from) >= FEWEST {
            own.stalled_from = from;
            remember(&mut own.stalls, SendStall { from, ns }, &mut self.left_out);
        }
    }
}

impl RequestStreamState {
    /// Since when nothing of this direction has passed, ns, if the byte at `from` is next and no other hindrance is known: no full
    /// window, no loss, no pause of the program.
    fn unhindered_since(&self, from: u64) -> Option<u64> {
        let before = self.passed().whole(from)?;
        let is_next = self.passed().end() == from && !self.arrived.has_hole();
        let is_later = |at_ns: u64| at_ns > before.at_ns;
        let had_no_room = self.full_since.is_some()
            || self.full.back().is_some_and(|(_, until)| is_later(*until));
        let has_paused =
            (self.gaps.back()).is_some_and(|gap| gap.is_pause && is_later(gap.until_ns));
        let was_lossy = (self.again.back()).is_some_and(|(_, _, at_ns, _)| is_later(*at_ns));
        (is_next && !had_no_room && !has_paused && !was_lossy).then_some(before.at_ns)
    }

    /// How long the sender stalled within the bytes between two offsets, ns.
    pub(super) fn stalled_ns(&self, from: u64, end: u64) -> u64 {
        let of_these = |stall: &&SendStall| stall.from > from && stall.from < end;
        let stalls = self.stalls.iter().filter(of_these);
        stalls.map(|stall| stall.ns).fold(0, u64::saturating_add)
    }
}
