//! The socket of clients of HTTP/3 and their connections: of one pair, or of those that share a connection.

use super::tls::FarEndTlsClient;
use crate::cancel::LiveCancelFlags;
use crate::error::{Blame, Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::ip;
use crate::stacks::quic::client::{QuicEnd, QuicSettings, client_endpoint};
use crate::stacks::server_patience::ServerPatience;
use bytes::Bytes;
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use quinn::Endpoint;
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::time;

/// Opens connections of HTTP/3 to a server.
pub(super) struct Http3Client {
    /// Held by the pair that opens a connection for all.
    state: Mutex<Http3ClientState>,
    /// Those of the job, once it has a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

struct Http3ClientState {
    /// One for each address of the server, in the order in which they are tried: the first that answers is kept.
    openers: Vec<Http3Opener>,
    /// The connection that pairs can join.
    current: Option<SharedHttp3Connection>,
}

/// A connection, and the pairs on it.
struct SharedHttp3Connection {
    connection: quinn::Connection,
    sender: SendRequest<OpenStreams, Bytes>,
    opener: Http3Opener,
    /// How many pairs use it; the last to leave closes it.
    users: Arc<AtomicU64>,
    /// The pairs that have joined it, by number, though they may have left.
    joined: u128,
    received: Arc<AtomicU64>,
}

/// A pair's use of a connection, until its server ends it.
pub(super) struct Http3Link {
    pub(super) end: QuicEnd,
    pub(super) sender: SendRequest<OpenStreams, Bytes>,
    pub(super) server: SocketAddr,
    pub(super) patience: ServerPatience,
    pub(super) flags: Arc<LiveCancelFlags>,
}

impl Http3Client {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        address: &FarEndAddress,
        servers: &[SocketAddr],
        tls: &FarEndTlsClient,
    ) -> Result<Self> {
        let runtime = EndpointRuntime::new()?;
        let settings = QuicSettings::new(parameters);
        let config = settings.client_with(tls.config())?;
        let opener = |server: SocketAddr| {
            let mut endpoint = client_endpoint(&runtime, server, &settings, parameters)?;
            endpoint.set_default_client_config(config.clone());
            Ok(Http3Opener {
                runtime: runtime.clone(),
                endpoint,
                settings: settings.clone(),
                stack: parameters.stack.clone(),
                server,
                name: address.host.clone(),
            })
        };
        // An address where nothing listens shows itself by silence alone, so those of IPv4, where most servers are, come first.
        let (four, six) = servers
            .iter()
            .partition::<Vec<SocketAddr>, _>(|a| a.is_ipv4());
        let (mut openers, mut failed) = (Vec::new(), None);
        for server in four.into_iter().chain(six) {
            match opener(server) {
                Ok(opener) => openers.push(opener),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match (openers.is_empty(), failed) {
            (true, Some(error)) => Err(error),
            (true, None) => Err(Error::input("there is no server to connect to")),
            (false, _) => Ok(Self {
                state: Mutex::new(Http3ClientState {
                    openers,
                    current: None,
                }),
                flags: OnceLock::new(),
            }),
        }
    }

    /// A connection for a pair: the one that it shares with others if it has a number among them and has not been there, else a new one.
    pub(super) fn connect(
        &self,
        member: Option<u16>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Http3Link> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.flags.set(Arc::clone(flags));
        flags.interrupted()?;
        let Some(member) = member else {
            return state.open(flags).map(|(link, _)| link);
        };
        let joined = state.current.as_mut().map(|open| open.join(member, flags));
        if let Some(link) = joined.flatten() {
            return Ok(link);
        }
        // Pairs that are on the connection before stay there; the last of them closes it.
        let (link, opener) = state.open(flags)?;
        let current = state.current.insert(SharedHttp3Connection {
            connection: link.end.connection.clone(),
            sender: link.sender.clone(),
            opener,
            users: Arc::new(AtomicU64::new(1)),
            joined: place(member),
            received: Arc::default(),
        });
        let end = link.end.among(member, &current.users, &current.received);
        Ok(Http3Link { end, ..link })
    }
}

/// The bit of a pair with that number.
fn place(member: u16) -> u128 {
    1_u128.checked_shl(u32::from(member)).unwrap_or(0)
}

impl Drop for Http3Client {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        for opener in &state.unwrap_or_else(PoisonError::into_inner).openers {
            let idle = opener.endpoint.wait_idle();
            opener.runtime.leave(self.flags.get(), idle);
        }
    }
}

impl Http3ClientState {
    /// A new connection to the first server that answers, and what has opened it.
    fn open(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<(Http3Link, Http3Opener)> {
        let mut failed = None;
        for opener in &self.openers {
            match opener.open(flags) {
                Ok(link) => {
                    let opener = opener.clone();
                    self.openers.retain(|other| other.server == opener.server);
                    return Ok((link, opener));
                }
                Err(error) if error.blame == Blame::Interrupted => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::input("there is no server to connect to")))
    }
}

impl SharedHttp3Connection {
    /// Lets a pair join; `None` if the connection has ended or the last pair has left it, or this one has been on it before.
    fn join(&mut self, member: u16, flags: &Arc<LiveCancelFlags>) -> Option<Http3Link> {
        if self.connection.close_reason().is_some() || self.joined & place(member) != 0 {
            return None;
        }
        let more = |users: u64| (users > 0).then(|| users + 1);
        let joins = self
            .users
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        joins.ok()?;
        self.joined |= place(member);
        let opener = &self.opener;
        let connection = self.connection.clone();
        let end = QuicEnd::new(&opener.runtime, connection, &opener.settings, false, flags);
        let end = end.among(member, &self.users, &self.received);
        Some(opener.link(end, self.sender.clone(), flags))
    }
}

/// Opens connections to one address of a server.
#[derive(Clone)]
struct Http3Opener {
    runtime: EndpointRuntime,
    endpoint: Endpoint,
    settings: QuicSettings,
    stack: Stack,
    server: SocketAddr,
    /// The name in its certificate.
    name: String,
}

impl Http3Opener {
    fn open(&self, flags: &Arc<LiveCancelFlags>) -> Result<Http3Link> {
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
        let connected = self.runtime.run(flags, async {
            time::timeout(ip::PATIENCE, connecting).await.ok()
        })?;
        let Some(connected) = connected else {
            let silent = std::io::ErrorKind::TimedOut.into();
            return Err(ip::unreachable(&format!("{server} over UDP"), &silent)
                .hint("does the server speak HTTP/3 (QUIC over UDP), and does no firewall block it? `version = http1` is what every web server speaks"));
        };
        let end = QuicEnd::new(
            &self.runtime,
            connected.map_err(|e| refused(&e))?,
            &self.settings,
            false,
            flags,
        );
        let quic = h3_quinn::Connection::new(end.connection.clone());
        let opened = end.run(async { h3::client::new(quic).await })?;
        let (mut connection, sender) = opened.map_err(|e| refused(&e))?;
        end.runtime.spawn(async move {
            let _ = poll_fn(|context| connection.poll_close(context)).await;
        });
        end.runtime.push();
        Ok(self.link(end, sender, flags))
    }

    fn link(
        &self,
        end: QuicEnd,
        sender: SendRequest<OpenStreams, Bytes>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Http3Link {
        Http3Link {
            end,
            sender,
            server: self.server,
            patience: ServerPatience::new(&self.stack, self.server),
            flags: Arc::clone(flags),
        }
    }
}
