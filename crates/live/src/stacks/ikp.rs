//! `ikp`: V's message passing of `transfer`, straight from and into a job's memory.
//!
//! The initiator is the client: every operation of its is a message, every operation of the responder what it does with the
//! client's next message (`proto::ikp::stack` has the table). Data units are moved one by one; the peer has a data unit when
//! the operation returns. Where the responder finds a message it does not expect, both sides wait for each other: that is
//! told, as nothing else would ever happen.

use super::stream::Receive;
use super::{Bulk, Connection, Dialer, Listener, Protocol, Terms, Token, ip, vanished};
use crate::ends::{Ends, Flags};
use crate::fault::{Fault, Result};
use stackline_core::catalogue::StackTable;
use stackline_core::record::Transport;
use stackline_proto::ikp::Options as Machine;
use stackline_proto::ikp::stack::{self, Answer, Verb};
use stackline_transfer::carrier::Carrier;
use stackline_transfer::ikp::{Client, Error, Options, Request, Segments, Server, Ticket};
use stackline_transfer::{Interrupt, Waiting};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest piece of a data unit that the responder takes at once, in bytes.
const PIECE: usize = 1 << 20;

/// V's message passing.
pub(super) struct Ikp;

impl Protocol for Ikp {
    fn table(&self) -> &'static StackTable {
        &stack::TABLE
    }

    fn listen(&self, terms: &Terms) -> Result<Box<dyn Listener>> {
        let address = SocketAddr::new(terms.bind, ip::port(terms)?);
        let flags = Arc::new(Mutex::new(None));
        let options = Options { interrupt: Some(asked(&flags)), ..options(terms)? };
        let server = Server::bind(address, &options).map_err(fault)?;
        let port = server.local().map_err(fault)?.port();
        let server = Arc::new(Mutex::new(server));
        Ok(Box::new(IkpListener { server, port, flags, token: terms.token, machine: options.protocol, last: None }))
    }

    fn dial(&self, terms: &Terms, address: &str) -> Result<Box<dyn Dialer>> {
        let found = ip::resolve(address)?.as_socket();
        let peer = found.ok_or_else(|| Fault::environment(format!("{address} is no address of a host")))?;
        Ok(Box::new(IkpDialer { peer, options: options(terms)?, shown: address.to_string(), token: terms.token }))
    }
}

fn options(terms: &Terms) -> Result<Options> {
    let machine = stack::options(&terms.stack, 0).map_err(|what| {
        Fault::input(what).hint("leave the option out, or see `stackline stacks` for what the stack can do")
    })?;
    let spins = Receive::of(&terms.stack) == Receive::Spin;
    Ok(Options { waiting: if spins { Waiting::Spin } else { Waiting::Block }, ..Options::new(machine) })
}

/// The flags of the job that uses a server at the time.
type Present = Arc<Mutex<Option<Arc<Flags>>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn asked(flags: &Present) -> Interrupt {
    let flags = Arc::clone(flags);
    Interrupt::new(move || lock(&flags).as_ref().is_some_and(|flags| flags.ended()))
}

struct IkpListener {
    server: Arc<Mutex<Server>>,
    port: u16,
    flags: Present,
    token: Token,
    machine: Machine,
    /// Who was connected last.
    last: Option<Peer>,
}

/// A client: its address and its number.
type Peer = (SocketAddr, u32);

fn peer_of(request: &Request<'_>) -> Peer {
    (request.client(), request.number())
}

impl Listener for IkpListener {
    fn address(&self) -> String {
        self.port.to_string()
    }

    fn accept(&mut self, ends: &mut Ends) -> Result<Box<dyn Connection>> {
        *lock(&self.flags) = Some(Arc::clone(&ends.flags));
        let mut server = lock(&self.server);
        loop {
            let request = server.receive().map_err(fault)?;
            match Verb::read(request.message()) {
                Some((Verb::Connect, _, token)) if token == self.token => {}
                // Of the last connection, whose last reply was lost.
                Some((Verb::Close | Verb::Closing, ..)) if Some(peer_of(&request)) == self.last => {
                    request.reply(Answer::Done.reply()).map_err(fault)?;
                    continue;
                }
                // Strangers find nobody.
                _ => continue,
            }
            let peer = peer_of(&request);
            self.last = Some(peer);
            request.reply(Answer::Done.reply()).map_err(fault)?;
            return Ok(Box::new(Responder::new(Arc::clone(&self.server), peer, self.machine)));
        }
    }
}

struct IkpDialer {
    peer: SocketAddr,
    options: Options,
    shown: String,
    token: Token,
}

impl Dialer for IkpDialer {
    fn connect(&mut self, ends: &mut Ends) -> Result<Box<dyn Connection>> {
        let flags = Arc::clone(&ends.flags);
        let options = Options { interrupt: Some(Interrupt::new(move || flags.ended())), ..self.options.clone() };
        let mut client = Client::connect(self.peer, &options).map_err(fault)?;
        let mut reply = [0; 1];
        match client.send(&Verb::connect(&self.token), Segments::none(), &mut reply) {
            Ok(bytes) if Answer::read(&reply[..bytes]) == Some(Answer::Done) => {}
            Ok(_) => return Err(Fault::measurement("the peer's first reply makes no sense")),
            Err(Error::Nobody) => {
                return Err(ip::unreachable(&self.shown, &io::ErrorKind::ConnectionRefused.into()));
            }
            Err(Error::Silent(_)) => return Err(ip::unreachable(&self.shown, &io::ErrorKind::TimedOut.into())),
            Err(error) => return Err(fault(error)),
        }
        Ok(Box::new(Initiator { client, number: 0, over: false }))
    }
}

// --- the initiator ---

/// The client.
struct Initiator {
    client: Client,
    /// Of the last message.
    number: u64,
    /// The responder has said that no more comes.
    over: bool,
}

impl Initiator {
    fn ask(&mut self, verb: Verb, segments: Segments<'_>) -> Result<Answer> {
        self.number += 1;
        let mut reply = [0; 1];
        let bytes = self.client.send(&verb.message(self.number), segments, &mut reply).map_err(fault)?;
        let answer = Answer::read(&reply[..bytes]);
        answer.ok_or_else(|| Fault::measurement("the peer's reply makes no sense"))
    }

    /// Ends the connection. A peer that is gone has ended it as well: the last reply is the one that may be lost for good.
    fn part(&mut self, verb: Verb) -> Result<()> {
        self.number += 1;
        match self.client.send(&verb.message(self.number), Segments::none(), &mut []) {
            Ok(_) | Err(Error::Nobody | Error::Silent(_)) => Ok(()),
            Err(error) => Err(fault(error)),
        }
    }
}

fn reading(error: &io::Error) -> Fault {
    Fault::io("reading the source", error)
}

fn writing(error: &io::Error) -> Fault {
    Fault::io("writing the destination", error)
}

impl Connection for Initiator {
    fn send(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        for done in 0..times {
            if times > 1 && ends.flags.limit() {
                return Ok(done);
            }
            let unit = ends.source.outgoing(bytes).map_err(|error| reading(&error))?;
            self.ask(Verb::Put, Segments::readable(unit))?;
        }
        Ok(times)
    }

    fn receive(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        for done in 0..times {
            if self.over {
                return Ok(done);
            }
            let room = ends.destination.room(bytes);
            match self.ask(Verb::Get, Segments::writable(room))? {
                Answer::Done => ends.arrived(bytes).map_err(|error| writing(&error))?,
                Answer::Over => {
                    self.over = true;
                    return Ok(done);
                }
            }
        }
        Ok(times)
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: stackline_core::time::Instant,
        ends: &mut Ends,
    ) -> Result<bool> {
        let readable = ends.source.outgoing(request).map_err(|error| reading(&error))?;
        let writable = ends.destination.room(response);
        match self.ask(Verb::Call, Segments { readable, writable })? {
            Answer::Done => ends.arrived(response).map(|()| true).map_err(|error| writing(&error)),
            Answer::Over => Err(vanished("before the response came")),
        }
    }

    fn confirms(&self) -> bool {
        true
    }

    fn start_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<bool> {
        Ok(!self.over)
    }

    fn stop_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, _: &mut Ends) -> Result<()> {
        self.ask(Verb::End, Segments::none()).map(drop)
    }

    fn disconnect(mut self: Box<Self>, _: &mut Ends) -> Result<()> {
        self.part(Verb::Close)
    }

    fn await_disconnect(&mut self, _: &mut Ends) -> Result<()> {
        self.part(Verb::Closing)
    }

    fn transport(&self) -> Option<Transport> {
        let (seen, patience) = (self.client.seen(), self.client.patience());
        Some(Transport {
            retransmits: seen.repeated,
            rtt_s: patience.smoothed().unwrap_or_default().seconds(),
            rtt_var_s: Some(patience.variation().seconds()),
            mss_bytes: u64::from(self.client.options().packet),
            ..Transport::default()
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = settings(self.client.options());
        let facts = self.client.carrier().facts();
        settings.insert("receive_buffer".into(), format!("{} B", facts.receive_buffer));
        settings
    }

    fn notes(&self) -> Vec<String> {
        let violations = self.client.seen().violations;
        let note = || format!("{violations} packets went beyond what was granted and were dropped");
        (violations > 0).then(note).into_iter().collect()
    }
}

fn settings(machine: &Machine) -> BTreeMap<String, String> {
    stack::settings(machine).into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

// --- the responder ---

/// A message of the client that is not replied to yet.
#[derive(Clone, Copy)]
struct Message {
    ticket: Ticket,
    verb: Verb,
    number: u64,
}

/// What was answered last: a message that comes again is answered so again.
#[derive(Clone, Copy)]
struct Answered {
    number: u64,
    moved: usize,
    answer: Answer,
}

/// The server, for one client.
struct Responder {
    server: Arc<Mutex<Server>>,
    peer: Peer,
    machine: Machine,
    /// A message that has been looked at, and a call whose response is awaited.
    waits: Option<Message>,
    call: Option<Message>,
    last: Answered,
    /// The client has said that no more comes; it has closed the connection.
    over: bool,
    closed: bool,
}

impl Responder {
    const fn new(server: Arc<Mutex<Server>>, peer: Peer, machine: Machine) -> Self {
        let last = Answered { number: 0, moved: 0, answer: Answer::Done };
        Self { server, peer, machine, waits: None, call: None, last, over: false, closed: false }
    }

    /// The client's next message.
    fn next(&mut self, ends: &mut Ends) -> Result<Message> {
        if let Some(message) = self.waits.take() {
            return Ok(message);
        }
        loop {
            let again = {
                let mut server = lock(&self.server);
                let request = server.receive().map_err(fault)?;
                let from = peer_of(&request);
                // Of strangers nothing is known, whatever they say.
                let Some((verb, number, _)) = Verb::read(request.message()).filter(|_| from == self.peer) else {
                    continue;
                };
                let message = Message { ticket: request.later(), verb, number };
                if number > self.last.number {
                    return Ok(message);
                }
                message
            };
            if again.number == self.last.number {
                self.answer(again, self.last.moved, self.last.answer, ends)?;
            } else {
                self.with(again.ticket, |request| drop(request));
            }
        }
    }

    fn with<T>(&self, ticket: Ticket, work: impl FnOnce(Request<'_>) -> T) -> Option<T> {
        lock(&self.server).again(ticket).map(work)
    }

    /// Moves so much of the source to the client and answers. A client that has given the message up asks again.
    fn answer(&mut self, message: Message, moved: usize, answer: Answer, ends: &mut Ends) -> Result<()> {
        self.last = Answered { number: message.number, moved, answer };
        let data = if moved > 0 { ends.source.outgoing(moved).map_err(|error| reading(&error))? } else { &mut [] };
        let replied = self.with(message.ticket, |mut request| {
            if request.writable() < data.len() {
                return Err(Error::Outside { granted: request.writable() });
            }
            if answer.reply().len() + data.len() <= request.room() {
                return request.reply_with(answer.reply(), 0, data);
            }
            request.move_to(0, data)?;
            request.reply(answer.reply())
        });
        replied.unwrap_or(Err(Error::Gone)).map_err(fault)
    }

    /// Takes the data unit that comes with a message; the message waits on.
    fn take(&mut self, message: Message, bytes: usize, ends: &mut Ends) -> Result<()> {
        let mut from = 0;
        while from < bytes {
            let room = ends.room((bytes - from).min(PIECE));
            let most = room.len();
            let taken = self.with(message.ticket, |mut request| {
                if request.readable() != bytes {
                    let _ = request.later();
                    return Err(Fault::measurement("the peer's data unit has another size"));
                }
                let moved = request.move_from(from, room).map_err(fault);
                let _ = request.later();
                moved
            });
            taken.unwrap_or_else(|| Err(fault(Error::Gone)))?;
            ends.arrived(most).map_err(|error| writing(&error))?;
            from += most;
        }
        Ok(())
    }

    /// A message that is not what an operation waits for.
    fn unexpected(&mut self, message: Message, awaited: &str, ends: &mut Ends) -> Result<()> {
        match message.verb {
            Verb::End => {
                self.over = true;
                self.answer(message, 0, Answer::Done, ends)
            }
            Verb::Close | Verb::Closing => {
                (self.waits, self.closed) = (Some(message), true);
                Ok(())
            }
            verb => Err(Fault::measurement(format!(
                "both sides wait: the responder for {awaited}, the initiator in {verb:?}"
            ))
            .hint("V's message passing takes one message after the other; let one side send while the other receives")),
        }
    }

    const fn ended(&self) -> bool {
        self.over || self.closed
    }
}

impl Connection for Responder {
    fn send(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        for done in 0..times {
            if times > 1 && ends.flags.limit() {
                return Ok(done);
            }
            let message = self.next(ends)?;
            if message.verb != Verb::Get {
                self.unexpected(message, "Get", ends)?;
                return Err(vanished("while data was on its way"));
            }
            self.answer(message, bytes, Answer::Done, ends)?;
        }
        Ok(times)
    }

    fn receive(&mut self, bytes: usize, times: u64, ends: &mut Ends) -> Result<u64> {
        for done in 0..times {
            if self.ended() {
                return Ok(done);
            }
            let message = self.next(ends)?;
            if message.verb != Verb::Put {
                self.unexpected(message, "Put", ends)?;
                return Ok(done);
            }
            self.take(message, bytes, ends)?;
            self.answer(message, 0, Answer::Done, ends)?;
        }
        Ok(times)
    }

    fn await_call(&mut self, bytes: usize, ends: &mut Ends) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        let message = self.next(ends)?;
        if message.verb != Verb::Call {
            return self.unexpected(message, "Call", ends).map(|()| false);
        }
        self.take(message, bytes, ends)?;
        self.call = Some(message);
        Ok(true)
    }

    fn reply(&mut self, bytes: usize, ends: &mut Ends) -> Result<()> {
        let Some(message) = self.call.take() else { return Err(Fault::measurement("no call awaits a response")) };
        self.answer(message, bytes, Answer::Done, ends)
    }

    fn confirms(&self) -> bool {
        true
    }

    fn start_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn await_start_bulk(&mut self, way: Bulk, ends: &mut Ends) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        let message = self.next(ends)?;
        let begins = message.verb == if way == Bulk::Get { Verb::Get } else { Verb::Put };
        if begins {
            self.waits = Some(message);
        } else {
            self.unexpected(message, "a transfer", ends)?;
        }
        Ok(begins)
    }

    fn stop_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: Bulk, _: &mut Ends) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, ends: &mut Ends) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let message = self.next(ends)?;
        match message.verb {
            Verb::Get | Verb::Call => self.answer(message, 0, Answer::Over, ends),
            _ => {
                self.waits = Some(message);
                Ok(())
            }
        }
    }

    fn disconnect(mut self: Box<Self>, ends: &mut Ends) -> Result<()> {
        let message = self.next(ends)?;
        match message.verb {
            Verb::Closing | Verb::Close => self.answer(message, 0, Answer::Done, ends),
            _ => self.unexpected(message, "the end", ends),
        }
    }

    fn await_disconnect(&mut self, ends: &mut Ends) -> Result<()> {
        loop {
            let message = self.next(ends)?;
            match message.verb {
                Verb::Close => return self.answer(message, 0, Answer::Done, ends),
                Verb::End => self.unexpected(message, "the end", ends)?,
                _ => return Err(Fault::measurement("the peer sent data after the last data unit")),
            }
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        settings(&self.machine)
    }
}

/// What an error of message passing means for the run.
fn fault(error: Error) -> Fault {
    match error {
        Error::Nobody | Error::Gone => vanished("while a message was on its way"),
        Error::Interrupted => Fault::ended(),
        Error::Packet { .. } => Fault::input(error.to_string()),
        Error::Io(what, error) => Fault::io(what, &error),
        Error::Silent(patience) => Fault::measurement(format!("the peer has said nothing for {patience}"))
            .hint("its procedure was busy elsewhere for so long (raise the option `patience`), or the path is gone"),
        error => Fault::measurement(error.to_string()),
    }
}
