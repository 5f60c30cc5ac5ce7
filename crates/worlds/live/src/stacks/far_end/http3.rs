//! HTTP/3 (RFC 9114) to a web server, by h3 on QUIC (quinn): `https(version = http3)`. What is asked is what the client of HTTP/1.1 asks; each
//! request has a stream of its own.

use super::socket::notes_of_replacements;
use super::tls::FarEndTlsClient;
use super::web::{refused_status, request_uri};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection};
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::http_exchange::{SharedUnits, of_the_other_side};
use crate::stacks::ip;
use crate::stacks::quic::client::{
    QuicEnd, QuicSettings, SharedQuicClient, SharedQuicOpener, client_endpoint, failed, store,
};
use crate::stacks::server_patience::ServerPatience;
use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use h3_quinn::{BidiStream, OpenStreams};
use http::{Method, Request, Response, Uri};
use quinn::{Connection, Endpoint};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time;

type RequestAndResponse = RequestStream<BidiStream<Bytes>, Bytes>;

/// The server's addresses, and this end's sockets to them.
struct Http3Servers {
    runtime: EndpointRuntime,
    settings: QuicSettings,
    stack: Stack,
    /// In the order in which they are tried: the first that answers is kept.
    endpoints: Mutex<Vec<(SocketAddr, Endpoint)>>,
    /// The name in its certificate.
    name: String,
    uri: Uri,
}

/// What makes requests on a connection, and the address of its server.
type Http3Sender = (SendRequest<OpenStreams, Bytes>, SocketAddr);

impl Http3Servers {
    fn new(
        parameters: &LiveConnectParameters,
        address: &FarEndAddress,
        servers: &[SocketAddr],
        tls: &FarEndTlsClient,
    ) -> Result<Self> {
        let runtime = EndpointRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let (config, uri) = (settings.client_with(tls.config())?, request_uri(address)?);
        let endpoint = |server: SocketAddr| {
            let mut endpoint = client_endpoint(&runtime, server, &settings, parameters)?;
            endpoint.set_default_client_config(config.clone());
            Ok((server, endpoint))
        };
        // An address where nothing listens shows itself by silence alone, so those of IPv4, where most servers are, come first.
        let (four, six) = servers
            .iter()
            .partition::<Vec<SocketAddr>, _>(|a| a.is_ipv4());
        let (mut endpoints, mut failed) = (Vec::new(), None);
        for server in four.into_iter().chain(six) {
            match endpoint(server) {
                Ok(made) => endpoints.push(made),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if endpoints.is_empty() {
            return Err(failed.unwrap_or_else(no_server));
        }
        Ok(Self {
            runtime,
            settings,
            stack: parameters.stack.clone(),
            endpoints: Mutex::new(endpoints),
            name: address.host.clone(),
            uri,
        })
    }

    fn endpoints(&self) -> MutexGuard<'_, Vec<(SocketAddr, Endpoint)>> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to one address.
    async fn open_at(
        &self,
        server: SocketAddr,
        endpoint: &Endpoint,
    ) -> Result<(Connection, Http3Sender)> {
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
        let connecting = endpoint.connect(server, &self.name);
        let connecting = connecting.map_err(|e| refused(&e))?;
        let Ok(connected) = time::timeout(ip::PATIENCE, connecting).await else {
            let silent = std::io::ErrorKind::TimedOut.into();
            return Err(ip::unreachable(&format!("{server} over UDP"), &silent)
                .hint("does the server speak HTTP/3 (QUIC over UDP), and does no firewall block it? `version = http1` is what every web server speaks"));
        };
        let quic = connected.map_err(|e| refused(&e))?;
        let opened = h3::client::new(h3_quinn::Connection::new(quic.clone())).await;
        let (mut connection, sender) = opened.map_err(|e| refused(&e))?;
        tokio::spawn(async move {
            let _ = poll_fn(|context| connection.poll_close(context)).await;
        });
        Ok((quic, (sender, server)))
    }
}

fn no_server() -> Error {
    Error::input("there is no server to connect to")
}

impl SharedQuicOpener for Http3Servers {
    type Client = Http3Sender;

    fn runtime(&self) -> &EndpointRuntime {
        &self.runtime
    }

    fn settings(&self) -> &QuicSettings {
        &self.settings
    }

    async fn open(&self) -> Result<(Connection, Http3Sender)> {
        let endpoints = self.endpoints().clone();
        let mut failed = None;
        for (server, endpoint) in endpoints {
            match self.open_at(server, &endpoint).await {
                Ok(opened) => {
                    self.endpoints().retain(|(other, _)| *other == server);
                    return Ok(opened);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(no_server))
    }

    async fn wait_idle(&self) {
        let endpoints = self.endpoints().clone();
        for (_, endpoint) in endpoints {
            endpoint.wait_idle().await;
        }
    }
}

/// Where a pair's connections come from.
#[derive(Clone)]
enum Http3Source {
    /// Each is its own.
    Alone(Arc<Http3Servers>),
    /// The pairs of its group share them; its number there.
    Shared(Arc<SharedQuicClient<Http3Servers>>, u16),
}

impl Http3Source {
    fn servers(&self) -> &Http3Servers {
        match self {
            Self::Alone(servers) => servers,
            Self::Shared(shared, _) => shared.opener(),
        }
    }

    fn open(&self, flags: &Arc<LiveCancelFlags>) -> Result<Http3Link> {
        let (end, (sender, server)) = match self {
            Self::Alone(servers) => {
                let (runtime, settings) = (&servers.runtime, &servers.settings);
                let (connection, sender) = runtime.run(flags, servers.open())??;
                let end = QuicEnd::new(runtime, connection, settings, false, flags);
                (end, sender)
            }
            Self::Shared(shared, member) => shared.connect(*member, flags)?,
        };
        end.runtime.push();
        Ok(Http3Link {
            end,
            sender,
            server,
            patience: ServerPatience::new(&self.servers().stack, server),
            flags: Arc::clone(flags),
        })
    }
}

/// Connects to a web server for HTTP/3.
pub(super) struct Http3Connector {
    source: Http3Source,
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
        let servers = || Http3Servers::new(parameters, address, servers, tls);
        let source = match &parameters.member {
            None => Http3Source::Alone(Arc::new(servers()?)),
            Some(member) => {
                let shared = member.common(|| Ok(SharedQuicClient::new(servers()?)))?;
                Http3Source::Shared(shared, member.number())
            }
        };
        Ok(Self {
            source,
            flags: None,
        })
    }
}

impl Connector for Http3Connector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.flags = Some(Arc::clone(&buffers.flags));
        Ok(Box::new(Http3Connection {
            link: self.source.open(&buffers.flags)?,
            source: self.source.clone(),
            replaced: 0,
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
        // What pairs share leaves its server with the last of them.
        if let Http3Source::Alone(servers) = &self.source {
            let runtime = &servers.runtime;
            runtime.leave(self.flags.as_ref(), servers.wait_idle());
        }
    }
}

/// A connection of HTTP/3, until its server ends it.
struct Http3Link {
    end: QuicEnd,
    sender: SendRequest<OpenStreams, Bytes>,
    server: SocketAddr,
    patience: ServerPatience,
    flags: Arc<LiveCancelFlags>,
}

/// What became of a request.
enum Http3Outcome<T> {
    Done(T),
    /// The server closes the connection and has not looked at the request, which may be made again (RFC 9114, 5.2).
    Unseen(Error),
}

impl Http3Link {
    fn outcome<T>(&self, done: std::result::Result<T, StreamError>) -> Result<Http3Outcome<T>> {
        match done {
            Ok(value) => Ok(Http3Outcome::Done(value)),
            Err(error) if is_unseen(&error) => Ok(Http3Outcome::Unseen(failed(&self.end, &error))),
            Err(error) => Err(failed(&self.end, &error)),
        }
    }

    /// Sends a request's head.
    fn request(&mut self, method: Method, uri: &Uri) -> Result<Http3Outcome<RequestAndResponse>> {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri.clone();
        match self.end.run(self.sender.send_request(request))? {
            // There was no connection any more that could have carried it.
            Err(error) if error.is_h3_no_error() => {
                Ok(Http3Outcome::Unseen(failed(&self.end, &error)))
            }
            stream => self.outcome(stream),
        }
    }

    /// Makes a request whose body is known as a whole, and awaits the response's head.
    fn exchange(
        &mut self,
        uri: &Uri,
        unit: Option<&Bytes>,
    ) -> Result<Http3Outcome<(RequestAndResponse, Response<()>)>> {
        let method = if unit.is_none() {
            Method::GET
        } else {
            Method::POST
        };
        let mut stream = match self.request(method, uri)? {
            Http3Outcome::Done(stream) => stream,
            Http3Outcome::Unseen(error) => return Ok(Http3Outcome::Unseen(error)),
        };
        let end = &self.end;
        let answered = end.run(async {
            if let Some(unit) = unit {
                stream.send_data(unit.clone()).await?;
            }
            stream.finish().await?;
            stream.recv_response().await
        })?;
        Ok(match self.outcome(answered)? {
            Http3Outcome::Done(head) => Http3Outcome::Done((stream, head)),
            Http3Outcome::Unseen(error) => Http3Outcome::Unseen(error),
        })
    }

    /// Whether the server has done what it was asked for.
    fn check(&self, head: &Response<()>) -> Result<()> {
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
            true,
        ))
    }

    /// More of a response's body; none at its end.
    fn more(
        &self,
        stream: &mut RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Option<u64>> {
        self.patience.check_limit(&self.flags)?;
        let data = self.end.run(stream.recv_data())?;
        let data = data.map_err(|e| failed(&self.end, &e))?;
        store(&self.end, data, buffers)
    }
}

/// Whether a request has failed before the server has looked at it.
const fn is_unseen(error: &StreamError) -> bool {
    matches!(
        error,
        StreamError::RemoteClosing { .. }
            | StreamError::RemoteTerminate {
                code: Code::H3_REQUEST_REJECTED,
                ..
            }
    )
}

/// An open connection.
struct Http3Connection {
    link: Http3Link,
    source: Http3Source,
    /// How many connections the server has closed that were replaced.
    replaced: u64,
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
    /// Makes a request and awaits an answer that says that it was done. Where the server closes the connection meanwhile, as it may after a
    /// number of requests, another one takes its place, once.
    fn exchange(
        &mut self,
        unit: Option<&Bytes>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<RequestAndResponse> {
        let (stream, head) = match self.link.exchange(&self.source.servers().uri, unit)? {
            Http3Outcome::Done(answer) => answer,
            Http3Outcome::Unseen(_) => {
                self.reconnect(flags)?;
                match self.link.exchange(&self.source.servers().uri, unit)? {
                    Http3Outcome::Done(answer) => answer,
                    Http3Outcome::Unseen(error) => return Err(error),
                }
            }
        };
        self.link.check(&head)?;
        Ok(stream)
    }

    fn reconnect(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<()> {
        if let Http3Source::Shared(shared, _) = &self.source {
            // Other pairs may still be waiting for answers on it; the last of them closes it.
            shared.retire(&self.link.end.connection, flags)?;
        }
        self.link.end.close();
        self.link = self.source.open(flags)?;
        self.replaced += 1;
        Ok(())
    }

    /// Receives a response's body whole.
    fn whole(
        &mut self,
        mut stream: RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.body = 0;
        while let Some(came) = self.link.more(&mut stream, buffers)? {
            self.body += came;
        }
        Ok(())
    }

    /// The error of a PUT whose data the server does not take, or what it has answered instead.
    fn refused_put(&self, mut stream: RequestAndResponse, error: &StreamError) -> Result<Error> {
        let end = &self.link.end;
        let failure = failed(end, error);
        Ok(match end.run(stream.recv_response())? {
            Ok(head) => self.link.check(&head).err().unwrap_or(failure),
            Err(_) => failure,
        })
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
        let unit = match request {
            0 => None,
            bytes => Some(self.units.next(bytes, buffers)?),
        };
        let stream = self.exchange(unit.as_ref(), &buffers.flags)?;
        self.whole(stream, buffers)?;
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            if let Some(mut stream) = self.put.take() {
                match self.link.end.run(stream.send_data(unit))? {
                    Ok(()) => self.put = Some(stream),
                    Err(error) => return Err(self.refused_put(stream, &error)?),
                }
                self.link.end.runtime.push();
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
                    None => (self.exchange(None, &buffers.flags)?, 0),
                };
                match self.link.more(&mut stream, buffers)? {
                    Some(more) => {
                        came += more;
                        self.ahead += more;
                        self.get = Some((stream, came));
                    }
                    None if came == 0 => {
                        return Err(Error::measurement(format!(
                            "the answer of the web server at {} is empty",
                            self.link.server
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

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        if direction == BulkDirection::Get {
            return Ok(());
        }
        let stream = match self.link.request(Method::PUT, &self.source.servers().uri)? {
            Http3Outcome::Done(stream) => stream,
            Http3Outcome::Unseen(_) => {
                self.reconnect(&buffers.flags)?;
                match self.link.request(Method::PUT, &self.source.servers().uri)? {
                    Http3Outcome::Done(stream) => stream,
                    Http3Outcome::Unseen(error) => return Err(error),
                }
            }
        };
        self.put = Some(stream);
        Ok(())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(mut stream) = self.put.take() else {
            return Ok(());
        };
        let end = &self.link.end;
        let answered = end.run(async {
            stream.finish().await?;
            stream.recv_response().await
        })?;
        let head = answered.map_err(|e| failed(end, &e))?;
        self.link.check(&head)?;
        self.whole(stream, buffers)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        let Self { link, get, put, .. } = *self;
        drop((get, put, link.sender));
        link.end.close();
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn transport(&self) -> Option<TransportRecord> {
        // Of connections that were replaced nothing is known any more.
        self.link.end.transport().filter(|_| self.replaced == 0)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.link.end.settings();
        settings.insert("server".into(), self.link.server.to_string());
        settings.insert("http".into(), "3".into());
        if self.body > 0 {
            settings.insert("body".into(), format!("{} B", self.body));
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        notes_of_replacements(self.replaced)
    }
}
