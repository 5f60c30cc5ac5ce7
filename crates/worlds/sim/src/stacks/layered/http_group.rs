//! The pairs that share connections of HTTP, one connection after the other: the first pair that connects opens it, the others join, and the
//! last one that leaves closes it. A pair of its own is a group of one.

use super::http_end::SimHttpEnd;
use super::http_exchange::SimHttp;
use super::opener::WireOpener;
use super::wire::SimLayerWire;
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
use std::collections::BTreeMap;
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
enum SimGroupConnection {
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
    connections: [RefCell<SimGroupConnection>; 2],
    /// By side and pair: the endpoints.
    endpoints: [Vec<u32>; 2],
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
            connections: [SimGroupConnection::None, SimGroupConnection::None].map(RefCell::new),
            endpoints,
        });
        (0..routes.len() as u32)
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

    fn connection(&self, side: PairSide) -> &RefCell<SimGroupConnection> {
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
        let step = || (!matches!(*connection.borrow(), SimGroupConnection::Opening)).then_some(());
        context
            .until("another pair to open the connection", step)
            .await
    }

    /// The open connection that a side has.
    fn open(&self, side: PairSide) -> Option<Rc<SimHttpEnd>> {
        match &*self.connection(side).borrow() {
            SimGroupConnection::Open(end) => Some(Rc::clone(end)),
            _ => None,
        }
    }

    /// Begins HTTP on a wire that was opened.
    fn begin(&self, side: PairSide, wire: Rc<SimLayerWire>) -> Rc<SimHttpEnd> {
        let is_client = side == PairSide::Initiator;
        let machine: Box<dyn HttpMachine> = match self.version {
            SimHttpVersion::Http1 => Box::new(Http1End::new()),
            SimHttpVersion::Http2 => Box::new(Http2End::new(is_client, self.windows(side))),
        };
        if is_client {
            // HTTP/1.1 sends nothing of its own when it connects, and the responder waits for the introduction.
            wire.introduce();
        }
        let end = SimHttpEnd::new(wire, machine);
        end.write();
        end
    }

    /// A pair's initiator opens the connection or joins it, once: to join it again it waits until all have left.
    async fn connect(
        &self,
        place: u32,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Rc<SimHttpEnd>> {
        let side = PairSide::Initiator;
        loop {
            self.not_opening(side, context).await?;
            let Some(end) = self.open(side) else {
                let opening = SimGroupOpening::begin(self, side, context);
                let wire = self.opener.connect(context).await?;
                opening.succeed(self.begin(side, wire));
                continue;
            };
            if end.joined.borrow_mut().insert(place) {
                end.users.set(end.users.get() + 1);
                return Ok(end);
            }
            let is_closed = || (!self.has(side, &end)).then_some(());
            context
                .until("the other pairs to leave its last connection", is_closed)
                .await?;
        }
    }

    /// A pair's responder accepts the connection, or waits for its pair to join the one that another has accepted.
    async fn accept(
        &self,
        place: u32,
        context: &Rc<SimEndpointContext>,
    ) -> Result<SimAcceptedHttp> {
        let side = PairSide::Responder;
        loop {
            self.not_opening(side, context).await?;
            let Some(end) = self.open(side) else {
                let opening = SimGroupOpening::begin(self, side, context);
                let wire = self.opener.accept(context).await?;
                opening.succeed(self.begin(side, wire));
                continue;
            };
            let join = match self.is_shared() {
                true => self.await_join(place, &end, context).await?,
                false => None,
            };
            if join.is_some() || !self.is_shared() {
                end.users.set(end.users.get() + 1);
                return Ok(SimAcceptedHttp { end, join });
            }
            self.drop_connection(side, &end);
        }
    }

    /// Waits for the request with which a pair joins; `None` when the connection ends before.
    async fn await_join(
        &self,
        place: u32,
        end: &Rc<SimHttpEnd>,
        context: &SimEndpointContext,
    ) -> Result<Option<u32>> {
        let step = || {
            end.read();
            end.write();
            match end.machine.borrow_mut().accept(Some(place)) {
                None if end.is_over() => Some(None),
                arrival => arrival.map(|join| Some(join.stream)),
            }
        };
        context.until("its pair to join a connection", step).await
    }

    /// Whether a side still has that connection.
    fn has(&self, side: PairSide, end: &Rc<SimHttpEnd>) -> bool {
        self.open(side).is_some_and(|open| Rc::ptr_eq(&open, end))
    }

    fn drop_connection(&self, side: PairSide, end: &Rc<SimHttpEnd>) {
        if self.has(side, end) {
            *self.connection(side).borrow_mut() = SimGroupConnection::None;
        }
    }

    /// A pair leaves a connection. Whether it was the last one: then the connection is no longer the group's.
    pub(super) fn leave(
        &self,
        side: PairSide,
        end: &Rc<SimHttpEnd>,
        context: &SimEndpointContext,
    ) -> bool {
        let users = end.users.get().saturating_sub(1);
        end.users.set(users);
        // A responder may have ended before others have begun.
        let stays = side == PairSide::Responder && self.is_shared() && !end.is_over();
        if users > 0 || stays {
            return false;
        }
        self.drop_connection(side, end);
        self.wake(side, context);
        true
    }
}

/// A connection as a responder accepts it.
struct SimAcceptedHttp {
    end: Rc<SimHttpEnd>,
    /// The stream of the request with which its pair has joined, where pairs share connections.
    join: Option<u32>,
}

/// A side of a group that opens or accepts a connection: if that fails, the next pair may try.
struct SimGroupOpening<'g> {
    group: &'g SimHttpGroup,
    side: PairSide,
    context: &'g SimEndpointContext,
}

impl<'g> SimGroupOpening<'g> {
    fn begin(group: &'g SimHttpGroup, side: PairSide, context: &'g SimEndpointContext) -> Self {
        *group.connection(side).borrow_mut() = SimGroupConnection::Opening;
        Self {
            group,
            side,
            context,
        }
    }

    fn succeed(self, end: Rc<SimHttpEnd>) {
        *self.group.connection(self.side).borrow_mut() = SimGroupConnection::Open(end);
    }
}

impl Drop for SimGroupOpening<'_> {
    fn drop(&mut self) {
        let mut connection = self.group.connection(self.side).borrow_mut();
        if matches!(*connection, SimGroupConnection::Opening) {
            *connection = SimGroupConnection::None;
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
    place: u32,
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
        let side = PairSide::Initiator;
        let mut pair = SimHttp::new(&self.group, side, self.place, end, context);
        pair.join().await?;
        Ok(pair)
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<SimHttp> {
        let accepted = self.group.accept(self.place, context).await?;
        let side = PairSide::Responder;
        let mut pair = SimHttp::new(&self.group, side, self.place, accepted.end, context);
        pair.join = accepted.join;
        Ok(pair)
    }

    fn counts(&self, side: PairSide) -> BTreeMap<String, u64> {
        // The first pair of the group reports their connections.
        match self.place {
            0 => self.group.opener.counts(side),
            _ => BTreeMap::new(),
        }
    }
}
