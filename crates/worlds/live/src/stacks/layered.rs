//! Stacks of a protocol that others have specified, on one TCP connection for each pair: TLS, WebSocket, HTTP/1.1, HTTP/2, gRPC. Both ends
//! are of stackline, and what each library does is what is measured.
//!
//! The token of the run precedes the first bytes of the protocol. So whoever else connects never reaches a library: the connection is
//! closed before, as for `tcp`. Where connections carry no data, all but the first are known by the peer's address alone.

mod http;
pub(super) mod http_client;
mod socket;
mod stack;
mod tables;
mod tls;
mod tls_farewells;
mod tls_session;
#[cfg(test)]
mod tls_sizes;
mod tls_stack;
mod websocket;
pub(super) mod wire;

pub(super) use http::{GRPC, HTTP1, HTTP2};
pub(super) use tables::{TABLE as LAYERED_TABLE, TCP_OPTIONS};
pub(super) use tls_stack::TLS;
pub(super) use websocket::WEBSOCKET;
