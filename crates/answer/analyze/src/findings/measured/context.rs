//! What all kinds of findings share about one measurement, computed once.

use crate::findings::environment::processors::{self, SaturatedProcessor};
use crate::findings::finding::{Evidence, Finding, counted};
use crate::findings::measured::account::{PartTimeShares, States};
use crate::findings::measured::endpoints::{self, Outside, ReceiveWait};
use crate::findings::measured::kernel_account;
use crate::findings::measured::loss_cost::{LossCost, LossLocation};
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::needless_resends::NeedlessResends;
use crate::findings::measured::outage_costs::OutageCosts;
use crate::findings::measured::part::{MeasuredPart, opposite_side};
use crate::findings::measured::receive_backlog::{self, Backlog};
use stackline_core::network::Network;
use stackline_core::procedure::PairSide;
use stackline_core::units;
use std::collections::BTreeMap;

/// One measurement and what was computed of it.
#[derive(Debug)]
pub(crate) struct FindingContext<'c> {
    pub(crate) measurement: FindingMeasurement<'c>,
    /// The waits for data in its runs that no outage prolonged, with the bytes that were waited for.
    pub(crate) waits: Vec<ReceiveWait>,
    /// The time that each side spent outside operations, by index of the part.
    pub(crate) outside: Vec<BTreeMap<PairSide, Outside>>,
    /// Processors at their limit.
    pub(crate) processors: Vec<SaturatedProcessor>,
    /// The cost of lost packets.
    pub(crate) losses: LossCost,
    /// The cost of outages: times in which a link carries nothing.
    pub(crate) outages: OutageCosts,
    /// Packets that were sent again although they were not lost.
    pub(crate) needless_resends: Option<NeedlessResends>,
    /// How senders spent their time, by index of the part, where it is reported or can be estimated.
    accounts: BTreeMap<usize, PartTimeShares>,
    /// The time that received bulk data lay unread, by index of the part.
    backlogs: BTreeMap<usize, Backlog>,
}

/// The time that received data lay unread at the receiver of a bulk part; `None` if there are no events of that receiver.
fn unread(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    outside: &[BTreeMap<PairSide, Outside>],
) -> Option<(usize, Backlog)> {
    let reader = opposite_side(part.work.sender()?);
    outside.get(part.index)?.get(&reader)?;
    Some((
        part.index,
        receive_backlog::measure_receive_backlog(measurement, part, reader),
    ))
}

impl<'c> FindingContext<'c> {
    /// Whether the network of the measurement has IMPs.
    pub(crate) fn has_imps(&self) -> bool {
        self.measurement.network.is_some_and(Network::has_imps)
    }

    pub(crate) fn from_measurement(measurement: FindingMeasurement<'c>) -> Self {
        let all = endpoints::collect_receive_waits(&measurement);
        let outages = OutageCosts::from_measurement(&measurement, &all);
        let waits = outages.other_waits.clone();
        let outside: Vec<_> = (0..measurement.plan.parts.len())
            .map(|part| endpoints::measure_outside_time(&measurement, part))
            .collect();
        let processors = processors::at_their_limit(&measurement);
        let cpu = processors
            .iter()
            .map(|processor| processor.share)
            .fold(0.0, f64::max);
        let backlogs: BTreeMap<usize, Backlog> = measurement
            .parts
            .iter()
            .filter_map(|part| unread(&measurement, part, &outside))
            .collect();
        let of = |part: &MeasuredPart<'_>| {
            let shares = |backlog: &Backlog| {
                [backlog.total_s, backlog.at_end_s].map(|time| time / part.basis_s())
            };
            let unread = backlogs.get(&part.index).map_or([0.0; 2], shares);
            let reported = PartTimeShares::from_measurement(&measurement, part, cpu, unread);
            let away_s: f64 = outside.get(part.index).map_or(0.0, |sides| {
                sides.values().map(|outside| outside.total_s).sum()
            });
            let account = reported
                .or_else(|| kernel_account::estimate_time_shares(&measurement, part, away_s))?
                .without_outages(outages.of_part_share(part.index));
            Some((part.index, account))
        };
        let accounts: BTreeMap<usize, PartTimeShares> =
            measurement.parts.iter().filter_map(of).collect();
        let mut losses = LossCost::from_measurement(
            &measurement,
            &waits,
            &outside,
            &accounts,
            cpu,
            outages.share,
        );
        let needless_resends = NeedlessResends::from_measurement(&measurement);
        if let Some(resends) = &needless_resends {
            losses.share *= 1.0 - resends.part();
            losses.confidence = losses.confidence.min(NeedlessResends::BESIDE_LOSSES);
        }
        Self {
            measurement,
            waits,
            outside,
            processors,
            outages,
            losses,
            needless_resends,
            accounts,
            backlogs,
        }
    }

    /// How the senders of a part spent their time; `None` if it is neither reported nor estimated.
    pub(crate) fn account(&self, part: &MeasuredPart<'_>) -> Option<&PartTimeShares> {
        self.accounts.get(&part.index)
    }

    /// The time that received data lay unread at the receiver of a part.
    pub(crate) fn backlog(&self, part: &MeasuredPart<'_>) -> Option<&Backlog> {
        self.backlogs.get(&part.index)
    }

    /// A share of a part's time, limited to what a sender state can explain: where the transport reports states, at most the time in
    /// that state, and no time in which its data kept a link busy.
    pub(crate) fn at_most(
        &self,
        part: &MeasuredPart<'_>,
        share: f64,
        state: fn(&States) -> f64,
    ) -> f64 {
        let reported = self.account(part).filter(|account| !account.is_estimated);
        reported.map_or(share, |account| {
            account.explained(share.min(state(&account.states)))
        })
    }

    /// Seconds that one side's endpoints of a part were outside operations.
    pub(crate) fn outside_seconds(&self, part: usize, side: PairSide) -> f64 {
        let outside = self.outside.get(part).and_then(|sides| sides.get(&side));
        outside.map_or(0.0, |outside| outside.total_s)
    }

    /// The share of the measured time that one side's endpoints of a part were outside operations, 0 to 1.
    pub(crate) fn outside_share(&self, part: usize, side: PairSide) -> f64 {
        let Some(about) = self
            .measurement
            .parts
            .iter()
            .find(|about| about.index == part)
        else {
            return 0.0;
        };
        (self.outside_seconds(part, side) / about.pairs_s()).min(1.0)
    }

    /// Adds the waits for retransmitted bytes as evidence.
    pub(crate) fn with_stalls(&self, finding: Finding) -> Finding {
        let stalls = &self.losses.stalls;
        if stalls.waits == 0 || stalls.rows.is_empty() {
            return finding;
        }
        let what = format!(
            "{} for retransmitted bytes, {} in total, the longest {}",
            counted(stalls.waits, "wait"),
            units::format_time(stalls.seconds),
            units::format_time(stalls.longest_s)
        );
        finding.because(self.measurement.log.evidence(what, &stalls.rows))
    }

    /// Evidence of the drops at a place.
    pub(crate) fn drops(&self, place: &LossLocation) -> Evidence {
        let port = &self.measurement.ports[place.port];
        let what = format!("{}: {}; {}", port.name, port.reasons(), self.losses.basis);
        self.measurement.log.evidence(what, &place.rows)
    }
}
