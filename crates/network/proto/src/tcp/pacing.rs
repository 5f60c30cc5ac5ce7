//! A sender that paces (BBR): segments leave in small bursts, spread over time at the rate that the model of the path
//! gives.

use super::bbr::Bbr;
use super::delivery_rate::TcpDeliveryRate;
use stackline_core::time::{Duration, Instant};

/// The state of a sender that paces.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpPacing {
    pub(super) rate: TcpDeliveryRate,
    pub(super) model: Bbr,
    /// When the next burst may be sent.
    next: Instant,
    /// Segments of the present burst that may still be sent.
    left: u32,
    /// Data waits for this instant; `None` when pacing holds nothing back.
    pub(super) waits: Option<Instant>,
}

impl TcpPacing {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            model: Bbr::new(seed),
            ..Self::default()
        }
    }

    /// Whether pacing holds data back now.
    pub(super) fn holds(&mut self, now: Instant) -> bool {
        self.waits = (self.left == 0 && self.next > now).then_some(self.next);
        self.waits.is_some()
    }

    /// Notes that a segment with `bytes` of data is sent. `mss` is the segment size, `in_flight` the segments in flight
    /// before it.
    pub(super) fn sends(&mut self, now: Instant, bytes: u64, mss: u32, in_flight: u32) {
        self.rate.sends(now, in_flight);
        let pace = self.model.pace();
        if pace <= 0.0 {
            return;
        }
        if self.left == 0 || self.next < now {
            self.left = self.model.burst(mss);
        }
        self.left -= 1;
        self.next = self.next.max(now) + Duration::from_seconds(8.0 * bytes as f64 / pace);
    }
}
