//! The send window of one connection: how many bytes it may hold (handed to the transport and not acknowledged) before the next part of a
//! block begins, and how large a part is. A newer list can no longer discard what the connection holds, and bytes beyond what the path
//! carries in a round trip only wait in queues of the network.
//!
//! A part is what the path carries in two milliseconds, so on a fast path every block is one part. A fast path may hold what it carries in
//! two round trips and a millisecond, plus a little that waits to leave. On a slow path a part takes long and each waiting byte delays what
//! a newer list asks for, so there the bound is hardly more than one round trip.
//!
//! The window knows no transport: its caller reports what was handed over and what was acknowledged. The idea is BBR's bound on the data in
//! flight (Cardwell et al. 2016), applied to whole parts.

use stackline_core::time::{Duration, Instant};

/// Bytes that may wait to leave, in addition to those in flight: what the path carries in a millisecond, but within this minimum and
/// maximum.
const WAITING: (u64, u64) = (4 << 10, 16 << 10);
/// A part of a block is what the path carries in this time (ns).
const PART: Duration = Duration(2_000_000);
/// The smallest part, bytes.
const LEAST_PART: u64 = 4 << 10;
/// The bound before a rate is known, bytes.
const FIRST: u64 = 64 << 10;
/// How much may be held beyond what the path carries in its least round trip, in eighths of that: (fast path, in between, slow path). Eight
/// while round trips of a fast path are close to their minimum, so that a higher rate is found. On a slow path where packets already queue,
/// between one and two, by how much the round trips deviate: much deviation means that packets wait for other reasons. Two otherwise.
const BEYOND: (u64, u64, u64) = (8, 2, 1);
/// The bound also includes what the path carries in this time (ns), because neither end is scheduled at once.
const SCHEDULING: Duration = Duration(1_000_000);
/// The shortest time over which a rate is measured (ns); one least round trip if that is longer.
const LEAST: Duration = Duration(5_000_000);
/// The same for a slow path (ns). It is longer because competing flows let a connection's parts pass at one moment and hold them up at the
/// next.
const LEAST_SLOW: Duration = Duration(40_000_000);
/// How many of the newest rates are kept. The largest counts.
const RATES: usize = 3;
/// The shortest and the longest time until [`BlockSendWindow::look_again`] wants another look (ns).
const LOOKS: (Duration, Duration) = (Duration(100_000), Duration(10_000_000));

/// The transport's estimates of the round-trip time of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// The smoothed round-trip time.
    pub usual: Duration,
    /// The shortest round-trip time.
    pub least: Duration,
    /// The mean deviation from the smoothed time.
    pub deviation: Duration,
}

/// When the next part of a block may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartStart {
    /// Now.
    Now,
    /// When the transport has room.
    Room,
    /// Not before this time has passed; then ask again.
    Later(Duration),
}

/// Bytes of the next part of a block of which `left` bytes are left. `part` is the size of a part, `None` if blocks are sent whole.
#[must_use]
pub fn part_length(left: u64, part: Option<u64>) -> u64 {
    // A remainder of less than half a part is not worth a part of its own: it is added to this one.
    part.filter(|part| left >= part + part / 2).unwrap_or(left)
}

/// The send window of one connection.
#[derive(Clone, Debug)]
pub struct BlockSendWindow {
    /// Bytes handed to the transport so far.
    handed: u64,
    /// Bytes of `handed` that are known to be acknowledged.
    acked: u64,
    /// The transport's count of acknowledged bytes before anything was handed over.
    first_acked: u64,
    /// The start of the current rate measurement, and the bytes acknowledged by then.
    measured: Option<(Instant, u64)>,
    /// Whether, since the measurement began, everything was acknowledged while the bound held back more. The path then carries more than
    /// was measured.
    starved: bool,
    /// The newest measured rates, bytes per second; 0 where there is none yet.
    rates: [u64; RATES],
    /// The index in `rates` of the next measurement.
    next_rate: usize,
    /// Bytes that may be held: the next part may begin while fewer are.
    bound: u64,
}

impl BlockSendWindow {
    /// A window for a transport that counts `first_acked` bytes as acknowledged before anything is handed over.
    #[must_use]
    pub const fn new(first_acked: u64) -> Self {
        let (rates, next_rate) = ([0; RATES], 0);
        Self {
            handed: 0,
            acked: 0,
            first_acked,
            measured: None,
            starved: false,
            rates,
            next_rate,
            bound: FIRST,
        }
    }

    /// Records that this many bytes were handed to the transport.
    pub const fn handed(&mut self, bytes: u64) {
        self.handed += bytes;
    }

    /// The size of a part, bytes. `None` until a rate is known: blocks are then sent whole.
    #[must_use]
    pub fn part(&self) -> Option<u64> {
        let rate = self.rate();
        (rate > 0).then(|| bytes(rate, PART).max(LEAST_PART))
    }

    /// When the next part of a block may begin. If the window is full, `look` is called first: it should call [`BlockSendWindow::look`]
    /// with fresh figures of the transport.
    pub fn next_part(&mut self, has_room: bool, look: impl FnOnce(&mut Self)) -> PartStart {
        if !self.may_begin() {
            look(self);
        }
        match self.may_begin() {
            true if has_room => PartStart::Now,
            true => PartStart::Room,
            false => PartStart::Later(self.look_again()),
        }
    }

    /// Whether the next part of a block may begin, by the last known figures.
    #[must_use]
    pub const fn may_begin(&self) -> bool {
        self.held() < self.bound
    }

    /// Records that there was nothing to hand over. The current measurement is abandoned: acknowledgements of an idle connection do not
    /// measure the path.
    pub const fn idle(&mut self) {
        (self.measured, self.starved) = (None, false);
    }

    /// Takes the transport's count of acknowledged bytes and its round-trip times, and computes the rate and the bound anew once the
    /// measurement has lasted long enough.
    pub fn look(&mut self, now: Instant, acked: u64, trips: RoundTrips) {
        let least = trips.least;
        let held_back = !self.may_begin();
        self.acked = acked.saturating_sub(self.first_acked).min(self.handed);
        let (since, before) = *self.measured.get_or_insert((now, self.acked));
        // Held back by the old figure, empty by the new one: only the bound limited it.
        self.starved |= held_back && self.held() == 0;
        let span = now.since(since);
        let shared = self.is_slow() && !self.starved;
        if span < least.max(if shared { LEAST_SLOW } else { LEAST }) {
            return;
        }
        // A connection that only this bound held back may carry at least twice as much.
        let carried = carried(self.acked - before, span);
        self.rates[self.next_rate] = if self.starved {
            carried.saturating_mul(2)
        } else {
            carried
        };
        self.starved = false;
        self.next_rate = (self.next_rate + 1) % RATES;
        self.measured = Some((now, self.acked));
        // The threshold is below what `BEYOND` adds, so that the delay which this window itself causes on a slow path keeps counting as
        // queueing.
        let waits = trips.usual.0 > least.0 + least.0 / 8 + SCHEDULING.0;
        let beyond = match (self.is_slow(), waits) {
            (false, false) => BEYOND.0 * least.0 / 8,
            (true, true) => trips
                .deviation
                .0
                .clamp(BEYOND.2 * least.0 / 8, BEYOND.1 * least.0 / 8),
            _ => BEYOND.1 * least.0 / 8,
        };
        // A slow path gets no allowance for scheduling: the bytes that wait to leave already cover it.
        let beside = if self.is_slow() {
            Duration::ZERO
        } else {
            SCHEDULING
        };
        let span = Duration(least.0 + beyond + beside.0);
        self.bound = bytes(self.rate(), SCHEDULING)
            .clamp(WAITING.0, WAITING.1)
            .saturating_add(bytes(self.rate(), span));
    }

    /// After what time enough is acknowledged for another part, if the path keeps its rate.
    #[must_use]
    pub fn look_again(&self) -> Duration {
        // One byte more: `may_begin` asks for less than the bound, not for as much.
        let over = self.held().saturating_sub(self.bound) + 1;
        let ns = u128::from(over) * 1_000_000_000 / u128::from(self.rate().max(1));
        Duration(u64::try_from(ns).unwrap_or(u64::MAX)).clamp(LOOKS.0, LOOKS.1)
    }

    /// Whether the path carries in a millisecond less than the most that may wait to leave.
    fn is_slow(&self) -> bool {
        let rate = self.rate();
        rate > 0 && bytes(rate, SCHEDULING) < WAITING.1
    }

    /// Bytes handed over and not acknowledged.
    const fn held(&self) -> u64 {
        self.handed - self.acked
    }

    /// The largest of the newest rates, bytes per second; 0 if none is known.
    fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }
}

/// The bytes that a rate (bytes per second) carries in a time.
fn bytes(rate: u64, span: Duration) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(span.0) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// The rate, in bytes per second, of that many bytes in a time.
fn carried(bytes: u64, span: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(span.0.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 48 << 10;

    fn ms(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    const fn trips(usual: Duration, least: Duration) -> RoundTrips {
        RoundTrips {
            usual,
            least,
            deviation: Duration::ZERO,
        }
    }

    /// A path that carries so many bytes a millisecond and answers after `least`: how long it takes blocks at last, in ms, when
    /// `seconds` of them were handed over as the bound allows.
    fn waits(a_ms: u64, least: u64, seconds: u64) -> u64 {
        let mut flight = BlockSendWindow::new(1);
        let (mut handed, mut carried, mut acked) =
            (0_u64, 0_u64, alloc::collections::VecDeque::new());
        for now in 0..seconds * 1000 {
            carried = (carried + a_ms).min(handed);
            acked.push_back(carried);
            let known = if acked.len() as u64 > least {
                acked.pop_front().unwrap_or(0)
            } else {
                0
            };
            let queued = (handed - carried) / a_ms;
            flight.look(
                Instant(0) + ms(now),
                1 + known,
                trips(ms(least + queued), ms(least)),
            );
            while flight.may_begin() {
                let part = flight.part().map_or(BLOCK, |part| part.min(BLOCK));
                flight.handed(part);
                handed += part;
            }
        }
        (handed - carried) / a_ms
    }

    #[test]
    fn a_path_is_used_and_its_queues_stay_short() {
        // 50 Mbit/s and 1 Gbit/s; 5 and 40 ms. In the queues are two blocks or three parts at most, and a quarter of a round trip.
        for (a_ms, least) in [(6250, 5), (6250, 40), (125_000, 5), (125_000, 40)] {
            let queued = waits(a_ms, least, 5);
            let most = if a_ms > 16_384 {
                2 * BLOCK / a_ms + least / 4 + 2
            } else {
                least / 4 + 6
            };
            assert!(
                (1..=most).contains(&queued),
                "{a_ms} bytes a ms, {least} ms: {queued} of {most} ms in queues"
            );
        }
    }

    #[test]
    fn parts_are_what_a_path_carries_in_two_milliseconds() {
        let part = |a_ms: u64| {
            let mut flight = BlockSendWindow::new(0);
            assert_eq!(flight.part(), None);
            flight.handed(a_ms * 10);
            flight.look(Instant(0), 0, trips(ms(5), ms(5)));
            flight.handed(a_ms * 10);
            flight.look(Instant(0) + ms(10), a_ms * 10, trips(ms(5), ms(5)));
            flight.part()
        };
        assert_eq!(
            (part(100), part(2500), part(125_000)),
            (Some(LEAST_PART), Some(5000), Some(250_000))
        );
    }

    #[test]
    fn round_trips_of_many_lengths_are_no_queue() {
        let bound = |deviation: u64| {
            let mut flight = BlockSendWindow::new(0);
            flight.handed(200_000);
            flight.look(Instant(0), 0, trips(ms(40), ms(40)));
            flight.look(
                Instant(0) + ms(40),
                100_000,
                RoundTrips {
                    usual: ms(60),
                    least: ms(40),
                    deviation: ms(deviation),
                },
            );
            flight.bound
        };
        // 2.5 MB a second, 4 KiB; a round trip, and an eighth of one, or up to a quarter.
        assert_eq!(
            (bound(1), bound(8), bound(30)),
            (4096 + 112_500, 4096 + 120_000, 4096 + 125_000)
        );
    }

    #[test]
    fn the_last_part_takes_what_would_hardly_be_worth_one() {
        let length = |left| part_length(left, Some(4096));
        assert_eq!(
            [10_000, 6144, 6143, 4096, 0].map(length),
            [4096, 4096, 6143, 4096, 0]
        );
        assert_eq!(part_length(10_000, None), 10_000);
    }

    #[test]
    fn a_part_begins_when_the_path_and_the_transport_have_room() {
        let mut window = BlockSendWindow::new(0);
        let unseen = |_: &mut BlockSendWindow| panic!("nothing has to be traced");
        assert_eq!(window.next_part(true, unseen), PartStart::Now);
        assert_eq!(window.next_part(false, unseen), PartStart::Room);
        window.handed(FIRST);
        assert_eq!(window.next_part(true, |_| ()), PartStart::Later(LOOKS.1));
        let all =
            |window: &mut BlockSendWindow| window.look(Instant(0), FIRST, trips(ms(1), ms(1)));
        assert_eq!(window.next_part(true, all), PartStart::Now);
    }

    #[test]
    fn what_is_held_bounds_what_begins() {
        let mut flight = BlockSendWindow::new(500);
        flight.look(Instant(0), 500, trips(ms(10), ms(10)));
        assert!(flight.may_begin());
        flight.handed(FIRST);
        assert!(!flight.may_begin());
        // 40,000 bytes in 10 ms: bound is 4 KiB and those of 12.5 ms.
        flight.look(Instant(0) + ms(10), 500 + 40_000, trips(ms(10), ms(10)));
        assert_eq!(
            (flight.bound, flight.held()),
            (WAITING.0 + 50_000, FIRST - 40_000)
        );
        // What comes from before it is no more than was handed over.
        flight.look(Instant(0) + ms(20), 1 << 40, trips(ms(10), ms(10)));
        assert_eq!(flight.held(), 0);
    }

    #[test]
    fn pauses_say_nothing_of_the_path() {
        let mut flight = BlockSendWindow::new(0);
        flight.handed(BLOCK);
        flight.look(Instant(0), 0, trips(ms(1), ms(1)));
        flight.look(Instant(0) + ms(5), 40_000, trips(ms(1), ms(1)));
        let bound = flight.bound;
        flight.idle();
        flight.handed(BLOCK);
        flight.look(Instant(0) + ms(1000), BLOCK, trips(ms(1), ms(1)));
        assert_eq!(flight.bound, bound);
    }

    #[test]
    fn it_looks_again_when_there_may_be_room() {
        let mut flight = BlockSendWindow::new(0);
        flight.look(Instant(0), 0, trips(ms(5), ms(5)));
        flight.handed(60_000);
        flight.look(Instant(0) + ms(5), 20_000, trips(ms(20), ms(5)));
        // 4 MB a second: 4 KiB, 22,500 of a path that is queued up; 40,000 are held.
        assert_eq!(flight.look_again(), Duration((40_000 - 26_596 + 1) * 250));
    }

    #[test]
    fn a_rate_that_was_low_for_a_while_does_not_hold_a_fast_path_back() {
        let (least, fast) = (Duration(50_000), 2_000); // bytes a microsecond
        let mut flight = BlockSendWindow::new(0);
        let (mut now, mut handed, mut done) = (Instant(0), 0_u64, [Instant(0); 2]);
        let mut carry =
            |flight: &mut BlockSendWindow, until: u64, rate: u64, done: &mut Instant| {
                while handed < until {
                    while flight.may_begin() {
                        flight.handed(BLOCK);
                        handed += BLOCK;
                        *done = (*done).max(now) + Duration(BLOCK * 1000 / rate);
                    }
                    now += flight.look_again();
                    let left = done.since(now).0 * rate / 1000;
                    flight.look(now, handed.saturating_sub(left), trips(least, least));
                }
                now
            };
        let slow = carry(&mut flight, 10 << 20, 20, &mut done[0]);
        let after = carry(&mut flight, 500 << 20, fast, &mut done[1]);
        let seconds = after.since(slow).seconds();
        assert!(seconds < 0.6, "490 MiB at 2 GB/s took {seconds} s");
    }
}
