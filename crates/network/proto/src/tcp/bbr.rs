//! BBR as in Linux (version 1; Cardwell et al. 2016, "BBR: congestion-based congestion control"). A model of the path,
//! the largest delivery rate of ten round trips and the least round trip of ten seconds, sets the pace and the window;
//! losses do not. Left out: the estimator of policers, which acts from a loss of a fifth on.

use super::congestion::INITIAL_WINDOW;
use super::delivery_rate::TcpRateSample;
use stackline_core::time::{Duration, Instant};

/// The gain of pace and window in startup: 2/ln 2.
const HIGH_GAIN: f64 = 2.885;
/// The gain of the pace while the queue of startup is drained.
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// The window in multiples of what the path holds.
const WINDOW_GAIN: f64 = 2.0;
/// The gains of the pace while BBR probes for a higher rate, one round trip each.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The path counts as full when [`FULL_ROUNDS`] round trips have raised the rate by less than this factor.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// The least window in segments, also used while the round trip is probed.
const LEAST_WINDOW: u32 = 4;
/// The round trips over which the largest rate is taken.
const RATE_ROUNDS: u64 = 10;
/// How long a least round trip is valid; then it is probed.
const TRIP_FILTER: Duration = Duration(10_000_000_000);
/// How long the window stays small to probe the round trip.
const PROBE_TRIP: Duration = Duration(200_000_000);
/// The pace stays 1 % below the rate.
const MARGIN: f64 = 0.99;
/// Aggregated acknowledgements are measured over five to ten round trips.
const EXTRA_ROUNDS: u32 = 5;
/// The window grows for them by at most what the rate delivers in this time, s.
const EXTRA_S: f64 = 0.1;
/// Below this pace (bit/s) one segment is sent at a time, else at least two: what leaves in about a millisecond.
const SLOW_BIT_S: f64 = 1.2e6;
/// The most segments of a burst.
const MOST_BURST: u32 = 44;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeRate,
    ProbeTrip,
}

/// The state of the sender when an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct BbrInput {
    pub(super) window: u32,
    pub(super) in_flight: u32,
    /// Segments in flight before this acknowledgement.
    pub(super) prior_in_flight: u32,
    pub(super) mss: u32,
    /// Segments delivered in all.
    pub(super) delivered: u64,
    /// The sender is in recovery.
    pub(super) recovers: bool,
    /// The sender is in the phase after a time-out.
    pub(super) timed_out: bool,
    /// Segments newly reported as arrived.
    pub(super) arrived: u32,
    /// Segments newly found lost.
    pub(super) lost: u32,
    /// The round-trip sample of this acknowledgement.
    pub(super) trip: Option<Duration>,
}

/// The BBR model of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Bbr {
    mode: Mode,
    /// The three largest rates (segments/s), falling, with the round trip in which each was measured; the newest is
    /// last.
    rates: [(u64, f64); 3],
    rounds: u64,
    round_start: bool,
    round_ends: u64,
    least_trip: Option<Duration>,
    least_trip_at: Instant,
    probe_trip_until: Option<Instant>,
    probe_trip_round: bool,
    pacing_gain: f64,
    window_gain: f64,
    cycle: usize,
    cycle_at: Instant,
    full_rate: f64,
    full_rounds: u32,
    full: bool,
    prior_window: u32,
    conserves: bool,
    recovered_before: bool,
    idle_restart: bool,
    /// Segments that arrived beyond what the rate explains: the maxima of two successive periods of [`EXTRA_ROUNDS`]
    /// round trips.
    extra: [u32; 2],
    extra_rounds: u32,
    extra_at: usize,
    epoch_at: Instant,
    epoch_acked: u64,
    /// The pace in bit/s of segments' data, without headers; 0 before there is one.
    pace: f64,
    has_trip: bool,
    random: u64,
}

impl Bbr {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            mode: Mode::Startup,
            rates: [(0, 0.0); 3],
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            random: seed,
            ..Self::default()
        }
    }

    /// Whether BBR still looks for the rate of the path (startup).
    pub(super) const fn starts(&self) -> bool {
        !self.full
    }

    /// The pace in bit/s of segments' data, without headers; 0 before there is one.
    pub(super) const fn pace(&self) -> f64 {
        self.pace
    }

    /// The number of segments that are sent together.
    pub(super) fn burst(&self, mss: u32) -> u32 {
        let least = if self.pace < SLOW_BIT_S { 1 } else { 2 };
        let together = self.pace / 8.0 / 1024.0 / f64::from(mss.max(1));
        // `sk_pacing_shift` of Linux is 10 bits: what leaves in 1/1024 s.
        (together as u32).clamp(least, MOST_BURST)
    }

    /// Sets the first pace, from the first round trip and the initial window, at the gain of startup.
    pub(super) fn begin(&mut self, trip: Duration, mss: u32, window: u32) {
        self.has_trip = true;
        let trip_s = trip.seconds().max(1e-6);
        self.pace = HIGH_GAIN * f64::from(window) / trip_s * f64::from(mss) * 8.0 * MARGIN;
    }

    fn rate(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// The segments that the path holds (rate times least round trip), times a gain.
    fn pipe(&self, gain: f64) -> f64 {
        match self.least_trip {
            Some(trip) => (self.rate() * trip.seconds() * gain).ceil(),
            None => f64::from(INITIAL_WINDOW),
        }
    }

    fn room(&self, gain: f64, mss: u32) -> u32 {
        // Bursts wait at both hosts and do not fill the path: three of them are added
        // (`bbr_quantization_budget` of Linux).
        let budget = self.pipe(gain) as u32 + 3 * self.burst(mss);
        // An odd last segment would wait for a delayed acknowledgement.
        let even = (budget + 1) & !1;
        // Where the path holds few segments, a gain of 1.25 would add none.
        even + if self.mode == Mode::ProbeRate && self.cycle == 0 {
            2
        } else {
            0
        }
    }

    /// Saves the window before recovery or a probe of the round trip reduces it.
    pub(super) fn save(&mut self, window: u32) {
        let usual = !self.recovered_before && self.mode != Mode::ProbeTrip;
        self.prior_window = if usual {
            window
        } else {
            self.prior_window.max(window)
        };
    }

    /// Notes a time-out: the search for a full path begins again.
    pub(super) fn timed_out(&mut self) {
        // A time-out also ends the round trip: nothing of it is left to be acknowledged.
        (self.full_rate, self.round_start, self.recovered_before) = (0.0, true, true);
    }

    /// Notes that data is sent after a pause in which the application had none.
    pub(super) fn restarts(&mut self, now: Instant, mss: u32) {
        self.idle_restart = true;
        (self.epoch_at, self.epoch_acked) = (now, 0);
        if self.mode == Mode::ProbeRate {
            self.set_pace(1.0, mss);
        }
    }

    /// Updates the model after an acknowledgement. Returns the new window in segments.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        sample: Option<&TcpRateSample>,
        state: &BbrInput,
    ) -> u32 {
        // The order of `bbr_update_model`: each step reads what those before it have set.
        self.update_rate(sample, state);
        self.update_extra(now, sample, state);
        self.update_cycle(now, state);
        self.check_full(sample);
        self.check_drain(now, state);
        let mut window = state.window;
        self.update_trip(now, state, &mut window);
        self.update_gains();
        // Until the path is full the pace only rises: samples of startup are below its rate.
        if self.full
            || self.pace == 0.0
            || self.rate() * self.pacing_gain * MARGIN * 8.0 * f64::from(state.mss) > self.pace
        {
            self.set_pace(self.pacing_gain, state.mss);
        }
        self.window(window, state)
    }

    fn set_pace(&mut self, gain: f64, mss: u32) {
        let pace = self.rate() * gain * MARGIN * 8.0 * f64::from(mss);
        if pace > 0.0 && self.has_trip {
            self.pace = pace;
        }
    }

    fn update_rate(&mut self, sample: Option<&TcpRateSample>, state: &BbrInput) {
        self.round_start = false;
        let Some(sample) = sample else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = state.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        let rate = sample.delivered as f64 / sample.interval.seconds();
        // What the application held back shows only that the path has at least this rate.
        if !sample.app_limited || rate >= self.rate() {
            self.note_rate(rate);
        }
    }

    /// Updates the running maximum of the rate over ten round trips, kept as the three best values (Nichols).
    fn note_rate(&mut self, rate: f64) {
        let new = (self.rounds, rate);
        let [best, second, third] = &mut self.rates;
        if rate >= best.1 || self.rounds.saturating_sub(third.0) > RATE_ROUNDS {
            self.rates = [new; 3];
            return;
        }
        if rate >= second.1 {
            (*second, *third) = (new, new);
        } else if rate >= third.1 {
            *third = new;
        }
        let age = self.rounds.saturating_sub(best.0);
        if age > RATE_ROUNDS {
            (*best, *second, *third) = (*second, *third, new);
            if self.rounds.saturating_sub(best.0) > RATE_ROUNDS {
                (*best, *second, *third) = (*second, *third, new);
            }
        } else if second.0 == best.0 && age > RATE_ROUNDS / 4 {
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > RATE_ROUNDS / 2 {
            *third = new;
        }
    }

    /// Measures aggregation: acknowledgements come in bunches, so what arrives beyond the rate may be in flight too.
    fn update_extra(&mut self, now: Instant, sample: Option<&TcpRateSample>, state: &BbrInput) {
        if sample.is_none() || state.arrived == 0 {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_at = 1 - self.extra_at;
                self.extra[self.extra_at] = 0;
            }
        }
        let expected = self.rate() * now.since(self.epoch_at).seconds();
        // The second bound is Linux's (`bbr_ack_epoch_acked_reset_thresh`).
        if self.epoch_acked as f64 <= expected
            || self.epoch_acked + u64::from(state.arrived) >= 1 << 20
        {
            (self.epoch_acked, self.epoch_at) = (0, now);
        }
        let expected = self.rate() * now.since(self.epoch_at).seconds();
        self.epoch_acked += u64::from(state.arrived);
        let extra = (self.epoch_acked as f64 - expected).max(0.0) as u32;
        let extra = extra.min(state.window);
        self.extra[self.extra_at] = self.extra[self.extra_at].max(extra);
    }

    fn update_cycle(&mut self, now: Instant, state: &BbrInput) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let long = self
            .least_trip
            .is_some_and(|trip| now.since(self.cycle_at) > trip);
        let in_flight = state.prior_in_flight;
        // A higher pace lasts until it has filled the path or lost something; draining ends once
        // the queue is gone.
        let over = match self.pacing_gain {
            gain if gain > 1.0 => {
                long && (state.lost > 0 || in_flight >= self.room(gain, state.mss))
            }
            gain if gain < 1.0 => long || in_flight <= self.room(1.0, state.mss),
            _ => long,
        };
        if over {
            self.advance(now);
        }
    }

    fn advance(&mut self, now: Instant) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_at = now;
    }

    fn check_full(&mut self, sample: Option<&TcpRateSample>) {
        if self.full || !self.round_start || sample.is_none_or(|sample| sample.app_limited) {
            return;
        }
        let rate = self.rate();
        if rate >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (rate, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, now: Instant, state: &BbrInput) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && state.in_flight <= self.room(1.0, state.mss) {
            self.probe_rate(now);
        }
    }

    fn probe_rate(&mut self, now: Instant) {
        self.mode = Mode::ProbeRate;
        // Knuth's MMIX generator: its upper bits are good, its lower ones are not.
        self.random = self
            .random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        // `advance` goes one on, so any phase may come but 0.75, which drains a queue of the phase
        // before.
        self.cycle = CYCLE.len() - 1 - ((self.random >> 33) % 7) as usize;
        self.advance(now);
    }

    fn update_trip(&mut self, now: Instant, state: &BbrInput, window: &mut u32) {
        let expired = self.least_trip.is_some() && now.since(self.least_trip_at) > TRIP_FILTER;
        if let Some(trip) = state.trip
            && (expired || self.least_trip.is_none_or(|least| trip <= least))
        {
            (self.least_trip, self.least_trip_at) = (Some(trip), now);
        }
        // A pause has emptied the queue: the next sample shows the least round trip without a
        // probe.
        if expired && !self.idle_restart && self.mode != Mode::ProbeTrip {
            self.save(*window);
            self.mode = Mode::ProbeTrip;
            self.probe_trip_until = None;
        }
        if self.mode == Mode::ProbeTrip {
            match self.probe_trip_until {
                None if state.in_flight <= LEAST_WINDOW => {
                    self.probe_trip_until = Some(now + PROBE_TRIP);
                    self.probe_trip_round = false;
                    self.round_ends = state.delivered;
                }
                Some(until) => {
                    self.probe_trip_round |= self.round_start;
                    if self.probe_trip_round && now > until {
                        self.least_trip_at = now;
                        *window = (*window).max(self.prior_window);
                        if self.full {
                            self.probe_rate(now)
                        } else {
                            self.mode = Mode::Startup
                        }
                    }
                }
                None => {}
            }
        }
        if state.arrived > 0 {
            self.idle_restart = false;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            // The window stays, so that the pace alone drains the queue.
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeRate => (CYCLE[self.cycle], WINDOW_GAIN),
            Mode::ProbeTrip => (1.0, 1.0),
        };
    }

    fn window(&mut self, window: u32, state: &BbrInput) -> u32 {
        let most = |window: u32| {
            if self.mode == Mode::ProbeTrip {
                window.min(LEAST_WINDOW)
            } else {
                window
            }
        };
        if state.arrived == 0 {
            return most(window);
        }
        let mut window = window;
        if state.lost > 0 {
            window = window.saturating_sub(state.lost).max(1);
        }
        let recovers = state.recovers || state.timed_out;
        if state.recovers && !self.recovered_before {
            self.conserves = true;
            self.round_ends = state.delivered;
            // Packet conservation in the first round trip of recovery: one segment leaves for each
            // that arrived.
            window = state.in_flight + state.arrived;
        } else if self.recovered_before && !recovers {
            window = window.max(self.prior_window);
            self.conserves = false;
        }
        self.recovered_before = recovers;
        if self.conserves {
            return most(window.max(state.in_flight + state.arrived));
        }
        let extra = if self.full {
            self.extra[0]
                .max(self.extra[1])
                .min((self.rate() * EXTRA_S) as u32)
        } else {
            0
        };
        let target = {
            let budget = self.pipe(self.window_gain) as u32 + extra + 3 * self.burst(state.mss);
            ((budget + 1) & !1)
                + if self.mode == Mode::ProbeRate && self.cycle == 0 {
                    2
                } else {
                    0
                }
        };
        window = if self.full {
            (window + state.arrived).min(target)
        } else if window < target || state.delivered < u64::from(INITIAL_WINDOW) {
            window + state.arrived
        } else {
            window
        };
        most(window.max(LEAST_WINDOW))
    }
}
