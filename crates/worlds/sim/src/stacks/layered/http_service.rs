//! The operations of the language on a connection of HTTP, as the live world carries them out: a call is a request with a body and its
//! response, a bulk transfer one request whose body or whose response's body carries the data units, and data units outside of both are in
//! the two bodies of one exchange.

use super::http_exchange::{SimHttp, more_data, of_the_other_side};
use crate::error::{Error, Result};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, ConnectionFacts, EndpointService};
use stackline_proto::http::{HttpMachine, HttpRequestKind};
use std::collections::BTreeMap;

impl SimHttp {
    fn is_initiator(&self) -> bool {
        self.side == PairSide::Initiator
    }

    /// Sees to it that an exchange is open; false when the client makes no more requests.
    async fn open_exchange(&mut self) -> Result<bool> {
        if self.exchange.is_some() {
            return Ok(true);
        }
        if self.is_initiator() {
            self.request_units(HttpRequestKind::Stream).await?;
            return Ok(true);
        }
        self.answer_units(HttpRequestKind::Stream).await
    }
}

impl EndpointService for SimHttp {
    async fn settle(&mut self) -> Result<()> {
        let wanted = |machine: &mut dyn HttpMachine| machine.is_settled().then_some(());
        match self.until("the peer's SETTINGS", wanted).await? {
            Some(()) => Ok(()),
            None => Err(self.broken("while it was opened")),
        }
    }

    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        if !self.open_exchange().await? {
            return Err(Error::measurement("the peer made no request for the data"));
        }
        match self.exchange {
            Some(open) if open.sends => self.send_units(open.stream, bytes, times).await,
            _ => Err(Error::input(
                "this direction of a bulk transfer carries no data",
            )),
        }
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        if self.exchange.is_none() && self.carried >= wanted {
            self.carried -= wanted;
            return Ok(times);
        }
        if !self.open_exchange().await? {
            return Ok(0);
        }
        self.receive_units(bytes, times).await
    }

    async fn call(&mut self, request: u64, response: u64, _since: Instant) -> Result<bool> {
        self.make_call(request, response).await.map(|()| true)
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        self.take_call(bytes).await
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.answer_call(bytes).await
    }

    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        if !self.is_initiator() {
            return Err(of_the_other_side());
        }
        self.request_bulk(direction).await
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        if self.is_initiator() {
            return Err(of_the_other_side());
        }
        self.answer_bulk(direction).await
    }

    async fn stop_bulk(&mut self, _: BulkDirection) -> Result<()> {
        if !self.is_initiator() {
            return Err(of_the_other_side());
        }
        self.finish_bulk().await
    }

    async fn await_stop_bulk(&mut self, _: BulkDirection) -> Result<()> {
        if self.is_initiator() {
            return Err(of_the_other_side());
        }
        self.confirm_bulk().await
    }

    async fn end_stream(&mut self) -> Result<()> {
        match self.exchange {
            Some(_) => self.end_sending().await,
            None if self.is_initiator() => self.make_no_more().await,
            None => Ok(()),
        }
    }

    async fn disconnect(mut self) -> Result<()> {
        if self.is_initiator() {
            return self.leave_connection().await;
        }
        // The client closes the connection, when it has everything.
        self.end_sending().await?;
        self.await_leave().await
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        if !self.is_initiator() {
            return self.await_leave().await;
        }
        self.end_request().await?;
        if self.carried > 0 {
            return Err(more_data());
        }
        self.make_no_more().await?;
        if !self.group.is_shared() {
            let never = |_: &mut dyn HttpMachine| None::<()>;
            self.until("the peer to disconnect", never).await?;
        }
        Ok(())
    }

    fn transport(&self) -> Option<TransportRecord> {
        if self.place > 0 {
            // The first pair of the group reports their connection.
            return None;
        }
        let mut record = self.end.wire.transport()?;
        // While data waits for a window of HTTP/2, TCP has none: its own account leaves that time out.
        let waited = self.waited().seconds();
        let add = |time: &mut Option<f64>| *time = time.map(|time| time + waited);
        add(&mut record.busy_s);
        add(&mut record.receive_window_limited_s);
        Some(record)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.end.wire.settings();
        if self.is_http2() {
            let windows = self.group.windows(self.side);
            let words = [
                ("window", format!("{} B", windows.stream)),
                ("connection_window", format!("{} B", windows.connection)),
            ];
            settings.extend(words.map(|(name, word)| (name.to_string(), word)));
        }
        settings
    }

    fn facts(&self) -> ConnectionFacts {
        ConnectionFacts {
            notes: self.end.wire.notes(),
            ..ConnectionFacts::default()
        }
    }
}
