//! Servers of one idea: echo (RFC 862), discard (RFC 863) and character generator (RFC 864), and any server that only has to accept
//! connections.

use super::byte_stream::FarEndStream;
use super::tls_start::TlsStart;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::Result;
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_endpoint::BulkDirection;

pub(crate) static ECHO: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "echo",
        // It is sent before anything is received: more would fill both directions.
        largest_unit: 64 << 10,
        summary: "client of a TCP echo server (RFC 862)",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
RPCCall -> send of the request, recv until as much has come back
DisconnectRequest -> close",
        ),
        ..TABLE
    },
    port: Some(7),
    tls: TlsStart::Never(None),
    client: |_, _| Ok(Box::new(Echo)),
};

pub(crate) static DISCARD: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "discard",
        summary: "client of a TCP discard server (RFC 863)",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
StartBulkPut -> none
DataRequest -> send of the whole unit
StopBulkPut -> shutdown(SHUT_WR), recv until it returns 0: the server has received everything and closes
DisconnectRequest -> close",
        ),
        ..TABLE
    },
    port: Some(9),
    tls: TlsStart::Never(None),
    client: |_, _| Ok(Box::new(Discard::default())),
};

pub(crate) static CHARGEN: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "chargen",
        summary: "client of a TCP character generator (RFC 864), or of any server that sends without being asked",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
StartBulkGet -> none: the server sends without being asked
AwaitDataIndication -> recv of up to 128 KiB until the unit is complete
StopBulkGet -> none
DisconnectRequest -> close",
        ),
        ..TABLE
    },
    port: Some(19),
    tls: TlsStart::Never(None),
    client: |_, _| Ok(Box::new(Chargen)),
};

pub(crate) static TCPCONNECT: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "tcpconnect",
        summary: "connects to any TCP server and sends nothing: how long the handshake takes",
        mapping: ServiceMapping("ConnectRequest -> socket, connect\nDisconnectRequest -> close"),
        ..TABLE
    },
    port: None,
    tls: TlsStart::Never(None),
    client: |_, _| Ok(Box::new(Silence)),
};

struct Echo;

impl FarEndProtocol for Echo {
    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if !stream.send(request)? {
            return Err(stream.cut_short("a request"));
        }
        stream.skip(request.len() as u64, "the echo")
    }
}

#[derive(Default)]
struct Discard {
    /// Whether the present connection carries no more.
    has_ended: bool,
}

impl FarEndProtocol for Discard {
    fn start_bulk(&mut self, stream: &mut FarEndStream, _: BulkDirection) -> Result<()> {
        if std::mem::take(&mut self.has_ended) {
            stream.reconnect()?;
        }
        Ok(())
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        if stream.send(unit)? {
            Ok(())
        } else {
            Err(stream.cut_short("a put"))
        }
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, _: BulkDirection) -> Result<()> {
        self.has_ended = true;
        stream.finish_sending()
    }
}

struct Chargen;

impl FarEndProtocol for Chargen {
    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        stream.skip(bytes, "its data")
    }
}

struct Silence;

impl FarEndProtocol for Silence {}
