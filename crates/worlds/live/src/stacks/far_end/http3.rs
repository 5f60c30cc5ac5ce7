//! HTTP/3 (RFC 9114) to a web server, by h3 on QUIC (quinn): `https(version = http3)`. What is asked is what the client of HTTP/1.1 asks; each
//! request has a stream of its own.

use super::tls::FarEndTlsClient;
use super::web::{refused_status, request_uri};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection};
use crate::stacks::http_exchange::{SharedUnits, of_the_other_side};
use crate::stacks::ip;
use crate::stacks::quic::client::{
    QuicEnd, QuicRuntime, QuicSettings, client_endpoint, failed, store,
};
use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use h3_quinn::{BidiStream, OpenStreams};
use http::{Method, Request, Uri};
use quinn::Endpoint;
use stackline_core::far_end::FarEndAddress;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time;

type RequestAndResponse = RequestStream<BidiStream<Bytes>, Bytes>;

/// Connects to a web server for HTTP/3.
pub(super) struct Http3Connector {
    runtime: QuicRuntime,
    endpoint: Endpoint,
    settings: QuicSettings,
    server: SocketAddr,
    /// The name in its certificate.
    name: String,
    uri: Uri,
    /// Those of the job, once it has a connection.
    flags: Option<Arc<LiveCancelFlags>>,
}

impl Http3Connector {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        address: &FarEndAddress,
        servers: &[SocketAddr],
        tls: &FarEndTlsClient,
    ) -> Result<Self> {
        let runtime = QuicRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        // QUIC has no answer that another address could be tried after, but silence.
        let server = servers.iter().find(|server| server.is_ipv4());
        let server = server.or(servers.first()).copied();
        let server = server.ok_or_else(|| Error::input("there is no server to connect to"))?;
        let mut endpoint = client_endpoint(&runtime, server, &settings, &parameters.stack.name)?;
        endpoint.set_default_client_config(settings.client_with(tls.config())?);
        Ok(Self {
            runtime,
            endpoint,
            settings,
            server,
            name: address.host.clone(),
            uri: request_uri(address)?,
            flags: None,
        })
    }
}

impl Connector for Http3Connector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.flags = Some(Arc::clone(&buffers.flags));
        let server = self.server;
        let refused = |why: &dyn std::error::Error| {
            let failure =
                Error::measurement(format!("HTTP/3 with the server at {server} failed: {why}"));
            if why.to_string().contains("certificate") {
                failure.hint("for a server of your own: SSL_CERT_FILE=ITS-AUTHORITY.pem, or the option `insecure`")
            } else {
                failure
                    .hint("does it speak HTTP/3? `version = http1` is what every web server speaks")
            }
        };
        let connecting = self
            .runtime
            .within(|| self.endpoint.connect(server, &self.name))
            .map_err(|e| refused(&e))?;
        let connected = self.runtime.run(&buffers.flags, async {
            time::timeout(ip::PATIENCE, connecting).await.ok()
        })?;
        let Some(connected) = connected else {
            let silent = std::io::ErrorKind::TimedOut.into();
            return Err(ip::unreachable(&format!("{server} over UDP"), &silent));
        };
        let end = QuicEnd::new(
            &self.runtime,
            connected.map_err(|e| refused(&e))?,
            &self.settings,
            false,
            &buffers.flags,
        );
        let quic = h3_quinn::Connection::new(end.connection.clone());
        let opened = end.run(async { h3::client::new(quic).await })?;
        let (mut connection, sender) = opened.map_err(|e| refused(&e))?;
        end.runtime.spawn(async move {
            let _ = poll_fn(|context| connection.poll_close(context)).await;
        });
        end.runtime.push();
        Ok(Box::new(Http3Connection {
            end,
            sender: Some(sender),
            uri: self.uri.clone(),
            server,
            units: SharedUnits::default(),
            get: None,
            put: None,
            ahead: 0,
            body: 0,
        }))
    }
}

impl Drop for Http3Connector {
    fn drop(&mut self) {
        self.runtime.leave(&self.endpoint, self.flags.as_ref());
    }
}

/// An open connection.
struct Http3Connection {
    end: QuicEnd,
    /// `None` when it is being closed.
    sender: Option<SendRequest<OpenStreams, Bytes>>,
    uri: Uri,
    server: SocketAddr,
    units: SharedUnits,
    /// The response whose body is being received, and how much of it has come.
    get: Option<(RequestAndResponse, u64)>,
    /// The request whose body is being sent.
    put: Option<RequestAndResponse>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
    /// Bytes of the last body that was received whole.
    body: u64,
}

impl Http3Connection {
    /// Sends a request's head, and its body if it is known as a whole.
    fn request(&mut self, method: Method, body: Option<Bytes>) -> Result<RequestAndResponse> {
        let Some(sender) = &mut self.sender else {
            return Err(Error::input("HTTP makes no request after its end"));
        };
        let mut request = Request::new(());
        let is_put = method == Method::PUT;
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        let end = &self.end;
        let stream = end.run(sender.send_request(request))?;
        let mut stream = stream.map_err(|e| failed(end, &e))?;
        if let Some(body) = body {
            let sent = end.run(stream.send_data(body))?;
            sent.map_err(|e| failed(end, &e))?;
        }
        if !is_put {
            let ended = end.run(stream.finish())?;
            ended.map_err(|e| failed(end, &e))?;
        }
        Ok(stream)
    }

    /// Awaits a response's head.
    fn head(&self, stream: &mut RequestAndResponse) -> Result<()> {
        let head = self.end.run(stream.recv_response())?;
        let head = head.map_err(|e| failed(&self.end, &e))?;
        let status = head.status();
        if status.is_success() {
            return Ok(());
        }
        let location = head.headers().get(http::header::LOCATION);
        let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let reason = status.canonical_reason().unwrap_or_default();
        Err(refused_status(
            self.server,
            status.as_u16(),
            reason,
            location.as_deref(),
        ))
    }

    /// More of a response's body; none at its end.
    fn more(
        &self,
        stream: &mut RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Option<u64>> {
        let data = self.end.run(stream.recv_data())?;
        let data = data.map_err(|e| failed(&self.end, &e))?;
        store(&self.end, data, buffers)
    }

    /// Receives a response whole.
    fn whole(
        &mut self,
        mut stream: RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.head(&mut stream)?;
        self.body = 0;
        while let Some(came) = self.more(&mut stream, buffers)? {
            self.body += came;
        }
        Ok(())
    }
}

impl LiveConnection for Http3Connection {
    fn call(
        &mut self,
        request: usize,
        _: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let (method, body) = if request == 0 {
            (Method::GET, None)
        } else {
            (Method::POST, Some(self.units.next(request, buffers)?))
        };
        let stream = self.request(method, body)?;
        self.whole(stream, buffers)?;
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            if let Some(stream) = &mut self.put {
                let sent = self.end.run(stream.send_data(unit))?;
                sent.map_err(|e| failed(&self.end, &e))?;
                self.end.runtime.push();
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
                let (mut stream, mut came) = match self.get.take() {
                    Some(open) => open,
                    None => {
                        let mut stream = self.request(Method::GET, None)?;
                        self.head(&mut stream)?;
                        (stream, 0)
                    }
                };
                match self.more(&mut stream, buffers)? {
                    Some(more) => {
                        came += more;
                        self.ahead += more;
                        self.get = Some((stream, came));
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
            self.put = Some(self.request(Method::PUT, None)?);
        }
        Ok(())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut stream) = self.put.take() else {
            return Ok(());
        };
        let ended = self.end.run(stream.finish())?;
        ended.map_err(|e| failed(&self.end, &e))?;
        self.whole(stream, buffers)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        (self.get, self.put, self.sender) = (None, None, None);
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
        let mut settings = self.end.settings();
        settings.insert("server".into(), self.server.to_string());
        settings.insert("http".into(), "3".into());
        if self.body > 0 {
            settings.insert("body".into(), format!("{} B", self.body));
        }
        settings
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
}
