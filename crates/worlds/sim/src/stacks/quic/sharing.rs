//! Pairs and their connections of QUIC: a pair of its own has one connection after the other, pairs with the option `streams` share them.
//! The first pair that connects asks for the connection, the others join it, and the last one that leaves closes it.

use super::QuicPair;
use super::connection::SimQuicEnd;
use super::streams::SimQuicStreamEnd;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use crate::stacks::byte_stream::{Introductions, SimStreamPair};
use crate::stacks::pair::{SimConnectionPair, SimPairRoute};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What pairs share.
struct SimQuicGroup {
    connections: QuicPair,
    /// The initiators' connection.
    current: RefCell<Option<Rc<SimQuicEnd>>>,
    /// The responders' connections, by number, until no pair can join them any more.
    accepted: RefCell<BTreeMap<u32, Rc<SimQuicEnd>>>,
    /// By pair: the numbers of connections that its initiator has joined and its responder has not.
    joined: RefCell<Vec<VecDeque<u32>>>,
}

/// A pair.
pub(super) struct SimQuicPair {
    group: Rc<SimQuicGroup>,
    /// Its place in its group.
    place: usize,
    introductions: Introductions,
}

impl SimQuicPair {
    /// The pairs with these routes, which differ in their endpoints alone.
    ///
    /// # Errors
    /// See [`QuicPair::new`].
    pub(super) fn pairs(
        routes: &[SimPairRoute],
        stack: &plan::Stack,
        seed: u64,
        introduces: bool,
    ) -> Result<Vec<Rc<Self>>> {
        let Some(first) = routes.first() else {
            return Ok(Vec::new());
        };
        let sides = [PairSide::Initiator, PairSide::Responder];
        let endpoints = sides.map(|side| routes.iter().map(|route| route.endpoint(side)).collect());
        let group = Rc::new(SimQuicGroup {
            connections: QuicPair::new(*first, endpoints, stack, seed)?,
            current: RefCell::default(),
            accepted: RefCell::default(),
            joined: RefCell::new(vec![VecDeque::new(); routes.len()]),
        });
        let pair = |place| {
            Rc::new(Self {
                group: Rc::clone(&group),
                place,
                introductions: Introductions::new(introduces),
            })
        };
        Ok((0..routes.len()).map(pair).collect())
    }
}

impl SimQuicGroup {
    /// The connection that an initiator uses next: the present one, or a new one.
    fn connection(&self, shared: &Rc<SimRunState>) -> Result<Rc<SimQuicEnd>> {
        let mut current = self.current.borrow_mut();
        if let Some(end) = current.as_ref().filter(|end| end.is_joinable()) {
            return Ok(Rc::clone(end));
        }
        let end = self.connections.dial(shared)?;
        *current = Some(Rc::clone(&end));
        Ok(end)
    }

    /// A pair's initiator joins a connection, or opens it.
    fn join(&self, place: usize, shared: &Rc<SimRunState>) -> Result<SimQuicStreamEnd> {
        let (end, number) = (self.connection(shared)?, place as u32);
        end.join(number);
        self.joined.borrow_mut()[place].push_back(end.number());
        shared.wake(self.connections.endpoints[PairSide::Responder.index()][place]);
        Ok(SimQuicStreamEnd { end, number })
    }

    /// A pair's responder follows its initiator.
    fn follow(&self, place: usize) -> Option<SimQuicStreamEnd> {
        let mut accepted = self.accepted.borrow_mut();
        while let Some(end) = self.connections.accept() {
            accepted.insert(end.number(), end);
        }
        let mut joined = self.joined.borrow_mut();
        let next = *joined[place].front()?;
        let (end, number) = (Rc::clone(accepted.get(&next)?), place as u32);
        joined[place].pop_front();
        end.join(number);
        // No pair can join what all have left behind.
        let oldest = joined.iter().filter_map(VecDeque::front).min();
        let oldest = oldest.map_or(next, |oldest| next.min(*oldest));
        accepted.retain(|connection, _| *connection >= oldest);
        Some(SimQuicStreamEnd { end, number })
    }
}

/// Packets and timers have the number of the group's first pair.
impl SimConnectionPair for SimQuicPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        self.group.connections.arrived(side, packet, shared);
    }

    fn timer(&self, handle: u32, side: PairSide, shared: &Rc<SimRunState>) {
        self.group.connections.timer(handle, side, shared);
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        match self.place {
            0 => self.group.connections.sample(at, log),
            _ => 0,
        }
    }

    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.group.connections.forget(end);
    }
}

impl SimStreamPair for SimQuicPair {
    type End = SimQuicStreamEnd;

    fn introductions(&self) -> &Introductions {
        &self.introductions
    }

    fn may_dial(&self) -> bool {
        let current = self.group.current.borrow();
        let open = current.as_ref().filter(|end| end.is_joinable());
        open.is_none_or(|end| !end.has_joined(self.place as u32))
    }

    fn dial(&self, shared: &Rc<SimRunState>) -> Result<SimQuicStreamEnd> {
        if self.group.connections.is_shared() {
            return self.group.join(self.place, shared);
        }
        let end = self.group.connections.dial(shared)?;
        end.join(0);
        Ok(SimQuicStreamEnd { end, number: 0 })
    }

    fn accept(&self) -> Option<SimQuicStreamEnd> {
        if self.group.connections.is_shared() {
            return self.group.follow(self.place);
        }
        let end = self.group.connections.accept()?;
        end.join(0);
        Some(SimQuicStreamEnd { end, number: 0 })
    }
}
