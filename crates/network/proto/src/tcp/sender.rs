//! The sending half of a connection: what is queued, what was sent, what an acknowledgement changes. Places are
//! positions in the stream in 64 bits (0 is the SYN).

use super::congestion::{Algorithm, TcpCongestion};
use super::ecn::TcpEcn;
use super::options::{Recovery, TcpOptions};
use super::pacing::TcpPacing;
use super::reordering_window::ReorderingWindow;
use super::rtt_and_timeout::Rtt;
use super::scoreboard::{Scoreboard, TcpAckEffect, TcpNewestArrival};
use super::sequence_numbers::{TcpSequenceOrigin, TcpStreamRange};
use super::time_accounting::{TcpSendLimit, TimeAccounting};
use alloc::boxed::Box;
use stackline_core::time::{Duration, Instant};

/// The sender's recovery phase, as in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TcpRecoveryPhase {
    /// Nothing is missing.
    #[default]
    Open,
    /// Something may be missing.
    Disorder,
    /// The congestion window shrinks though nothing has to be sent again: a probe repaired a loss, or a queue has
    /// marked a packet.
    Reduction,
    /// Lost segments are sent again while the window shrinks.
    Recovery,
    /// Lost segments are sent again after a time-out.
    Loss,
}

/// The purpose of the sender's one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpTimerPurpose {
    /// Everything in flight is marked as lost when it expires.
    Timeout,
    /// The end of the data in flight may be lost: new data or the last segment is sent to find out.
    TailProbe,
    /// Segments that may only be reordered count as lost when it expires.
    Reordering,
    /// The peer's window may have opened.
    WindowProbe,
}

/// The window before it was reduced, to be restored if the reduction proves needless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) window: u32,
    pub(super) threshold: u32,
    /// When a segment was first sent again after the reduction.
    pub(super) sent_again: Option<Instant>,
}

/// The sending half of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpSender {
    pub(super) origin: TcpSequenceOrigin,
    /// The first place that is not acknowledged.
    pub(super) una: u64,
    /// The next place to be sent.
    pub(super) next: u64,
    /// The end of the data written by the application.
    pub(super) queued: u64,
    /// Unsent bytes in the last block that was written ([`super::send_buffer`]).
    pub(super) last_block: u64,
    /// A FIN follows the data.
    pub(super) fin: bool,
    /// Bytes of data in a full segment.
    pub(super) mss: u32,
    pub(super) nodelay: bool,
    pub(super) ecn: TcpEcn,
    /// The peer's window, in bytes.
    pub(super) window: u64,
    /// The bits by which the peer's window field is shifted.
    pub(super) scale: u8,
    /// The place and the acknowledgement of the segment that last updated the window.
    pub(super) window_update: (u64, u64),
    /// Whether selective acknowledgements are used.
    pub(super) sack: bool,
    pub(super) board: Scoreboard,
    pub(super) congestion: TcpCongestion,
    /// The initial window in segments, and the least after a pause.
    pub(super) first_window: u32,
    /// The state of pacing; `None` for a sender that does not pace.
    pub(super) pacing: Option<Box<TcpPacing>>,
    pub(super) rtt: Rtt,
    pub(super) times: TimeAccounting,
    pub(super) timer: Option<(TcpTimerPurpose, Instant)>,
    /// How many times in a row the time-out was doubled.
    pub(super) backoff: u32,
    /// Time-outs since new data was acknowledged.
    pub(super) timeouts: u32,
    /// The end of the last segment that was not full (for Nagle's algorithm).
    pub(super) small: u64,
    pub(super) last_sent: Instant,
    pub(super) retransmits: u64,
    // --- recovery ---
    pub(super) phase: TcpRecoveryPhase,
    /// The phase ends when this place is acknowledged.
    pub(super) high: u64,
    /// The window before the reduction, in segments.
    pub(super) prior: u32,
    /// Segments that have arrived during the reduction.
    pub(super) delivered: u32,
    /// Segments sent during the reduction.
    pub(super) sent_in_reduction: u32,
    pub(super) newest: TcpNewestArrival,
    /// Reordering has been observed.
    pub(super) reordered: bool,
    /// The largest observed reordering, in segments; 3 at first.
    pub(super) reordering: u32,
    pub(super) reordering_window: ReorderingWindow,
    pub(super) undo: Option<Undo>,
    /// The end of what a tail loss probe covers, and whether the probe sent something again; `None` when none is out.
    pub(super) probe: Option<(u64, bool)>,
    // --- recovery that counts duplicates ---
    pub(super) recovery: Recovery,
    /// Duplicate acknowledgements in a row.
    pub(super) duplicates: u32,
    /// The first segment is sent again whatever the window.
    pub(super) again: bool,
    /// Not everything that was in flight at the last time-out is acknowledged.
    pub(super) timed_out: bool,
    // --- is the window in use? ---
    /// The window was full in the present window's worth of data.
    limited: bool,
    /// The most segments that were outstanding in that time.
    most_out: u32,
    /// That time ends when this place is acknowledged.
    usage_end: u64,
    /// The most segments outstanding since the window was last fully used.
    used: u32,
    /// When the use of the window was last judged.
    used_at: Instant,
}

impl TcpSender {
    pub(super) fn new(origin: TcpSequenceOrigin, options: &TcpOptions, mss: u32) -> Self {
        let TcpOptions {
            congestion: algorithm,
            nodelay,
            first_window,
            ..
        } = *options;
        Self {
            origin,
            queued: 1,
            mss,
            nodelay,
            congestion: TcpCongestion::new(algorithm, first_window),
            first_window,
            pacing: (algorithm == Algorithm::Bbr)
                .then(|| Box::new(TcpPacing::new(u64::from(origin.wire(0))))),
            rtt: Rtt::new(options.timeouts()),
            phase: TcpRecoveryPhase::Open,
            reordering: 3,
            recovery: options.recovery,
            ..Self::default()
        }
    }

    /// Bytes that were written and are not acknowledged.
    pub(super) fn held(&self) -> u64 {
        self.queued.saturating_sub(self.una.max(1))
    }

    /// The end of everything there is to send, the FIN included.
    pub(super) const fn end(&self) -> u64 {
        self.queued + self.fin as u64
    }

    /// The place at which the peer's window ends.
    pub(super) const fn edge(&self) -> u64 {
        self.una + self.window
    }

    pub(super) const fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Updates the peer's window if the segment is newer than the one that last updated it (RFC 9293, 3.10.7.4).
    /// Returns whether the window changed.
    pub(super) const fn update_window(
        &mut self,
        window: u64,
        place: u64,
        acknowledged: u64,
    ) -> bool {
        let newer = acknowledged > self.una
            || place > self.window_update.0
            || (place == self.window_update.0 && window > self.window);
        if !newer {
            return false;
        }
        self.window_update = (place, acknowledged);
        let changed = window != self.window;
        self.window = window;
        changed
    }

    /// Handles an acknowledgement of everything before `upto` (at most [`Self::next`]) and of the ranges `blocks`
    /// behind it. `duplicate`: it reports data that came twice. `echoed`: the age of the timestamp that it echoes.
    /// `marked`: it says that a queue has marked a packet.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        upto: u64,
        blocks: impl Iterator<Item = TcpStreamRange>,
        duplicate: bool,
        echoed: Option<Duration>,
        marked: bool,
    ) {
        let advanced = upto > self.una;
        let (lost, in_flight) = (self.board.lost, self.in_flight());
        let mut arrived = TcpAckEffect::default();
        if self.sack {
            for block in blocks {
                if block.start > upto && block.end <= self.next && block.len() > 0 {
                    self.board.sack(block, &mut arrived);
                }
            }
        }
        if advanced {
            self.una = upto;
            self.board.acknowledge(upto, &mut arrived);
        }
        // A duplicate caused by a probe was expected.
        let needless = duplicate && self.probe.is_none();
        self.reordering_window
            .acknowledged(self.una, self.next, needless);
        self.measure(now, advanced, &arrived, echoed);
        self.note_reordering(&arrived);
        self.probe_acknowledged(upto);
        if advanced {
            self.try_undo(now, echoed);
        }
        let settled =
            self.phase == TcpRecoveryPhase::Open && self.board.sacked == 0 && self.board.lost == 0;
        let wait = if settled {
            None
        } else {
            self.detect_losses(now)
        };
        if marked && self.phase <= TcpRecoveryPhase::Disorder {
            self.slow_down();
        }
        if advanced || arrived.segments > 0 {
            self.times.progress(now);
            self.arm(now);
        }
        if let Some(at) = wait {
            self.timer = Some((TcpTimerPurpose::Reordering, at));
        }
        let lost = self.board.lost.saturating_sub(lost);
        if self.pacing.is_some() {
            self.model(now, &arrived, lost, in_flight);
        } else if arrived.segments > 0 {
            self.control(now, advanced, arrived.segments, lost);
        }
    }

    /// Takes round-trip samples: the estimate uses the first of the segments that arrived, congestion control the last
    /// one.
    fn measure(
        &mut self,
        now: Instant,
        advanced: bool,
        arrived: &TcpAckEffect,
        echoed: Option<Duration>,
    ) {
        let first = arrived.first.or(arrived.sacked).map(|sent| now.since(sent));
        if let Some(sample) = first.or(if advanced { echoed } else { None }) {
            self.rtt.sample(now, sample, self.una, self.next);
            self.backoff = 0;
        }
        if let Some(sent) = arrived.sacked.or(arrived.last) {
            let allowance = if self.congestion.slow_start() {
                self.burst()
            } else {
                Duration::ZERO
            };
            self.congestion
                .sample(now, now.since(sent), self.una, self.next, allowance);
        }
        if let Some((sent, end, again)) = arrived.newest {
            let rtt = now.since(sent);
            // An acknowledgement that comes sooner after a retransmission than the least round trip belongs to the
            // first transmission.
            if !(again && self.rtt.minimum().is_some_and(|least| rtt < least))
                && (sent, end) > (self.newest.sent, self.newest.end)
            {
                self.newest = TcpNewestArrival { sent, end, rtt };
            }
        }
    }

    /// Updates the window and the pace of a sender that paces, from what arrived.
    fn model(&mut self, now: Instant, arrived: &TcpAckEffect, lost: u32, prior_in_flight: u32) {
        let (in_flight, smoothed) = (self.in_flight(), self.rtt.smoothed());
        let Some(pacing) = &mut self.pacing else {
            return;
        };
        if pacing.model.pace() <= 0.0 && smoothed > Duration::ZERO {
            pacing
                .model
                .begin(smoothed, self.mss, self.congestion.window);
        }
        let newest = arrived.newest.map(|(sent, end, _)| (sent, end));
        let sample = pacing
            .rate
            .arrives(now, newest, arrived.segments, self.rtt.minimum());
        let state = super::bbr::BbrInput {
            window: self.congestion.window,
            in_flight,
            prior_in_flight,
            mss: self.mss,
            delivered: pacing.rate.delivered,
            recovers: self.phase == TcpRecoveryPhase::Recovery,
            timed_out: self.phase == TcpRecoveryPhase::Loss,
            arrived: arrived.segments,
            lost,
            trip: arrived.sacked.or(arrived.last).map(|sent| now.since(sent)),
        };
        self.congestion.window = pacing.model.acknowledged(now, sample.as_ref(), &state);
    }

    /// Whether the sender is in slow start, or its model still looks for the path's rate.
    pub(super) fn starts(&self) -> bool {
        self.pacing.as_ref().map_or_else(
            || self.congestion.slow_start(),
            |pacing| pacing.model.starts(),
        )
    }

    /// How much longer a train of segments becomes because a host's segmentation offload sends bursts: the time of 256
    /// KiB at twice the present rate, at most 1 ms.
    fn burst(&self) -> Duration {
        const MOST: u64 = 1_000_000;
        let window = u64::from(self.congestion.window) * u64::from(self.mss) * 2;
        let time =
            (262_144_u128 * u128::from(self.rtt.smoothed().0)).checked_div(u128::from(window));
        Duration(time.map_or(MOST, |time| time.min(u128::from(MOST)) as u64))
    }

    /// Notes by how many segments a late arrival was overtaken.
    fn note_reordering(&mut self, arrived: &TcpAckEffect) {
        if let Some(late) = arrived.late {
            let by = self
                .board
                .highest
                .saturating_sub(late)
                .div_ceil(u64::from(self.mss));
            // `tcp_max_reordering` of Linux.
            self.reordering = self.reordering.max(by.min(300) as u32);
            self.reordered = true;
        }
    }

    /// What keeps written data from being sent.
    pub(super) fn limit_of_unsent(&self) -> TcpSendLimit {
        let paced = self
            .pacing
            .as_ref()
            .is_some_and(|pacing| pacing.waits.is_some());
        let full = paced || self.board.in_flight() >= self.congestion.window;
        match (full, self.starts()) {
            (true, true) => TcpSendLimit::SlowStart,
            (true, false) => TcpSendLimit::CongestionWindow,
            _ if self.next + self.mss as u64 > self.edge() && self.queued > self.edge() => {
                TcpSendLimit::ReceiveWindow
            }
            _ => TcpSendLimit::Nagle,
        }
    }

    /// Whether the congestion window is what holds the sender back.
    const fn is_window_limited(&self) -> bool {
        if self.congestion.slow_start() {
            // In slow start the window may reach twice what was in flight (`tcp_is_cwnd_limited` of
            // Linux).
            self.congestion.window < 2 * self.most_out || self.limited
        } else {
            self.limited
        }
    }

    /// Adjusts the window of a sender that does not pace, after an acknowledgement.
    fn control(&mut self, now: Instant, advanced: bool, arrived: u32, lost: u32) {
        match self.phase {
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery => {
                self.reduce(advanced, arrived, lost)
            }
            _ if (advanced || self.reordered) && self.is_window_limited() => {
                self.congestion.grow(now, arrived)
            }
            _ => {}
        }
    }

    /// Notes whether the congestion window is in use, once nothing more can be sent.
    pub(super) fn validate(&mut self, now: Instant, sent: bool) {
        let limited = self.in_flight() >= self.congestion.window;
        if self.recovery == Recovery::Reno || !(limited || sent) {
            return;
        }
        let out = self.board.out;
        if self.una >= self.usage_end || limited || (!self.limited && out > self.most_out) {
            (self.limited, self.most_out, self.usage_end) = (limited, out, self.next);
        }
        if self.is_window_limited() || self.pacing.is_some() {
            (self.used, self.used_at) = (0, now);
            return;
        }
        self.used = self.used.max(out);
        if now.since(self.used_at) >= self.rtt.timeout(0) {
            self.shrink_to_use(now);
        }
    }

    /// Reduces a window that was not used for a time-out and is therefore no longer valid (RFC 7661, as in Linux).
    fn shrink_to_use(&mut self, now: Instant) {
        let used = self.used.max(self.first_window);
        if self.phase == TcpRecoveryPhase::Open && used < self.congestion.window {
            self.congestion.threshold = self.threshold_now();
            self.congestion.window = u32::midpoint(self.congestion.window, used);
        }
        (self.used, self.used_at) = (0, now);
    }

    /// The slow start threshold that keeps the present window in memory when the window is reduced for idleness.
    fn threshold_now(&self) -> u32 {
        let window = self.congestion.window;
        if matches!(
            self.phase,
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery
        ) {
            return self.congestion.threshold;
        }
        // Three quarters, as `tcp_current_ssthresh` of Linux.
        self.congestion.threshold.max(window / 2 + window / 4)
    }

    /// Called when the application writes while nothing is in flight: reduces the window after idle time.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        if self.board.out > 0 || self.last_sent == Instant(0) {
            return;
        }
        let idle = now.since(self.last_sent);
        if let Some(pacing) = &mut self.pacing {
            if pacing.rate.is_app_limited() {
                pacing.model.restarts(now, self.mss);
            }
            return;
        }
        if self.recovery == Recovery::Reno {
            return self.begins_again(idle);
        }
        let timeout = self.rtt.timeout(0);
        if idle > timeout {
            self.congestion.threshold = self.threshold_now();
            let least = self.congestion.window.min(self.first_window);
            // RFC 2861: halved for each time-out of silence.
            let halvings = (idle.0 / timeout.0.max(1)).min(31) as u32;
            self.congestion.window = (self.congestion.window >> halvings).max(least);
            (self.used, self.used_at) = (0, now);
        }
        self.congestion.resume(now, idle);
    }

    /// Notes that a range with `data` bytes of data is sent for the first time.
    pub(super) fn sends(&mut self, range: TcpStreamRange, data: u64, now: Instant) {
        self.paces(now, data);
        if data < u64::from(self.mss) {
            self.small = range.end;
        }
        self.board.send(range, self.mss, now);
        self.next = range.end;
        self.last_sent = now;
        self.times.progress(now);
        if matches!(
            self.phase,
            TcpRecoveryPhase::Reduction | TcpRecoveryPhase::Recovery
        ) {
            self.sent_in_reduction += 1;
        }
        if self.timer.is_none_or(|(wait, _)| {
            matches!(
                wait,
                TcpTimerPurpose::TailProbe | TcpTimerPurpose::WindowProbe
            )
        }) {
            self.arm(now);
        }
    }

    /// Notes a transmission in the pacing, if there is one.
    pub(super) fn paces(&mut self, now: Instant, data: u64) {
        let in_flight = self.in_flight();
        if let Some(pacing) = &mut self.pacing {
            pacing.sends(now, data, self.mss, in_flight);
        }
    }

    /// Sets the timer for data in flight: a tail loss probe where one may help, else the time-out.
    pub(super) fn arm(&mut self, now: Instant) {
        if self.board.out == 0 {
            self.timer = None;
            return;
        }
        let timeout = self.rtt.expires(now, self.backoff);
        let probing = self.sack
            && self.probe.is_none()
            && matches!(
                self.phase,
                TcpRecoveryPhase::Open | TcpRecoveryPhase::Reduction
            )
            && self.board.sacked == 0
            && self.backoff == 0;
        self.timer = Some(if probing && self.rtt.known() {
            (
                TcpTimerPurpose::TailProbe,
                timeout.min(now + self.probe_after()),
            )
        } else {
            (TcpTimerPurpose::Timeout, timeout)
        });
    }

    /// The time after which a tail loss probe is sent: two round trips, plus 200 ms for a single segment (the longest
    /// delay of its acknowledgement), else 2 ms.
    fn probe_after(&self) -> Duration {
        let more = if self.board.out == 1 {
            200_000_000
        } else {
            2_000_000
        };
        Duration(self.rtt.smoothed().0 * 2 + more)
    }
}
