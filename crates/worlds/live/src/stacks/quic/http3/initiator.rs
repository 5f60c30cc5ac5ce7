//! The initiator's side of HTTP/3: the client.

use super::pair_requests::name_pair;
use super::{Http3BodyCount, failed, store};
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::certificate::NAME;
use crate::stacks::contract::LiveConnection;
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits, of_the_other_side};
use crate::stacks::quic::end::QuicEnd;
use bytes::Bytes;
use h3_quinn::{BidiStream, OpenStreams};
use http::{Method, Request, StatusCode, Uri};
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use tokio::task::AbortHandle;

type ClientStream = h3::client::RequestStream<BidiStream<Bytes>, Bytes>;

/// The initiator's exchange that carries data units.
struct ClientExchange {
    stream: ClientStream,
    /// Whether the request's body goes on.
    uploads: bool,
    /// Whether the response's head has come.
    has_head: bool,
    download: Http3BodyCount,
}

/// The initiator's side: the client.
pub(crate) struct Http3Initiator {
    end: QuicEnd,
    /// `None` when no more requests are made.
    sender: Option<h3::client::SendRequest<OpenStreams, Bytes>>,
    /// The request that lasts as long as the pair is on a connection that several pairs share.
    joined: Option<ClientStream>,
    exchange: Option<ClientExchange>,
    /// Bytes of data units that came in exchanges that have ended, and that no operation has asked for.
    carried: u64,
    units: SharedUnits,
    /// What drives HTTP/3 until it is known whether the server takes early data.
    early_driver: Option<AbortHandle>,
}

/// Opens HTTP/3 on a connection. Returns what makes requests, and what drives it.
fn open_http3(end: &QuicEnd) -> Result<(h3::client::SendRequest<OpenStreams, Bytes>, AbortHandle)> {
    let quic = h3_quinn::Connection::new(end.connection.clone());
    let opened = end.run(async { h3::client::new(quic).await })?;
    let (mut connection, sender) =
        opened.map_err(|e| Error::measurement(format!("HTTP/3 failed: {e}")))?;
    let driver = end.runtime.spawn_abortable(async move {
        let _ = poll_fn(|context| connection.poll_close(context)).await;
    });
    end.runtime.push();
    Ok((sender, driver))
}

impl Http3Initiator {
    pub(crate) fn connect(end: QuicEnd) -> Result<Self> {
        let (sender, driver) = open_http3(&end)?;
        let early_driver = end.offers_early_data().then_some(driver);
        Ok(Self {
            early_driver,
            ..Self::over(end, sender)
        })
    }

    /// Waits until it is known whether the server takes early data. Where it does not, HTTP/3 begins again on the connection, and this
    /// returns true: what was asked has to be asked again.
    fn begins_again(&mut self) -> Result<bool> {
        let Some(driver) = self.early_driver.take() else {
            return Ok(false);
        };
        if !self.end.await_rejection()? {
            return Ok(false);
        }
        // Its streams are gone, and nothing of it may close the connection.
        driver.abort();
        self.end.runtime.push();
        self.sender = Some(open_http3(&self.end)?.0);
        Ok(true)
    }

    /// On a connection that is open and that several pairs share.
    pub(super) fn join(
        end: QuicEnd,
        sender: h3::client::SendRequest<OpenStreams, Bytes>,
    ) -> Result<Self> {
        let mut pair = Self::over(end, sender);
        pair.joined = Some(pair.request(HttpExchangeKind::Join)?);
        pair.end.runtime.push();
        Ok(pair)
    }

    /// Makes no more requests.
    fn leave(&mut self) {
        self.sender = None;
        let Some(mut joined) = self.joined.take() else {
            self.end.close();
            return;
        };
        let closer = self.end.leave();
        self.end.runtime.spawn_closing(async move {
            // The peer answers when it has seen that the pair has left; the connection may have been lost.
            if joined.finish().await.is_ok() {
                let _ = joined.recv_response().await;
            }
            if let Some(closer) = closer {
                closer.close();
            }
        });
        self.end.runtime.push();
    }

    fn over(end: QuicEnd, sender: h3::client::SendRequest<OpenStreams, Bytes>) -> Self {
        Self {
            end,
            sender: Some(sender),
            joined: None,
            exchange: None,
            carried: 0,
            units: SharedUnits::default(),
            early_driver: None,
        }
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
        name_pair(request.headers_mut(), &self.end);
        let sent = self.end.run(sender.send_request(request))?;
        sent.map_err(|e| failed(&self.end, &e))
    }

    fn open(&mut self, kind: HttpExchangeKind) -> Result<()> {
        // What carries data units is not asked for early: a call can be repeated as it is.
        self.begins_again()?;
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
            download: Http3BodyCount {
                ahead: std::mem::take(&mut self.carried),
                ended: false,
            },
        });
        Ok(())
    }

    /// Makes a call. Returns how many bytes its response has.
    fn ask(&mut self, unit: Bytes, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        let mut stream = self.request(HttpExchangeKind::Call)?;
        let sent = self.end.run(async {
            stream.send_data(unit).await?;
            stream.finish().await
        })?;
        sent.map_err(|e| failed(&self.end, &e))?;
        await_head(&self.end, &mut stream)?;
        let mut download = Http3BodyCount::default();
        download.end(|| more_of_response(&self.end, &mut stream, buffers))
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
        let came = self.ask(unit.clone(), buffers);
        // A stream that was opened after the rejection has brought an answer all the same.
        let came = match (self.begins_again()?, came) {
            (true, Err(_)) => self.ask(unit, buffers)?,
            (_, came) => came?,
        };
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
        self.leave();
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.begins_again()?;
        if self.exchange.is_some() {
            // What was sent last may have to be sent again: the response, if only its end, says that it has arrived.
            self.end_upload()?;
            let (open, end) = self.answered()?;
            let ClientExchange {
                stream, download, ..
            } = open;
            download.end(|| more_of_response(end, stream, buffers))?;
        }
        self.leave();
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
