//! One measurement of the plan over its counted runs (all but warm-ups): its parts, the ports (directions of links) that its packets cross,
//! and which events belong to it.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Evidence;
use crate::findings::measured::link_outages::LinkOutage;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, side_of};
use crate::findings::measured::path::{self, FULL, PathPort};
use crate::statistics::to_f64;
use stackline_core::network::Network;
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::RunRecord;
use stackline_core::time::Duration;
use stackline_core::trace_index::{RunFlow, RunSpan};
use stackline_model::PathModel;
use std::collections::{BTreeMap, BTreeSet};

/// A measurement with the results of its counted runs.
#[derive(Debug)]
pub(crate) struct FindingMeasurement<'c> {
    /// All events of the run directory.
    pub(crate) log: &'c FindingEventLog<'c>,
    /// Index in the plan.
    pub(crate) index: usize,
    /// The measurement as the plan specifies it.
    pub(crate) plan: &'c plan::Measurement,
    /// The network that it goes across, where one is modelled.
    pub(crate) network: Option<&'c Network>,
    /// The measured parts that have records; background parts are not among them.
    pub(crate) parts: Vec<MeasuredPart<'c>>,
    /// The ports on the paths of all parts, background parts included.
    pub(crate) ports: Vec<PathPort>,
    /// The time of the longest part of each run, summed over the runs, s.
    pub(crate) span_s: f64,
    /// The flows of the counted runs, in the order of their ids.
    pub(crate) flows: Vec<&'c RunFlow>,
    /// The outages of these ports.
    pub(crate) outages: Vec<LinkOutage>,
}

impl<'c> FindingMeasurement<'c> {
    /// The measurement of that index in the plan; `None` if it has no counted run.
    pub(crate) fn from_log(log: &'c FindingEventLog<'c>, index: usize) -> Option<Self> {
        let input = log.input;
        let plan = input.plan.measurements.get(index)?;
        let network = plan.across.as_ref();
        let network = network.and_then(|name| {
            input
                .plan
                .networks
                .iter()
                .find(|network| network.name == *name)
        });
        let records = || {
            input
                .records
                .iter()
                .filter(move |record| record.measurement == index && !record.warmup)
        };
        let mut measurement = Self {
            log,
            index,
            plan,
            network,
            parts: Vec::new(),
            ports: Vec::new(),
            span_s: spans(records()),
            flows: input
                .index
                .flows
                .iter()
                .filter(|flow| flow.measurement == index && !flow.warmup)
                .collect(),
            outages: Vec::new(),
        };
        let runs = records()
            .map(|record| record.run)
            .collect::<BTreeSet<_>>()
            .len() as u64;
        let run = Duration::from_seconds(measurement.span_s / to_f64(runs.max(1)));
        for at in 0..plan.parts.len() {
            let records: Vec<&RunRecord> = records().filter(|record| record.part == at).collect();
            let part = MeasuredPart::new(network, plan, at, records);
            measurement.cross(&part, run);
            if !part.plan.background && part.elapsed_s > 0.0 {
                measurement.parts.push(part);
            }
        }
        let all: f64 = measurement.parts.iter().map(|part| part.elapsed_s).sum();
        let alone = measurement.parts.len() == 1;
        measurement
            .parts
            .iter_mut()
            .for_each(|part| (part.weight, part.alone) = (part.elapsed_s / all, alone));
        measurement.count(records());
        let longest = records().map(|record| record.elapsed_ns).max().unwrap_or(0);
        measurement.find_outages(Duration(longest));
        (!measurement.parts.is_empty() && measurement.span_s > 0.0).then_some(measurement)
    }

    /// Adds the ports of a part's paths, each once, and counts its data streams; `run` is the mean length of a run.
    fn cross(&mut self, part: &MeasuredPart<'_>, run: Duration) {
        let (Some(network), Some((there, back))) = (self.network, &part.paths) else {
            return;
        };
        let paths = match part.work {
            PartWorkload::Bulk(PairSide::Initiator) => vec![(there, true), (back, false)],
            PartWorkload::Bulk(PairSide::Responder) => vec![(there, false), (back, true)],
            PartWorkload::Calls | PartWorkload::Turns | PartWorkload::Connects => {
                vec![(there, true), (back, true)]
            }
        };
        for (path, data) in paths {
            for at in 0..path.hops.len() {
                let name = path::hop_name(&path.hops[at]);
                let known = self.ports.iter().position(|port| port.name == name);
                let known = known.unwrap_or_else(|| {
                    self.ports.push(PathPort::new(network, path, at, run));
                    self.ports.len() - 1
                });
                if data {
                    self.ports[known].streams += part.plan.replicas;
                }
            }
        }
    }

    /// Adds the counts of the network's ports, once for each run.
    fn count<'r>(&mut self, records: impl Iterator<Item = &'r RunRecord>) {
        let networks = records.filter_map(|record| Some((record.run, record.network.as_ref()?)));
        let runs: BTreeMap<u32, _> = networks.collect();
        for record in runs.values().flat_map(|network| &network.ports) {
            if let Some(port) = self.ports.iter_mut().find(|port| port.name == record.name) {
                port.add(record);
            }
        }
    }

    /// Finds the outages of the ports, in runs of at most that length, and attributes the drops in them to the outages alone.
    fn find_outages(&mut self, longest: Duration) {
        let spans = self.spans().map(|span| span.to_ns - network_begins(span));
        let end = Duration(spans.max().unwrap_or(0).max(longest.0));
        let Some(network) = self.network else {
            return;
        };
        let ports = self.ports.iter();
        self.outages = ports
            .filter_map(|port| LinkOutage::find(network, &port.hop.ends, end))
            .collect();
        for outage in &self.outages {
            let mut drops: BTreeMap<&str, u64> = BTreeMap::new();
            for row in self.log.rows("NET_DROP") {
                if self.is_in_outage(*row, outage) {
                    *drops
                        .entry(self.log.text(*row, "reason").unwrap_or(""))
                        .or_default() += 1;
                }
            }
            let port = self.ports.iter_mut().find(|port| port.name == outage.place);
            if let Some(port) = port {
                port.forget_drops(&drops, self.log.is_empty());
            }
        }
    }

    /// Whether an event happened at the port of an outage during it.
    pub(crate) fn is_in_outage(&self, row: u32, outage: &LinkOutage) -> bool {
        self.log.text(row, "place") == Some(&outage.place)
            && self
                .network_time(self.log.at(row))
                .is_some_and(|time| outage.holds(time))
    }

    /// A moment as time since the network of its run began; `None` if it lies in no counted run.
    pub(crate) fn network_time(&self, at_ns: u64) -> Option<Duration> {
        let mut spans = self.spans();
        let span = spans.find(|span| (network_begins(span)..=span.to_ns).contains(&at_ns))?;
        Some(Duration(at_ns - network_begins(span)))
    }

    /// When the clock of a part started in that run, as time since the run's network began; 0 if no event shows it.
    pub(crate) fn clock_begins(&self, part: usize, run: u32) -> Duration {
        let of_run = |row: &u32| {
            let flow = self
                .log
                .flow(*row)
                .and_then(|flow| self.log.input.index.flow(flow));
            flow.is_some_and(|flow| (flow.part, flow.run) == (part, run))
        };
        let mut starts = self.rows("APP_START").into_iter().filter(of_run);
        let begins = starts
            .next()
            .and_then(|row| self.network_time(self.log.at(row)));
        begins.unwrap_or(Duration(0))
    }

    /// The share of the time in which a port was transmitting, 0 to 1.
    pub(crate) fn busy(&self, port: &PathPort) -> f64 {
        (port.busy_s() / self.span_s).min(1.0)
    }

    /// Seconds of path capacity left unused while senders opened their windows in slow start, by the closed form: no other cause could have
    /// used them.
    pub(crate) fn opening_s(&self) -> f64 {
        let of = |part: &MeasuredPart<'_>| {
            let runs = to_f64(part.records.len() as u64);
            let at_rate = 8.0 * to_f64(part.bytes()) / runs / part.bottleneck_bit_s()?;
            Some(runs * (part.without_loss_s()? - at_rate).max(0.0))
        };
        self.parts
            .iter()
            .filter(|part| part.limits().is_some())
            .filter_map(of)
            .fold(0.0, f64::max)
            .min(self.span_s)
    }

    /// Whether packets of a measured part, acknowledgements included, go over a port. Background parts may use links that no measured part
    /// crosses.
    pub(crate) fn is_crossed(&self, port: &PathPort) -> bool {
        let paths = self.parts.iter().filter_map(|part| part.paths.as_ref());
        paths.into_iter().any(|(there, back)| {
            path::path_contains_port(there, port) || path::path_contains_port(back, port)
        })
    }

    /// The busiest port that measured packets cross, without ports that their host paces. Of several that are equally busy it is the first
    /// on the path, where packets wait.
    pub(crate) fn fullest(&self) -> Option<&PathPort> {
        self.fullest_ports().next()
    }

    /// All ports that are about as busy as the busiest one.
    pub(crate) fn fullest_ports(&self) -> impl Iterator<Item = &PathPort> {
        let carrying = || {
            self.ports
                .iter()
                .filter(|port| port.packets > 0 && !port.paced && self.is_crossed(port))
        };
        let most = carrying().map(PathPort::busy_s).fold(0.0, f64::max);
        carrying().filter(move |port| port.busy_s() >= EQUALLY * most)
    }

    /// The share of the time in which the busiest port on a part's data path was transmitting; `None` if no network is modelled.
    pub(crate) fn fullness(&self, part: &MeasuredPart<'_>) -> Option<f64> {
        let path = part.data_path()?;
        let on = |port: &&PathPort| path::path_contains_port(path, port);
        self.ports
            .iter()
            .filter(on)
            .map(|port| self.busy(port))
            .reduce(f64::max)
    }

    /// The share of a part's time in which its own data was transmitted by the busiest port on its path, 0 to 1; for calls in both
    /// directions.
    pub(crate) fn own_use(&self, part: &MeasuredPart<'_>) -> f64 {
        let Some((there, back)) = &part.paths else {
            return 0.0;
        };
        let takes = |(path, side): (&PathModel, PairSide)| {
            let ports = self
                .ports
                .iter()
                .filter(|port| path::path_contains_port(path, port) && !port.paced);
            let seconds = |port: &PathPort| {
                if self.plan.parts.len() == 1 {
                    return port.busy_s();
                }
                port.hop.rate_bit_s.map_or(0.0, |rate| {
                    8.0 * to_f64(self.own_bytes(part, side, port)) / rate
                })
            };
            ports.map(seconds).fold(0.0, f64::max)
        };
        let sides = match part.work.sender() {
            Some(PairSide::Responder) => takes((back, PairSide::Responder)),
            Some(PairSide::Initiator) => takes((there, PairSide::Initiator)),
            None => takes((there, PairSide::Initiator)) + takes((back, PairSide::Responder)),
        };
        // The basis is the time of all pairs, which use the port at the same time.
        (sides * part.replicas() / part.basis_s()).min(1.0)
    }

    /// The bytes that one side of a part sent through a port. If the part is the only one, these are all bytes of the port; else the
    /// greater of the acknowledged bytes and those of the data units that either end counted, plus headers.
    pub(crate) fn own_bytes(
        &self,
        part: &MeasuredPart<'_>,
        side: PairSide,
        port: &PathPort,
    ) -> u64 {
        if self.plan.parts.len() == 1 {
            return port.bytes;
        }
        let acked = |record: &RunRecord| {
            let (start, stop) = side_of(record, side).transport?;
            Some(stop.bytes_acked?.saturating_sub(start.bytes_acked?))
        };
        let units = |record: &RunRecord| match side {
            PairSide::Initiator => record
                .initiator
                .sent_bytes
                .max(record.responder.received_bytes),
            PairSide::Responder => record
                .responder
                .sent_bytes
                .max(record.initiator.received_bytes),
        };
        let bytes: u64 = part
            .records
            .iter()
            .map(|record| units(record).max(acked(record).unwrap_or(0)))
            .sum();
        let packets = 1.0 + HEADERS / to_f64(part.segment_bytes().unwrap_or(1448)).max(1.0);
        (to_f64(bytes) * packets) as u64
    }

    /// Whether a port on a part's data path is full.
    pub(crate) fn is_full(&self, part: &MeasuredPart<'_>) -> bool {
        self.fullness(part).is_some_and(|fullness| fullness >= FULL)
    }

    /// The rate that each stream gets on a part's data path if all streams share every hop equally, bit/s.
    pub(crate) fn fair_bit_s(&self, part: &MeasuredPart<'_>) -> Option<f64> {
        let path = part.data_path()?;
        let on = |port: &&PathPort| path::path_contains_port(path, port);
        let fair = |port: &PathPort| {
            port.hop
                .rate_bit_s
                .map(|rate| rate / f64::from(port.streams.max(1)))
        };
        self.ports
            .iter()
            .filter(on)
            .filter_map(fair)
            .reduce(f64::min)
    }

    /// Whether anything but bulk data is measured.
    pub(crate) fn has_calls_or_connects(&self) -> bool {
        self.parts.iter().any(|part| part.work.sender().is_none())
    }

    /// The time that shares refer to: the sum over the parts, s.
    pub(crate) fn basis_s(&self) -> f64 {
        self.parts
            .iter()
            .map(MeasuredPart::basis_s)
            .sum::<f64>()
            .max(1e-12)
    }

    /// The longest unloaded round trip of the parts, s.
    pub(crate) fn longest_trip_s(&self) -> f64 {
        self.parts
            .iter()
            .filter_map(MeasuredPart::round_trip_s)
            .fold(0.0, f64::max)
    }

    /// The mean of a figure over the parts, weighted with their shares of the time.
    pub(crate) fn over_parts(&self, of: impl Fn(&MeasuredPart<'c>) -> f64) -> f64 {
        self.parts.iter().map(|part| part.weight * of(part)).sum()
    }

    /// The number of counted runs in which the emulator was overloaded, and of all counted runs.
    pub(crate) fn overloaded_runs(&self) -> (u64, u64) {
        let records = || self.parts.iter().flat_map(|part| &part.records);
        let runs: BTreeSet<u32> = records().map(|record| record.run).collect();
        let is_overloaded = |record: &&&RunRecord| {
            let network = record.network.as_ref();
            let emulation = network.and_then(|network| network.emulation.as_ref());
            emulation.is_some_and(|emulation| emulation.overload.is_some())
        };
        let overloaded: BTreeSet<u32> = records()
            .filter(is_overloaded)
            .map(|record| record.run)
            .collect();
        (overloaded.len() as u64, runs.len() as u64)
    }

    /// Evidence from records: its time is that of all counted runs.
    pub(crate) fn figure(&self, what: String) -> Evidence {
        let from_ns = self.spans().map(|run| run.from_ns).min().unwrap_or(0);
        let to_ns = self.spans().map(|run| run.to_ns).max().unwrap_or(0);
        Evidence {
            what,
            from_ns,
            to_ns,
            ..Evidence::default()
        }
    }

    /// Evidence from these events, or as [`Self::figure`] if there are none.
    pub(crate) fn evidence(&self, what: String, rows: &[u32]) -> Evidence {
        if rows.is_empty() {
            self.figure(what)
        } else {
            self.log.evidence(what, rows)
        }
    }

    /// The time ranges of the counted runs.
    fn spans(&self) -> impl Iterator<Item = &'c RunSpan> {
        let runs = self.log.input.index.runs.iter();
        runs.filter(|run| run.measurement == self.index && !run.warmup)
    }

    /// Rows of a keyword within the counted runs.
    pub(crate) fn rows_within(&self, keyword: &str) -> impl Iterator<Item = u32> {
        self.log
            .rows(keyword)
            .iter()
            .copied()
            .filter(|row| self.is_within(*row))
    }

    /// Whether an event happened during a counted run.
    fn is_within(&self, row: u32) -> bool {
        self.spans()
            .any(|run| (run.from_ns..=run.to_ns).contains(&self.log.at(row)))
    }

    /// Whether a flow belongs to the counted runs of this measurement.
    pub(crate) fn has(&self, flow: u32) -> bool {
        self.flows
            .binary_search_by_key(&flow, |flow| flow.id)
            .is_ok()
    }

    /// The rows of a keyword that name no stream (those of a kernel), on this measurement's hosts during its counted runs.
    pub(crate) fn nameless(&self, keyword: &str) -> Vec<u32> {
        let mine = |row: &u32| {
            self.log.flow(*row).is_none() && self.is_within(*row) && self.is_at_an_end(*row)
        };
        self.rows_where(keyword, mine)
    }

    /// The rows of a keyword whose events are about an interval that overlaps with a counted run, on this measurement's hosts.
    pub(crate) fn intervals(&self, keyword: &str) -> Vec<u32> {
        let meets = |row: &u32| {
            let to_ns = self.log.at(*row);
            let length_ns = self.log.number(*row, "interval_ns").unwrap_or(0).max(0);
            let from_ns = to_ns.saturating_sub(length_ns.unsigned_abs());
            let mut runs = self.spans();
            self.is_at_an_end(*row) && runs.any(|run| from_ns <= run.to_ns && run.from_ns <= to_ns)
        };
        self.rows_where(keyword, meets)
    }

    /// Whether the host of an event is an end of a measured part.
    fn is_at_an_end(&self, row: u32) -> bool {
        let host = self.log.host(row);
        self.parts
            .iter()
            .any(|part| part.hosts.0 == host || part.hosts.1 == host)
    }

    fn rows_where(&self, keyword: &str, mine: impl FnMut(&u32) -> bool) -> Vec<u32> {
        let rows = self.log.rows(keyword).iter().copied();
        rows.filter(mine).collect()
    }

    /// Rows of a keyword whose stream belongs to this measurement.
    pub(crate) fn rows(&self, keyword: &str) -> Vec<u32> {
        let mine = |row: &u32| self.log.flow(*row).is_some_and(|flow| self.has(flow));
        self.rows_where(keyword, mine)
    }
}

/// When a run's network began, reference time, ns.
fn network_begins(span: &RunSpan) -> u64 {
    span.network_ns.unwrap_or(span.from_ns).min(span.to_ns)
}

/// A port that transmitted for at least this fraction of the busiest port's time counts as equally busy.
const EQUALLY: f64 = 0.98;
/// Headers of IPv4 (20) and TCP with timestamps (32), bytes.
const HEADERS: f64 = 52.0;

/// The time of the longest part of each run, summed over the runs, s.
fn spans<'r>(records: impl Iterator<Item = &'r RunRecord>) -> f64 {
    let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
    for record in records {
        let longest = longest.entry(record.run).or_default();
        *longest = (*longest).max(record.elapsed_ns).max(record.span_ns);
    }
    longest.values().map(|ns| to_f64(*ns) / 1e9).sum()
}
