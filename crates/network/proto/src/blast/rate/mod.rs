//! The rate controller for paths beyond a local network: a pace that fills a path and leaves other flows their share.
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
use stackline_core::time::{Duration, Instant};

/// Packets of the first window (RFC 6928).
const FIRST: f64 = 10.0;
/// Packets of the smallest window.
const LEAST: f64 = 2.0;
/// The round trip assumed where not even the connection's set-up has measured one, in s.
const UNKNOWN: f64 = 0.1;
/// The share of packets that may be lost without a reaction.
const LOSS: f64 = 0.03;
/// Lost packets beyond that share that still count as chance: an eighth of the window, within these bounds.
const CHANCE: (f64, f64) = (2.0, 8.0);
/// The factor of the window after a loss that a full queue explains (RFC 9438), and the least factor after a delay.
const BETA: f64 = 0.7;
/// The least factor of the window, however much is lost.
const LEFT: f64 = 0.25;
/// The window is not reduced below this share of what still arrives.
const ARRIVING: f64 = 0.9;
/// A queue is drained a little further than it seems long, since the base round trip may have been measured above a
/// standing queue.
const DRAIN: f64 = 0.95;
/// The number of cuts that emptied no queue, after which another flow is assumed to fill it.
const IN_VAIN: u32 = 2;
/// While starting: the answers after which the delay is judged before the round trip ends.
const SAMPLES: u32 = 4;
/// While competing: the packets added per second for each square root of the window's packets. CUBIC keeps the larger
/// part.
const BESIDE: f64 = 1.5;
/// The most that is added to a window in a round trip, as a share of it (but always a packet).
const STEEPEST: f64 = 1.0 / 24.0;
/// The windows that all blasts in flight hold together: a blast of which something is lost stays for two or three round
/// trips.
const WINDOWS: f64 = 4.0;
/// The number of round trips without any answer that counts as silence.
const SILENCE: f64 = 2.0;
/// How often in a row silence halves the window. Later only single requests are sent, and resending the rest would take
/// too long.
const SILENCES: u32 = 4;

/// The content of the answer to a round.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// When the round's request was sent.
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
    /// The window doubles until a queue or losses stop it.
    Starting,
    /// The queue is kept short.
    Yielding,
    /// Another flow keeps the queue long.
    Competing,
}

/// The rate controller of one sender. All its bytes are counted as the sender counts them, in [`Rate::sent`] and
/// [`Answered::delivered`] alike.
#[derive(Clone, Debug)]
pub struct Rate {
    packet: f64,
    /// The highest rate that the user allows, in bytes/s.
    ceiling: f64,
    /// The target for bytes in flight.
    window: f64,
    path: Option<BlastPathRtt>,
    /// The round trip to pace by until the first answer, in s.
    first_trip: f64,
    bucket: BlastTokenBucket,
    phase: Phase,
    round: BlastRttRound,
    /// The arrival rates of the last two round trips, in bytes/s.
    speeds: [f64; 2],
    /// The packets added to the window last.
    step: f64,
    /// Cuts in a row that emptied no queue.
    in_vain: u32,
    /// Packets lost beyond the tolerated share.
    excess: f64,
    delivered: u64,
    last_answer: Instant,
    /// How often in a row silence has halved the window.
    silences: u32,
}

impl Rate {
    /// A controller for packets of `packet` bytes, at most at `ceiling` bit/s. Until the first answer it paces by the round
    /// trip of the connection's set-up if that is given (RFC 9002, section 7.7), otherwise by 100 ms.
    #[must_use]
    pub fn new(packet: u32, ceiling: Option<f64>, set_up: Option<Duration>) -> Self {
        let packet = f64::from(packet.max(1));
        Self {
            packet,
            ceiling: ceiling
                .map_or(f64::INFINITY, |ceiling| ceiling / 8.0)
                .max(1.0),
            window: FIRST * packet,
            path: None,
            first_trip: set_up.map_or(UNKNOWN, |trip| trip.seconds().max(1e-6)),
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

    /// The most bytes that a blast should have, in whole packets, when `flight` blasts may be in flight: small enough
    /// that answers come often, large enough that the pace alone limits the sender and not the number of blasts.
    #[must_use]
    pub fn blast(&self, flight: u32) -> u64 {
        let packets = self.pace() * self.trip() * WINDOWS / f64::from(flight.max(1)) / self.packet;
        (packets as u64).max(1) * self.packet as u64
    }

    /// The pace in bytes/s.
    fn pace(&self) -> f64 {
        (self.window / self.trip()).min(self.ceiling)
    }

    fn trip(&self) -> f64 {
        self.path
            .as_ref()
            .map_or(self.first_trip, BlastPathRtt::smoothed)
    }

    /// Handles the answer to a round.
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

    /// Counts losses. Returns the factor of the window if they are more than chance.
    fn loses(&mut self, sample: &Answered) -> Option<f64> {
        let (packets, lost) = (
            f64::from(sample.packets.max(sample.lost).max(1)),
            f64::from(sample.lost),
        );
        // Losses at the tolerated share cancel out; only a higher rate adds up.
        self.excess = (self.excess + lost - LOSS * packets).max(0.0);
        let chance = (self.window / self.packet / 8.0).clamp(CHANCE.0, CHANCE.1);
        (self.excess > chance).then(|| (1.0 - lost / packets).clamp(LEFT, BETA))
    }

    /// Reacts to too many losses: a queue overflowed, or the path has become slower.
    fn overflow(&mut self, now: Instant, mut path: BlastPathRtt, left: f64) {
        path.overflow();
        self.path = Some(path);
        let window = (self.window * left).max(self.arriving(&path) * ARRIVING);
        self.cut(now, window);
    }

    /// The window that carries the arrival rate without a queue.
    fn arriving(&self, path: &BlastPathRtt) -> f64 {
        self.speeds[0].max(self.speeds[1]) * path.base()
    }

    /// Reduces the window; answers to earlier packets are not judged.
    fn cut(&mut self, now: Instant, window: f64) {
        self.window = window.min(self.window).max(LEAST * self.packet);
        if self.phase == Phase::Starting {
            self.phase = Phase::Yielding;
        }
        (self.step, self.excess) = (0.0, 0.0);
        self.round = BlastRttRound::after_cut(now, self.delivered);
    }

    /// Judges a round trip that is over.
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
            // The pace did not limit the sender, so a higher pace would be untested.
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

    /// Handles a round that was not answered in time. Its request may just be lost: it counts as silence only if no
    /// other round was answered either.
    pub fn silent(&mut self, now: Instant) {
        let since = self.last_answer.max(self.round.begun);
        if now.since(since).seconds() > SILENCE * self.trip() && self.silences < SILENCES {
            self.silences += 1;
            self.cut(now, self.window / 2.0);
            self.phase = Phase::Starting;
        }
    }

    /// The bytes that may be sent now, at least a packet.
    ///
    /// # Errors
    /// The instant of the next burst, when nothing may be sent now.
    pub fn may_send(&mut self, now: Instant) -> Result<u64, Instant> {
        let pace = self.pace();
        self.bucket.fill(now, pace);
        self.bucket.may_take(now, pace)
    }

    /// Notes that `bytes` bytes were sent.
    pub fn sent(&mut self, _: Instant, bytes: u64) {
        self.bucket.take(bytes as f64);
        self.round.sent += bytes as f64;
    }
}
