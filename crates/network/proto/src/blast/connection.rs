//! One end of a connection over a lossy path: opening, a stream each way, closing.
//!
//! Opening and closing are repeated until answered. The closing side cannot know whether its last message arrived (the
//! two-generals problem), so after [`CLOSE_TIMEOUT`] it counts as closed. No data is at stake then: it closes only when
//! everything it sent has been acknowledged.

use super::interval::Wait;
use super::negotiation::{ConnectParameters, Nonce, Refusal, Token};
use super::options::Options;
use super::receiver::{Arrival, Received, Receiver};
use super::run::Run;
use super::sender::{Sender, Sent};
use super::wire::{FIN, Header, Kind};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Opening and closing are repeated after so long, then after twice as long, up to the longest.
const FIRST_REPEAT: Duration = Duration(20_000_000);
const LONGEST_REPEAT: Duration = Duration(1_000_000_000);
/// How long the closing side waits for an answer.
pub const CLOSE_TIMEOUT: Duration = Duration(1_000_000_000);

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
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
    /// Over, and not by agreement.
    Failed(Failure),
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has been silent for longer than the options' patience.
    Silent,
    /// The peer refused it.
    Refused(Refusal),
}

/// What a connection sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet without data of the stream: a header and what follows it.
    Control(Header, Vec<u8>),
    /// Packets of a blast.
    Run(Run),
}

/// Why it has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The sender has something to do.
    Sender(Wait),
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
pub struct Facts {
    /// As a sender.
    pub sent: Sent,
    /// As a receiver.
    pub received: Received,
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

    /// Whether it is due; if so, the next repetition is scheduled.
    fn due(&mut self, now: Instant) -> bool {
        let due = self.at <= now;
        if due {
            (self.at, self.times) = (now + self.wait, self.times + 1);
            self.wait = Duration((2 * self.wait.0).min(LONGEST_REPEAT.0));
        }
        due
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    state: State,
    options: Options,
    id: u32,
    token: Token,
    nonce: Nonce,
    peer_nonce: Nonce,
    sender: Sender,
    receiver: Receiver,
    repeat: Option<Repeat>,
    opened: Instant,
    /// The immediate answer: its kind, and the connection a refusal is for.
    reply: Option<(Kind, u32, u8)>,
    peer_closed: bool,
}

impl Connection {
    /// Opens a connection; `id` distinguishes it from others between the same two ends.
    #[must_use]
    pub fn connect(now: Instant, options: &Options, token: Token, nonce: Nonce, id: u32) -> Self {
        let mut connection = Self::new(options, token, nonce, id, State::Opening);
        connection.repeat = Some(Repeat::new(now, connection.options.patience));
        connection.opened = now;
        connection
    }

    /// Waits for one.
    #[must_use]
    pub fn listen(options: &Options, token: Token, nonce: Nonce) -> Self {
        Self::new(options, token, nonce, 0, State::Listening)
    }

    fn new(options: &Options, token: Token, nonce: Nonce, id: u32, state: State) -> Self {
        let options = options.fitted();
        Self {
            state,
            id,
            token,
            nonce,
            peer_nonce: [0; 16],
            sender: Sender::new(&options, id, 0),
            receiver: Receiver::new(&options, id),
            options,
            repeat: None,
            opened: Instant(0),
            reply: None,
            peer_closed: false,
        }
    }

    // --- the application's side ---

    /// Where it is.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// What is in force: once it is open, what both agreed upon.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The peer's fresh random bytes, once it is open.
    #[must_use]
    pub const fn peer_nonce(&self) -> &Nonce {
        &self.peer_nonce
    }

    /// Hands over the next bytes of the stream; they leave once it is open.
    pub fn send(&mut self, bytes: u64) {
        self.sender.send(bytes);
    }

    /// Nothing more comes from this side.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// The sending machine.
    #[must_use]
    pub const fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The receiving machine.
    #[must_use]
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// See [`Receiver::consume`].
    pub fn consume(&mut self, position: u64) {
        self.receiver.consume(position);
    }

    /// See [`Receiver::checked`].
    pub fn checked(&mut self, number: u32, right: bool) {
        self.receiver.checked(number, right);
    }

    /// Closes the connection once everything sent has arrived; data written before it was open is discarded.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::Open => {
                self.state = State::Closing;
                self.start_closing(now);
            }
            // The peer may have opened it already.
            State::Opening => {
                self.state = State::Closing;
                self.repeat = Some(Repeat::new(now, CLOSE_TIMEOUT));
            }
            State::Listening => self.state = State::Closed,
            State::Closing | State::Closed | State::Failed(_) => {}
        }
    }

    fn start_closing(&mut self, now: Instant) {
        if self.state == State::Closing && self.repeat.is_none() && self.sender.is_idle() {
            self.repeat = Some(Repeat::new(now, CLOSE_TIMEOUT));
        }
    }

    /// Facts about the connection.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let patience = self.sender.rtt();
        let rtt = patience.smoothed().zip(patience.minimum());
        Facts {
            sent: self.sender.counters(),
            received: self.receiver.counters(),
            rtt: rtt.map(|(smoothed, minimum)| (smoothed, patience.variation(), minimum)),
            rate: self.sender.rate(),
        }
    }

    /// The driver was away: silence so far is not the peer's.
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
        header: &Header,
        body: &[u8],
        payload: usize,
    ) -> Arrival {
        match header.kind {
            Kind::Open => self.handle_open(header, body),
            Kind::Accept if self.state == State::Opening && header.connection == self.id => {
                self.handle_accept(now, body)
            }
            Kind::Refuse if self.state == State::Opening && header.connection == self.id => {
                let refusal = body
                    .first()
                    .and_then(|byte| Refusal::of(*byte))
                    .unwrap_or(Refusal::Parameters);
                self.fail(Failure::Refused(refusal));
            }
            Kind::Close if self.is_of(header) => self.handle_close(header),
            Kind::Closed if self.is_of(header) && self.state == State::Closing => self.end(),
            Kind::Answer if self.is_open() => {
                self.sender.handle(now, header, body);
                self.start_closing(now);
            }
            Kind::Data | Kind::Probe if self.is_open() => {
                return self.receiver.handle(now, header, payload);
            }
            _ => {}
        }
        Arrival::Nothing
    }

    /// Full packets of a blast that follow each other have arrived; see [`Receiver::handle_row`].
    pub fn handle_row(&mut self, now: Instant, header: &Header, count: u32) -> Option<u64> {
        if self.is_open() {
            self.receiver.handle_row(now, header, count)
        } else {
            None
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Closing)
    }

    fn is_of(&self, header: &Header) -> bool {
        header.connection == self.id && !matches!(self.state, State::Listening | State::Opening)
    }

    fn handle_open(&mut self, header: &Header, body: &[u8]) {
        let Some(parameters) = ConnectParameters::read(body, &self.token) else {
            return;
        };
        match self.state {
            State::Listening => match parameters.agree(&self.options) {
                Ok(options) => {
                    self.id = header.connection;
                    self.begin(options, &parameters);
                    self.reply = Some((Kind::Accept, self.id, 0));
                }
                Err(refusal) => self.reply = Some((Kind::Refuse, header.connection, refusal as u8)),
            },
            // The answer was lost.
            State::Open | State::Closing if header.connection == self.id => {
                self.reply = Some((Kind::Accept, self.id, 0))
            }
            State::Open | State::Closing => {
                self.reply = Some((Kind::Refuse, header.connection, Refusal::Busy as u8));
            }
            State::Opening | State::Closed | State::Failed(_) => {}
        }
    }

    fn begin(&mut self, options: Options, parameters: &ConnectParameters) {
        self.options = options;
        self.peer_nonce = parameters.nonce;
        self.sender.agree(&options, self.id, parameters.buffer);
        self.receiver = Receiver::new(&options, self.id);
        self.state = State::Open;
    }

    fn handle_accept(&mut self, now: Instant, body: &[u8]) {
        let Some(parameters) = ConnectParameters::read(body, &self.token) else {
            return;
        };
        match parameters.agree(&self.options) {
            Ok(options) => {
                let asked = self.repeat.take().map_or(0, |repeat| repeat.times);
                self.begin(options, &parameters);
                // If repeated, it is unknown which one was answered (Karn).
                if asked == 1 {
                    self.sender.sample(now.since(self.opened));
                } else {
                    self.sender.enable_pacing();
                }
            }
            Err(refusal) => self.fail(Failure::Refused(refusal)),
        }
    }

    /// From now on it only answers CLOSE.
    fn fail(&mut self, failure: Failure) {
        self.state = State::Failed(failure);
        self.repeat = None;
    }

    fn handle_close(&mut self, close: &Header) {
        if self.is_open() {
            self.sender.closed(close.start, close.has(FIN));
        }
        self.reply = Some((Kind::Closed, self.id, 0));
        self.peer_closed = true;
        self.end();
    }

    fn end(&mut self) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Closed;
        }
        self.repeat = None;
    }

    /// Whether it was the peer that closed it.
    #[must_use]
    pub const fn closed_by_peer(&self) -> bool {
        self.peer_closed
    }

    // --- what leaves ---

    /// What is to be sent next: control, or at most `most` packets of a blast.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<Output> {
        if let Some(reply) = self.poll_reply() {
            return Some(reply);
        }
        // Before CLOSED: the peer waits for them.
        if let Some((header, body)) = self.is_open().then(|| self.receiver.poll(now)).flatten() {
            return Some(Output::Control(header, body));
        }
        if let Some(control) = self.poll_repeat(now) {
            return Some(control);
        }
        if !self.is_open() {
            return None;
        }
        if self.gives_up_at().is_some_and(|at| at <= now) {
            self.fail(Failure::Silent);
            return None;
        }
        if let Some(run) = self.sender.poll(now, most) {
            return Some(Output::Run(run));
        }
        self.sender
            .poll_probe(now)
            .map(|header| Output::Control(header, Vec::new()))
    }

    /// When the peer will have been silent for too long: with an answer, or with the rest of a blast.
    fn gives_up_at(&mut self) -> Option<Instant> {
        [self.sender.gives_up_at(), self.receiver.gives_up_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn poll_reply(&mut self) -> Option<Output> {
        let (kind, connection, reason) = self.reply.take()?;
        let body = match kind {
            Kind::Accept => self.parameters(),
            Kind::Refuse => alloc::vec![reason],
            _ => Vec::new(),
        };
        Some(Output::Control(Header::new(kind, connection), body))
    }

    fn poll_repeat(&mut self, now: Instant) -> Option<Output> {
        let repeat = self.repeat.as_mut()?;
        if repeat.until <= now {
            match self.state {
                State::Opening => self.fail(Failure::Silent),
                _ => self.end(),
            }
            return None;
        }
        if !repeat.due(now) {
            return None;
        }
        if self.state == State::Opening {
            return Some(Output::Control(
                Header::new(Kind::Open, self.id),
                self.parameters(),
            ));
        }
        // What has arrived, since the answers that reported it may be lost.
        let flags = if self.receiver.ended() { FIN } else { 0 };
        let close = Header {
            flags,
            start: self.receiver.delivered(),
            ..Header::new(Kind::Close, self.id)
        };
        Some(Output::Control(close, Vec::new()))
    }

    fn parameters(&self) -> Vec<u8> {
        ConnectParameters::new(&self.options, self.token, self.nonce)
            .write()
            .to_vec()
    }

    /// When it has to be polled, and why; called after [`Connection::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, Cause)> {
        if self.reply.is_some() {
            return Some((now, Cause::Answer));
        }
        let cause = if self.state == State::Opening {
            Cause::Open
        } else {
            Cause::Close
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
            .map(|(at, wait)| (at, Cause::Sender(wait)));
        let receiver = self.receiver.deadline(now).map(|at| (at, Cause::Answer));
        let silent = self.receiver.gives_up_at().map(|at| (at, Cause::Silent));
        [repeat, sender, receiver, silent]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
impl Connection {
    /// As if so many blasts had been sent each way before, up to a position of the streams.
    pub(super) fn start_at(&mut self, number: u32, position: u64) {
        self.sender.start_at(number, position);
        self.receiver.start_at(number, position);
    }
}
