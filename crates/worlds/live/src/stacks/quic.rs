//! `quic`: QUIC (RFC 9000) of quinn, one UDP socket for each end of a pair, one connection at a time with one bidirectional stream.
//!
//! An endpoint's own thread drives quinn, within its operations: there is no other thread. Between two operations nothing is sent, received
//! or acknowledged, as in a program of one thread.
//!
//! Strangers fail in the handshake: both sides offer the token of the run as the protocol's name (ALPN), and nothing else.

mod channel;
mod end;
mod http3;
mod runtime;
mod settings;

use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::certificate::NAME;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip;
use crate::stacks::ip_options::{self, UNMARKED_OPTIONS};
use end::QuicEnd;
use quinn::{Connection, Endpoint, TokioRuntime};
use runtime::QuicRuntime;
use settings::QuicSettings;
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_proto::quic;
use std::collections::VecDeque;
use std::future::IntoFuture as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time;

/// A protocol on a QUIC connection.
pub(super) struct QuicStack {
    table: &'static StackTable,
    /// The initiator's side of a connection.
    connect: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
    /// The responder's side.
    accept: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
}

/// QUIC's table with what the kernel's sockets add. quinn sets the byte of the code point itself, with each packet.
const TABLE: StackTable = StackTable {
    options: &OPTIONS,
    ..quic::TABLE
};

const OPTIONS: [OptionTable; 12] = StackTable::joined(
    &quic::TABLE.only([
        "congestion",
        "initial_window",
        "send_buffer",
        "receive_buffer",
        "mtu",
        "timeout",
        "resume",
        "port",
    ]),
    &UNMARKED_OPTIONS,
);

/// The stack `quic`.
pub(super) const QUIC: QuicStack = QuicStack {
    table: &TABLE,
    connect: |end| channel::connect(end),
    accept: |end| channel::accept(end),
};

/// The stack `http3`.
pub(super) const HTTP3: QuicStack = QuicStack {
    table: &http3::TABLE,
    connect: |end| Ok(Box::new(http3::initiator::Http3Initiator::connect(end)?)),
    accept: |end| Ok(Box::new(http3::responder::Http3Responder::accept(end)?)),
};

/// How long a peer may take to answer a connection request.
const PATIENCE: Duration = ip::PATIENCE;
/// How long the handshake of a connection that arrives may take, as long as the token of others.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// Most connections whose handshakes may be under way, and most that wait to be accepted.
const HANDSHAKES_MOST: usize = 64;

impl LiveStack for QuicStack {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        let runtime = QuicRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let socket = ip::bound_socket(parameters, Type::DGRAM, Some(Protocol::UDP))?;
        ip_options::mark(&socket, &parameters.stack)?;
        let port = ip::bound_port(&socket);
        let (server, fingerprint) = settings.server()?;
        let endpoint = endpoint(&runtime, socket, &settings, Some(server))?;
        let (established, connections) = mpsc::channel(HANDSHAKES_MOST);
        runtime.spawn(shake_hands(endpoint.clone(), established));
        Ok(Box::new(QuicListener {
            runtime,
            endpoint,
            connections,
            address: format!("{port}/{fingerprint}"),
            settings,
            introduced: false,
            flags: None,
            accept: self.accept,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let runtime = QuicRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let (shown, fingerprint) = address.split_once('/').unwrap_or((address, ""));
        let server = ip::resolve(shown)?
            .as_socket()
            .ok_or_else(|| Error::environment(format!("{shown} is not an address of IP")))?;
        let mut endpoint = client_endpoint(&runtime, server, &settings, parameters)?;
        endpoint.set_default_client_config(settings.client(fingerprint)?);
        Ok(Box::new(QuicConnector {
            runtime,
            endpoint,
            server,
            settings,
            introduced: false,
            flags: None,
            connect: self.connect,
        }))
    }
}

/// What clients of servers outside the run need.
pub(super) mod client {
    pub(crate) use super::client_endpoint;
    pub(crate) use super::end::QuicEnd;
    pub(crate) use super::http3::{failed, store};
    pub(crate) use super::runtime::QuicRuntime;
    pub(crate) use super::settings::QuicSettings;
}

/// quinn's end of a new socket of the initiator.
pub(crate) fn client_endpoint(
    runtime: &QuicRuntime,
    server: SocketAddr,
    settings: &QuicSettings,
    parameters: &LiveConnectParameters,
) -> Result<Endpoint> {
    let domain = Domain::for_address(server);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
        .map_err(|e| ip::socket_unavailable(&parameters.stack.name, &e))?;
    ip_options::mark(&socket, &parameters.stack)?;
    if !ip_options::bind_initiator(&socket, parameters, server.ip())? {
        let any = if server.is_ipv4() {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
        } else {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
        };
        socket
            .bind(&any.into())
            .map_err(|e| error::io_error("bind", &e))?;
    }
    endpoint(runtime, socket, settings, None)
}

/// quinn's end of a socket.
fn endpoint(
    runtime: &QuicRuntime,
    socket: Socket,
    settings: &QuicSettings,
    server: Option<quinn::ServerConfig>,
) -> Result<Endpoint> {
    let socket = UdpSocket::from(socket);
    runtime
        .within(|| Endpoint::new(settings.endpoint(), server, socket, Arc::new(TokioRuntime)))
        .map_err(|e| error::io_error("setting up QUIC's socket", &e))
}

/// Lets all who come shake hands at the same time, so that a stranger who says nothing delays nobody; one too many ends the oldest.
async fn shake_hands(endpoint: Endpoint, established: mpsc::Sender<Connection>) {
    let mut under_way: VecDeque<AbortHandle> = VecDeque::new();
    while let Some(incoming) = endpoint.accept().await {
        under_way.retain(|handshake| !handshake.is_finished());
        if under_way.len() == HANDSHAKES_MOST
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.abort();
        }
        let established = established.clone();
        let handshake = tokio::spawn(async move {
            if let Ok(Ok(connection)) = time::timeout(HANDSHAKE, incoming.into_future()).await {
                // The listener may have ended before.
                let _ = established.send(connection).await;
            }
        });
        under_way.push_back(handshake.abort_handle());
    }
}

struct QuicListener {
    runtime: QuicRuntime,
    endpoint: Endpoint,
    connections: mpsc::Receiver<Connection>,
    address: String,
    settings: QuicSettings,
    /// Whether an earlier connection has introduced itself.
    introduced: bool,
    /// Those of the job, once it has a connection.
    flags: Option<Arc<LiveCancelFlags>>,
    accept: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
}

impl LiveListener for QuicListener {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let next = self.runtime.run(&buffers.flags, self.connections.recv())?;
        let Some(connection) = next else {
            return Err(Error::measurement("QUIC's socket has failed"));
        };
        self.flags = Some(Arc::clone(&buffers.flags));
        (self.accept)(QuicEnd::new(
            &self.runtime,
            connection,
            &self.settings,
            self.settings.introduces(&mut self.introduced),
            &buffers.flags,
        ))
    }
}

impl Drop for QuicListener {
    fn drop(&mut self) {
        self.runtime.leave(&self.endpoint, self.flags.as_ref());
    }
}

struct QuicConnector {
    runtime: QuicRuntime,
    endpoint: Endpoint,
    server: SocketAddr,
    settings: QuicSettings,
    /// Whether an earlier connection has introduced itself.
    introduced: bool,
    /// Those of the job, once it has a connection.
    flags: Option<Arc<LiveCancelFlags>>,
    connect: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
}

impl Connector for QuicConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let connecting = self
            .runtime
            .within(|| self.endpoint.connect(self.server, NAME))
            .map_err(|e| Error::measurement(format!("QUIC cannot connect: {e}")))?;
        let connected = self.runtime.run(&buffers.flags, async {
            time::timeout(PATIENCE, connecting).await.ok()
        })?;
        let connection = match connected {
            Some(Ok(connection)) => connection,
            Some(Err(error)) => return Err(self.settings.refused(self.server, &error)),
            None => {
                let silent = std::io::ErrorKind::TimedOut.into();
                return Err(ip::unreachable(&self.server.to_string(), &silent));
            }
        };
        self.flags = Some(Arc::clone(&buffers.flags));
        (self.connect)(QuicEnd::new(
            &self.runtime,
            connection,
            &self.settings,
            self.settings.introduces(&mut self.introduced),
            &buffers.flags,
        ))
    }
}

impl Drop for QuicConnector {
    fn drop(&mut self) {
        self.runtime.leave(&self.endpoint, self.flags.as_ref());
    }
}
