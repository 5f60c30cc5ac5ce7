//! The sockets of QUIC: where connections come from and go to.

use super::counts::QuicCounts;
use super::migration;
use super::settings::QuicSettings;
use crate::error::{self, Error, Result};
use crate::stacks::certificate::NAME;
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::ip;
use crate::stacks::ip_options;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, TokioRuntime, ZeroRttAccepted};
use socket2::{Domain, Protocol, Socket, Type};
use stackline_events::scope::{self, ConnectionStep};
use std::collections::VecDeque;
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
    pub(super) counts: Arc<QuicCounts>,
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
        let takes_early = settings.sends_early();
        runtime.spawn(shake_hands(endpoint.clone(), established, takes_early));
        Ok(Self {
            runtime,
            endpoint,
            settings,
            connections,
            address: format!("{port}/{fingerprint}"),
            counts: Arc::default(),
        })
    }
}

/// The initiator's socket, and where it connects to.
pub(super) struct QuicClient {
    pub(super) runtime: EndpointRuntime,
    pub(super) endpoint: Endpoint,
    pub(super) settings: QuicSettings,
    pub(super) server: SocketAddr,
    pub(super) counts: Arc<QuicCounts>,
}

/// A connection of the initiator.
pub(super) struct OpenedQuic {
    pub(super) connection: Connection,
    /// Tells whether the server accepts early data, where the handshake is not done.
    pub(super) early: Option<ZeroRttAccepted>,
}

impl QuicClient {
    pub(super) fn open(parameters: &LiveConnectParameters, address: &str) -> Result<Self> {
        let runtime = EndpointRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let (shown, fingerprint) = address.split_once('/').unwrap_or((address, ""));
        let server = ip::resolve(shown, &parameters.stack)?
            .as_socket()
            .ok_or_else(|| Error::environment(format!("{shown} is not an address of IP")))?;
        let mut endpoint = client_endpoint(&runtime, server, &settings, parameters)?;
        let counts = Arc::<QuicCounts>::default();
        let config = settings.client(fingerprint, Arc::clone(&counts.verified))?;
        endpoint.set_default_client_config(config);
        if let Some(interval) = migration::interval(parameters) {
            // What a group has in common does not hold the group.
            let parameters = LiveConnectParameters {
                member: None,
                ..parameters.clone()
            };
            let (endpoint, counts) = (endpoint.clone(), Arc::clone(&counts));
            runtime.spawn(migration::migrate(
                endpoint, server, parameters, interval, counts,
            ));
        }
        Ok(Self {
            runtime,
            endpoint,
            settings,
            server,
            counts,
        })
    }

    /// Connects, within a time; it has to be awaited in the runtime. With early data the handshake goes on beside what is sent.
    pub(super) async fn connect(&self) -> Result<OpenedQuic> {
        let connecting = self.endpoint.connect(self.server, NAME);
        let mut connecting =
            connecting.map_err(|e| Error::measurement(format!("QUIC cannot connect: {e}")))?;
        if self.settings.sends_early() {
            connecting = match connecting.into_0rtt() {
                Ok((connection, early)) => {
                    let early = Some(early);
                    return Ok(OpenedQuic { connection, early });
                }
                // There is no session to resume.
                Err(connecting) => connecting,
            };
        }
        match time::timeout(PATIENCE, connecting).await {
            Ok(Ok(connection)) => {
                self.counts.add_handshake();
                // quinn does not say whether it has resumed a session.
                scope::connection_step(|| ConnectionStep::Quic { handshake: None });
                let early = None;
                Ok(OpenedQuic { connection, early })
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
    let socket = client_socket(server, parameters)?;
    endpoint(runtime, socket, settings, None)
}

/// A new socket of the initiator.
pub(super) fn client_socket(
    server: SocketAddr,
    parameters: &LiveConnectParameters,
) -> Result<Socket> {
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
    Ok(socket)
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
async fn shake_hands(endpoint: Endpoint, established: mpsc::Sender<Connection>, takes_early: bool) {
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
            let accepted = accept(incoming, takes_early);
            if let Ok(Ok(connection)) = time::timeout(HANDSHAKE, accepted).await {
                // The listener may have ended before.
                let _ = established.send(connection).await;
            }
        });
        under_way.push_back(handshake.abort_handle());
    }
}

/// Shakes hands, until data can be exchanged: early data is taken, and answered, before the client's Finished. By then the client has shown
/// the token, as the protocol's name in its ClientHello.
async fn accept(incoming: Incoming, takes_early: bool) -> Result<Connection, ConnectionError> {
    let mut connecting = incoming.accept()?;
    if !takes_early {
        return connecting.await;
    }
    connecting.handshake_data().await?;
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => connecting.await,
    }
}

/// The error when no more connections can come.
pub(super) fn socket_failed() -> Error {
    Error::measurement("QUIC's socket has failed")
}
