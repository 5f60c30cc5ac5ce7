//! The responder's side of HTTP/3: the server.

use super::pair_requests::{Http3PairRequests, RoutedRequest, ServerStream};
use super::{Http3BodyCount, failed, store};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits, of_the_other_side};
use crate::stacks::quic::end::{QuicEnd, as_io};
use bytes::Bytes;
use http::Response;
use quinn::ConnectionError;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The responder's exchange that carries data units.
struct ServerExchange {
    kind: HttpExchangeKind,
    stream: ServerStream,
    /// Whether the response's body goes on.
    downloads: bool,
    upload: Http3BodyCount,
}

/// Where requests come from.
enum RequestSource {
    /// A connection of the pair's own.
    Own(Box<h3::server::Connection<h3_quinn::Connection, Bytes>>),
    /// A connection that several pairs share.
    Shared(Box<Http3PairRequests>),
    /// Nowhere: the client has closed the connection before anything was said.
    Closed,
}

/// The responder's side: the server.
pub(crate) struct Http3Responder {
    end: QuicEnd,
    source: RequestSource,
    /// The call that was received last.
    called: Option<ServerStream>,
    exchange: Option<ServerExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
}

impl Http3Responder {
    pub(crate) fn accept(end: QuicEnd) -> Result<Self> {
        let quic = h3_quinn::Connection::new(end.connection.clone());
        let opened = end.run(async { h3::server::Connection::new(quic).await })?;
        let closed = matches!(
            end.connection.close_reason(),
            Some(ConnectionError::ApplicationClosed(_))
        );
        let source = match opened {
            Err(_) if closed => RequestSource::Closed,
            opened => RequestSource::Own(Box::new(
                opened.map_err(|e| Error::measurement(format!("HTTP/3 failed: {e}")))?,
            )),
        };
        end.runtime.push();
        Ok(Self::over(end, source))
    }

    /// The side of a pair whose requests are handed to it.
    pub(super) fn routed(end: QuicEnd, requests: Http3PairRequests) -> Self {
        Self::over(end, RequestSource::Shared(Box::new(requests)))
    }

    fn over(end: QuicEnd, source: RequestSource) -> Self {
        Self {
            end,
            source,
            called: None,
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
        }
    }

    /// The next request; `None` when the client makes no more.
    fn next(&mut self) -> Result<Option<RoutedRequest>> {
        let next = match &mut self.source {
            RequestSource::Closed => return Ok(None),
            RequestSource::Shared(requests) => {
                let next = self.end.run(requests.next())?.transpose();
                return next.map_err(|e| self.end.failure("HTTP/3", &as_io(&e)));
            }
            RequestSource::Own(server) => match self.end.run(server.accept())? {
                Ok(Some(resolver)) => {
                    let resolved = self.end.run(resolver.resolve_request())?;
                    Some(resolved.map_err(|e| failed(&self.end, &e)))
                }
                Ok(None) => None,
                Err(_) if self.end.connection.close_reason().is_some() => None,
                Err(error) => {
                    return Err(Error::measurement(format!("HTTP/3 failed: {error}")));
                }
            }
            .map(|resolved| {
                let (request, stream) = resolved?;
                let path = request.uri().path().to_string();
                Ok(RoutedRequest { path, stream })
            }),
        };
        match (next, self.end.connection.close_reason()) {
            (Some(next), _) => next.map(Some),
            (None, None | Some(ConnectionError::ApplicationClosed(_))) => Ok(None),
            (None, Some(reason)) => Err(self.end.failure("HTTP/3", &as_io(&reason))),
        }
    }

    /// The next request, which has to be of that kind; `None` when the client makes no more.
    fn next_of(&mut self, kind: HttpExchangeKind) -> Result<Option<ServerStream>> {
        let Some(RoutedRequest { path, stream }) = self.next()? else {
            return Ok(None);
        };
        if path == kind.path() {
            return Ok(Some(stream));
        }
        Err(Error::measurement(format!(
            "the peer asked for {path} where {} was expected",
            kind.path()
        )))
    }

    /// Awaits the request of an exchange that carries data units; false when the client makes no more.
    fn open(&mut self, kind: HttpExchangeKind) -> Result<bool> {
        let Some(mut stream) = self.next_of(kind)? else {
            return Ok(false);
        };
        let downloads = kind != HttpExchangeKind::Put;
        if downloads {
            self.answer(&mut stream)?;
        }
        self.exchange = Some(ServerExchange {
            kind,
            stream,
            downloads,
            upload: Http3BodyCount {
                ahead: std::mem::take(&mut self.carried),
                ended: false,
            },
        });
        Ok(true)
    }

    fn answer(&self, stream: &mut ServerStream) -> Result<()> {
        let sent = self.end.run(stream.send_response(Response::new(())))?;
        sent.map_err(|e| failed(&self.end, &e))?;
        self.end.runtime.push();
        Ok(())
    }

    /// The exchange that carries data units; the first operation that needs one awaits it. `None` when the client makes no more requests.
    fn exchange(&mut self) -> Result<Option<(&mut ServerExchange, &QuicEnd)>> {
        if self.exchange.is_none() && !self.open(HttpExchangeKind::Stream)? {
            return Ok(None);
        }
        Ok(self.exchange.as_mut().map(|open| (open, &self.end)))
    }

    /// Ends the response's body.
    fn end_download(end: &QuicEnd, open: &mut ServerExchange) -> Result<()> {
        if std::mem::take(&mut open.downloads) {
            let ended = end.run(open.stream.finish())?;
            ended.map_err(|e| failed(end, &e))?;
            end.runtime.push();
        }
        Ok(())
    }
}

/// More of a request's body.
fn more_of_request(
    end: &QuicEnd,
    stream: &mut ServerStream,
    buffers: &mut LiveThreadBuffers,
) -> Result<Option<u64>> {
    let data = end.run(stream.recv_data())?;
    store(end, data.map_err(|e| failed(end, &e))?, buffers)
}

impl LiveConnection for Http3Responder {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.end.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            let Some((open, end)) = self.exchange()? else {
                return Err(Error::measurement("the peer made no request for the data"));
            };
            if !open.downloads {
                return Err(Error::input("a bulk put carries no data to the initiator"));
            }
            let sent = end.run(open.stream.send_data(unit))?;
            sent.map_err(|e| failed(end, &e))?;
            end.runtime.push();
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let wanted = (bytes as u64).saturating_mul(times);
        if self.exchange.is_none() && self.carried >= wanted {
            self.carried -= wanted;
            return Ok(times);
        }
        let Some((open, end)) = self.exchange()? else {
            return Ok(0);
        };
        let ServerExchange { stream, upload, .. } = open;
        upload.units(bytes, times, || more_of_request(end, stream, buffers))
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        let Some(mut stream) = self.next_of(HttpExchangeKind::Call)? else {
            return Ok(false);
        };
        let mut upload = Http3BodyCount::default();
        let came = upload.end(|| more_of_request(&self.end, &mut stream, buffers))?;
        if came != bytes as u64 {
            return Err(Error::measurement(format!(
                "the peer asked with {came} B, but {bytes} B were expected"
            )));
        }
        self.called = Some(stream);
        Ok(true)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut stream) = self.called.take() else {
            return Err(Error::input("there is no call to reply to"));
        };
        let unit = self.units.next(bytes, buffers)?;
        let sent = self.end.run(async {
            stream.send_response(Response::new(())).await?;
            stream.send_data(unit).await?;
            stream.finish().await
        })?;
        sent.map_err(|e| failed(&self.end, &e))?;
        self.end.runtime.push();
        Ok(())
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        if let Some(mut open) = self.exchange.take() {
            let ServerExchange { stream, upload, .. } = &mut open;
            self.carried = upload.end(|| more_of_request(&self.end, stream, buffers))?;
            Self::end_download(&self.end, &mut open)?;
        }
        self.open(direction.into())
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut open) = self.exchange.take() else {
            return Err(Error::input("no bulk transfer is open"));
        };
        let ServerExchange { stream, upload, .. } = &mut open;
        let more = upload.end(|| more_of_request(&self.end, stream, buffers))?;
        if more > 0 {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        if open.kind == HttpExchangeKind::Put {
            self.answer(&mut open.stream)?;
            open.downloads = true;
        }
        Self::end_download(&self.end, &mut open)
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        match &mut self.exchange {
            Some(open) => Self::end_download(&self.end, open),
            None => Ok(()),
        }
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.end_stream(buffers)
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // A stream of data units ends with the connection.
        if let Some(mut open) = self.exchange.take() {
            Self::end_download(&self.end, &mut open)?;
            let ServerExchange { stream, upload, .. } = &mut open;
            let more = upload.end(|| more_of_request(&self.end, stream, buffers));
            if more.unwrap_or(0) > 0 {
                return Err(Error::measurement(
                    "the peer sent data after the last data unit",
                ));
            }
        }
        match self.next()? {
            Some(_) => Err(Error::measurement(
                "the peer made a request after the last one",
            )),
            None => Ok(()),
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.end.transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.end.settings()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.end.addresses()
    }
}
