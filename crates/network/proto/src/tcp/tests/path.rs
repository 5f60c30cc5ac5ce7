//! Two ends and a path between them: a rate, a delay, a queue, and a hand that may drop, delay or double what passes.

use crate::tcp::{TcpConnection, TcpOptions, TcpReceived, TcpSegment, TcpState};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    Lost,
    Twice,
    Late(Duration),
}

/// A path of one rate and delay each way.
pub(super) struct Path<F> {
    pub(super) ends: [TcpConnection; 2],
    pub(super) now: Instant,
    pub(super) bit_s: u64,
    pub(super) delay: Duration,
    pub(super) queue: u64,
    /// Side that sends, how many it has sent, the segment.
    pub(super) hand: F,
    pub(super) counts: [usize; 2],
    pub(super) drops: u64,
    free_at: [Instant; 2],
    under_way: Vec<(Instant, u64, usize, TcpSegment)>,
    order: u64,
}

impl<F: FnMut(usize, usize, &TcpSegment) -> Fate> Path<F> {
    pub(super) fn new(options: [TcpOptions; 2], bit_s: u64, delay: Duration, hand: F) -> Self {
        let now = Instant(1_000_000_000);
        let dialling = TcpConnection::connect(now, options[0], (1000, 80), u32::MAX - 3000);
        let listening = TcpConnection::listen(now, options[1], 80, 77);
        Self {
            ends: [dialling, listening],
            now,
            bit_s,
            delay,
            queue: u64::MAX,
            hand,
            counts: [0; 2],
            drops: 0,
            free_at: [now; 2],
            under_way: Vec::new(),
            order: 0,
        }
    }

    fn send(&mut self, side: usize, segment: TcpSegment) {
        let time = Duration(u64::from(segment.bytes()) * 8_000_000_000 / self.bit_s);
        let count = self.counts[side];
        self.counts[side] += 1;
        let waiting = self.free_at[side].since(self.now).0 / time.0.max(1);
        let fate = (self.hand)(side, count, &segment);
        if waiting > self.queue || fate == Fate::Lost {
            self.drops += 1;
            return;
        }
        self.free_at[side] = self.free_at[side].max(self.now) + time;
        let late = if let Fate::Late(by) = fate {
            by
        } else {
            Duration::ZERO
        };
        for _ in 0..if fate == Fate::Twice { 2 } else { 1 } {
            self.order += 1;
            self.under_way.push((
                self.free_at[side] + self.delay + late,
                self.order,
                1 - side,
                segment,
            ));
        }
    }

    fn flush(&mut self) {
        for side in [0, 1] {
            while let Some(segment) = self.ends[side].poll(self.now) {
                self.send(side, segment);
            }
            #[cfg(test)]
            self.ends[side].check();
        }
    }

    /// Goes on to the next thing that happens; false when nothing can happen any more.
    pub(super) fn step(&mut self) -> bool {
        self.flush();
        let arrival = self
            .under_way
            .iter()
            .map(|(at, order, ..)| (*at, *order))
            .min();
        let alarm = self.ends.iter().filter_map(TcpConnection::deadline).min();
        match (arrival, alarm) {
            (Some((at, order)), alarm) if alarm.is_none_or(|alarm| at <= alarm) => {
                let place = self
                    .under_way
                    .iter()
                    .position(|entry| entry.1 == order)
                    .unwrap();
                let (_, _, side, segment) = self.under_way.swap_remove(place);
                self.now = at;
                self.ends[side].handle(at, &segment);
            }
            (_, Some(alarm)) => self.now = self.now.max(alarm),
            _ => return false,
        }
        true
    }

    /// Side 0 sends so many bytes and closes, side 1 takes them and closes. When the last byte was taken.
    pub(super) fn transfer(&mut self, bytes: u64) -> Instant {
        let (mut left, mut taken, mut done) = (bytes, 0, None);
        for _ in 0..20_000_000 {
            if left > 0
                && let Some(n) = self.ends[0].send(self.now, left)
            {
                left -= n;
            }
            if left == 0 && self.ends[0].state() == TcpState::Established {
                self.ends[0].close();
            }
            match self.ends[1].receive(self.now, u64::MAX) {
                TcpReceived::Bytes(n) => taken += n,
                TcpReceived::End if done.is_none() => {
                    done = Some(self.now);
                    self.ends[1].close();
                }
                _ => {}
            }
            assert!(taken <= bytes, "delivered {taken} of {bytes}");
            if !self.step() {
                break;
            }
        }
        assert_eq!((taken, left), (bytes, 0), "{:?}", self.ends);
        done.unwrap()
    }
}
