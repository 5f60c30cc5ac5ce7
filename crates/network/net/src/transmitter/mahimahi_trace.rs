//! A link whose transmission opportunities come from a recorded trace, as in Mahimahi: at each moment of the trace up
//! to 1504 bytes leave at once; an unused moment is lost. The trace repeats after its last moment.

use alloc::vec::Vec;
use stackline_core::network::DeliveryTrace;
use stackline_core::time::Instant;

/// The bytes that may leave at one moment of the trace.
// `PACKET_SIZE` of Mahimahi's link queue, the largest payload of a TUN device there.
const BYTES: u64 = 1504;
const NS_PER_MS: u64 = 1_000_000;

/// The trace, and how much of it has been used. Moments are numbered through all repetitions.
#[derive(Clone, Debug)]
pub(super) struct MahimahiTrace {
    /// The moments of one repetition in ms, ascending.
    moments_ms: Vec<u32>,
    /// The length of a repetition in ns: the last moment of the trace.
    period: u64,
    /// The number of the first unused moment.
    next: u64,
    /// Bytes that may still leave at the moment that was used last.
    left: u64,
    /// The instant of the moment that was used last, in ns.
    moment: u64,
}

impl MahimahiTrace {
    pub(super) fn new(plan: &DeliveryTrace) -> Self {
        let period = plan
            .opportunities_ms
            .last()
            .map_or(0, |last| u64::from(*last) * NS_PER_MS);
        Self {
            moments_ms: plan.opportunities_ms.clone(),
            period,
            next: 0,
            left: 0,
            moment: 0,
        }
    }

    /// The mean rate in bit/s.
    pub(super) fn bit_s(&self) -> f64 {
        if self.period == 0 {
            return 0.0;
        }
        (self.moments_ms.len() as u64 * BYTES * 8) as f64 * 1e9 / self.period as f64
    }

    pub(super) fn finish(&mut self, start: Instant, bytes: u64) -> Instant {
        if bytes == 0 {
            return start;
        }
        if self.period == 0 {
            return Instant(u64::MAX);
        }
        if start.0 > self.moment {
            self.left = 0;
            self.seek(start.0);
        }
        if bytes > self.left {
            let further = (bytes - self.left).div_ceil(BYTES);
            self.left += further.saturating_mul(BYTES);
            // `bytes > left`, so at least one more moment is taken and `next` is above 0 below.
            self.next = self.next.saturating_add(further);
            self.moment = self.at(self.next - 1);
        }
        self.left -= bytes.min(self.left);
        Instant(self.moment)
    }

    /// The instant of the moment with that number, in ns.
    fn at(&self, number: u64) -> u64 {
        let count = self.moments_ms.len() as u64;
        let within = u64::from(self.moments_ms[(number % count) as usize]) * NS_PER_MS;
        (number / count)
            .saturating_mul(self.period)
            .saturating_add(within)
    }

    /// Passes over the moments before `start`.
    fn seek(&mut self, start: u64) {
        if self.at(self.next) >= start {
            return;
        }
        // The last moment of a repetition is also the start of the next; it belongs to the one that it ends.
        let cycle = (start - 1) / self.period;
        let within = start - cycle * self.period;
        let passed = self
            .moments_ms
            .partition_point(|ms| u64::from(*ms) * NS_PER_MS < within);
        let number = u128::from(cycle) * self.moments_ms.len() as u128 + passed as u128;
        self.next = u64::try_from(number).unwrap_or(u64::MAX).max(self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec;
    use proptest::prelude::*;

    fn trace(moments_ms: &[u32]) -> MahimahiTrace {
        MahimahiTrace::new(&DeliveryTrace {
            file: String::new(),
            opportunities_ms: moments_ms.to_vec(),
        })
    }

    fn ms(ms: u64) -> Instant {
        Instant(ms * NS_PER_MS)
    }

    #[test]
    fn a_moment_carries_1504_bytes() {
        let mut link = trace(&[2, 5, 5, 10]);
        assert_eq!(link.finish(ms(1), 1000), ms(2));
        assert_eq!(
            link.finish(ms(2), 500),
            ms(2),
            "several small ones share it"
        );
        assert_eq!(
            link.finish(ms(2), 1504),
            ms(5),
            "4 bytes at 2 ms, the others at 5 ms"
        );
        assert_eq!(
            link.finish(ms(5), 1508),
            ms(5),
            "what was left, and the second moment there"
        );
        assert_eq!(link.finish(ms(5), 1), ms(10));
        assert_eq!(link.finish(ms(10), 1503), ms(10));
        assert_eq!(link.finish(ms(10), 1), ms(12), "it begins again");
    }

    #[test]
    fn unused_moments_are_lost() {
        let mut link = trace(&[2, 5, 10]);
        assert_eq!(link.finish(Instant(ms(2).0 + 1), 40), ms(5));
        assert_eq!(
            link.finish(ms(1_000_000_000), 40),
            ms(1_000_000_000),
            "the last moment of a repetition, long after"
        );
        assert_eq!(
            link.finish(Instant(ms(1_000_000_000).0 + 1), 40),
            ms(1_000_000_002),
            "what was left there is lost"
        );
    }

    #[test]
    fn a_large_packet_takes_many_moments() {
        let mut link = trace(&[1, 2, 3, 4]);
        assert_eq!(link.finish(ms(0), 1504 * 1_000_000_000), ms(1_000_000_000));
        assert_eq!(link.bit_s(), 12_032_000.0);
    }

    #[test]
    fn a_trace_without_length_never_sends() {
        assert_eq!(trace(&[0]).finish(ms(0), 1), Instant(u64::MAX));
    }

    proptest! {
        #[test]
        fn it_is_what_walking_through_it_gives(
            gaps in proptest::collection::vec(0_u32..6, 1..20),
            packets in proptest::collection::vec((0_u64..9, any::<bool>(), 1_u64..5000), 1..60),
        ) {
            let mut moments: Vec<u32> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            moments.push(moments[moments.len() - 1] + 1);
            let period = u64::from(moments[moments.len() - 1]);
            let mut all = vec![];
            for cycle in 0..1000 {
                all.extend(moments.iter().map(|ms| (cycle * period + u64::from(*ms), BYTES)));
            }
            let mut all = all.into_iter().peekable();
            let mut link = trace(&moments);
            let mut last_end = ms(0);
            for (pause, late, bytes) in packets {
                let start = Instant(last_end.0 + pause / 4 * NS_PER_MS + u64::from(late && pause > 4));
                let mut need = bytes;
                let mut end = start;
                while need > 0 {
                    let (at, left) = all.peek_mut().unwrap();
                    if *at * NS_PER_MS >= start.0 && *left > 0 {
                        let now = need.min(*left);
                        (need, *left, end) = (need - now, *left - now, ms(*at));
                    } else {
                        all.next();
                    }
                }
                last_end = link.finish(start, bytes);
                prop_assert_eq!(last_end, end);
            }
        }
    }
}
