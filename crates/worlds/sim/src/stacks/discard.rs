//! `discard`: data units as UDP datagrams to a server that throws them away and never answers (RFC 863).
//!
//! Nothing travels but the data: what UDP leaves unsaid (that somebody listens, that a stream has ended and how many units
//! it had) the responder knows from the simulator. It goes on when all units have arrived, or when none has for `patience`.

use super::pair::{Pair, Route, Stack};
use super::udp_socket::{LARGEST_DATAGRAM, RECEIVE_BUFFER, Received, SEND_BUFFER, Socket};
use crate::context::Context;
use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::trace::{Coming, Leaving};
use crate::world::{self, Connect, Work};
use stackline_core::catalogue::{
    ClosedForm, Mapping, OptionKind, OptionTable, PacketContent, StackFacts, StackTable,
};
use stackline_core::plan;
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{Bulk, Facts, Service};
use stackline_net::Packet;
use stackline_proto::datagram::sequence::Sequence;
use stackline_proto::datagram::{NUMBER, Token};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Bits of a datagram's first eight bytes that number the unit; those above number the connection.
const NUMBER_BITS: u32 = 40;
/// Any port, and the one of RFC 863.
const PORTS: [u16; 2] = [40_000, 9];

const TABLE: StackTable = StackTable {
    name: "discard",
    summary: "UDP datagrams over IPv4 in virtual time that nobody answers (RFC 863)",
    largest_unit: LARGEST_DATAGRAM,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    one_way: true,
    files: false,
    options: &[
        SEND_BUFFER,
        RECEIVE_BUFFER,
        OptionTable::new(
            "patience",
            OptionKind::Time,
            "1 s",
            "so long after the last datagram what is missing counts as lost",
        ),
    ],
    mapping: &[
        Mapping {
            operation: "ConnectRequest",
            services: "nothing is sent; waits until the responder is done with the connection before",
        },
        Mapping {
            operation: "AwaitConnectIndication",
            services: "nothing is sent",
        },
        Mapping {
            operation: "DataRequest",
            services: "a datagram, in fragments where the path's MTU is smaller",
        },
        Mapping {
            operation: "AwaitDataIndication",
            services: "a datagram",
        },
        Mapping {
            operation: "StartBulkPut, AwaitStartBulkPut",
            services: "nothing is sent",
        },
        Mapping {
            operation: "StopBulkPut",
            services: "nothing is sent; returns when the last unit has left the host",
        },
        Mapping {
            operation: "AwaitStopBulkPut",
            services: "all units, or none for `patience`",
        },
        Mapping {
            operation: "DisconnectRequest",
            services: "nothing is sent",
        },
        Mapping {
            operation: "AwaitDisconnectIndication",
            services: "all units, or none for `patience`",
        },
    ],
    facts: StackFacts {
        packets: PacketContent::Datagrams,
        form: ClosedForm::Udp,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The stack.
pub(super) static STACK: Stack = Stack {
    table: &TABLE,
    pair: |route, stack, _, _| Ok(Rc::new(DiscardPair::new(route, stack))),
};

/// What the initiator has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Stream,
    Connection,
}

/// The end of a stream or of a connection.
#[derive(Clone, Copy, Debug)]
struct End {
    what: What,
    at: Instant,
    /// Units that were sent before it.
    sent: u64,
}

/// What the simulator knows of a connection, and no packet says.
#[derive(Debug, Default)]
struct Known {
    accepted: bool,
    sent: u64,
    /// What the responder has not gone past yet.
    ends: VecDeque<End>,
}

/// The two sockets of a pair.
#[derive(Debug)]
struct DiscardPair {
    route: Route,
    patience: Duration,
    sockets: [Socket; 2],
    /// How many connections there were, the present one among them, and whether it is open.
    connections: Cell<u64>,
    open: Cell<bool>,
    known: RefCell<Known>,
    arrived: RefCell<Arrived>,
}

/// What has arrived over a connection.
#[derive(Debug, Default)]
struct Arrived {
    sequence: Sequence,
    units: u64,
    bytes: u64,
    /// Number and size of those that were not taken yet.
    waiting: VecDeque<(u64, u32)>,
    last: Instant,
}

impl DiscardPair {
    fn new(route: Route, stack: &plan::Stack) -> Self {
        let sockets = Socket::pair(&route, stack, PORTS);
        let patience = Duration::from_seconds(stack.seconds("patience").unwrap_or(1.0));
        let (connections, open) = (Cell::new(0), Cell::new(false));
        Self {
            route,
            patience,
            sockets,
            connections,
            open,
            known: RefCell::default(),
            arrived: RefCell::default(),
        }
    }

    fn socket(&self, side: Side) -> &Socket {
        &self.sockets[side.index()]
    }

    /// The initiator has ended something: the responder looks whether it has it all.
    fn end(&self, what: What, context: &Context) {
        let mut known = self.known.borrow_mut();
        let sent = known.sent;
        known.ends.push_back(End {
            what,
            at: context.now(),
            sent,
        });
        context.executor.wake(self.route.endpoint(Side::Responder));
    }

    /// Takes what the socket has got.
    fn gather(&self, now: Instant) {
        let mut arrived = self.arrived.borrow_mut();
        while let Some(received) = self.socket(Side::Responder).take() {
            if let Received::Unit { number, bytes } = received
                && number >> NUMBER_BITS == self.connections.get()
            {
                let number = number & (u64::MAX >> (u64::BITS - NUMBER_BITS));
                arrived.last = now;
                if arrived.sequence.arrived(number) {
                    arrived.units += 1;
                    arrived.bytes += u64::from(bytes);
                    arrived.waiting.push_back((number, bytes));
                }
            }
        }
    }

    /// What ends next, once nothing that was sent before it is still expected; else until when that is waited for.
    fn ended(&self, now: Instant) -> Result<End, Option<Instant>> {
        let Some(end) = self.known.borrow().ends.front().copied() else {
            return Err(None);
        };
        let arrived = self.arrived.borrow();
        let until = end.at.max(arrived.last) + self.patience;
        if arrived.units >= end.sent || now >= until {
            Ok(end)
        } else {
            Err(Some(until))
        }
    }

    /// The next unit that came before the next end; `Err` at that end, the outer `None` while there is neither.
    fn next(&self, context: &Context) -> Option<Result<(u64, u32), End>> {
        self.gather(context.now());
        let end = self.ended(context.now());
        let last = self
            .known
            .borrow()
            .ends
            .front()
            .map_or(u64::MAX, |end| end.sent);
        let waiting = &mut self.arrived.borrow_mut().waiting;
        if waiting.front().is_some_and(|(number, _)| *number < last) {
            return waiting.pop_front().map(Ok);
        }
        match end {
            Ok(end) => Some(Err(end)),
            Err(until) => {
                until.inspect(|until| context.wake_at(*until));
                None
            }
        }
    }
}

impl Pair for DiscardPair {
    fn route(&self) -> &Route {
        &self.route
    }

    fn spawn(self: Rc<Self>, context: Rc<Context>, replica: u32) -> Work {
        world::spawn(self, context, replica)
    }

    fn arrived(&self, side: Side, packet: &mut Packet<Datagram>, executor: &Rc<Executor>) {
        self.socket(side)
            .arrived(&packet.payload, &Token::default(), executor);
    }

    fn wants_departures(&self) -> bool {
        true
    }

    fn departed(&self, side: Side, at: Instant, bytes: u32, executor: &Executor) {
        self.socket(side).departed(at, bytes, executor);
    }
}

impl Connect for DiscardPair {
    type Service = Discard;

    async fn connect(self: &Rc<Self>, context: &Rc<Context>) -> Result<Discard> {
        let free = || (!self.open.replace(true)).then_some(());
        context
            .until("the responder to be done with the connection before", free)
            .await?;
        self.connections.set(self.connections.get() + 1);
        self.known.replace(Known::default());
        self.arrived.replace(Arrived::default());
        context.executor.wake(self.route.endpoint(Side::Responder));
        Ok(Discard::new(self, Side::Initiator, context))
    }

    async fn accept(self: &Rc<Self>, context: &Rc<Context>, _first: bool) -> Result<Discard> {
        let asked = || {
            (self.open.get() && !std::mem::replace(&mut self.known.borrow_mut().accepted, true))
                .then_some(())
        };
        context.until("a connection", asked).await?;
        Ok(Discard::new(self, Side::Responder, context))
    }

    fn close(&self, side: Side) {
        self.socket(side).close();
    }
}

/// One end of a connection.
#[derive(Debug)]
struct Discard {
    pair: Rc<DiscardPair>,
    side: Side,
    context: Rc<Context>,
    /// The own stream has ended, and whether the peer's has.
    ended: bool,
    over: bool,
}

impl Discard {
    fn new(pair: &Rc<DiscardPair>, side: Side, context: &Rc<Context>) -> Self {
        Self {
            pair: Rc::clone(pair),
            side,
            context: Rc::clone(context),
            ended: false,
            over: false,
        }
    }

    /// Goes past the next end of that kind; what comes before it is dropped.
    async fn pass(&self, what: What, words: &'static str) -> Result<()> {
        loop {
            let next = self
                .context
                .until(words, || self.pair.next(&self.context))
                .await?;
            if let Err(end) = next {
                self.pair.known.borrow_mut().ends.pop_front();
                if end.what == what {
                    return Ok(());
                }
            }
        }
    }
}

/// What the judge refuses before anything runs.
fn unanswered<T>() -> Result<T> {
    Err(Error::input("over `discard` the responder never sends"))
}

impl Service for Discard {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if self.context.job.flags.limit() && times > 1 {
                return Ok(done);
            }
            let number = self.pair.known.borrow().sent | self.pair.connections.get() << NUMBER_BITS;
            self.pair.known.borrow_mut().sent += 1;
            self.pair
                .socket(self.side)
                .send_unit(&self.context, Leaving::Unit, number, bytes)
                .await?;
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            self.context.trace(|line, at| line.awaits(at, bytes));
            match self
                .context
                .until("a data unit", || self.pair.next(&self.context))
                .await?
            {
                Ok((number, bytes)) => {
                    self.context.trace(|line, at| {
                        line.comes(at, Coming::Unit, u64::from(bytes), Some(number))
                    });
                }
                Err(end) => {
                    self.over = end.what == What::Connection;
                    return Ok(done);
                }
            }
        }
        Ok(times)
    }

    async fn call(&mut self, _request: u64, _response: u64, _since: Instant) -> Result<bool> {
        unanswered()
    }

    async fn await_call(&mut self, _bytes: u64) -> Result<bool> {
        unanswered()
    }

    async fn reply(&mut self, _bytes: u64) -> Result<()> {
        unanswered()
    }

    async fn start_bulk(&mut self, _way: Bulk) -> Result<()> {
        self.ended = false;
        Ok(())
    }

    async fn await_start_bulk(&mut self, _way: Bulk) -> Result<bool> {
        Ok(true)
    }

    async fn stop_bulk(&mut self, _way: Bulk) -> Result<()> {
        self.end_stream().await?;
        self.pair
            .socket(self.side)
            .drained(&self.context, Some(0))
            .await
    }

    async fn await_stop_bulk(&mut self, _way: Bulk) -> Result<()> {
        self.pass(What::Stream, "the bulk transfer to end").await
    }

    async fn end_stream(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.ended, true) {
            self.pair.end(What::Stream, &self.context);
        }
        Ok(())
    }

    async fn disconnect(self) -> Result<()> {
        self.pair.end(What::Connection, &self.context);
        Ok(())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.pass(What::Connection, "the peer to disconnect")
            .await?;
        self.pair.open.set(false);
        self.context
            .executor
            .wake(self.pair.route.endpoint(Side::Initiator));
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.over
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let patience = stackline_core::units::time(self.pair.patience.seconds());
        let mut settings = self.pair.socket(self.side).settings();
        settings.insert("patience".into(), patience);
        settings
    }

    fn facts(&self) -> Facts {
        let arrived = self.pair.arrived.borrow();
        let losses = arrived.sequence.losses(self.pair.known.borrow().sent);
        let (losses, notes) = match self.side {
            Side::Responder => (Some(losses), Vec::new()),
            Side::Initiator => (
                None,
                vec![
                    "not confirmed: the clock stopped when the last unit had left its host".into(),
                ],
            ),
        };
        Facts {
            losses,
            received_bytes: Some(arrived.bytes),
            notes,
        }
    }
}
