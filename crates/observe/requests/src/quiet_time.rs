//! Times without data on a TCP connection: the longest one, and the pauses of each sender.

use stackline_events::unit_ids::EventStreamDirection;

/// The shortest pause of a sender, ns.
const LEAST_PAUSE_NS: u64 = 2_000_000;

/// The pauses of one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderPauses {
    /// How many there were.
    pub count: u64,
    /// How long they were together, ns.
    pub ns: u64,
}

/// The longest time without data on a connection and what ended it, and the pauses of each end. A pause is a time in which all data was
/// acknowledged and the receiver had room, until the end sends new data; it is counted only where the round trip is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuietTime {
    /// When data passed last, ns.
    data_ns: Option<u64>,
    longest_ns: u64,
    until: &'static str,
    /// Since when all data of both directions has been acknowledged, ns.
    idle_ns: Option<u64>,
    pauses: [SenderPauses; 2],
}

impl QuietTime {
    /// Nothing has passed yet; times count from this moment, ns.
    #[must_use]
    pub fn since(at_ns: u64) -> Self {
        Self {
            data_ns: Some(at_ns),
            ..Self::default()
        }
    }

    /// Data passes, new or sent again: a quiet time ends. `trip_ns` is the connection's round trip, if known.
    pub fn end(
        &mut self,
        at_ns: u64,
        direction: EventStreamDirection,
        is_new: bool,
        trip_ns: Option<u64>,
    ) {
        let data_ns = self.data_ns;
        let quiet_ns = data_ns.map_or(0, |data_ns| at_ns.saturating_sub(data_ns));
        self.data_ns = Some(data_ns.unwrap_or(0).max(at_ns));
        // Seen at the receiver, the data follows the acknowledgement by a round trip.
        let idle_ns = self
            .idle_ns
            .take()
            .zip(trip_ns)
            .map(|(since_ns, trip_ns)| at_ns.saturating_sub(since_ns).saturating_sub(trip_ns));
        if let Some(idle_ns) = idle_ns.filter(|idle_ns| is_new && *idle_ns >= LEAST_PAUSE_NS) {
            let pauses = &mut self.pauses[direction as usize];
            pauses.count += 1;
            pauses.ns = pauses.ns.saturating_add(idle_ns);
        }
        if quiet_ns > self.longest_ns {
            self.longest_ns = quiet_ns;
            self.until = match (is_new, direction) {
                (false, _) => "retransmission",
                (true, EventStreamDirection::There) => "initiator",
                (true, EventStreamDirection::Back) => "responder",
            };
        }
    }

    /// The receiver has room again: the time before it was no quiet time, as its full window explains it.
    pub fn restart(&mut self, at_ns: u64) {
        self.data_ns = Some(self.data_ns.unwrap_or(0).max(at_ns));
        self.idle_ns = self.idle_ns.map(|since_ns| since_ns.max(at_ns));
    }

    /// All data that was sent is acknowledged: from now on, a sender that sends nothing has nothing to send, or no room.
    pub fn all_acknowledged(&mut self, at_ns: u64) {
        self.idle_ns.get_or_insert(at_ns);
    }

    /// The longest time without data, ns.
    #[must_use]
    pub const fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// What ended it: data of the `initiator` or the `responder`, or a `retransmission`; empty if there was none.
    #[must_use]
    pub const fn until(&self) -> &'static str {
        self.until
    }

    /// The pauses of the initiator, and of the responder.
    #[must_use]
    pub const fn pauses(&self) -> [SenderPauses; 2] {
        self.pauses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventStreamDirection::{Back, There};

    #[test]
    fn pauses_are_of_the_side_that_sends_next_once_all_is_acknowledged() {
        const MS: u64 = 1_000_000;
        let mut quiet = QuietTime::since(0);
        let trip = Some(10 * MS);
        // Nothing was acknowledged: a wait for acknowledgements, however long.
        quiet.end(50 * MS, There, true, trip);
        quiet.end(90 * MS, There, true, trip);
        quiet.all_acknowledged(100 * MS);
        quiet.end(140 * MS, There, true, trip);
        quiet.all_acknowledged(150 * MS);
        quiet.end(200 * MS, Back, true, trip);
        // What is sent again is no pause, and a full window explains the time before it opens.
        quiet.all_acknowledged(210 * MS);
        quiet.end(500 * MS, There, false, trip);
        quiet.all_acknowledged(510 * MS);
        quiet.restart(900 * MS);
        quiet.end(911 * MS, There, true, trip);
        // Without a round trip nothing is known.
        quiet.all_acknowledged(920 * MS);
        quiet.end(990 * MS, There, true, None);
        let pauses = |count, ms| SenderPauses { count, ns: ms * MS };
        assert_eq!(quiet.pauses(), [pauses(1, 30), pauses(1, 40)]);
        assert_eq!(
            (quiet.longest_ns(), quiet.until()),
            (300 * MS, "retransmission")
        );
    }
}
