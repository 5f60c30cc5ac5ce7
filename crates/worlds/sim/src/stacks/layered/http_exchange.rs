//! A pair's connection of HTTP: the exchange that is open on it, how it waits, and the bodies of data units.

use super::http_end::SimHttpEnd;
use super::http_group::{SimHttpGroup, SimHttpVersion};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::run_trace::{Coming, nth_share};
use crate::stream_units::Units;
use crate::window_waits::HttpWindowWaits;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_proto::http::{HttpHead, HttpMachine, HttpRequestKind, HttpWait};
use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;

/// Bytes of data units that one operation hands over together, as the live world does.
const TOGETHER: u64 = 256 << 10;
/// What HTTP/2 takes whole when its windows have room for one byte: a longer response is sent as its windows allow, without a length.
pub(super) const PIECE: u64 = 16 << 10;

/// An exchange that carries data units.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenHttpExchange {
    pub(super) stream: u32,
    /// Whether this end's body has begun and not ended.
    pub(super) sends: bool,
    /// Whether a responder has still to answer.
    pub(super) owes_answer: bool,
    /// Bytes that have come and belong to no operation yet.
    pub(super) ahead: u64,
}

/// One end of a pair's connection.
pub(super) struct SimHttp {
    pub(super) group: Rc<SimHttpGroup>,
    pub(super) side: PairSide,
    /// The pair's place in its group.
    pub(super) place: u32,
    pub(super) end: Rc<SimHttpEnd>,
    pub(super) context: Rc<SimEndpointContext>,
    pub(super) exchange: Option<OpenHttpExchange>,
    /// The call that is to be answered.
    pub(super) called: Option<u32>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    pub(super) carried: u64,
    /// The stream of the request with which the pair has joined a connection that others use too, until it leaves.
    pub(super) join: Option<u32>,
    /// Whether the group knows that this end is over.
    pub(super) is_gone: bool,
    /// How long data waited for windows of HTTP/2.
    waited: Cell<Duration>,
    /// How what is being sent waited for them, until it is recorded.
    window_waits: RefCell<HttpWindowWaits>,
}

impl Drop for SimHttp {
    fn drop(&mut self) {
        if !self.is_gone {
            self.group.leave(self.side, &self.end, &self.context);
        }
    }
}

impl SimHttp {
    pub(super) fn new(
        group: &Rc<SimHttpGroup>,
        side: PairSide,
        place: u32,
        end: Rc<SimHttpEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Self {
        Self {
            group: Rc::clone(group),
            side,
            place,
            end,
            context: Rc::clone(context),
            exchange: None,
            called: None,
            carried: 0,
            join: None,
            is_gone: false,
            waited: Cell::new(Duration::ZERO),
            window_waits: RefCell::default(),
        }
    }

    /// The pair as requests name it.
    pub(super) fn named_pair(&self) -> Option<u32> {
        self.group.is_shared().then_some(self.place)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.group.version() == SimHttpVersion::Http2
    }

    /// The head of a request of this pair, or of a response.
    pub(super) fn head(&self, request: Option<HttpRequestKind>, length: Option<u64>) -> HttpHead {
        HttpHead {
            request,
            pair: self.named_pair(),
            length,
            ends: length == Some(0),
        }
    }

    /// Waits until `wanted` finds what it looks for in the machine; `None` when the connection has ended before.
    pub(super) async fn until<R>(
        &self,
        what: &'static str,
        mut wanted: impl FnMut(&mut dyn HttpMachine) -> Option<R>,
    ) -> Result<Option<R>> {
        let end = &self.end;
        let step = || {
            end.read();
            let found = wanted(&mut **end.machine.borrow_mut());
            // What was taken may make room at the peer.
            end.write();
            match found {
                None if end.is_over() => Some(None),
                found => found.map(Some),
            }
        };
        self.context.until(what, step).await
    }

    /// Adds a wait for a window, before which so many bytes had been written to the connection.
    fn add_wait(&self, window: HttpWait, [began, ended]: [Instant; 2], written: u64) {
        let waited = self.waited.get().0 + ended.since(began).0;
        self.waited.set(Duration(waited));
        if self.context.is_traced() {
            let mut waits = self.window_waits.borrow_mut();
            waits.add(window, [began, ended], written);
        }
    }

    /// Waits until what is to be sent on that stream is written.
    pub(super) async fn hand_over(&self, stream: u32) -> Result<()> {
        let (end, context) = (&self.end, &self.context);
        let mut since: Option<(HttpWait, Instant, u64)> = None;
        let step = || {
            if end.machine.borrow().reads_ahead() {
                end.read();
            }
            let is_written = end.write();
            let (waits, written) = (end.waits_for(stream), end.wire.written());
            if let Some((window, began, before)) = since
                && (waits.is_none() || written > before)
            {
                // A window that was enlarged may be used up again at once: that is another wait.
                self.add_wait(window, [began, context.now()], before);
                since = None;
            }
            if since.is_none() {
                since = waits.map(|window| (window, context.now(), written));
            }
            match is_written && end.machine.borrow().is_sent(stream) {
                _ if end.is_over() => Some(false),
                true => Some(true),
                false => None,
            }
        };
        let what = "room in its send buffer, or in a window of HTTP/2";
        match context.until(what, step).await? {
            true => Ok(()),
            false => Err(self.broken("while data was in flight")),
        }
    }

    /// Records which bytes of TCP's stream a request or response of `bytes` bytes took that was written just now. On a connection that
    /// other pairs use too, frames of theirs lie between its own, so that nothing is recorded.
    pub(super) fn trace_frames(&self, begins: u64, bytes: u64) {
        let range = [begins, self.end.wire.written()];
        let waits = self.window_waits.take();
        self.context.trace(|line, at| {
            let unit = line.leaving_unit();
            waits.each(range[1], |window, wait| line.waited(unit, window, wait));
            if !self.group.is_shared() {
                line.framed(at, unit, range, bytes);
            }
        });
    }

    /// How long data waited for windows of HTTP/2 until now.
    pub(super) const fn waited(&self) -> Duration {
        self.waited.get()
    }

    pub(super) fn broken(&self, when: &str) -> Error {
        match self.end.wire.why_broken() {
            Some(why) => Error::measurement(format!("the connection was given up {when}: {why}"))
                .hint("a long outage of a line or a host ends a connection"),
            None => connection_vanished(when),
        }
    }

    /// Sends data units in the body of the open exchange. Returns how many, fewer when the limit was reached in between.
    pub(super) async fn send_units(&self, stream: u32, bytes: u64, times: u64) -> Result<u64> {
        let mut done = 0;
        while done < times {
            if times > 1 && self.context.job.flags.limit() {
                return Ok(done);
            }
            let batch = (TOGETHER / bytes.max(1)).max(1).min(times - done);
            let begins = self.end.wire.written();
            for _ in 0..batch {
                self.end.machine.borrow_mut().send(stream, bytes, false);
            }
            let units = self
                .context
                .trace(|line, at| line.handed(&[(at, batch)], bytes));
            self.hand_over(stream).await?;
            if let Some(units) = units {
                let range = [begins, self.end.wire.written()];
                let waits = self.window_waits.take();
                self.context.trace(|line, at| {
                    for (number, (unit, _)) in units.iter().enumerate() {
                        let frames = nth_share(range, number, units.len());
                        waits.each(frames[1], |window, wait| line.waited(*unit, window, wait));
                        if !self.group.is_shared() {
                            line.framed(at, *unit, frames, bytes);
                        }
                    }
                    line.all_left(at, &units, bytes);
                });
            }
            done += batch;
        }
        Ok(times)
    }

    /// Receives some bytes of a body; none at its end.
    async fn more(&self, stream: u32) -> Result<u64> {
        let wanted = |machine: &mut dyn HttpMachine| match machine.take(stream) {
            0 => machine.is_ended(stream).then_some(0),
            bytes => Some(bytes),
        };
        match self.until("data units", wanted).await? {
            Some(bytes) => Ok(bytes),
            None => Err(self.broken("before the exchange had ended")),
        }
    }

    /// Receives data units of the open exchange. Returns how many came before its body ended.
    pub(super) async fn receive_units(&mut self, bytes: u64, times: u64) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        let Some(mut open) = self.exchange else {
            return Ok(0);
        };
        let mut coming = Units::new(&self.context, bytes, times, Coming::Unit);
        let mut is_ended = false;
        while open.ahead < wanted && !is_ended {
            coming.are(open.ahead.min(wanted));
            let more = self.more(open.stream).await?;
            is_ended = more == 0;
            open.ahead += more;
        }
        coming.are(open.ahead.min(wanted));
        if open.ahead >= wanted {
            open.ahead -= wanted;
            self.exchange = Some(open);
            return Ok(times);
        }
        let rest = mem::take(&mut open.ahead);
        self.exchange = Some(open);
        if rest.is_multiple_of(bytes) {
            Ok(rest / bytes)
        } else {
            Err(Error::measurement(format!(
                "the body ended in the middle of a data unit: {rest} of {bytes} B had come"
            )))
        }
    }

    /// Receives a body to its end. Returns its bytes.
    pub(super) async fn whole_body(&self, stream: u32) -> Result<u64> {
        let mut come = 0;
        loop {
            match self.more(stream).await? {
                0 => return Ok(come),
                bytes => come += bytes,
            }
        }
    }

    /// Ends the body that this end sends in the open exchange.
    pub(super) async fn end_sending(&mut self) -> Result<()> {
        let Some(open) = self.exchange.as_mut().filter(|open| open.sends) else {
            return Ok(());
        };
        open.sends = false;
        let stream = open.stream;
        self.end.machine.borrow_mut().end(stream);
        self.hand_over(stream).await
    }

    /// Receives what is left of the other end's body, and drops the exchange. Returns its bytes.
    pub(super) async fn end_receiving(&mut self) -> Result<u64> {
        let Some(open) = self.exchange.take() else {
            return Ok(0);
        };
        let rest = self.whole_body(open.stream).await?;
        Ok(open.ahead + rest)
    }
}

/// The error of data that came where none was to come.
pub(super) fn more_data() -> Error {
    Error::measurement("the peer sent data after the last data unit")
}

/// The error of an operation of the other side; the roles of a procedure never call it.
pub(super) fn of_the_other_side() -> Error {
    Error::input("HTTP has this operation at the other side of a connection only")
}
