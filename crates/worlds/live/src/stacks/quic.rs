//! `quic`: QUIC (RFC 9000) of quinn, one UDP socket for each end of a pair, one connection at a time with one bidirectional stream.
//!
//! An endpoint's own thread drives quinn, within its operations: there is no other thread. Between two operations nothing is sent, received
//! or acknowledged, as in a program of one thread.
//!
//! Strangers fail in the handshake: both sides offer the token of the run as the protocol's name (ALPN), and nothing else.

mod channel;
mod counts;
mod datagrams;
mod end;
mod http3;
mod migration;
mod options;
mod settings;
mod shared;
mod sockets;

use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use end::QuicEnd;
use options::{QUIC_EXCLUSIVE, QUIC_NEEDS, QUIC_OPTIONS};
use shared::SharedQuic;
use sockets::{QuicClient, QuicServer, socket_failed};
use stackline_core::catalogue::{ServiceMapping, StackTable, StackVariant};
use stackline_os::datagram_batch::LARGEST_DATAGRAM;
use stackline_proto::datagram::NUMBER;
use stackline_proto::quic;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A protocol on a QUIC connection.
pub(super) struct QuicStack {
    table: &'static StackTable,
    /// The initiator's side of a connection.
    connect: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
    /// The responder's side.
    accept: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
    /// The two sides of pairs that share a connection.
    shared: SharedQuic,
}

/// QUIC's table with what the kernel's sockets add. quinn sets the byte of the code point itself, with each packet.
const TABLE: StackTable = StackTable {
    options: &QUIC_OPTIONS,
    needs: QUIC_NEEDS,
    exclusive: QUIC_EXCLUSIVE,
    variant: Some(StackVariant {
        option: "datagrams",
        least_bulk_unit: NUMBER as u64,
        largest_unit: LARGEST_DATAGRAM as u64,
    }),
    mapping: ServiceMapping(
        "\
ConnectRequest -> handshake until it completes here (with `early_data` and a session to resume, beside what follows), then a stream with 16 \
bytes of introduction (in procedures without data: on the first connection only); with `streams` the first pair's handshake, then a stream \
with 18 bytes by each; with `datagrams` no stream
AwaitConnectIndication -> the same, from the other side: the stream is accepted
DataRequest -> the whole unit into the stream's send buffer; with `datagrams` a DATAGRAM frame, when congestion control permits
AwaitDataIndication -> from the stream until the unit is complete; data read ahead serves the next unit; with `datagrams` from DATAGRAM frames
RPCCall -> the request into the stream, the response from it; with `datagrams` in frames: no answer within `call_timeout` counts as a loss
RPCAwaitCallInd, RPCReturn -> the same, from the other side
StartBulkGet, StartBulkPut -> 1 byte; with `datagrams` control START until answered (or until data arrives)
StopBulkGet -> none: the last unit has arrived; with `datagrams` END with the number of units sent, answered
AwaitStopBulkGet -> none: nothing is held back; with `datagrams` control END until answered
StopBulkPut -> 1 byte that confirms arrival; with `datagrams` control END until answered
AwaitStopBulkPut -> that byte; with `datagrams` END, answered
end of stream (time limit) -> FIN of the stream; with `datagrams` control END until answered
DisconnectRequest -> FIN of the stream; CONNECTION_CLOSE when it is acknowledged (at once when there are unread bytes), with `streams` by \
the last pair; with `datagrams` control BYE until answered, CONNECTION_CLOSE
AwaitDisconnectIndication -> FIN or CONNECTION_CLOSE from the peer, then a FIN in reply; with `datagrams` BYE, answered",
    ),
    ..quic::TABLE
};

/// The stack `quic`.
pub(super) const QUIC: QuicStack = QuicStack {
    table: &TABLE,
    connect: |end| match end.settings.sends_datagrams() {
        true => Ok(datagrams::over(end)),
        false => channel::connect(end),
    },
    accept: |end| match end.settings.sends_datagrams() {
        true => Ok(datagrams::over(end)),
        false => channel::accept(end),
    },
    shared: SharedQuic::new::<shared::SharedStreams>(),
};

/// The stack `http3`.
pub(super) const HTTP3: QuicStack = QuicStack {
    table: &http3::TABLE,
    connect: |end| Ok(Box::new(http3::initiator::Http3Initiator::connect(end)?)),
    accept: |end| Ok(Box::new(http3::responder::Http3Responder::accept(end)?)),
    shared: SharedQuic::new::<http3::shared::SharedRequests>(),
};

impl LiveStack for QuicStack {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        if let Some(member) = &parameters.member {
            return (self.shared.listen)(parameters, member);
        }
        Ok(Box::new(QuicListener {
            server: QuicServer::open(parameters)?,
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
        if let Some(member) = &parameters.member {
            return (self.shared.connector)(parameters, address, member);
        }
        Ok(Box::new(QuicConnector {
            client: QuicClient::open(parameters, address)?,
            introduced: false,
            flags: None,
            connect: self.connect,
        }))
    }
}

/// What clients of servers outside the run need.
pub(super) mod client {
    pub(crate) use super::end::QuicEnd;
    pub(crate) use super::http3::{failed, store};
    pub(crate) use super::settings::QuicSettings;
    pub(crate) use super::sockets::client_endpoint;
}

struct QuicListener {
    server: QuicServer,
    /// Whether an earlier connection has introduced itself.
    introduced: bool,
    /// Those of the job, once it has a connection.
    flags: Option<Arc<LiveCancelFlags>>,
    accept: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
}

impl LiveListener for QuicListener {
    fn address(&self) -> String {
        self.server.address.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let server = &mut self.server;
        let next = server
            .runtime
            .run(&buffers.flags, server.connections.recv())?;
        let connection = next.ok_or_else(socket_failed)?;
        self.flags = Some(Arc::clone(&buffers.flags));
        let end = QuicEnd::new(
            &server.runtime,
            connection,
            &server.settings,
            server.settings.introduces(&mut self.introduced),
            &buffers.flags,
        );
        (self.accept)(end.watching(&server.counts))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.server.counts.by_name()
    }
}

impl Drop for QuicListener {
    fn drop(&mut self) {
        let server = &self.server;
        server
            .runtime
            .leave(self.flags.as_ref(), server.endpoint.wait_idle());
    }
}

struct QuicConnector {
    client: QuicClient,
    /// Whether an earlier connection has introduced itself.
    introduced: bool,
    /// Those of the job, once it has a connection.
    flags: Option<Arc<LiveCancelFlags>>,
    connect: fn(QuicEnd) -> Result<Box<dyn LiveConnection>>,
}

impl Connector for QuicConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let client = &self.client;
        let opened = client.runtime.run(&buffers.flags, client.connect())??;
        self.flags = Some(Arc::clone(&buffers.flags));
        let end = QuicEnd::new(
            &client.runtime,
            opened.connection,
            &client.settings,
            client.settings.introduces(&mut self.introduced),
            &buffers.flags,
        );
        (self.connect)(end.offering(&client.counts, opened.early))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.client.counts.by_name()
    }
}

impl Drop for QuicConnector {
    fn drop(&mut self) {
        let client = &self.client;
        client
            .runtime
            .leave(self.flags.as_ref(), client.endpoint.wait_idle());
    }
}

#[cfg(test)]
mod tests;
