//! The responder's side of HTTP: the server.

use super::http_exchange::{OpenHttpExchange, PIECE, SimHttp, more_data};
use crate::error::{Error, Result};
use crate::run_trace::{Coming, SimDepartureKind};
use crate::stream_units::Units;
use stackline_endpoint::BulkDirection;
use stackline_proto::http::{HttpArrival, HttpMachine, HttpRequestKind};

impl SimHttp {
    /// The next request of this pair; `None` when its initiator makes no more.
    async fn next_request(&mut self) -> Result<Option<HttpArrival>> {
        let (pair, join) = (self.named_pair(), self.join);
        if self.group.is_shared() && join.is_none() {
            return Ok(None);
        }
        let wanted = |machine: &mut dyn HttpMachine| match machine.accept(pair) {
            None if join.is_some_and(|join| machine.is_ended(join)) => Some(None),
            arrival => arrival.map(Some),
        };
        let arrival = self.until("a request", wanted).await?.flatten();
        if arrival.is_none()
            && let Some(join) = self.join.take()
        {
            self.answer_join(join);
        }
        Ok(arrival)
    }

    /// Answers the request with which the pair had joined, when it leaves.
    fn answer_join(&self, join: u32) {
        if self.end.is_over() {
            return;
        }
        let mut head = self.head(None, None);
        head.ends = true;
        let now = self.context.now();
        self.end.machine.borrow_mut().respond(join, head, now);
        self.end.write();
        self.end.machine.borrow_mut().forget(join);
    }

    /// The next request, which has to be of that kind.
    async fn next_of(&mut self, kind: HttpRequestKind) -> Result<Option<HttpArrival>> {
        match self.next_request().await? {
            Some(arrival) if arrival.kind != kind => Err(Error::measurement(format!(
                "the peer asked for {} where {} was expected",
                arrival.kind.path(),
                kind.path()
            ))),
            arrival => Ok(arrival),
        }
    }

    /// Awaits the request of an exchange that carries data units; false when there are no more.
    pub(super) async fn answer_units(&mut self, kind: HttpRequestKind) -> Result<bool> {
        let Some(arrival) = self.next_of(kind).await? else {
            return Ok(false);
        };
        let stream = arrival.stream;
        let sends = kind != HttpRequestKind::Put;
        self.exchange = Some(OpenHttpExchange {
            stream,
            sends,
            owes_answer: !sends,
            ahead: std::mem::take(&mut self.carried),
        });
        if sends {
            let (head, now) = (self.head(None, None), self.context.now());
            self.end.machine.borrow_mut().respond(stream, head, now);
            self.hand_over(stream).await?;
        }
        Ok(true)
    }

    /// Ends a stream of data units, as the client does, before another exchange.
    pub(super) async fn end_answer(&mut self) -> Result<()> {
        let Some(open) = self.exchange else {
            return Ok(());
        };
        let rest = self.whole_body(open.stream).await?;
        self.end_sending().await?;
        self.exchange = None;
        self.carried = open.ahead + rest;
        if !open.owes_answer {
            self.end.machine.borrow_mut().forget(open.stream);
        }
        Ok(())
    }

    pub(super) async fn take_call(&mut self, bytes: u64) -> Result<bool> {
        if !self.is_http2() {
            self.end_answer().await?;
        }
        Units::new(&self.context, bytes, 1, Coming::Call).are(0);
        let Some(arrival) = self.next_of(HttpRequestKind::Call).await? else {
            return Ok(false);
        };
        let came = self.whole_body(arrival.stream).await?;
        if came != bytes {
            return Err(Error::measurement(format!(
                "the peer asked with {came} B, but {bytes} B were expected"
            )));
        }
        Units::new(&self.context, bytes, 1, Coming::Call).are(bytes);
        self.called = Some(arrival.stream);
        Ok(true)
    }

    pub(super) async fn answer_call(&mut self, bytes: u64) -> Result<()> {
        let Some(stream) = self.called.take() else {
            return Err(Error::input("there is no call to reply to"));
        };
        let what = SimDepartureKind::Reply;
        self.context.trace(|line, at| line.leaves(at, what, bytes));
        let begins = self.end.wire.written();
        let is_streamed = self.is_http2() && bytes > PIECE;
        let length = (!is_streamed).then_some(bytes);
        let (head, now) = (self.head(None, length), self.context.now());
        {
            let mut machine = self.end.machine.borrow_mut();
            machine.respond(stream, head, now);
            machine.send(stream, bytes, !is_streamed);
        }
        self.hand_over(stream).await?;
        if is_streamed {
            self.end.machine.borrow_mut().end(stream);
            self.hand_over(stream).await?;
        }
        self.end.machine.borrow_mut().forget(stream);
        self.trace_frames(begins, bytes);
        self.context.trace(|line, at| line.left(at, what, bytes));
        Ok(())
    }

    pub(super) async fn answer_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        self.end_answer().await?;
        self.answer_units(match direction {
            BulkDirection::Get => HttpRequestKind::Get,
            BulkDirection::Put => HttpRequestKind::Put,
        })
        .await
    }

    /// Ends a bulk transfer: what was put is confirmed by the response.
    pub(super) async fn confirm_bulk(&mut self) -> Result<()> {
        let Some(open) = self.exchange else {
            return Err(Error::input("no bulk transfer is open"));
        };
        self.end_answer().await?;
        if std::mem::take(&mut self.carried) > 0 {
            return Err(more_data());
        }
        if open.owes_answer {
            // HTTP/1.1 says the length of an empty body, HTTP/2 ends the stream with the head.
            let length = (!self.is_http2()).then_some(0);
            let mut head = self.head(None, length);
            head.ends = true;
            let now = self.context.now();
            self.end
                .machine
                .borrow_mut()
                .respond(open.stream, head, now);
            self.hand_over(open.stream).await?;
            self.end.machine.borrow_mut().forget(open.stream);
        }
        Ok(())
    }

    /// Waits until the initiator of the pair leaves.
    pub(super) async fn await_leave(&mut self) -> Result<()> {
        if let Some(open) = self.exchange {
            // A stream of data units ends with the connection.
            self.end_sending().await?;
            let rest = match self.end.is_over() {
                true => 0,
                false => self.whole_body(open.stream).await?,
            };
            self.exchange = None;
            self.end.machine.borrow_mut().forget(open.stream);
            if open.ahead + rest > 0 {
                return Err(more_data());
            }
        }
        match self.next_request().await? {
            None => Ok(()),
            Some(_) => Err(Error::measurement(
                "the peer made a request after the last one",
            )),
        }
    }
}
