//! The situation of one part, before its formula is chosen: the paths in both directions, the stack, and the other
//! flows on them.

use crate::count_to_f64;
use crate::path::{HopModel, PathModel};
use crate::prediction::{FigureUnit, IntermediateValue};
use crate::response::{Packets, packet_s};
use crate::transport::TransportModel;
use crate::workload_pattern::{WorkloadPattern, recognise};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::distribution::Distribution;
use stackline_core::network::{Network, NetworkInterface};
use stackline_core::plan::{DataAccess, DataSpec, Measurement, MeasurementPart, Size, UnitCount};
use stackline_core::procedure::{CountArgument, DelayArgument, SizeArgument};

/// The nodes at which a hop begins and ends.
type HopEnds = (String, String);

/// How many bulk flows of a measurement use each direction of each link, and which other parts do.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkFlowCounts {
    /// Number of bulk flows on each hop.
    flows: Vec<(HopEnds, u32)>,
    /// Hops of parts that are not bulk transfers, each with the part's index in the measurement.
    others: Vec<(HopEnds, usize)>,
}

impl LinkFlowCounts {
    pub(super) fn from_network(network: &Network, measurement: &Measurement) -> Self {
        let mut load = Self::default();
        for (at, part) in measurement.parts.iter().enumerate() {
            let (Some(from), Some(to)) = (&part.from, &part.to) else {
                continue;
            };
            let hops = |from: &str, to: &str| {
                PathModel::between(network, from, to)
                    .map(|path| path.hops)
                    .unwrap_or_default()
            };
            let Ok(WorkloadPattern::Bulk { get, .. }) = recognise(&part.procedure) else {
                let both = hops(from, to).into_iter().chain(hops(to, from));
                load.others.extend(both.map(|hop| (hop.ends, at)));
                continue;
            };
            let (sender, receiver) = if get { (to, from) } else { (from, to) };
            for hop in hops(sender, receiver) {
                load.add(hop.ends, part.replicas);
            }
        }
        load
    }

    fn add(&mut self, ends: HopEnds, flows: u32) {
        match self.flows.iter_mut().find(|(known, _)| *known == ends) {
            Some((_, count)) => *count += flows,
            None => self.flows.push((ends, flows)),
        }
    }

    /// Whether a bulk flow uses a hop.
    pub(super) fn carries(&self, hop: &HopModel) -> bool {
        self.flows.iter().any(|(ends, _)| *ends == hop.ends)
    }

    /// Whether a part that is not a bulk transfer uses a hop, other than the part with the index `part`.
    pub(super) fn carries_turns_beside(&self, hop: &HopModel, part: Option<usize>) -> bool {
        self.others
            .iter()
            .any(|(ends, at)| *ends == hop.ends && Some(*at) != part)
    }

    /// Number of bulk flows on a hop, at least 1.
    pub(super) fn on(&self, hop: &HopModel) -> u32 {
        self.flows
            .iter()
            .find(|(ends, _)| *ends == hop.ends)
            .map_or(1, |(_, flows)| (*flows).max(1))
    }

    /// The path as one of its flows sees it: each hop's rate is divided by the number of flows.
    pub(super) fn share(&self, path: &PathModel) -> PathModel {
        let mut shared = path.clone();
        for hop in &mut shared.hops {
            hop.rate_bit_s = hop.rate_bit_s.map(|rate| rate / f64::from(self.on(hop)));
        }
        shared
    }
}

/// One part on its network.
pub(super) struct Situation<'p> {
    pub(super) measurement: &'p Measurement,
    pub(super) part: &'p MeasurementPart,
    /// The path from initiator to responder.
    pub(super) there: PathModel,
    /// The path from responder to initiator.
    pub(super) back: PathModel,
    pub(super) transport: TransportModel,
    pub(super) load: &'p LinkFlowCounts,
}

impl<'p> Situation<'p> {
    pub(super) fn from_measurement(
        measurement: &'p Measurement,
        part: &'p MeasurementPart,
        there: PathModel,
        back: PathModel,
        load: &'p LinkFlowCounts,
    ) -> Result<Self, String> {
        let stuck = there
            .hops
            .iter()
            .chain(&back.hops)
            .find(|hop| hop.rate_bit_s.is_some_and(|rate| rate <= 0.0));
        if let Some(hop) = stuck {
            return Err(format!(
                "in the long run, nothing is sent from {} to {}: the rate is 0",
                hop.ends.0, hop.ends.1
            ));
        }
        let transport =
            TransportModel::from_stack(&part.stack, there.mtu_bytes().min(back.mtu_bytes()))?;
        Ok(Self {
            measurement,
            part,
            there,
            back,
            transport,
            load,
        })
    }

    /// The packets of a message of `bytes` bytes.
    pub(super) fn packets(&self, bytes: u64) -> Packets {
        if self.transport.stream {
            Packets::from_bytes(
                bytes,
                self.transport.segment_bytes,
                self.transport.header_bytes,
            )
        } else {
            self.fragments(bytes)
        }
    }

    /// The fragments of a datagram; the payload of all but the last is a multiple of 8 bytes (RFC 791 section 3.2).
    fn fragments(&self, bytes: u64) -> Packets {
        let ip = crate::overhead::IPV4;
        let mtu = self.there.mtu_bytes().min(self.back.mtu_bytes());
        let whole = bytes + self.transport.header_bytes - ip;
        if whole + ip <= mtu {
            return Packets::from_bytes(whole, whole, ip);
        }
        Packets::from_bytes(whole, (mtu.saturating_sub(ip) / 8 * 8).max(8), ip)
    }

    /// The round-trip time of a packet of this size on one path and a bare acknowledgement on the other, s.
    pub(super) fn round_trip_s(
        &self,
        data: &PathModel,
        acks: &PathModel,
        packet_bytes: u64,
    ) -> Option<f64> {
        Some(packet_s(data, packet_bytes)? + packet_s(acks, self.transport.ack_bytes)?)
    }

    /// The time that connect and disconnect wait for exchanges, s.
    pub(super) fn connect_s(&self) -> Option<f64> {
        let exchange = |(there, back): &(u64, u64)| {
            Some(packet_s(&self.there, *there)? + packet_s(&self.back, *back)?)
        };
        self.transport.connect.iter().map(exchange).sum()
    }

    /// A size in bytes; the mean where it is drawn.
    pub(super) fn size(&self, argument: SizeArgument) -> Result<u64, String> {
        let data: &DataSpec = &self.part.data;
        let size = match argument {
            SizeArgument::Bytes(bytes) => return Ok(bytes),
            SizeArgument::Unit => &data.unit,
            SizeArgument::Reply => &data.reply,
        };
        match size {
            Size::Bytes(bytes) => Ok(*bytes),
            Size::Drawn(distribution) => {
                let mean = distribution
                    .mean()
                    .ok_or_else(|| format!("sizes from {distribution} have no finite mean"))?;
                Ok(whole(mean).max(data.least_drawn))
            }
        }
    }

    /// The distributions of data units and replies whose sizes are drawn.
    pub(super) fn drawn_sizes(&self) -> impl Iterator<Item = &Distribution> {
        let sizes = [&self.part.data.unit, &self.part.data.reply];
        sizes.into_iter().filter_map(|size| match size {
            Size::Drawn(distribution) => Some(distribution),
            Size::Bytes(_) => None,
        })
    }

    /// Number of data units of one pass; `None` when there is no end.
    pub(super) fn count(&self, argument: CountArgument, unit: u64) -> Option<u64> {
        match (argument, self.part.data.count) {
            (CountArgument::Times(times), _) | (CountArgument::Count, UnitCount::Units(times)) => {
                Some(times)
            }
            (CountArgument::Count, UnitCount::Amount(bytes)) => {
                Some(bytes.div_ceil(unit.max(1)).max(1))
            }
            // The length of a file is not known here.
            (CountArgument::Count, UnitCount::Unlimited | UnitCount::WholeFile) => None,
        }
    }

    /// Bytes of the data units of one pass; `None` when there is no end.
    pub(super) fn bytes(&self, argument: CountArgument, unit: u64) -> Option<u64> {
        match (argument, self.part.data.count) {
            (CountArgument::Count, UnitCount::Amount(bytes)) => Some(bytes),
            _ => Some(self.count(argument, unit)?.saturating_mul(unit)),
        }
    }

    /// The distribution of a delay; `None` where the timing list does not have it.
    pub(super) fn drawn<'d>(&'d self, argument: &'d DelayArgument) -> Option<&'d Distribution> {
        match argument {
            DelayArgument::Drawn(distribution) => Some(distribution),
            DelayArgument::Timing(index) => self.part.data.timings.get(*index),
        }
    }

    /// The variance of the sum of several delays, drawn independently, s^2; `None` where it is infinite.
    pub(super) fn waits_variance_s2(&self, arguments: &[DelayArgument]) -> Option<f64> {
        arguments
            .iter()
            .filter_map(|argument| self.drawn(argument))
            .map(Distribution::variance)
            .sum()
    }

    /// The longest sum of several delays, s.
    pub(super) fn longest_waits_s(&self, arguments: &[DelayArgument]) -> f64 {
        arguments
            .iter()
            .filter_map(|argument| self.drawn(argument))
            .map(|distribution| distribution.range().1)
            .sum()
    }

    /// The mean of a delay, s; `None` where the timing list does not have it.
    pub(super) fn wait_s(&self, argument: &DelayArgument) -> Result<Option<f64>, String> {
        let Some(distribution) = self.drawn(argument) else {
            return Ok(None);
        };
        distribution
            .mean()
            .map(Some)
            .ok_or_else(|| format!("times from {distribution} have no finite mean"))
    }

    /// The sum of the means of several delays, s.
    pub(super) fn waits_s(&self, arguments: &[DelayArgument]) -> Result<f64, String> {
        arguments
            .iter()
            .map(|argument| Ok(self.wait_s(argument)?.unwrap_or(0.0)))
            .sum()
    }

    /// The assumptions that apply to any part.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let mut all = self.transport.assumptions.clone();
        if self.drawn_sizes().next().is_some() {
            all.push("random sizes are counted at their mean".to_string());
        }
        if [&self.part.source, &self.part.destination]
            .iter()
            .any(|end| matches!(end, DataAccess::File(_)))
        {
            all.push("reading or writing a file takes no time".to_string());
        }
        all.push("hosts take no time beyond the cost of their interfaces".to_string());
        for note in self.there.left_out.iter().chain(&self.back.left_out) {
            if !all.iter().any(|known| known == note) {
                all.push((*note).to_string());
            }
        }
        all
    }

    /// The opposite of one of the two paths.
    pub(super) fn opposite(&self, path: &PathModel) -> &PathModel {
        if core::ptr::eq(path, &self.there) {
            &self.back
        } else {
            &self.there
        }
    }

    /// A host whose processor copies packets for this part and serves other parts of the measurement too.
    pub(super) fn busy_with_others(&self) -> Option<&str> {
        let copies = |interface: &NetworkInterface| {
            interface.copy_ns_per_byte > 0.0 || interface.copy_per_packet.0 > 0
        };
        let ends = [
            (&self.part.from, &self.there.sender),
            (&self.part.to, &self.there.receiver),
        ];
        let copying = ends
            .into_iter()
            .filter(|(_, interface)| copies(interface))
            .filter_map(|(host, _)| host.as_deref());
        let others = || {
            self.measurement
                .parts
                .iter()
                .filter(|part| !core::ptr::eq(*part, self.part))
        };
        let at = |host: &str| {
            others()
                .any(|part| part.from.as_deref() == Some(host) || part.to.as_deref() == Some(host))
        };
        copying.into_iter().find(|host| at(host))
    }

    /// The index of the part in the measurement.
    pub(super) fn place(&self) -> Option<usize> {
        self.measurement
            .parts
            .iter()
            .position(|part| core::ptr::eq(part, self.part))
    }

    /// Whether all parts of the measurement do the same, over the same stack and path. Background load may differ, as
    /// it lasts as long as what is measured.
    pub(super) fn others_are_alike(&self) -> bool {
        let like = |part: &MeasurementPart| {
            part.stack == self.part.stack
                && (&part.from, &part.to) == (&self.part.from, &self.part.to)
                && (part.background
                    || (&part.procedure, &part.data) == (&self.part.procedure, &self.part.data))
        };
        self.measurement.parts.iter().all(like)
    }

    /// Whether several bulk flows share a hop of this path.
    pub(super) fn contended(&self, path: &PathModel) -> bool {
        path.hops.iter().any(|hop| self.load.on(hop) > 1)
    }
}

/// A mean size as whole bytes, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate"
)]
fn whole(bytes: f64) -> u64 {
    ((bytes + 0.5) as u64).max(1)
}

/// Probability that at least one packet of a message is lost.
pub(super) fn loss_of(path: &PathModel, packets: &Packets, of_transfer: Option<u64>) -> f64 {
    let full = libm::pow(
        1.0 - path.loss_of(packets.full_bytes, of_transfer),
        count_to_f64(packets.full),
    );
    1.0 - full * (1.0 - path.loss_of(packets.last_bytes, of_transfer))
}

/// Collects the intermediate values of a prediction.
#[derive(Debug, Default)]
pub(super) struct IntermediateValues(pub(super) Vec<IntermediateValue>);

impl IntermediateValues {
    pub(super) fn new() -> Self {
        Self(vec![])
    }

    /// Adds a value, if it exists and is finite.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        value: impl Into<Option<f64>>,
        unit: FigureUnit,
        source: &'static str,
    ) {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.0.push(IntermediateValue {
                name,
                value,
                unit,
                source,
            });
        }
    }
}
