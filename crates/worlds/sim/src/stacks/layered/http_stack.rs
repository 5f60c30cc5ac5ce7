//! The stacks `http1` and `http2`.

use super::http_group::{SimHttpGroup, SimHttpVersion};
use super::tables::{TABLE, WITH_TLS};
use crate::error::{Error, Result};
use crate::stacks::pair::{SimEndpointPair, SimPairRoute, SimStack};
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::plan;
use stackline_proto::http::HTTP2_OPTIONS;
use stackline_proto::tls::NEED_TLS;
use std::rc::Rc;

const HTTP1_TABLE: StackTable = StackTable {
    name: "http1",
    summary: "HTTP/1.1 (RFC 9112) over TCP in virtual time, or over TLS, with the bytes of hyper",
    options: &WITH_TLS,
    needs: NEED_TLS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> SYN, SYN-ACK, ACK, 16 bytes of introduction (in procedures without data: on the first connection only), the TLS \
handshake with `tls`
AwaitConnectIndication -> the same, from the other side
DataRequest -> a chunk of the body of POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers a chunk of that body
AwaitDataIndication -> chunks until the unit's length has come
RPCCall -> the end of POST /stream and of its response, if it is open; POST /call with the request as body, its response with a body
RPCAwaitCallInd -> the head and the body of the request
RPCReturn -> the response with a body
StartBulkGet -> GET /get
StartBulkPut -> POST /put, with a chunked body
AwaitStartBulkGet, AwaitStartBulkPut -> the request's head
StopBulkGet, AwaitStopBulkGet -> the last chunk
StopBulkPut -> the last chunk, then the response
AwaitStopBulkPut -> the last chunk from the peer, the response
end of stream (time limit) -> the last chunk; after calls FIN
DisconnectRequest -> FIN
AwaitDisconnectIndication -> FIN from the peer, then a FIN in reply",
    ),
    ..TABLE
};

const HTTP2_TABLE: StackTable = StackTable {
    name: "http2",
    summary: "HTTP/2 (RFC 9113) over TCP in virtual time, or over TLS, with the frames and windows of h2",
    options: &WITH_STREAMS,
    shares_connections: true,
    needs: NEED_TLS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> SYN, SYN-ACK, ACK, 16 bytes of introduction (in procedures without data: on the first connection only), the TLS \
handshake with `tls`, the preface and SETTINGS; with `streams` this by the first pair, then HEADERS of POST /join by each
AwaitConnectIndication -> the same, from the other side
DataRequest -> DATA frames of a stream POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers DATA frames of that stream
AwaitDataIndication -> DATA until the unit's length has come; WINDOW_UPDATE as it is used
RPCCall -> HEADERS and DATA of POST /call on a stream of its own, those of the response
RPCAwaitCallInd -> the request's HEADERS and DATA
RPCReturn -> HEADERS and DATA
StartBulkGet -> HEADERS of GET /get
StartBulkPut -> HEADERS of POST /put
AwaitStartBulkGet, AwaitStartBulkPut -> HEADERS
StopBulkGet, AwaitStopBulkGet -> END_STREAM
StopBulkPut -> END_STREAM, then the response
AwaitStopBulkPut -> END_STREAM from the peer, the response
end of stream (time limit) -> END_STREAM; after calls GOAWAY and FIN, with `streams` END_STREAM of POST /join
DisconnectRequest -> GOAWAY, FIN; with `streams` END_STREAM of POST /join, and GOAWAY and FIN by the last pair
AwaitDisconnectIndication -> GOAWAY, FIN or the end of POST /join from the peer",
    ),
    ..TABLE
};

const WITH_STREAMS: [OptionTable; 18] = StackTable::joined(
    &StackTable::joined::<3>(&HTTP2_OPTIONS, &[OptionTable::STREAMS]),
    &WITH_TLS,
);

/// The stack `http1`.
pub(crate) static HTTP1: SimStack = SimStack {
    table: &HTTP1_TABLE,
    group: None,
    pair: |route, stack, seed, introduces| {
        pair(SimHttpVersion::Http1, route, stack, seed, introduces)
    },
};

/// The stack `http2`.
pub(crate) static HTTP2: SimStack = SimStack {
    table: &HTTP2_TABLE,
    group: Some(|routes, stack, seed, introduces| {
        let pairs = SimHttpGroup::pairs(SimHttpVersion::Http2, routes, stack, seed, introduces);
        Ok(pairs.into_iter().map(|pair| pair as _).collect())
    }),
    pair: |route, stack, seed, introduces| {
        pair(SimHttpVersion::Http2, route, stack, seed, introduces)
    },
};

/// A pair that shares its connections with no other.
fn pair(
    version: SimHttpVersion,
    route: SimPairRoute,
    stack: &plan::Stack,
    seed: u64,
    introduces: bool,
) -> Result<Rc<dyn SimEndpointPair>> {
    let mut pairs = SimHttpGroup::pairs(version, &[route], stack, seed, introduces);
    match pairs.pop() {
        Some(pair) => Ok(pair),
        None => Err(Error::input("a group without pairs has no connection")),
    }
}
