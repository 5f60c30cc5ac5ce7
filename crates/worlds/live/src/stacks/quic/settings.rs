//! The options of `quic` as quinn's settings, and what they are in a result.

use crate::error::{Error, Result};
use crate::stacks::certificate::{RunCertificate, client_counting, unavailable};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::ip;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, ConnectionError, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig,
    VarInt,
};
use rustls::client::Resumption;
use rustls::version::TLS13;
use stackline_core::plan::Stack;
use stackline_core::units;
use stackline_proto::datagram::DatagramToken;
use stackline_proto::quic::{RECEIVE_BUFFER, SEND_BUFFER, TIMEOUT_S, initial_window};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// quinn's default of the buffer for datagrams that wait to be sent, bytes.
const DATAGRAM_SEND_BUFFER: u64 = 1 << 20;

#[derive(Clone)]
pub(crate) struct QuicSettings {
    stack: Stack,
    pub(super) token: DatagramToken,
    carries_data: bool,
}

impl QuicSettings {
    pub(crate) fn new(parameters: &LiveConnectParameters) -> Self {
        Self {
            stack: parameters.stack.clone(),
            token: parameters.token,
            carries_data: parameters.carries_data,
        }
    }

    /// Whether the next connection begins with a stream on which the initiator introduces itself; `introduced` is whether one has.
    pub(crate) const fn introduces(&self, introduced: &mut bool) -> bool {
        !std::mem::replace(introduced, true) || self.carries_data
    }

    /// Whether connections may begin with early data: without data there is none.
    pub(super) fn sends_early(&self) -> bool {
        self.stack.flag("early_data") && self.carries_data
    }

    /// Whether data units are datagrams.
    pub(super) fn sends_datagrams(&self) -> bool {
        self.stack.flag("datagrams")
    }

    /// Seconds after which a call in datagrams counts as lost, if they are written.
    pub(super) fn call_timeout(&self) -> Option<f64> {
        self.stack.seconds("call_timeout")
    }

    /// Whether connections carry data units.
    pub(super) const fn carries_data(&self) -> bool {
        self.carries_data
    }

    /// Whether the initiator changes its address.
    pub(super) fn migrates(&self) -> bool {
        self.stack.seconds("migrate").is_some_and(|time| time > 0.0)
    }

    fn congestion(&self) -> &str {
        self.stack.word("congestion").unwrap_or("cubic")
    }

    fn send_buffer(&self) -> u64 {
        let usual = match self.sends_datagrams() {
            true => DATAGRAM_SEND_BUFFER,
            false => SEND_BUFFER,
        };
        self.stack.number("send_buffer").unwrap_or(usual)
    }

    fn receive_buffer(&self) -> u64 {
        self.stack
            .number("receive_buffer")
            .unwrap_or(RECEIVE_BUFFER)
    }

    /// Seconds of silence after which a connection is given up; 0 for never.
    pub(crate) fn timeout(&self) -> f64 {
        self.stack.seconds("timeout").unwrap_or(TIMEOUT_S)
    }

    fn controllers(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        let window = initial_window(&self.stack);
        match self.congestion() {
            "reno" => {
                let mut reno = NewRenoConfig::default();
                reno.initial_window(window);
                Arc::new(reno)
            }
            "bbr" => {
                let mut bbr = BbrConfig::default();
                bbr.initial_window(window);
                Arc::new(bbr)
            }
            _ => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(window);
                Arc::new(cubic)
            }
        }
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        let varint = |value: u64| VarInt::from_u64(value).unwrap_or(VarInt::MAX);
        let timeout =
            (self.timeout() > 0.0).then(|| Duration::from_secs_f64(self.timeout().min(1e9)));
        transport
            .congestion_controller_factory(self.controllers())
            .stream_receive_window(varint(self.receive_buffer()))
            .send_window(self.send_buffer())
            .max_idle_timeout(timeout.and_then(|time| IdleTimeout::try_from(time).ok()));
        if let Some(streams) = self.stack.number("streams") {
            // Over HTTP/3 each pair has a stream that says that it is there, and one for its exchange.
            transport.max_concurrent_bidi_streams(varint(100 + 2 * streams));
        }
        if self.sends_datagrams() {
            transport
                .datagram_receive_buffer_size(usize::try_from(self.receive_buffer()).ok())
                .datagram_send_buffer_size(
                    usize::try_from(self.send_buffer()).unwrap_or(usize::MAX),
                );
        }
        if let Some(mtu) = self.mtu() {
            transport.initial_mtu(mtu).mtu_discovery_config(None);
        }
        Arc::new(transport)
    }

    /// The largest UDP payload, where it is not discovered.
    fn mtu(&self) -> Option<u16> {
        let written = self.stack.number("mtu")?;
        Some(u16::try_from(written).unwrap_or(u16::MAX))
    }

    /// The settings of a socket.
    pub(crate) fn endpoint(&self) -> EndpointConfig {
        let mut config = EndpointConfig::default();
        if let Some(mtu) = self.mtu() {
            // Only values below 1200 are rejected, and the option's range excludes them.
            let _ = config.max_udp_payload_size(mtu);
        }
        config
    }

    /// The protocol's name in the handshake: the token, which only the two ends know.
    fn protocol(&self) -> Vec<Vec<u8>> {
        let mut name = "stackline ".to_string();
        for byte in self.token {
            let _ = write!(name, "{byte:02x}");
        }
        vec![name.into_bytes()]
    }

    /// The responder's settings, and the fingerprint of its certificate.
    pub(crate) fn server(&self) -> Result<(ServerConfig, String)> {
        let (tls, fingerprint) = self.tls_server()?;
        Ok((self.server_with(tls)?, fingerprint))
    }

    /// The responder's settings of TLS, and the fingerprint of its certificate.
    pub(super) fn tls_server(&self) -> Result<(rustls::ServerConfig, String)> {
        let certificate = RunCertificate::new()?;
        let fingerprint = certificate.fingerprint();
        let mut tls = certificate.server(&[&TLS13])?;
        tls.alpn_protocols = self.protocol();
        if !self.stack.flag("resume") {
            tls.send_tls13_tickets = 0;
        }
        if self.sends_early() {
            // QUIC's own limits hold for early data too (RFC 9001, 4.6.1).
            tls.max_early_data_size = u32::MAX;
        }
        Ok((tls, fingerprint))
    }

    /// The responder's settings with those of TLS.
    pub(super) fn server_with(&self, tls: rustls::ServerConfig) -> Result<ServerConfig> {
        let tls = QuicServerConfig::try_from(tls).map_err(|e| unavailable(&e))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config
            .transport_config(self.transport())
            .migration(self.migrates());
        Ok(config)
    }

    /// The initiator's settings; it accepts the certificate with that fingerprint alone, and counts how often.
    pub(crate) fn client(&self, pin: &str, verified: Arc<AtomicU64>) -> Result<ClientConfig> {
        let mut tls = client_counting(pin, &[&TLS13], verified)?;
        tls.alpn_protocols = self.protocol();
        tls.enable_early_data = self.sends_early();
        if !self.stack.flag("resume") {
            tls.resumption = Resumption::disabled();
        }
        self.client_with(tls)
    }

    /// The settings of a client with those of TLS.
    pub(crate) fn client_with(&self, tls: rustls::ClientConfig) -> Result<ClientConfig> {
        let tls = QuicClientConfig::try_from(tls).map_err(|e| unavailable(&e))?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(self.transport());
        Ok(config)
    }

    /// The settings in force, by option name.
    pub(crate) fn in_force(&self) -> BTreeMap<String, String> {
        let timeout = self.timeout();
        let timeout = if timeout > 0.0 {
            units::format_time(timeout)
        } else {
            "none".to_string()
        };
        let mut settings = BTreeMap::from(
            [
                ("congestion", self.congestion().to_string()),
                ("send_buffer", format!("{} B", self.send_buffer())),
                ("receive_buffer", format!("{} B", self.receive_buffer())),
                ("timeout", timeout),
            ]
            .map(|(name, value)| (name.to_string(), value)),
        );
        if let Some(streams) = self.stack.number("streams") {
            settings.insert("streams".into(), streams.to_string());
        }
        settings
    }

    /// The error of a handshake that failed.
    pub(crate) fn refused(&self, server: SocketAddr, error: &ConnectionError) -> Error {
        match error {
            ConnectionError::TimedOut => {
                ip::unreachable(&server.to_string(), &std::io::ErrorKind::TimedOut.into())
            }
            error => Error::measurement(format!("QUIC's handshake with {server} failed: {error}")),
        }
    }
}
