//! Samples the delivery rate: how many segments were delivered between the sending of a segment and its
//! acknowledgement, as in Linux (draft-cheng-iccrg-delivery-rate-estimation). Kept only for senders that pace by it.

use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// The state when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct TcpDeliveryStamp {
    sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
}

/// The rate sample of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpRateSample {
    /// Segments delivered within `interval`.
    pub(super) delivered: u64,
    pub(super) interval: Duration,
    /// Segments delivered in all when the newest segment of the sample was sent.
    pub(super) prior_delivered: u64,
    /// The application had nothing to send in that time.
    pub(super) app_limited: bool,
}

/// The delivery counts of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpDeliveryRate {
    /// Segments delivered in all.
    pub(super) delivered: u64,
    /// When a segment was last delivered.
    delivered_at: Instant,
    /// When the newest segment was sent that has arrived.
    first_sent: Instant,
    /// The end of that segment.
    newest_end: u64,
    /// Until this many segments are delivered, samples are limited by the application; 0: they are not.
    app_limited: u64,
    /// One stamp for each instant at which segments in flight were sent.
    stamps: VecDeque<TcpDeliveryStamp>,
}

impl TcpDeliveryRate {
    /// Notes that a segment is sent, with `in_flight` segments in flight before it.
    pub(super) fn sends(&mut self, now: Instant, in_flight: u32) {
        if in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        if self.stamps.back().is_none_or(|last| last.sent < now) {
            self.stamps.push_back(TcpDeliveryStamp {
                sent: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent: self.first_sent,
                app_limited: self.app_limited > 0,
            });
        }
    }

    /// Notes that the application has nothing more to send, though more could be sent.
    pub(super) fn idle(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether the application recently had nothing to send.
    pub(super) const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Notes that `segments` segments arrived. `newest` is the one that was sent last: when, and its end. Returns a
    /// rate sample if there is a valid one.
    pub(super) fn arrives(
        &mut self,
        now: Instant,
        newest: Option<(Instant, u64)>,
        segments: u32,
        least_rtt: Option<Duration>,
    ) -> Option<TcpRateSample> {
        self.delivered += u64::from(segments);
        if segments > 0 {
            self.delivered_at = now;
        }
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let (sent, end) = newest?;
        if (sent, end) <= (self.first_sent, self.newest_end) && self.newest_end > 0 {
            return None;
        }
        while self.stamps.front().is_some_and(|stamp| stamp.sent < sent) {
            self.stamps.pop_front();
        }
        let stamp = self
            .stamps
            .front()
            .filter(|stamp| stamp.sent == sent)
            .copied()?;
        (self.first_sent, self.newest_end) = (sent, end);
        let interval = sent
            .since(stamp.first_sent)
            .max(now.since(stamp.delivered_at));
        if interval == Duration::ZERO || least_rtt.is_some_and(|least| interval < least) {
            return None;
        }
        Some(TcpRateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            app_limited: stamp.app_limited,
        })
    }
}
