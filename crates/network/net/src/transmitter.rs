//! When the last bit of a packet has gone onto the link: at a constant rate, one that changes in steps, or at the moments
//! of a recorded trace.
//!
//! A transmitter holds no packet and waits for nothing: it maps the start of a transmission to its end. While it is
//! busy it keeps fractions of a nanosecond, so a long train of packets takes the time of its bytes together, without a
//! rounding error for each packet.

mod mahimahi_trace;
mod rate_schedule;

use mahimahi_trace::MahimahiTrace;
use rate_schedule::{BYTE_AT_ONE_BIT_S, TransmitSchedule};
use stackline_core::network::LinkRate;
use stackline_core::time::Instant;

/// The transmitter of one direction of a link.
#[derive(Clone, Debug)]
pub struct Transmitter(TransmitterKind);

#[derive(Clone, Debug)]
enum TransmitterKind {
    Unlimited,
    Constant(Constant),
    Schedule(TransmitSchedule),
    Trace(MahimahiTrace),
}

impl Transmitter {
    /// A transmitter that is idle at instant zero.
    #[must_use]
    pub fn new(rate: &LinkRate) -> Self {
        Self(match rate {
            LinkRate::Unlimited => TransmitterKind::Unlimited,
            LinkRate::Constant(bit_s) => TransmitterKind::Constant(Constant::new(*bit_s)),
            LinkRate::Schedule(schedule) => {
                TransmitterKind::Schedule(TransmitSchedule::new(schedule))
            }
            LinkRate::Trace(trace) => TransmitterKind::Trace(MahimahiTrace::new(trace)),
        })
    }

    /// The instant at which the last of `bytes` charged bytes has gone onto the link, if the first may go at `start`.
    /// `start` is not before the last instant returned. The greatest instant means that they never will.
    #[inline]
    pub fn finish(&mut self, start: Instant, bytes: u64) -> Instant {
        match &mut self.0 {
            TransmitterKind::Unlimited => start,
            TransmitterKind::Constant(constant) => constant.finish(start, bytes),
            TransmitterKind::Schedule(schedule) => schedule.finish(start, bytes),
            TransmitterKind::Trace(trace) => trace.finish(start, bytes),
        }
    }

    /// The rate at that instant in bit/s (of a trace: its mean rate); `None` when the rate is unlimited.
    #[must_use]
    pub fn bit_s(&self, at: Instant) -> Option<f64> {
        match &self.0 {
            TransmitterKind::Unlimited => None,
            TransmitterKind::Constant(constant) => Some(constant.bit_s),
            TransmitterKind::Schedule(schedule) => Some(schedule.bit_s(at)),
            TransmitterKind::Trace(trace) => Some(trace.bit_s()),
        }
    }
}

/// The time of a byte at a rate in bit/s, in 2^-64 ns, rounded down.
pub(crate) fn time_of_a_byte(bit_s: f64) -> u128 {
    // The rate with 30 binary places: exact for whole bit/s, and for all rates from 4 Mbit/s up.
    let rate = (libm::round(libm::ldexp(bit_s, 30)) as u128).max(1);
    // 8e9 has 33 bits, so shifted by 94 it just fits into 128.
    (u128::from(BYTE_AT_ONE_BIT_S) << (64 + 30)) / rate
}

/// A constant rate, computed with one multiplication a packet. Times are fixed-point: nanoseconds with 64 binary
/// places.
#[derive(Clone, Debug)]
struct Constant {
    bit_s: f64,
    /// The time of a byte in 2^-64 ns, rounded down.
    per_byte: u128,
    /// The largest number of bytes whose time does not overflow.
    most: u64,
    /// The end of the last transmission in 2^-64 ns.
    end: u128,
    /// `end` in ns, rounded up, as [`Self::finish`] returned it.
    last_end: u64,
}

impl Constant {
    fn new(bit_s: f64) -> Self {
        let per_byte = time_of_a_byte(bit_s);
        let most = u64::try_from(u128::MAX / per_byte.max(1)).unwrap_or(u64::MAX);
        Self {
            bit_s,
            per_byte,
            most,
            end: 0,
            last_end: 0,
        }
    }

    #[inline]
    fn finish(&mut self, start: Instant, bytes: u64) -> Instant {
        let begin = if start.0 > self.last_end {
            u128::from(start.0) << 64
        } else {
            self.end
        };
        let time = if bytes <= self.most {
            u128::from(bytes) * self.per_byte
        } else {
            u128::MAX
        };
        self.end = begin.saturating_add(time);
        let begun = self.end as u64 != 0;
        self.last_end = ((self.end >> 64) as u64).saturating_add(u64::from(begun));
        Instant(self.last_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use stackline_core::network::RateSchedule;
    use stackline_core::time::Duration;

    fn constant(bit_s: f64) -> Transmitter {
        Transmitter::new(&LinkRate::Constant(bit_s))
    }

    #[test]
    fn an_unlimited_one_takes_no_time() {
        let mut free = Transmitter::new(&LinkRate::Unlimited);
        assert_eq!(free.finish(Instant(7), u64::MAX), Instant(7));
        assert_eq!(free.bit_s(Instant(7)), None);
    }

    #[test]
    fn a_million_packets_take_the_time_of_their_bytes() {
        for (bit_s, end) in [
            (1e9, 12_000_000_000),
            (1e10, 1_200_000_000),
            (7e6, 1_714_285_714_286),
        ] {
            let mut link = constant(bit_s);
            let last = (0..1_000_000).fold(Instant(0), |at, _| link.finish(at, 1500));
            assert_eq!(last, Instant(end), "{bit_s} bit/s");
        }
    }

    #[test]
    fn a_part_of_a_nanosecond_is_a_whole_one_unless_more_follows() {
        let mut link = constant(1e12);
        assert_eq!(link.finish(Instant(0), 53), Instant(1));
        assert_eq!(link.finish(Instant(1), 53), Instant(1), "0.848 ns for both");
        assert_eq!(link.finish(Instant(1), 53), Instant(2));
        assert_eq!(
            link.finish(Instant(5), 53),
            Instant(6),
            "the fraction is forgotten after a pause"
        );
    }

    #[test]
    fn an_endless_transmission_ends_at_the_greatest_instant() {
        let mut link = constant(1e-6);
        assert_eq!(link.finish(Instant(0), u64::MAX), Instant(u64::MAX));
        assert_eq!(link.finish(Instant(u64::MAX), 1), Instant(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_busy_link_rounds_once(rate in 1_u64..100_000_000_000, sizes in proptest::collection::vec(1_u64..70_000, 1..50), start in 0_u64..1 << 50) {
            let mut link = constant(rate as f64);
            let mut at = Instant(start);
            let mut total = 0;
            for bytes in sizes {
                at = link.finish(at, bytes);
                total += u128::from(bytes) * u128::from(BYTE_AT_ONE_BIT_S);
                prop_assert_eq!(u128::from(at.0), u128::from(start) + total.div_ceil(u128::from(rate)));
            }
        }

        #[test]
        fn a_schedule_of_one_step_is_a_constant(rate in 1_u64..100_000_000_000, packets in proptest::collection::vec((0_u64..100_000, 0_u64..70_000), 1..50)) {
            let steps = vec![(Duration::ZERO, rate as f64)];
            let repeated = RateSchedule { steps: steps.clone(), period: Some(Duration(77_777)) };
            let once = RateSchedule { steps, period: None };
            let mut links = [LinkRate::Constant(rate as f64), LinkRate::Schedule(once), LinkRate::Schedule(repeated)].map(|rate| Transmitter::new(&rate));
            let mut at = Instant(0);
            for (pause, bytes) in packets {
                // Each second packet follows at once.
                let start = at + Duration(if pause % 2 == 0 { pause } else { 0 });
                let ends = links.each_mut().map(|link| link.finish(start, bytes));
                prop_assert_eq!([ends[0]; 3], ends);
                at = ends[0];
            }
        }
    }
}
