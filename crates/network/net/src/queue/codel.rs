//! Controlled delay (Nichols and Jacobson 2012, RFC 8289): when packets have waited longer than a target for a whole
//! interval, one is dropped, and further ones at growing frequency while that lasts.
//!
//! [`CoDel`] only decides, one packet at a time, when a packet reaches the head while the link is free; it holds no
//! packets.

use stackline_core::time::{Duration, Instant};

/// When dropping begins again within this many intervals of the last drop time, it resumes at the rate it had reached.
const REMEMBERED_INTERVALS: u64 = 16;

/// The control law and its state.
#[derive(Clone, Debug)]
pub struct CoDel {
    target: Duration,
    interval: Duration,
    /// The instant one interval after the sojourn time first exceeded the target; `None` while it is below.
    above_target_since: Option<Instant>,
    /// Whether CoDel is in the dropping state.
    dropping: bool,
    /// In the dropping state: the instant of the next drop.
    next: Instant,
    /// A packet was dropped at `next`, and the next call tells whether the queue is still too long: only then does
    /// `next` move on.
    pending: bool,
    /// Packets dropped or marked since the dropping state was entered.
    count: u32,
    /// The value of `count` when the dropping state was entered last.
    entered_with: u32,
}

impl CoDel {
    /// `target`: the acceptable standing delay; `interval`: the time within which it has to fall below that, about the
    /// longest usual round-trip time.
    #[must_use]
    pub const fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            above_target_since: None,
            dropping: false,
            next: Instant(0),
            pending: false,
            count: 0,
            entered_with: 0,
        }
    }

    /// Decides whether the packet that has just reached the head after waiting for `sojourn` is to be dropped or
    /// marked.
    ///
    /// `backlog_after_bytes` wait behind it; up to `mtu` bytes are no standing queue. If it was dropped, offer the next
    /// one at the same `now`.
    pub fn signals_congestion(
        &mut self,
        now: Instant,
        sojourn: Duration,
        backlog_after_bytes: u64,
        mtu: u64,
    ) -> bool {
        let stands = self.waited_too_long(now, sojourn, backlog_after_bytes, mtu);
        let pending = core::mem::take(&mut self.pending);
        if !stands {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            self.enter(now);
            return true;
        }
        if pending {
            self.next = self.after(self.next);
        }
        if now < self.next {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.pending = true;
        true
    }

    /// Whether packets have waited longer than the target for an interval or more.
    fn waited_too_long(
        &mut self,
        now: Instant,
        sojourn: Duration,
        backlog_after_bytes: u64,
        mtu: u64,
    ) -> bool {
        if sojourn < self.target || backlog_after_bytes <= mtu {
            self.above_target_since = None;
            return false;
        }
        now >= *self.above_target_since.get_or_insert(now + self.interval)
    }

    /// Enters the dropping state: at the slowest rate, or near the rate that it had reached a short while ago.
    fn enter(&mut self, now: Instant) {
        // Drops of the last dropping state (`count - lastcount` in RFC 8289, section 5): it resumes
        // near the rate that controlled the queue then.
        let since = self.count - self.entered_with;
        let recent = now.since(self.next).0 < self.interval.0.saturating_mul(REMEMBERED_INTERVALS);
        self.dropping = true;
        self.count = if since > 1 && recent { since } else { 1 };
        self.entered_with = self.count;
        self.next = self.after(now);
    }

    /// The control law: the instant of the drop after `from`, one interval divided by the square root of `count` later.
    fn after(&self, from: Instant) -> Instant {
        let gap = self.interval.0 as f64 / libm::sqrt(f64::from(self.count));
        from + Duration(gap as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::Fifo;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;
    const TARGET: Duration = Duration(5 * MS);
    const INTERVAL: Duration = Duration(100 * MS);

    fn standing(codel: &mut CoDel, ms: u64) -> bool {
        codel.signals_congestion(Instant(ms * MS), Duration(6 * MS), 10_000, 1500)
    }

    #[test]
    fn drops_begin_after_an_interval_and_become_more_frequent() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        let dropped: Vec<u64> = (0..500).filter(|ms| standing(&mut codel, *ms)).collect();
        // 100, then 100 / sqrt(1), 100 / sqrt(2), 100 / sqrt(3) ... later, each at the first packet not before that.
        assert_eq!(dropped, [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn one_packet_below_the_target_ends_it() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        assert!(!standing(&mut codel, 0));
        assert!(!codel.signals_congestion(Instant(99 * MS), Duration(5 * MS - 1), 10_000, 1500));
        assert!(!standing(&mut codel, 100), "the interval begins again");
        assert!(!standing(&mut codel, 199));
        assert!(standing(&mut codel, 200));
    }

    #[test]
    fn up_to_one_packet_behind_it_is_no_queue() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        assert!((0..1000).all(|ms| !codel.signals_congestion(
            Instant(ms * MS),
            Duration(50 * MS),
            1500,
            1500
        )));
    }

    #[test]
    fn it_resumes_at_the_rate_it_had_reached() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        let first = (0..500).filter(|ms| standing(&mut codel, *ms)).count();
        assert_eq!(first, 7);
        assert!(!codel.signals_congestion(Instant(500 * MS), Duration::ZERO, 0, 1500));
        let dropped: Vec<u64> = (510..700).filter(|ms| standing(&mut codel, *ms)).collect();
        // The count went from 1 to 7, so it resumes at 6: 100 / sqrt(6) = 40.8 ms.
        assert_eq!(&dropped[..2], [610, 651]);
        // After 16 intervals the old rate no longer counts.
        assert!(!codel.signals_congestion(Instant(700 * MS), Duration::ZERO, 0, 1500));
        let dropped: Vec<u64> = (4000..4300)
            .filter(|ms| standing(&mut codel, *ms))
            .collect();
        assert_eq!(&dropped[..2], [4100, 4200]);
    }

    /// Packets of 1000 bytes every `every` ns for `seconds` onto a link of 1 ms a packet: sojourn of each that left, and
    /// how many were dropped.
    fn overload(every: u64, seconds: u64) -> (Vec<Duration>, usize) {
        let (mut codel, mut queue) = (CoDel::new(TARGET, INTERVAL), Fifo::new());
        let (mut left, mut dropped, mut arrival) = (Vec::new(), 0, 0);
        for slot in 0..seconds * 1000 {
            let now = Instant(slot * MS);
            while arrival <= now.0 {
                queue.push(Instant(arrival), 1000, ());
                arrival += every;
            }
            while let Some((since, ..)) = queue.pop() {
                if !codel.signals_congestion(now, now - since, queue.bytes(), 1500) {
                    left.push(now - since);
                    break;
                }
                dropped += 1;
            }
        }
        (left, dropped)
    }

    #[test]
    fn the_standing_queue_of_a_constant_overload_is_brought_to_the_target() {
        // 2 % too much; without CoDel the queue would have grown to 400 ms after 20 s.
        let (left, dropped) = overload(980_000, 20);
        let last = &left[left.len() - 5000..];
        let mean = last.iter().map(|sojourn| sojourn.0).sum::<u64>() / 5000;
        assert!(mean < 2 * TARGET.0, "{mean}");
        // Dropped is the excess, less what the link was idle.
        assert!((300..=450).contains(&dropped), "{dropped}");
    }

    #[test]
    fn a_burst_shorter_than_an_interval_loses_nothing() {
        let (mut codel, mut queue) = (CoDel::new(TARGET, INTERVAL), Fifo::new());
        for _ in 0..100 {
            queue.push(Instant(0), 1000, ());
        }
        for slot in 0..100 {
            let (since, ..) = queue.pop().unwrap();
            assert!(!codel.signals_congestion(
                Instant(slot * MS),
                Instant(slot * MS) - since,
                queue.bytes(),
                1500
            ));
        }
    }

    #[test]
    fn marked_packets_count_like_dropped_ones() {
        let mut codel = CoDel::new(TARGET, Duration::ZERO);
        // With an interval of zero every standing packet is dropped or marked, and the count does not overflow.
        codel.count = u32::MAX;
        codel.entered_with = u32::MAX - 1;
        assert!((1..10).all(|ms| standing(&mut codel, ms)));
    }
}
