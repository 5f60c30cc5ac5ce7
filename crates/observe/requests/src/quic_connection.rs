//! One QUIC connection: turns its datagrams at the doors of its hosts into the times of its set-up and, where its packets can be
//! decrypted, into exchanges and their times. How long data lies in sockets is not seen. A door is the network interface at which
//! packets leave or enter a host.
//!
//! A datagram may be seen twice: where it leaves and where it arrives. Its contents are parsed where it is seen first.

mod account;
mod finished_exchange;
mod seen_datagrams;
mod set_up;
mod spin_bit;

use crate::exchange::{Exchange, ExchangeEnd};
use crate::quic_stream_direction::QuicStreamDirection;
pub use account::QuicAccount;
use seen_datagrams::{PassedPiece, SeenDatagrams, hash_datagram};
use set_up::{QuicPassing, QuicSetUp};
use spin_bit::SpinBit;
use stackline_dissect::conversation::{DissectorEvent, ExchangeRole};
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::quic::closed_streams::ClosedStreams;
use stackline_dissect::quic::dissector::{QuicDissector, QuicEvent};
use stackline_events::traceparent::Traceparent;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::RedactedName;
use std::collections::BTreeMap;

/// The most streams of a connection whose bytes are followed.
const MOST_OPEN: usize = Bound::Open.most();
/// An exchange is reported this long after its last byte, ns: the packets of the other door may come later.
const SETTLES_NS: u64 = 500_000_000;
/// Bytes that have left and not arrived are waited for this long, ns.
const UNDER_WAY_NS: u64 = 30_000_000_000;
/// A connection on which nothing passed for this long is over, ns: ends give up sooner (RFC 9000, 10.1).
const IDLE_NS: u64 = 180_000_000_000;
/// The exchange number of the set-up; the exchange of a stream has the parser's number plus one.
const SET_UP: u64 = 0;

/// When a datagram of one direction passes a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramPassage {
    pub(crate) at_ns: u64,
    pub(crate) direction: EventStreamDirection,
    /// Whether it leaves the host. On a loopback it both leaves and arrives; a host between the ends sees it do neither.
    pub(crate) leaves: bool,
    /// Whether it arrives at the host.
    pub(crate) arrives: bool,
}

/// An exchange that is not reported yet; arrays are those of request and response.
#[derive(Debug, Default)]
struct OpenQuicExchange {
    has_begun: [bool; 2],
    /// The stream offsets at which the messages end, once known.
    ends: [Option<u64>; 2],
    name: RedactedName,
    status: RedactedName,
    context: Option<Traceparent>,
    /// Why nothing more will be known of it.
    void: Option<&'static str>,
    /// When its latest message began or ended, ns.
    over_ns: u64,
}

impl OpenQuicExchange {
    /// Whether nothing more is expected to be said in it.
    const fn is_whole(&self) -> bool {
        self.ends[1].is_some() || self.void.is_some()
    }
}

/// How a connection was closed.
#[derive(Clone, Copy, Debug)]
struct QuicClose {
    at_ns: u64,
    /// The side that closed it.
    side: EventStreamDirection,
    /// The error code of the CONNECTION_CLOSE frame.
    code: u64,
    /// Whether the code is one of the application's protocol, not of QUIC.
    is_application: bool,
}

/// One QUIC connection. Arrays of two have one element for each direction.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    /// The number of the connection.
    pub(crate) flow: u32,
    /// Who opened it, and who was connected to.
    ends: [ExchangeEnd; 2],
    /// The observed host that forwards its packets, if neither end is observed.
    seen_at: Option<usize>,
    /// From the first DNS question before the connection to the last answer, ns.
    lookup: Option<(u64, u64)>,
    dissector: QuicDissector,
    set_up: QuicSetUp,
    /// The name of its set-up, as the client asks for it.
    name: RedactedName,
    /// Whether the exchange of its set-up was reported.
    is_set_up_reported: bool,
    /// Whether no call on it has been reported yet. The first call gets the times of the set-up.
    is_first: bool,
    /// Whether the server answered with a version negotiation.
    has_negotiated: bool,
    spin: SpinBit,
    /// Datagrams that were seen lately, to recognise their second copy.
    seen: SeenDatagrams,
    /// By stream number, when bytes passed.
    streams: BTreeMap<u64, [QuicStreamDirection; 2]>,
    /// Exchanges that are not reported yet, by the parser's number.
    open: BTreeMap<u64, OpenQuicExchange>,
    /// Streams whose exchanges were reported.
    reported: ClosedStreams,
    /// For each direction, whether its datagrams are seen both leaving and arriving.
    sees_both: [bool; 2],
    /// The offset of the next message of each direction. Messages are numbered as if they came in one stream.
    allotted: [u64; 2],
    datagrams: [u64; 2],
    bytes: [u64; 2],
    has_data: [bool; 2],
    /// Retry packets of the server.
    retries: u64,
    /// How often an end changed its address.
    pub(crate) migrations: u64,
    closed: Option<QuicClose>,
    first_ns: u64,
    pub(crate) last_ns: u64,
    /// The longest time without a datagram, ns.
    quiet_ns: u64,
    left_out: LeftOut,
}

impl QuicConnection {
    pub(crate) fn new(
        flow: u32,
        ends: [ExchangeEnd; 2],
        seen_at: Option<usize>,
        lookup: Option<(u64, u64)>,
        dissector: QuicDissector,
    ) -> Self {
        Self {
            flow,
            ends,
            seen_at,
            lookup,
            dissector,
            set_up: QuicSetUp::default(),
            name: RedactedName::default(),
            is_set_up_reported: false,
            is_first: true,
            has_negotiated: false,
            spin: SpinBit::default(),
            seen: SeenDatagrams::default(),
            streams: BTreeMap::new(),
            open: BTreeMap::new(),
            reported: ClosedStreams::default(),
            sees_both: [false; 2],
            allotted: [0; 2],
            datagrams: [0; 2],
            bytes: [0; 2],
            has_data: [false; 2],
            retries: 0,
            migrations: 0,
            closed: None,
            first_ns: 0,
            last_ns: 0,
            quiet_ns: 0,
            left_out: LeftOut::default(),
        }
    }

    /// Takes a datagram that passes a door. `length`: its bytes before the capture cut it. `give_id` gets new connection IDs, each
    /// with the side that is written to with it.
    pub(crate) fn datagram(
        &mut self,
        passage: DatagramPassage,
        bytes: &[u8],
        length: u64,
        mut give_id: impl FnMut(EventStreamDirection, Vec<u8>),
    ) {
        let DatagramPassage {
            at_ns,
            direction,
            leaves,
            arrives,
        } = passage;
        // A datagram that a host forwards counts as seen at the door of the side that opened the connection.
        let between = !leaves && !arrives;
        if between && self.seen_at.is_none() {
            return; // It is seen at its ends.
        }
        let passing = QuicPassing {
            at_ns,
            leaves: leaves || between && direction == EventStreamDirection::There,
            arrives: arrives || between && direction == EventStreamDirection::Back,
        };
        let hash = hash_datagram(direction, bytes);
        if let Some(seen) = self.seen.find(hash, at_ns) {
            let passing = QuicPassing {
                leaves: passing.leaves && !seen.has_left,
                arrives: passing.arrives && !seen.has_arrived,
                at_ns,
            };
            seen.has_left |= passing.leaves;
            seen.has_arrived |= passing.arrives;
            self.sees_both[direction as usize] |=
                seen.has_left && seen.has_arrived && !(leaves && arrives);
            let seen = seen.clone();
            if seen.is_handshake {
                self.set_up.pass(direction, passing);
            }
            seen.pieces
                .iter()
                .for_each(|piece| self.pass(direction, *piece, passing));
            return;
        }
        self.count(direction, at_ns, length);
        let mut found = Vec::new();
        self.dissector.datagram(direction, bytes, &mut found);
        let mut seen = SeenDatagrams::first(hash, at_ns);
        (seen.has_left, seen.has_arrived) = (passing.leaves, passing.arrives);
        for event in found {
            match event {
                QuicEvent::NewId(side, id) => give_id(side, id),
                QuicEvent::Handshake { side, news, bytes } => {
                    seen.is_handshake |= self.set_up.packet(side, news, bytes, passing);
                }
                QuicEvent::Passes {
                    stream, from, end, ..
                } => {
                    let piece = PassedPiece { stream, from, end };
                    self.pass(direction, piece, passing);
                    seen.pieces.push(piece);
                }
                event => self.take(event, at_ns),
            }
        }
        self.seen.add(seen, &mut self.left_out);
    }

    /// Counts a datagram that is seen for the first time.
    fn count(&mut self, direction: EventStreamDirection, at_ns: u64, length: u64) {
        if self.first_ns == 0 {
            (self.first_ns, self.last_ns) = (at_ns, at_ns);
        }
        self.quiet_ns = self.quiet_ns.max(at_ns.saturating_sub(self.last_ns));
        self.last_ns = self.last_ns.max(at_ns);
        self.datagrams[direction as usize] += 1;
        self.bytes[direction as usize] += length;
    }

    /// Bytes of a stream pass a door.
    fn pass(&mut self, direction: EventStreamDirection, piece: PassedPiece, passing: QuicPassing) {
        let PassedPiece { stream, from, end } = piece;
        // Only streams that the client opens for both directions carry exchanges (RFC 9000, 2.1: their numbers are multiples of
        // four).
        if !stream.is_multiple_of(4) || self.reported.has(stream) {
            return;
        }
        if self.streams.len() >= MOST_OPEN && !self.streams.contains_key(&stream) {
            return self.left_out.add(Bound::Open, 1);
        }
        let own = &mut self.streams.entry(stream).or_default()[direction as usize];
        if passing.leaves {
            own.leave(from, end, passing.at_ns);
        }
        if passing.arrives {
            own.arrive(from, end, passing.at_ns);
        }
    }

    /// Applies what the parser found.
    fn take(&mut self, event: QuicEvent, at_ns: u64) {
        match event {
            QuicEvent::Named(name) => self.name = name,
            QuicEvent::Retry => {
                self.retries += 1;
                self.set_up.other(EventStreamDirection::Back, false, at_ns);
            }
            QuicEvent::VersionNegotiation => {
                self.has_negotiated = true;
                self.set_up.other(EventStreamDirection::Back, false, at_ns);
            }
            QuicEvent::Data { side, spin } => {
                self.has_data[side as usize] = true;
                self.set_up.other(side, true, at_ns);
                if side == EventStreamDirection::There {
                    self.spin.pass(spin, at_ns, self.set_up.round_trip_ns());
                }
            }
            QuicEvent::Closed {
                side,
                code,
                is_application,
            } => {
                self.closed.get_or_insert(QuicClose {
                    at_ns,
                    side,
                    code,
                    is_application,
                });
            }
            QuicEvent::Exchange(event) => self.exchange(event, at_ns),
            QuicEvent::LeftOut(bound, count) => self.left_out.add(bound, count),
            QuicEvent::NewId(..) | QuicEvent::Handshake { .. } | QuicEvent::Passes { .. } => {}
        }
    }

    /// Applies what the parser found of an exchange.
    fn exchange(&mut self, event: DissectorEvent, at_ns: u64) {
        let Some(number) = event.exchange() else {
            return;
        };
        if let DissectorEvent::Begins { role, .. } = event {
            let open = self.open.entry(number).or_default();
            open.has_begun[role as usize] = true;
            open.over_ns = at_ns;
        }
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        match event {
            DissectorEvent::Named {
                role: ExchangeRole::Request,
                name,
                ..
            } => open.name = name,
            DissectorEvent::Named {
                role: ExchangeRole::Response,
                name,
                ..
            } => open.status = name,
            DissectorEvent::InTrace { context, .. } => open.context = Some(context),
            DissectorEvent::Ends { role, at, .. } => {
                open.ends[role as usize] = Some(at);
                open.over_ns = at_ns;
            }
            DissectorEvent::Void { why, .. } => {
                open.void = Some(why);
                open.over_ns = at_ns;
            }
            DissectorEvent::Begins { .. }
            | DissectorEvent::GoesOn { .. }
            | DissectorEvent::Part { .. }
            | DissectorEvent::LeftOut(..) => {}
        }
    }

    /// Moves the exchanges that are over at `now_ns` to `done`; with `all` the unfinished ones too, as far as they came.
    pub(crate) fn over(&mut self, now_ns: u64, all: bool, done: &mut Vec<Exchange>) {
        if all {
            let mut found = Vec::new();
            self.dissector.close(&mut found);
            let last_ns = self.last_ns;
            found
                .into_iter()
                .for_each(|event| self.take(event, last_ns));
        }
        self.seen.forget_old(now_ns);
        let is_set_up = self.set_up.is_done() && self.last_ns.saturating_add(SETTLES_NS) <= now_ns;
        if !self.is_set_up_reported
            && (all || is_set_up || !self.open.is_empty() && self.set_up.is_done())
        {
            self.is_set_up_reported = true;
            done.extend(self.finish_set_up());
        }
        let is_over = |number: u64, open: &OpenQuicExchange| {
            let after = if self.is_under_way(number, open) {
                UNDER_WAY_NS
            } else {
                SETTLES_NS
            };
            open.is_whole() && open.over_ns.saturating_add(after) <= now_ns
        };
        let open = self.open.iter();
        let over = open.filter(|(number, open)| all || is_over(**number, open));
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        for number in over {
            if let Some(open) = self.open.remove(&number) {
                done.push(self.finish(number, open));
            }
            self.reported.add(4 * number);
        }
    }

    /// Whether bytes of an exchange have left their sender and not arrived at their receiver, where both doors are observed.
    fn is_under_way(&self, number: u64, open: &OpenQuicExchange) -> bool {
        let Some(directions) = self.streams.get(&(4 * number)) else {
            return false;
        };
        let is_behind = |at: usize| {
            let end = open.ends[at].unwrap_or(0);
            self.sees_both[at] && directions[at].arrived_end() < end
        };
        open.void.is_none() && (is_behind(0) || is_behind(1))
    }

    /// Whether the connection is over: closed for `lingers_ns`, or idle for [`IDLE_NS`].
    pub(crate) fn is_over(&self, now_ns: u64, lingers_ns: u64) -> bool {
        let after = if self.closed.is_some() {
            lingers_ns
        } else {
            IDLE_NS
        };
        self.last_ns.saturating_add(after) <= now_ns
    }

    /// Whether a datagram of the client's begins another connection between the same ends.
    pub(crate) fn is_followed_by(&self, datagram: &[u8]) -> bool {
        let is_over = self.set_up.is_done() || self.closed.is_some() || self.has_negotiated;
        is_over && self.dissector.is_followed_by(datagram)
    }

    /// Whether packets of only one side were seen.
    pub(crate) fn is_one_way(&self) -> bool {
        self.datagrams.contains(&0) && self.has_data.contains(&true)
    }

    /// Whether it could not be decrypted, as its secrets are not known.
    pub(crate) fn is_sealed(&self) -> bool {
        self.dissector.is_sealed()
    }

    /// How many packets could not be decrypted although the secrets are known.
    pub(crate) fn unopened(&self) -> u64 {
        self.dissector.unopened()
    }

    /// What was left out of it because a bound on memory was reached.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut left_out = self.left_out.clone();
        for direction in self.streams.values().flatten() {
            direction.left_out(&mut left_out);
        }
        left_out
    }
}
