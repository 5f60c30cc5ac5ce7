//! The time that lost packets cost a measurement, and where they were lost. All kinds of findings about losses share this one account, so
//! that no time is explained twice.

use crate::findings::finding::LEAST;
use crate::findings::measured::account::PartTimeShares;
use crate::findings::measured::correlate::{self, Explained};
use crate::findings::measured::endpoints::{Outside, ReceiveWait};
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{GIVEN_UP_S, MeasuredPart, PartWorkload};
use crate::findings::measured::path::{self, PathPort};
use crate::statistics::{to_f64, value_at_rank};
use stackline_core::procedure::PairSide;
use stackline_core::units;
use stackline_events::catalogue::{self, CatalogueEntry, DataFate};
use std::collections::BTreeMap;

/// The time that lost packets cost a measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossCost {
    /// The share of the time that losses explain, 0 to 1.
    pub(crate) share: f64,
    /// How sure that is.
    pub(crate) confidence: f64,
    /// Waits that a retransmission of their own bytes explains.
    pub(crate) stalls: Explained,
    /// The share of the time that `stalls` or `dropped` explain, whichever is more.
    pub(crate) stalled: f64,
    /// Waits that a drop of their own bytes explains.
    pub(crate) dropped: Explained,
    /// Where the losses happened, with the share of each place in all loss events of the network.
    pub(crate) places: Vec<LossLocation>,
    /// How the time was computed, in words.
    pub(crate) basis: String,
}

/// Where packets were lost.
#[derive(Clone, Debug)]
pub(crate) struct LossLocation {
    /// Index of the port in the measurement.
    pub(crate) port: usize,
    /// Whether the link itself lost the packets; else its queue dropped them.
    pub(crate) on_the_link: bool,
    /// Its share of all loss events, 0 to 1.
    pub(crate) part: f64,
    /// The rows of the drops there.
    pub(crate) rows: Vec<u32>,
}

impl LossCost {
    /// Computes the cost of losses. By index of the part, `outside` is the time of endpoints outside operations, and `accounts` how senders
    /// spent their time. `cpu` and `down` are the shares of the time that processors and outages explain.
    pub(crate) fn from_measurement(
        measurement: &FindingMeasurement<'_>,
        waits: &[ReceiveWait],
        outside: &[BTreeMap<PairSide, Outside>],
        accounts: &BTreeMap<usize, PartTimeShares>,
        cpu: f64,
        down: f64,
    ) -> Self {
        // Events of a kernel name no stream, so those on the measured hosts are added.
        let rows = |entry: &CatalogueEntry| {
            measurement
                .rows(entry.keyword)
                .into_iter()
                .chain(measurement.nameless(entry.keyword))
        };
        let sent_again = catalogue::ENTRIES
            .iter()
            .filter(|entry| entry.fate == Some(DataFate::SentAgain));
        let mut again: Vec<u32> = sent_again.flat_map(rows).collect();
        again.sort_by_key(|row| measurement.log.at(*row));
        let mut drops = measurement.rows("NET_DROP");
        let in_outage = |row: u32| {
            let mut outages = measurement.outages.iter();
            outages.any(|outage| measurement.is_in_outage(row, outage))
        };
        drops.retain(|row| !in_outage(*row));
        let slack = slack_ns(measurement);
        let (known, unknown): (Vec<u32>, Vec<u32>) = again
            .iter()
            .partition(|row| measurement.log.flow(**row).is_some());
        let (by_bytes, left) = correlate::by_bytes(measurement.log, waits, &known, slack);
        let stalls = by_bytes.and(correlate::by_rate(measurement.log, &left, &unknown));
        let (dropped, _) = correlate::by_bytes(measurement.log, waits, &drops, slack);
        let all = measurement.basis_s();
        let stalled = (stalls.seconds.max(dropped.seconds) / all).min(1.0);
        let mut losses = Self {
            stalled,
            places: places(measurement, &drops),
            stalls,
            dropped,
            ..Self::default()
        };
        if measurement.has_calls_or_connects() {
            losses.of_calls(measurement);
        } else {
            losses.of_bulk(measurement, outside, cpu, down);
        }
        losses.by_states(measurement, accounts);
        losses
    }

    /// Replaces the cost where the states of all senders are known: time in recovery and timeouts, and with windows that losses made small.
    /// If the senders were never in such a state, losses cost nothing.
    fn by_states(
        &mut self,
        measurement: &FindingMeasurement<'_>,
        accounts: &BTreeMap<usize, PartTimeShares>,
    ) {
        if self.places.is_empty()
            || !measurement
                .parts
                .iter()
                .all(|part| accounts.contains_key(&part.index))
        {
            return;
        }
        let of =
            |part: &MeasuredPart<'_>| accounts.get(&part.index).map_or(0.0, PartTimeShares::lost);
        let states = measurement.over_parts(of);
        if accounts.values().any(|account| account.is_estimated) {
            return self.by_shortfall(states);
        }
        let most = 1.0 - measurement.over_parts(|part| measurement.fullness(part).unwrap_or(0.0));
        self.share = states.min(most.max(self.stalled));
        self.confidence = 0.95;
        self.basis = format!(
            "senders were held back by losses {:.0} % of the time",
            100.0 * states
        );
    }

    /// Replaces the cost for calls with estimated states whose data was retransmitted by the time that nothing else takes (`left`), if that
    /// is more than the waits for the very bytes show; this is less certain.
    fn by_shortfall(&mut self, left: f64) {
        if left > self.share {
            (self.share, self.confidence) = (left, SHORTFALL);
            self.basis = "data was retransmitted, and nothing else accounts for the time".into();
        }
    }

    /// The cost for calls: the time that waits whose bytes were lost took beyond a usual wait; without events it is estimated from response
    /// times and counts of losses.
    fn of_calls(&mut self, measurement: &FindingMeasurement<'_>) {
        (self.share, self.confidence) = (
            self.stalled,
            self.stalls.confidence.max(self.dropped.confidence),
        );
        self.basis = "based on the bytes that calls waited for".into();
        let given_up: u64 = measurement.parts.iter().map(MeasuredPart::lost_calls).sum();
        if given_up > 0 {
            self.basis = format!(
                "calls abandoned after {} each: {given_up}; all calls together took {}",
                units::format_time(GIVEN_UP_S),
                units::format_time(measurement.basis_s())
            );
        }
        if measurement.log.is_empty() {
            // Without events: calls that took much longer than usual, no more of them than packets were lost.
            let lost: u64 = measurement
                .ports
                .iter()
                .map(|port| port.queue_drops() + port.link_drops())
                .sum();
            let again: u64 = measurement
                .parts
                .iter()
                .filter_map(MeasuredPart::retransmits)
                .sum();
            let (seconds, times) = long_calls(measurement);
            let dropped_calls = given_up.min(lost);
            if dropped_calls > 0 {
                let seconds = to_f64(dropped_calls) * GIVEN_UP_S;
                (self.share, self.confidence) = (seconds / measurement.basis_s(), 0.85);
            } else if times > 0 && times <= 2 * lost.max(again) {
                (self.share, self.confidence) = (seconds / measurement.basis_s(), 0.7);
                self.basis = format!("calls that took more than three times the median: {times}");
            }
        }
    }

    /// The cost for bulk data: the time in which neither the path was full nor a window, a buffer, an application or a processor was the
    /// limit; at most the time that this number of losses can cost.
    fn of_bulk(
        &mut self,
        measurement: &FindingMeasurement<'_>,
        outside: &[BTreeMap<PairSide, Outside>],
        cpu: f64,
        down: f64,
    ) {
        let fullness = measurement.over_parts(|part| measurement.fullness(part).unwrap_or(1.0));
        let kept = measurement.over_parts(|part| {
            let limits = part.limits().unwrap_or_default();
            let busy_elsewhere = outside.get(part.index).map_or(0.0, |sides| {
                sides.values().map(|side| side.total_s).fold(0.0, f64::max)
                    / part.elapsed_s
                    / f64::from(part.plan.replicas)
            });
            (limits.receive_window + limits.send_buffer).max(busy_elsewhere)
        });
        // Capacity that a transfer leaves unused in slow start is not due to losses. `kept` is a factor and not subtracted, as a window may
        // be closed while other streams use the path.
        let opening = measurement.opening_s() / measurement.span_s;
        let left = (1.0 - fullness - opening - down).max(0.0) * (1.0 - kept.max(cpu).min(1.0));
        let events: u64 = if self.places.is_empty() {
            measurement
                .parts
                .iter()
                .filter_map(MeasuredPart::retransmits)
                .sum()
        } else {
            episodes(measurement, &self.places)
        };
        let cost = |part: &MeasuredPart<'_>| {
            to_f64(events) * recovery_s(part) / (part.elapsed_s * f64::from(part.plan.replicas))
        };
        let most = measurement.over_parts(|part| if for_good(part) { 0.0 } else { cost(part) });
        let modelled = measurement.network.is_some();
        self.share = if modelled {
            left.min(most).max(self.stalled.min(left))
        } else {
            self.stalled
        };
        // If a transport does not report what limited it, something else may have been the cause: the confidence is less.
        let reported = measurement.parts.iter().all(|part| part.limits().is_some());
        self.confidence = match (self.stalled > LEAST, reported) {
            (true, _) => 0.95,
            (false, true) => 0.85,
            (false, false) => 0.7,
        };
        self.basis = if modelled {
            format!("the path was used {:.0} % of the time", 100.0 * fullness)
        } else {
            "based on the awaited bytes".into()
        };
    }
}

/// Calls that took more than three times the median: their seconds beyond the median, and their number.
fn long_calls(measurement: &FindingMeasurement<'_>) -> (f64, u64) {
    let mut found = (0.0, 0);
    for calls in measurement.parts.iter().map(MeasuredPart::calls) {
        let median = value_at_rank(&calls, calls.n(), 0.5);
        for (value, times) in calls.counts.iter().filter(|(value, _)| *value > 3 * median) {
            found.0 += to_f64(value - median) * to_f64(*times) / 1e9;
            found.1 += times;
        }
    }
    found
}

/// Confidence in losses as the cause of time that nothing else takes.
const SHORTFALL: f64 = 0.75;

/// How long before a wait a loss may explain it: two round trips and the error of the clocks, ns.
fn slack_ns(measurement: &FindingMeasurement<'_>) -> u64 {
    ((2e9 * measurement.longest_trip_s()) as u64)
        .saturating_add(measurement.log.input.lifelines.clock_error_ns)
}

/// Whether a part's data goes over a port; for calls in either direction.
fn sends_over(part: &MeasuredPart<'_>, port: &PathPort) -> bool {
    let paths = part.paths.as_ref().map(|(there, back)| [there, back]);
    match part.work {
        PartWorkload::Bulk(_) => part
            .data_path()
            .is_some_and(|path| path::path_contains_port(path, port)),
        _ => paths
            .into_iter()
            .flatten()
            .any(|path| path::path_contains_port(path, port)),
    }
}

/// The longest time that a congestion window takes to recover from a loss, s: along CUBIC's curve back to a full path (0.3 of the window
/// lost, C = 0.4) or along Reno's line, by the stack's congestion control, plus two round trips to detect and repair the loss, plus a
/// timeout (RFC 9438 section 4.2, RFC 5681 section 3.1). 1 s if the path is not known.
fn recovery_s(part: &MeasuredPart<'_>) -> f64 {
    let (Some(trip), Some(segment)) = (part.round_trip_s(), part.segment_bytes()) else {
        return 1.0;
    };
    let window = part
        .bandwidth_delay_bytes()
        .map_or(100.0, |bytes| (bytes / to_f64(segment.max(1))).max(2.0));
    let cubic = (window * 0.3 / 0.4).cbrt();
    let reno = window / 2.0 * trip;
    let back = if part.plan.stack.word("congestion") == Some("reno") {
        reno
    } else {
        // Where Reno is faster, CUBIC follows it (RFC 9438, section 4.3).
        cubic.min(reno.max(trip))
    };
    // The loss may also be repaired by a timeout, which takes at least this long.
    back + 2.0 * trip + LEAST_TIMEOUT_S
}

/// Whether lost data is not retransmitted (its units are counted as lost): then losses cost no time.
fn for_good(part: &MeasuredPart<'_>) -> bool {
    part.records
        .iter()
        .any(|record| record.initiator.lost.is_some() || record.responder.lost.is_some())
}

/// The minimum retransmission timeout of Linux, s.
const LEAST_TIMEOUT_S: f64 = 0.2;

/// The number of loss events that a sender reacts to once; without events about drops the number of drops that ports counted.
fn episodes(measurement: &FindingMeasurement<'_>, places: &[LossLocation]) -> u64 {
    let rows: Vec<u32> = places
        .iter()
        .flat_map(|place| place.rows.iter().copied())
        .collect();
    if rows.is_empty() {
        return measurement
            .ports
            .iter()
            .map(|port| port.queue_drops() + port.link_drops())
            .sum();
    }
    real_episodes(measurement, rows)
}

/// The number of loss events in these drops: drops of one stream within a round trip of the first count as one.
fn real_episodes(measurement: &FindingMeasurement<'_>, mut rows: Vec<u32>) -> u64 {
    let within = (1e9 * measurement.longest_trip_s()) as u64;
    rows.sort_by_key(|row| measurement.log.at(*row));
    let mut last: BTreeMap<i64, u64> = BTreeMap::new();
    let mut count = 0;
    for row in rows {
        let (stream, at) = (
            measurement.log.number(row, "stream").unwrap_or(-1),
            measurement.log.at(row),
        );
        let begins = last
            .get(&stream)
            .is_none_or(|last| at > last.saturating_add(within));
        if begins {
            count += 1;
            last.insert(stream, at);
        }
    }
    count
}

/// Where packets were lost, by events if there are any, else by the ports' counts. A lost acknowledgement costs next to nothing, as the
/// next one acknowledges the same data; so only packets with data count if any drop is known to have carried data.
fn places(measurement: &FindingMeasurement<'_>, drops: &[u32]) -> Vec<LossLocation> {
    let log = measurement.log;
    let carries = |row: &u32| log.range(*row).is_some() || !log.unit(*row).is_empty();
    let data: Vec<u32> = drops.iter().copied().filter(carries).collect();
    let known = !data.is_empty();
    let drops = if known { &data } else { drops };
    let sends = |port: &PathPort| measurement.parts.iter().any(|part| sends_over(part, port));
    let mut places = Vec::new();
    for (at, port) in measurement
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| measurement.is_crossed(port))
    {
        for (on_the_link, count) in [(true, port.link_drops()), (false, port.queue_drops())] {
            let here = |row: &u32| {
                let reason = measurement.log.text(*row, "reason").unwrap_or_default();
                measurement.log.text(*row, "place") == Some(&port.name)
                    && path::on_the_link(reason) == on_the_link
                    && !path::is_secondary_drop(reason)
            };
            let rows: Vec<u32> = drops.iter().copied().filter(here).collect();
            if if known {
                !rows.is_empty()
            } else {
                count > 0 && sends(port)
            } {
                let events = if rows.is_empty() {
                    count
                } else {
                    real_episodes(measurement, rows.clone())
                };
                places.push(LossLocation {
                    port: at,
                    on_the_link,
                    part: to_f64(events),
                    rows,
                });
            }
        }
    }
    let all: f64 = places.iter().map(|place| place.part).sum();
    places
        .iter_mut()
        .for_each(|place| place.part /= all.max(1.0));
    places
}
