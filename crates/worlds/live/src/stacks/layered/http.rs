//! `http1`, `http2` and `grpc`: HTTP by hyper. A call is a request with a body and its response, a bulk transfer is one request whose body
//! or whose response's body carries the data units, and data units outside of both are in the two bodies of one exchange.

pub(super) mod body;
pub(super) mod driver;
pub(super) mod grpc;
mod initiator;
pub(super) mod opening;
mod responder;
mod shared;
pub(super) mod shared_client;
mod style;

use super::stack::{LayeredStack, SharedLayered};
use super::tables::{EXCLUSIVE, EXCLUSIVE_WITH_STREAMS, NEED_TLS, TABLE, WITH_TLS};
use super::wire::LayeredWire;
use crate::error::Result;
use crate::stacks::contract::LiveConnection;
use initiator::HttpInitiator;
use responder::HttpResponder;
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::plan::Stack;
use stackline_proto::http::HTTP2_OPTIONS;
use style::HttpStyle;

const WITH_WINDOWS: [OptionTable; 20] = StackTable::joined(
    &StackTable::joined::<3>(&HTTP2_OPTIONS, &[OptionTable::STREAMS]),
    &WITH_TLS,
);

const HTTP1_TABLE: StackTable = StackTable {
    name: "http1",
    summary: "HTTP/1.1 (RFC 9112; hyper) over the kernel's TCP, or over TLS",
    options: &WITH_TLS,
    needs: NEED_TLS,
    exclusive: EXCLUSIVE,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, send of a 16-byte token (in procedures without data: on the first connection only), the TLS handshake \
with `tls`
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise), the handshake; connections without the token are closed
DataRequest -> a chunk of the body of POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers a chunk of that body
AwaitDataIndication -> recv until chunks of the unit's length have come
RPCCall -> the end of POST /stream and of its response, if it is open; POST /call with the request as body, recv until the response's \
body is complete
RPCAwaitCallInd -> recv until the request's body is complete
RPCReturn -> the response with a body
StartBulkGet -> GET /get
StartBulkPut -> POST /put, with a chunked body
AwaitStartBulkGet, AwaitStartBulkPut -> recv until the request's head is complete
StopBulkGet -> recv of the last chunk
AwaitStopBulkGet -> the last chunk
StopBulkPut -> the last chunk, recv of the response
AwaitStopBulkPut -> recv of the last chunk, the response
end of stream (time limit) -> the last chunk; after calls shutdown(SHUT_WR)
DisconnectRequest -> shutdown, close
AwaitDisconnectIndication -> recv until it returns 0, close",
    ),
    ..TABLE
};

const HTTP2_TABLE: StackTable = StackTable {
    name: "http2",
    summary: "HTTP/2 (RFC 9113; hyper, h2) over the kernel's TCP, or over TLS",
    options: &WITH_WINDOWS,
    shares_connections: true,
    needs: NEED_TLS,
    exclusive: EXCLUSIVE_WITH_STREAMS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, the TLS handshake with `tls`, the preface and SETTINGS; a 16-byte token comes first (in procedures \
without data: on the first connection only); with `streams` this by the first pair, then HEADERS of POST /join by each
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise), the handshake, SETTINGS; connections without the token are closed
DataRequest -> DATA frames of a stream POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers DATA frames of that stream
AwaitDataIndication -> recv until DATA of the unit's length has come; WINDOW_UPDATE as it is used
RPCCall -> HEADERS and DATA of POST /call on a stream of its own, recv until the response's stream ends
RPCAwaitCallInd -> recv until the request's stream ends
RPCReturn -> HEADERS and DATA
StartBulkGet -> HEADERS of GET /get
StartBulkPut -> HEADERS of POST /put
AwaitStartBulkGet, AwaitStartBulkPut -> recv of HEADERS
StopBulkGet -> recv of END_STREAM
AwaitStopBulkGet -> END_STREAM
StopBulkPut -> END_STREAM, recv of the response
AwaitStopBulkPut -> recv of END_STREAM, the response
end of stream (time limit) -> END_STREAM; after calls GOAWAY
DisconnectRequest -> GOAWAY, close; with `streams` the end of POST /join, and this by the last pair
AwaitDisconnectIndication -> recv until the connection ends, close",
    ),
    ..TABLE
};

const GRPC_TABLE: StackTable = StackTable {
    name: "grpc",
    summary: "gRPC (unary calls and streams) on HTTP/2 (hyper, h2) over the kernel's TCP, or over TLS",
    options: &WITH_WINDOWS,
    shares_connections: true,
    needs: NEED_TLS,
    exclusive: EXCLUSIVE_WITH_STREAMS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, the TLS handshake with `tls`, the preface and SETTINGS; a 16-byte token comes first (in procedures \
without data: on the first connection only); with `streams` this by the first pair, then the request stackline.Measurement/Join by each
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise), the handshake, SETTINGS; connections without the token are closed
DataRequest -> a message of the bidirectional stream stackline.Measurement/Stream, which the first operation opens; in bulk transfers a \
message of that stream
AwaitDataIndication -> recv until messages of the unit's length have come
RPCCall -> the unary call stackline.Measurement/Call: one message each way, and the status
RPCAwaitCallInd -> recv until the request's stream ends
RPCReturn -> HEADERS, a message, trailers with the status
StartBulkGet -> the server's stream stackline.Measurement/Get, asked for with an empty message
StartBulkPut -> the client's stream stackline.Measurement/Put
AwaitStartBulkGet, AwaitStartBulkPut -> recv of HEADERS
StopBulkGet -> recv of the trailers with the status
AwaitStopBulkGet -> trailers with the status
StopBulkPut -> END_STREAM, recv of the response and its status
AwaitStopBulkPut -> recv of END_STREAM, an empty message, trailers with the status
end of stream (time limit) -> END_STREAM or the trailers; after calls GOAWAY
DisconnectRequest -> GOAWAY, close; with `streams` the end of that request, and this by the last pair
AwaitDisconnectIndication -> recv until the connection ends, close",
    ),
    ..TABLE
};

macro_rules! http_stack {
    ($table:expr, $alpn:expr, $style:expr, $shared:expr) => {
        LayeredStack {
            table: &$table,
            alpn: $alpn,
            always_tls: false,
            connect: |wire, stack| connect($style, wire, stack),
            accept: |wire, stack| accept($style, wire, stack),
            shared: $shared,
        }
    };
}

macro_rules! shared_http {
    ($style:expr) => {
        Some(SharedLayered {
            listen: |protocol, parameters, member| {
                shared::listen($style, protocol, parameters, member)
            },
            connector: |protocol, parameters, address, member| {
                shared::connector($style, protocol, parameters, address, member)
            },
        })
    };
}

/// The stack `http1`.
pub(crate) const HTTP1: LayeredStack = http_stack!(HTTP1_TABLE, "http/1.1", HttpStyle::Http1, None);
/// The stack `http2`.
pub(crate) const HTTP2: LayeredStack = http_stack!(
    HTTP2_TABLE,
    "h2",
    HttpStyle::Http2,
    shared_http!(HttpStyle::Http2)
);
/// The stack `grpc`.
pub(crate) const GRPC: LayeredStack = http_stack!(
    GRPC_TABLE,
    "h2",
    HttpStyle::Grpc,
    shared_http!(HttpStyle::Grpc)
);

fn connect(style: HttpStyle, wire: LayeredWire, stack: &Stack) -> Result<Box<dyn LiveConnection>> {
    Ok(Box::new(HttpInitiator::connect(style, wire, stack)?))
}

fn accept(style: HttpStyle, wire: LayeredWire, stack: &Stack) -> Result<Box<dyn LiveConnection>> {
    Ok(Box::new(HttpResponder::accept(style, wire, stack)?))
}
