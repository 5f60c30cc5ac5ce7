//! What carries packets between hosts: links and switches (`net`), or IMPs (the ARPANET's packet switches).
//! [`SimCarrier`] has one interface for both.

use crate::datagram::SimDatagram;
use crate::digest::RunDigestTap;
use crate::papers::host_messages::{HostMessages, ImpStatusReport};
use stackline_core::network as plan;
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::{
    Delivery, NetworkPacket, NodeIndex, PacketNetwork, PortCounters, RouteProperties, Tap,
};

/// The carrier of packets.
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one, and a run has only one"
)]
pub(crate) enum SimCarrier<T: Tap<SimDatagram>> {
    /// Links and switches.
    Network(PacketNetwork<SimDatagram, RunDigestTap<T>>),
    /// IMPs.
    Imps(Box<HostMessages<T>>),
}

impl<T: Tap<SimDatagram>> SimCarrier<T> {
    pub(crate) fn new(network: &plan::Network, seed: Seed, tap: T) -> Self {
        let tap = RunDigestTap::new(network, tap);
        match network.has_imps() {
            true => Self::Imps(Box::new(HostMessages::new(network, seed, tap))),
            false => Self::Network(PacketNetwork::new(network, seed, tap)),
        }
    }

    /// A carrier of links and switches, also where the plan's switches are IMPs.
    pub(crate) fn of_links(network: &plan::Network, seed: Seed, tap: T) -> Self {
        Self::Network(PacketNetwork::new(
            network,
            seed,
            RunDigestTap::new(network, tap),
        ))
    }

    /// Takes a packet that a host hands over.
    #[inline]
    pub(crate) fn handle(&mut self, now: Instant, packet: NetworkPacket<SimDatagram>) {
        match self {
            Self::Network(network) => network.handle(now, packet),
            Self::Imps(imps) => imps.handle(now, packet),
        }
    }

    /// The next packet that reaches its host, not later than `until`.
    #[inline]
    pub(crate) fn poll(&mut self, until: Instant) -> Option<Delivery<SimDatagram>> {
        match self {
            Self::Network(network) => network.poll(until),
            Self::Imps(imps) => imps.poll(until),
        }
    }

    /// The instant of the next event, while packets are in transit.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Network(network) => network.deadline().map(|(at, _)| at),
            Self::Imps(imps) => imps.deadline(),
        }
    }

    /// The path of packets from one host to another.
    pub(crate) fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        flow: u32,
    ) -> Option<RouteProperties> {
        match self {
            Self::Network(network) => network.path(from, to, flow),
            Self::Imps(imps) => imps.path(from, to),
        }
    }

    /// The counters of each direction of each link.
    pub(crate) fn counters(&self) -> Vec<PortCounters> {
        match self {
            Self::Network(network) => network.counters().collect(),
            Self::Imps(imps) => imps.counters(),
        }
    }

    /// The time in ns that processors of hosts have spent on copying by `at`.
    pub(crate) fn processors(&self, at: Instant) -> impl Iterator<Item = (NodeIndex, u64)> {
        let network = if let Self::Network(network) = self {
            Some(network)
        } else {
            None
        };
        network
            .into_iter()
            .flat_map(move |network| network.processors(at))
    }

    /// The time in ns that the processor of a host has spent on copying by `at`.
    pub(crate) fn copied_ns(&self, host: NodeIndex, at: Instant) -> u64 {
        if let Self::Network(network) = self {
            network.copied_ns(host, at)
        } else {
            0
        }
    }

    /// Makes IMPs, if there are any, report their state from now on.
    pub(crate) fn report(&mut self) {
        if let Self::Imps(imps) = self {
            imps.report();
        }
    }

    /// Makes IMPs report once more, at the end.
    pub(crate) fn report_last(&mut self, at: Instant) {
        if let Self::Imps(imps) = self {
            imps.report_last(at);
        }
    }

    /// What IMPs have reported since the last call.
    pub(crate) fn reports(&mut self) -> Vec<(Instant, Vec<ImpStatusReport>)> {
        if let Self::Imps(imps) = self {
            imps.reports()
        } else {
            Vec::new()
        }
    }

    pub(crate) fn tap(&mut self) -> &mut RunDigestTap<T> {
        match self {
            Self::Network(network) => network.tap(),
            Self::Imps(imps) => imps.tap(),
        }
    }

    pub(crate) fn into_tap(self) -> RunDigestTap<T> {
        match self {
            Self::Network(network) => network.into_tap(),
            Self::Imps(imps) => imps.into_tap(),
        }
    }
}
