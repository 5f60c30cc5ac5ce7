//! One end of a UDP connection: the communication operations as datagrams, over the state machine [`DatagramConversation`] that the live
//! world uses too.

use super::super::udp_socket::{SimUdpReceived, SimUdpSocket};
use super::UdpPair;
use super::control::awaited_reply;
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagramBody;
use crate::error::{Error, Result, connection_vanished};
use crate::run_trace::{Coming, SimDepartureKind};
use stackline_core::error::Blame;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, ConnectionFacts, EndpointService, SequenceProgress};
use stackline_proto::datagram::NUMBER;
use stackline_proto::datagram::control::{ANSWER, DatagramControl, write_control};
use stackline_proto::datagram::conversation::{ControlStep, DatagramConversation, DatagramUnit};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// One end of a UDP connection.
#[derive(Debug)]
pub(super) struct SimUdpConversation {
    pair: Rc<UdpPair>,
    side: PairSide,
    context: Rc<SimEndpointContext>,
    conversation: DatagramConversation,
    /// Numbers and sizes of the data units that arrived and were not taken yet, while the run is traced.
    numbers: VecDeque<(u64, u64)>,
}

impl SimUdpConversation {
    fn new(pair: &Rc<UdpPair>, side: PairSide, context: &Rc<SimEndpointContext>) -> Self {
        Self {
            pair: Rc::clone(pair),
            side,
            context: Rc::clone(context),
            conversation: DatagramConversation::new(),
            numbers: VecDeque::new(),
        }
    }

    /// Opens a connection: repeats HELLO until it is answered.
    pub(super) async fn connect(
        pair: &Rc<UdpPair>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let mut connection = Self::new(pair, PairSide::Initiator, context);
        connection.exchange(DatagramControl::Hello).await?;
        Ok(connection)
    }

    /// Accepts a connection: waits for HELLO. On the pair's `first` one, everything that arrived before HELLO is dropped unread.
    pub(super) async fn accept(
        pair: &Rc<UdpPair>,
        context: &Rc<SimEndpointContext>,
        first: bool,
    ) -> Result<Self> {
        let mut connection = Self::new(pair, PairSide::Responder, context);
        if first {
            let hello = SimUdpReceived::Control {
                kind: DatagramControl::Hello as u8,
                value: 0,
            };
            let socket = connection.socket();
            while context.until("a HELLO", || socket.take()).await? != hello {}
            socket.clear();
            connection.conversation.greet();
            connection.send_control(DatagramControl::Hello as u8 | ANSWER, 0);
        }
        while !connection.conversation.is_greeted() {
            connection.take("a HELLO").await?;
            // Data units that arrived before the HELLO belong to an earlier connection.
            connection.numbers.clear();
        }
        Ok(connection)
    }

    fn socket(&self) -> &SimUdpSocket {
        &self.pair.sockets[self.side.index()]
    }

    // --- control ---

    fn send_control(&self, kind: u8, value: u64) {
        let bytes = write_control(&self.pair.token, kind, value);
        self.socket()
            .send(SimDatagramBody::Control(bytes), None, &self.context.shared);
    }

    /// Repeats a control datagram until it is answered.
    ///
    /// # Errors
    /// When the peer does not answer.
    async fn exchange(&mut self, kind: DatagramControl) -> Result<()> {
        self.conversation.request(self.context.now(), kind);
        loop {
            match self.conversation.poll(self.context.now()) {
                ControlStep::Send(kind, value) => self.send_control(kind, value),
                ControlStep::Wait => {}
                ControlStep::Answered => return Ok(()),
                ControlStep::GivenUp => {
                    return Err(Error::measurement("the peer has stopped answering")
                        .hint("the peer exited, the network lost every control datagram for several seconds, or data sent without pacing is still waiting in a queue (the link's `queue` limits its length)"));
                }
            }
            let until = self
                .conversation
                .deadline()
                .unwrap_or_else(|| self.context.now());
            let received = {
                let socket = self.socket();
                self.context
                    .until_or(awaited_reply(kind), until, || socket.take())
                    .await?
            };
            if let Some(received) = received {
                self.arrived(received);
            }
        }
    }

    // --- what arrives ---

    /// Waits for a datagram and handles it; `what` describes the wait.
    async fn take(&mut self, what: &'static str) -> Result<()> {
        let received = {
            let socket = self.socket();
            self.context.until(what, || socket.take()).await?
        };
        self.arrived(received);
        Ok(())
    }

    fn arrived(&mut self, received: SimUdpReceived) {
        match received {
            SimUdpReceived::Control { kind, value } => {
                if let Some(answer) = self.conversation.handle_control(kind, value) {
                    self.send_control(answer, 0);
                }
            }
            SimUdpReceived::Refused => self.conversation.refused(),
            SimUdpReceived::Unit { number, bytes } => {
                let head = number.to_le_bytes();
                match self
                    .conversation
                    .handle_unit(&head[..NUMBER.min(bytes as usize)], u64::from(bytes))
                {
                    DatagramUnit::Call => self.note(number.saturating_sub(1), bytes),
                    DatagramUnit::Numbered(_) | DatagramUnit::Unnumbered => {
                        self.note(number, bytes)
                    }
                    DatagramUnit::Repeated => {}
                }
            }
        }
    }

    /// Keeps the number and the size of a data unit that arrived, for the trace.
    fn note(&mut self, number: u64, bytes: u32) {
        if self.context.is_traced() {
            self.numbers.push_back((number, u64::from(bytes)));
        }
    }

    /// Records that the next `units` data units were taken.
    fn emit(&mut self, units: u64, what: Coming) {
        let units = usize::try_from(units)
            .unwrap_or(usize::MAX)
            .min(self.numbers.len());
        for (number, bytes) in self.numbers.drain(..units) {
            self.context
                .trace(|line, at| line.comes(at, what, bytes, Some(number)));
        }
    }

    // --- what leaves ---

    async fn send_unit(&self, what: SimDepartureKind, number: u64, bytes: u64) -> Result<()> {
        self.socket()
            .send_unit(&self.context, what, number, bytes)
            .await
    }

    /// Receives `times` data units or calls of `bytes` bytes each; fewer if the peer's transfer ends. Returns how many.
    async fn receive_units(&mut self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let mut emitted = self.conversation.units(times);
        self.emit(emitted, what);
        let mut awaited = None;
        while !self.conversation.has_units(times) {
            // A datagram may be control: record the wait for the next unit only once.
            if awaited.replace(emitted) != Some(emitted) {
                self.context.trace(|line, at| line.awaits(at, bytes));
            }
            self.take("a data unit").await?;
            let units = self.conversation.units(times);
            self.emit(units - emitted, what);
            emitted = units;
        }
        Ok(self.conversation.take_units(times))
    }

    /// Waits for the answer that carries `number` in its first `n` bytes; false after the timeout.
    async fn await_answer(&mut self, number: u64, n: usize, until: Instant) -> Result<bool> {
        loop {
            let received = {
                let socket = self.socket();
                self.context
                    .until_or("the answer to its call", until, || socket.take())
                    .await?
            };
            match received {
                None => return Ok(false),
                Some(SimUdpReceived::Refused) => {
                    return Err(connection_vanished(
                        "while a call was waiting for its answer",
                    ));
                }
                Some(received) => self.arrived(received),
            }
            self.numbers.clear();
            if self.conversation.take_answer(number, n) {
                return Ok(true);
            }
        }
    }

    async fn await_end(&mut self) -> Result<()> {
        while !self.conversation.has_ended() {
            self.take("the bulk transfer to end").await?;
        }
        Ok(())
    }
}

impl EndpointService for SimUdpConversation {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if self.context.job.flags.limit() && times > 1 {
                return Ok(done);
            }
            let number = self.conversation.next_number();
            self.conversation.sent(1);
            self.send_unit(SimDepartureKind::Unit, number, bytes)
                .await?;
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.conversation.await_units();
        self.receive_units(bytes, times, Coming::Unit).await
    }

    fn is_closed(&self) -> bool {
        self.conversation.is_closed()
    }

    async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool> {
        let number = self.conversation.call();
        self.send_unit(SimDepartureKind::Call, number, request)
            .await?;
        let n = NUMBER.min(request as usize).min(response as usize);
        let answered = self
            .await_answer(number, n, since + self.pair.timeout)
            .await?;
        if answered {
            self.context
                .trace(|line, at| line.comes(at, Coming::Response, response, None));
        } else {
            self.context.trace(|line, at| line.lost(at, request));
            self.conversation.call_lost();
        }
        Ok(answered)
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        self.conversation.await_call();
        Ok(self.receive_units(bytes, 1, Coming::Call).await? == 1)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        if !self.pair.peer_is_there(self.side) {
            // The caller has given up and gone.
            self.conversation.refused();
            return Ok(());
        }
        self.send_unit(
            SimDepartureKind::Reply,
            u64::from_le_bytes(*self.conversation.head()),
            bytes,
        )
        .await
    }

    async fn start_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        self.exchange(DatagramControl::Start).await
    }

    async fn await_start_bulk(&mut self, _direction: BulkDirection) -> Result<bool> {
        while !self.conversation.has_started() {
            self.take("a bulk transfer to start").await?;
        }
        Ok(self.conversation.take_started())
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Get => self.await_end().await,
            BulkDirection::Put => self.end_stream().await,
        }
    }

    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Get => self.end_stream().await,
            BulkDirection::Put => self.await_end().await,
        }
    }

    async fn end_stream(&mut self) -> Result<()> {
        if self.conversation.end_sent() {
            Ok(())
        } else {
            self.exchange(DatagramControl::End).await
        }
    }

    async fn disconnect(mut self) -> Result<()> {
        // The peer may have closed its socket, and its last answer may be lost: that is a disconnect as well.
        match self.exchange(DatagramControl::Bye).await {
            Err(error) if error.blame == Blame::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        while !self.conversation.is_closed() {
            self.take("the peer to disconnect").await?;
        }
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.socket().settings()
    }

    fn progress(&self) -> Option<SequenceProgress> {
        let (next, arrived) = self.conversation.progress()?;
        Some(SequenceProgress { next, arrived })
    }

    fn facts(&self) -> ConnectionFacts {
        let conversation = &self.conversation;
        ConnectionFacts {
            losses: conversation.losses(),
            received_bytes: conversation.received_bytes(),
            ..ConnectionFacts::default()
        }
    }
}
