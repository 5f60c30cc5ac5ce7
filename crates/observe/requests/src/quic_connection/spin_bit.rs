//! Measures the round trip of a QUIC connection by its spin bit (RFC 9000, section 17.4): the bit changes once per round trip, if
//! both ends take part and neither waits for its program.

/// A change that comes sooner than the shortest round trip so far divided by this is caused by reordered packets.
const PART: u64 = 8;

/// The spin bit in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpinBit {
    /// The bit of the last packet.
    last: Option<bool>,
    /// When the bit last changed, ns.
    edge_ns: Option<u64>,
    /// The shortest time between changes that counts as a round trip, ns.
    least_ns: Option<u64>,
    /// How many changes were as far apart as a round trip, and how many were too close.
    counts: [u64; 2],
}

impl SpinBit {
    /// A packet passes. `known_ns`: a round trip measured otherwise, against which the first change is checked.
    pub(super) fn pass(&mut self, spin: bool, at_ns: u64, known_ns: Option<u64>) {
        let is_edge = self.last.is_some_and(|last| last != spin);
        self.last = Some(spin);
        if !is_edge {
            return;
        }
        let since = self.edge_ns.replace(at_ns);
        let Some(period_ns) = since.map(|since| at_ns.saturating_sub(since)) else {
            return;
        };
        let bar = self.least_ns.or(known_ns).unwrap_or(0) / PART;
        let is_far = period_ns > bar;
        self.counts[usize::from(!is_far)] += 1;
        if is_far {
            self.least_ns = Some(
                self.least_ns
                    .map_or(period_ns, |least| least.min(period_ns)),
            );
        }
    }

    /// The shortest round trip, ns; `None` if the bit does not spin.
    pub(super) fn round_trip_ns(&self) -> Option<u64> {
        let [far, near] = self.counts;
        // An end that does not take part sends random values (RFC 9000, section 17.4): too many
        // changes are then too close.
        self.least_ns.filter(|_| far >= 2 && far > 2 * near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn changes_are_a_round_trip_apart() {
        let mut spin = SpinBit::default();
        for at_ms in 0..200 {
            spin.pass(at_ms / 20 % 2 == 1, at_ms * MS, Some(22 * MS));
        }
        assert_eq!(spin.round_trip_ns(), Some(20 * MS));
        // A packet that overtook another makes two changes at once, which count for nothing.
        spin.pass(true, 200 * MS, None);
        spin.pass(false, 200 * MS + 1000, None);
        assert_eq!(spin.round_trip_ns(), Some(20 * MS));
    }

    #[test]
    fn a_bit_that_stands_still_or_is_drawn_says_nothing() {
        let mut still = SpinBit::default();
        (0..100).for_each(|at_ms| still.pass(true, at_ms * MS, None));
        assert_eq!(still.round_trip_ns(), None);
        let mut drawn = SpinBit::default();
        for at_ms in 0..500_u64 {
            let is_odd = at_ms.wrapping_mul(0x9e37_79b9_7f4a_7c15).count_ones() % 2 == 1;
            drawn.pass(is_odd, at_ms * MS, Some(40 * MS));
        }
        assert_eq!(drawn.round_trip_ns(), None);
    }
}
