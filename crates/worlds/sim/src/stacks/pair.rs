//! The interface of a stack to the engine: a table that describes it, and for each pair of endpoints an object that
//! holds the connections between them.

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

/// Makes a pair. Arguments: its route, the stack with its options, its seed, and whether every connection begins with
/// an introduction.
pub(crate) type MakePair =
    fn(SimPairRoute, &plan::Stack, u64, bool) -> Result<Rc<dyn SimEndpointPair>>;

/// Makes pairs that share their connections (option `streams`). Arguments: their routes, the stack with its options, the seed of the
/// first of them, and whether every connection begins with an introduction.
pub(crate) type MakeGroup =
    fn(&[SimPairRoute], &plan::Stack, u64, bool) -> Result<Vec<Rc<dyn SimEndpointPair>>>;

/// A simulated stack.
pub(crate) struct SimStack {
    /// The description of the stack.
    pub(crate) table: &'static StackTable,
    /// Makes the stack's pairs.
    pub(crate) pair: MakePair,
    /// Makes pairs that share their connections, where the stack has streams.
    pub(crate) group: Option<MakeGroup>,
}

/// The route and the seed of a pair that is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPairPlan {
    pub(crate) route: SimPairRoute,
    pub(crate) seed: u64,
}

impl SimStack {
    /// Makes the pairs of a part, of which the option `streams` says how many share a connection.
    ///
    /// # Errors
    /// When the stack cannot run on the pairs' routes.
    pub(crate) fn pairs(
        &self,
        plans: &[SimPairPlan],
        stack: &plan::Stack,
        introduces: bool,
    ) -> Result<Vec<Rc<dyn SimEndpointPair>>> {
        let streams = stack.pairs_per_connection() as usize;
        let Some(group) = self.group.filter(|_| streams > 1) else {
            let pair = |plan: &SimPairPlan| (self.pair)(plan.route, stack, plan.seed, introduces);
            return plans.iter().map(pair).collect();
        };
        let mut pairs = Vec::with_capacity(plans.len());
        for plans in plans.chunks(streams) {
            let routes: Vec<SimPairRoute> = plans.iter().map(|plan| plan.route).collect();
            let seed = plans.first().map_or(0, |plan| plan.seed);
            pairs.extend(group(&routes, stack, seed, introduces)?);
        }
        Ok(pairs)
    }
}

/// The hosts of a pair, and the properties of the paths between them. Arrays are by side: initiator, responder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPairRoute {
    /// The pair's number.
    pub(crate) pair: u32,
    /// The hosts of initiator and responder.
    pub(crate) nodes: [NodeIndex; 2],
    /// The numbers of their endpoints.
    pub(crate) endpoints: [u32; 2],
    /// The largest packet that fits the paths in both directions, in bytes.
    pub(crate) mtu: u64,
    /// Bytes that fit into the queues before their first links: a sender waits for room, so that its own host drops
    /// nothing.
    pub(crate) rooms: [u64; 2],
    /// Whether the processors of the hosts copy what they send.
    pub(crate) copies: [bool; 2],
    /// Whether a queue of the network marks packets: then the hosts use ECN.
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

/// The connections of a pair of endpoints.
pub(crate) trait SimEndpointPair: SimConnectionPair {
    /// A task in which an endpoint of the pair walks its program.
    fn spawn(self: Rc<Self>, context: Rc<SimEndpointContext>, replica: u32) -> Task;
}

impl<P: SimConnectionPair + Connect + 'static> SimEndpointPair for P {
    fn spawn(self: Rc<Self>, context: Rc<SimEndpointContext>, replica: u32) -> Task {
        world::spawn_endpoint(self, context, replica)
    }
}

/// The connections between two hosts, as the loop of virtual time sees them.
pub(crate) trait SimConnectionPair {
    /// Handles a packet that has reached the host of one side.
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    );
    /// Handles a timer of one end of a connection.
    fn timer(&self, _connection: u32, _side: PairSide, _executor: &Rc<SimRunState>) {}
    /// Records the state of the connections at a moment for the trace. Returns the number of connections recorded.
    fn sample(&self, _at: Instant, _log: &SimTraceLog) -> usize {
        0
    }
    /// Drops an end of a connection that is over.
    fn forget(&self, _end: Rc<dyn ConnectionEnd>) {}
    /// Whether the pair has to be notified when packets have left their hosts.
    fn wants_departures(&self) -> bool {
        false
    }
    /// Handles a packet of that side that has left its host, or was dropped there.
    fn departed(&self, _side: PairSide, _at: Instant, _bytes: u32, _executor: &SimRunState) {}
}

/// Whether both point to the same end.
pub(crate) fn is_same_end<E>(known: &Rc<E>, end: &Rc<dyn ConnectionEnd>) -> bool {
    std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(end))
}
