//! Handles an arriving segment (RFC 9293, 3.10.7). Whatever it contains, only data that the peer sent is delivered.

use super::connection::{TcpConnection, TcpState};
use super::deadlines::TIME_WAIT;
use super::ecn::TcpEcn;
use super::options::Recovery;
use super::receiver::Rhythm;
use super::recovery_of_1995::RenoAcknowledgement;
use super::segment::{TIMESTAMPS, TcpFlags, TcpSegment, Timestamps};
use super::sequence_numbers::{TcpSequenceOrigin, TcpStreamRange};
use stackline_core::time::{Duration, Instant};

/// The clock of timestamps, in ms.
pub(super) const fn clock(now: Instant) -> u32 {
    (now.0 / 1_000_000) as u32
}

/// The age of the own timestamp that a segment echoes; `None` without one.
fn age(now: Instant, stamps: Option<Timestamps>) -> Option<Duration> {
    let echo = stamps?.echo;
    let ago = clock(now).wrapping_sub(echo);
    // From the beginning of the echoed millisecond: a sample is never too short.
    (echo != 0 && ago < 1 << 31).then(|| Duration(u64::from(ago) * 1_000_000 + now.0 % 1_000_000))
}

impl TcpConnection {
    pub(super) fn input(&mut self, now: Instant, segment: &TcpSegment) {
        match self.state {
            TcpState::Closed => self.reset = self.reset.or(reset_for(segment)),
            TcpState::Listen => self.input_listening(now, segment),
            TcpState::SynSent => self.input_syn_sent(now, segment),
            _ => self.input_open(now, segment),
        }
    }

    fn input_listening(&mut self, now: Instant, segment: &TcpSegment) {
        let flags = segment.flags;
        if flags.has(TcpFlags::RST) {
            return;
        }
        if flags.has(TcpFlags::ACK) {
            self.reset = reset_for(segment);
        } else if flags.has(TcpFlags::SYN) {
            self.ports.1 = segment.source;
            self.apply_peer_options(now, segment);
            self.state = TcpState::SynReceived;
            self.sender.next = 1;
            self.handshake = Some(now);
        }
    }

    /// Takes over the options of the peer's SYN.
    fn apply_peer_options(&mut self, now: Instant, segment: &TcpSegment) {
        let own = Self::mss_of(self.options.mtu);
        // RFC 9293, 3.7.1: a peer without the option accepts 536 bytes.
        let peer = if segment.syn.mss == 0 {
            536
        } else {
            // `TCP_MIN_MSS` of Linux.
            u32::from(segment.syn.mss).max(88)
        };
        self.timestamps = segment.timestamps.is_some();
        self.sender.mss = own.min(peer) - if self.timestamps { TIMESTAMPS } else { 0 };
        self.sender.sack = segment.syn.sack_permitted && self.options.recovery == Recovery::Linux;
        self.receiver.gathers = self.sender.sack;
        self.sender.ecn.agreed = self.options.ecn && TcpEcn::wanted(segment.flags);
        self.scaled = segment.syn.window_scale.is_some();
        // RFC 7323, section 2.3: a larger shift counts as 14.
        self.sender.scale = segment.syn.window_scale.unwrap_or(0).min(14);
        if !self.scaled {
            self.receiver.scale = 0;
        }
        self.receiver.origin = TcpSequenceOrigin(segment.sequence);
        self.receiver.echo = segment.timestamps.map_or(0, |stamps| stamps.value);
        self.receiver.tuning.begin(now);
        self.sender.window = u64::from(segment.window);
        self.last_received = now;
    }

    fn input_syn_sent(&mut self, now: Instant, segment: &TcpSegment) {
        let flags = segment.flags;
        let acknowledges =
            flags.has(TcpFlags::ACK) && segment.acknowledged == self.sender.origin.wire(1);
        if flags.has(TcpFlags::ACK) && !acknowledges {
            self.reset = reset_for(segment);
            return;
        }
        if flags.has(TcpFlags::RST) {
            if acknowledges {
                self.terminate(true);
            }
            return;
        }
        if !flags.has(TcpFlags::SYN) {
            return;
        }
        self.apply_peer_options(now, segment);
        self.sender.next = 1;
        if acknowledges {
            self.receiver.now = true;
            self.establish(now, segment);
            self.state = TcpState::Established;
        } else {
            // Both sides have sent a SYN (simultaneous open).
            self.state = TcpState::SynReceived;
            self.syns = 0;
            self.handshake = Some(now);
        }
    }

    /// Handles the acknowledgement of the own SYN.
    fn establish(&mut self, now: Instant, segment: &TcpSegment) {
        self.handshake = None;
        self.sender.una = 1;
        self.sender.window_update = (0, 1);
        // Karn's rule: which SYN was answered is known only by the timestamp.
        if self.syns <= 1 {
            self.sender.rtt.sample(now, now.since(self.syn_sent), 1, 1);
        } else if let Some(rtt) = age(now, segment.timestamps) {
            self.sender.rtt.sample(now, rtt, 1, 1);
        }
        self.sender.congestion.begin(now, 1);
        if self.syns > 1 && !self.timestamps {
            // RFC 6298, 5.7: a lost SYN leaves a window of one segment, unless timestamps show that it was only late.
            self.sender.congestion.window = 1;
        }
    }

    fn input_open(&mut self, now: Instant, segment: &TcpSegment) {
        let flags = segment.flags;
        let Some(start) = self
            .receiver
            .origin
            .place(segment.sequence, self.receiver.next)
        else {
            return;
        };
        if flags.has(TcpFlags::RST) {
            // RFC 5961: only at the next expected number; elsewhere in the window it is challenged.
            if start == self.receiver.next {
                self.terminate(true);
            } else if start > self.receiver.next && start < self.receiver.edge() {
                self.receiver.now = true;
            }
            return;
        }
        if flags.has(TcpFlags::SYN) {
            // A repeated SYN or SYN-ACK: acknowledged again, since the peer may have lost the last answer.
            self.receiver.now = true;
            if self.state == TcpState::SynReceived && !flags.has(TcpFlags::ACK) {
                self.handshake = Some(now);
                return;
            }
            return;
        }
        let end = start + u64::from(segment.span());
        if !flags.has(TcpFlags::ACK)
            || end < self.receiver.acknowledged
            || start > self.receiver.edge()
            || end > self.receiver.edge() + 1
        {
            // Outside the window: answered, so that a peer that is behind learns the state.
            self.receiver.came_again(TcpStreamRange { start, end });
            return;
        }
        if segment.length > 0
            && !self.receiver.keeps(TcpStreamRange {
                start,
                end: start + u64::from(segment.length),
            })
        {
            self.emit_full();
            return;
        }
        if !self.input_acknowledgement(now, segment, start) {
            return;
        }
        self.last_received = now;
        if let Some(stamps) = segment.timestamps
            && start <= self.receiver.acknowledged
        {
            self.receiver.echo = stamps.value;
        }
        if segment.span() > 0 {
            self.input_data(now, segment, TcpStreamRange { start, end });
        } else if start < self.receiver.next {
            // A window probe or keep-alive.
            self.receiver.now = true;
        }
    }

    /// Handles the acknowledgement of a segment that starts at place `start`. Returns false when the rest of the
    /// segment has to be ignored.
    fn input_acknowledgement(&mut self, now: Instant, segment: &TcpSegment, start: u64) -> bool {
        let Some(upto) = self
            .sender
            .origin
            .place(segment.acknowledged, self.sender.una)
        else {
            return false;
        };
        if upto > self.sender.next {
            // It acknowledges what was never sent.
            self.receiver.now = true;
            return false;
        }
        if self.state == TcpState::SynReceived {
            if upto < 1 {
                return false;
            }
            self.establish(now, segment);
            self.state = if self.sender.fin {
                TcpState::FinWait1
            } else {
                TcpState::Established
            };
        }
        // The application closed its half before the handshake was over.
        if self.state == TcpState::FinWait1 && self.sender.una == 0 {
            if upto < 1 {
                return false;
            }
            self.establish(now, segment);
        }
        // An old acknowledgement; the data that came with it may still be new.
        if upto < self.sender.una {
            return true;
        }
        let window = u64::from(segment.window) << self.sender.scale;
        let opened = self.sender.update_window(window, start, upto);
        // With nothing in flight, the timer that runs is that of window probes.
        if opened && self.sender.board.out == 0 {
            (self.sender.timer, self.sender.backoff) = (None, 0);
        }
        if upto > self.sender.una {
            self.sender.timeouts = 0;
        }
        let echoed = age(now, segment.timestamps);
        let marked = self.sender.ecn.is_echo(segment.flags);
        if self.options.recovery == Recovery::Reno {
            let bare = segment.span() == 0 && !opened;
            self.sender.counts(
                now,
                &RenoAcknowledgement {
                    upto,
                    bare,
                    echoed,
                    marked,
                },
            );
        } else {
            self.input_selective(now, segment, upto, echoed, marked);
        }
        if self.sender.fin && self.sender.una == self.sender.end() {
            self.fin_acknowledged(now);
        }
        self.state != TcpState::Closed
    }

    /// Handles an acknowledgement of everything up to `upto`, and of the ranges that the segment names.
    fn input_selective(
        &mut self,
        now: Instant,
        segment: &TcpSegment,
        upto: u64,
        echoed: Option<Duration>,
        marked: bool,
    ) {
        let origin = self.sender.origin;
        let blocks = segment.sack().iter().filter_map(|&(from, to)| {
            let start = origin.place(from, upto)?;
            Some(TcpStreamRange {
                start,
                end: origin.place(to, start)?,
            })
        });
        let duplicate = segment.reports_duplicate();
        self.sender
            .acknowledged(now, upto, blocks, duplicate, echoed, marked);
    }

    fn fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            TcpState::FinWait1 => self.state = TcpState::FinWait2,
            TcpState::Closing => self.enter_time_wait(now),
            TcpState::LastAck => self.terminate(false),
            _ => {}
        }
    }

    fn input_data(&mut self, now: Instant, segment: &TcpSegment, range: TcpStreamRange) {
        if self.receiver.ended() {
            // A FIN that came again.
            self.receiver.now = true;
            if self.state == TcpState::TimeWait {
                self.enter_time_wait(now);
            }
            return;
        }
        let fin = segment.flags.has(TcpFlags::FIN);
        let last = self.receiver.fin.unwrap_or(u64::MAX);
        if range.end > last.saturating_add(1)
            || (fin && self.receiver.fin.is_some_and(|fin| fin + 1 != range.end))
        {
            // Beyond the peer's FIN.
            return;
        }
        // A small segment may have waited for the application or for Nagle's algorithm.
        if segment.length >= self.sender.mss
            && let (Some(stamps), Some(age)) = (segment.timestamps, age(now, segment.timestamps))
        {
            self.receiver.tuning.echo(stamps.echo, age);
        }
        if self.sender.ecn.arrives(segment.codepoint, segment.flags) {
            self.receiver.hurry();
        }
        let own = self.receiver.tuning.rtt();
        let rtt = [
            own,
            Some(self.sender.rtt.smoothed()).filter(|rtt| rtt.0 > 0),
        ]
        .into_iter()
        .flatten()
        .min();
        self.receiver.arrives(
            now,
            range,
            fin,
            &Rhythm {
                rtt,
                pause: self.sender.rtt.timeout(0),
            },
        );
        if self.receiver.ended() {
            self.fin_arrived(now);
        }
    }

    fn fin_arrived(&mut self, now: Instant) {
        match self.state {
            TcpState::SynReceived | TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            TcpState::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = TcpState::TimeWait;
        self.sender.timer = None;
        self.end = Some(now + TIME_WAIT);
    }
}

/// The sequence number of the reset that answers a segment, and what the reset acknowledges.
fn reset_for(segment: &TcpSegment) -> Option<(u32, Option<u32>)> {
    let refusal = segment.refusal()?;
    Some((
        refusal.sequence,
        refusal
            .flags
            .has(TcpFlags::ACK)
            .then_some(refusal.acknowledged),
    ))
}
