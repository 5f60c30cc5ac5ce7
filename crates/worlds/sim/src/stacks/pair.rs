//! What a stack is to the engine: a table, and for each pair of endpoints what lies between them.

use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use crate::tasks::Task;
use crate::world::{self, Connect};
use stackline_core::catalogue::StackTable;
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::{NetworkPacket, NodeIndex};
use std::rc::Rc;

/// Makes a pair: its route, the stack with its options, its seed, and whether every connection introduces itself.
pub(crate) type MakePair =
    fn(SimPairRoute, &plan::Stack, u64, bool) -> Result<Rc<dyn SimEndpointPair>>;

/// A simulated stack.
pub(crate) struct SimStack {
    /// What it is.
    pub(crate) table: &'static StackTable,
    /// What makes its pairs.
    pub(crate) pair: MakePair,
}

/// Where the two endpoints of a pair are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPairRoute {
    /// The pair's number.
    pub(crate) pair: u32,
    /// Initiator's and responder's host.
    pub(crate) nodes: [NodeIndex; 2],
    /// Their endpoints.
    pub(crate) endpoints: [u32; 2],
    /// Largest packet that fits the path, the smaller of both ways.
    pub(crate) mtu: u64,
    /// Bytes that fit into the queues before their first links: a sender waits rather than that its own host drops.
    pub(crate) rooms: [u64; 2],
    /// Whether the processors of the hosts copy what they send.
    pub(crate) copies: [bool; 2],
    /// Whether a queue of the network marks packets: then its hosts ask for that.
    pub(crate) marks: bool,
}

impl SimPairRoute {
    pub(crate) const fn node(&self, side: PairSide) -> NodeIndex {
        self.nodes[side.index()]
    }

    pub(crate) const fn endpoint(&self, side: PairSide) -> u32 {
        self.endpoints[side.index()]
    }
}

/// What a pair of endpoints has between them.
pub(crate) trait SimEndpointPair: SimConnectionPair {
    /// An endpoint of the pair, walking its program.
    fn spawn(self: Rc<Self>, context: Rc<SimEndpointContext>, replica: u32) -> Task;
}

impl<P: SimConnectionPair + Connect + 'static> SimEndpointPair for P {
    fn spawn(self: Rc<Self>, context: Rc<SimEndpointContext>, replica: u32) -> Task {
        world::spawn_endpoint(self, context, replica)
    }
}

/// What two hosts have between them, as the loop of virtual time knows it.
pub(crate) trait SimConnectionPair {
    /// A packet has reached the host of one side.
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    );
    /// A timer of one end of a connection came.
    fn timer(&self, _connection: u32, _side: PairSide, _executor: &Rc<SimRunState>) {}
    /// Records how its connections are at a moment; of how many there was something to record.
    fn sample(&self, _at: Instant, _log: &SimTraceLog) -> usize {
        0
    }
    /// An end of a connection is over.
    fn forget(&self, _end: Rc<dyn ConnectionEnd>) {}
    /// Whether it has to know when packets have left their hosts.
    fn wants_departures(&self) -> bool {
        false
    }
    /// A packet of that side has left its host, or never will.
    fn departed(&self, _side: PairSide, _at: Instant, _bytes: u32, _executor: &SimRunState) {}
}

/// Whether both are the same end.
pub(crate) fn is_same_end<E>(known: &Rc<E>, end: &Rc<dyn ConnectionEnd>) -> bool {
    std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(end))
}
