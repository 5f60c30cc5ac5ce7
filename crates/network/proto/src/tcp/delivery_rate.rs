//! How fast segments arrive: what was delivered between the sending of a segment and its acknowledgement, as Linux samples it
//! (draft-cheng-iccrg-delivery-rate-estimation). Kept only for who paces by it.

use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// What was known when something left.
#[derive(Clone, Copy, Debug)]
struct TcpDeliveryStamp {
    sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
}

/// One acknowledgement's worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpRateSample {
    /// Segments delivered within `interval`.
    pub(super) delivered: u64,
    pub(super) interval: Duration,
    /// Segments that had been delivered when the newest of these left.
    pub(super) prior_delivered: u64,
    /// The sender had nothing to send meanwhile.
    pub(super) app_limited: bool,
}

/// The count of one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpDeliveryRate {
    /// Segments delivered in all.
    pub(super) delivered: u64,
    delivered_at: Instant,
    /// When the newest segment left that has arrived, and where it ends.
    first_sent: Instant,
    newest_end: u64,
    /// Until so many are delivered, samples are of an application that had nothing to send.
    app_limited: u64,
    stamps: VecDeque<TcpDeliveryStamp>,
}

impl TcpDeliveryRate {
    /// Something leaves, with so many segments in flight before it.
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

    /// The application has nothing more to send, though more could leave.
    pub(super) fn idle(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Whether the application had nothing to send lately.
    pub(super) const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// So many segments arrived, of which the one that ends at `newest.1` left last, at `newest.0`.
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
