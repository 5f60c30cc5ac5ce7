//! One end of a connection: the machine of `proto::ikp`, what its application says, and when it is looked at again. It
//! decides nothing of the protocol.

use super::super::packet_wire::Wire;
use super::super::send_credit::SendCredit;
use crate::datagram::Datagram;
use crate::error::{Error, Result};
use crate::executor::{ConnectionEnd, Executor, Timer};
use crate::trace::Log;
use stackline_core::program::Side;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use stackline_events::{Keyword, Value};
use stackline_proto::blast::Kind;
use stackline_proto::blast::trace::{Event, Tracer};
use stackline_proto::ikp::client::{self, State};
use stackline_proto::ikp::server::{self, Message, Mistake, Progress};
use stackline_proto::ikp::stack::{Answer, Verb};
use stackline_proto::ikp::{Client, Grants, Output, Server};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Which side's machine it is.
pub(super) enum Role {
    Client(Box<Client>),
    Server(Box<Server>),
}

/// A message that has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Come {
    pub(super) message: Message,
    pub(super) verb: Verb,
    pub(super) number: u64,
}

struct Machine {
    role: Role,
    /// The message, of a client; the last reply, of a server.
    said: Vec<u8>,
    /// What was answered; what has come.
    answer: Option<Answer>,
    come: Option<Come>,
    token: Vec<u8>,
}

impl Machine {
    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        match &mut self.role {
            Role::Client(client) => client.deadline(now).map(|(at, _)| at),
            Role::Server(server) => server.deadline(now).map(|(at, _)| at),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Output> {
        match &mut self.role {
            Role::Client(client) => client.poll(now, 1),
            Role::Server(server) => server.poll(now, 1),
        }
    }
}

/// One end of a connection.
pub(crate) struct End {
    touched: Cell<bool>,
    wire: Wire,
    side: Side,
    number: u32,
    endpoint: u32,
    credit: Rc<SendCredit>,
    /// The application has let go of it.
    orphan: Cell<bool>,
    /// Something waits for room in the host's interface.
    blocked: Cell<bool>,
    /// The earliest timer that has not come yet.
    alarm: Cell<Option<Instant>>,
    machine: RefCell<Machine>,
    /// While the run is traced: the message that left last, and what is known of moves.
    said: Cell<Option<u32>>,
    tracer: RefCell<Option<Tracer>>,
}

static SEND: Keyword = Keyword::new("IKP_SEND");
static RETRANSMIT: Keyword = Keyword::new("IKP_RETRANSMIT");
static PENDING: Keyword = Keyword::new("IKP_PENDING");

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of client {} of pair {}", self.side, self.number, self.wire.pair)
    }
}

impl End {
    pub(super) fn new(
        wire: Wire,
        credit: &Rc<SendCredit>,
        (side, endpoint): (Side, u32),
        number: u32,
        role: Role,
    ) -> Self {
        let machine = Machine { role, said: Vec::new(), answer: None, come: None, token: Vec::new() };
        Self {
            touched: Cell::new(false),
            wire,
            side,
            number,
            endpoint,
            credit: Rc::clone(credit),
            orphan: Cell::new(false),
            blocked: Cell::new(false),
            alarm: Cell::new(None),
            machine: RefCell::new(machine),
            said: Cell::new(None),
            tracer: RefCell::default(),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// There may be something to send.
    fn touch(self: &Rc<Self>, executor: &Executor) {
        if !self.touched.replace(true) {
            let end: Rc<Self> = Rc::clone(self);
            executor.touch(end);
        }
    }

    // --- the network's side ---

    pub(super) fn arrived(self: &Rc<Self>, datagram: &Datagram, executor: &Executor) {
        let Some(arrived) = self.wire.read(datagram) else { return };
        let mut machine = self.machine.borrow_mut();
        let Machine { role, answer, come, token, .. } = &mut *machine;
        match role {
            Role::Client(client) => {
                if let client::Arrival::Reply { message, .. } =
                    client.handle(executor.now(), &arrived.header, arrived.body, arrived.payload)
                {
                    *answer = Answer::read(arrived.body.get(..message as usize).unwrap_or_default());
                    executor.wake(self.endpoint);
                }
            }
            Role::Server(server) => {
                match server.handle(executor.now(), &arrived.header, arrived.body, arrived.payload) {
                    server::Arrival::Message(message) => {
                        let said = arrived.body.get(..message.bytes as usize).unwrap_or_default();
                        *come = Verb::read(said).map(|(verb, number, shown)| {
                            *token = shown.to_vec();
                            Come { message, verb, number }
                        });
                        executor.wake(self.endpoint);
                    }
                    server::Arrival::Refused => {}
                    // A move may have ended with it.
                    server::Arrival::Place(_) | server::Arrival::Nothing => executor.wake(self.endpoint),
                }
            }
        }
        self.touch(executor);
    }

    pub(super) fn rang(self: &Rc<Self>, executor: &Executor) {
        if self.alarm.get().is_some_and(|alarm| alarm <= executor.now()) {
            self.alarm.set(None);
        }
        self.touch(executor);
    }

    /// There may be room in the host's interface.
    pub(super) fn departed(self: &Rc<Self>, executor: &Executor) {
        if self.blocked.get() {
            self.touch(executor);
        }
    }

    /// Whether a client has given its message up, or a server waits for nothing more of a move.
    fn is_given_up(&self, machine: &Machine) -> bool {
        match &machine.role {
            Role::Client(client) => matches!(client.state(), State::Failed(_)),
            Role::Server(server) => server.has_failed(),
        }
    }

    /// When it wants to be looked at again.
    fn send_all(&self, machine: &mut Machine, executor: &Executor) -> Option<Instant> {
        let now = executor.now();
        loop {
            let next = machine.deadline(now);
            let wants = next.is_some_and(|at| at <= now);
            let room = if wants { self.credit.room(executor) } else { Ok(()) };
            self.blocked.set(room.is_err());
            match room {
                Err(when) => return when,
                Ok(()) if !wants => return next,
                Ok(()) => {}
            }
            let output = machine.poll(now);
            if let (Some(log), Some(output)) = (&executor.log, &output) {
                self.tell(log, now, output);
            }
            match output {
                Some(Output::Run(run)) => self.send(self.wire.data(&run.header(0), run.span(0).1), executor),
                Some(Output::Control(header, body)) => self.send(self.wire.control(&header, body), executor),
                Some(Output::Message(header)) => {
                    let mut body = machine.said.clone();
                    let beside = match &machine.role {
                        Role::Client(client) => client.carried(),
                        Role::Server(_) => header.length,
                    };
                    body.resize(body.len() + beside as usize, 0);
                    self.send(self.wire.control(&header, body), executor);
                }
                None => return machine.deadline(now).filter(|at| *at > now),
            }
        }
    }

    /// Tells what leaves, and why where it leaves again.
    fn tell(&self, log: &Log, now: Instant, output: &Output) {
        let end = (self.wire.pair, self.side);
        let (header, keyword, cause) = match output {
            Output::Run(run) => {
                let mut tracer = self.tracer.borrow_mut();
                // A move has places in a segment, not in a stream.
                let tell = |event: Event| log.blast(end, now, Event { offset: None, ..event });
                return tracer.get_or_insert_default().run(run.packets(), tell);
            }
            Output::Control(header, _) if header.kind == Kind::Pending => (header, &PENDING, "asked"),
            Output::Control(..) => return,
            Output::Message(header) if self.said.replace(Some(header.blast)) == Some(header.blast) => {
                (header, &RETRANSMIT, if header.kind == Kind::Send { "timeout" } else { "asked" })
            }
            Output::Message(header) => (header, &SEND, if header.kind == Kind::Send { "call" } else { "reply" }),
        };
        let (stream, host) = log.stream(end.0, end.1);
        let values = [Value::Absent, stream.into(), Value::Absent, header.length.into(), Value::Text(cause)];
        log.put(host, now, keyword, &values);
    }

    fn send(&self, packet: stackline_net::Packet<Datagram>, executor: &Executor) {
        self.credit.handed(packet.bytes());
        executor.send(packet);
    }

    // --- the initiator's side ---

    /// Sends a message.
    pub(super) fn ask(self: &Rc<Self>, message: &[u8], grants: Grants, executor: &Executor) {
        let mut machine = self.machine.borrow_mut();
        let Machine { role, said, answer, .. } = &mut *machine;
        if let Role::Client(client) = role
            && client.send(executor.now(), message.len() as u32, grants).is_ok()
        {
            said.clear();
            said.extend_from_slice(message);
            *answer = None;
        }
        self.touch(executor);
    }

    /// What was answered; nothing while that is not known.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn answer(&self) -> Option<Result<Answer>> {
        let machine = self.machine.borrow();
        let Role::Client(client) = &machine.role else { return None };
        match client.state() {
            State::Sending => None,
            State::Failed(why) => Some(Err(self.failed(why, client))),
            State::Idle => {
                let none = || Error::measurement("the peer's reply makes no sense");
                Some(machine.answer.ok_or_else(none))
            }
        }
    }

    fn failed(&self, why: client::Failure, client: &Client) -> Error {
        match why {
            client::Failure::Silent => {
                Error::measurement(format!("the peer has been silent for {}", client.options().patience))
                    .hint("it ended, or the network loses everything; the option `patience` says how long is waited")
            }
            client::Failure::Refused(refusal) => {
                Error::measurement(format!("the peer refuses the message: {refusal:?}"))
                    .hint("both sides need the same stack with the same options")
            }
        }
    }

    pub(super) fn transport(&self) -> Option<Transport> {
        let machine = self.machine.borrow();
        let Role::Client(client) = &machine.role else { return None };
        let (seen, patience) = (client.counters(), client.rtt());
        Some(Transport {
            retransmits: seen.repeated,
            rtt_s: patience.smoothed().unwrap_or_default().seconds(),
            rtt_var_s: Some(patience.variation().seconds()),
            mss_bytes: u64::from(client.options().packet),
            ..Transport::default()
        })
    }

    // --- the responder's side ---

    /// The message that has come.
    pub(super) fn take(&self) -> Option<Come> {
        self.machine.borrow_mut().come.take()
    }

    /// The token that the last message showed.
    pub(super) fn token(&self) -> Vec<u8> {
        self.machine.borrow().token.clone()
    }

    fn serve<T>(self: &Rc<Self>, executor: &Executor, work: impl FnOnce(&mut Server, &mut Vec<u8>) -> T) -> Option<T> {
        let mut machine = self.machine.borrow_mut();
        let Machine { role, said, .. } = &mut *machine;
        let done = if let Role::Server(server) = role { Some(work(server, said)) } else { None };
        self.touch(executor);
        done
    }

    /// Begins to take so many bytes of what may be read, but for those that came with the message.
    pub(super) fn begin_take(
        self: &Rc<Self>,
        message: &Message,
        bytes: u32,
        executor: &Executor,
    ) -> Result<(), Mistake> {
        let here = message.carried.min(bytes);
        let moved = |server: &mut Server, _: &mut Vec<u8>| {
            server.move_from(executor.now(), message.transaction, here, bytes - here)
        };
        self.serve(executor, moved).unwrap_or(Err(Mistake::Gone))
    }

    /// Begins to move so many bytes to what may be written.
    pub(super) fn begin_move(
        self: &Rc<Self>,
        message: &Message,
        bytes: u32,
        executor: &Executor,
    ) -> Result<(), Mistake> {
        let moved = |server: &mut Server, _: &mut Vec<u8>| server.move_to(message.transaction, 0, bytes);
        self.serve(executor, moved).unwrap_or(Err(Mistake::Gone))
    }

    /// Whether the move has ended well; nothing while it goes on.
    pub(super) fn moved(self: &Rc<Self>, message: &Message) -> Option<bool> {
        let mut machine = self.machine.borrow_mut();
        let Role::Server(server) = &mut machine.role else { return Some(false) };
        match server.progress(message.transaction) {
            Progress::Going => None,
            progress => Some(progress == Progress::Done),
        }
    }

    /// Replies, with so many bytes of data in the same packet.
    pub(super) fn reply(
        self: &Rc<Self>,
        message: &Message,
        answer: Answer,
        data: u32,
        executor: &Executor,
    ) -> Result<(), Mistake> {
        let replied = |server: &mut Server, said: &mut Vec<u8>| {
            let bytes = answer.reply().len() as u32;
            server.reply(executor.now(), message.transaction, bytes, 0, data)?;
            said.clear();
            said.extend_from_slice(answer.reply());
            Ok(())
        };
        self.serve(executor, replied).unwrap_or(Err(Mistake::Gone))
    }

    /// The application lets go of it.
    pub(super) fn abandon(self: &Rc<Self>, executor: &Executor) {
        self.orphan.set(true);
        if let Role::Client(client) = &mut self.machine.borrow_mut().role {
            client.abandon();
        }
        self.touch(executor);
    }
}

impl ConnectionEnd for End {
    fn pair(&self) -> u32 {
        self.wire.pair
    }

    fn side(&self) -> Side {
        self.side
    }

    fn untouch(&self) {
        self.touched.set(false);
    }

    fn flush(&self, executor: &Executor) {
        let mut machine = self.machine.borrow_mut();
        let before = self.is_given_up(&machine);
        let next = self.send_all(&mut machine, executor);
        if self.is_given_up(&machine) != before {
            // Whoever waits for it has to know.
            executor.wake(self.endpoint);
        }
        if let Some(next) = next
            && self.alarm.get().is_none_or(|alarm| next < alarm)
        {
            self.alarm.set(Some(next));
            executor.set_timer(next, Timer::End { pair: self.wire.pair, connection: self.number, side: self.side });
        }
    }

    fn is_over(&self) -> bool {
        self.orphan.get() && !self.blocked.get()
    }
}
