//! The simulated stacks: one file a stack, one table a stack, and the operations of the language on a connection.

use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::trace::{Coming, Leaving, Log};
use crate::world::{Desk, World};
use stackline_core::catalogue::StackTable;
use stackline_core::plan::Stack;
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_net::{Node, Packet};
use stackline_proto::datagram::Losses;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(crate) mod blast;
pub(crate) mod end;
pub(crate) mod ikp;
pub(crate) mod linux_tcp;
mod outlet;
pub(crate) mod quic;
pub(crate) mod segments;
pub(crate) mod smol;
mod spent;
pub(crate) mod stream;
pub(crate) mod tcp;
pub(crate) mod udp;

/// Which way bulk data goes, seen from the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// Responder to initiator.
    Get,
    /// Initiator to responder.
    Put,
}

/// Where the two endpoints of a pair are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The pair's number.
    pub(crate) pair: u32,
    /// Initiator's and responder's host.
    pub(crate) nodes: [Node; 2],
    /// Their endpoints.
    pub(crate) endpoints: [u32; 2],
    /// Largest packet that fits the path, the smaller of both ways.
    pub(crate) mtu: u64,
    /// Bytes that fit into the queues before their first links: a sender waits rather than that its own host drops.
    pub(crate) rooms: [u64; 2],
}

/// The place of a side in a pair of things.
pub(crate) const fn place(side: Side) -> usize {
    match side {
        Side::Initiator => 0,
        Side::Responder => 1,
    }
}

/// The other one.
pub(crate) const fn other(side: Side) -> Side {
    match side {
        Side::Initiator => Side::Responder,
        Side::Responder => Side::Initiator,
    }
}

impl Route {
    pub(crate) const fn node(&self, side: Side) -> Node {
        self.nodes[place(side)]
    }

    pub(crate) const fn endpoint(&self, side: Side) -> u32 {
        self.endpoints[place(side)]
    }
}

/// What a pair of endpoints has between them.
#[derive(Clone, Debug)]
pub(crate) enum Pair {
    Tcp(Rc<tcp::TcpPair>),
    Udp(Rc<udp::UdpPair>),
    Quic(Rc<quic::QuicPair>),
    Blast(Rc<blast::BlastPair>),
    Ikp(Rc<ikp::IkpPair>),
}

impl Pair {
    /// # Errors
    /// An [`Error`] when the stack is not simulated.
    pub(crate) fn new(route: Route, stack: &Stack, seed: u64, introduces: bool) -> Result<Self> {
        let table = table(&stack.name)?;
        table.accepts(stack)?;
        match table.name {
            "tcp" | "smoltcp" => Ok(Self::Tcp(Rc::new(tcp::TcpPair::new(route, stack, seed, introduces)))),
            "udp" => Ok(Self::Udp(Rc::new(udp::UdpPair::new(route, stack, seed)))),
            "quic" => Ok(Self::Quic(Rc::new(quic::QuicPair::new(route, stack, seed, introduces)?))),
            "saw" | "window" | "blast" => Ok(Self::Blast(Rc::new(blast::BlastPair::new(route, stack, seed)?))),
            "ikp" => Ok(Self::Ikp(Rc::new(ikp::IkpPair::new(route, stack, seed)?))),
            name => Err(Error::input(format!("the stack {name} is not simulated"))),
        }
    }

    /// A packet has reached the host of one side.
    pub(crate) fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, world: &Rc<World>) {
        match self {
            Self::Tcp(pair) => pair.arrived(side, packet, world),
            Self::Udp(pair) => pair.arrived(side, packet, world),
            Self::Quic(pair) => pair.arrived(side, packet, world),
            Self::Blast(pair) => pair.arrived(side, packet, world),
            Self::Ikp(pair) => pair.arrived(side, packet, world),
        }
    }

    /// A timer of one end of a connection came.
    pub(crate) fn timer(&self, connection: u32, side: Side, world: &Rc<World>) {
        match self {
            Self::Tcp(pair) => pair.timer(connection, side, world),
            Self::Quic(pair) => pair.timer(connection, side, world),
            Self::Blast(pair) => pair.timer(connection, side, world),
            Self::Ikp(pair) => pair.timer(connection, side, world),
            Self::Udp(_) => {}
        }
    }

    /// Tells of its connections as they are at a moment; of how many there was something to tell.
    pub(crate) fn look(&self, at: Instant, log: &Log) -> usize {
        match self {
            Self::Tcp(pair) => pair.look(at, log),
            Self::Quic(pair) => pair.look(at, log),
            Self::Blast(pair) => pair.look(at, log),
            Self::Udp(_) | Self::Ikp(_) => 0,
        }
    }

    /// An end of a connection is over.
    pub(crate) fn forget(&self, end: end::End) {
        match (self, end) {
            (Self::Tcp(pair), end::End::Tcp(end)) => pair.forget(end),
            (Self::Quic(pair), end::End::Quic(end)) => pair.forget(&end),
            (Self::Blast(pair), end::End::Blast(end)) => pair.forget(&end),
            (Self::Ikp(pair), end::End::Ikp(end)) => pair.forget(&end),
            _ => {}
        }
    }

    pub(crate) fn side_of(&self, node: Node) -> Side {
        let route = match self {
            Self::Tcp(pair) => &pair.route,
            Self::Udp(pair) => &pair.route,
            Self::Quic(pair) => &pair.route,
            Self::Blast(pair) => &pair.route,
            Self::Ikp(pair) => &pair.route,
        };
        if route.nodes[0].0 == node.0 { Side::Initiator } else { Side::Responder }
    }

    /// Whether it has to know when packets have left their hosts.
    pub(crate) const fn wants_departures(&self) -> bool {
        matches!(self, Self::Udp(_) | Self::Blast(_) | Self::Ikp(_))
    }

    /// A packet of that side has left its host, or never will.
    pub(crate) fn departed(&self, side: Side, at: Instant, bytes: u32, world: &World) {
        match self {
            Self::Tcp(_) | Self::Quic(_) => {}
            Self::Udp(pair) => pair.departed(side, at, bytes, world),
            Self::Blast(pair) => pair.departed(side, at, bytes, world),
            Self::Ikp(pair) => pair.departed(side, at, bytes, world),
        }
    }

    /// An endpoint is done: nobody listens at that side any more.
    fn close(&self, side: Side) {
        match self {
            Self::Tcp(_) | Self::Quic(_) | Self::Blast(_) | Self::Ikp(_) => {}
            Self::Udp(pair) => pair.close(side),
        }
    }
}

/// How an endpoint gets its connections.
#[derive(Debug)]
pub(crate) struct Door {
    pair: Pair,
    side: Side,
    /// Connections so far.
    count: Cell<u64>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.pair.close(self.side);
    }
}

impl Door {
    pub(crate) const fn new(pair: Pair, side: Side) -> Self {
        Self { pair, side, count: Cell::new(0) }
    }

    /// `ConnectRequest`.
    pub(crate) async fn connect(&self, desk: &Rc<Desk>) -> Result<Connection> {
        match &self.pair {
            Pair::Tcp(pair) => stream::Stream::connect(&**pair, desk).await.map(Connection::Stream),
            Pair::Quic(pair) => stream::Stream::connect(&**pair, desk).await.map(Connection::Stream),
            Pair::Blast(pair) => blast::Transfers::connect(pair, desk).await.map(Connection::Transfers),
            Pair::Ikp(pair) => ikp::Calls::connect(pair, desk).await.map(|calls| Connection::Calls(Box::new(calls))),
            Pair::Udp(pair) => {
                let datagrams = udp::Datagrams::connect(pair, desk).await?;
                Ok(Connection::Datagrams(Box::new(datagrams)))
            }
        }
    }

    /// `AwaitConnectIndication`.
    pub(crate) async fn accept(&self, desk: &Rc<Desk>) -> Result<Connection> {
        let first = self.count.replace(self.count.get() + 1) == 0;
        match &self.pair {
            Pair::Tcp(pair) => stream::Stream::accept(&**pair, desk).await.map(Connection::Stream),
            Pair::Quic(pair) => stream::Stream::accept(&**pair, desk).await.map(Connection::Stream),
            Pair::Blast(pair) => blast::Transfers::accept(pair, desk).await.map(Connection::Transfers),
            Pair::Ikp(pair) => ikp::Calls::accept(pair, desk).await.map(|calls| Connection::Calls(Box::new(calls))),
            Pair::Udp(pair) => {
                let datagrams = udp::Datagrams::accept(pair, desk, first).await?;
                Ok(Connection::Datagrams(Box::new(datagrams)))
            }
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) enum Connection {
    Stream(stream::Stream),
    Datagrams(Box<udp::Datagrams>),
    Transfers(blast::Transfers),
    Calls(Box<ikp::Calls>),
}

impl Connection {
    /// `DataRequest`, `times` times. How many were sent: fewer when the limit came up in between.
    pub(crate) async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        match self {
            Self::Stream(stream) => stream.send(bytes, times, Leaving::Unit).await,
            Self::Datagrams(datagrams) => datagrams.send(bytes, times).await,
            Self::Transfers(transfers) => transfers.send(bytes, times).await,
            Self::Calls(calls) => calls.send(bytes, times).await,
        }
    }

    /// Whether `send` returns only when the peer has everything.
    pub(crate) const fn confirms(&self) -> bool {
        matches!(self, Self::Transfers(_) | Self::Calls(_))
    }

    /// `AwaitDataIndication`, `times` times. How many arrived: fewer when the peer ended its stream.
    pub(crate) async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        match self {
            Self::Stream(stream) => stream.receive(bytes, times, Coming::Unit).await,
            Self::Datagrams(datagrams) => datagrams.receive(bytes, times, Coming::Unit).await,
            Self::Transfers(transfers) => transfers.receive(bytes, times, Coming::Unit).await,
            Self::Calls(calls) => calls.receive(bytes, times).await,
        }
    }

    /// `RPCCall`, begun at `since`: true when the response came, false when it counts as lost.
    pub(crate) async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool> {
        match self {
            Self::Stream(stream) => stream.call(request, response).await,
            Self::Datagrams(datagrams) => datagrams.call(request, response, since).await,
            Self::Transfers(transfers) => transfers.call(request, response).await,
            Self::Calls(calls) => calls.call(request, response).await,
        }
    }

    /// Whether the peer has closed the connection, or its half of it.
    pub(crate) fn closed(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Transfers(_) | Self::Calls(_) => true,
            Self::Datagrams(datagrams) => datagrams.closed(),
        }
    }

    /// `RPCAwaitCallInd`: false when the peer ended its stream.
    pub(crate) async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        match self {
            Self::Stream(stream) => Ok(stream.receive(bytes, 1, Coming::Call).await? == 1),
            Self::Datagrams(datagrams) => datagrams.await_call(bytes).await,
            Self::Transfers(transfers) => Ok(transfers.receive(bytes, 1, Coming::Call).await? == 1),
            Self::Calls(calls) => calls.await_call(bytes).await,
        }
    }

    /// `RPCReturn`.
    pub(crate) async fn reply(&mut self, bytes: u64) -> Result<()> {
        match self {
            Self::Stream(stream) => stream.send(bytes, 1, Leaving::Reply).await.map(drop),
            Self::Datagrams(datagrams) => datagrams.reply(bytes).await,
            Self::Transfers(transfers) => {
                transfers.reply(bytes);
                Ok(())
            }
            Self::Calls(calls) => calls.reply(bytes).await,
        }
    }

    /// `StartBulkGet` and `StartBulkPut`.
    pub(crate) async fn start_bulk(&mut self, way: Bulk) -> Result<()> {
        match self {
            Self::Stream(stream) => stream.start_bulk().await,
            Self::Datagrams(datagrams) => datagrams.start_bulk().await,
            Self::Transfers(transfers) => {
                transfers.start_bulk(way);
                Ok(())
            }
            Self::Calls(_) => Ok(()),
        }
    }

    /// `AwaitStartBulkGet` and `AwaitStartBulkPut`: false when the peer ended its stream.
    pub(crate) async fn await_start_bulk(&mut self, way: Bulk) -> Result<bool> {
        match self {
            Self::Stream(stream) => stream.await_start_bulk().await,
            Self::Datagrams(datagrams) => datagrams.await_start_bulk().await,
            Self::Transfers(transfers) => transfers.await_start_bulk(way).await,
            Self::Calls(calls) => calls.await_start_bulk(way).await,
        }
    }

    /// `StopBulkGet` and `StopBulkPut`: returns when nothing is in transit.
    pub(crate) async fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        match self {
            Self::Stream(stream) => stream.stop_bulk(way).await,
            Self::Datagrams(datagrams) => datagrams.stop_bulk(way).await,
            // What was sent is acknowledged.
            Self::Transfers(_) | Self::Calls(_) => Ok(()),
        }
    }

    /// `AwaitStopBulkGet` and `AwaitStopBulkPut`.
    pub(crate) async fn await_stop_bulk(&mut self, way: Bulk) -> Result<()> {
        match self {
            Self::Stream(stream) => stream.await_stop_bulk(way).await,
            Self::Datagrams(datagrams) => datagrams.await_stop_bulk(way).await,
            Self::Transfers(_) | Self::Calls(_) => Ok(()),
        }
    }

    /// Tells the peer that no more data units come, because the limit was reached.
    pub(crate) async fn end_stream(&mut self) -> Result<()> {
        match self {
            Self::Stream(stream) => {
                stream.end_stream();
                Ok(())
            }
            Self::Datagrams(datagrams) => datagrams.end_stream().await,
            Self::Transfers(transfers) => transfers.end_stream().await,
            Self::Calls(calls) => calls.end_stream().await,
        }
    }

    /// `DisconnectRequest`.
    pub(crate) async fn disconnect(self) -> Result<()> {
        match self {
            Self::Stream(stream) => {
                drop(stream);
                Ok(())
            }
            Self::Datagrams(datagrams) => datagrams.disconnect().await,
            Self::Transfers(transfers) => transfers.disconnect().await,
            Self::Calls(calls) => calls.disconnect().await,
        }
    }

    /// `AwaitDisconnectIndication`.
    pub(crate) async fn await_disconnect(&mut self) -> Result<()> {
        match self {
            Self::Stream(stream) => stream.await_disconnect().await,
            Self::Datagrams(datagrams) => datagrams.await_disconnect().await,
            Self::Transfers(transfers) => transfers.await_disconnect().await,
            Self::Calls(calls) => calls.await_disconnect().await,
        }
    }

    /// What the transport says of itself now.
    pub(crate) fn transport(&self) -> Option<Transport> {
        match self {
            Self::Stream(stream) => Some(stream.transport()),
            Self::Transfers(transfers) => Some(transfers.transport()),
            Self::Calls(calls) => calls.transport(),
            Self::Datagrams(_) => None,
        }
    }

    /// What is in force, by option name.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        match self {
            Self::Stream(stream) => stream.settings(),
            Self::Datagrams(datagrams) => datagrams.settings(),
            Self::Transfers(transfers) => transfers.settings(),
            Self::Calls(calls) => calls.settings(),
        }
    }

    /// What did not arrive in order, where that can happen.
    pub(crate) fn losses(&self) -> Option<Losses> {
        match self {
            Self::Stream(_) | Self::Transfers(_) | Self::Calls(_) => None,
            Self::Datagrams(datagrams) => datagrams.losses(),
        }
    }

    /// Bytes of data units that really arrived, where the cursor cannot know because some were lost.
    pub(crate) fn received_bytes(&self) -> Option<u64> {
        match self {
            Self::Stream(_) | Self::Transfers(_) | Self::Calls(_) => None,
            Self::Datagrams(datagrams) => datagrams.received_bytes(),
        }
    }
}

static ALL: &[&StackTable] = &[
    &linux_tcp::TABLE,
    &smol::TABLE,
    &udp::TABLE,
    &quic::TABLE,
    &blast::SAW,
    &blast::WINDOW,
    &blast::BLAST,
    &ikp::TABLE,
];

/// The tables of all simulated stacks.
#[must_use]
pub fn catalogue() -> Vec<StackTable> {
    ALL.iter().map(|table| **table).collect()
}

/// The table of a stack.
///
/// # Errors
/// An [`Error`] when it is not simulated.
pub(crate) fn table(name: &str) -> Result<&'static StackTable> {
    ALL.iter().copied().find(|table| table.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|table| table.name).collect();
        Error::input(format!("the stack {name} is not simulated")).hint(format!("simulated are {}", known.join(", ")))
    })
}
