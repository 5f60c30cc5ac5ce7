//! A conversation in datagrams, as the live world holds it: what leaves, what arrives, and control between.

use super::UdpPair;
use super::control::words;
use super::socket::{Received, Socket};
use crate::context::Context;
use crate::datagram::Body;
use crate::error::{Error, Result, vanished};
use crate::trace::{Coming, Leaving};
use stackline_core::error::Blame;
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{Bulk, Facts, Service};
use stackline_proto::datagram::control::{ANSWER, Control, write_control};
use stackline_proto::datagram::sequence::Sequence;
use stackline_proto::datagram::{
    COUNT_BITS, COUNT_MASK, FAREWELL, FIRST_REPEAT, LAST_REPEAT, Losses, NUMBER, NUMBERS, PATIENCE,
};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::rc::Rc;

/// A conversation in datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    pair: Rc<UdpPair>,
    side: Side,
    context: Rc<Context>,
    next_number: u64,
    sequence: Sequence,
    received_bytes: u64,
    /// Data units that arrived and were not asked for yet.
    ahead: u64,
    /// First bytes of the last data unit: a call's number.
    head: [u8; NUMBER],
    calling: bool,
    lost_calls: u64,
    /// Bulk transfers begun, also the peer's; ENDs of earlier ones say nothing.
    transfer: u64,
    /// How many units the peer says it sent, in all transfers.
    peer_sent: Option<u64>,
    /// The peer's present transfer is over.
    ended: bool,
    end_sent: bool,
    greeted: bool,
    started: bool,
    bye: bool,
    /// The last answer that came.
    answered: Option<u8>,
    /// Numbers and sizes of the data units ahead, while the run is traced.
    numbers: VecDeque<(u64, u64)>,
}

impl Datagrams {
    fn new(pair: &Rc<UdpPair>, side: Side, context: &Rc<Context>) -> Self {
        Self {
            pair: Rc::clone(pair),
            side,
            context: Rc::clone(context),
            next_number: 0,
            sequence: Sequence::default(),
            received_bytes: 0,
            ahead: 0,
            head: [0; NUMBER],
            calling: false,
            lost_calls: 0,
            transfer: 0,
            peer_sent: None,
            ended: false,
            end_sent: false,
            greeted: false,
            started: false,
            bye: false,
            answered: None,
            numbers: VecDeque::new(),
        }
    }

    /// Says HELLO until it is answered.
    pub(super) async fn connect(pair: &Rc<UdpPair>, context: &Rc<Context>) -> Result<Self> {
        let mut connection = Self::new(pair, Side::Initiator, context);
        connection.exchange(Control::Hello, 0).await?;
        Ok(connection)
    }

    /// Waits for HELLO; what a socket got before the first one is dropped unread.
    pub(super) async fn accept(pair: &Rc<UdpPair>, context: &Rc<Context>, first: bool) -> Result<Self> {
        let mut connection = Self::new(pair, Side::Responder, context);
        if first {
            let hello = Received::Control { kind: Control::Hello as u8, value: 0 };
            let socket = connection.socket();
            while context.until("a HELLO", || socket.take()).await? != hello {}
            socket.clear();
            connection.greeted = true;
            connection.answer(Control::Hello);
        }
        while !connection.greeted {
            connection.take("a HELLO").await?;
        }
        Ok(connection)
    }

    fn socket(&self) -> &Socket {
        &self.pair.sockets[self.side.index()]
    }

    // --- control ---

    fn send_control(&self, kind: u8, value: u64) {
        let bytes = write_control(&self.pair.token, kind, value);
        self.socket().send(Body::Control(bytes), None, &self.context.executor);
    }

    fn answer(&self, kind: Control) {
        self.send_control(kind as u8 | ANSWER, 0);
    }

    /// Sends control until it is answered: soon again at first, since a transfer's clock waits for its END.
    async fn exchange(&mut self, kind: Control, value: u64) -> Result<()> {
        let patience = if kind == Control::Bye { FAREWELL } else { PATIENCE };
        let give_up = self.context.now() + patience;
        let mut repeat = FIRST_REPEAT;
        self.answered = None;
        while self.context.now() < give_up {
            self.send_control(kind as u8, value);
            if self.answered_by(kind, self.context.now() + repeat).await? {
                return Ok(());
            }
            repeat = Duration((repeat.0 * 2).min(LAST_REPEAT.0));
        }
        Err(Error::measurement("the peer does not answer any more")
            .hint("it ended, or the network lost every control datagram for seconds"))
    }

    async fn answered_by(&mut self, kind: Control, until: Instant) -> Result<bool> {
        let (ahead, transfer) = (self.ahead, self.transfer);
        loop {
            let received = {
                let socket = self.socket();
                self.context.until_or(words(kind), until, || socket.take()).await?
            };
            let Some(received) = received else { return Ok(false) };
            if received == Received::Refused {
                self.bye |= kind != Control::Hello;
            } else {
                self.arrived(received);
            }
            // What can only follow an answer says as much as the answer, which may have been lost.
            let followed = match kind {
                Control::Hello => false,
                Control::Start => self.ahead > ahead || self.ended || self.bye,
                Control::End => self.transfer > transfer || self.bye,
                Control::Bye => self.bye,
            };
            if self.answered == Some(kind as u8) || followed {
                return Ok(true);
            }
        }
    }

    fn control_arrived(&mut self, kind: u8, value: u64) {
        if kind & ANSWER != 0 {
            self.answered = Some(kind & !ANSWER);
            return;
        }
        let Some(kind) = Control::of(kind) else { return };
        match kind {
            Control::Hello => {
                if !mem::replace(&mut self.greeted, true) {
                    // What came before was meant for an earlier connection.
                    (self.started, self.ended, self.bye, self.peer_sent, self.transfer) =
                        (false, false, false, None, 0);
                    (self.ahead, self.received_bytes, self.sequence) = (0, 0, Sequence::default());
                    self.numbers.clear();
                }
            }
            // The number tells a new transfer from a repeated START of the present one.
            Control::Start if value > self.transfer => {
                (self.started, self.ended, self.end_sent, self.transfer) = (true, false, false, value);
            }
            Control::Start => {}
            Control::End if value >> COUNT_BITS == self.transfer => {
                (self.ended, self.peer_sent) = (true, Some(value & COUNT_MASK));
            }
            Control::End => {}
            Control::Bye => {
                self.bye = true;
                self.peer_sent = self.peer_sent.or(Some(value).filter(|sent| *sent > 0));
            }
        }
        self.answer(kind);
    }

    // --- what arrives ---

    /// Waits for at least one datagram.
    async fn take(&mut self, what: &'static str) -> Result<()> {
        let received = {
            let socket = self.socket();
            self.context.until(what, || socket.take()).await?
        };
        self.arrived(received);
        Ok(())
    }

    fn arrived(&mut self, received: Received) {
        match received {
            Received::Control { kind, value } => self.control_arrived(kind, value),
            // The peer's socket is gone: its BYE or our answer was lost.
            Received::Refused => self.bye = true,
            Received::Unit { number, bytes } if self.calling => {
                let n = (bytes as usize).min(NUMBER);
                self.head[..n].copy_from_slice(&number.to_le_bytes()[..n]);
                self.ahead += 1;
                self.note(number.saturating_sub(1), bytes);
            }
            Received::Unit { number, bytes } => {
                if (bytes as usize) < NUMBER || self.sequence.arrived(number % NUMBERS) {
                    self.ahead += 1;
                    self.received_bytes += u64::from(bytes);
                    self.note(number, bytes);
                }
            }
        }
    }

    /// Keeps what a trace tells of a data unit that arrived.
    fn note(&mut self, number: u64, bytes: u32) {
        if self.context.is_traced() {
            self.numbers.push_back((number, u64::from(bytes)));
        }
    }

    /// Tells of data units that are taken.
    fn tell(&mut self, units: u64, what: Coming) {
        let units = usize::try_from(units).unwrap_or(usize::MAX).min(self.numbers.len());
        for (number, bytes) in self.numbers.drain(..units) {
            self.context.trace(|line, at| line.comes(at, what, bytes, Some(number)));
        }
    }

    // --- what leaves ---

    async fn send_unit(&self, what: Leaving, number: u64, bytes: u64) -> Result<()> {
        let unit = self.context.trace(|line, at| line.leaves(at, what, bytes));
        self.hand_over(unit, number, bytes).await?;
        self.context.trace(|line, at| line.left(at, what, bytes));
        Ok(())
    }

    async fn hand_over(&self, unit: Option<i64>, number: u64, bytes: u64) -> Result<()> {
        let socket = self.socket();
        let room = || match socket.room(&self.context.executor) {
            Ok(()) => Some(()),
            Err(when) => {
                when.inspect(|at| self.context.wake_at(*at));
                None
            }
        };
        self.context.until("its host's interface", room).await?;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        socket.send(Body::Unit { number, bytes }, unit, &self.context.executor);
        Ok(())
    }

    /// Takes so many units, or calls one at a time, of so many bytes each.
    async fn receive_units(&mut self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let mut told = self.ahead.min(times);
        self.tell(told, what);
        let mut awaited = None;
        while self.ahead < times && !self.ended && !self.bye {
            // What comes may be control: the next unit is waited for once.
            if awaited.replace(told) != Some(told) {
                self.context.trace(|line, at| line.awaits(at, bytes));
            }
            self.take("a data unit").await?;
            let more = self.ahead.min(times) - told;
            self.tell(more, what);
            told += more;
        }
        let units = self.ahead.min(times);
        self.ahead -= units;
        Ok(units)
    }

    /// Waits for the answer that carries `number` in its first `n` bytes; false after the timeout.
    async fn await_answer(&mut self, number: u64, n: usize, until: Instant) -> Result<bool> {
        loop {
            let received = {
                let socket = self.socket();
                self.context.until_or("the answer to its call", until, || socket.take()).await?
            };
            match received {
                None => return Ok(false),
                Some(Received::Refused) => return Err(vanished("while a call waited for its answer")),
                Some(received) => self.arrived(received),
            }
            let right = self.ahead > 0 && self.head[..n] == number.to_le_bytes()[..n];
            self.ahead = 0;
            self.numbers.clear();
            if right {
                return Ok(true);
            }
        }
    }

    async fn await_end(&mut self) -> Result<()> {
        while !self.ended && !self.bye {
            self.take("the bulk transfer to end").await?;
        }
        Ok(())
    }
}

impl Service for Datagrams {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if self.context.job.flags.limit() && times > 1 {
                return Ok(done);
            }
            let number = self.next_number;
            self.next_number += 1;
            self.send_unit(Leaving::Unit, number, bytes).await?;
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.receive_units(bytes, times, Coming::Unit).await
    }

    fn is_closed(&self) -> bool {
        self.bye
    }

    async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool> {
        self.calling = true;
        self.next_number = (self.next_number + 1) % NUMBERS;
        let number = self.next_number;
        self.send_unit(Leaving::Call, number, request).await?;
        let n = NUMBER.min(request as usize).min(response as usize);
        let answered = self.await_answer(number, n, since + self.pair.timeout).await?;
        if answered {
            self.context.trace(|line, at| line.comes(at, Coming::Response, response, None));
        } else {
            self.context.trace(|line, at| line.lost(at, request));
        }
        self.lost_calls += u64::from(!answered);
        Ok(answered)
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        self.calling = true;
        Ok(self.receive_units(bytes, 1, Coming::Call).await? == 1)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        if !self.pair.peer_is_there(self.side) {
            // The caller has given up and gone.
            self.bye = true;
            return Ok(());
        }
        self.send_unit(Leaving::Reply, u64::from_le_bytes(self.head), bytes).await
    }

    async fn start_bulk(&mut self, _way: Bulk) -> Result<()> {
        self.transfer += 1;
        (self.ended, self.end_sent) = (false, false);
        self.exchange(Control::Start, self.transfer).await
    }

    async fn await_start_bulk(&mut self, _way: Bulk) -> Result<bool> {
        while !self.started && !self.bye {
            self.take("a bulk transfer to start").await?;
        }
        Ok(mem::take(&mut self.started))
    }

    async fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        match way {
            Bulk::Get => self.await_end().await,
            Bulk::Put => self.end_stream().await,
        }
    }

    async fn await_stop_bulk(&mut self, way: Bulk) -> Result<()> {
        match way {
            Bulk::Get => self.end_stream().await,
            Bulk::Put => self.await_end().await,
        }
    }

    async fn end_stream(&mut self) -> Result<()> {
        if !self.end_sent {
            let sent = self.next_number & COUNT_MASK;
            self.exchange(Control::End, (self.transfer << COUNT_BITS) | sent).await?;
            self.end_sent = true;
        }
        Ok(())
    }

    async fn disconnect(mut self) -> Result<()> {
        // The last answer may be lost for good when the peer has closed its socket: that is a disconnect as well.
        let sent = if self.calling { 0 } else { self.next_number };
        match self.exchange(Control::Bye, sent).await {
            Err(error) if error.blame == Blame::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        while !self.bye {
            self.take("the peer to disconnect").await?;
        }
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let (send, receive) = self.socket().rooms();
        let put = |name: &str, bytes: u64| (name.to_string(), format!("{bytes} B"));
        [put("send_buffer", send), put("receive_buffer", receive)].into()
    }

    fn facts(&self) -> Facts {
        let losses = match self.peer_sent {
            _ if self.calling => Some(Losses { lost: self.lost_calls, ..Losses::default() }),
            sent => sent.map(|sent| self.sequence.losses(sent)),
        };
        Facts { losses, received_bytes: (!self.calling).then_some(self.received_bytes), ..Facts::default() }
    }
}
