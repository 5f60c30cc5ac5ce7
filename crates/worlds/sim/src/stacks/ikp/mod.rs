//! The stack `ikp`, the message passing of the V system (Send, Receive, Reply): the machines of `proto::ikp` over UDP, packet by
//! packet as in the live world.
//!
//! The machines run by themselves, as if in a kernel: while its application does something else, a server still answers that a
//! message is pending.

mod calls;
mod end;

use calls::SimIkpConnection;
use end::{SimIkpEnd, SimIkpMachine, SimIkpRole};

use super::packet_pair::{PacketPair, PacketPairStack};
use super::packet_wire::{self, ArrivedSimPacket, BELOW};
use super::pair::{SimPairRoute, SimStack};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan;
use stackline_proto::blast::wire::{BlastHeader, BlastPacketKind, HEADER};
use stackline_proto::datagram::DatagramToken;
use stackline_proto::ikp::options::BESIDE;
use stackline_proto::ikp::stack::{self as words, Verb};
use stackline_proto::ikp::{IkpOptions, IkpServer};
use std::collections::BTreeMap;
use std::rc::Rc;

static OPTIONS: [OptionTable; 11] = StackTable::joined(
    &words::TABLE.only([
        "packet",
        "full",
        "full_nak",
        "partial",
        "selective",
        "size",
        "flight",
        "interval",
        "patience",
        "duplicates",
    ]),
    &[super::ip_options::DSCP],
);

static TABLE: StackTable = StackTable {
    options: &OPTIONS,
    files: false,
    ..words::TABLE
};

/// The stack `ikp`.
pub(super) static STACK: SimStack = SimStack {
    table: &TABLE,
    group: None,
    pair: |route, stack, seed, _| {
        Ok(Rc::new(PacketPair::new(
            SimIkpStack::new(&route, stack, seed)?,
            route,
            0,
        )))
    },
};

/// The options and the token of all clients and servers of a pair.
struct SimIkpStack {
    options: IkpOptions,
    token: DatagramToken,
}

impl SimIkpStack {
    /// # Errors
    /// An [`Error`] when the packets do not fit the path.
    fn new(route: &SimPairRoute, stack: &plan::Stack, seed: u64) -> Result<Self> {
        let headers = (BELOW + HEADER) as u64 + u64::from(BESIDE);
        let packet = packet_wire::payload_room(route, headers);
        let hint = "use a `packet` size that the path carries, or give its links a larger `mtu`";
        let options =
            words::options(stack, packet.max(1)).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            options,
            token: packet_wire::seeded_token(seed),
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        words::settings(&self.options)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }
}

impl PacketPairStack for SimIkpStack {
    type Machine = SimIkpMachine;
    type Service = SimIkpConnection;

    fn opens(&self, arrived: &ArrivedSimPacket<'_>) -> bool {
        arrived.header.kind == BlastPacketKind::Send
    }

    fn listen(&self, number: u32) -> SimIkpMachine {
        SimIkpMachine::new(SimIkpRole::Server(Box::new(IkpServer::new(
            &self.options,
            number,
        ))))
    }

    /// Answers for a connection that is gone: a client that repeats its last message has not got the reply.
    fn answer(&self, arrived: &ArrivedSimPacket<'_>) -> Option<BlastHeader> {
        let BlastHeader {
            kind,
            connection,
            blast,
            round,
            ..
        } = arrived.header;
        if kind != BlastPacketKind::Send
            || !matches!(
                Verb::read(arrived.body),
                Some((Verb::Close | Verb::Closing, ..))
            )
        {
            return None;
        }
        Some(BlastHeader {
            blast,
            round,
            check: u32::from(round),
            ..BlastHeader::new(BlastPacketKind::Reply, connection)
        })
    }

    async fn connect(
        pair: &Rc<PacketPair<Self>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<SimIkpConnection> {
        SimIkpConnection::connect(pair, context).await
    }

    async fn accept(
        pair: &Rc<PacketPair<Self>>,
        end: Rc<SimIkpEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<SimIkpConnection> {
        SimIkpConnection::accept(pair, end, context).await
    }
}
