//! What a client of HTTP needs that is not one of both ends: far ends use it.

pub(crate) use super::http::body::{BodySender, IncomingBody, OutgoingBody};
pub(crate) use super::http::driver::{HttpDriver, HttpWire};
pub(crate) use super::http::grpc::{CONTENT_TYPE as GRPC_CONTENT_TYPE, message as grpc_message};
