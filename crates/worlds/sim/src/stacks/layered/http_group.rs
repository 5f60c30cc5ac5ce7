//! The pairs that share connections of HTTP, one connection after the other: the first pair that connects opens it, the others join, and the
//! last one that leaves closes it. A pair of its own is a group of one.

use super::http_end::SimHttpEnd;
use super::http_exchange::SimHttp;
use super::opener::{OpenedWire, WireOpener};
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use crate::stacks::pair::{SimConnectionPair, SimPairRoute};
use crate::world::Connect;
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use stackline_proto::http::{Http1End, Http2End, Http2Windows, HttpMachine};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimHttpVersion {
    Http1,
    Http2,
}

/// What a side of a group has of its present connection.
#[derive(Debug)]
enum GroupConnection {
    None,
    /// A pair is opening or accepting it.
    Opening,
    Open(Rc<SimHttpEnd>),
}

/// The pairs that share connections.
pub(super) struct SimHttpGroup {
    opener: WireOpener,
    version: SimHttpVersion,
    /// By side: the windows in which it receives.
    windows: [Http2Windows; 2],
    connections: [RefCell<GroupConnection>; 2],
    /// By side and pair: the endpoints.
    endpoints: [Vec<u32>; 2],
    /// By pair: the numbers of connections that its initiator has joined and its responder has not.
    joined: RefCell<Vec<VecDeque<u32>>>,
}

impl fmt::Debug for SimHttpGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} pairs", self.version, self.endpoints[0].len())
    }
}

impl SimHttpGroup {
    /// The pairs with these routes, which differ in their endpoints alone.
    pub(super) fn pairs(
        version: SimHttpVersion,
        routes: &[SimPairRoute],
        stack: &plan::Stack,
        seed: u64,
        introduces: bool,
    ) -> Vec<Rc<SimHttpPair>> {
        let Some(first) = routes.first() else {
            return Vec::new();
        };
        let alpn = match version {
            SimHttpVersion::Http1 => "http/1.1",
            SimHttpVersion::Http2 => "h2",
        };
        let tls = stack.flag("tls").then_some(alpn);
        let sides = [PairSide::Initiator, PairSide::Responder];
        let endpoints = sides.map(|side| routes.iter().map(|route| route.endpoint(side)).collect());
        let sharers = sides.map(|side| {
            routes[1..]
                .iter()
                .map(|route| route.endpoint(side))
                .collect()
        });
        let opener = WireOpener::new(*first, stack, seed, introduces, tls).shared_with(sharers);
        let group = Rc::new(Self {
            opener,
            version,
            windows: [Http2Windows::CLIENT, Http2Windows::SERVER]
                .map(|windows| windows.or_written(stack)),
            connections: [GroupConnection::None, GroupConnection::None].map(RefCell::new),
            endpoints,
            joined: RefCell::new(vec![VecDeque::new(); routes.len()]),
        });
        (0..routes.len())
            .map(|place| {
                Rc::new(SimHttpPair {
                    group: Rc::clone(&group),
                    place,
                })
            })
            .collect()
    }

    /// Whether several pairs share a connection.
    pub(super) fn is_shared(&self) -> bool {
        self.endpoints[0].len() > 1
    }

    pub(super) const fn version(&self) -> SimHttpVersion {
        self.version
    }

    /// The windows in which a side receives.
    pub(super) const fn windows(&self, side: PairSide) -> Http2Windows {
        self.windows[side.index()]
    }

    fn connection(&self, side: PairSide) -> &RefCell<GroupConnection> {
        &self.connections[side.index()]
    }

    /// Wakes all endpoints of a side: they may join, or open a connection themselves.
    fn wake(&self, side: PairSide, context: &SimEndpointContext) {
        for endpoint in &self.endpoints[side.index()] {
            context.shared.wake(*endpoint);
        }
    }

    /// Waits while another pair opens or accepts the connection.
    async fn not_opening(&self, side: PairSide, context: &SimEndpointContext) -> Result<()> {
        let connection = self.connection(side);
        let step = || (!matches!(*connection.borrow(), GroupConnection::Opening)).then_some(());
        context
            .until("another pair to open the connection", step)
            .await
    }

    /// The open connection that a side has.
    fn open(&self, side: PairSide) -> Option<Rc<SimHttpEnd>> {
        match &*self.connection(side).borrow() {
            GroupConnection::Open(end) => Some(Rc::clone(end)),
            _ => None,
        }
    }

    /// Begins HTTP on a wire that was opened.
    fn begin(&self, side: PairSide, opened: OpenedWire) -> Rc<SimHttpEnd> {
        let is_client = side == PairSide::Initiator;
        let machine: Box<dyn HttpMachine> = match self.version {
            SimHttpVersion::Http1 => Box::new(Http1End::new()),
            SimHttpVersion::Http2 => Box::new(Http2End::new(is_client, self.windows(side))),
        };
        if is_client {
            // HTTP/1.1 sends nothing of its own when it connects, and the responder waits for the introduction.
            opened.wire.introduce();
        }
        let end = SimHttpEnd::new(opened.wire, machine, opened.number);
        end.write();
        end
    }

    async fn connect(
        &self,
        place: usize,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Rc<SimHttpEnd>> {
        let (side, mut own) = (PairSide::Initiator, None);
        loop {
            self.not_opening(side, context).await?;
            if let Some(end) = self.open(side) {
                if own != Some(end.number) {
                    self.joins(place, end.number, context);
                }
                end.users.set(end.users.get() + 1);
                return Ok(end);
            }
            let opening = Opening::begin(self, side, context);
            let dialled = |number| self.joins(place, number, context);
            let opened = self.opener.connect(context, dialled).await?;
            own = Some(opened.number);
            opening.is_open(self.begin(side, opened));
        }
    }

    /// A pair has joined a connection: its responder may accept.
    fn joins(&self, place: usize, number: u32, context: &SimEndpointContext) {
        self.joined.borrow_mut()[place].push_back(number);
        context
            .shared
            .wake(self.endpoints[PairSide::Responder.index()][place]);
    }

    async fn accept(
        &self,
        place: usize,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Rc<SimHttpEnd>> {
        let side = PairSide::Responder;
        let joined = || self.joined.borrow_mut()[place].pop_front();
        let number = context.until("a connection", joined).await?;
        loop {
            self.not_opening(side, context).await?;
            if let Some(end) = self.open(side) {
                if end.number >= number {
                    end.users.set(end.users.get() + 1);
                    return Ok(end);
                }
                *self.connection(side).borrow_mut() = GroupConnection::None;
                drop(end);
            }
            let opening = Opening::begin(self, side, context);
            let opened = self.opener.accept(context).await?;
            opening.is_open(self.begin(side, opened));
        }
    }

    /// A pair leaves a connection. Whether it was the last one: then the connection is no longer the group's.
    pub(super) fn leave(&self, side: PairSide, end: &Rc<SimHttpEnd>) -> bool {
        let users = end.users.get().saturating_sub(1);
        end.users.set(users);
        // Responders may be between two connections of theirs while initiators go on using this one.
        let stays = side == PairSide::Responder && self.is_shared() && !end.is_over();
        if users > 0 || stays {
            return false;
        }
        let mut connection = self.connection(side).borrow_mut();
        if matches!(&*connection, GroupConnection::Open(open) if Rc::ptr_eq(open, end)) {
            *connection = GroupConnection::None;
        }
        true
    }
}

/// A side of a group that opens or accepts a connection: if that fails, the next pair may try.
struct Opening<'g> {
    group: &'g SimHttpGroup,
    side: PairSide,
    context: &'g SimEndpointContext,
}

impl<'g> Opening<'g> {
    fn begin(group: &'g SimHttpGroup, side: PairSide, context: &'g SimEndpointContext) -> Self {
        *group.connection(side).borrow_mut() = GroupConnection::Opening;
        Self {
            group,
            side,
            context,
        }
    }

    fn is_open(self, end: Rc<SimHttpEnd>) {
        *self.group.connection(self.side).borrow_mut() = GroupConnection::Open(end);
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut connection = self.group.connection(self.side).borrow_mut();
        if matches!(*connection, GroupConnection::Opening) {
            *connection = GroupConnection::None;
        }
        drop(connection);
        self.group.wake(self.side, self.context);
    }
}

/// A pair of a group.
#[derive(Debug)]
pub(super) struct SimHttpPair {
    group: Rc<SimHttpGroup>,
    /// Its place in the group.
    place: usize,
}

/// Packets and timers have the number of the group's first pair.
impl SimConnectionPair for SimHttpPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        self.group.opener.tcp.arrived(side, packet, shared);
    }

    fn timer(&self, connection: u32, side: PairSide, shared: &Rc<SimRunState>) {
        self.group.opener.tcp.timer(connection, side, shared);
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        match self.place {
            0 => self.group.opener.tcp.sample(at, log),
            _ => 0,
        }
    }

    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.group.opener.tcp.forget(end);
    }
}

impl Connect for SimHttpPair {
    type Service = SimHttp;

    async fn connect(self: &Rc<Self>, context: &Rc<SimEndpointContext>) -> Result<SimHttp> {
        let end = self.group.connect(self.place, context).await?;
        Ok(SimHttp::new(
            &self.group,
            PairSide::Initiator,
            self.place,
            end,
            context,
        ))
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<SimHttp> {
        let end = self.group.accept(self.place, context).await?;
        Ok(SimHttp::new(
            &self.group,
            PairSide::Responder,
            self.place,
            end,
            context,
        ))
    }
}
