//! The least time that a message takes under the limits that remain when one cause is removed: distance, the initial windows of its
//! connection, and the rate of the slowest link on its path. No finding promises a shorter time.

/// The bytes that a sender may have in flight before anything is acknowledged: ten segments of 1460 bytes (RFC 6928).
pub(super) const FIRST_WINDOW: i64 = 14_600;
/// A message of at least this many bytes is long: its time is limited by a rate.
pub(crate) const LARGE: i64 = 64 << 10;

/// The unknown rate of a path is searched for from here, bit/s.
const SLOWEST_BIT_S: f64 = 1e3;
/// The unknown rate of a path is searched for up to here, bit/s.
const FASTEST_BIT_S: f64 = 1e12;
/// The number of bisection steps of that search.
const HALVINGS: u32 = 40;

/// The transfer of a message that is delayed only by distance, rate, and slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemainingTransfer {
    /// The size of the message.
    pub(crate) bytes: i64,
    /// The round trip, ns.
    pub(crate) trip_ns: i64,
    /// The rate of the slowest link; `None` if it is not known, or is the cause that is removed.
    pub(crate) bit_s: Option<f64>,
    /// Whether it is sent with the initial window of its connection.
    pub(crate) begins_slowly: bool,
}

/// The time of such a transfer beyond the round trip, ns.
struct UnhinderedTime {
    /// Round trips in slow start until the path is full or all is sent.
    windows_ns: i64,
    /// Transmission of the rest by the slowest link.
    rate_ns: i64,
}

impl RemainingTransfer {
    /// The least time from the request to the last byte, ns: a round trip, one more for each window that is sent before the path is full or
    /// all is sent, and the time that the link takes for the rest.
    pub(crate) fn least_ns(&self) -> i64 {
        let time = self.unhindered();
        self.trip_ns + time.windows_ns + time.rate_ns
    }

    /// Whether most of that time beyond the round trip is due to the rate.
    pub(crate) fn is_of_rate(&self) -> bool {
        let time = self.unhindered();
        time.rate_ns > time.windows_ns
    }

    /// The part of `ns` (what it takes beyond a round trip) that is due to slow start: with the rate of its path if known, else with the
    /// rate at which slow start and the rest take `ns` together. It is 0 if slow start alone would take over a round trip longer: then the
    /// sender had a larger window.
    pub(crate) fn slow_start_ns(&self, ns: i64) -> i64 {
        let at = |bit_s: f64| {
            let transfer = Self {
                bit_s: Some(bit_s),
                ..*self
            };
            transfer.unhindered()
        };
        if let Some(bit_s) = self.bit_s {
            return at(bit_s).windows_ns.clamp(0, ns.max(0));
        }
        let (mut low, mut high) = (SLOWEST_BIT_S, FASTEST_BIT_S);
        if at(high).windows_ns > ns {
            // The last window may be released by the first acknowledgements of the previous one.
            let is_near = at(high).windows_ns <= ns.saturating_add(self.trip_ns);
            return if is_near { ns } else { 0 };
        }
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            let time = at(middle);
            if time.windows_ns + time.rate_ns > ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        at(high).windows_ns.clamp(0, ns.max(0))
    }

    fn unhindered(&self) -> UnhinderedTime {
        let ns_of = |bytes: i64| {
            let rate = self.bit_s.filter(|rate| *rate > 0.0);
            rate.map_or(0, |rate| (bytes as f64 * 8e9 / rate) as i64)
        };
        let (mut rest, mut window, mut windows_ns) = (self.bytes.max(0), FIRST_WINDOW, 0);
        // Once the link needs longer for a window than a round trip, the window fills the path.
        while self.begins_slowly && rest > window && ns_of(window) < self.trip_ns {
            rest -= window;
            windows_ns += self.trip_ns;
            window *= 2;
        }
        UnhinderedTime {
            windows_ns,
            rate_ns: ns_of(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn transfer(
        bytes: i64,
        trip_ms: i64,
        bit_s: Option<f64>,
        begins_slowly: bool,
    ) -> RemainingTransfer {
        RemainingTransfer {
            bytes,
            trip_ns: trip_ms * MS,
            bit_s,
            begins_slowly,
        }
    }

    #[test]
    fn windows_double_until_the_path_is_full() {
        let least = |transfer: RemainingTransfer| transfer.least_ns() / MS;
        assert_eq!(least(transfer(14_600, 40, None, true)), 40);
        assert_eq!(least(transfer(30_000, 40, None, true)), 80);
        assert_eq!(least(transfer(30_000, 40, None, false)), 40);
        // 10, 20, 40 segments are sent in a round trip each, then 50 Mbit/s carry 250 kB in 40 ms.
        assert_eq!(
            least(transfer(1_500_000, 40, Some(5e7), true)),
            40 + 5 * 40 + 167
        );
        assert_eq!(least(transfer(1_500_000, 40, Some(5e7), false)), 40 + 240);
        // Nothing is far: the rate alone.
        assert_eq!(least(transfer(1_000_000, 0, Some(8e6), true)), 1000);
    }

    #[test]
    fn slow_start_is_what_the_rate_does_not_explain() {
        // 1 MB, 30 ms away, in 196 ms beside the round trip: five windows, then some 100 Mbit/s.
        let unknown = transfer(1_000_000, 30, None, true);
        assert_eq!(unknown.slow_start_ns(196 * MS) / MS, 150);
        // In 825 ms: 10 Mbit/s, full after two windows.
        assert_eq!(unknown.slow_start_ns(825 * MS) / MS, 60);
        // A little faster: windows grow before the whole of the one before is acknowledged.
        assert_eq!(unknown.slow_start_ns(155 * MS) / MS, 155);
        // Faster than ten segments at first can be.
        assert_eq!(unknown.slow_start_ns(40 * MS), 0);
        assert_eq!(
            transfer(1_000_000, 30, None, false).slow_start_ns(196 * MS),
            0
        );
        let known = transfer(1_000_000, 30, Some(1e7), true);
        assert_eq!(known.slow_start_ns(825 * MS) / MS, 60);
    }

    proptest! {
        #[test]
        fn nothing_is_promised_below_distance_rate_and_windows(
            bytes in 0..100_000_000_i64, trip_ms in 0..500_i64, rate in prop::option::of(1e5..1e10_f64), begins_slowly: bool
        ) {
            let transfer = transfer(bytes, trip_ms, rate, begins_slowly);
            let least = transfer.least_ns();
            prop_assert!(least >= transfer.trip_ns);
            if let Some(rate) = rate {
                prop_assert!(least as f64 >= transfer.trip_ns as f64 + bytes as f64 * 8e9 / rate - bytes as f64 * 1e-3 - 32.0);
            }
            if begins_slowly && rate.is_none() && trip_ms > 0 {
                // So many windows hold less than all of it.
                let windows = (least - transfer.trip_ns) / transfer.trip_ns;
                prop_assert!(FIRST_WINDOW * ((1 << windows) - 1) < bytes.max(1));
                prop_assert!(FIRST_WINDOW * ((2 << windows) - 1) >= bytes);
            }
            let other = RemainingTransfer { begins_slowly: false, ..transfer };
            prop_assert!(other.least_ns() <= least + 32);
        }
    }
}
