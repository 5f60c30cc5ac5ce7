//! `http3`: HTTP/3 (RFC 9114) of h3, on a QUIC connection of quinn. The exchanges are those of `http2`, each on a stream of its own.

use super::end::{QuicEnd, as_io};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::certificate::NAME;
use crate::stacks::contract::{LiveConnection, connection_vanished};
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits, of_the_other_side};
use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3_quinn::{BidiStream, OpenStreams};
use http::{Method, Request, Response, StatusCode, Uri};
use quinn::ConnectionError;
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_proto::quic;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;

pub(super) const TABLE: StackTable = StackTable {
    name: "http3",
    summary: "HTTP/3 (RFC 9114; h3) on QUIC (quinn) over UDP",
    mapping: ServiceMapping(
        "\
ConnectRequest -> QUIC's handshake until it completes here, the control stream with SETTINGS
AwaitConnectIndication -> the same, from the other side
DataRequest -> DATA frames of a stream POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers DATA frames of that stream
AwaitDataIndication -> from the stream until DATA of the unit's length has come
RPCCall -> HEADERS and DATA of POST /call on a stream of its own, from it until the response ends
RPCAwaitCallInd -> from the stream until the request ends
RPCReturn -> HEADERS and DATA
StartBulkGet -> HEADERS of GET /get
StartBulkPut -> HEADERS of POST /put
AwaitStartBulkGet, AwaitStartBulkPut -> HEADERS from a new stream
StopBulkGet -> FIN of the stream from the peer
AwaitStopBulkGet -> FIN of the stream
StopBulkPut -> FIN of the stream, the response from it
AwaitStopBulkPut -> FIN from the peer, the response
end of stream (time limit) -> FIN; after calls CONNECTION_CLOSE
DisconnectRequest -> CONNECTION_CLOSE
AwaitDisconnectIndication -> CONNECTION_CLOSE from the peer",
    ),
    ..quic::TABLE
};

type ClientStream = h3::client::RequestStream<BidiStream<Bytes>, Bytes>;
type RequestResolver = h3::server::RequestResolver<h3_quinn::Connection, Bytes>;
type ServerStream = h3::server::RequestStream<BidiStream<Bytes>, Bytes>;

/// What has come of a body.
#[derive(Default)]
struct Download {
    /// How many bytes were received that belong to later units.
    ahead: u64,
    ended: bool,
}

impl Download {
    /// Counts data units of `bytes` bytes, `times` times, as `more` brings their bytes: `None` at the end of the body.
    fn units(
        &mut self,
        bytes: usize,
        times: u64,
        mut more: impl FnMut() -> Result<Option<u64>>,
    ) -> Result<u64> {
        let wanted = (bytes as u64).saturating_mul(times);
        while self.ahead < wanted && !self.ended {
            self.count(more()?);
        }
        if self.ahead >= wanted {
            self.ahead -= wanted;
            return Ok(times);
        }
        let rest = std::mem::take(&mut self.ahead);
        if rest.is_multiple_of(bytes as u64) {
            Ok(rest / bytes as u64)
        } else {
            Err(connection_vanished("in the middle of a data unit"))
        }
    }

    /// Receives the end of the body. Returns how many bytes came before that belong to no unit.
    fn end(&mut self, mut more: impl FnMut() -> Result<Option<u64>>) -> Result<u64> {
        while !self.ended {
            self.count(more()?);
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    const fn count(&mut self, came: Option<u64>) {
        match came {
            Some(bytes) => self.ahead += bytes,
            None => self.ended = true,
        }
    }
}

/// Stores what has arrived, and returns how many bytes that were.
fn store<B: Buf>(
    end: &QuicEnd,
    data: Option<B>,
    buffers: &mut LiveThreadBuffers,
) -> Result<Option<u64>> {
    let Some(mut data) = data else {
        return Ok(None);
    };
    let mut came = 0;
    while data.has_remaining() {
        let chunk = data.chunk();
        buffers
            .store(chunk)
            .map_err(|e| error::io_error("writing the destination", &e))?;
        let bytes = chunk.len();
        came += bytes as u64;
        data.advance(bytes);
    }
    end.count(came);
    Ok(Some(came))
}

/// The error of a stream.
fn failed(end: &QuicEnd, error: &StreamError) -> Error {
    match end.connection.close_reason() {
        Some(reason) => end.failure("HTTP/3", &as_io(&reason)),
        None => Error::measurement(format!("HTTP/3 failed: {error}")),
    }
}

/// The initiator's exchange that carries data units.
struct ClientExchange {
    stream: ClientStream,
    /// Whether the request's body goes on.
    uploads: bool,
    /// Whether the response's head has come.
    has_head: bool,
    download: Download,
}

/// The initiator's side: the client.
pub(super) struct Http3Initiator {
    end: QuicEnd,
    /// `None` when no more requests are made.
    sender: Option<h3::client::SendRequest<OpenStreams, Bytes>>,
    exchange: Option<ClientExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
}

impl Http3Initiator {
    pub(super) fn connect(end: QuicEnd) -> Result<Self> {
        let quic = h3_quinn::Connection::new(end.connection.clone());
        let opened = end.run(async { h3::client::new(quic).await })?;
        let (mut connection, sender) =
            opened.map_err(|e| Error::measurement(format!("HTTP/3 failed: {e}")))?;
        end.runtime.spawn(async move {
            let _ = poll_fn(|context| connection.poll_close(context)).await;
        });
        end.runtime.push();
        Ok(Self {
            end,
            sender: Some(sender),
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
        })
    }

    fn request(&mut self, kind: HttpExchangeKind) -> Result<ClientStream> {
        let Some(sender) = &mut self.sender else {
            return Err(Error::input(
                "HTTP makes no request after the end of its stream",
            ));
        };
        let mut request = Request::new(());
        if kind != HttpExchangeKind::Get {
            *request.method_mut() = Method::POST;
        }
        let whole = format!("https://{}{}", NAME, kind.path());
        *request.uri_mut() = whole.parse::<Uri>().unwrap_or_default();
        let sent = self.end.run(sender.send_request(request))?;
        sent.map_err(|e| failed(&self.end, &e))
    }

    fn open(&mut self, kind: HttpExchangeKind) -> Result<()> {
        let mut stream = self.request(kind)?;
        let uploads = kind != HttpExchangeKind::Get;
        if !uploads {
            let ended = self.end.run(stream.finish())?;
            ended.map_err(|e| failed(&self.end, &e))?;
        }
        self.end.runtime.push();
        self.exchange = Some(ClientExchange {
            stream,
            uploads,
            has_head: false,
            download: Download {
                ahead: std::mem::take(&mut self.carried),
                ended: false,
            },
        });
        Ok(())
    }

    /// The exchange that carries data units; the first that needs one opens it.
    fn exchange(&mut self) -> Result<(&mut ClientExchange, &QuicEnd)> {
        if self.exchange.is_none() {
            self.open(HttpExchangeKind::Stream)?;
        }
        match &mut self.exchange {
            Some(open) => Ok((open, &self.end)),
            None => Err(Error::input("no exchange is open")),
        }
    }

    /// The exchange, with its response's head.
    fn answered(&mut self) -> Result<(&mut ClientExchange, &QuicEnd)> {
        let (open, end) = self.exchange()?;
        if !open.has_head {
            await_head(end, &mut open.stream)?;
            open.has_head = true;
        }
        Ok((open, end))
    }

    /// Ends the request's body.
    fn end_upload(&mut self) -> Result<()> {
        if let Some(open) = self.exchange.as_mut().filter(|open| open.uploads) {
            open.uploads = false;
            let ended = self.end.run(open.stream.finish())?;
            ended.map_err(|e| failed(&self.end, &e))?;
            self.end.runtime.push();
        }
        Ok(())
    }
}

fn await_head(end: &QuicEnd, stream: &mut ClientStream) -> Result<()> {
    let head = end
        .run(stream.recv_response())?
        .map_err(|e| failed(end, &e))?;
    if head.status() == StatusCode::OK {
        return Ok(());
    }
    let status = head.status();
    Err(Error::measurement(format!(
        "the peer answered with {status}"
    )))
}

/// More of a response's body.
fn more_of_response(
    end: &QuicEnd,
    stream: &mut ClientStream,
    buffers: &mut LiveThreadBuffers,
) -> Result<Option<u64>> {
    let data = end.run(stream.recv_data())?;
    store(end, data.map_err(|e| failed(end, &e))?, buffers)
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

impl LiveConnection for Http3Initiator {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.end.settle()
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let unit = self.units.next(request, buffers)?;
        let mut stream = self.request(HttpExchangeKind::Call)?;
        let sent = self.end.run(async {
            stream.send_data(unit).await?;
            stream.finish().await
        })?;
        sent.map_err(|e| failed(&self.end, &e))?;
        await_head(&self.end, &mut stream)?;
        let mut download = Download::default();
        let came = download.end(|| more_of_response(&self.end, &mut stream, buffers))?;
        if came != response as u64 {
            return Err(Error::measurement(format!(
                "the peer answered with {came} B, but {response} B were expected"
            )));
        }
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        self.exchange()?;
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            let (open, end) = self.exchange()?;
            if !open.uploads {
                return Err(Error::input("a bulk get carries no data to the responder"));
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
        let (open, end) = self.answered()?;
        let ClientExchange {
            stream, download, ..
        } = open;
        download.units(bytes, times, || more_of_response(end, stream, buffers))
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        if self.exchange.is_some() {
            // A stream of data units ends before another exchange that carries some.
            self.end_upload()?;
            let (open, end) = self.answered()?;
            let ClientExchange {
                stream, download, ..
            } = open;
            self.carried = download.end(|| more_of_response(end, stream, buffers))?;
            self.exchange = None;
        }
        self.open(direction.into())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.end_upload()?;
        let (open, end) = self.answered()?;
        let ClientExchange {
            stream, download, ..
        } = open;
        let more = download.end(|| more_of_response(end, stream, buffers))?;
        self.exchange = None;
        if more > 0 {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        if self.exchange.is_some() {
            return self.end_upload();
        }
        self.sender = None;
        self.end.close();
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.exchange.is_some() {
            // What was sent last may have to be sent again: the response, if only its end, says that it has arrived.
            self.end_upload()?;
            let (open, end) = self.answered()?;
            let ClientExchange {
                stream, download, ..
            } = open;
            download.end(|| more_of_response(end, stream, buffers))?;
        }
        self.sender = None;
        self.end.close();
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
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

/// The responder's exchange that carries data units.
struct ServerExchange {
    kind: HttpExchangeKind,
    stream: ServerStream,
    /// Whether the response's body goes on.
    downloads: bool,
    upload: Download,
}

/// The responder's side: the server.
pub(super) struct Http3Responder {
    end: QuicEnd,
    /// `None` if the client has closed the connection before anything was said.
    server: Option<h3::server::Connection<h3_quinn::Connection, Bytes>>,
    /// The call that was received last.
    called: Option<ServerStream>,
    exchange: Option<ServerExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
}

impl Http3Responder {
    pub(super) fn accept(end: QuicEnd) -> Result<Self> {
        let quic = h3_quinn::Connection::new(end.connection.clone());
        let opened = end.run(async { h3::server::Connection::new(quic).await })?;
        let closed = matches!(
            end.connection.close_reason(),
            Some(ConnectionError::ApplicationClosed(_))
        );
        let server = match opened {
            Err(_) if closed => None,
            opened => Some(opened.map_err(|e| Error::measurement(format!("HTTP/3 failed: {e}")))?),
        };
        end.runtime.push();
        Ok(Self {
            end,
            server,
            called: None,
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
        })
    }

    /// The next request; `None` when the client makes no more.
    fn next(&mut self) -> Result<Option<RequestResolver>> {
        let Some(server) = &mut self.server else {
            return Ok(None);
        };
        match (
            self.end.run(server.accept())?,
            self.end.connection.close_reason(),
        ) {
            (Ok(next), _) => Ok(next),
            (Err(_), Some(ConnectionError::ApplicationClosed(_))) => Ok(None),
            (Err(_), Some(reason)) => Err(self.end.failure("HTTP/3", &as_io(&reason))),
            (Err(error), None) => Err(Error::measurement(format!("HTTP/3 failed: {error}"))),
        }
    }

    /// The next request, which has to be of that kind; `None` when the client makes no more.
    fn next_of(&mut self, kind: HttpExchangeKind) -> Result<Option<ServerStream>> {
        let Some(resolver) = self.next()? else {
            return Ok(None);
        };
        let resolved = self.end.run(resolver.resolve_request())?;
        let (request, stream) = resolved.map_err(|e| failed(&self.end, &e))?;
        if request.uri().path() == kind.path() {
            return Ok(Some(stream));
        }
        let path = request.uri().path();
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
            upload: Download {
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
        let mut upload = Download::default();
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
