//! Opens connections of HTTP/2 to a server: TCP, TLS where it is asked for, and the protocol's preface.

use super::socket;
use super::tls::FarEndTlsClient;
use crate::cancel::LiveCancelFlags;
use crate::clock;
use crate::error::{self, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::layered::http_client::{
    Http2Sender, HttpDriver, OpenedHttp, SharedHttpOpener, open_http2,
};
use crate::stacks::layered::wire::{LayeredSocket, LayeredWire};
use crate::stacks::server_patience::{ServerPatience, server_timeout};
use stackline_core::time::Duration;
use stackline_endpoint::ConnectionOpening;
use stackline_events::scope::{self, ConnectionStep};
use std::net::SocketAddr;
use std::sync::Arc;

/// Opens connections of HTTP/2 to a server.
#[derive(Clone)]
pub(super) struct Http2Opener {
    pub(super) parameters: LiveConnectParameters,
    pub(super) servers: Vec<SocketAddr>,
    pub(super) tls: Option<FarEndTlsClient>,
}

/// A wire to a server, and what opening it took.
struct OpenedWire {
    wire: LayeredWire,
    server: SocketAddr,
    opening: ConnectionOpening,
}

impl Http2Opener {
    /// How long its clients wait for that server.
    pub(super) fn patience(&self, server: SocketAddr) -> ServerPatience {
        ServerPatience::new(&self.parameters.stack, server)
    }

    /// Connects, and shakes hands where TLS is asked for.
    fn connect(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<OpenedWire> {
        let begun = clock::now();
        let (connected, server) = socket::connect_any(&self.parameters, &mut self.servers, flags)?;
        let stack = &self.parameters.stack;
        let connected_at = clock::now();
        let socket = LayeredSocket::new(connected, stack, None, flags)?;
        // A handshake is one wait for each flight of the server.
        let patience = socket
            .shared()
            .socket
            .set_read_timeout(Some(server_timeout(stack)));
        patience.map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
        let (wire, tls_round_trip) = match &self.tls {
            None => (LayeredWire::Plain(socket), None),
            Some(client) => {
                scope::connection_step(|| ConnectionStep::Tcp);
                let session = client.open_session(socket, server)?;
                scope::connection_step(|| session.step());
                let took = clock::now() - connected_at;
                let each = Duration(took.0 / u64::from(session.round_trips()));
                (LayeredWire::Tls(session), Some(each))
            }
        };
        let opening = ConnectionOpening {
            transport: connected_at - begun,
            tls_round_trip,
        };
        Ok(OpenedWire {
            wire,
            server,
            opening,
        })
    }

    /// Begins HTTP/2 over a wire.
    fn begin(
        &self,
        mut driver: HttpDriver,
        wire: LayeredWire,
        server: SocketAddr,
    ) -> Result<OpenedHttp<Http2Sender>> {
        driver.limit(self.patience(server));
        open_http2(driver, wire, None)
    }

    /// A connection that the thread of one pair drives, and what opening it took.
    pub(super) fn open_alone(
        &mut self,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<(OpenedHttp<Http2Sender>, ConnectionOpening)> {
        let opened = self.connect(flags)?;
        let driver = HttpDriver::new(opened.wire.shared())?;
        let http = self.begin(driver, opened.wire, opened.server)?;
        Ok((http, opened.opening))
    }
}

impl SharedHttpOpener for Http2Opener {
    const REPLACES: bool = true;

    fn open(
        &mut self,
        runtime: &EndpointRuntime,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<OpenedHttp<Http2Sender>> {
        let opened = self.connect(flags)?;
        let driver = HttpDriver::in_runtime(opened.wire.shared(), runtime)?;
        self.begin(driver, opened.wire, opened.server)
    }
}
