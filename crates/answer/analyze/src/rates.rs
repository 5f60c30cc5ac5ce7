//! Throughput of units, at the sender and at the receiver, as section 4.2.2 of Tierney et al. (1996) defines it.
//!
//! The sender's moment is the one just before the unit is handed to the network, the receiver's the one when it has arrived whole.
//! One unit passes between two consecutive moments. A burst rate is that of five consecutive units; the average is that of all units
//! between the first and the last moment of a run.

use crate::lifelines::{Lifeline, LifelinePassage, Lifelines};
use crate::segments::signed_difference_ns;
use serde::Serialize;
use stackline_core::trace_index::Index;
use std::collections::{BTreeMap, BTreeSet};

/// The number of units in one burst.
pub const BURST: usize = 5;

/// At which end of the way throughput is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferSide {
    /// Where units are handed to the network.
    Sender,
    /// Where units have arrived whole.
    Receiver,
}

/// The throughput of the units of one group, at one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Index of the group.
    pub group: u32,
    /// Whether it is about the responses of calls; else about their requests, or about units that go one way.
    pub responses: bool,
    /// At which end.
    pub side: TransferSide,
    /// How many units have a moment at this end.
    pub units: u64,
    /// Time between the first and the last moment, all runs together, ns.
    pub elapsed_ns: u64,
    /// Units per second over that time.
    pub units_per_s: f64,
    /// Bits per second over that time; absent if a unit's size is not known.
    pub average_bit_s: Option<f64>,
    /// The rates of five consecutive units; absent with fewer units or without sizes.
    pub bursts_bit_s: Option<Bursts>,
    /// The interarrival jitter as an RTP receiver estimates it (RFC 3550, section 6.4.1), ns, at the end of a run; the mean over several
    /// runs. Only at the receiver.
    pub jitter_ns: Option<f64>,
}

/// The rates of bursts, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bursts {
    /// How many bursts: any five consecutive units are one.
    pub n: u64,
    /// The slowest burst.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The fastest burst.
    pub max: f64,
}

/// The throughput of every group. `bytes` is the size of units whose events do not say it.
#[must_use]
pub fn rates(lifelines: &Lifelines, index: Option<&Index>, bytes: Option<u64>) -> Vec<Rates> {
    let senders = Senders::from_lifelines(lifelines);
    let calls = CallPoints::from_lifelines(lifelines);
    let mut moments: BTreeMap<(u32, bool, TransferSide, RateRunKey), Vec<UnitObservation>> =
        BTreeMap::new();
    for line in lifelines
        .lines
        .iter()
        .filter(|line| !lifelines.is_connection(line))
    {
        let run = run(index, line);
        let mut add = |responses,
                       side,
                       passage: Option<&LifelinePassage>,
                       size,
                       sent: Option<&LifelinePassage>| {
            if let Some(passage) = passage {
                let transit_ns = sent.map(|sent| signed_difference_ns(sent.at_ns, passage.at_ns));
                let moment = UnitObservation {
                    at_ns: passage.at_ns,
                    bytes: size,
                    transit_ns,
                };
                moments
                    .entry((line.group, responses, side, run))
                    .or_default()
                    .push(moment);
            }
        };
        let is_call = calls.is_call(lifelines, line);
        let (sent, arrived) = (
            senders.moment(lifelines, line),
            find_arrival_passage(lifelines, line),
        );
        if is_call {
            let request = line
                .bytes
                .map(|bytes| bytes - line.response_bytes.unwrap_or(0))
                .filter(|bytes| *bytes > 0);
            let called = calls.first(lifelines, line, "APP_CALL");
            add(false, TransferSide::Sender, called, request.or(bytes), None);
            add(
                false,
                TransferSide::Receiver,
                calls.first(lifelines, line, "APP_INDICATION"),
                request.or(bytes),
                called,
            );
        }
        let size = if is_call {
            line.response_bytes
        } else {
            line.bytes
        }
        .or(bytes);
        add(is_call, TransferSide::Sender, sent, size, None);
        add(is_call, TransferSide::Receiver, arrived, size, sent);
    }
    let mut sums: BTreeMap<(u32, bool, TransferSide), RateSums> = BTreeMap::new();
    for ((group, responses, side, _), mut moments) in moments {
        moments.sort_unstable();
        sums.entry((group, responses, side))
            .or_default()
            .add(side, &moments);
    }
    sums.into_iter()
        .filter_map(|((group, responses, side), sums)| sums.rates(group, responses, side))
        .collect()
}

/// Which points belong to calls: a request and its response are one unit that goes there and back, so each has its own rate.
struct CallPoints<'m> {
    /// By point: its keyword if it is one of a call.
    keywords: Vec<Option<&'m str>>,
}

impl<'m> CallPoints<'m> {
    fn from_lifelines(lifelines: &'m Lifelines) -> Self {
        let own = |keyword: &str| {
            matches!(
                keyword,
                "APP_CALL" | "APP_INDICATION" | "APP_REPLY" | "APP_RESPONSE"
            )
        };
        let keywords = lifelines
            .points
            .iter()
            .map(|point| Some(point.keyword.as_str()).filter(|keyword| own(keyword)));
        Self {
            keywords: keywords.collect(),
        }
    }

    fn is_call(&self, lifelines: &Lifelines, line: &Lifeline) -> bool {
        lifelines
            .passages_of(line)
            .iter()
            .any(|passage| self.keywords[passage.point as usize].is_some())
    }

    fn first<'l>(
        &self,
        lifelines: &'l Lifelines,
        line: &Lifeline,
        keyword: &str,
    ) -> Option<&'l LifelinePassage> {
        lifelines
            .passages_of(line)
            .iter()
            .find(|passage| self.keywords[passage.point as usize] == Some(keyword))
    }
}

/// When a unit passed an end (ns), its size (bytes), and how long it had been under way (ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnitObservation {
    at_ns: u64,
    bytes: Option<u64>,
    transit_ns: Option<i64>,
}

/// The run of a line: (measurement, run); `None` without a flow.
type RateRunKey = Option<(usize, u32)>;

fn run(index: Option<&Index>, line: &Lifeline) -> RateRunKey {
    let flow = index?.flow(line.flow?)?;
    Some((flow.measurement, flow.run))
}

/// The passage at which a unit has arrived whole; `None` if it has not arrived, and for connections.
pub(crate) fn find_arrival_passage<'m>(
    lifelines: &'m Lifelines,
    line: &Lifeline,
) -> Option<&'m LifelinePassage> {
    lifelines
        .passages_of(line)
        .last()
        .filter(|_| line.has_arrived() && !lifelines.is_connection(line))
}

/// Points at which units are handed to the network.
pub(crate) struct Senders {
    points: BTreeSet<u32>,
}

impl Senders {
    /// Finds the points: for stackline's own units, APP_SEND and APP_REPLY; for other units that arrived, the last point that is on a
    /// different host from the last of all.
    pub(crate) fn from_lifelines(lifelines: &Lifelines) -> Self {
        let own = |keyword: &str| matches!(keyword, "APP_SEND" | "APP_REPLY");
        let mut points: BTreeSet<u32> = (0_u32..)
            .zip(&lifelines.points)
            .filter(|(_, point)| own(&point.keyword))
            .map(|(point, _)| point)
            .collect();
        let host =
            |passage: &LifelinePassage| lifelines.points[passage.point as usize].host.as_str();
        for line in lifelines
            .lines
            .iter()
            .filter(|line| line.has_arrived() && line.flow.is_none())
        {
            let passages = lifelines.passages_of(line);
            let Some(last) = passages.last() else {
                continue;
            };
            points.extend(
                passages
                    .iter()
                    .rev()
                    .find(|passage| host(passage) != host(last))
                    .map(|passage| passage.point),
            );
        }
        Self { points }
    }

    /// The passage at which a unit was handed to the network; of several, the last.
    pub(crate) fn moment<'m>(
        &self,
        lifelines: &'m Lifelines,
        line: &Lifeline,
    ) -> Option<&'m LifelinePassage> {
        lifelines
            .passages_of(line)
            .iter()
            .rev()
            .find(|passage| self.points.contains(&passage.point))
    }
}

/// Sums over the runs of a group.
#[derive(Default)]
struct RateSums {
    units: u64,
    /// Differences between consecutive moments.
    gaps: u64,
    elapsed_ns: u64,
    /// Bits of all units whose size is known.
    bits: Option<f64>,
    /// Whether the size of some unit is not known.
    sizes_missing: bool,
    /// Rates of all bursts, bit/s.
    bursts: Vec<f64>,
    /// The jitter at the end of each run, ns.
    jitters_ns: Vec<f64>,
}

impl RateSums {
    fn add(&mut self, side: TransferSide, moments: &[UnitObservation]) {
        self.units += moments.len() as u64;
        // A list of moments is made with its first one, so none is empty.
        self.gaps += moments.len() as u64 - 1;
        self.elapsed_ns += moments[moments.len() - 1].at_ns - moments[0].at_ns;
        self.jitters_ns.extend(jitter_ns(moments));
        for five in moments.windows(BURST + 1) {
            let elapsed_s = signed_difference_ns(five[0].at_ns, five[BURST].at_ns) as f64 * 1e-9;
            if let Some(bits) = bits(side, five).filter(|_| elapsed_s > 0.0) {
                self.bursts.push(bits / elapsed_s);
            }
        }
        match bits(side, moments) {
            Some(bits) => *self.bits.get_or_insert_default() += bits,
            None => self.sizes_missing = true,
        }
    }

    fn rates(mut self, group: u32, responses: bool, side: TransferSide) -> Option<Rates> {
        let seconds = Some(self.elapsed_ns as f64 * 1e-9).filter(|seconds| *seconds > 0.0)?;
        self.bursts.sort_unstable_by(f64::total_cmp);
        let n = self.bursts.len();
        let bursts_bit_s = (n > 0 && !self.sizes_missing).then(|| Bursts {
            n: n as u64,
            min: self.bursts[0],
            median: (self.bursts[(n - 1) / 2] + self.bursts[n / 2]) / 2.0,
            max: self.bursts[n - 1],
        });
        Some(Rates {
            group,
            responses,
            side,
            units: self.units,
            elapsed_ns: self.elapsed_ns,
            units_per_s: self.gaps as f64 / seconds,
            average_bit_s: self
                .bits
                .filter(|_| !self.sizes_missing)
                .map(|bits| bits / seconds),
            bursts_bit_s,
            jitter_ns: (!self.jitters_ns.is_empty())
                .then(|| self.jitters_ns.iter().sum::<f64>() / self.jitters_ns.len() as f64),
        })
    }
}

/// The RTP estimate at the end of a run: it moves by a sixteenth towards each new difference. Moments are in the order of arrival.
fn jitter_ns(moments: &[UnitObservation]) -> Option<f64> {
    let transits: Vec<i64> = moments
        .iter()
        .filter_map(|moment| moment.transit_ns)
        .collect();
    let differences = transits
        .windows(2)
        .map(|two| two[1].abs_diff(two[0]) as f64);
    (transits.len() > 1)
        .then(|| differences.fold(0.0, |estimate, new| estimate + (new - estimate) / 16.0))
}

/// Bits that passed between the first and the last moment. A unit passes after its moment at the sender and before its moment at the
/// receiver, so the last or the first unit does not count.
fn bits(side: TransferSide, moments: &[UnitObservation]) -> Option<f64> {
    let went = match side {
        TransferSide::Sender => &moments[..moments.len() - 1],
        TransferSide::Receiver => &moments[1..],
    };
    went.iter()
        .map(|moment| moment.bytes.map(|bytes| bytes as f64 * 8.0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use stackline_events::{EventTable, EventValue};

    /// Blocks that are written at these moments and received 3 ms later.
    fn blocks(written_ms: &[u64]) -> Lifelines {
        let mut table = EventTable::default();
        for (block, at) in (1_i64..).zip(written_ms) {
            let event = |table: &mut EventTable, keyword: &str, host: &str, at: u64| {
                table.push(keyword, host, at * 1_000_000, &[EventValue::Number(block)]);
            };
            event(&mut table, "app_send", "app", at - 1);
            event(&mut table, "start_write", "s", *at);
            event(&mut table, "app_receive", "app", at + 3);
        }
        lifelines(&table, None, &LifelineOptions::default())
    }

    #[test]
    fn five_blocks_are_a_burst_and_all_of_them_the_average() {
        // Five in 10 ms, then a pause of 90.
        let made = blocks(&[10, 12, 14, 16, 18, 20, 110]);
        let rates = rates(&made, None, Some(49_152));
        assert_eq!(
            rates.iter().map(|rates| rates.side).collect::<Vec<_>>(),
            [TransferSide::Sender, TransferSide::Receiver]
        );
        for rates in rates {
            let bits = 49_152.0_f64 * 8.0;
            let bursts = rates.bursts_bit_s.unwrap();
            assert_eq!(
                (bursts.n, bursts.max.round(), bursts.min.round()),
                (2, 5.0 * bits / 0.010, (5.0 * bits / 0.098).round())
            );
            assert!((rates.average_bit_s.unwrap() - 6.0 * bits / 0.1).abs() < 1.0);
            assert!((rates.units_per_s - 60.0).abs() < 1e-9);
        }
    }

    #[test]
    fn requests_and_responses_have_opposite_directions() {
        use stackline_events::unit_ids::{EventStreamDirection, stream, unit};
        let (there, back) = (
            stream(0, EventStreamDirection::There),
            stream(0, EventStreamDirection::Back),
        );
        let mut table = EventTable::default();
        for call in 0..7_u64 {
            let mut event = |keyword: &str, host: &str, ms: u64, stream: i64, size: i64| {
                let offset = call as i64 * size;
                let data = [unit(0, call), stream, offset, size].map(EventValue::Number);
                table.push(keyword, host, (call * 10 + ms) * 1_000_000, &data);
            };
            event("APP_CALL", "a", 0, there, 1_000);
            event("APP_INDICATION", "b", 1, there, 1_000);
            event("APP_REPLY", "b", 2, back, 50_000);
            event("APP_RESPONSE", "a", 5, back, 50_000);
        }
        let rates = rates(
            &lifelines(&table, None, &LifelineOptions::default()),
            None,
            None,
        );
        let found: Vec<(bool, TransferSide, f64)> = rates
            .iter()
            .map(|rates| {
                (
                    rates.responses,
                    rates.side,
                    rates.average_bit_s.unwrap().round(),
                )
            })
            .collect();
        let (request, response) = (1_000.0 * 8.0 / 0.01, 50_000.0 * 8.0 / 0.01);
        let expected = [
            (false, TransferSide::Sender, request),
            (false, TransferSide::Receiver, request),
            (true, TransferSide::Sender, response),
            (true, TransferSide::Receiver, response),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn jitter_is_a_sixteenth_of_each_new_difference() {
        let steady = rates(&blocks(&[10, 12, 14]), None, None);
        assert_eq!(
            steady
                .iter()
                .map(|rates| rates.jitter_ns)
                .collect::<Vec<_>>(),
            [None, Some(0.0)]
        );
        let moment = |at_ns, transit_ns| UnitObservation {
            at_ns,
            bytes: None,
            transit_ns: Some(transit_ns),
        };
        // RFC 3550, 6.4.1: J += (|D| - J) / 16.
        let made = jitter_ns(&[moment(0, 100), moment(10, 260), moment(20, 100)]).unwrap();
        assert!(
            (made - (10.0 + (160.0 - 10.0) / 16.0)).abs() < 1e-9,
            "{made}"
        );
        assert_eq!(jitter_ns(&[moment(0, 100)]), None);
    }

    #[test]
    fn without_sizes_only_units_have_rates() {
        let rates = rates(&blocks(&[10, 12, 14]), None, None);
        assert_eq!(
            (rates[0].average_bit_s, rates[0].bursts_bit_s),
            (None, None)
        );
        assert!((rates[0].units_per_s - 500.0).abs() < 1e-9);
    }
}
