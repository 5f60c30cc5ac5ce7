//! What a stack is to the engine: a table, and for each pair of endpoints what lies between them.

use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::Result;
use crate::executor::{ConnectionEnd, Executor};
use crate::trace::Log;
use crate::world::Work;
use stackline_core::catalogue::StackTable;
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_net::{Node, Packet};
use std::rc::Rc;

/// Makes a pair: its route, the stack with its options, its seed, and whether every connection introduces itself.
pub(crate) type MakePair = fn(Route, &plan::Stack, u64, bool) -> Result<Rc<dyn Pair>>;

/// A simulated stack.
pub(crate) struct Stack {
    /// What it is.
    pub(crate) table: &'static StackTable,
    /// What makes its pairs.
    pub(crate) pair: MakePair,
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
    /// Whether a queue of the network marks packets: then its hosts ask for that.
    pub(crate) marks: bool,
}

impl Route {
    pub(crate) const fn node(&self, side: Side) -> Node {
        self.nodes[side.index()]
    }

    pub(crate) const fn endpoint(&self, side: Side) -> u32 {
        self.endpoints[side.index()]
    }

    pub(crate) const fn side_of(&self, node: Node) -> Side {
        if self.nodes[0].0 == node.0 {
            Side::Initiator
        } else {
            Side::Responder
        }
    }
}

/// What a pair of endpoints has between them.
pub(crate) trait Pair {
    fn route(&self) -> &Route;
    /// An endpoint of the pair, walking its program: `world::spawn`.
    fn spawn(self: Rc<Self>, context: Rc<Context>, replica: u32) -> Work;
    /// A packet has reached the host of one side.
    fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, executor: &Rc<Executor>);
    /// A timer of one end of a connection came.
    fn timer(&self, _connection: u32, _side: Side, _executor: &Rc<Executor>) {}
    /// Records how its connections are at a moment; of how many there was something to record.
    fn sample(&self, _at: Instant, _log: &Log) -> usize {
        0
    }
    /// An end of a connection is over.
    fn forget(&self, _end: Rc<dyn ConnectionEnd>) {}
    /// Whether it has to know when packets have left their hosts.
    fn wants_departures(&self) -> bool {
        false
    }
    /// A packet of that side has left its host, or never will.
    fn departed(&self, _side: Side, _at: Instant, _bytes: u32, _executor: &Executor) {}
}

/// Whether both are the same end.
pub(crate) fn same<E>(known: &Rc<E>, end: &Rc<dyn ConnectionEnd>) -> bool {
    std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(end))
}
