//! Protocols on a simulated TCP connection, with TLS between them if it is asked for.
//!
//! | module | one idea |
//! | --- | --- |
//! | `wire` | one end of a connection: TCP, TLS, and the ledger of what was written |
//! | `opener` | how connections are opened and accepted |
//! | `tables` | the options that all have |
//! | `tls_stack` | the stack `tls` |
//! | `http_stack` | the stacks `http1` and `http2` |
//! | `http_group` | the pairs that share a connection |
//! | `http_end` | one end of a connection of HTTP: its machine over its wire |
//! | `http_exchange` | how a pair waits on it, and bodies of data units |
//! | `http_initiator`, `http_responder` | the client and the server |
//! | `http_service` | the operations of the language |

mod http_end;
mod http_exchange;
mod http_group;
mod http_initiator;
mod http_responder;
mod http_service;
mod http_stack;
mod opener;
mod tables;
mod tls_stack;
mod wire;

pub(super) use http_stack::{HTTP1, HTTP2};
pub(super) use tls_stack::TLS;
