//! The network model (`stackline_net::PacketNetwork`) with or without a recorder of its events; without one, recording costs nothing.

use super::completion::completed;
use super::frame::VnetFrame;
use super::header::NETWORK;
use stackline_core::network as plan;
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::interfaces::InterfaceTable;
use stackline_net::{
    Delivery, NetworkEvent, NetworkLocation, NetworkPacket, NetworkPollCause, NodeIndex,
    PacketNetwork, PortCounters, RouteProperties, Tap,
};

/// Receives all events of a network, with the packets' bytes from the network layer on.
pub trait NetworkEventRecorder: Send {
    /// The network's time begins at this instant of the monotonic clock, in ns.
    fn begin(&mut self, monotonic_ns: u64) {
        let _ = monotonic_ns;
    }
    /// Receives one event; see `stackline_net::Tap`.
    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<&[u8]>,
    );
    /// The end of the recording.
    ///
    /// # Errors
    /// One sentence, when the recording could not be kept.
    fn finish(self: Box<Self>) -> Result<(), String>;
}

/// Passes the events of a recorded network to its recorder. If checksum offload has left a packet's checksum open, the recorder gets a copy
/// with the checksum computed.
pub(crate) struct EmulatorRecordingTap {
    /// The recorder; `None` once the recording has ended.
    record: Option<Box<dyn NetworkEventRecorder>>,
    /// Buffer for the copy.
    copy: Vec<u8>,
    /// The hosts that packets of interfaces belong to.
    interfaces: InterfaceTable,
}

impl EmulatorRecordingTap {
    const fn new(record: Box<dyn NetworkEventRecorder>, interfaces: InterfaceTable) -> Self {
        Self {
            record: Some(record),
            copy: Vec::new(),
            interfaces,
        }
    }
}

impl Tap<VnetFrame> for EmulatorRecordingTap {
    const ON: bool = true;

    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<VnetFrame>,
    ) {
        let Some(record) = &mut self.record else {
            return;
        };
        let bytes = match completed(packet.payload.bytes(), &mut self.copy) {
            true => &self.copy,
            false => packet.payload.bytes().get(NETWORK..).unwrap_or_default(),
        };
        let NetworkPacket {
            number,
            from,
            to,
            flow,
            ecn,
            dscp,
            segments,
            ..
        } = *packet;
        let place = match place {
            NetworkLocation::Host(node) => NetworkLocation::Host(self.interfaces.owner(node)),
            port @ NetworkLocation::Port(_) => port,
        };
        record.record(
            at,
            place,
            what,
            &NetworkPacket {
                number,
                from: self.interfaces.owner(from),
                to: self.interfaces.owner(to),
                flow,
                ecn,
                dscp,
                segments,
                payload: bytes,
            },
        );
    }
}

/// A network, recorded or not.
pub(crate) enum EmulatedNetworkMachine {
    Unrecorded(Box<PacketNetwork<VnetFrame>>),
    Recorded(Box<PacketNetwork<VnetFrame, EmulatorRecordingTap>>),
}

/// Evaluates the same expression for either variant.
macro_rules! either {
    ($machine:expr, $network:ident => $done:expr) => {
        match $machine {
            EmulatedNetworkMachine::Unrecorded($network) => $done,
            EmulatedNetworkMachine::Recorded($network) => $done,
        }
    };
}

impl EmulatedNetworkMachine {
    pub(crate) fn new(
        plan: &plan::Network,
        seed: Seed,
        record: Option<Box<dyn NetworkEventRecorder>>,
    ) -> Self {
        match record {
            None => Self::Unrecorded(Box::new(PacketNetwork::new(plan, seed, ()))),
            Some(record) => Self::Recorded(Box::new(PacketNetwork::new(
                plan,
                seed,
                EmulatorRecordingTap::new(record, InterfaceTable::new(plan)),
            ))),
        }
    }

    /// Informs the recorder that the network's time begins at this instant of the monotonic clock, in ns.
    pub(crate) fn begin(&mut self, monotonic_ns: u64) {
        if let Self::Recorded(network) = self {
            network
                .tap()
                .record
                .iter_mut()
                .for_each(|record| record.begin(monotonic_ns));
        }
    }

    /// Ends the recording; the network goes on. An error says why the recording could not be kept.
    pub(crate) fn end_recording(&mut self) -> Result<(), String> {
        match self {
            Self::Unrecorded(_) => Ok(()),
            Self::Recorded(network) => network
                .tap()
                .record
                .take()
                .map_or(Ok(()), NetworkEventRecorder::finish),
        }
    }

    #[inline]
    pub(crate) fn handle(&mut self, now: Instant, packet: NetworkPacket<VnetFrame>) {
        either!(self, network => network.handle(now, packet));
    }

    #[inline]
    pub(crate) fn poll(&mut self, until: Instant) -> Option<Delivery<VnetFrame>> {
        either!(self, network => network.poll(until))
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<(Instant, NetworkPollCause)> {
        either!(self, network => network.deadline())
    }

    pub(crate) fn path(&self, from: NodeIndex, to: NodeIndex) -> Option<RouteProperties> {
        either!(self, network => network.path(from, to, 0))
    }

    /// The router with that address.
    pub(crate) fn router_at(&self, address: [u8; 4]) -> Option<NodeIndex> {
        either!(self, network => network.router_at(address))
    }

    pub(crate) fn change(
        &mut self,
        plan: &plan::Network,
        link: usize,
        new: &plan::NetworkLink,
        seed: Seed,
    ) {
        either!(self, network => network.change(plan, link, new, seed));
    }

    pub(crate) fn counters(&self) -> Vec<PortCounters> {
        either!(self, network => network.counters().collect())
    }

    pub(crate) fn without_path(&self) -> u64 {
        either!(self, network => network.without_path())
    }

    /// Ends the network and its recording.
    pub(crate) fn end(self) -> Result<(), String> {
        match self {
            Self::Unrecorded(_) => Ok(()),
            Self::Recorded(network) => network
                .into_tap()
                .record
                .map_or(Ok(()), NetworkEventRecorder::finish),
        }
    }
}
