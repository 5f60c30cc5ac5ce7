//! A protocol on a TCP connection, with TLS between them if it is asked for: how both ends get their connections.

use super::socket::LayeredSocket;
use super::tls::{TlsClient, TlsServer};
use super::wire::LayeredWire;
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Blame, Result};
use crate::stacks::connection_group::GroupMember;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip;
use crate::stacks::tcp::{TcpConnector, TcpListener};
use socket2::Socket;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::Stack;
use stackline_events::scope::{self, ConnectionStep};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A protocol on a TCP connection.
pub(crate) struct LayeredStack {
    pub(super) table: &'static StackTable,
    /// The protocol's name within TLS (ALPN, RFC 7301); empty if it has none.
    pub(super) alpn: &'static str,
    /// Whether it runs over TLS whether the option is written or not.
    pub(super) always_tls: bool,
    /// The initiator's connection over a connected wire.
    pub(super) connect: fn(LayeredWire, &Stack) -> Result<Box<dyn LiveConnection>>,
    /// The responder's connection over an accepted wire.
    pub(super) accept: fn(LayeredWire, &Stack) -> Result<Box<dyn LiveConnection>>,
    /// The two sides of pairs that share a connection, if the protocol has streams.
    pub(super) shared: Option<SharedLayered>,
}

impl LayeredStack {
    fn is_over_tls(&self, stack: &Stack) -> bool {
        self.always_tls || stack.flag("tls")
    }
}

impl LiveStack for LayeredStack {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        if let (Some(shared), Some(member)) = (&self.shared, &parameters.member) {
            return (shared.listen)(self, parameters, member);
        }
        Ok(Box::new(LayeredListener {
            wires: WireListener::new(self, parameters)?,
            known_by_address: false,
            carries_data: parameters.carries_data,
            accept: self.accept,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        if let (Some(shared), Some(member)) = (&self.shared, &parameters.member) {
            return (shared.connector)(self, parameters, address, member);
        }
        Ok(Box::new(LayeredConnector {
            wires: WireConnector::new(self, parameters, address)?,
            connect: self.connect,
        }))
    }
}

/// How the responder's side of pairs that share connections begins.
type ListenShared =
    fn(&LayeredStack, &LiveConnectParameters, &GroupMember) -> Result<Box<dyn LiveListener>>;
/// How the initiator's side of them begins; the text is the listener's address.
type ConnectShared =
    fn(&LayeredStack, &LiveConnectParameters, &str, &GroupMember) -> Result<Box<dyn Connector>>;

/// How the two sides of pairs that share connections begin.
pub(super) struct SharedLayered {
    pub(super) listen: ListenShared,
    pub(super) connector: ConnectShared,
}

/// Accepts TCP connections, and shakes hands over them where TLS is asked for.
pub(super) struct WireListener {
    tcp: TcpListener,
    tls: Option<TlsServer>,
    pub(super) stack: Stack,
}

impl WireListener {
    pub(super) fn new(protocol: &LayeredStack, parameters: &LiveConnectParameters) -> Result<Self> {
        let tls = protocol
            .is_over_tls(&parameters.stack)
            .then(|| TlsServer::new(parameters, protocol.alpn))
            .transpose()?;
        Ok(Self {
            tcp: TcpListener::new(parameters, None)?,
            tls,
            stack: parameters.stack.clone(),
        })
    }

    pub(super) fn address(&self) -> String {
        match &self.tls {
            None => self.tcp.port(),
            Some(tls) => format!("{}/{}", self.tcp.port(), tls.fingerprint()),
        }
    }

    /// How often handshakes came about how, by name.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.tls.as_ref().map(TlsServer::counts).unwrap_or_default()
    }

    /// The next connection, over which `accept` begins the protocol.
    pub(super) fn accept<T>(
        &mut self,
        buffers: &LiveThreadBuffers,
        accept: impl FnOnce(LayeredWire, &Stack) -> Result<T>,
    ) -> Result<T> {
        let socket = self.tcp.accept_socket(buffers)?;
        self.open(socket, buffers, accept)
    }

    /// Shakes hands over an accepted connection, within a time.
    fn open<T>(
        &self,
        socket: Socket,
        buffers: &LiveThreadBuffers,
        accept: impl FnOnce(LayeredWire, &Stack) -> Result<T>,
    ) -> Result<T> {
        let socket = LayeredSocket::new(socket, &self.stack, None, &buffers.flags)?;
        let shared = Arc::clone(socket.shared());
        let patience = |time| {
            let set = shared.socket.set_read_timeout(time);
            set.map_err(|e| error::io_error("SO_RCVTIMEO", &e))
        };
        patience(Some(ip::PATIENCE))?;
        let wire = match &self.tls {
            None => LayeredWire::Plain(socket),
            Some(tls) => LayeredWire::Tls(tls.shake_hands(socket)?),
        };
        let opened = accept(wire, &self.stack)?;
        patience(None)?;
        Ok(opened)
    }
}

struct LayeredListener {
    wires: WireListener,
    /// Whether the next connection is known by its address alone, as in procedures without data all but the first are.
    known_by_address: bool,
    carries_data: bool,
    accept: fn(LayeredWire, &Stack) -> Result<Box<dyn LiveConnection>>,
}

impl LiveListener for LayeredListener {
    fn address(&self) -> String {
        self.wires.address()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        loop {
            let socket = self.wires.tcp.accept_socket(buffers)?;
            let opened = self.wires.open(socket, buffers, self.accept);
            match opened {
                // It may have been another program at the peer's address.
                Err(error) if self.known_by_address && error.blame != Blame::Interrupted => {}
                opened => {
                    self.known_by_address = !self.carries_data;
                    return opened;
                }
            }
        }
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.wires.counts()
    }
}

/// Opens TCP connections, and shakes hands over them where TLS is asked for.
pub(super) struct WireConnector {
    tcp: TcpConnector,
    tls: Option<TlsClient>,
    pub(super) stack: Stack,
}

impl WireConnector {
    pub(super) fn new(
        protocol: &LayeredStack,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Self> {
        let (address, fingerprint) = address.split_once('/').unwrap_or((address, ""));
        let tls = protocol
            .is_over_tls(&parameters.stack)
            .then(|| TlsClient::new(parameters, protocol.alpn, fingerprint))
            .transpose()?;
        Ok(Self {
            tcp: TcpConnector::new(parameters, address, None)?,
            tls,
            stack: parameters.stack.clone(),
        })
    }

    /// How often handshakes came about how, by name.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.tls.as_ref().map(TlsClient::counts).unwrap_or_default()
    }

    pub(super) fn connect(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<LayeredWire> {
        let (socket, token) = self.tcp.connect_socket(flags)?;
        scope::connection_step(|| ConnectionStep::Tcp);
        let socket = LayeredSocket::new(socket, &self.stack, token, flags)?;
        Ok(match &self.tls {
            None => LayeredWire::Plain(socket),
            Some(tls) => LayeredWire::Tls(tls.shake_hands(socket)?),
        })
    }
}

struct LayeredConnector {
    wires: WireConnector,
    connect: fn(LayeredWire, &Stack) -> Result<Box<dyn LiveConnection>>,
}

impl Connector for LayeredConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let wire = self.wires.connect(&buffers.flags)?;
        (self.connect)(wire, &self.wires.stack)
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.wires.counts()
    }
}
