//! The responder's side of HTTP: the server. Requests are handed to the endpoint's procedure, which answers them when it gets there.

use super::body::{BodySender, IncomingBody, OutgoingBody};
use super::driver::{HttpDriver, HttpWire};
use super::style::{HttpStyle, HttpWindows, units_at_once};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits, of_the_other_side};
use crate::stacks::layered::wire::LayeredWire;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use tokio::sync::oneshot;

/// A request that has arrived, and where its response goes.
struct ArrivedRequest {
    request: Request<Incoming>,
    answer: oneshot::Sender<Response<OutgoingBody>>,
}

type ArrivedRequests = Arc<Mutex<VecDeque<ArrivedRequest>>>;

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
}

/// hyper's own windows of HTTP/2, of a stream and of the connection, bytes.
const WINDOWS: HttpWindows = HttpWindows {
    stream: 1 << 20,
    connection: 1 << 20,
};

impl HttpResponder {
    pub(super) fn accept(style: HttpStyle, wire: LayeredWire, stack: &Stack) -> Result<Self> {
        let mut driver = HttpDriver::new(wire.shared())?;
        let mut below = wire.settings();
        let arrived = ArrivedRequests::default();
        let arriving = Arc::clone(&arrived);
        let service = service_fn(move |request| {
            let (answer, answered) = oneshot::channel();
            let mut arriving = arriving.lock().unwrap_or_else(PoisonError::into_inner);
            arriving.push_back(ArrivedRequest { request, answer });
            answered
        });
        let io = TokioIo::new(HttpWire::new(wire));
        if style.is_http2() {
            let mut builder = http2::Builder::new(driver.executor());
            let windows = WINDOWS.or_written(stack);
            below.extend(windows.settings());
            builder
                .initial_stream_window_size(windows.stream)
                .initial_connection_window_size(windows.connection);
            driver.adopt(builder.serve_connection(io, service));
        } else {
            driver.adopt(http1::Builder::new().serve_connection(io, service));
        }
        driver.flush()?;
        Ok(Self {
            style,
            driver,
            arrived,
            called: None,
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
            below,
        })
    }

    /// The next request; `None` when the client makes no more.
    fn next(&mut self) -> Result<Option<ArrivedRequest>> {
        let arrived = &self.arrived;
        let next = self.driver.until_end(|_| {
            let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
            arrived.pop_front().map_or(Poll::Pending, Poll::Ready)
        })?;
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
        self.driver.until_closed()
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
        self.driver.shared().transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.below.clone()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.driver.shared().addresses()
    }
}
