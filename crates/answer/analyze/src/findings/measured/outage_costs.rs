//! The time that outages (times in which a link carries nothing) cost a measurement. All kinds of findings share this one account, so that
//! a loss or a wait due to an outage is not attributed to another cause as well.

use crate::findings::measured::correlate;
use crate::findings::measured::endpoints::ReceiveWait;
use crate::findings::measured::link_outages::LinkOutage;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::measured::path;
use crate::statistics::upper_median;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::RunRecord;
use stackline_core::time::Duration;
use stackline_model::PathModel;
use std::collections::BTreeMap;

/// The time that outages cost a measurement, by part and by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutageCosts {
    /// The share of each part's time that outages cost, by index of the part.
    shares: BTreeMap<usize, f64>,
    /// The share of the time of all parts together.
    pub(crate) share: f64,
    /// How much of `share` each place costs; a place is the name of a port.
    pub(crate) places: BTreeMap<String, f64>,
    /// The events that end the waits prolonged by an outage, by place.
    pub(crate) rows: BTreeMap<String, Vec<u32>>,
    /// The waits that no outage prolonged.
    pub(crate) other_waits: Vec<ReceiveWait>,
    /// Whether there were waits from events to compute this from.
    pub(crate) seen: bool,
}

impl OutageCosts {
    /// Computes the costs of a measurement's outages from its waits.
    pub(crate) fn from_measurement(
        measurement: &FindingMeasurement<'_>,
        waits: &[ReceiveWait],
    ) -> Self {
        let mut costs = Self {
            other_waits: waits.to_vec(),
            seen: !waits.is_empty(),
            ..Self::default()
        };
        for outage in &measurement.outages {
            let mut took = 0.0;
            for part in measurement
                .parts
                .iter()
                .filter(|part| is_crossed(part, outage))
            {
                let seconds = costs.of_part(measurement, part, outage);
                let share = (seconds / part.basis_s()).clamp(0.0, 1.0);
                let known = costs.shares.entry(part.index).or_default();
                // Both directions of a link are down at the same time, which must be counted once.
                took += part.weight * (share - *known).max(0.0);
                *known = known.max(share);
            }
            costs.share += took;
            costs.places.insert(outage.place.clone(), took);
        }
        costs
    }

    /// The share of a part's time that outages cost, by index of the part.
    pub(crate) fn of_part_share(&self, part: usize) -> f64 {
        self.shares.get(&part).copied().unwrap_or(0.0)
    }

    /// Seconds that an outage cost a part, over all its pairs and runs. Records prolonged waits, and leaves the rest in `other_waits`.
    fn of_part(
        &mut self,
        measurement: &FindingMeasurement<'_>,
        part: &MeasuredPart<'_>,
        outage: &LinkOutage,
    ) -> f64 {
        let least = least_s(measurement, part, outage);
        let mine = |wait: &ReceiveWait| {
            let flow = measurement.log.flow(wait.row);
            flow.and_then(|flow| measurement.log.input.index.flow(flow))
                .is_some_and(|flow| flow.part == part.index)
        };
        let (waits, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.other_waits)
            .into_iter()
            .partition(mine);
        self.other_waits = others;
        let (held, free) = split(measurement, waits, outage);
        let usual = upper_median(free.iter().map(|(wait, _)| wait.seconds()).collect());
        let mut seconds = 0.0;
        for (wait, since_s) in held {
            let cost = if free.is_empty() {
                over_s(measurement, &wait, outage)
            } else {
                (wait.seconds() - usual).min(since_s)
            };
            if cost > MARGIN * usual || free.is_empty() {
                seconds += cost;
                self.rows
                    .entry(outage.place.clone())
                    .or_default()
                    .push(wait.row);
            } else {
                self.other_waits.push(wait);
            }
        }
        self.other_waits
            .extend(free.into_iter().map(|(wait, _)| wait));
        self.other_waits.sort_by_key(|wait| wait.to_ns);
        seconds.max(least)
    }
}

/// A wait counts as prolonged only if the outage cost it more than this share of the usual wait.
const MARGIN: f64 = 0.25;

/// A wait, and how much of it lies after the beginning of an outage, s.
type TimedWait = (ReceiveWait, f64);

/// Splits waits into those that an outage may have prolonged, and the others. It may have if they overlap with it or waited for data that
/// was dropped in it.
fn split(
    measurement: &FindingMeasurement<'_>,
    waits: Vec<ReceiveWait>,
    outage: &LinkOutage,
) -> (Vec<TimedWait>, Vec<TimedWait>) {
    let dropped: Vec<u32> = measurement
        .rows("NET_DROP")
        .into_iter()
        .filter(|row| measurement.is_in_outage(*row, outage))
        .collect();
    let slack_ns = (2e9 * measurement.longest_trip_s()) as u64;
    let hit = correlate::hit_by_bytes(measurement.log, &waits, &dropped, slack_ns);
    let timed = |(wait, hit): (ReceiveWait, Option<u32>)| {
        let (from, to) = (
            since(measurement, wait.from_ns),
            since(measurement, wait.to_ns),
        );
        let over = from.zip(to).and_then(|(from, to)| {
            let begins = outage.between(from, to).next()?.0.max(from);
            (begins < to).then(|| Duration(to.0 - begins.0).seconds())
        });
        let after = over.or_else(|| hit.map(|_| wait.seconds()));
        (wait, after)
    };
    let (mut held, mut free) = (Vec::new(), Vec::new());
    for (wait, after) in waits.into_iter().zip(hit).map(timed) {
        match after {
            Some(seconds) => held.push((wait, seconds)),
            None => free.push((wait, 0.0)),
        }
    }
    (held, free)
}

/// How much of a wait overlaps with an outage, s.
fn over_s(measurement: &FindingMeasurement<'_>, wait: &ReceiveWait, outage: &LinkOutage) -> f64 {
    let (from, to) = (
        since(measurement, wait.from_ns),
        since(measurement, wait.to_ns),
    );
    from.zip(to)
        .map_or(0.0, |(from, to)| outage.seconds_between(from, to))
}

/// The time of a moment since the network of its run began.
fn since(measurement: &FindingMeasurement<'_>, at_ns: u64) -> Option<Duration> {
    measurement.network_time(at_ns)
}

/// The least that an outage costs a part, s: its overlap with the runs, in which a transfer stands still. It is 0 for parts with a pace,
/// which may have had nothing to send, and for traced calls, whose waits show the cost.
fn least_s(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
    outage: &LinkOutage,
) -> f64 {
    let paced = [PairSide::Initiator, PairSide::Responder]
        .into_iter()
        .any(|side| part.paces(side));
    let traced = !measurement.log.is_empty();
    if paced || (traced && part.work == PartWorkload::Calls) {
        return 0.0;
    }
    let of_record = |record: &&RunRecord| {
        let length = Duration(record.elapsed_ns);
        let begins = measurement.clock_begins(part.index, record.run);
        outage.seconds_between(begins, Duration(begins.0.saturating_add(length.0)))
    };
    let seconds: f64 = part.records.iter().map(of_record).sum();
    seconds * part.replicas()
}

/// Whether packets of a part, acknowledgements included, go over the link.
fn is_crossed(part: &MeasuredPart<'_>, outage: &LinkOutage) -> bool {
    let crosses = |path: &PathModel| {
        path.hops
            .iter()
            .any(|hop| path::hop_name(hop) == outage.place)
    };
    part.paths
        .as_ref()
        .is_some_and(|(there, back)| crosses(there) || crosses(back))
}
