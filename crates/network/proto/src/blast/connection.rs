//! One end of a connection over a lossy path: opening, a stream each way, closing.
//!
//! Opening and closing are repeated until answered. The closing side cannot know whether its last message arrived (the
//! two-generals problem), so after [`CLOSE_TIMEOUT`] it counts as closed. No data is at stake then: it closes only when
//! everything it sent has been acknowledged.

use super::answer_timeout::BlastSenderWait;
use super::negotiation::{BlastParameters, BlastRefusal, BlastToken, Nonce};
use super::options::BlastOptions;
use super::packet_run::BlastPacketRun;
use super::receiver::{BlastArrival, BlastReceiver, BlastReceiverCounters};
use super::sender::{BlastSender, BlastSenderCounters};
use super::wire::{BlastHeader, BlastPacketKind, FIN};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The time after which opening and closing are first repeated; it doubles with each repetition.
const FIRST_REPEAT: Duration = Duration(20_000_000);
/// The longest time between two repetitions.
const LONGEST_REPEAT: Duration = Duration(1_000_000_000);
/// How long the closing side waits for an answer.
pub const CLOSE_TIMEOUT: Duration = Duration(1_000_000_000);

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastState {
    /// Waiting for a peer to open it.
    Listening,
    /// Opening.
    Opening,
    /// Open.
    Open,
    /// Closing, or about to when everything sent has arrived.
    Closing,
    /// Closed, by either side.
    Closed,
    /// The connection has failed.
    Failed(BlastFailure),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastFailure {
    /// The peer has been silent for longer than the options' patience.
    Silent,
    /// The peer refused it.
    Refused(BlastRefusal),
}

/// What a connection sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlastOutput {
    /// A packet without data of the stream: a header and what follows it.
    Control(BlastHeader, Vec<u8>),
    /// Packets of a blast.
    Run(BlastPacketRun),
}

/// Why [`BlastConnection::poll`] has to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastPollCause {
    /// The sender has something to do.
    Sender(BlastSenderWait),
    /// An answer is to be sent, or missing packets are to be reported.
    Answer,
    /// The peer has been silent for too long in the middle of a blast.
    Silent,
    /// The opening has to be repeated.
    Open,
    /// The closing has to be repeated, or has timed out.
    Close,
}

/// Facts about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlastFacts {
    /// The counters of the sender.
    pub sent: BlastSenderCounters,
    /// The counters of the receiver.
    pub received: BlastReceiverCounters,
    /// The smoothed round trip, its variation and its minimum, once there was one.
    pub rtt: Option<(Duration, Duration, Duration)>,
    /// The pace, in bit/s, where there is one.
    pub rate: Option<f64>,
}

/// A message that is repeated.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    at: Instant,
    wait: Duration,
    until: Instant,
    times: u32,
}

impl Repeat {
    fn new(now: Instant, patience: Duration) -> Self {
        Self {
            at: now,
            wait: FIRST_REPEAT,
            until: now + patience,
            times: 0,
        }
    }

    /// Whether the repetition is due; if so, the next one is scheduled.
    fn due(&mut self, now: Instant) -> bool {
        let due = self.at <= now;
        if due {
            (self.at, self.times) = (now + self.wait, self.times + 1);
            self.wait = Duration((2 * self.wait.0).min(LONGEST_REPEAT.0));
        }
        due
    }
}

/// One end of a connection, with a stream in each direction.
#[derive(Clone, Debug)]
pub struct BlastConnection {
    state: BlastState,
    options: BlastOptions,
    id: u32,
    token: BlastToken,
    nonce: Nonce,
    peer_nonce: Nonce,
    sender: BlastSender,
    receiver: BlastReceiver,
    /// The repetition of Open or Close while it is not answered.
    repeat: Option<Repeat>,
    /// When this end began to open the connection.
    opened: Instant,
    /// The immediate answer: its kind, the connection that it is for, and the reason of a refusal.
    reply: Option<(BlastPacketKind, u32, u8)>,
    peer_closed: bool,
}

impl BlastConnection {
    /// Opens a connection; `id` distinguishes it from others between the same two ends.
    #[must_use]
    pub fn connect(
        now: Instant,
        options: &BlastOptions,
        token: BlastToken,
        nonce: Nonce,
        id: u32,
    ) -> Self {
        let mut connection = Self::new(options, token, nonce, id, BlastState::Opening);
        connection.repeat = Some(Repeat::new(now, connection.options.patience));
        connection.opened = now;
        connection
    }

    /// Waits for a connection from a peer.
    #[must_use]
    pub fn listen(options: &BlastOptions, token: BlastToken, nonce: Nonce) -> Self {
        Self::new(options, token, nonce, 0, BlastState::Listening)
    }

    fn new(
        options: &BlastOptions,
        token: BlastToken,
        nonce: Nonce,
        id: u32,
        state: BlastState,
    ) -> Self {
        let options = options.fitted();
        Self {
            state,
            id,
            token,
            nonce,
            peer_nonce: [0; 16],
            sender: BlastSender::new(&options, id, 0),
            receiver: BlastReceiver::new(&options, id),
            options,
            repeat: None,
            opened: Instant(0),
            reply: None,
            peer_closed: false,
        }
    }

    // --- the application's side ---

    /// The state of the connection.
    #[must_use]
    pub const fn state(&self) -> BlastState {
        self.state
    }

    /// The options in force: once the connection is open, what both ends agreed upon.
    #[must_use]
    pub const fn options(&self) -> &BlastOptions {
        &self.options
    }

    /// The number of the connection.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The peer's fresh random bytes, once the connection is open.
    #[must_use]
    pub const fn peer_nonce(&self) -> &Nonce {
        &self.peer_nonce
    }

    /// Writes the next `bytes` bytes of the stream; they are sent once the connection is open.
    pub fn send(&mut self, bytes: u64) {
        self.sender.send(bytes);
    }

    /// Ends the own stream.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// The sending machine.
    #[must_use]
    pub const fn sender(&self) -> &BlastSender {
        &self.sender
    }

    /// The receiving machine.
    #[must_use]
    pub const fn receiver(&self) -> &BlastReceiver {
        &self.receiver
    }

    /// See [`BlastReceiver::consume`].
    pub fn consume(&mut self, position: u64) {
        self.receiver.consume(position);
    }

    /// See [`BlastReceiver::checked`].
    pub fn checked(&mut self, number: u32, right: bool) {
        self.receiver.checked(number, right);
    }

    /// Closes the connection once everything sent has arrived; data written before it was open is discarded.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            BlastState::Open => {
                self.state = BlastState::Closing;
                self.start_closing(now);
            }
            // The peer may have opened it already.
            BlastState::Opening => {
                self.state = BlastState::Closing;
                self.repeat = Some(Repeat::new(now, CLOSE_TIMEOUT));
            }
            BlastState::Listening => self.state = BlastState::Closed,
            BlastState::Closing | BlastState::Closed | BlastState::Failed(_) => {}
        }
    }

    fn start_closing(&mut self, now: Instant) {
        if self.state == BlastState::Closing && self.repeat.is_none() && self.sender.is_idle() {
            self.repeat = Some(Repeat::new(now, CLOSE_TIMEOUT));
        }
    }

    /// Facts about the connection.
    #[must_use]
    pub fn facts(&self) -> BlastFacts {
        let patience = self.sender.rtt();
        let rtt = patience.smoothed().zip(patience.minimum());
        BlastFacts {
            sent: self.sender.counters(),
            received: self.receiver.counters(),
            rtt: rtt.map(|(smoothed, minimum)| (smoothed, patience.variation(), minimum)),
            rate: self.sender.rate(),
        }
    }

    /// Tells the machine that the driver was suspended, so that the silence until now does not count as the peer's.
    pub fn resume(&mut self, now: Instant) {
        self.sender.resume(now);
        self.receiver.resume(now);
    }

    // --- what arrives ---

    /// Handles a packet: its header, its body if it is not data (for data the body is ignored), and the number of bytes
    /// in it.
    pub fn handle(
        &mut self,
        now: Instant,
        header: &BlastHeader,
        body: &[u8],
        payload: usize,
    ) -> BlastArrival {
        match header.kind {
            BlastPacketKind::Open => self.handle_open(header, body),
            BlastPacketKind::Accept
                if self.state == BlastState::Opening && header.connection == self.id =>
            {
                self.handle_accept(now, body)
            }
            BlastPacketKind::Refuse
                if self.state == BlastState::Opening && header.connection == self.id =>
            {
                let refusal = body
                    .first()
                    .and_then(|byte| BlastRefusal::from_number(*byte))
                    .unwrap_or(BlastRefusal::Parameters);
                self.fail(BlastFailure::Refused(refusal));
            }
            BlastPacketKind::Close if self.is_of(header) => self.handle_close(header),
            BlastPacketKind::Closed if self.is_of(header) && self.state == BlastState::Closing => {
                self.end()
            }
            BlastPacketKind::Answer if self.is_open() => {
                self.sender.handle(now, header, body);
                self.start_closing(now);
            }
            BlastPacketKind::Data | BlastPacketKind::Probe if self.is_open() => {
                return self.receiver.handle(now, header, payload);
            }
            _ => {}
        }
        BlastArrival::Nothing
    }

    /// Full packets of a blast that follow each other have arrived; see [`BlastReceiver::handle_row`].
    pub fn handle_row(&mut self, now: Instant, header: &BlastHeader, count: u32) -> Option<u64> {
        if self.is_open() {
            self.receiver.handle_row(now, header, count)
        } else {
            None
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.state, BlastState::Open | BlastState::Closing)
    }

    fn is_of(&self, header: &BlastHeader) -> bool {
        header.connection == self.id
            && !matches!(self.state, BlastState::Listening | BlastState::Opening)
    }

    fn handle_open(&mut self, header: &BlastHeader, body: &[u8]) {
        let Some(parameters) = BlastParameters::read(body, &self.token) else {
            return;
        };
        match self.state {
            BlastState::Listening => match parameters.agree(&self.options) {
                Ok(options) => {
                    self.id = header.connection;
                    self.begin(options, &parameters);
                    self.reply = Some((BlastPacketKind::Accept, self.id, 0));
                }
                Err(refusal) => {
                    self.reply = Some((BlastPacketKind::Refuse, header.connection, refusal as u8))
                }
            },
            // The answer was lost: it is sent again.
            BlastState::Open | BlastState::Closing if header.connection == self.id => {
                self.reply = Some((BlastPacketKind::Accept, self.id, 0))
            }
            BlastState::Open | BlastState::Closing => {
                self.reply = Some((
                    BlastPacketKind::Refuse,
                    header.connection,
                    BlastRefusal::Busy as u8,
                ));
            }
            BlastState::Opening | BlastState::Closed | BlastState::Failed(_) => {}
        }
    }

    fn begin(&mut self, options: BlastOptions, parameters: &BlastParameters) {
        self.options = options;
        self.peer_nonce = parameters.nonce;
        self.sender.agree(&options, self.id, parameters.buffer);
        self.receiver = BlastReceiver::new(&options, self.id);
        self.state = BlastState::Open;
    }

    fn handle_accept(&mut self, now: Instant, body: &[u8]) {
        let Some(parameters) = BlastParameters::read(body, &self.token) else {
            return;
        };
        match parameters.agree(&self.options) {
            Ok(options) => {
                let asked = self.repeat.take().map_or(0, |repeat| repeat.times);
                self.begin(options, &parameters);
                // If Open was repeated, it is unknown which one was answered, so there is no sample (Karn).
                if asked == 1 {
                    self.sender.sample(now.since(self.opened));
                } else {
                    self.sender.enable_pacing();
                }
            }
            Err(refusal) => self.fail(BlastFailure::Refused(refusal)),
        }
    }

    /// Ends the connection with a failure; from now on it only answers Close.
    fn fail(&mut self, failure: BlastFailure) {
        self.state = BlastState::Failed(failure);
        self.repeat = None;
    }

    fn handle_close(&mut self, close: &BlastHeader) {
        if self.is_open() {
            self.sender.closed(close.start, close.has(FIN));
        }
        self.reply = Some((BlastPacketKind::Closed, self.id, 0));
        self.peer_closed = true;
        self.end();
    }

    fn end(&mut self) {
        if !matches!(self.state, BlastState::Failed(_)) {
            self.state = BlastState::Closed;
        }
        self.repeat = None;
    }

    /// Whether the peer closed the connection.
    #[must_use]
    pub const fn closed_by_peer(&self) -> bool {
        self.peer_closed
    }

    // --- what leaves ---

    /// The next thing to send: control, or at most `most` packets of a blast.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<BlastOutput> {
        if let Some(reply) = self.poll_reply() {
            return Some(reply);
        }
        // Answers go before Closed, since the peer waits for them.
        if let Some((header, body)) = self.is_open().then(|| self.receiver.poll(now)).flatten() {
            return Some(BlastOutput::Control(header, body));
        }
        if let Some(control) = self.poll_repeat(now) {
            return Some(control);
        }
        if !self.is_open() {
            return None;
        }
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.fail(BlastFailure::Silent);
            return None;
        }
        if let Some(run) = self.sender.poll(now, most) {
            return Some(BlastOutput::Run(run));
        }
        self.sender
            .poll_probe(now)
            .map(|header| BlastOutput::Control(header, Vec::new()))
    }

    /// When the peer will have been silent for too long: with an answer, or with the rest of a blast.
    fn gives_up_at(&mut self) -> Option<Instant> {
        [self.sender.gives_up_at(), self.receiver.gives_up_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn poll_reply(&mut self) -> Option<BlastOutput> {
        let (kind, connection, reason) = self.reply.take()?;
        let body = match kind {
            BlastPacketKind::Accept => self.parameters(),
            BlastPacketKind::Refuse => alloc::vec![reason],
            _ => Vec::new(),
        };
        Some(BlastOutput::Control(
            BlastHeader::new(kind, connection),
            body,
        ))
    }

    fn poll_repeat(&mut self, now: Instant) -> Option<BlastOutput> {
        let repeat = self.repeat.as_mut()?;
        if repeat.until <= now {
            match self.state {
                BlastState::Opening => self.fail(BlastFailure::Silent),
                _ => self.end(),
            }
            return None;
        }
        if !repeat.due(now) {
            return None;
        }
        if self.state == BlastState::Opening {
            return Some(BlastOutput::Control(
                BlastHeader::new(BlastPacketKind::Open, self.id),
                self.parameters(),
            ));
        }
        // Close reports what has arrived, since the answers that did so may be lost.
        let flags = if self.receiver.ended() { FIN } else { 0 };
        let close = BlastHeader {
            flags,
            start: self.receiver.delivered(),
            ..BlastHeader::new(BlastPacketKind::Close, self.id)
        };
        Some(BlastOutput::Control(close, Vec::new()))
    }

    fn parameters(&self) -> Vec<u8> {
        BlastParameters::new(&self.options, self.token, self.nonce)
            .write()
            .to_vec()
    }

    /// When to poll next, and why; called after [`BlastConnection::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, BlastPollCause)> {
        if self.reply.is_some() {
            return Some((now, BlastPollCause::Answer));
        }
        let cause = if self.state == BlastState::Opening {
            BlastPollCause::Open
        } else {
            BlastPollCause::Close
        };
        let repeat = self
            .repeat
            .as_ref()
            .map(|repeat| (repeat.at.min(repeat.until), cause));
        if !self.is_open() {
            return repeat;
        }
        let sender = self
            .sender
            .deadline(now)
            .map(|(at, wait)| (at, BlastPollCause::Sender(wait)));
        let receiver = self
            .receiver
            .deadline(now)
            .map(|at| (at, BlastPollCause::Answer));
        let silent = self
            .receiver
            .gives_up_at()
            .map(|at| (at, BlastPollCause::Silent));
        [repeat, sender, receiver, silent]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
impl BlastConnection {
    /// As if so many blasts had been sent each way before, up to a position of the streams.
    pub(super) fn start_at(&mut self, number: u32, position: u64) {
        self.sender.start_at(number, position);
        self.receiver.start_at(number, position);
    }
}
