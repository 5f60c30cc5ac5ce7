//! The initiator's side of HTTP: the client.

use super::http_exchange::{OpenHttpExchange, SimHttp, more_data};
use crate::error::{Error, Result};
use crate::run_trace::{Coming, SimDepartureKind};
use stackline_endpoint::BulkDirection;
use stackline_proto::http::{HttpHead, HttpRequestKind};

impl SimHttp {
    /// Opens an exchange that carries data units.
    pub(super) async fn request_units(&mut self, kind: HttpRequestKind) -> Result<()> {
        let sends = kind != HttpRequestKind::Get;
        let head = HttpHead {
            ends: !sends,
            ..self.head(Some(kind), None)
        };
        let stream = self.end.machine.borrow_mut().request(head);
        self.exchange = Some(OpenHttpExchange {
            stream,
            sends,
            owes_answer: false,
            ahead: std::mem::take(&mut self.carried),
        });
        self.hand_over(stream).await
    }

    /// Ends a stream of data units before another exchange.
    pub(super) async fn end_request(&mut self) -> Result<()> {
        let Some(open) = self.exchange else {
            return Ok(());
        };
        self.end_sending().await?;
        self.carried = self.end_receiving().await?;
        self.end.machine.borrow_mut().forget(open.stream);
        Ok(())
    }

    pub(super) async fn make_call(&mut self, request: u64, response: u64) -> Result<()> {
        if !self.is_http2() {
            // It carries one exchange at a time.
            self.end_request().await?;
        }
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Call, request));
        let begins = self.end.wire.written();
        let head = self.head(Some(HttpRequestKind::Call), Some(request));
        let stream = self.end.machine.borrow_mut().request(head);
        self.end.machine.borrow_mut().send(stream, request, true);
        self.hand_over(stream).await?;
        self.trace_frames(begins, request);
        let came = self.whole_body(stream).await?;
        self.end.machine.borrow_mut().forget(stream);
        if came != response {
            return Err(Error::measurement(format!(
                "the peer answered with {came} B, but {response} B were expected"
            )));
        }
        self.context
            .trace(|line, at| line.comes(at, Coming::Response, response, None));
        Ok(())
    }

    pub(super) async fn request_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.end_request().await?;
        self.request_units(match direction {
            BulkDirection::Get => HttpRequestKind::Get,
            BulkDirection::Put => HttpRequestKind::Put,
        })
        .await
    }

    /// Ends a bulk transfer: the end of the response says that everything has arrived.
    pub(super) async fn finish_bulk(&mut self) -> Result<()> {
        self.end_request().await?;
        match std::mem::take(&mut self.carried) {
            0 => Ok(()),
            _ => Err(more_data()),
        }
    }

    /// Joins a connection that other pairs use too.
    pub(super) async fn join(&mut self) -> Result<()> {
        if self.group.is_shared() {
            let head = self.head(Some(HttpRequestKind::Join), None);
            let stream = self.end.machine.borrow_mut().request(head);
            self.join = Some(stream);
            self.hand_over(stream).await?;
        }
        Ok(())
    }

    /// No more requests are made: a pair that shares its connection ends the request with which it has joined, any other one closes its half.
    pub(super) async fn make_no_more(&mut self) -> Result<()> {
        if !self.group.is_shared() {
            self.end.finish();
        } else if let Some(stream) = self.join.take() {
            self.end.machine.borrow_mut().end(stream);
            self.hand_over(stream).await?;
            self.end.machine.borrow_mut().forget(stream);
        }
        Ok(())
    }

    /// Leaves the connection; the last pair closes it.
    pub(super) async fn leave_connection(&mut self) -> Result<()> {
        self.end_request().await?;
        if self.group.is_shared() {
            self.make_no_more().await?;
        }
        self.is_gone = true;
        if self.group.leave(self.side, &self.end, &self.context) {
            self.end.finish();
        }
        Ok(())
    }
}
