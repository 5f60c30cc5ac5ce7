//! HTTP/2 (RFC 9113) to a web server, by hyper: `https(version = http2)`, or `http(version = http2)` to a server that expects it without TLS.
//! What is asked is what the client of HTTP/1.1 asks; each request has a stream of its own.

use super::socket;
use super::tls::FarEndTlsClient;
use super::web::{refused_status, request_uri};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::{Connector, LiveConnection};
use crate::stacks::http_exchange::{SharedUnits, of_the_other_side};
use crate::stacks::layered::http_client::{
    BodySender, HttpDriver, HttpPatience, HttpWire, IncomingBody, OutgoingBody,
};
use crate::stacks::layered::wire::{LayeredSocket, LayeredWire};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;

type ResponseFuture = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// Connects to a web server for HTTP/2.
pub(super) struct Http2Connector {
    stack: Stack,
    servers: Vec<SocketAddr>,
    tls: Option<FarEndTlsClient>,
    /// The address as requests have it.
    uri: Uri,
}

impl Http2Connector {
    pub(super) fn new(
        stack: &Stack,
        address: &FarEndAddress,
        servers: Vec<SocketAddr>,
        tls: Option<FarEndTlsClient>,
    ) -> Result<Self> {
        let uri = request_uri(address)?;
        Ok(Self {
            stack: stack.clone(),
            servers,
            tls,
            uri,
        })
    }
}

impl Connector for Http2Connector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (connected, server) =
            socket::connect_any(&self.stack, &mut self.servers, &buffers.flags)?;
        let socket = LayeredSocket::new(connected, &self.stack, None, &buffers.flags)?;
        // A handshake is one wait for each flight of the server.
        let patience = socket
            .shared()
            .socket
            .set_read_timeout(Some(socket::timeout(&self.stack)));
        patience.map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
        let wire = match &self.tls {
            None => LayeredWire::Plain(socket),
            Some(client) => LayeredWire::Tls(Box::new(client.open_session(socket, server)?)),
        };
        let below = wire.settings();
        let mut driver = HttpDriver::new(wire.shared())?;
        driver.limit(HttpPatience {
            server,
            silence: socket::timeout(&self.stack),
        });
        let io = TokioIo::new(HttpWire::new(wire));
        let mut handshake = Box::pin(http2::handshake(driver.executor(), io));
        let opened = driver.until_alone(|context| handshake.as_mut().poll(context))?;
        let (sender, connection) = opened.map_err(|e| driver.failure(&e))?;
        driver.adopt(connection);
        driver.flush()?;
        Ok(Box::new(Http2Connection {
            driver,
            sender,
            uri: self.uri.clone(),
            server,
            below,
            units: SharedUnits::default(),
            get: None,
            put: None,
            ahead: 0,
            body: 0,
        }))
    }
}

/// An open connection.
struct Http2Connection {
    driver: HttpDriver,
    sender: http2::SendRequest<OutgoingBody>,
    uri: Uri,
    server: SocketAddr,
    /// The settings of what is below HTTP.
    below: BTreeMap<String, String>,
    units: SharedUnits,
    /// The body that is being received, and how much of it has come.
    get: Option<(IncomingBody, u64)>,
    /// The body that is being sent, and the response to come.
    put: Option<(BodySender, ResponseFuture)>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
    /// Bytes of the last body that was received whole.
    body: u64,
}

impl Http2Connection {
    fn request(&mut self, method: Method, body: OutgoingBody) -> Result<ResponseFuture> {
        let sender = &mut self.sender;
        let ready = self.driver.until(|context| sender.poll_ready(context))?;
        ready.map_err(|e| self.driver.failure(&e))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        Ok(Box::pin(self.sender.send_request(request)))
    }

    /// Awaits a response's head.
    fn head(&mut self, mut response: ResponseFuture) -> Result<IncomingBody> {
        let head = self
            .driver
            .until(|context| response.as_mut().poll(context))?;
        let head = head.map_err(|e| self.driver.failure(&e))?;
        let status = head.status();
        if !status.is_success() {
            let location = head.headers().get(hyper::header::LOCATION);
            let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()));
            let reason = status.canonical_reason().unwrap_or_default();
            return Err(refused_status(
                self.server,
                status.as_u16(),
                reason,
                location.as_deref(),
            ));
        }
        Ok(IncomingBody::new(head.into_body(), false, 0))
    }

    /// Receives a response whole.
    fn whole(&mut self, response: ResponseFuture, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let mut body = self.head(response)?;
        self.body = body.end(&mut self.driver, buffers)?;
        Ok(())
    }
}

impl LiveConnection for Http2Connection {
    fn call(
        &mut self,
        request: usize,
        _: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let (method, pieces) = if request == 0 {
            (Method::GET, Vec::new())
        } else {
            (Method::POST, vec![self.units.next(request, buffers)?])
        };
        let response = self.request(method, OutgoingBody::whole(pieces, None))?;
        self.whole(response, buffers)?;
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            if let Some((body, _)) = &self.put {
                body.send(vec![unit], &mut self.driver)?;
            }
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        for done in 0..times {
            // No server knows of the time limit, so what has come by then is the end.
            if buffers.flags.limit() {
                return Ok(done);
            }
            while self.ahead < bytes as u64 {
                let (mut body, mut came) = match self.get.take() {
                    Some(open) => open,
                    None => {
                        let empty = OutgoingBody::whole(Vec::new(), None);
                        let response = self.request(Method::GET, empty)?;
                        (self.head(response)?, 0)
                    }
                };
                match body.receive(&mut self.driver, buffers)? {
                    Some(more) => {
                        came += more;
                        self.ahead += more;
                        self.get = Some((body, came));
                    }
                    None if came == 0 => {
                        return Err(Error::measurement(format!(
                            "the answer of the web server at {} is empty",
                            self.server
                        ))
                        .hint("measure an address that has data, or calls (`request_response`)"));
                    }
                    None => self.body = came,
                }
            }
            self.ahead -= bytes as u64;
        }
        Ok(times)
    }

    fn closed(&self) -> bool {
        false
    }

    fn start_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        if direction == BulkDirection::Put {
            let (body, sender) = OutgoingBody::streamed();
            let response = self.request(Method::PUT, body)?;
            self.driver.flush()?;
            self.put = Some((sender, response));
        }
        Ok(())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        match self.put.take() {
            None => Ok(()),
            Some((body, response)) => {
                body.end(None, &mut self.driver)?;
                self.whole(response, buffers)
            }
        }
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        let Self {
            mut driver, sender, ..
        } = *self;
        drop(sender);
        driver.flush()
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.driver.shared().transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.below.clone();
        settings.insert("server".into(), self.server.to_string());
        settings.insert("http".into(), "2".into());
        if self.body > 0 {
            settings.insert("body".into(), format!("{} B", self.body));
        }
        settings
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.driver.shared().addresses()
    }
}
