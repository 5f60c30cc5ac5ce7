//! The server of V's message passing: its state for one client. It receives the client's messages, moves data from and
//! to the segments granted with them, and replies.
//!
//! A message repeated before its reply is answered with PENDING. After the reply the client's options decide: the reply
//! is repeated ([`IkpOptions::once`]), or the message is delivered again. Nothing moves beyond the grants. A client that
//! sends its next message has abandoned the last one, with its moves and its reply.

mod report;

pub use report::{
    IkpMessage, IkpMoveProgress, IkpReplyError, IkpServerArrival, IkpServerCounters,
    IkpServerPollCause,
};

use super::options::{ClientParameters, IkpOptions};
use super::output::{IkpOutput, IkpPacketRun, answer};
use super::wire::{self, Grants, IkpRefusal, Send};
use crate::blast::{self, BlastHeader, BlastPacketKind, BlastReceiver, BlastSender};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The time after which a range is first requested again, where intervals adapt; it doubles each time.
const FIRST_REPEAT: Duration = Duration(20_000_000);
/// The longest time between two requests of a range.
const LONGEST_REPEAT: Duration = Duration(1_000_000_000);

/// The state of the client's last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// There has been none.
    New,
    /// It awaits its reply.
    Open,
    /// It was replied to: the bytes of the reply's message and data, and where the data belongs.
    Replied {
        message: u32,
        data: u32,
        offset: u32,
    },
    /// It will never be replied to: nothing about it is answered.
    Ignored,
}

/// A range that is being moved from the client.
#[derive(Clone, Copy, Debug)]
struct RequestedRange {
    offset: u32,
    bytes: u32,
    times: u32,
    /// When to request it again; `None` once something has arrived.
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
struct IkpServerMoves {
    sender: BlastSender,
    receiver: BlastReceiver,
    serial: u16,
}

/// What is to be sent to the client next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IkpPendingAnswer {
    Nothing,
    Pending,
    Reply,
    Refusal(BlastHeader, IkpRefusal),
}

/// The server's machine for one client.
#[derive(Clone, Debug)]
pub struct IkpServer {
    own: IkpOptions,
    options: IkpOptions,
    connection: u32,
    transaction: u32,
    /// The round of the last Send received.
    round: u16,
    /// The round of the Send that was delivered.
    delivery: u16,
    /// Whether the client requests delivery once only.
    once: bool,
    grants: Grants,
    state: CallState,
    moving: Move,
    moves: Option<IkpServerMoves>,
    pending_answer: IkpPendingAnswer,
    /// When the client last sent, or was replied to.
    last_used: Instant,
    counters: IkpServerCounters,
}

impl IkpServer {
    /// A server for the client with this number; it accepts packets up to the length in the options.
    #[must_use]
    pub fn new(options: &IkpOptions, connection: u32) -> Self {
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
            pending_answer: IkpPendingAnswer::Nothing,
            last_used: Instant(0),
            counters: IkpServerCounters::default(),
        }
    }

    // --- the application's side ---

    /// The transaction of the message that awaits its reply.
    #[must_use]
    pub fn open(&self) -> Option<u32> {
        (self.state == CallState::Open).then_some(self.transaction)
    }

    /// The options in force for this client.
    #[must_use]
    pub const fn options(&self) -> &IkpOptions {
        &self.options
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> IkpServerCounters {
        self.counters
    }

    /// Moves `bytes` to `offset` of the writable segment of this message.
    ///
    /// # Errors
    /// A [`IkpReplyError`]: nothing is moved then.
    pub fn move_to(
        &mut self,
        transaction: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(), IkpReplyError> {
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
    /// A [`IkpReplyError`]: nothing is moved then.
    pub fn move_from(
        &mut self,
        now: Instant,
        transaction: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(), IkpReplyError> {
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
    ) -> Result<(), IkpReplyError> {
        self.is_open(transaction)?;
        match self.moving {
            _ if !wire::inside(offset, bytes, granted) => Err(IkpReplyError::Outside(granted)),
            Move::Failed => Err(IkpReplyError::Failed),
            Move::None => Ok(()),
            Move::To | Move::From(_) => Err(IkpReplyError::Busy),
        }
    }

    fn is_open(&self, transaction: u32) -> Result<(), IkpReplyError> {
        if self.open() == Some(transaction) {
            Ok(())
        } else {
            Err(IkpReplyError::Gone)
        }
    }

    fn moves(&mut self) -> &mut IkpServerMoves {
        let (options, connection) = (self.options.moves(self.options.patience), self.connection);
        self.moves.get_or_insert_with(|| IkpServerMoves {
            sender: BlastSender::new(&options, connection, 0),
            receiver: BlastReceiver::new(&options, connection),
            serial: 0,
        })
    }

    /// The progress of the last move of this message; without a move it is done.
    pub fn progress(&mut self, transaction: u32) -> IkpMoveProgress {
        if self.is_open(transaction).is_err() {
            return IkpMoveProgress::Gone;
        }
        let done = match (&self.moving, &self.moves) {
            (Move::Failed, _) => return IkpMoveProgress::Failed,
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
            IkpMoveProgress::Done
        } else {
            IkpMoveProgress::Going
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

    /// Replies to this message with `message` bytes of message and `data` bytes of data, which belong at `offset` of
    /// the writable segment. A move in progress ends where it is.
    ///
    /// # Errors
    /// A [`IkpReplyError`]: the message then still awaits its reply.
    pub fn reply(
        &mut self,
        now: Instant,
        transaction: u32,
        message: u32,
        offset: u32,
        data: u32,
    ) -> Result<(), IkpReplyError> {
        self.is_open(transaction)?;
        if data > 0 && !wire::inside(offset, data, self.grants.writable) {
            return Err(IkpReplyError::Outside(self.grants.writable));
        }
        if u64::from(message) + u64::from(data) > u64::from(self.options.room()) {
            return Err(IkpReplyError::Long(self.options.room()));
        }
        let offset = if data == 0 { 0 } else { offset };
        self.state = CallState::Replied {
            message,
            data,
            offset,
        };
        (self.moving, self.moves, self.pending_answer, self.last_used) =
            (Move::None, None, IkpPendingAnswer::Reply, now);
        Ok(())
    }

    /// Decides never to reply to this message: its client will run out of patience.
    pub fn ignore(&mut self, transaction: u32) {
        if self.is_open(transaction).is_ok() {
            self.state = CallState::Ignored;
            (self.moving, self.moves, self.pending_answer) =
                (Move::None, None, IkpPendingAnswer::Nothing);
        }
    }

    /// When the client may be forgotten if nothing more is received from it: never while a message awaits its reply,
    /// and not before [`IkpOptions::memory`] if it requested delivery once only.
    #[must_use]
    pub fn forgotten_at(&self) -> Option<Instant> {
        match self.state {
            CallState::Open => None,
            _ if self.once => Some(self.last_used + self.own.memory),
            _ => Some(self.last_used),
        }
    }

    // --- what arrives ---

    /// Handles a packet: its header, the body behind it if it is not data (for data `body` is ignored), and the number
    /// of bytes behind the header.
    pub fn handle(
        &mut self,
        now: Instant,
        header: &BlastHeader,
        body: &[u8],
        payload: usize,
    ) -> IkpServerArrival {
        if header.connection != self.connection {
            return IkpServerArrival::Nothing;
        }
        let arrival = match header.kind {
            BlastPacketKind::Send => self.handle_send(now, header, payload),
            BlastPacketKind::Data if self.is_now(header.start, header.check) => {
                self.moved(now, header, payload)
            }
            BlastPacketKind::Answer if self.is_now(header.start, header.length) => {
                if let Some(moves) = &mut self.moves {
                    moves.sender.handle(now, header, body);
                }
                IkpServerArrival::Nothing
            }
            BlastPacketKind::Data | BlastPacketKind::Answer => {
                self.counters.stale += 1;
                IkpServerArrival::Nothing
            }
            _ => IkpServerArrival::Nothing,
        };
        self.counters.violations += u64::from(arrival == IkpServerArrival::Refused);
        arrival
    }

    /// Whether a packet of a move is of the present message and its present delivery.
    fn is_now(&self, position: u64, delivery: u32) -> bool {
        self.state == CallState::Open
            && wire::transaction(position) == self.transaction
            && delivery == u32::from(self.delivery)
    }

    fn handle_send(
        &mut self,
        now: Instant,
        header: &BlastHeader,
        payload: usize,
    ) -> IkpServerArrival {
        let Some(parameters) = ClientParameters::unpack(header.start)
            .filter(|parameters| parameters.packet <= self.own.packet)
        else {
            if self.pending_answer == IkpPendingAnswer::Nothing {
                self.pending_answer = IkpPendingAnswer::Refusal(*header, IkpRefusal::Parameters);
            }
            return IkpServerArrival::Refused;
        };
        let Some(send) = Send::read(header, parameters, payload) else {
            return IkpServerArrival::Refused;
        };
        let ahead = send.transaction.wrapping_sub(self.transaction) as i32;
        let newer = send.round.wrapping_sub(self.round) as i16 > 0;
        match self.state {
            CallState::New => self.deliver(now, &send),
            _ if ahead > 0 => self.deliver(now, &send),
            _ if ahead < 0 => {
                self.counters.stale += 1;
                IkpServerArrival::Nothing
            }
            CallState::Open => {
                self.note_send(now, &send, newer);
                self.pending_answer = IkpPendingAnswer::Pending;
                self.counters.pending += 1;
                IkpServerArrival::Nothing
            }
            CallState::Replied { .. } if self.once => {
                self.note_send(now, &send, newer);
                self.pending_answer = IkpPendingAnswer::Reply;
                self.counters.repeated += 1;
                IkpServerArrival::Nothing
            }
            // A Send that the network duplicated (same round) does not request a second delivery.
            CallState::Replied { .. } if newer => {
                self.counters.again += 1;
                self.deliver(now, &send)
            }
            CallState::Replied { .. } | CallState::Ignored => IkpServerArrival::Nothing,
        }
    }

    fn note_send(&mut self, now: Instant, send: &Send, newer: bool) {
        self.last_used = now;
        if newer {
            self.round = send.round;
        }
    }

    fn deliver(&mut self, now: Instant, send: &Send) -> IkpServerArrival {
        let replaces = self.state == CallState::Open;
        (self.state, self.moving, self.moves, self.pending_answer) =
            (CallState::Open, Move::None, None, IkpPendingAnswer::Nothing);
        (self.transaction, self.round, self.delivery) = (send.transaction, send.round, send.round);
        (self.once, self.grants, self.last_used) = (send.once, send.grants, now);
        self.options = send.parameters.taken(&self.own);
        self.counters.messages += 1;
        IkpServerArrival::Message(IkpMessage {
            transaction: send.transaction,
            bytes: send.message,
            carried: wire::carried(send.parameters.packet, send.message, send.grants.readable),
            grants: send.grants,
            room: self.options.room(),
            replaces,
        })
    }

    /// Handles a packet of a requested range.
    fn moved(&mut self, now: Instant, header: &BlastHeader, payload: usize) -> IkpServerArrival {
        let Some(moves) = &mut self.moves else {
            return IkpServerArrival::Nothing;
        };
        let arrival = moves.receiver.handle(now, header, payload);
        if let Move::From(wanted) = &mut self.moving {
            if !matches!(arrival, blast::BlastArrival::Refused) {
                wanted.last_heard = now;
            }
            if let blast::BlastArrival::Place { position, .. } = arrival {
                // The client has got the request: from now on it sends lost packets again by itself.
                wanted.again = None;
                return IkpServerArrival::Place(wire::offset(position) - wanted.offset);
            }
        }
        if arrival == blast::BlastArrival::Refused {
            IkpServerArrival::Refused
        } else {
            IkpServerArrival::Nothing
        }
    }

    /// The offsets in the range that is being moved from the client where the next packets probably belong, in order,
    /// and their bytes.
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

    /// The next thing to send: a reply, an answer, a request for a range, or at most `most` packets of a move.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<IkpOutput> {
        match core::mem::replace(&mut self.pending_answer, IkpPendingAnswer::Nothing) {
            IkpPendingAnswer::Nothing => {}
            IkpPendingAnswer::Pending => {
                return Some(IkpOutput::Control(
                    self.header(BlastPacketKind::Pending),
                    Vec::new(),
                ));
            }
            IkpPendingAnswer::Reply => {
                if let Some(header) = self.reply_header() {
                    return Some(IkpOutput::Message(header));
                }
            }
            IkpPendingAnswer::Refusal(send, refusal) => {
                return Some(IkpOutput::Control(
                    IkpRefusal::header(&send),
                    alloc::vec![refusal as u8],
                ));
            }
        }
        self.poll_answer(now).or_else(|| self.poll_move(now, most))
    }

    fn poll_answer(&mut self, now: Instant) -> Option<IkpOutput> {
        let (header, body) = self.moves.as_mut()?.receiver.poll(now)?;
        Some(answer(header, body, self.delivery))
    }

    fn poll_move(&mut self, now: Instant, most: u32) -> Option<IkpOutput> {
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.moving = Move::Failed;
            self.moves = None;
        }
        match &mut self.moving {
            Move::None | Move::Failed => None,
            Move::To => {
                let run = self.moves.as_mut()?.sender.poll(now, most)?;
                Some(IkpOutput::Run(IkpPacketRun {
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
                let header = BlastHeader {
                    round: (wanted.times - 1) as u16,
                    index: serial,
                    length: wanted.bytes,
                    start: u64::from(wanted.offset),
                    check: u32::from(self.delivery),
                    ..self.header(BlastPacketKind::MoveFrom)
                };
                Some(IkpOutput::Control(header, Vec::new()))
            }
        }
    }

    const fn header(&self, kind: BlastPacketKind) -> BlastHeader {
        BlastHeader {
            blast: self.transaction,
            round: self.round,
            ..BlastHeader::new(kind, self.connection)
        }
    }

    fn reply_header(&self) -> Option<BlastHeader> {
        let CallState::Replied {
            message,
            data,
            offset,
        } = self.state
        else {
            return None;
        };
        let (index, start, check) = (message as u16, u64::from(offset), u32::from(self.delivery));
        Some(BlastHeader {
            index,
            length: data,
            start,
            check,
            ..self.header(BlastPacketKind::Reply)
        })
    }

    fn gives_up_at(&mut self) -> Option<Instant> {
        match &self.moving {
            Move::None | Move::Failed => None,
            Move::To => self.moves.as_mut()?.sender.gives_up_at(),
            Move::From(wanted) => Some(wanted.last_heard + self.options.patience),
        }
    }

    /// When to poll next, and why; called after [`IkpServer::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, IkpServerPollCause)> {
        if self.pending_answer != IkpPendingAnswer::Nothing {
            return Some((now, IkpServerPollCause::Answer));
        }
        let give_up = self
            .gives_up_at()
            .map(|at| (at, IkpServerPollCause::Patience));
        let moves = self.moves.as_mut()?;
        let answer = moves
            .receiver
            .deadline(now)
            .map(|at| (at, IkpServerPollCause::Answer));
        let going = match self.moving {
            Move::To => moves
                .sender
                .deadline(now)
                .map(|(at, wait)| (at, IkpServerPollCause::Move(wait))),
            Move::From(wanted) => wanted.again.map(|at| (at, IkpServerPollCause::Ask)),
            Move::None | Move::Failed => None,
        };
        [answer, going, give_up]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}

/// How long to wait before a range is requested again.
fn again(options: &IkpOptions, times: u32) -> Duration {
    match options.interval {
        blast::BlastTimeout::Fixed(interval) => interval,
        blast::BlastTimeout::Adaptive => {
            Duration((FIRST_REPEAT.0 << times.min(6)).min(LONGEST_REPEAT.0))
        }
    }
}
