//! Packets that were sent again although none was lost, where a link lets packets overtake one another.

use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::findings::measured::path::PathPort;
use crate::statistics::to_f64;

/// What was sent again for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedlessResends {
    /// Index of the port in the measurement that lets packets overtake most.
    pub(crate) port: usize,
    /// Packets sent again.
    pub(crate) again: u64,
    /// Of them those that no drop accounts for.
    pub(crate) needless: u64,
}

/// Fewer are no cause, nor is a smaller part of all that was sent again.
const LEAST: (u64, f64) = (3, 0.2);

/// A loss closes the window; what was sent again for nothing is noticed as such, and the window opens again. By removal a loss costs
/// about so many times as much.
const LOSS_WEIGHS: f64 = 20.0;

impl NeedlessResends {
    /// How sure either is at most beside the other: what each costs is estimated.
    pub(crate) const BESIDE_LOSSES: f64 = 0.6;

    /// Of a measurement; `None` where no link of its ways lets packets overtake one another, or nothing was resent for that.
    pub(crate) fn of(measurement: &FindingMeasurement<'_>) -> Option<Self> {
        let crossed = || {
            let ports = measurement.ports.iter().enumerate();
            ports.filter(|(_, port)| measurement.is_crossed(port))
        };
        let spread = |port: &PathPort| {
            let jitter = port.hop.jitter.as_ref().filter(|jitter| jitter.reorder)?;
            jitter.distribution.mean().filter(|_| port.packets > 0)
        };
        let overtaking = crossed().filter_map(|(at, port)| Some((at, spread(port)?)));
        // Of directions that spread alike the one that carries more.
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

    /// Whether others were sent again because they were lost: what either costs is estimated then.
    pub(crate) const fn beside_losses(&self) -> bool {
        self.again > self.needless
    }

    /// The part that they have in what is attributed to losses, 0 to 1.
    pub(crate) fn part(&self) -> f64 {
        let lost = to_f64(self.again.saturating_sub(self.needless));
        to_f64(self.needless) / (to_f64(self.needless) + LOSS_WEIGHS * lost).max(1.0)
    }
}
