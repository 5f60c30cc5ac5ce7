//! Who receives messages, moves data and replies: many clients on one socket, one thread.

mod request;

pub use request::{Request, Ticket};

use super::error::Error;
use super::options::{Options, Protocol};
use super::table::{Refused, Table};
use super::{Clock, LOOK, Out, is_interruption, part, train};
use crate::carrier::{self, Carrier, Wait};
use crate::inbox::Inbox;
use crate::memory::{Posted, Staging};
use crate::options::Waiting;
use crate::udp::Udp;
use socket2::{Domain, Socket, Type};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::{HEADER, Header, Kind};
use stackline_proto::ikp::Output;
use stackline_proto::ikp::server::{Arrival, Progress};
use stackline_proto::ikp::wire::Refusal;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time;

/// Runs that are sent before answers are looked for.
const RUNS: u32 = 8;

/// Receives messages from many clients. See [the module](super).
///
/// ```no_run
/// use stackline_transfer::ikp::{Options, Server};
///
/// let mut server = Server::bind("10.0.0.5:7000".parse()?, &Options::default())?;
/// loop {
///     let mut request = server.receive()?;
///     let mut data = vec![0; request.readable()];
///     request.move_from(0, &mut data)?;
///     request.reply(b"stored")?;
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    carrier: Udp,
    protocol: Protocol,
    table: Table,
    /// Seats whose message waits to be received, in the order they came.
    queue: VecDeque<usize>,
    out: Out,
    inbox: Inbox,
    staging: Staging,
    waiting: Waiting,
    clock: Clock,
    looked: Instant,
    refused: Refused,
}

impl Server {
    /// Receives at this address, which has to be the one that clients reach it at: on a host with several, bind to one. With
    /// port 0 at any free one, see [`Server::local`].
    ///
    /// # Errors
    /// [`Error::Packet`] and [`Error::Io`].
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self, Error> {
        let bound = || {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
            socket.bind(&address.into())?;
            Udp::bound(socket, options.udp)
        };
        let mut carrier = bound().map_err(|error| Error::Io("binding", error))?;
        carrier.expect_many(false).map_err(|error| Error::Io("binding", error))?;
        let protocol = options.fitted(carrier.facts())?;
        Ok(Self {
            carrier,
            protocol,
            table: Table::new(options.clients),
            queue: VecDeque::new(),
            out: Out::new(options.interrupt.clone()),
            inbox: Inbox::default(),
            staging: Staging::new(1),
            waiting: options.waiting,
            clock: Clock::start(),
            looked: Instant(0),
            refused: Refused::default(),
        })
    }

    /// Where it receives.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn local(&self) -> Result<SocketAddr, Error> {
        self.carrier.local().map_err(|error| Error::Io("asking for the address", error))
    }

    /// Waits for the next message, without a bound.
    ///
    /// # Errors
    /// [`Error::Interrupted`] and [`Error::Io`].
    pub fn receive(&mut self) -> Result<Request<'_>, Error> {
        loop {
            if let Some(ticket) = self.next() {
                return Ok(Request { server: self, ticket, open: true });
            }
            self.pause(Duration(u64::MAX))?;
        }
    }

    /// Waits for the next message, at most so long.
    ///
    /// # Errors
    /// As [`Server::receive`].
    pub fn receive_within(&mut self, most: time::Duration) -> Result<Option<Request<'_>>, Error> {
        let until = self.clock.now() + Duration(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if let Some(ticket) = self.next() {
                return Ok(Some(Request { server: self, ticket, open: true }));
            }
            let left = until.since(self.clock.now());
            if left == Duration::ZERO {
                return Ok(None);
            }
            self.pause(left)?;
        }
    }

    /// Takes what has come and answers whoever repeats a message; never waits. For a server that works long on something
    /// else, to be called more often than its clients' patience. Messages that come stay to be received.
    ///
    /// # Errors
    /// [`Error::Interrupted`] and [`Error::Io`].
    pub fn attend(&mut self) -> Result<(), Error> {
        while self.take(None, &mut Posted::once(&mut [], 0), Wait::No)? > 0 {}
        Ok(())
    }

    /// The request of a ticket; `None` when its client has given it up.
    pub fn again(&mut self, ticket: Ticket) -> Option<Request<'_>> {
        let seat = self.table.seats.get(ticket.seat)?;
        let same = seat.address == ticket.address && seat.machine.open() == Some(ticket.transaction);
        same.then_some(Request { server: self, ticket, open: true })
    }

    /// What it turned away.
    #[must_use]
    pub const fn refused(&self) -> Refused {
        self.refused
    }

    /// How many clients it knows.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.table.seats.len()
    }

    /// The next message that waits.
    fn next(&mut self) -> Option<Ticket> {
        while let Some(seat) = self.queue.pop_front() {
            let known = &mut self.table.seats[seat];
            if let Some(transaction) = known.machine.open().filter(|_| std::mem::take(&mut known.waits)) {
                return Some(Ticket { seat, transaction, address: known.address });
            }
        }
        None
    }

    /// Waits for packets, outside of any move.
    fn pause(&mut self, most: Duration) -> Result<(), Error> {
        let wait = self.wait(most)?;
        self.take(None, &mut Posted::once(&mut [], 0), wait).map(|_| ())
    }

    fn wait(&mut self, most: Duration) -> Result<Wait, Error> {
        if self.out.interrupt.is_some() {
            let now = self.clock.now();
            if now.since(self.looked) >= LOOK {
                self.looked = now;
                self.out.look()?;
            }
        }
        let time = time::Duration::from_nanos(most.min(LOOK).0);
        Ok(match self.waiting {
            _ if time.is_zero() => Wait::No,
            Waiting::Block => Wait::Block(time),
            Waiting::Spin => Wait::Spin(time),
        })
    }

    // --- moves ---

    /// Goes on until the move of this request has ended, or cannot go on: then nobody lends its memory any more.
    fn move_on(&mut self, ticket: Ticket, data: &[u8], offset: u32, posted: &mut Posted<'_>) -> Result<(), Error> {
        let moved = self.try_to_move(ticket, data, offset, posted);
        if moved.is_err() {
            self.table.seats[ticket.seat].machine.abandon(ticket.transaction);
        }
        moved
    }

    /// `data` is what is moved to `offset` of the client's segment.
    fn try_to_move(&mut self, ticket: Ticket, data: &[u8], offset: u32, posted: &mut Posted<'_>) -> Result<(), Error> {
        loop {
            let now = self.clock.now();
            let all = self.flush(ticket.seat, now, data, offset)?;
            let machine = &mut self.table.seats[ticket.seat].machine;
            match machine.progress(ticket.transaction) {
                Progress::Done => return Ok(()),
                Progress::Failed => return Err(Error::Silent(machine.options().patience)),
                Progress::Gone => return Err(Error::Gone),
                Progress::Going => {}
            }
            let until = machine.deadline(now).map_or(LOOK, |(at, _)| at.since(now));
            let wait = self.wait(if all { until } else { Duration::ZERO })?;
            self.take(Some(ticket.seat), posted, wait)?;
        }
    }

    // --- what leaves ---

    /// Sends what is to be sent to a client, but for a bound on what goes between two looks for answers; whether that was
    /// all.
    fn flush(&mut self, seat: usize, now: Instant, data: &[u8], offset: u32) -> Result<bool, Error> {
        let Self { table, carrier, out, refused, .. } = self;
        let seat = &mut table.seats[seat];
        let most = train(carrier, seat.machine.options().packet);
        for _ in 0..RUNS {
            let Some(output) = seat.machine.poll(now, most) else { return Ok(true) };
            carrier.turn_to(seat.address);
            let sent = match output {
                Output::Control(header, body) => out.packet(carrier, &header, &body),
                Output::Message(header) => out.packet(carrier, &header, &seat.reply),
                Output::Run(run) => {
                    let (from, to) = part(&run);
                    out.run(carrier, &run, &data[from - offset as usize..to - offset as usize])
                }
            };
            match sent {
                // One client's route is no reason to leave the others.
                Err(Error::Io(..) | Error::Nobody) => refused.unsent += 1,
                sent => sent?,
            }
        }
        Ok(false)
    }

    // --- what arrives ---

    /// Takes packets; those of the client that moves data here land in its memory. How many came.
    fn take(&mut self, moving: Option<usize>, posted: &mut Posted<'_>, wait: Wait) -> Result<usize, Error> {
        let machine = moving.map(|seat| &self.table.seats[seat].machine);
        let expected = machine.into_iter().flat_map(|machine| machine.expected());
        self.inbox.expect_each(posted, expected.map(|(at, bytes)| (u64::from(at), bytes)));
        let packets = match carrier::receive(&mut self.carrier, HEADER, posted.into, &self.inbox.places, wait) {
            Ok(packets) => packets,
            Err(error) if is_interruption(&error) => return self.out.look().map(|()| 0),
            Err(error) => return Err(Error::of("receiving", error)),
        };
        if packets == 0 {
            return Ok(0);
        }
        let Some(sender) = self.carrier.sender() else {
            self.refused.strange += packets as u64;
            return Ok(packets);
        };
        let now = self.clock.now();
        for index in 0..packets {
            self.arrive(now, sender, (index, packets), moving, posted)?;
        }
        Ok(packets)
    }

    fn arrive(
        &mut self,
        now: Instant,
        sender: SocketAddr,
        (index, packets): (usize, usize),
        moving: Option<usize>,
        posted: &mut Posted<'_>,
    ) -> Result<(), Error> {
        let Some(header) = Header::read(self.carrier.packet(index).head) else {
            self.refused.strange += 1;
            return Ok(());
        };
        let Some(seat) = self.seat(now, sender, &header)? else { return Ok(()) };
        let Self { table, carrier, inbox, staging, queue, .. } = self;
        let known = &mut table.seats[seat];
        let payload = carrier.packet(index).payload;
        let at = inbox.find(payload, index);
        let body = if header.kind == Kind::Data { &[] } else { inbox.payload(payload, at, posted) };
        match known.machine.handle(now, &header, body, payload.length()) {
            Arrival::Nothing | Arrival::Refused => {}
            Arrival::Place(from) if moving == Some(seat) => {
                inbox.put(carrier, (index, packets), at, u64::from(from), posted, staging);
                return Ok(());
            }
            Arrival::Place(_) => return Ok(()),
            Arrival::Message(message) => {
                known.message = Some(message);
                known.body.clear();
                known.body.extend_from_slice(body);
                if !std::mem::replace(&mut known.waits, true) {
                    queue.push_back(seat);
                }
                return Ok(());
            }
        }
        // A move sends what is its own.
        if moving == Some(seat) {
            return Ok(());
        }
        self.flush(seat, now, &[], 0).map(|_| ())
    }

    /// The seat of who sent this packet, a new one where it is a new client's message.
    fn seat(&mut self, now: Instant, sender: SocketAddr, header: &Header) -> Result<Option<usize>, Error> {
        if let Some(seat) = self.table.find(sender, header.connection) {
            return Ok(Some(seat));
        }
        if header.kind != Kind::Send {
            self.refused.unknown += 1;
            return Ok(None);
        }
        if let Some(seat) = self.table.seat(now, &self.protocol, sender, header.connection) {
            return Ok(Some(seat));
        }
        self.refused.full += 1;
        self.carrier.turn_to(sender);
        match self.out.packet(&mut self.carrier, &Refusal::header(header), &[Refusal::Full as u8]) {
            Err(Error::Interrupted) => Err(Error::Interrupted),
            _ => Ok(None),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("clients", &self.clients())
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}
