//! The responder's side of HTTP: the server. Requests are handed to the endpoint's procedure, which answers them when it gets there.

use super::body::{BodySender, IncomingBody, OutgoingBody};
use super::driver::{HttpDriver, HttpWire};
use super::opening::WINDOWS as INITIATOR_WINDOWS;
use super::style::{HttpStyle, RESPONDER_WINDOWS as WINDOWS, units_at_once};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits, of_the_other_side};
use crate::stacks::layered::wire::LayeredWire;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_events::scope;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// A request that has arrived, and where its response goes.
pub(super) struct ArrivedRequest {
    pub(super) request: Request<Incoming>,
    pub(super) answer: oneshot::Sender<Response<OutgoingBody>>,
}

/// The requests that have arrived for a pair.
enum ArrivedRequests {
    /// On a connection of its own.
    Own(Arc<Mutex<VecDeque<ArrivedRequest>>>),
    /// On a connection that several pairs share.
    Shared(Box<Http2PairRequests>),
}

/// What arrives for a pair that shares a connection.
pub(super) struct Http2PairRequests {
    requests: mpsc::Receiver<ArrivedRequest>,
    /// The request that lasts as long as the pair is on the connection; `None` once it has left.
    joined: Option<ArrivedRequest>,
}

impl Http2PairRequests {
    pub(super) const fn new(
        requests: mpsc::Receiver<ArrivedRequest>,
        joined: ArrivedRequest,
    ) -> Self {
        Self {
            requests,
            joined: Some(joined),
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<ArrivedRequest>> {
        if let Poll::Ready(next) = self.requests.poll_recv(context) {
            return Poll::Ready(next);
        }
        let Some(joined) = &mut self.joined else {
            return Poll::Ready(None);
        };
        loop {
            match Pin::new(joined.request.body_mut()).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(None | Some(Err(_))) => break,
            }
        }
        if let Some(joined) = self.joined.take() {
            // A client that has closed the connection needs no answer.
            let empty = OutgoingBody::whole(Vec::new(), None);
            let _ = joined.answer.send(Response::new(empty));
        }
        Poll::Ready(self.requests.try_recv().ok())
    }
}

impl ArrivedRequests {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<ArrivedRequest>> {
        match self {
            Self::Own(arrived) => {
                let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
                let next = arrived.pop_front();
                next.map_or(Poll::Pending, |next| Poll::Ready(Some(next)))
            }
            Self::Shared(pair) => pair.poll_next(context),
        }
    }
}

/// An exchange that carries data units.
struct OpenExchange {
    upload: IncomingBody,
    /// Where the response goes, until its head is sent.
    answer: Option<oneshot::Sender<Response<OutgoingBody>>>,
    /// The response's body, if it carries data units and has not ended.
    download: Option<BodySender>,
}

/// A connection.
pub(super) struct HttpResponder {
    style: HttpStyle,
    driver: HttpDriver,
    arrived: ArrivedRequests,
    /// Where the response to the call goes that was received last.
    called: Option<oneshot::Sender<Response<OutgoingBody>>>,
    exchange: Option<OpenExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
    /// The settings of what is below HTTP.
    below: BTreeMap<String, String>,
    /// Whether it reports the connection, which is so for one pair of those that share it.
    reports: bool,
}

/// A connection of the responder that is open.
pub(super) struct ServedHttp {
    pub(super) driver: HttpDriver,
    /// The settings of what is below HTTP, and its windows.
    pub(super) below: BTreeMap<String, String>,
}

/// The settings of what is below HTTP, and its windows.
pub(super) fn settings_below(
    style: HttpStyle,
    wire: &LayeredWire,
    stack: &Stack,
) -> BTreeMap<String, String> {
    let mut below = wire.settings();
    if style.is_http2() {
        below.extend(WINDOWS.or_written(stack).settings());
    }
    below
}

/// Serves HTTP over a wire: `service` gets the requests.
pub(super) fn serve<S, B>(
    style: HttpStyle,
    mut driver: HttpDriver,
    wire: LayeredWire,
    stack: &Stack,
    service: S,
) -> Result<ServedHttp>
where
    S: HttpService<Incoming, ResBody = OutgoingBody, Error = B> + Send + 'static,
    S::Future: Send + 'static,
    B: std::error::Error + Send + Sync + 'static,
{
    let below = settings_below(style, &wire, stack);
    let io = TokioIo::new(HttpWire::new(wire, &driver)?);
    if style.is_http2() {
        let mut builder = http2::Builder::new(driver.executor());
        let windows = WINDOWS.or_written(stack);
        builder
            .initial_stream_window_size(windows.stream)
            .initial_connection_window_size(windows.connection);
        if let Some(streams) = stack.number("streams") {
            // Each pair has a request that says that it is there, and one for its exchange.
            let most = u32::try_from(200 + 2 * streams).unwrap_or(u32::MAX);
            builder.max_concurrent_streams(most);
        }
        driver.adopt(builder.serve_connection(io, service));
    } else {
        driver.adopt(http1::Builder::new().serve_connection(io, service));
    }
    driver.flush()?;
    Ok(ServedHttp { driver, below })
}

impl HttpResponder {
    pub(super) fn accept(style: HttpStyle, wire: LayeredWire, stack: &Stack) -> Result<Self> {
        let driver = HttpDriver::new(wire.shared())?;
        let arrived = Arc::<Mutex<VecDeque<ArrivedRequest>>>::default();
        let arriving = Arc::clone(&arrived);
        let service = service_fn(move |request| {
            let (answer, answered) = oneshot::channel();
            let mut arriving = arriving.lock().unwrap_or_else(PoisonError::into_inner);
            arriving.push_back(ArrivedRequest { request, answer });
            answered
        });
        if style.is_http2() {
            scope::set_window(INITIATOR_WINDOWS.or_written(stack).first_used_up());
        }
        let served = serve(style, driver, wire, stack, service)?;
        Ok(Self::over(
            style,
            served,
            ArrivedRequests::Own(arrived),
            true,
        ))
    }

    /// The side of a pair that shares a connection, whose requests are handed to it.
    pub(super) fn sharing(
        style: HttpStyle,
        served: ServedHttp,
        requests: Http2PairRequests,
        reports: bool,
    ) -> Self {
        Self::over(
            style,
            served,
            ArrivedRequests::Shared(Box::new(requests)),
            reports,
        )
    }

    fn over(style: HttpStyle, served: ServedHttp, arrived: ArrivedRequests, reports: bool) -> Self {
        Self {
            style,
            driver: served.driver,
            arrived,
            called: None,
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
            below: served.below,
            reports,
        }
    }

    /// The next request; `None` when the client makes no more.
    fn next(&mut self) -> Result<Option<ArrivedRequest>> {
        let arrived = &mut self.arrived;
        let next = self
            .driver
            .until_end(|context| arrived.poll_next(context))?;
        let next = next.flatten();
        if next.is_none() {
            self.driver.check_end()?;
        }
        Ok(next)
    }

    /// The next request, which has to be of that kind; `None` when the client makes no more.
    fn next_of(&mut self, kind: HttpExchangeKind) -> Result<Option<ArrivedRequest>> {
        let Some(arrived) = self.next()? else {
            return Ok(None);
        };
        if self.style.kind_of(&arrived.request) == Some(kind) {
            return Ok(Some(arrived));
        }
        let path = arrived.request.uri().path();
        Err(Error::measurement(format!(
            "the peer asked for {path} where a {kind:?} was expected"
        )))
    }

    /// Ends a stream of data units, as the client does, before another exchange.
    fn end_exchange(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut open) = self.exchange.take() else {
            return Ok(());
        };
        self.carried = open.upload.end(&mut self.driver, buffers)?;
        match open.download {
            Some(download) => download.end(self.style.trailers(), &mut self.driver),
            None => Ok(()),
        }
    }

    /// Awaits the request of an exchange that carries data units; false when the client makes no more.
    fn open(&mut self, kind: HttpExchangeKind) -> Result<bool> {
        let Some(arrived) = self.next_of(kind)? else {
            return Ok(false);
        };
        let upload = IncomingBody::new(
            arrived.request.into_body(),
            self.style.is_grpc(),
            std::mem::take(&mut self.carried),
        );
        let mut exchange = OpenExchange {
            upload,
            answer: Some(arrived.answer),
            download: None,
        };
        if kind != HttpExchangeKind::Put {
            let (body, download) = OutgoingBody::streamed();
            exchange.download = Some(download);
            if let Some(answer) = exchange.answer.take() {
                self.answer(answer, body)?;
            }
        }
        self.exchange = Some(exchange);
        Ok(true)
    }

    /// The exchange that carries data units; the first operation that needs one awaits it. `None` when the client makes no more requests.
    fn exchange(&mut self) -> Result<Option<(&mut OpenExchange, &mut HttpDriver)>> {
        if self.exchange.is_none() && !self.open(HttpExchangeKind::Stream)? {
            return Ok(None);
        }
        Ok(self.exchange.as_mut().map(|open| (open, &mut self.driver)))
    }

    /// Sends the head of a response, and as much of its body as there is.
    fn answer(
        &mut self,
        answer: oneshot::Sender<Response<OutgoingBody>>,
        body: OutgoingBody,
    ) -> Result<()> {
        // A client that has left is noticed by the next operation.
        let _ = answer.send(self.style.response(body));
        self.driver.flush()
    }
}

impl LiveConnection for HttpResponder {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.driver.flush()?;
        self.driver.shared().settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        let mut done = 0;
        while done < times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let batch = units_at_once(bytes).min(times - done);
            let pieces = self.style.batch(&mut self.units, bytes, batch, buffers)?;
            let Some((open, driver)) = self.exchange()? else {
                return Err(Error::measurement("the peer made no request for the data"));
            };
            let Some(download) = &open.download else {
                return Err(Error::input("a bulk put carries no data to the initiator"));
            };
            download.send(pieces, driver)?;
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
        match self.exchange()? {
            None => Ok(0),
            Some((open, driver)) => open.upload.units(bytes, times, driver, buffers),
        }
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        if self.style == HttpStyle::Http1 {
            self.end_exchange(buffers)?;
        }
        let Some(arrived) = self.next_of(HttpExchangeKind::Call)? else {
            return Ok(false);
        };
        let mut body = IncomingBody::new(arrived.request.into_body(), self.style.is_grpc(), 0);
        let came = body.end(&mut self.driver, buffers)?;
        if came != bytes as u64 {
            return Err(Error::measurement(format!(
                "the peer asked with {came} B, but {bytes} B were expected"
            )));
        }
        self.called = Some(arrived.answer);
        Ok(true)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(answer) = self.called.take() else {
            return Err(Error::input("there is no call to reply to"));
        };
        let unit = self.units.next(bytes, buffers)?;
        let (pieces, trailers) = (self.style.pieces(unit), self.style.trailers());
        if !self.style.may_be_held_back(bytes) {
            return self.answer(answer, OutgoingBody::whole(pieces, trailers));
        }
        let (body, sender) = OutgoingBody::streamed();
        self.answer(answer, body)?;
        sender.send(pieces, &mut self.driver)?;
        sender.end(trailers, &mut self.driver)
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        self.end_exchange(buffers)?;
        self.open(direction.into())
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut open) = self.exchange.take() else {
            return Err(Error::input("no bulk transfer is open"));
        };
        let more = open.upload.end(&mut self.driver, buffers)?;
        if more > 0 {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        if let Some(download) = open.download {
            download.end(self.style.trailers(), &mut self.driver)?;
        }
        match open.answer {
            Some(answer) => {
                let body = OutgoingBody::whole(self.style.empty(), self.style.trailers());
                self.answer(answer, body)
            }
            None => Ok(()),
        }
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        let download = self.exchange.as_mut().and_then(|open| open.download.take());
        match download {
            Some(download) => download.end(self.style.trailers(), &mut self.driver),
            None => Ok(()),
        }
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // The client closes the connection, when it has everything.
        self.end_stream(buffers)?;
        match &self.arrived {
            ArrivedRequests::Own(_) => self.driver.until_closed(),
            ArrivedRequests::Shared(_) => self.next().map(drop),
        }
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // A stream of data units ends with the connection.
        if let Some(mut open) = self.exchange.take() {
            if let Some(download) = open.download.take() {
                download.end(self.style.trailers(), &mut self.driver)?;
            }
            if open.upload.end(&mut self.driver, buffers).unwrap_or(0) > 0 {
                return Err(Error::measurement(
                    "the peer sent data after the last data unit",
                ));
            }
        }
        match self.next()? {
            None => Ok(()),
            Some(_) => Err(Error::measurement(
                "the peer made a request after the last one",
            )),
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.reports
            .then(|| self.driver.shared().transport())
            .flatten()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.below.clone()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.driver.shared().addresses()
    }
}
