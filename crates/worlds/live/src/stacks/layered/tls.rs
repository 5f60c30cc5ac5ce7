//! Sessions of TLS 1.2 and 1.3 (rustls) on a TCP socket. The responder makes a key and a certificate for the run; its fingerprint goes to the
//! initiator with the port, and the initiator accepts no other certificate.

use super::socket::LayeredSocket;
use super::tls_farewells::TlsFarewells;
use super::tls_session::{EARLY_DATA_BYTES, TlsSession};
use crate::error::Result;
use crate::stacks::certificate::{NAME, RunCertificate, client_of, unavailable};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::handshake_counts::HandshakeCounts;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
    SupportedProtocolVersion, version,
};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_events::scope;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Those of every world, and early data, which the simulated world has not.
pub(super) const OPTIONS: [OptionTable; 3] = StackTable::joined(
    &stackline_proto::tls::OPTIONS,
    &[OptionTable::flag(
        "early_data",
        "with `resume`: later connections send their first 8 KiB with the ClientHello (0-RTT), a round trip earlier; whoever sees them could replay them",
    )],
);

/// What the options of `tls` need of each other.
pub(super) const NEEDS: &[(&str, &str)] = &[("early_data", "resume")];
/// The same where TLS is an option.
pub(super) const NEED_TLS: &[(&str, &str)] = &[
    ("version", "tls"),
    ("resume", "tls"),
    ("early_data", "resume"),
];
/// TLS 1.2 has no early data.
pub(super) const EXCLUSIVE: &[&[&str]] = &[&["early_data", "version = tls12"]];
/// The same where pairs may share a connection, whose first data is that of all.
pub(super) const EXCLUSIVE_WITH_STREAMS: &[&[&str]] = &[
    &["early_data", "version = tls12"],
    &["early_data", "streams"],
];

/// The initiator's side of TLS for the connections of a pair.
pub(super) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    counts: Arc<HandshakeCounts>,
    /// Sessions that were left; `None` where none is resumed, so that servers send no tickets.
    farewells: Option<Arc<TlsFarewells>>,
}

impl TlsClient {
    /// A client that accepts the certificate with that fingerprint alone.
    pub(super) fn new(parameters: &LiveConnectParameters, alpn: &str, pin: &str) -> Result<Self> {
        let stack = &parameters.stack;
        let mut config = client_of(pin, &versions(stack))?;
        config.alpn_protocols = protocols(alpn);
        config.enable_early_data = sends_early(parameters);
        if !stack.flag("resume") {
            config.resumption = Resumption::disabled();
        }
        let name = ServerName::try_from(NAME).map_err(|e| unavailable(&e))?;
        Ok(Self {
            config: Arc::new(config),
            name,
            counts: Arc::default(),
            farewells: stack.flag("resume").then(Arc::default),
        })
    }

    /// Shakes hands over a new connection.
    pub(super) fn shake_hands(&self, socket: LayeredSocket) -> Result<TlsSession> {
        if let Some(farewells) = &self.farewells {
            // The tickets of the last connection are those of this one.
            farewells.take();
        }
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let session = session.map_err(|e| unavailable(&e))?;
        let open = opened(session.into(), socket, &self.counts)?;
        scope::connection_step(|| open.step());
        Ok(match &self.farewells {
            Some(farewells) => open.kept_by(farewells),
            None => open,
        })
    }

    /// How often handshakes came about how, by name.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.by_name()
    }
}

/// The responder's side of TLS for the connections of a pair.
pub(super) struct TlsServer {
    config: Arc<ServerConfig>,
    fingerprint: String,
    counts: Arc<HandshakeCounts>,
}

impl TlsServer {
    /// A server with a certificate of its own (ECDSA, P-256).
    pub(super) fn new(parameters: &LiveConnectParameters, alpn: &str) -> Result<Self> {
        let stack = &parameters.stack;
        let certificate = RunCertificate::new()?;
        let fingerprint = certificate.fingerprint();
        let mut config = certificate.server(&versions(stack))?;
        config.alpn_protocols = protocols(alpn);
        if !stack.flag("resume") {
            config.send_tls13_tickets = 0;
        }
        if sends_early(parameters) {
            config.max_early_data_size = EARLY_DATA_BYTES as u32;
            // What answers early data does not wait for the client's Finished (RFC 8446, 2.3).
            config.send_half_rtt_data = true;
        }
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
            counts: Arc::default(),
        })
    }

    /// The SHA-256 of the certificate in hexadecimal digits.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Shakes hands over an accepted connection.
    pub(super) fn shake_hands(&self, socket: LayeredSocket) -> Result<TlsSession> {
        let session = ServerConnection::new(Arc::clone(&self.config));
        let session = session.map_err(|e| unavailable(&e))?;
        opened(session.into(), socket, &self.counts)
    }

    /// How often handshakes came about how, by name.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.by_name()
    }
}

/// Whether connections may begin with early data: without data there is none.
fn sends_early(parameters: &LiveConnectParameters) -> bool {
    parameters.stack.flag("early_data") && parameters.carries_data
}

fn versions(stack: &Stack) -> [&'static SupportedProtocolVersion; 1] {
    match stack.word("version") {
        Some("tls12") => [&version::TLS12],
        _ => [&version::TLS13],
    }
}

fn protocols(alpn: &str) -> Vec<Vec<u8>> {
    let names = (!alpn.is_empty()).then(|| alpn.as_bytes().to_vec());
    names.into_iter().collect()
}

/// The session of an end of a run.
fn opened(
    session: Connection,
    socket: LayeredSocket,
    counts: &Arc<HandshakeCounts>,
) -> Result<TlsSession> {
    let shared = Arc::clone(socket.shared());
    let open = TlsSession::open(session, socket, counts);
    open.map_err(|e| shared.failure("the TLS handshake", &e))
}

#[cfg(test)]
mod tests;
