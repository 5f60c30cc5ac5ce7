//! The communication operations over a byte stream. The same bytes are sent as in the live world: 16 bytes of
//! introduction, data units one after the other without framing, one byte that starts a bulk transfer and one that
//! confirms a put.

use super::byte_stream::{Got, SimStreamPair, StreamEnd};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::run_state::SimRunState;
use crate::run_trace::{Coming, SimDepartureKind};
use crate::stream_units::Units;
use crate::world::Connect;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{BulkDirection, ConnectionFacts, EndpointService};
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;

/// The bytes that are read at once when units are smaller.
const READ_BYTES: u64 = 128 << 10;
/// The most bytes that are read at once.
const READ_BYTES_MOST: u64 = 1 << 20;
/// Bytes of the introduction with which a connection begins; in the live world its token.
pub(super) const INTRODUCTION: u64 = 16;
/// How long a peer may take to answer the first connection request.
const PATIENCE: Duration = Duration(5_000_000_000);
/// How long it may take to answer later ones (Linux gives up after six SYNs).
const PATIENCE_LATER: Duration = Duration(127_000_000_000);

/// An open stream.
#[derive(Debug)]
pub(crate) struct SimStream<E: StreamEnd> {
    end: E,
    context: Rc<SimEndpointContext>,
    /// Bytes that were read and belong to later data units.
    ahead: u64,
    ended: bool,
    /// Bytes of the introduction that were not sent: they are sent with the first data unit, as in the live world.
    introduction: u64,
}

impl<P: SimStreamPair> Connect for P {
    type Service = SimStream<P::End>;

    async fn connect(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<SimStream<P::End>> {
        SimStream::connect(&**self, context).await
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<SimStream<P::End>> {
        SimStream::accept(&**self, context).await
    }
}

impl<E: StreamEnd> Drop for SimStream<E> {
    fn drop(&mut self) {
        self.end.abandon(&self.context.shared);
    }
}

impl<E: StreamEnd> SimStream<E> {
    /// A stream over an end that is open, without an introduction.
    pub(super) fn new(end: E, context: &Rc<SimEndpointContext>) -> Self {
        if end.shows_positions() {
            context.trace(|line, _| line.carries_streams());
        }
        Self {
            end,
            context: Rc::clone(context),
            ahead: 0,
            ended: false,
            introduction: 0,
        }
    }

    async fn connect(
        pair: &impl SimStreamPair<End = E>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let may_dial = || pair.may_dial().then_some(());
        context
            .until("the other pairs to leave its last connection", may_dial)
            .await?;
        let introduces = pair.introductions().of_next_dialled();
        let mut stream = Self::new(pair.dial(&context.shared)?, context);
        await_answer(&stream.end, context, introduces).await?;
        if stream.end.is_of_quic() {
            context.trace(|line, at| line.quic_is_open(at));
        }
        if introduces {
            stream.introduction = INTRODUCTION;
            // Offsets of what is sent next count from behind it.
            context.trace(|line, _| line.moved(INTRODUCTION, 0));
        }
        if !pair.introductions().carry_data() {
            stream.introduce().await?;
        }
        Ok(stream)
    }

    async fn accept(
        pair: &impl SimStreamPair<End = E>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let introductions = pair.introductions();
        let introduces = introductions.of_next_accepted();
        let end = context.until("a connection", || pair.accept()).await?;
        let mut stream = Self::new(end, context);
        if introduces && !stream.take_exactly(INTRODUCTION).await? {
            return Err(connection_vanished("before it had introduced itself"));
        }
        introductions.accepted.set(true);
        Ok(stream)
    }

    fn shared(&self) -> &SimRunState {
        &self.context.shared
    }

    /// Sends the introduction alone, where something other than a data unit comes first.
    async fn introduce(&mut self) -> Result<()> {
        if self.introduction > 0 {
            self.put(0).await
        } else {
            Ok(())
        }
    }

    /// Writes bytes behind the introduction, and waits for room.
    async fn put(&mut self, bytes: u64) -> Result<()> {
        let mut left = (bytes + mem::take(&mut self.introduction)) as usize;
        let (end, shared) = (&self.end, &self.context.shared);
        let step = || {
            if left > 0 {
                match end.send(left, shared) {
                    Some(n) => left -= n,
                    None => return Some(false),
                }
            }
            match end.is_handed_over(shared) {
                Some(done) => (left == 0 && done).then_some(true),
                None => Some(false),
            }
        };
        let sent = self.context.until("space in its send buffer", step).await?;
        self.context.trace(|line, _| line.moved(bytes, 0));
        if sent { Ok(()) } else { Err(self.broken()) }
    }

    /// The error of a broken connection: by the network, or by the peer.
    fn broken(&self) -> Error {
        match self.end.broken_by() {
            Some(why) => Error::measurement(format!("the connection was given up while data was in flight: {why}"))
                .hint("a long outage of a line or a host ends a connection; with `reservation off`, so do messages that deadlock each other"),
            None => connection_vanished("while data was in flight"),
        }
    }

    /// Reads what has arrived, at most `most` bytes; 0 at the end of the stream.
    async fn take(&self, most: u64, what: &'static str) -> Result<u64> {
        let (end, shared) = (&self.end, &self.context.shared);
        let step = || match end.receive(most.min(READ_BYTES_MOST) as usize, shared) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.context.until(what, step).await? {
            Got::Bytes(n) => Ok(n as u64),
            Got::Broken => Err(self.broken()),
            Got::Nothing | Got::End => Ok(0),
        }
    }

    async fn take_exactly(&mut self, bytes: u64) -> Result<bool> {
        let mut have = 0;
        while have < bytes {
            let got = self.take(bytes - have, "the introduction").await?;
            if got == 0 {
                return Ok(false);
            }
            have += got;
        }
        self.context.trace(|line, _| line.moved(0, bytes));
        Ok(true)
    }

    /// Reads a single byte that is not data.
    async fn expect_byte(&mut self, what: &'static str) -> Result<bool> {
        self.context.trace(|line, _| line.moved(0, 1));
        if self.ahead > 0 {
            // It was read with the data units before it.
            self.ahead -= 1;
            return Ok(true);
        }
        let got = self.take(1, what).await?;
        self.ended |= got == 0;
        Ok(got == 1)
    }

    /// Records which bytes of the transport's stream a unit of `bytes` bytes took that was written just now, where it is in frames.
    fn trace_frames(&self, begins: Option<u64>, bytes: u64) {
        if let (Some(begins), Some(ends)) = (begins, self.end.framed_bytes()) {
            self.context
                .trace(|line, at| line.framed(at, line.leaving_unit(), [begins, ends], bytes));
        }
    }

    /// Sends `times` units, or one reply.
    async fn send_units(&mut self, bytes: u64, times: u64, what: SimDepartureKind) -> Result<u64> {
        for done in 0..times {
            if times > 1 && self.context.job.flags.limit() {
                return Ok(done);
            }
            self.context.trace(|line, at| line.leaves(at, what, bytes));
            let begins = self.end.framed_bytes();
            self.put(bytes).await?;
            self.trace_frames(begins, bytes);
            self.context.trace(|line, at| line.left(at, what, bytes));
        }
        Ok(times)
    }

    /// Receives `times` units, or one call or response.
    async fn receive_units(&mut self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        let at_once = bytes.max(READ_BYTES);
        let mut have = mem::take(&mut self.ahead);
        let mut coming = Units::new(&self.context, bytes, times, what);
        while have < wanted {
            coming.are(have.min(wanted));
            let got = self.take(at_once, "data units").await?;
            if got == 0 {
                self.ended = true;
                let whole = have / bytes;
                return if have.is_multiple_of(bytes) {
                    Ok(whole)
                } else {
                    Err(connection_vanished("in the middle of a data unit"))
                };
            }
            have += got;
        }
        coming.are(wanted);
        self.ahead = have - wanted;
        Ok(times)
    }
}

impl<E: StreamEnd> EndpointService for SimStream<E> {
    async fn settle(&mut self) -> Result<()> {
        self.introduce().await
    }

    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.send_units(bytes, times, SimDepartureKind::Unit).await
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.introduce().await?;
        self.receive_units(bytes, times, Coming::Unit).await
    }

    async fn call(&mut self, request: u64, response: u64, _since: Instant) -> Result<bool> {
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Call, request));
        let begins = self.end.framed_bytes();
        self.put(request).await?;
        self.trace_frames(begins, request);
        if self.receive_units(response, 1, Coming::Response).await? == 1 {
            Ok(true)
        } else {
            Err(connection_vanished("before the response arrived"))
        }
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        Ok(self.receive_units(bytes, 1, Coming::Call).await? == 1)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.send_units(bytes, 1, SimDepartureKind::Reply)
            .await
            .map(drop)
    }

    async fn start_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        self.introduce().await?;
        self.put(1).await
    }

    async fn await_start_bulk(&mut self, _direction: BulkDirection) -> Result<bool> {
        Ok(!self.ended && self.expect_byte("a bulk transfer to start").await?)
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.introduce().await?;
        if direction == BulkDirection::Put {
            self.end.push(self.shared());
            if !self
                .expect_byte("the peer to confirm that everything has arrived")
                .await?
            {
                return Err(connection_vanished(
                    "before it confirmed that everything had arrived",
                ));
            }
        }
        Ok(())
    }

    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        match direction {
            BulkDirection::Get => {
                self.end.push(self.shared());
                Ok(())
            }
            BulkDirection::Put => self.put(1).await,
        }
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.introduce().await?;
        self.end.close(self.shared());
        Ok(())
    }

    async fn disconnect(mut self) -> Result<()> {
        self.introduce().await?;
        if self.end.is_kept() {
            self.end.close(self.shared());
        }
        Ok(())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.introduce().await?;
        if self.ended {
            return Ok(());
        }
        let left = || Error::measurement("the peer sent data after the last data unit");
        if self.ahead > 0 {
            return Err(left());
        }
        let (end, shared) = (&self.end, &self.context.shared);
        let step = || match end.receive(1, shared) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.context.until("the peer to disconnect", step).await? {
            Got::Bytes(_) => Err(left()),
            _ => Ok(()),
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.end.transport(self.context.now())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.end.settings(self.context.now())
    }

    fn facts(&self) -> ConnectionFacts {
        ConnectionFacts {
            notes: self.end.notes(self.context.now()),
            ..ConnectionFacts::default()
        }
    }
}

/// Waits until a connection request is answered; the first one of a run gets less time.
///
/// # Errors
/// An [`Error`] when it is refused or not answered.
pub(super) async fn await_answer(
    end: &impl StreamEnd,
    context: &SimEndpointContext,
    is_first: bool,
) -> Result<()> {
    let patience = if is_first { PATIENCE } else { PATIENCE_LATER };
    let until = context.now() + patience;
    let answered = || end.answered();
    match context
        .until_or("a reply to its connection request", until, answered)
        .await?
    {
        Some(true) => Ok(()),
        Some(false) => Err(unreachable("was refused")),
        None => Err(match end.unanswered_because() {
            Some(why) => Error::measurement(format!(
                "a connection request was not answered: {why}"
            ))
            .hint("a host or line of the network is `down` at that time, or lets nothing through"),
            None => unreachable("was not answered"),
        }),
    }
}

fn unreachable(what: &str) -> Error {
    Error::measurement(format!("a connection request {what}"))
        .hint("the network loses every packet, or a round trip takes seconds")
}
