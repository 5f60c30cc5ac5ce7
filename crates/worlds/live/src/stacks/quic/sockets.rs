//! The sockets of QUIC: where connections come from and go to.

use super::settings::QuicSettings;
use crate::error::{self, Error, Result};
use crate::stacks::certificate::NAME;
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::ip;
use crate::stacks::ip_options;
use quinn::{Connection, Endpoint, TokioRuntime};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_events::scope::{self, ConnectionStep};
use std::collections::VecDeque;
use std::future::IntoFuture as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time;

/// How long a peer may take to answer a connection request.
const PATIENCE: Duration = ip::PATIENCE;
/// How long the handshake of a connection that arrives may take, as long as the token of others.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(30);
/// Most connections whose handshakes may be under way, and most that wait to be accepted.
const HANDSHAKES_MOST: usize = 64;

/// The responder's socket, and the connections that come to it.
pub(super) struct QuicServer {
    pub(super) runtime: EndpointRuntime,
    pub(super) endpoint: Endpoint,
    pub(super) settings: QuicSettings,
    /// Those whose handshakes are done.
    pub(super) connections: mpsc::Receiver<Connection>,
    /// The port and the fingerprint of the certificate.
    pub(super) address: String,
}

impl QuicServer {
    pub(super) fn open(parameters: &LiveConnectParameters) -> Result<Self> {
        let runtime = EndpointRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let socket = ip::bound_socket(parameters, Type::DGRAM, Some(Protocol::UDP))?;
        ip_options::mark(&socket, &parameters.stack)?;
        let port = ip::bound_port(&socket);
        let (server, fingerprint) = settings.server()?;
        let endpoint = endpoint(&runtime, socket, &settings, Some(server))?;
        let (established, connections) = mpsc::channel(HANDSHAKES_MOST);
        runtime.spawn(shake_hands(endpoint.clone(), established));
        Ok(Self {
            runtime,
            endpoint,
            settings,
            connections,
            address: format!("{port}/{fingerprint}"),
        })
    }
}

/// The initiator's socket, and where it connects to.
pub(super) struct QuicClient {
    pub(super) runtime: EndpointRuntime,
    pub(super) endpoint: Endpoint,
    pub(super) settings: QuicSettings,
    pub(super) server: SocketAddr,
}

impl QuicClient {
    pub(super) fn open(parameters: &LiveConnectParameters, address: &str) -> Result<Self> {
        let runtime = EndpointRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let (shown, fingerprint) = address.split_once('/').unwrap_or((address, ""));
        let server = ip::resolve(shown)?
            .as_socket()
            .ok_or_else(|| Error::environment(format!("{shown} is not an address of IP")))?;
        let mut endpoint = client_endpoint(&runtime, server, &settings, parameters)?;
        endpoint.set_default_client_config(settings.client(fingerprint)?);
        Ok(Self {
            runtime,
            endpoint,
            settings,
            server,
        })
    }

    /// Connects, within a time; it has to be awaited in the runtime.
    pub(super) async fn connect(&self) -> Result<Connection> {
        let connecting = self.endpoint.connect(self.server, NAME);
        let connecting =
            connecting.map_err(|e| Error::measurement(format!("QUIC cannot connect: {e}")))?;
        match time::timeout(PATIENCE, connecting).await {
            Ok(Ok(connection)) => {
                // quinn does not say whether it has resumed a session.
                scope::connection_step(|| ConnectionStep::Quic { handshake: None });
                Ok(connection)
            }
            Ok(Err(error)) => Err(self.settings.refused(self.server, &error)),
            Err(_) => {
                let silent = std::io::ErrorKind::TimedOut.into();
                Err(ip::unreachable(&self.server.to_string(), &silent))
            }
        }
    }
}

/// quinn's end of a new socket of the initiator.
pub(crate) fn client_endpoint(
    runtime: &EndpointRuntime,
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
    runtime: &EndpointRuntime,
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

/// The error when no more connections can come.
pub(super) fn socket_failed() -> Error {
    Error::measurement("QUIC's socket has failed")
}
