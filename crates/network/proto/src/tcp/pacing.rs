//! Who paces: bursts of a few segments, each as late as the model of the path says.

use super::bbr::Bbr;
use super::delivery_rate::TcpDeliveryRate;
use stackline_core::time::{Duration, Instant};

/// A paced sender.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpPacing {
    pub(super) rate: TcpDeliveryRate,
    pub(super) model: Bbr,
    /// When the next burst may leave, and how much of the present one is left.
    next: Instant,
    left: u32,
    /// Something waits until then.
    pub(super) waits: Option<Instant>,
}

impl TcpPacing {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            model: Bbr::new(seed),
            ..Self::default()
        }
    }

    /// Whether what there is has to wait.
    pub(super) fn holds(&mut self, now: Instant) -> bool {
        self.waits = (self.left == 0 && self.next > now).then_some(self.next);
        self.waits.is_some()
    }

    /// A segment leaves, with so many bytes of data, in a connection of that segment size and so many in flight before it.
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
