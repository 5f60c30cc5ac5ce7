//! The receiving side: a server's state for one client. It receives the client's messages, moves data from and to the
//! segments granted with them, and replies.
//!
//! A message repeated before its reply is answered with PENDING. After the reply the client's options decide: the reply
//! is repeated ([`Options::once`]), or the message is delivered again. Nothing moves beyond the grants. A client that
//! sends its next message has abandoned the last one, with its moves and its reply.

mod report;

pub use report::{Arrival, Cause, Counters, Message, Mistake, Progress};

use super::options::{ClientParameters, Options};
use super::output::{Output, Run, answer};
use super::wire::{self, Grants, Refusal, Send};
use crate::blast::{self, Header, Kind, Receiver, Sender};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// A range is requested again after so long where intervals adapt, then after twice as long, up to the longest.
const FIRST_REPEAT: Duration = Duration(20_000_000);
const LONGEST_REPEAT: Duration = Duration(1_000_000_000);

/// State of the last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// There has been none.
    New,
    /// It awaits its reply.
    Open,
    /// It was replied to, with this.
    Replied {
        message: u32,
        data: u32,
        offset: u32,
    },
    /// It will never be: nothing of it is answered.
    Ignored,
}

/// A range that is being moved from the client.
#[derive(Clone, Copy, Debug)]
struct RequestedRange {
    offset: u32,
    bytes: u32,
    times: u32,
    /// When to request again; never once something has come.
    again: Option<Instant>,
    last_heard: Instant,
}

/// The direction of a move.
#[derive(Clone, Copy, Debug)]
enum Move {
    None,
    To,
    From(RequestedRange),
    Failed,
}

/// The moves of one delivery.
#[derive(Clone, Debug)]
struct Moves {
    sender: Sender,
    receiver: Receiver,
    serial: u16,
}

/// What is to be sent to the client next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingAnswer {
    Nothing,
    Pending,
    Reply,
    Refusal(Header, Refusal),
}

/// The server's machine for one client.
#[derive(Clone, Debug)]
pub struct Server {
    own: Options,
    options: Options,
    connection: u32,
    transaction: u32,
    /// The last round received, and the one that was delivered.
    round: u16,
    delivery: u16,
    once: bool,
    grants: Grants,
    state: CallState,
    moving: Move,
    moves: Option<Moves>,
    pending_answer: PendingAnswer,
    last_used: Instant,
    counters: Counters,
}

impl Server {
    /// The side of the client with this number, which takes packets up to the length in the options.
    #[must_use]
    pub fn new(options: &Options, connection: u32) -> Self {
        let own = options.fitted();
        Self {
            own,
            options: own,
            connection,
            transaction: 0,
            round: 0,
            delivery: 0,
            once: false,
            grants: Grants::default(),
            state: CallState::New,
            moving: Move::None,
            moves: None,
            pending_answer: PendingAnswer::Nothing,
            last_used: Instant(0),
            counters: Counters::default(),
        }
    }

    // --- the application's side ---

    /// The message that awaits its reply.
    #[must_use]
    pub fn open(&self) -> Option<u32> {
        (self.state == CallState::Open).then_some(self.transaction)
    }

    /// What holds for this client.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Moves `bytes` to `offset` of the writable segment of this message.
    ///
    /// # Errors
    /// A [`Mistake`]: nothing is moved then.
    pub fn move_to(&mut self, transaction: u32, offset: u32, bytes: u32) -> Result<(), Mistake> {
        self.may_move(transaction, offset, bytes, self.grants.writable)?;
        if bytes > 0 {
            let (transaction, writable) = (self.transaction, self.grants.writable);
            let moves = self.moves();
            moves.sender.seek(
                wire::position(transaction, offset),
                wire::position(transaction, writable),
            );
            moves.sender.send(u64::from(bytes));
            self.moving = Move::To;
        }
        Ok(())
    }

    /// Moves `bytes` from `offset` of the readable segment of this message.
    ///
    /// # Errors
    /// A [`Mistake`]: nothing is moved then.
    pub fn move_from(
        &mut self,
        now: Instant,
        transaction: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(), Mistake> {
        self.may_move(transaction, offset, bytes, self.grants.readable)?;
        if bytes > 0 {
            let transaction = self.transaction;
            let moves = self.moves();
            moves.serial = moves.serial.wrapping_add(1);
            moves
                .receiver
                .grant(wire::positions(transaction, offset, bytes));
            self.moving = Move::From(RequestedRange {
                offset,
                bytes,
                times: 0,
                again: Some(now),
                last_heard: now,
            });
        }
        Ok(())
    }

    fn may_move(
        &self,
        transaction: u32,
        offset: u32,
        bytes: u32,
        granted: u32,
    ) -> Result<(), Mistake> {
        self.is_open(transaction)?;
        match self.moving {
            _ if !wire::inside(offset, bytes, granted) => Err(Mistake::Outside(granted)),
            Move::Failed => Err(Mistake::Failed),
            Move::None => Ok(()),
            Move::To | Move::From(_) => Err(Mistake::Busy),
        }
    }

    fn is_open(&self, transaction: u32) -> Result<(), Mistake> {
        if self.open() == Some(transaction) {
            Ok(())
        } else {
            Err(Mistake::Gone)
        }
    }

    fn moves(&mut self) -> &mut Moves {
        let (options, connection) = (self.options.moves(self.options.patience), self.connection);
        self.moves.get_or_insert_with(|| Moves {
            sender: Sender::new(&options, connection, 0),
            receiver: Receiver::new(&options, connection),
            serial: 0,
        })
    }

    /// How the last move of this message is; without one, it is done.
    pub fn progress(&mut self, transaction: u32) -> Progress {
        if self.is_open(transaction).is_err() {
            return Progress::Gone;
        }
        let done = match (&self.moving, &self.moves) {
            (Move::Failed, _) => return Progress::Failed,
            (Move::None, _) | (_, None) => true,
            (Move::To, Some(moves)) => moves.sender.is_idle(),
            (Move::From(wanted), Some(moves)) => {
                moves.receiver.delivered()
                    == wire::positions(self.transaction, wanted.offset, wanted.bytes).end
            }
        };
        if done {
            self.moving = Move::None;
        }
        if done {
            Progress::Done
        } else {
            Progress::Going
        }
    }

    /// Abandons the move in progress, because its driver failed. Nothing more is moved for this message.
    pub fn abandon(&mut self, transaction: u32) {
        if self.is_open(transaction).is_ok() && !matches!(self.moving, Move::None) {
            (self.moving, self.moves) = (Move::Failed, None);
        }
    }

    /// Whether a move of the message that awaits its reply has failed.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.moving, Move::Failed)
    }

    /// Replies to this message with so many bytes of message and of data, which belongs at `offset` of the writable
    /// segment. A move in progress ends where it is.
    ///
    /// # Errors
    /// A [`Mistake`]: the message is as it was then.
    pub fn reply(
        &mut self,
        now: Instant,
        transaction: u32,
        message: u32,
        offset: u32,
        data: u32,
    ) -> Result<(), Mistake> {
        self.is_open(transaction)?;
        if data > 0 && !wire::inside(offset, data, self.grants.writable) {
            return Err(Mistake::Outside(self.grants.writable));
        }
        if u64::from(message) + u64::from(data) > u64::from(self.options.room()) {
            return Err(Mistake::Long(self.options.room()));
        }
        let offset = if data == 0 { 0 } else { offset };
        self.state = CallState::Replied {
            message,
            data,
            offset,
        };
        (self.moving, self.moves, self.pending_answer, self.last_used) =
            (Move::None, None, PendingAnswer::Reply, now);
        Ok(())
    }

    /// Never replies to this message: its client will run out of patience.
    pub fn ignore(&mut self, transaction: u32) {
        if self.is_open(transaction).is_ok() {
            self.state = CallState::Ignored;
            (self.moving, self.moves, self.pending_answer) =
                (Move::None, None, PendingAnswer::Nothing);
        }
    }

    /// When the client may be forgotten if nothing more is received from it: never while a message awaits its reply,
    /// and not before [`Options::memory`] if it requested delivery once only.
    #[must_use]
    pub fn forgotten_at(&self) -> Option<Instant> {
        match self.state {
            CallState::Open => None,
            _ if self.once => Some(self.last_used + self.own.memory),
            _ => Some(self.last_used),
        }
    }

    // --- what arrives ---

    /// A packet has arrived: its header, what follows it where it is no data (of data it may be anything), and how many
    /// bytes follow.
    pub fn handle(
        &mut self,
        now: Instant,
        header: &Header,
        body: &[u8],
        payload: usize,
    ) -> Arrival {
        if header.connection != self.connection {
            return Arrival::Nothing;
        }
        let arrival = match header.kind {
            Kind::Send => self.handle_send(now, header, payload),
            Kind::Data if self.is_now(header.start, header.check) => {
                self.moved(now, header, payload)
            }
            Kind::Answer if self.is_now(header.start, header.length) => {
                if let Some(moves) = &mut self.moves {
                    moves.sender.handle(now, header, body);
                }
                Arrival::Nothing
            }
            Kind::Data | Kind::Answer => {
                self.counters.stale += 1;
                Arrival::Nothing
            }
            _ => Arrival::Nothing,
        };
        self.counters.violations += u64::from(arrival == Arrival::Refused);
        arrival
    }

    /// Whether a packet of a move is of the present message and its present delivery.
    fn is_now(&self, position: u64, delivery: u32) -> bool {
        self.state == CallState::Open
            && wire::transaction(position) == self.transaction
            && delivery == u32::from(self.delivery)
    }

    fn handle_send(&mut self, now: Instant, header: &Header, payload: usize) -> Arrival {
        let Some(parameters) = ClientParameters::unpack(header.start)
            .filter(|parameters| parameters.packet <= self.own.packet)
        else {
            if self.pending_answer == PendingAnswer::Nothing {
                self.pending_answer = PendingAnswer::Refusal(*header, Refusal::Parameters);
            }
            return Arrival::Refused;
        };
        let Some(send) = Send::read(header, parameters, payload) else {
            return Arrival::Refused;
        };
        let ahead = send.transaction.wrapping_sub(self.transaction) as i32;
        let newer = send.round.wrapping_sub(self.round) as i16 > 0;
        match self.state {
            CallState::New => self.deliver(now, &send),
            _ if ahead > 0 => self.deliver(now, &send),
            _ if ahead < 0 => {
                self.counters.stale += 1;
                Arrival::Nothing
            }
            CallState::Open => {
                self.note_send(now, &send, newer);
                self.pending_answer = PendingAnswer::Pending;
                self.counters.pending += 1;
                Arrival::Nothing
            }
            CallState::Replied { .. } if self.once => {
                self.note_send(now, &send, newer);
                self.pending_answer = PendingAnswer::Reply;
                self.counters.repeated += 1;
                Arrival::Nothing
            }
            // What the network doubled is no second request.
            CallState::Replied { .. } if newer => {
                self.counters.again += 1;
                self.deliver(now, &send)
            }
            CallState::Replied { .. } | CallState::Ignored => Arrival::Nothing,
        }
    }

    fn note_send(&mut self, now: Instant, send: &Send, newer: bool) {
        self.last_used = now;
        if newer {
            self.round = send.round;
        }
    }

    fn deliver(&mut self, now: Instant, send: &Send) -> Arrival {
        let replaces = self.state == CallState::Open;
        (self.state, self.moving, self.moves, self.pending_answer) =
            (CallState::Open, Move::None, None, PendingAnswer::Nothing);
        (self.transaction, self.round, self.delivery) = (send.transaction, send.round, send.round);
        (self.once, self.grants, self.last_used) = (send.once, send.grants, now);
        self.options = send.parameters.taken(&self.own);
        self.counters.messages += 1;
        Arrival::Message(Message {
            transaction: send.transaction,
            bytes: send.message,
            carried: wire::carried(send.parameters.packet, send.message, send.grants.readable),
            grants: send.grants,
            room: self.options.room(),
            replaces,
        })
    }

    /// Handles a packet of a requested range.
    fn moved(&mut self, now: Instant, header: &Header, payload: usize) -> Arrival {
        let Some(moves) = &mut self.moves else {
            return Arrival::Nothing;
        };
        let arrival = moves.receiver.handle(now, header, payload);
        if let Move::From(wanted) = &mut self.moving {
            if !matches!(arrival, blast::Arrival::Refused) {
                wanted.last_heard = now;
            }
            if let blast::Arrival::Place { position, .. } = arrival {
                // From now on the client sends again what is lost.
                wanted.again = None;
                return Arrival::Place(wire::offset(position) - wanted.offset);
            }
        }
        if arrival == blast::Arrival::Refused {
            Arrival::Refused
        } else {
            Arrival::Nothing
        }
    }

    /// Where in the range that is being moved from the client the next packets probably belong, in order, and their bytes.
    pub fn expected(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let wanted = if let Move::From(wanted) = self.moving {
            Some(wanted)
        } else {
            None
        };
        let both = wanted.into_iter().zip(&self.moves);
        both.flat_map(|(wanted, moves)| {
            moves.receiver.expected().map(move |(position, bytes)| {
                let at = wire::offset(position) - wanted.offset;
                (at, bytes.min(wanted.bytes - at))
            })
        })
    }

    // --- what leaves ---

    /// The next output: a reply, an answer, a request for a range, or at most `most` packets of a move.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<Output> {
        match core::mem::replace(&mut self.pending_answer, PendingAnswer::Nothing) {
            PendingAnswer::Nothing => {}
            PendingAnswer::Pending => {
                return Some(Output::Control(self.header(Kind::Pending), Vec::new()));
            }
            PendingAnswer::Reply => {
                if let Some(header) = self.reply_header() {
                    return Some(Output::Message(header));
                }
            }
            PendingAnswer::Refusal(send, refusal) => {
                return Some(Output::Control(
                    Refusal::header(&send),
                    alloc::vec![refusal as u8],
                ));
            }
        }
        self.poll_answer(now).or_else(|| self.poll_move(now, most))
    }

    fn poll_answer(&mut self, now: Instant) -> Option<Output> {
        let (header, body) = self.moves.as_mut()?.receiver.poll(now)?;
        Some(answer(header, body, self.delivery))
    }

    fn poll_move(&mut self, now: Instant, most: u32) -> Option<Output> {
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.moving = Move::Failed;
            self.moves = None;
        }
        match &mut self.moving {
            Move::None | Move::Failed => None,
            Move::To => {
                let run = self.moves.as_mut()?.sender.poll(now, most)?;
                Some(Output::Run(Run {
                    run,
                    delivery: self.delivery,
                }))
            }
            Move::From(wanted) => {
                wanted.again.filter(|at| *at <= now)?;
                wanted.again = Some(now + again(&self.options, wanted.times));
                wanted.times = wanted.times.saturating_add(1);
                let wanted = *wanted;
                let serial = self.moves.as_ref()?.serial;
                let header = Header {
                    round: (wanted.times - 1) as u16,
                    index: serial,
                    length: wanted.bytes,
                    start: u64::from(wanted.offset),
                    check: u32::from(self.delivery),
                    ..self.header(Kind::MoveFrom)
                };
                Some(Output::Control(header, Vec::new()))
            }
        }
    }

    const fn header(&self, kind: Kind) -> Header {
        Header {
            blast: self.transaction,
            round: self.round,
            ..Header::new(kind, self.connection)
        }
    }

    fn reply_header(&self) -> Option<Header> {
        let CallState::Replied {
            message,
            data,
            offset,
        } = self.state
        else {
            return None;
        };
        let (index, start, check) = (message as u16, u64::from(offset), u32::from(self.delivery));
        Some(Header {
            index,
            length: data,
            start,
            check,
            ..self.header(Kind::Reply)
        })
    }

    fn gives_up_at(&mut self) -> Option<Instant> {
        match &self.moving {
            Move::None | Move::Failed => None,
            Move::To => self.moves.as_mut()?.sender.gives_up_at(),
            Move::From(wanted) => Some(wanted.last_heard + self.options.patience),
        }
    }

    /// When it has to be polled, and why; called after [`Server::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, Cause)> {
        if self.pending_answer != PendingAnswer::Nothing {
            return Some((now, Cause::Answer));
        }
        let give_up = self.gives_up_at().map(|at| (at, Cause::Patience));
        let moves = self.moves.as_mut()?;
        let answer = moves.receiver.deadline(now).map(|at| (at, Cause::Answer));
        let going = match self.moving {
            Move::To => moves
                .sender
                .deadline(now)
                .map(|(at, wait)| (at, Cause::Move(wait))),
            Move::From(wanted) => wanted.again.map(|at| (at, Cause::Ask)),
            Move::None | Move::Failed => None,
        };
        [answer, going, give_up]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}

/// How long to wait before a range is requested again.
fn again(options: &Options, times: u32) -> Duration {
    match options.interval {
        blast::Interval::Fixed(interval) => interval,
        blast::Interval::Adaptive => {
            Duration((FIRST_REPEAT.0 << times.min(6)).min(LONGEST_REPEAT.0))
        }
    }
}
