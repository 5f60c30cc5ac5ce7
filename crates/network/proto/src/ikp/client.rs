//! The client of V's message passing: it sends one message at a time and is blocked until its reply; meanwhile segments
//! of its memory are granted.
//!
//! The message is sent again whenever nothing of its transaction is received for an interval. While the server reports
//! the message as pending, it is repeated less and less often. Packets beyond the grants are refused and counted;
//! packets of another transaction, or of an earlier delivery of the message, are dropped.

mod report;

pub use report::{
    IkpClientArrival, IkpClientCounters, IkpClientPollCause, IkpClientState, IkpFailure,
    IkpSendError,
};

use super::options::IkpOptions;
use super::output::{IkpOutput, IkpPacketRun, answer};
use super::wire::{self, Grants, IkpRefusal, Send};
use crate::blast::answer_timeout::{MOST_DOUBLED, RttEstimator};
use crate::blast::{self, BlastHeader, BlastPacketKind, BlastReceiver, BlastSender};
use stackline_core::time::{Duration, Instant};

/// The longest time between two repetitions of a pending message; the time doubles up to this.
const LONGEST_PENDING_WAIT: Duration = Duration(1_000_000_000);

/// A message that awaits its reply.
#[derive(Clone, Debug)]
struct IkpCall {
    message: u32,
    grants: Grants,
    /// The number of Sends so far.
    sends: u32,
    /// When the last Send was sent.
    sent: Instant,
    /// When to send again.
    due: Instant,
    /// Since when nothing was received in answer to a Send.
    silent: Option<Instant>,
    /// How often the message was reported as pending since something else was received.
    pending: u32,
    moves: Option<IkpClientMoves>,
}

/// The moves of one delivery of the message.
#[derive(Clone, Debug)]
struct IkpClientMoves {
    delivery: u16,
    receiver: BlastReceiver,
    sender: BlastSender,
    /// The number of the last range that the server requested.
    serial: u16,
}

/// The client's machine.
#[derive(Clone, Debug)]
pub struct IkpClient {
    options: IkpOptions,
    connection: u32,
    transaction: u32,
    call: Option<IkpCall>,
    failure: Option<IkpFailure>,
    rtt: RttEstimator,
    counters: IkpClientCounters,
}

impl IkpClient {
    /// A client of the number `connection`, which distinguishes it from other clients at the same address, also earlier
    /// ones; `transaction` is the number of its last message.
    #[must_use]
    pub fn new(options: &IkpOptions, connection: u32, transaction: u32) -> Self {
        let options = options.fitted();
        let rtt = RttEstimator::new(options.interval);
        Self {
            options,
            connection,
            transaction,
            call: None,
            failure: None,
            rtt,
            counters: IkpClientCounters::default(),
        }
    }

    // --- the application's side ---

    /// The options in force.
    #[must_use]
    pub const fn options(&self) -> &IkpOptions {
        &self.options
    }

    /// The state of the client.
    #[must_use]
    pub const fn state(&self) -> IkpClientState {
        match (&self.call, self.failure) {
            (Some(_), _) => IkpClientState::Sending,
            (None, Some(failure)) => IkpClientState::Failed(failure),
            (None, None) => IkpClientState::Idle,
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> IkpClientCounters {
        self.counters
    }

    /// Its estimate of round trips: from a message to its reply or PENDING.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Sends a message of `message` bytes.
    ///
    /// # Errors
    /// A [`IkpSendError`]: nothing is sent then.
    pub fn send(&mut self, now: Instant, message: u32, grants: Grants) -> Result<(), IkpSendError> {
        if self.call.is_some() {
            return Err(IkpSendError::Busy);
        }
        if message > self.options.room() {
            return Err(IkpSendError::Long(self.options.room()));
        }
        self.transaction = self.transaction.wrapping_add(1);
        self.failure = None;
        self.call = Some(IkpCall {
            message,
            grants,
            sends: 0,
            sent: now,
            due: now,
            silent: None,
            pending: 0,
            moves: None,
        });
        Ok(())
    }

    /// How many of the readable bytes travel with the message.
    #[must_use]
    pub fn carried(&self) -> u32 {
        self.call.as_ref().map_or(0, |call| {
            wire::carried(self.options.packet, call.message, call.grants.readable)
        })
    }

    /// Gives the message up. It may have been received or not.
    pub fn abandon(&mut self) {
        self.call = None;
    }

    /// The offsets in the writable segment where the next packets of a move probably belong, in order, and their
    /// largest sizes. These places hold no data that has arrived: payloads that are received there before
    /// [`IkpClient::handle`] do no harm.
    pub fn expected(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let call = self.call.iter().filter(|call| call.grants.writable > 0);
        call.flat_map(|call| {
            let writable = u64::from(call.grants.writable);
            let packet = self.options.packet;
            let known = call
                .moves
                .iter()
                .flat_map(|moves| moves.receiver.expected());
            let known = known.map(|(position, bytes)| (u64::from(wire::offset(position)), bytes));
            // A move that has not begun is guessed to start at the beginning.
            let packets = if call.moves.is_some() {
                0
            } else {
                writable.div_ceil(u64::from(packet))
            };
            let guessed = (0..packets).map(move |n| (n * u64::from(packet), packet));
            // Both lie within the granted segment.
            known
                .chain(guessed)
                .map(move |(at, bytes)| (at as u32, (writable - at).min(u64::from(bytes)) as u32))
        })
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
    ) -> IkpClientArrival {
        if header.connection != self.connection {
            return IkpClientArrival::Nothing;
        }
        let Some(call) = self
            .call
            .as_mut()
            .filter(|call| is_of(header, self.transaction, call))
        else {
            self.counters.stale += 1;
            return IkpClientArrival::Nothing;
        };
        let arrival = match header.kind {
            BlastPacketKind::Reply => call.replied(header, payload),
            BlastPacketKind::Pending => {
                self.counters.pending += 1;
                call.pending = call.pending.saturating_add(1);
                IkpClientArrival::Nothing
            }
            BlastPacketKind::Refuse => {
                let refusal = body
                    .first()
                    .and_then(|number| IkpRefusal::from_number(*number))
                    .unwrap_or(IkpRefusal::Parameters);
                self.failure = Some(IkpFailure::Refused(refusal));
                self.call = None;
                return IkpClientArrival::Nothing;
            }
            BlastPacketKind::MoveFrom => {
                call.handle_move_from(&self.options, header, self.transaction)
            }
            BlastPacketKind::Data => {
                call.moved(&self.options, now, header, self.transaction, payload)
            }
            BlastPacketKind::Answer => call.answered(now, header, body),
            _ => return IkpClientArrival::Nothing,
        };
        if arrival == IkpClientArrival::Refused {
            self.counters.violations += 1;
        } else {
            self.last_heard(now, header, arrival);
        }
        arrival
    }

    /// Notes a sign of life of the server.
    fn last_heard(&mut self, now: Instant, header: &BlastHeader, arrival: IkpClientArrival) {
        let Some(call) = &mut self.call else { return };
        // The round names the send that is answered, so that repeated ones can be sampled, too.
        let answers_send = matches!(
            header.kind,
            BlastPacketKind::Reply | BlastPacketKind::Pending
        ) && header.round == call.round();
        if answers_send && call.sends > 0 {
            self.rtt.sample(now.since(call.sent));
        }
        if matches!(arrival, IkpClientArrival::Reply { .. }) {
            self.counters.replies += 1;
            self.call = None;
            return;
        }
        if header.kind != BlastPacketKind::Pending {
            call.pending = 0;
        }
        call.silent = None;
        call.due = now + call.wait(&self.options, &self.rtt);
    }

    // --- what leaves ---

    /// The next thing to send: a message, an answer, or at most `most` packets of a move.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<IkpOutput> {
        let call = self.call.as_mut()?;
        if call.gives_up_at(&self.options).is_some_and(|at| at <= now) {
            self.failure = Some(IkpFailure::Silent);
            self.call = None;
            return None;
        }
        if let Some(output) = call.moves.as_mut().and_then(|moves| moves.poll(now, most)) {
            if matches!(&output, IkpOutput::Run(run) if run.is_first()) {
                // While requested data is being sent, no reply is due. Repeated data may have been requested
                // needlessly.
                let answered = call
                    .moves
                    .as_ref()
                    .map_or(Duration::ZERO, |moves| moves.sender.rtt().timeout());
                call.due = call
                    .due
                    .max(now + call.wait(&self.options, &self.rtt).max(answered));
            }
            return Some(output);
        }
        (call.due <= now).then(|| self.again(now))?
    }

    fn again(&mut self, now: Instant) -> Option<IkpOutput> {
        let call = self.call.as_mut()?;
        // Not at the first send after something was received.
        if call.silent.is_some() {
            self.rtt.back_off(MOST_DOUBLED);
        }
        self.counters.repeated += u64::from(call.sends > 0);
        call.sends = call.sends.saturating_add(1);
        call.sent = now;
        call.silent.get_or_insert(now);
        call.due = now + call.wait(&self.options, &self.rtt);
        let send = Send {
            connection: self.connection,
            transaction: self.transaction,
            round: call.round(),
            once: self.options.once,
            message: call.message,
            grants: call.grants,
            parameters: super::options::ClientParameters::from_options(&self.options),
        };
        Some(IkpOutput::Message(send.header()))
    }

    /// When to poll next, and why; called after [`IkpClient::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, IkpClientPollCause)> {
        let call = self.call.as_mut()?;
        let give_up = call
            .gives_up_at(&self.options)
            .map(|at| (at, IkpClientPollCause::Patience));
        let moves = call.moves.as_mut().and_then(|moves| moves.deadline(now));
        [Some((call.due, IkpClientPollCause::Send)), give_up, moves]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}

/// Whether a packet belongs to this transaction and was caused by what was sent in it.
fn is_of(header: &BlastHeader, transaction: u32, call: &IkpCall) -> bool {
    let (theirs, round) = match header.kind {
        BlastPacketKind::Data => (wire::transaction(header.start), header.check as u16),
        BlastPacketKind::Answer => (wire::transaction(header.start), header.length as u16),
        BlastPacketKind::MoveFrom => (header.blast, header.check as u16),
        _ => (header.blast, header.round),
    };
    // Rounds wrap: what is less than half of their range behind is earlier.
    theirs == transaction && call.sends > 0 && call.round().wrapping_sub(round) as i16 >= 0
}

impl IkpCall {
    /// The number of the last Send.
    const fn round(&self) -> u16 {
        self.sends.wrapping_sub(1) as u16
    }

    fn wait(&self, options: &IkpOptions, patience: &RttEstimator) -> Duration {
        let wait = patience.timeout();
        match options.interval {
            blast::BlastTimeout::Fixed(_) => wait,
            blast::BlastTimeout::Adaptive => {
                // So that the message is sent at least once more before the patience ends.
                let longest =
                    Duration(LONGEST_PENDING_WAIT.0.min(options.patience.0 / 2)).max(Duration(1));
                Duration(wait.0.saturating_mul(1 << self.pending.min(16))).min(longest)
            }
        }
    }

    fn gives_up_at(&self, options: &IkpOptions) -> Option<Instant> {
        self.silent.map(|since| since + options.patience)
    }

    fn replied(&self, header: &BlastHeader, payload: usize) -> IkpClientArrival {
        // If a later delivery of the message has begun to write, only its own reply counts.
        if self.is_replaced(header.check as u16) {
            return IkpClientArrival::Nothing;
        }
        let (message, data, offset) = (u32::from(header.index), header.length, header.start);
        let whole = u64::from(message) + u64::from(data) == payload as u64;
        let fits = u32::try_from(offset)
            .is_ok_and(|offset| wire::inside(offset, data, self.grants.writable));
        if whole && fits {
            IkpClientArrival::Reply {
                message,
                offset: offset as u32,
                data,
            }
        } else {
            IkpClientArrival::Refused
        }
    }

    /// Whether a later delivery than this one has moved something.
    fn is_replaced(&self, delivery: u16) -> bool {
        self.moves
            .as_ref()
            .is_some_and(|moves| (delivery.wrapping_sub(moves.delivery) as i16) < 0)
    }

    /// The moves of this delivery; `None` when a later delivery has begun.
    fn moves(
        &mut self,
        options: &IkpOptions,
        connection: u32,
        transaction: u32,
        delivery: u16,
    ) -> Option<&mut IkpClientMoves> {
        if self.is_replaced(delivery) {
            return None;
        }
        if self
            .moves
            .as_ref()
            .is_none_or(|moves| moves.delivery != delivery)
        {
            let options = options.patient_moves();
            let granted = wire::positions(transaction, 0, self.grants.writable);
            self.moves = Some(IkpClientMoves {
                delivery,
                receiver: BlastReceiver::scattered(&options, connection, granted),
                sender: BlastSender::new(&options, connection, 0),
                serial: 0,
            });
        }
        self.moves.as_mut()
    }

    /// Handles a request for a range of the readable segment.
    fn handle_move_from(
        &mut self,
        options: &IkpOptions,
        header: &BlastHeader,
        transaction: u32,
    ) -> IkpClientArrival {
        let (readable, bytes) = (self.grants.readable, header.length);
        let Ok(from) = u32::try_from(header.start) else {
            return IkpClientArrival::Refused;
        };
        if bytes == 0 || !wire::inside(from, bytes, readable) {
            return IkpClientArrival::Refused;
        }
        let moves = self.moves(options, header.connection, transaction, header.check as u16);
        // A repeated request: the range is being sent.
        let new = moves.filter(|moves| header.index.wrapping_sub(moves.serial) as i16 > 0);
        if let Some(moves) = new {
            moves.serial = header.index;
            moves.sender.seek(
                wire::position(transaction, from),
                wire::position(transaction, readable),
            );
            moves.sender.send(u64::from(bytes));
        }
        IkpClientArrival::Nothing
    }

    /// Handles a data packet for the writable segment.
    fn moved(
        &mut self,
        options: &IkpOptions,
        now: Instant,
        header: &BlastHeader,
        transaction: u32,
        payload: usize,
    ) -> IkpClientArrival {
        let Some(moves) = self.moves(options, header.connection, transaction, header.check as u16)
        else {
            return IkpClientArrival::Nothing;
        };
        match moves.receiver.handle(now, header, payload) {
            blast::BlastArrival::Place { position, .. } => {
                IkpClientArrival::Place(wire::offset(position))
            }
            blast::BlastArrival::Nothing => IkpClientArrival::Nothing,
            blast::BlastArrival::Refused => IkpClientArrival::Refused,
        }
    }

    /// Handles an answer about a requested range.
    fn answered(&mut self, now: Instant, header: &BlastHeader, body: &[u8]) -> IkpClientArrival {
        let moves = self
            .moves
            .as_mut()
            .filter(|moves| moves.delivery == header.length as u16);
        if let Some(moves) = moves {
            moves.sender.handle(now, header, body);
        }
        IkpClientArrival::Nothing
    }
}

impl IkpClientMoves {
    fn poll(&mut self, now: Instant, most: u32) -> Option<IkpOutput> {
        if let Some((header, body)) = self.receiver.poll(now) {
            return Some(answer(header, body, self.delivery));
        }
        let run = self.sender.poll(now, most)?;
        Some(IkpOutput::Run(IkpPacketRun {
            run,
            delivery: self.delivery,
        }))
    }

    fn deadline(&mut self, now: Instant) -> Option<(Instant, IkpClientPollCause)> {
        let answer = self
            .receiver
            .deadline(now)
            .map(|at| (at, IkpClientPollCause::Answer));
        let sender = self
            .sender
            .deadline(now)
            .map(|(at, wait)| (at, IkpClientPollCause::Move(wait)));
        [answer, sender]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}
