//! The communication operations of `ikp` (V's message passing). The initiator is the client: each operation sends a message and awaits
//! the reply. The responder is the server: each operation handles the client's next message. `proto::ikp::stack` has the mapping.

use super::end::Come;
use super::{PacketPair, SimIkpEnd, SimIkpMachine, SimIkpRole, SimIkpStack};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::{Coming, SimDepartureKind};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, EndpointService};
use stackline_proto::ikp::server::IkpReplyError;
use stackline_proto::ikp::stack::{IkpReplyContent, Verb, both_wait};
use stackline_proto::ikp::{Grants, IkpClient};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The server's last answer, which it repeats when the same message comes again.
#[derive(Clone, Copy, Debug)]
struct LastSimIkpAnswer {
    /// The number of the message.
    number: u64,
    /// Bytes of data that were moved to the client.
    moved: u64,
    answer: IkpReplyContent,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct SimIkpConnection {
    pair: Rc<PacketPair<SimIkpStack>>,
    end: Rc<SimIkpEnd>,
    context: Rc<SimEndpointContext>,
    /// The number of the initiator's last message.
    number: u64,
    /// The peer has said that no more data units come.
    over: bool,
    /// The peer has closed the connection.
    closed: bool,
    /// A message that arrived and that no operation has handled yet.
    waits: Option<Come>,
    /// A call whose response is still to be sent.
    call: Option<Come>,
    last: LastSimIkpAnswer,
}

impl Drop for SimIkpConnection {
    fn drop(&mut self) {
        self.end.abandon(&self.context.shared);
    }
}

impl SimIkpConnection {
    fn new(
        pair: &Rc<PacketPair<SimIkpStack>>,
        end: Rc<SimIkpEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Self {
        let last = LastSimIkpAnswer {
            number: 0,
            moved: 0,
            answer: IkpReplyContent::Done,
        };
        let (pair, context) = (Rc::clone(pair), Rc::clone(context));
        Self {
            pair,
            end,
            context,
            number: 0,
            over: false,
            closed: false,
            waits: None,
            call: None,
            last,
        }
    }

    /// Opens a connection: sends the token and awaits the reply.
    pub(super) async fn connect(
        pair: &Rc<PacketPair<SimIkpStack>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let client = |number| {
            SimIkpRole::Client(Box::new(IkpClient::new(&pair.protocol.options, number, 0)))
        };
        let calls = Self::new(
            pair,
            pair.open(|number| SimIkpMachine::new(client(number))),
            context,
        );
        calls.end.ask(
            &Verb::connect(&pair.protocol.token),
            Grants::default(),
            &context.shared,
        );
        calls.answered("a reply to its connection request").await?;
        Ok(calls)
    }

    /// Accepts a connection if its first message shows the token.
    pub(super) async fn accept(
        pair: &Rc<PacketPair<SimIkpStack>>,
        end: Rc<SimIkpEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let calls = Self::new(pair, end, context);
        let first = calls
            .end
            .take()
            .filter(|come| come.verb == Verb::Connect && calls.end.token() == pair.protocol.token);
        let first = first.ok_or_else(|| connection_vanished("before it was open"))?;
        calls
            .end
            .reply(&first.message, IkpReplyContent::Done, 0, &context.shared)
            .map_err(mistake)?;
        Ok(calls)
    }

    fn shared(&self) -> &SimRunState {
        &self.context.shared
    }

    /// Whether this end is the client.
    fn asks(&self) -> bool {
        self.end.side() == PairSide::Initiator
    }

    // --- the initiator ---

    /// Waits for the reply to the message sent last; `what` describes the wait.
    async fn answered(&self, what: &'static str) -> Result<IkpReplyContent> {
        self.context.until(what, || self.end.answer()).await?
    }

    /// Sends a message that grants the server `readable` bytes to take and `writable` bytes to move data to, and awaits the reply.
    async fn ask(
        &mut self,
        verb: Verb,
        readable: u64,
        writable: u64,
        what: &'static str,
    ) -> Result<IkpReplyContent> {
        self.number += 1;
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let grants = Grants {
            readable: bytes(readable),
            writable: bytes(writable),
        };
        self.end
            .ask(&verb.message(self.number), grants, self.shared());
        self.answered(what).await
    }

    // --- the responder ---

    /// Waits for the client's next message; repeats the last answer when its message comes again.
    async fn next(&mut self, what: &'static str) -> Result<Come> {
        if let Some(come) = self.waits.take() {
            return Ok(come);
        }
        loop {
            let come = self.context.until(what, || self.end.take()).await?;
            if come.number > self.last.number {
                return Ok(come);
            }
            if come.number == self.last.number {
                let LastSimIkpAnswer { moved, answer, .. } = self.last;
                self.reply_to(come, moved, answer).await?;
            }
        }
    }

    /// Moves `moved` bytes to the client and replies, in one packet where both fit.
    async fn reply_to(&mut self, come: Come, moved: u64, answer: IkpReplyContent) -> Result<()> {
        self.last = LastSimIkpAnswer {
            number: come.number,
            moved,
            answer,
        };
        let bytes = u32::try_from(moved).unwrap_or(u32::MAX);
        if bytes > come.message.grants.writable {
            return Err(Error::measurement(
                "the peer expects a data unit of a different size",
            ));
        }
        let together = answer.reply().len() as u64 + moved <= u64::from(come.message.room);
        if !together {
            self.end
                .begin_move(&come.message, bytes, self.shared())
                .map_err(mistake)?;
            self.moved(&come).await?;
        }
        let beside = if together { bytes } else { 0 };
        self.end
            .reply(&come.message, answer, beside, self.shared())
            .map_err(mistake)
    }

    /// Waits until the move for a message is complete.
    async fn moved(&self, come: &Come) -> Result<()> {
        match self
            .context
            .until("its data to be transferred", || {
                self.end.moved(&come.message)
            })
            .await?
        {
            true => Ok(()),
            false => Err(connection_vanished("while data was in flight")),
        }
    }

    /// Takes the data unit that a message grants: what did not come with the message is moved.
    async fn take(&self, come: &Come, bytes: u64) -> Result<()> {
        if u64::from(come.message.grants.readable) != bytes {
            return Err(Error::measurement(
                "the peer's data unit has a different size",
            ));
        }
        self.end
            .begin_take(&come.message, bytes as u32, self.shared())
            .map_err(mistake)?;
        self.moved(come).await
    }

    /// Handles a message that the current operation does not wait for: the peer's end or close; anything else is an error.
    async fn unexpected(&mut self, come: Come, awaited: &str) -> Result<()> {
        match come.verb {
            Verb::End => {
                self.over = true;
                self.reply_to(come, 0, IkpReplyContent::Done).await
            }
            Verb::Close | Verb::Closing => {
                (self.waits, self.closed) = (Some(come), true);
                Ok(())
            }
            verb => Err(both_wait(awaited, verb)),
        }
    }

    const fn ended(&self) -> bool {
        self.over || self.closed
    }
}

impl EndpointService for SimIkpConnection {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if times > 1 && self.context.job.flags.limit() {
                return Ok(done);
            }
            if self.asks() {
                self.context
                    .trace(|line, at| line.leaves(at, SimDepartureKind::Unit, bytes));
                self.ask(Verb::Put, bytes, 0, "the peer to accept the data")
                    .await?;
                self.context
                    .trace(|line, at| line.left(at, SimDepartureKind::Unit, bytes));
                continue;
            }
            let come = self.next("a request for data").await?;
            if come.verb != Verb::Get {
                self.unexpected(come, "Get").await?;
                return Err(connection_vanished("while data was in flight"));
            }
            self.context
                .trace(|line, at| line.leaves(at, SimDepartureKind::Unit, bytes));
            self.reply_to(come, bytes, IkpReplyContent::Done).await?;
            self.context
                .trace(|line, at| line.left(at, SimDepartureKind::Unit, bytes));
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        for done in 0..times {
            if self.ended() {
                return Ok(done);
            }
            self.context.trace(|line, at| line.awaits(at, bytes));
            if self.asks() {
                self.over =
                    self.ask(Verb::Get, 0, bytes, "data units").await? == IkpReplyContent::Over;
                if self.over {
                    return Ok(done);
                }
                self.context
                    .trace(|line, at| line.comes(at, Coming::Unit, bytes, None));
                continue;
            }
            let come = self.next("data units").await?;
            if come.verb != Verb::Put {
                self.unexpected(come, "Put").await?;
                return Ok(done);
            }
            self.take(&come, bytes).await?;
            self.context
                .trace(|line, at| line.comes(at, Coming::Unit, bytes, None));
            self.reply_to(come, 0, IkpReplyContent::Done).await?;
        }
        Ok(times)
    }

    async fn call(&mut self, request: u64, response: u64, _since: Instant) -> Result<bool> {
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Call, request));
        match self
            .ask(Verb::Call, request, response, "a response")
            .await?
        {
            IkpReplyContent::Done => {
                self.context
                    .trace(|line, at| line.comes(at, Coming::Response, response, None));
                Ok(true)
            }
            IkpReplyContent::Over => Err(connection_vanished("before the response arrived")),
        }
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        self.context.trace(|line, at| line.awaits(at, bytes));
        let come = self.next("a call").await?;
        if come.verb != Verb::Call {
            return self.unexpected(come, "Call").await.map(|()| false);
        }
        self.take(&come, bytes).await?;
        self.context
            .trace(|line, at| line.comes(at, Coming::Call, bytes, None));
        self.call = Some(come);
        Ok(true)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        let Some(come) = self.call.take() else {
            return Err(Error::measurement("no call is waiting for a response"));
        };
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Reply, bytes));
        self.reply_to(come, bytes, IkpReplyContent::Done).await?;
        self.context
            .trace(|line, at| line.left(at, SimDepartureKind::Reply, bytes));
        Ok(())
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        if self.ended() {
            return Ok(false);
        }
        let come = self.next("a bulk transfer to start").await?;
        let begins = come.verb
            == if direction == BulkDirection::Get {
                Verb::Get
            } else {
                Verb::Put
            };
        if begins {
            self.waits = Some(come);
        } else {
            self.unexpected(come, "a transfer").await?;
        }
        Ok(begins)
    }

    async fn end_stream(&mut self) -> Result<()> {
        if self.asks() {
            return self
                .ask(Verb::End, 0, 0, "its END to be acknowledged")
                .await
                .map(drop);
        }
        if self.closed {
            return Ok(());
        }
        let come = self.next("a message").await?;
        match come.verb {
            Verb::Get | Verb::Call => self.reply_to(come, 0, IkpReplyContent::Over).await,
            _ => {
                self.waits = Some(come);
                Ok(())
            }
        }
    }

    async fn disconnect(mut self) -> Result<()> {
        if self.asks() {
            return self
                .ask(Verb::Close, 0, 0, "the connection to be closed")
                .await
                .map(drop);
        }
        let come = self.next("the connection to be closed").await?;
        match come.verb {
            Verb::Closing | Verb::Close => self.reply_to(come, 0, IkpReplyContent::Done).await,
            _ => self.unexpected(come, "the end").await,
        }
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        if self.asks() {
            return self
                .ask(Verb::Closing, 0, 0, "the connection to be closed")
                .await
                .map(drop);
        }
        loop {
            let come = self.next("the connection to be closed").await?;
            match come.verb {
                Verb::Close => return self.reply_to(come, 0, IkpReplyContent::Done).await,
                Verb::End => self.unexpected(come, "the end").await?,
                _ => {
                    return Err(Error::measurement(
                        "the peer sent data after the last data unit",
                    ));
                }
            }
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.end.transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.pair.protocol.settings()
    }

    /// Sends nothing: the first message of the transfer implies the start.
    async fn start_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        Ok(())
    }

    /// Sends nothing: every data unit has been replied to.
    async fn stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        Ok(())
    }

    async fn await_stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        Ok(())
    }

    fn confirms(&self) -> bool {
        true
    }
}

/// The error to report when the server cannot move data or reply.
fn mistake(mistake: IkpReplyError) -> Error {
    match mistake {
        IkpReplyError::Gone | IkpReplyError::Failed | IkpReplyError::Busy => {
            connection_vanished("while a message was in flight")
        }
        IkpReplyError::Outside(_) | IkpReplyError::Long(_) => {
            Error::measurement("the peer's data unit has a different size")
        }
    }
}
