//! `quic`: quinn-proto's QUIC (RFC 9000, 9001, 9002) with rustls and ring, one UDP socket for each end of a pair, one
//! connection at a time with one bidirectional stream; with the option `streams`, pairs share a socket and a connection, and each has a
//! stream of its own. The packets are real, and so is the cryptography unless `crypto = null`;
//! computation takes no virtual time.
//!
//! Where it is not like a responder on the Internet: no session is resumed and nothing is sent before the handshake is
//! done (every connection takes a whole handshake), the certificate is small (243 bytes, no chain), addresses are not
//! validated by tokens, and packets leave one by one. quinn's BBR is left out, as it draws from the system's randomness
//! and one seed would not be one run. As quinn does it are pacing, acknowledgements (every second packet, else 25 ms),
//! ECN, and the search for the path's MTU.

mod certificate;
mod connection;
mod ending;
mod flight;
mod moment;
mod null_crypto;
mod quic_options;
mod sharing;
mod streams;
mod wire;

use connection::SimQuicEnd;

use super::pair::{SimConnectionPair, SimPairRoute, SimStack, is_same_end};
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use connection::SimQuicEndPlace;
use moment::moment;
use quic_options::Terms;
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, Incoming};
use sharing::SimQuicPair;
use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};
use stackline_core::plan;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use stackline_proto::quic as words;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use streams::{SimQuicSharing, SimQuicStreamOwners};
use wire::SimQuicWire;

pub(super) const TABLE: StackTable = StackTable {
    summary: "QUIC over UDP and IPv4 in virtual time (quinn-proto, rustls, ring)",
    files: false,
    options: &OPTIONS,
    ..words::TABLE
};

const OPTIONS: [OptionTable; 8] = StackTable::joined(
    &[
        OptionTable::new(
            "congestion",
            OptionKind::Word(&["cubic", "reno"]),
            "cubic",
            "congestion control: cubic (RFC 9438) or reno (RFC 9002)",
        ),
        OptionTable::new(
            "crypto",
            OptionKind::Word(&["ring", "null"]),
            "ring: TLS 1.3",
            "null costs nothing and protects nothing; packet sizes stay the same",
        ),
    ],
    &words::TABLE.only([
        "initial_window",
        "send_buffer",
        "receive_buffer",
        "mtu",
        "timeout",
        "streams",
    ]),
);

/// The stack `quic`.
pub(super) static STACK: SimStack = SimStack {
    table: &TABLE,
    group: Some(|routes, stack, seed, introduces| {
        let pairs = SimQuicPair::pairs(routes, stack, seed, introduces)?;
        Ok(pairs.into_iter().map(|pair| pair as _).collect())
    }),
    pair: |route, stack, seed, introduces| {
        let mut pairs = SimQuicPair::pairs(&[route], stack, seed, introduces)?;
        match pairs.pop() {
            Some(pair) => Ok(pair),
            None => Err(Error::input("a group without pairs has no connection")),
        }
    },
};

/// UDP ports of initiators: the first, and how many there are.
const EPHEMERAL: (u32, u32) = (32_768, 28_232);
/// UDP ports of responders: the first, and how many there are.
const LISTENING: (u32, u32) = (1024, 31_000);

/// One side: a UDP socket with its connections, by their number in the socket.
struct SimQuicSide {
    socket: Rc<RefCell<Endpoint>>,
    wire: SimQuicWire,
    ends: RefCell<Vec<Option<Rc<SimQuicEnd>>>>,
}

impl SimQuicSide {
    fn end(&self, handle: ConnectionHandle) -> Option<Rc<SimQuicEnd>> {
        self.ends.borrow().get(handle.0).cloned().flatten()
    }
}

/// The connections of a pair, or of pairs that share them, one after the other.
struct QuicPair {
    route: SimPairRoute,
    /// By side: the endpoints, of which the first is the route's.
    endpoints: [Vec<u32>; 2],
    terms: Terms,
    /// The initiator's settings.
    asking: ClientConfig,
    /// The initiator's and the responder's side.
    halves: [SimQuicSide; 2],
    /// Connections that reached the responder and were not accepted yet.
    backlog: RefCell<VecDeque<Rc<SimQuicEnd>>>,
    /// How many connections the initiator has dialled.
    dialled: Cell<u32>,
    /// How many of them the responder has seen.
    seen: Cell<u32>,
    /// Of connections that pairs share: whose stream is whose.
    owners: RefCell<BTreeMap<u32, SimQuicStreamOwners>>,
}

impl QuicPair {
    /// # Errors
    /// An [`Error`] when the path's MTU is too small, or the TLS library rejects its settings.
    pub(super) fn new(
        route: SimPairRoute,
        endpoints: [Vec<u32>; 2],
        stack: &plan::Stack,
        seed: u64,
    ) -> Result<Self> {
        let terms = Terms::new(stack, seed);
        let needed = terms.mtu().map_or(words::LEAST_MTU, u64::from) + words::HEADERS;
        if route.mtu < needed {
            let cause = format!(
                "QUIC packets of {needed} B do not fit the path, which carries packets of at most {} B",
                route.mtu
            );
            return Err(Error::input(cause).hint(
                "QUIC packets are never fragmented and need at least 1228 B: raise the `mtu` of the links",
            ));
        }
        let ports = [
            EPHEMERAL.0 + route.pair.wrapping_mul(7919) % EPHEMERAL.1,
            LISTENING.0 + route.pair % LISTENING.1,
        ];
        let half = |side: PairSide| {
            let ([near, far], ports) = (
                [side, side.other()].map(PairSide::index),
                ports.map(|port| port as u16),
            );
            let (nodes, ports) = (
                [route.nodes[near], route.nodes[far]],
                [ports[near], ports[far]],
            );
            let wire = SimQuicWire {
                pair: route.pair,
                nodes,
                ports,
            };
            Ok(SimQuicSide {
                socket: Rc::new(RefCell::new(terms.endpoint(side)?)),
                wire,
                ends: RefCell::default(),
            })
        };
        Ok(Self {
            route,
            asking: terms.client()?,
            endpoints,
            owners: RefCell::default(),
            halves: [half(PairSide::Initiator)?, half(PairSide::Responder)?],
            backlog: RefCell::default(),
            dialled: Cell::new(0),
            seen: Cell::new(0),
            terms,
        })
    }

    /// Whether several pairs share the connections.
    pub(super) fn is_shared(&self) -> bool {
        self.endpoints[0].len() > 1
    }

    /// What an end knows of the pairs that share its connection.
    fn sharing(&self, number: u32, side: PairSide) -> Option<SimQuicSharing> {
        let owners = || self.owners.borrow_mut().entry(number).or_default().clone();
        self.is_shared().then(|| SimQuicSharing {
            sharers: self.endpoints[side.index()][1..].into(),
            owners: owners(),
        })
    }

    const fn half(&self, side: PairSide) -> &SimQuicSide {
        &self.halves[side.index()]
    }

    fn end(
        &self,
        number: u32,
        side: PairSide,
        made: (ConnectionHandle, Connection),
    ) -> Rc<SimQuicEnd> {
        let half = self.half(side);
        let at = SimQuicEndPlace {
            wire: half.wire,
            side,
            endpoint: self.route.endpoint(side),
            number,
            sharing: self.sharing(number, side),
        };
        let (handle, connection) = made;
        let index = handle.0;
        let end = Rc::new(SimQuicEnd::new(
            at,
            &half.socket,
            handle,
            connection,
            self.settings(),
        ));
        let mut ends = half.ends.borrow_mut();
        if ends.len() <= index {
            ends.resize(index + 1, None);
        }
        ends[index] = Some(Rc::clone(&end));
        end
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let terms = &self.terms;
        let timeout = terms.timeout();
        let settings = [
            ("congestion", terms.congestion().to_string()),
            ("crypto", terms.crypto().to_string()),
            ("send_buffer", format!("{} B", terms.send_buffer())),
            ("receive_buffer", format!("{} B", terms.receive_buffer())),
            (
                "timeout",
                if timeout > 0.0 {
                    stackline_core::units::format_time(timeout)
                } else {
                    "none".to_string()
                },
            ),
        ];
        settings
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    /// The responder gets the first packet of a connection. It is ignored if the connection was seen before (a duplicate).
    fn welcome(&self, number: u32, incoming: Incoming, shared: &Rc<SimRunState>) {
        let half = self.half(PairSide::Responder);
        if number < self.seen.get() {
            return half.socket.borrow_mut().ignore(incoming);
        }
        let made = {
            let mut frames = shared.frames.borrow_mut();
            frames.made.clear();
            half.socket
                .borrow_mut()
                .accept(incoming, moment(shared.now()), &mut frames.made, None)
        };
        match made {
            Ok(made) => {
                self.seen.set(number + 1);
                let end = self.end(number, PairSide::Responder, made);
                self.backlog.borrow_mut().push_back(Rc::clone(&end));
                end.touch(shared);
            }
            Err(refused) => {
                if let Some(made) = refused.response {
                    half.wire.send(number, made.ecn, shared);
                }
            }
        }
    }
}

impl SimConnectionPair for QuicPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        let Some(bytes) = packet.payload.take_bytes() else {
            return;
        };
        let half = self.half(side);
        let (now, number) = (moment(shared.now()), packet.payload.connection);
        let came = {
            let mut frames = shared.frames.borrow_mut();
            frames.made.clear();
            let mut socket = half.socket.borrow_mut();
            socket.handle(
                now,
                half.wire.far(),
                None,
                wire::ecn_codepoint(packet),
                bytes,
                &mut frames.made,
            )
        };
        match came {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(end) = half.end(handle) {
                    end.arrived(event, shared);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.welcome(number, incoming, shared),
            Some(DatagramEvent::Response(made)) => half.wire.send(number, made.ecn, shared),
            None => {}
        }
    }

    fn timer(&self, handle: u32, side: PairSide, shared: &Rc<SimRunState>) {
        if let Some(end) = self.half(side).end(ConnectionHandle(handle as usize)) {
            end.rang(shared);
        }
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        let of_half = |half: &SimQuicSide| {
            half.ends
                .borrow()
                .iter()
                .flatten()
                .filter(|end| end.sample(at, log))
                .count()
        };
        self.halves.iter().map(of_half).sum()
    }

    /// Removes an end that is over. Another end may already use its number in the socket, so it is found by identity.
    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        let mut ends = self.half(end.side()).ends.borrow_mut();
        if let Some(known) = ends
            .iter_mut()
            .find(|known| known.as_ref().is_some_and(|known| is_same_end(known, &end)))
        {
            *known = None;
        }
    }
}

impl QuicPair {
    /// Asks for the next connection.
    ///
    /// # Errors
    /// When the socket cannot make one.
    fn dial(&self, shared: &Rc<SimRunState>) -> Result<Rc<SimQuicEnd>> {
        let number = self.dialled.replace(self.dialled.get() + 1);
        let half = self.half(PairSide::Initiator);
        let asking = self.asking.clone();
        let made = half.socket.borrow_mut().connect(
            moment(shared.now()),
            asking,
            half.wire.far(),
            certificate::NAME,
        );
        let made = made
            .map_err(|error| Error::measurement(format!("cannot request a connection: {error}")))?;
        let end = self.end(number, PairSide::Initiator, made);
        end.touch(shared);
        Ok(end)
    }

    /// Takes the next connection of which the handshake is done.
    fn accept(&self) -> Option<Rc<SimQuicEnd>> {
        let mut backlog = self.backlog.borrow_mut();
        // In the order they were dialled: the first connection introduces itself, even if its handshake completes late.
        while backlog.front().is_some_and(|end| end.failed()) {
            backlog.pop_front();
        }
        backlog.front().filter(|end| end.answered() == Some(true))?;
        backlog.pop_front()
    }
}
