//! The initiator's side of HTTP: the client.

use super::body::{BodySender, IncomingBody, OutgoingBody};
use super::driver::HttpDriver;
use super::opening::{Http2Sender, OpenedHttp, WINDOWS, open_http1, open_http2};
use super::shared_client::SharedHttpUse;
use super::style::{HttpStyle, RESPONDER_WINDOWS, units_at_once};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, PAIR_FIELD, SharedUnits, of_the_other_side};
use crate::stacks::layered::wire::LayeredWire;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderValue;
use hyper::{Request, Response};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_events::{recorder, scope};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

type ResponseFuture = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// What requests are handed to.
enum RequestSender {
    Http1(http1::SendRequest<OutgoingBody>),
    Http2(Http2Sender),
}

impl RequestSender {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        match self {
            Self::Http1(sender) => sender.poll_ready(context),
            Self::Http2(sender) => sender.poll_ready(context),
        }
    }

    fn send(&mut self, request: Request<OutgoingBody>) -> ResponseFuture {
        match self {
            Self::Http1(sender) => Box::pin(sender.send_request(request)),
            Self::Http2(sender) => Box::pin(sender.send_request(request)),
        }
    }
}

/// An exchange that is open.
struct OpenExchange {
    /// The request's body, if it carries data units and has not ended.
    upload: Option<BodySender>,
    /// The response, until its head has come.
    response: Option<ResponseFuture>,
    download: Option<IncomingBody>,
}

/// A connection.
pub(super) struct HttpInitiator {
    style: HttpStyle,
    driver: HttpDriver,
    /// `None` when no more requests are made.
    sender: Option<RequestSender>,
    exchange: Option<OpenExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
    is_over_tls: bool,
    /// The settings of what is below HTTP.
    below: BTreeMap<String, String>,
    /// Its place on a connection that several pairs share.
    place: Option<SharedHttpPlace>,
}

/// The place of a pair of the initiator on a connection that it shares.
pub(super) struct SharedHttpPlace {
    /// Its number in its group.
    member: u16,
    /// The request that lasts as long as the pair is on the connection, and its response.
    joined: Option<(BodySender, ResponseFuture)>,
    usage: SharedHttpUse,
}

impl HttpInitiator {
    pub(super) fn connect(style: HttpStyle, mut wire: LayeredWire, stack: &Stack) -> Result<Self> {
        // HTTP/1.1 sends nothing of its own when it connects, and the responder waits for the token.
        let introduced = wire.flush();
        introduced.map_err(|e| wire.shared().failure("send", &e))?;
        let driver = HttpDriver::new(wire.shared())?;
        Ok(if style.is_http2() {
            scope::set_window(RESPONDER_WINDOWS.or_written(stack).first_used_up());
            let windows = WINDOWS.or_written(stack);
            let opened = open_http2(driver, wire, Some(windows))?;
            Self::over(style, opened, RequestSender::Http2, None)
        } else {
            let opened = open_http1(driver, wire)?;
            Self::over(style, opened, RequestSender::Http1, None)
        })
    }

    /// The side of a pair that shares a connection of HTTP/2.
    pub(super) fn sharing(
        style: HttpStyle,
        opened: OpenedHttp<Http2Sender>,
        member: u16,
        usage: SharedHttpUse,
    ) -> Result<Self> {
        let place = SharedHttpPlace {
            member,
            joined: None,
            usage,
        };
        let mut pair = Self::over(style, opened, RequestSender::Http2, Some(place));
        let (body, upload) = OutgoingBody::streamed();
        let response = pair.request(HttpExchangeKind::Join, body)?;
        pair.driver.flush()?;
        if let Some(place) = &mut pair.place {
            place.joined = Some((upload, response));
        }
        Ok(pair)
    }

    fn over<S>(
        style: HttpStyle,
        opened: OpenedHttp<S>,
        sender: fn(S) -> RequestSender,
        place: Option<SharedHttpPlace>,
    ) -> Self {
        Self {
            style,
            driver: opened.driver,
            sender: Some(sender(opened.sender)),
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
            is_over_tls: opened.is_over_tls,
            below: opened.below,
            place,
        }
    }

    /// Makes no more requests.
    fn leave(&mut self) {
        self.sender = None;
        if let Some(place) = &mut self.place {
            if let Some((upload, response)) = place.joined.take() {
                let _ = upload.end(None, &mut self.driver);
                self.driver.leave_to_runtime(response);
            }
            place.usage.leave();
        }
    }

    /// Makes a request. Returns its response, which is still to come.
    fn request(&mut self, kind: HttpExchangeKind, body: OutgoingBody) -> Result<ResponseFuture> {
        let Some(sender) = &mut self.sender else {
            return Err(Error::input(
                "HTTP makes no request after the end of its stream",
            ));
        };
        let ready = self.driver.until(|context| sender.poll_ready(context))?;
        ready.map_err(|e| self.driver.failure(&e))?;
        let mut request = self.style.request(kind, self.is_over_tls, body);
        if let Some(place) = &self.place {
            let pair = HeaderValue::from(place.member);
            request.headers_mut().insert(PAIR_FIELD, pair);
        }
        Ok(sender.send(request))
    }

    /// Ends a stream of data units before another exchange.
    fn end_exchange(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.exchange.is_none() {
            return Ok(());
        }
        self.end_upload()?;
        let (download, driver) = self.download()?;
        self.carried = download.end(driver, buffers)?;
        self.exchange = None;
        Ok(())
    }

    /// Ends the request's body.
    fn end_upload(&mut self) -> Result<()> {
        match self.exchange.as_mut().and_then(|open| open.upload.take()) {
            Some(upload) => upload.end(None, &mut self.driver),
            None => Ok(()),
        }
    }

    fn open(&mut self, kind: HttpExchangeKind) -> Result<()> {
        let (body, upload) = match kind {
            HttpExchangeKind::Get => (OutgoingBody::whole(self.style.empty(), None), None),
            _ => {
                let (body, upload) = OutgoingBody::streamed();
                (body, Some(upload))
            }
        };
        let response = self.request(kind, body)?;
        self.driver.flush()?;
        self.exchange = Some(OpenExchange {
            upload,
            response: Some(response),
            download: None,
        });
        Ok(())
    }

    /// The exchange that carries data units; the first that needs one opens it.
    fn exchange(&mut self) -> Result<&mut OpenExchange> {
        if self.exchange.is_none() {
            self.open(HttpExchangeKind::Stream)?;
        }
        self.exchange
            .as_mut()
            .ok_or_else(|| Error::input("no exchange is open"))
    }

    /// Awaits the response's head.
    fn head(
        style: HttpStyle,
        driver: &mut HttpDriver,
        mut response: ResponseFuture,
        ahead: u64,
    ) -> Result<IncomingBody> {
        let head = driver.until(|context| response.as_mut().poll(context))?;
        let head = head.map_err(|e| driver.failure(&e))?;
        style.check(&head)?;
        Ok(IncomingBody::new(head.into_body(), style.is_grpc(), ahead))
    }

    /// The response's body, whose head is awaited if it has not come.
    fn download(&mut self) -> Result<(&mut IncomingBody, &mut HttpDriver)> {
        self.exchange()?;
        let Self {
            style,
            driver,
            exchange: Some(exchange),
            carried,
            ..
        } = self
        else {
            return Err(Error::input("no exchange is open"));
        };
        if let Some(response) = exchange.response.take() {
            exchange.download = Some(Self::head(
                *style,
                driver,
                response,
                std::mem::take(carried),
            )?);
        }
        match &mut exchange.download {
            Some(download) => Ok((download, driver)),
            None => Err(Error::measurement("the response has failed before")),
        }
    }
}

impl LiveConnection for HttpInitiator {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.driver.flush()?;
        self.driver.shared().settle()
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        if self.style == HttpStyle::Http1 {
            // It carries one exchange at a time.
            self.end_exchange(buffers)?;
        }
        let unit = self.units.next(request, buffers)?;
        let body = OutgoingBody::whole(self.style.pieces(unit), None);
        let sent = recorder::is_recording().then(|| body.watch());
        let answer = self.request(HttpExchangeKind::Call, body)?;
        if let Some(sent) = sent {
            // What is sent while the answer is awaited, such as the acknowledgement of settings, is not of the unit.
            self.driver.flush()?;
            if sent.is_taken() {
                scope::unit_framed();
            }
        }
        let mut body = Self::head(self.style, &mut self.driver, answer, 0)?;
        // The answer follows the whole request.
        scope::unit_framed();
        let came = body.end(&mut self.driver, buffers)?;
        body.check_status()?;
        if came != response as u64 {
            return Err(Error::measurement(format!(
                "the peer answered with {came} B, but {response} B were expected"
            )));
        }
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        self.exchange()?;
        let mut done = 0;
        while done < times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let batch = units_at_once(bytes).min(times - done);
            let pieces = self.style.batch(&mut self.units, bytes, batch, buffers)?;
            let upload = self.exchange.as_ref().and_then(|open| open.upload.as_ref());
            let Some(upload) = upload else {
                return Err(Error::input("a bulk get carries no data to the responder"));
            };
            upload.send(pieces, &mut self.driver)?;
            done += batch;
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
        let (download, driver) = self.download()?;
        download.units(bytes, times, driver, buffers)
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.end_exchange(buffers)?;
        self.open(direction.into())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.end_upload()?;
        let (download, driver) = self.download()?;
        let more = download.end(driver, buffers)?;
        download.check_status()?;
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
        self.leave();
        self.driver.flush()
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // The end of the response says that everything has arrived. Closing before would reset the connection when the response comes, and
        // what was sent last would be lost.
        self.end_exchange(buffers)?;
        self.leave();
        self.driver.flush()
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.end_exchange(buffers)?;
        if self.carried > 0 {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        self.leave();
        if self.place.is_some() {
            // The others may go on.
            return self.driver.flush();
        }
        self.driver.until_closed()
    }

    fn transport(&self) -> Option<TransportRecord> {
        if self.place.as_ref().is_some_and(|place| place.member > 0) {
            // The first pair of the group reports their connection.
            return None;
        }
        self.driver.shared().transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.below.clone()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.driver.shared().addresses()
    }
}
