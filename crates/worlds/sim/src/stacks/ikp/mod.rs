//! `ikp`: the machines of `proto::ikp` over UDP, packet by packet as in the live world.
//!
//! The machines go on by themselves, as if a kernel ran them: a peer that does something else still says that a message is
//! pending.

mod calls;
mod end;

use calls::Calls;
use end::{End, Machine, Role};

use super::packet_pair::{PacketPair, Protocol};
use super::packet_wire::{self, Arrived, BELOW};
use super::pair::{Route, Stack};
use crate::context::Context;
use crate::error::{Error, Result};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan;
use stackline_proto::blast::wire::{HEADER, Header, Kind};
use stackline_proto::datagram::Token;
use stackline_proto::ikp::options::BESIDE;
use stackline_proto::ikp::stack::{self as words, Verb};
use stackline_proto::ikp::{Options, Server};
use std::collections::BTreeMap;
use std::rc::Rc;

static OPTIONS: [OptionTable; 10] = words::TABLE.only([
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
]);

static TABLE: StackTable = StackTable {
    options: &OPTIONS,
    files: false,
    ..words::TABLE
};

/// The stack.
pub(super) static STACK: Stack = Stack {
    table: &TABLE,
    pair: |route, stack, seed, _| {
        Ok(Rc::new(PacketPair::new(
            Ikp::new(&route, stack, seed)?,
            route,
            0,
        )))
    },
};

/// What all clients and servers of a pair have in common.
struct Ikp {
    options: Options,
    token: Token,
}

impl Ikp {
    /// # Errors
    /// An [`Error`] when the packets do not fit the path.
    fn new(route: &Route, stack: &plan::Stack, seed: u64) -> Result<Self> {
        let headers = (BELOW + HEADER) as u64 + u64::from(BESIDE);
        let packet = packet_wire::room(route, headers);
        let hint = "ask for a `packet` that the path carries, or give its links a larger `mtu`";
        let options =
            words::options(stack, packet.max(1)).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            options,
            token: packet_wire::token(seed),
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        words::settings(&self.options)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }
}

impl Protocol for Ikp {
    type Machine = Machine;
    type Service = Calls;

    fn opens(&self, arrived: &Arrived<'_>) -> bool {
        arrived.header.kind == Kind::Send
    }

    fn listen(&self, number: u32) -> Machine {
        Machine::new(Role::Server(Box::new(Server::new(&self.options, number))))
    }

    /// The last reply of the connection was lost.
    fn answer(&self, arrived: &Arrived<'_>) -> Option<Header> {
        let Header {
            kind,
            connection,
            blast,
            round,
            ..
        } = arrived.header;
        if kind != Kind::Send
            || !matches!(
                Verb::read(arrived.body),
                Some((Verb::Close | Verb::Closing, ..))
            )
        {
            return None;
        }
        Some(Header {
            blast,
            round,
            check: u32::from(round),
            ..Header::new(Kind::Reply, connection)
        })
    }

    async fn connect(pair: &Rc<PacketPair<Self>>, context: &Rc<Context>) -> Result<Calls> {
        Calls::connect(pair, context).await
    }

    async fn accept(
        pair: &Rc<PacketPair<Self>>,
        end: Rc<End>,
        context: &Rc<Context>,
    ) -> Result<Calls> {
        Calls::accept(pair, end, context).await
    }
}
