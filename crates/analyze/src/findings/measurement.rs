//! One measurement as findings look at it: its counted runs, its parts, where each part's time went as far as records say.

use super::Evidence;
use super::log::Log;
use super::path::{self, Port};
use crate::statistics::real;
use stackline_core::network::Network;
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::record::{Histogram, RunRecord, SideRecord, Transport};
use stackline_core::trace::{Flow, UNNAMED};
use stackline_model::path::Path;
use std::collections::BTreeMap;

/// A measurement with what is known of its counted runs.
#[derive(Debug)]
pub(crate) struct Measurement<'c> {
    pub(crate) log: &'c Log<'c>,
    /// Index in the plan.
    pub(crate) index: usize,
    pub(crate) plan: &'c plan::Measurement,
    pub(crate) network: Option<&'c Network>,
    /// Measured parts with a record.
    pub(crate) parts: Vec<Part<'c>>,
    /// Directions of links that data goes over, of all parts, load too.
    pub(crate) ports: Vec<Port>,
    /// The longest part of each run, summed over the runs, s.
    pub(crate) span_s: f64,
    /// Flows of the counted runs.
    pub(crate) flows: Vec<&'c Flow>,
}

/// What a part is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Data units one way; who sends.
    Bulk(Side),
    /// Calls.
    Calls,
    /// Connections.
    Connects,
}

/// One measured part over all counted runs.
#[derive(Debug)]
pub(crate) struct Part<'c> {
    /// Index in the measurement.
    pub(crate) index: usize,
    pub(crate) plan: &'c plan::Part,
    pub(crate) records: Vec<&'c RunRecord>,
    pub(crate) work: Work,
    /// Hosts of initiator and responder.
    pub(crate) hosts: (String, String),
    /// The way there and back, where the network is modelled.
    pub(crate) paths: Option<(Path, Path)>,
    /// Measured time over all runs, s.
    pub(crate) elapsed_s: f64,
    /// Its share of the measured time of all parts.
    pub(crate) weight: f64,
    /// Whether nothing else is measured beside it.
    pub(crate) alone: bool,
}

/// Where a sender's time went, by its transport: shares of the measured time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Data to send, or on its way.
    pub(crate) busy: f64,
    /// Kept waiting by the receiver's window.
    pub(crate) receive_window: f64,
    /// Kept waiting by a full send buffer.
    pub(crate) send_buffer: f64,
}

impl<'c> Measurement<'c> {
    /// The measurement of that index; `None` when no counted run of it was made.
    pub(crate) fn of(log: &'c Log<'c>, index: usize) -> Option<Self> {
        let input = log.input;
        let plan = input.plan.measurements.get(index)?;
        let network = plan.across.as_ref();
        let network = network.and_then(|name| input.plan.networks.iter().find(|network| network.name == *name));
        let records = || input.records.iter().filter(move |record| record.measurement == index && !record.warmup);
        let mut measurement = Self {
            log,
            index,
            plan,
            network,
            parts: Vec::new(),
            ports: Vec::new(),
            span_s: spans(records()),
            flows: input.index.flows.iter().filter(|flow| flow.measurement == index && !flow.warmup).collect(),
        };
        for (at, plan) in plan.parts.iter().enumerate() {
            let records: Vec<&RunRecord> = records().filter(|record| record.part == at).collect();
            let part = Part::of(network, at, plan, records);
            measurement.cross(&part);
            if !plan.background && part.elapsed_s > 0.0 {
                measurement.parts.push(part);
            }
        }
        let all: f64 = measurement.parts.iter().map(|part| part.elapsed_s).sum();
        let alone = measurement.parts.len() == 1;
        measurement.parts.iter_mut().for_each(|part| (part.weight, part.alone) = (part.elapsed_s / all, alone));
        measurement.count(records());
        (!measurement.parts.is_empty() && measurement.span_s > 0.0).then_some(measurement)
    }

    /// Adds the ports of a part's ways, each once.
    fn cross(&mut self, part: &Part<'_>) {
        let (Some(network), Some((there, back))) = (self.network, &part.paths) else { return };
        let ways = match part.work {
            Work::Bulk(Side::Initiator) => vec![(there, true), (back, false)],
            Work::Bulk(Side::Responder) => vec![(there, false), (back, true)],
            Work::Calls | Work::Connects => vec![(there, true), (back, true)],
        };
        for (way, data) in ways {
            for at in 0..way.hops.len() {
                let name = path::name(&way.hops[at]);
                let known = self.ports.iter().position(|port| port.name == name);
                let known = known.unwrap_or_else(|| {
                    self.ports.push(Port::new(network, way, at));
                    self.ports.len() - 1
                });
                if data {
                    self.ports[known].streams += part.plan.replicas;
                }
            }
        }
    }

    /// Adds what the network counted, once a run.
    fn count<'r>(&mut self, records: impl Iterator<Item = &'r RunRecord>) {
        let networks = records.filter_map(|record| Some((record.run, record.network.as_ref()?)));
        let runs: BTreeMap<u32, _> = networks.collect();
        for record in runs.values().flat_map(|network| &network.ports) {
            if let Some(port) = self.ports.iter_mut().find(|port| port.name == record.name) {
                port.add(record);
            }
        }
    }

    /// The share of the time that a port's rate was spent, 0 to 1.
    pub(crate) fn busy(&self, port: &Port) -> f64 {
        (port.busy_s() / self.span_s).min(1.0)
    }

    /// Seconds that senders took to open their windows, by the closed form: what no limit could have used.
    pub(crate) fn opening_s(&self) -> f64 {
        let of = |part: &Part<'_>| {
            let runs = real(part.records.len() as u64);
            let at_rate = 8.0 * real(part.bytes()) / runs / part.bottleneck_bit_s()?;
            Some(runs * (super::losses::without_loss_s(part)? - at_rate).max(0.0))
        };
        self.parts.iter().filter(|part| part.limits().is_some()).filter_map(of).fold(0.0, f64::max).min(self.span_s)
    }

    /// The fullest port that data goes over, of those at their own rate.
    pub(crate) fn fullest(&self) -> Option<&Port> {
        let carrying = self.ports.iter().filter(|port| port.streams > 0 && port.packets > 0 && !port.paced);
        carrying.max_by(|a, b| a.busy_s().total_cmp(&b.busy_s()))
    }

    /// How full the fullest of the ports on a part's data path is; `None` where no network is modelled.
    pub(crate) fn fullness(&self, part: &Part<'_>) -> Option<f64> {
        let way = part.data_path()?;
        let on = |port: &&Port| way.hops.iter().any(|hop| path::name(hop) == port.name);
        self.ports.iter().filter(on).map(|port| self.busy(port)).reduce(f64::max)
    }

    /// A stream's part of the slowest hop on a part's data path when all that go over it share it alike, bit/s.
    pub(crate) fn fair_bit_s(&self, part: &Part<'_>) -> Option<f64> {
        let way = part.data_path()?;
        let on = |port: &&Port| way.hops.iter().any(|hop| path::name(hop) == port.name);
        let fair = |port: &Port| port.hop.rate_bit_s.map(|rate| rate / f64::from(port.streams.max(1)));
        self.ports.iter().filter(on).filter_map(fair).reduce(f64::min)
    }

    /// A mean over the parts, each with its share of the time.
    pub(crate) fn over_parts(&self, of: impl Fn(&Part<'c>) -> f64) -> f64 {
        self.parts.iter().map(|part| part.weight * of(part)).sum()
    }

    /// Evidence that is a figure of records: it stands for the whole of the runs.
    pub(crate) fn figure(&self, what: String) -> Evidence {
        let runs = || self.log.input.index.runs.iter().filter(|run| run.measurement == self.index && !run.warmup);
        let from_ns = runs().map(|run| run.from_ns).min().unwrap_or(0);
        let to_ns = runs().map(|run| run.to_ns).max().unwrap_or(0);
        Evidence { what, from_ns, to_ns, ..Evidence::default() }
    }

    /// Whether a flow belongs to the counted runs of this measurement.
    pub(crate) fn has(&self, flow: u32) -> bool {
        self.flows.binary_search_by_key(&flow, |flow| flow.id).is_ok()
    }

    /// Rows of a keyword that tells no stream, of the hosts and the times of this measurement's counted runs.
    pub(crate) fn nameless(&self, keyword: &str) -> Vec<u32> {
        let runs = || self.log.input.index.runs.iter().filter(|run| run.measurement == self.index && !run.warmup);
        let hosts = || self.parts.iter().flat_map(|part| [&part.hosts.0, &part.hosts.1]);
        let mine = |row: &u32| {
            self.log.flow(*row).is_none()
                && runs().any(|run| (run.from_ns..=run.to_ns).contains(&self.log.at(*row)))
                && hosts().any(|host| host == self.log.host(*row))
        };
        self.log.rows(keyword).iter().copied().filter(mine).collect()
    }

    /// Rows of a keyword whose stream belongs to this measurement.
    pub(crate) fn rows(&self, keyword: &str) -> Vec<u32> {
        let mine = |row: &u32| self.log.flow(*row).is_some_and(|flow| self.has(flow));
        self.log.rows(keyword).iter().copied().filter(mine).collect()
    }
}

fn spans<'r>(records: impl Iterator<Item = &'r RunRecord>) -> f64 {
    let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
    for record in records {
        let longest = longest.entry(record.run).or_default();
        *longest = (*longest).max(record.elapsed_ns).max(record.span_ns);
    }
    longest.values().map(|ns| real(*ns) / 1e9).sum()
}

impl<'c> Part<'c> {
    fn of(network: Option<&Network>, index: usize, plan: &'c plan::Part, records: Vec<&'c RunRecord>) -> Self {
        let name = |host: &Option<String>, unnamed: &str| host.clone().unwrap_or_else(|| unnamed.into());
        let hosts = (name(&plan.from, UNNAMED.0), name(&plan.to, UNNAMED.1));
        let between =
            |network| Some((Path::between(network, &hosts.0, &hosts.1)?, Path::between(network, &hosts.1, &hosts.0)?));
        let paths = network.and_then(between);
        let elapsed_s = records.iter().map(|record| real(record.elapsed_ns) / 1e9).sum();
        let work = work(&records);
        Self { index, plan, records, work, hosts, paths, elapsed_s, weight: 0.0, alone: true }
    }

    /// The path data takes; of calls the way there.
    pub(crate) fn data_path(&self) -> Option<&Path> {
        let (there, back) = self.paths.as_ref()?;
        Some(if self.work == Work::Bulk(Side::Responder) { back } else { there })
    }

    /// Round trip of a small packet that waits nowhere, s: by the network where it is modelled, else the least that the
    /// transport smoothed.
    pub(crate) fn round_trip_s(&self) -> Option<f64> {
        if let Some((there, back)) = &self.paths {
            let way = |path: &Path| {
                let hops = path.hops.iter().map(|hop| hop.delay_s + hop.serialisation_s(SMALL).unwrap_or(0.0));
                hops.sum::<f64>() + interface_s(&path.sender) + interface_s(&path.receiver)
            };
            return Some(way(there) + way(back));
        }
        let told = |record: &&RunRecord| {
            let sides = [&record.initiator, &record.responder];
            sides
                .into_iter()
                .filter_map(|side| side.transport)
                .map(|(_, t)| t.rtt_s)
                .filter(|rtt| *rtt > 0.0)
                .reduce(f64::min)
        };
        self.records.iter().filter_map(told).reduce(f64::min)
    }

    /// Whether both ends are on one machine, with no link between them: only the work of processors takes time there. Hosts
    /// without a name are the machine's own; those with one may have a short link.
    pub(crate) fn in_one_machine(&self) -> bool {
        let near = || self.round_trip_s().is_some_and(|trip| trip < super::serial_round_trips::LEAST_TRIP_S);
        let unnamed = self.plan.from.is_none() && self.plan.to.is_none();
        self.paths.is_none() && unnamed && (self.plan.stack.name == "unix" || near())
    }

    /// What the threads of one side computed of the measured time; 1 is a full core.
    pub(crate) fn computed(&self, side: Side) -> f64 {
        let usage = |record: &&RunRecord| match side {
            Side::Initiator => record.initiator.usage.user_s + record.initiator.usage.system_s,
            Side::Responder => record.responder.usage.user_s + record.responder.usage.system_s,
        };
        self.records.iter().map(usage).sum::<f64>() / self.elapsed_s / f64::from(self.plan.replicas.max(1))
    }

    /// The sender of bulk data, and who receives it.
    pub(crate) fn sides<'r>(&self, record: &'r RunRecord) -> Option<(&'r SideRecord, &'r SideRecord)> {
        match self.work {
            Work::Bulk(Side::Initiator) => Some((&record.initiator, &record.responder)),
            Work::Bulk(Side::Responder) => Some((&record.responder, &record.initiator)),
            Work::Calls | Work::Connects => None,
        }
    }

    /// The host that sends bulk data, and the one that receives it.
    pub(crate) fn ends(&self) -> Option<(&str, &str)> {
        match self.work {
            Work::Bulk(Side::Initiator) => Some((&self.hosts.0, &self.hosts.1)),
            Work::Bulk(Side::Responder) => Some((&self.hosts.1, &self.hosts.0)),
            Work::Calls | Work::Connects => None,
        }
    }

    /// Where the sender's time went; `None` when its transport does not tell.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let mut sum = Limits::default();
        for record in &self.records {
            let (start, stop) = self.sides(record)?.0.transport?;
            let spent = |get: fn(&Transport) -> Option<f64>| Some(get(&stop)? - get(&start)?);
            sum.busy += spent(|t| t.busy_s)?;
            sum.receive_window += spent(|t| t.receive_window_limited_s)?;
            // A blast leaves straight from the application's memory.
            sum.send_buffer += spent(|t| t.send_buffer_limited_s).unwrap_or(0.0);
        }
        let all = self.elapsed_s * f64::from(self.plan.replicas.max(1));
        let share = |s: f64| (s / all).clamp(0.0, 1.0);
        Some(Limits {
            busy: share(sum.busy),
            receive_window: share(sum.receive_window),
            send_buffer: share(sum.send_buffer),
        })
    }

    /// Whether its sender has a congestion window, which opens round trip by round trip.
    pub(crate) fn opens_a_window(&self) -> bool {
        self.sender_tells(|told| told.cwnd_segments.is_some())
    }

    fn sender_tells(&self, what: fn(&Transport) -> bool) -> bool {
        let told = |record: &&RunRecord| self.sides(record)?.0.transport.map(|(_, stop)| what(&stop));
        self.records.iter().filter_map(told).any(|tells| tells)
    }

    /// Bytes that the receiver of bulk data lets its sender send ahead: of a stream its buffer, of blasts what it grants.
    pub(crate) fn receive_buffer(&self) -> Option<u64> {
        let granted = || self.plan.stack.number("buffer").or(Some(GRANTED)).filter(|_| self.grants());
        self.setting_bytes("receive_buffer", true).or_else(granted)
    }

    /// Whether the receiver grants what may be on its way.
    pub(crate) fn grants(&self) -> bool {
        matches!(self.plan.stack.name.as_str(), "saw" | "window" | "blast")
    }

    /// Segments sent again, both sides, all runs; `None` when no transport tells.
    pub(crate) fn retransmits(&self) -> Option<u64> {
        let sides = self.records.iter().flat_map(|record| [&record.initiator, &record.responder]);
        let told: Vec<u64> =
            sides.filter_map(|side| side.transport).map(|(a, b)| b.retransmits.saturating_sub(a.retransmits)).collect();
        (!told.is_empty()).then(|| told.iter().sum())
    }

    /// Segment size in bytes, by the sender's transport or by the path.
    pub(crate) fn segment_bytes(&self) -> Option<u64> {
        let told = self.records.iter().find_map(|record| record.initiator.transport.or(record.responder.transport));
        let told = told.map(|(_, t)| t.mss_bytes).filter(|mss| *mss > 0);
        told.or_else(|| self.data_path().map(|path| path.mtu_bytes().saturating_sub(52)))
    }

    /// A setting of the sender or the receiver of bulk data, in bytes: `65536 B`.
    pub(crate) fn setting_bytes(&self, name: &str, of_receiver: bool) -> Option<u64> {
        let (sender, receiver) = self.sides(self.records.first()?)?;
        let side = if of_receiver { receiver } else { sender };
        side.settings.get(name)?.split_whitespace().next()?.parse().ok()
    }

    /// Bytes of data units that arrived, all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.records.iter().map(|record| record.data_bytes()).sum()
    }

    /// Response times of all runs.
    pub(crate) fn calls(&self) -> Histogram {
        Histogram::merged(self.records.iter().map(|record| &record.calls))
    }

    /// What shares of it are shares of: measured seconds of all pairs; of calls the sum of their response times, where they
    /// begin at moments of their own and pauses lie between them. A late call's response time begins at its scheduled
    /// moment and holds the time of those before it: together they took no longer than was measured.
    pub(crate) fn basis_s(&self) -> f64 {
        let measured = self.elapsed_s * f64::from(self.plan.replicas.max(1));
        let calls = if self.work == Work::Calls { real(self.calls().sum) / 1e9 } else { 0.0 };
        if calls > 0.0 { calls.min(measured) } else { measured }
    }

    /// A share of the part's own time in words: `12 % of the time`, and of which part's where there are others.
    pub(crate) fn of_its_time(&self, share: f64) -> String {
        let whose = if self.alone { String::new() } else { format!(" of `{}`", self.plan.text) };
        format!("{} of the time{whose}", super::context::percent(share))
    }

    /// Rate that bulk data went at, bit/s.
    pub(crate) fn rate_bit_s(&self) -> f64 {
        8.0 * real(self.bytes()) / self.elapsed_s
    }

    /// Slowest hop's rate of the data path, bit/s.
    pub(crate) fn bottleneck_bit_s(&self) -> Option<f64> {
        let path = self.data_path()?;
        path.bottleneck(path.mtu_bytes())?.rate_bit_s
    }

    /// What the path holds in a round trip, bytes.
    pub(crate) fn bandwidth_delay_bytes(&self) -> Option<f64> {
        Some(stackline_model::pipe::bandwidth_delay_bytes(self.bottleneck_bit_s()?, self.round_trip_s()?))
    }
}

/// What a receiver of blasts grants where nothing is written, bytes.
const GRANTED: u64 = 4 << 20;

/// A packet without data, bytes.
const SMALL: u64 = 52;

/// Seconds an interface takes for a small packet.
fn interface_s(interface: &stackline_core::network::Interface) -> f64 {
    interface_packet_s(interface, SMALL)
}

/// Seconds an interface's processor takes to copy a packet in or out.
pub(crate) fn interface_packet_s(interface: &stackline_core::network::Interface, bytes: u64) -> f64 {
    let time = interface.copy_per_packet.seconds() + interface.copy_ns_per_byte * real(bytes) / 1e9;
    time / interface.cpu_speed.unwrap_or(1.0)
}

fn work(records: &[&RunRecord]) -> Work {
    let sum = |get: fn(&RunRecord) -> u64| records.iter().map(|record| get(record)).sum::<u64>();
    if sum(|record| record.calls.n()) > 0 {
        return Work::Calls;
    }
    let there = sum(|record| record.responder.received_bytes.max(record.initiator.sent_bytes));
    let back = sum(|record| record.initiator.received_bytes.max(record.responder.sent_bytes));
    match (there, back) {
        (0, 0) => Work::Connects,
        (there, back) if there >= back => Work::Bulk(Side::Initiator),
        _ => Work::Bulk(Side::Responder),
    }
}
