//! Needless retransmissions: packets that were sent again although they were not lost, because a link lets packets overtake one another.

use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::findings::measured::path::PathPort;
use crate::statistics::to_f64;

/// The retransmissions of a measurement, and how many of them were needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedlessResends {
    /// Index in the measurement's ports of the port with the greatest mean jitter that reorders packets.
    pub(crate) port: usize,
    /// Packets sent again, over all parts and runs.
    pub(crate) again: u64,
    /// Packets sent again beyond the number of packets that were dropped.
    pub(crate) needless: u64,
}

/// The least number of needless retransmissions, and the least share of all retransmissions, to count as a cause.
const LEAST: (u64, f64) = (3, 0.2);

/// How many times as much a real loss costs as a needless retransmission, measured by removing either in simulations: a loss closes the
/// window, while a sender notices a needless retransmission and opens its window again.
const LOSS_WEIGHS: f64 = 20.0;

impl NeedlessResends {
    /// The greatest confidence of findings about losses and reordering where both occur, as the cost of each is then only estimated.
    pub(crate) const BESIDE_LOSSES: f64 = 0.6;

    /// The needless retransmissions of a measurement; `None` if no link on its paths lets packets overtake one another, or there are fewer
    /// than [`LEAST`].
    pub(crate) fn from_measurement(measurement: &FindingMeasurement<'_>) -> Option<Self> {
        let crossed = || {
            let ports = measurement.ports.iter().enumerate();
            ports.filter(|(_, port)| measurement.is_crossed(port))
        };
        let spread = |port: &PathPort| {
            let jitter = port.hop.jitter.as_ref().filter(|jitter| jitter.reorder)?;
            jitter.distribution.mean().filter(|_| port.packets > 0)
        };
        let overtaking = crossed().filter_map(|(at, port)| Some((at, spread(port)?)));
        // Of ports with equal jitter, the one that carries more bytes.
        let (port, _) = overtaking.max_by(|a, b| {
            let bytes = |at: usize| measurement.ports[at].bytes;
            a.1.total_cmp(&b.1).then(bytes(a.0).cmp(&bytes(b.0)))
        })?;
        let again: u64 = measurement
            .parts
            .iter()
            .filter_map(MeasuredPart::retransmits)
            .sum();
        let dropped: u64 = crossed()
            .map(|(_, port)| port.link_drops() + port.queue_drops() + port.outage_drops)
            .sum();
        let resends = Self {
            port,
            again,
            needless: again.saturating_sub(dropped),
        };
        let many = to_f64(resends.needless) >= LEAST.1 * to_f64(again);
        (resends.needless >= LEAST.0 && many).then_some(resends)
    }

    /// Whether other packets were sent again because they were lost; the cost of each cause is then estimated.
    pub(crate) const fn beside_losses(&self) -> bool {
        self.again > self.needless
    }

    /// The share of the time attributed to losses that is due to needless retransmissions, 0 to 1.
    pub(crate) fn part(&self) -> f64 {
        let lost = to_f64(self.again.saturating_sub(self.needless));
        to_f64(self.needless) / (to_f64(self.needless) + LOSS_WEIGHS * lost).max(1.0)
    }
}
