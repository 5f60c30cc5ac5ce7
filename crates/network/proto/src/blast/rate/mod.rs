//! How fast packets leave beyond a local network: a pace that fills a path and leaves others their part of it.
//!
//! Answers are few, some for each round trip, so nothing here counts single packets. The controller keeps a **window**,
//! the target for bytes in flight, and paces at window / round trip; pacing keeps a late answer from causing a burst.
//! Once a round trip it judges the answers: the least delay that the queue added (the least, since scheduling and one's
//! own bursts only add), and the losses.
//!
//! | observation | reaction | after |
//! | --- | --- | --- |
//! | nothing yet | doubles the window each round trip | slow start, RFC 5681 |
//! | while starting, a queue or too much loss | takes what arrived in the round trip as the window | BBR |
//! | a queue below the target | adds to the window: one packet, then two, three, ... | Copa's velocity |
//! | a queue above half the target | adds half as much each time | |
//! | a queue above the target | window x base / round trip, which empties the queue | Copa, LEDBAT++ |
//! | three such cuts that empty no queue | another flow fills it: behaves like TCP until the queue is gone | Copa's mode switch |
//! | in that mode, a loss | window x 0.7 | RFC 9438 |
//! | losses clearly above 3 % | window x the share that arrived | BBRv3, at 2 % |
//! | silence | window / 2, four times at most, and starts again from there | RFC 5681 |
//!
//! The target is an eighth of the base round trip between 4 and 16 ms (HyStart++, RFC 9406), or half of the delay at
//! which the queue overflowed recently. The base is the least round trip of 5 to 10 s (BBR), so a longer route is
//! accepted in time. All flows add the same and shrink in proportion, so they become equal (Chiu and Jain 1989). A loss
//! below the threshold is ignored unless a queue filled by others explains it, so random loss does not slow the sender
//! down.
//!
//! Copa: Arun and Balakrishnan, NSDI 2018. BBR: Cardwell and others, CACM 2017; BBRv3: draft-ietf-ccwg-bbr. LEDBAT++:
//! draft-irtf-iccrg-ledbat-plus-plus. Left out: congestion marks (RFC 3168), which datagram carriers do not show.

mod bucket;
mod path_rtt;
mod rtt_round;
#[cfg(test)]
mod tests;

use bucket::BlastTokenBucket;
use path_rtt::BlastPathRtt;
use rtt_round::BlastRttRound;
use stackline_core::time::Instant;

/// Packets of the first window (RFC 6928), and of the smallest.
const FIRST: f64 = 10.0;
const LEAST: f64 = 2.0;
/// Round trip assumed before there is one, in seconds.
const UNKNOWN: f64 = 0.1;
/// Share of packets that may be lost without a reaction.
const LOSS: f64 = 0.03;
/// Packets beyond that share that are still chance: an eighth of the window within these bounds.
const CHANCE: (f64, f64) = (2.0, 8.0);
/// What is left of the window after a loss that a full queue explains (RFC 9438), and after any delay at least.
const BETA: f64 = 0.7;
/// However much is lost, at least a quarter of the window is left, and nine tenths of what still arrives.
const LEFT: f64 = 0.25;
const ARRIVING: f64 = 0.9;
/// A queue is drained a little further than it seems long, since the base may have been measured above a standing queue.
const DRAIN: f64 = 0.95;
/// Cuts that emptied no queue, after which another flow is assumed to fill it.
const IN_VAIN: u32 = 2;
/// Answers after which the delay is used before the round trip ends, while starting.
const SAMPLES: u32 = 4;
/// Beside others, packets added in a second for each root of the window's packets: CUBIC keeps the larger part.
const BESIDE: f64 = 1.5;
/// Most that is added to a window in a round trip, as a share of it (but a packet always).
const STEEPEST: f64 = 1.0 / 24.0;
/// Windows that all blasts in flight hold together: one of which something is lost stays for two or three round trips.
const WINDOWS: f64 = 4.0;
/// Round trips without any answer that count as silence.
const SILENCE: f64 = 2.0;
/// How often in a row silence halves the window: later only single requests leave, and resending the rest would take
/// too long.
const SILENCES: u32 = 4;

/// The content of the answer to a round.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// When the round's request left.
    pub sent: Instant,
    /// Bytes that have arrived by now.
    pub delivered: u64,
    /// Packets of the round.
    pub packets: u32,
    /// How many of them are missing; more than the round had if earlier requests were never answered.
    pub lost: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Doubles until a queue or losses stop it.
    Starting,
    /// Keeps the queue short.
    Yielding,
    /// Somebody else keeps it long.
    Competing,
}

/// The rate controller of one sender. All its bytes are counted as the sender counts them, in `sent` and `delivered` alike.
#[derive(Clone, Debug)]
pub struct Rate {
    packet: f64,
    /// Bytes a second that the user allows.
    ceiling: f64,
    /// Target for bytes in flight.
    window: f64,
    path: Option<BlastPathRtt>,
    bucket: BlastTokenBucket,
    phase: Phase,
    round: BlastRttRound,
    /// Bytes a second that arrived in the last two round trips.
    speeds: [f64; 2],
    /// Packets added last.
    step: f64,
    in_vain: u32,
    /// Packets lost beyond the share that may be.
    excess: f64,
    delivered: u64,
    last_answer: Instant,
    silences: u32,
}

impl Rate {
    /// For packets of `packet` bytes, at `ceiling` bit/s at most.
    #[must_use]
    pub fn new(packet: u32, ceiling: Option<f64>) -> Self {
        let packet = f64::from(packet.max(1));
        Self {
            packet,
            ceiling: ceiling
                .map_or(f64::INFINITY, |ceiling| ceiling / 8.0)
                .max(1.0),
            window: FIRST * packet,
            path: None,
            bucket: BlastTokenBucket::new(packet, FIRST * packet),
            phase: Phase::Starting,
            round: BlastRttRound::default(),
            speeds: [0.0; 2],
            step: 0.0,
            in_vain: 0,
            excess: 0.0,
            delivered: 0,
            last_answer: Instant(0),
            silences: 0,
        }
    }

    /// The rate in bit/s.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.pace() * 8.0
    }

    /// Bytes that a blast should have at most, whole packets, where so many may be in flight: small enough that answers
    /// come often, large enough that the pace alone decides, not the number of blasts.
    #[must_use]
    pub fn blast(&self, flight: u32) -> u64 {
        let packets = self.pace() * self.trip() * WINDOWS / f64::from(flight.max(1)) / self.packet;
        (packets as u64).max(1) * self.packet as u64
    }

    /// Bytes a second.
    fn pace(&self) -> f64 {
        (self.window / self.trip()).min(self.ceiling)
    }

    fn trip(&self) -> f64 {
        self.path.as_ref().map_or(UNKNOWN, BlastPathRtt::smoothed)
    }

    /// A round was answered.
    pub fn answered(&mut self, now: Instant, sample: Answered) {
        let trip = now.since(sample.sent).seconds().max(1e-6);
        let path = self.measure(now, trip, sample.sent);
        self.delivered = self.delivered.max(sample.delivered);
        (self.last_answer, self.silences) = (now, 0);
        if !self.round.stale {
            self.round.note(trip, sample.lost);
            if let Some(left) = self.loses(&sample) {
                return self.overflow(now, path, left);
            }
        }
        let queued = self.round.least - path.base();
        let early = self.phase == Phase::Starting
            && self.round.samples >= SAMPLES
            && queued > path.target();
        if early
            || (sample.sent >= self.round.begun
                && now.since(self.round.begun).seconds() >= path.smoothed())
        {
            self.judge(now, &path);
        }
    }

    fn measure(&mut self, now: Instant, trip: f64, sent: Instant) -> BlastPathRtt {
        if self.path.is_none() {
            self.round.begun = sent;
        }
        let path = self
            .path
            .get_or_insert_with(|| BlastPathRtt::new(now, trip));
        path.sample(now, trip);
        *path
    }

    /// Counts losses; what is left of a window where they are more than chance.
    fn loses(&mut self, sample: &Answered) -> Option<f64> {
        let (packets, lost) = (
            f64::from(sample.packets.max(sample.lost).max(1)),
            f64::from(sample.lost),
        );
        self.excess = (self.excess + lost - LOSS * packets).max(0.0);
        let chance = (self.window / self.packet / 8.0).clamp(CHANCE.0, CHANCE.1);
        (self.excess > chance).then(|| (1.0 - lost / packets).clamp(LEFT, BETA))
    }

    /// Too much is lost: a queue that short overflows, or the path has become narrow.
    fn overflow(&mut self, now: Instant, mut path: BlastPathRtt, left: f64) {
        path.overflow();
        self.path = Some(path);
        let window = (self.window * left).max(self.arriving(&path) * ARRIVING);
        self.cut(now, window);
    }

    /// The window that holds what arrives, without a queue.
    fn arriving(&self, path: &BlastPathRtt) -> f64 {
        self.speeds[0].max(self.speeds[1]) * path.base()
    }

    /// A smaller window; answers to earlier packets do not count for it.
    fn cut(&mut self, now: Instant, window: f64) {
        self.window = window.min(self.window).max(LEAST * self.packet);
        if self.phase == Phase::Starting {
            self.phase = Phase::Yielding;
        }
        (self.step, self.excess) = (0.0, 0.0);
        self.round = BlastRttRound::after_cut(now, self.delivered);
    }

    /// A round trip is over.
    fn judge(&mut self, now: Instant, path: &BlastPathRtt) {
        let round = self.round;
        self.speeds = [
            round.speed(now, self.delivered, path.base()),
            self.speeds[0],
        ];
        self.round = BlastRttRound::new(now, self.delivered);
        if round.stale {
            return;
        }
        let queued = round.least - path.base();
        if queued < path.target() / 2.0 {
            self.in_vain = 0;
            if self.phase == Phase::Competing {
                self.phase = Phase::Yielding;
            }
        }
        match self.phase {
            Phase::Competing if round.lost > 0 => self.cut(now, self.window * BETA),
            Phase::Starting if queued > path.target() => self.cut(now, self.arriving(path)),
            Phase::Yielding if queued > path.target() => self.drain(now, path.base() / round.least),
            _ => self.grow(now, &round, path, queued),
        }
    }

    fn drain(&mut self, now: Instant, share: f64) {
        self.in_vain += 1;
        if self.in_vain > IN_VAIN {
            self.phase = Phase::Competing;
        }
        self.cut(now, self.window * (share * DRAIN).max(BETA));
    }

    fn grow(&mut self, now: Instant, round: &BlastRttRound, path: &BlastPathRtt, queued: f64) {
        let could = self.pace() * now.since(round.begun).seconds();
        if round.sent < could / 2.0 || self.window >= self.ceiling * path.smoothed() {
            // The pace did not limit it, so a higher one would be untested.
            return;
        }
        let packets = self.window / self.packet;
        let added = match self.phase {
            Phase::Starting => packets,
            Phase::Competing => (libm::sqrt(packets) * path.smoothed() * BESIDE).max(1.0),
            Phase::Yielding => {
                let short = queued < path.target() / 2.0;
                self.step = if short {
                    self.step + path.ease()
                } else {
                    self.step / 2.0
                };
                self.step.min(packets * STEEPEST).max(1.0)
            }
        };
        self.window += added * self.packet;
    }

    /// A round was not answered in time. Its request may just be lost: it is silence if no other was answered either.
    pub fn silent(&mut self, now: Instant) {
        let since = self.last_answer.max(self.round.begun);
        if now.since(since).seconds() > SILENCE * self.trip() && self.silences < SILENCES {
            self.silences += 1;
            self.cut(now, self.window / 2.0);
            self.phase = Phase::Starting;
        }
    }

    /// How many bytes may leave now, at least a packet, or when the next burst may.
    ///
    /// # Errors
    /// The moment, when none may leave now.
    pub fn may_send(&mut self, now: Instant) -> Result<u64, Instant> {
        let pace = self.pace();
        self.bucket.fill(now, pace);
        self.bucket.may_take(now, pace)
    }

    /// So many bytes have left.
    pub fn sent(&mut self, _: Instant, bytes: u64) {
        self.bucket.take(bytes as f64);
        self.round.sent += bytes as f64;
    }
}
