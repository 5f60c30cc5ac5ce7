//! Builds the next segment to send: a reset, the handshake, lost data, new data, or an acknowledgement, in this order.

use super::connection::{TcpConnection, TcpState};
use super::event::TcpResendReason;
use super::loss_recovery::Push;
use super::options::Recovery;
use super::segment::{MOST_BLOCKS, Syn, TcpFlags, TcpSegment, Timestamps};
use super::segment_input::clock;
use super::sender::{TcpRecoveryPhase, TcpTimerPurpose};
use super::sequence_numbers::TcpStreamRange;
use super::window::UNSCALED;
use stackline_core::time::{Duration, Instant};

impl TcpConnection {
    pub(super) fn output(&mut self, now: Instant) -> Option<TcpSegment> {
        if let Some((sequence, acknowledged)) = self.reset.take() {
            return Some(self.reset_segment(sequence, acknowledged));
        }
        match self.state {
            TcpState::Closed | TcpState::Listen => None,
            TcpState::SynSent | TcpState::SynReceived => self.handshake_segment(now),
            TcpState::FinWait1 if self.sender.una == 0 => self.handshake_segment(now),
            _ => self.stream_segment(now),
        }
    }

    fn bare(&self, flags: TcpFlags) -> TcpSegment {
        let (source, destination) = self.ports;
        TcpSegment {
            source,
            destination,
            flags,
            ..TcpSegment::default()
        }
    }

    fn reset_segment(&self, sequence: u32, acknowledged: Option<u32>) -> TcpSegment {
        let flags = if acknowledged.is_some() {
            TcpFlags::RST.with(TcpFlags::ACK)
        } else {
            TcpFlags::RST
        };
        TcpSegment {
            sequence,
            acknowledged: acknowledged.unwrap_or(0),
            ..self.bare(flags)
        }
    }

    fn handshake_segment(&mut self, now: Instant) -> Option<TcpSegment> {
        // It is sent at first, and again when its timer has expired.
        let due = self.syns == 0 || self.handshake.is_none_or(|at| at <= now);
        if !due {
            return None;
        }
        self.syn_leaves(now);
        let answers = self.state != TcpState::SynSent;
        let flags = if answers {
            TcpFlags::SYN.with(TcpFlags::ACK)
        } else {
            TcpFlags::SYN
        };
        // A SYN without an answer may have been dropped for its ECN flags: the next ones go without.
        let asks = if answers {
            self.sender.ecn.agreed
        } else {
            self.options.ecn && self.syns <= 1
        };
        let flags = if asks {
            flags.with(self.sender.ecn.of_syn(answers))
        } else {
            flags
        };
        let timestamps = Some(Timestamps {
            value: clock(now),
            echo: self.receiver.echo,
        });
        let syn = Syn {
            mss: Self::mss_of(self.options.mtu) as u16,
            window_scale: self.scaled.then_some(self.receiver.scale),
            sack_permitted: if answers {
                self.sender.sack
            } else {
                self.options.recovery == Recovery::Linux
            },
        };
        // The window of a SYN is not scaled (RFC 7323, section 2.2).
        let window = self.receiver.window().min(UNSCALED);
        (self.receiver.acknowledged, self.receiver.offered) = (1, window);
        self.receiver.now = false;
        Some(TcpSegment {
            sequence: self.sender.origin.wire(0),
            acknowledged: if answers {
                self.receiver.origin.wire(1)
            } else {
                0
            },
            window: window as u16,
            timestamps: timestamps.filter(|_| self.timestamps),
            syn,
            ..self.bare(flags)
        })
    }

    fn stream_segment(&mut self, now: Instant) -> Option<TcpSegment> {
        if self.state != TcpState::TimeWait
            && let Some((range, again)) = self.choose(now)
        {
            return Some(self.data_segment(now, range, again));
        }
        match self.push.take() {
            // Without data or window, an old sequence number makes the peer answer.
            Some(Push::WindowProbe) => {
                Some(self.acknowledgement(now, self.sender.una.saturating_sub(1), 0))
            }
            _ if self.receiver.now => Some(self.acknowledgement(now, self.sender.next, 0)),
            _ => None,
        }
    }

    /// The next range to send, and the reason if it is sent again.
    fn choose(&mut self, now: Instant) -> Option<(TcpStreamRange, Option<TcpResendReason>)> {
        if self.push.is_none()
            && self
                .sender
                .pacing
                .as_mut()
                .is_some_and(|pacing| pacing.holds(now))
        {
            return None;
        }
        if let Some(range) = self.sender.lost() {
            let reason = if self.sender.phase == TcpRecoveryPhase::Loss {
                TcpResendReason::Timeout
            } else {
                TcpResendReason::Missing
            };
            return Some((range, Some(reason)));
        }
        let pushed = self.push;
        let fresh = self.fresh(pushed);
        if fresh.is_some() {
            if pushed == Some(Push::TailProbe) {
                self.sender.probe = Some((
                    self.sender.next + fresh.map_or(0, TcpStreamRange::len),
                    false,
                ));
            }
            self.push = None;
            return fresh.map(|range| (range, None));
        }
        if pushed == Some(Push::TailProbe) {
            self.push = None;
            let range = self.sender.board.last()?;
            self.sender.times.timed_out(now);
            self.sender.probe = Some((self.sender.next, true));
            return Some((range, Some(TcpResendReason::TailProbe)));
        }
        self.pushes = false;
        self.note_idle();
        self.sender.validate(now, core::mem::take(&mut self.sent));
        self.schedule_window_probe(now);
        None
    }

    /// Notes that nothing is sent though the window has room: the rate measured now is the application's.
    fn note_idle(&mut self) {
        let sender = &mut self.sender;
        let (in_flight, room) = (
            sender.in_flight(),
            sender.in_flight() < sender.congestion.window,
        );
        if let Some(pacing) = &mut sender.pacing
            && room
            && sender.next >= sender.queued
        {
            pacing.rate.idle(in_flight);
        }
    }

    /// New data or the FIN, as far as both windows and Nagle's algorithm let it.
    fn fresh(&self, pushed: Option<Push>) -> Option<TcpStreamRange> {
        let sender = &self.sender;
        let start = sender.next;
        let left = sender.end().saturating_sub(start);
        if left == 0 || (sender.in_flight() >= sender.congestion.window && pushed.is_none()) {
            return None;
        }
        let data = (sender.queued.saturating_sub(start)).min(u64::from(sender.mss));
        let room = sender.edge().saturating_sub(start);
        if data > room {
            // A part of a segment is sent only to probe the window, or where silly windows are used.
            let part = if pushed == Some(Push::WindowProbe) || self.options.silly_windows {
                room
            } else {
                0
            };
            return (part > 0).then_some(TcpStreamRange {
                start,
                end: start + part,
            });
        }
        let last = start + data == sender.queued;
        let end = start + data + u64::from(last && sender.fin);
        let small = data < u64::from(sender.mss);
        // Nagle's algorithm as modified by Minshall: only a small segment in flight holds back another. A write that
        // has to wait for room pushes its data.
        let held = sender.una < sender.small && !self.pushes;
        let waits = small && !sender.nodelay && !(last && sender.fin) && held;
        (!waits || pushed.is_some()).then_some(TcpStreamRange { start, end })
    }

    /// Sets the timer of window probes when everything is acknowledged and the window has no room for more data.
    fn schedule_window_probe(&mut self, now: Instant) {
        let sender = &mut self.sender;
        let stuck = sender.board.out == 0 && sender.next < sender.end();
        if stuck && sender.timer.is_none() {
            // `TCP_RTO_MIN` of Linux bounds probes too.
            let after = sender.rtt.timeout(sender.backoff).0.max(200_000_000);
            sender.timer = Some((TcpTimerPurpose::WindowProbe, now + Duration(after)));
        }
    }

    fn data_segment(
        &mut self,
        now: Instant,
        range: TcpStreamRange,
        again: Option<TcpResendReason>,
    ) -> TcpSegment {
        self.emit_range(range, again);
        let sender = &mut self.sender;
        // The FIN's place is `queued`: it carries no byte.
        let data = range.end.min(sender.queued) - range.start.min(sender.queued);
        let fin = range.end > sender.queued;
        if again.is_some() {
            sender.sends_again(range, now);
        } else {
            sender.sends(range, data, now);
            self.receiver.answers(now);
        }
        self.sent = true;
        let mut flags = TcpFlags::ACK;
        flags = if fin {
            flags.with(TcpFlags::FIN)
        } else {
            flags
        };
        flags = if range.end >= self.sender.queued {
            flags.with(TcpFlags::PSH)
        } else {
            flags
        };
        // What is sent again is not ECN-capable (RFC 3168, section 6.1.5).
        let (said, codepoint) = self.sender.ecn.leaves(again.is_none());
        let flags = flags.with(said);
        TcpSegment {
            flags,
            codepoint,
            ..self.acknowledgement(now, range.start, data as u32)
        }
    }

    /// An acknowledgement whose sequence number is a place of the own stream, with `length` bytes of data.
    fn acknowledgement(&mut self, now: Instant, place: u64, length: u32) -> TcpSegment {
        let window = self.receiver.advertise(self.scaled);
        // A bare acknowledgement is not ECN-capable (RFC 3168, section 6.1.4).
        let (said, codepoint) = self.sender.ecn.leaves(false);
        let mut segment = TcpSegment {
            sequence: self.sender.origin.wire(place),
            acknowledged: self.receiver.origin.wire(self.receiver.next),
            window,
            length,
            timestamps: self.timestamps.then(|| Timestamps {
                value: clock(now),
                echo: self.receiver.echo,
            }),
            codepoint,
            ..self.bare(TcpFlags::ACK.with(said))
        };
        if self.sender.sack {
            let origin = self.receiver.origin;
            for block in self.receiver.blocks().take(MOST_BLOCKS) {
                // Packets of 68 bytes have room for one range, full segments of data for none.
                if segment.bytes() + 12 > self.options.mtu {
                    break;
                }
                segment.add_block(origin.wire(block.start), origin.wire(block.end));
            }
        }
        segment
    }
}
