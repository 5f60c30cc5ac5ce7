//! What a client of HTTP needs that is not one of both ends: far ends use it.

pub(crate) use super::http::body::{BodySender, IncomingBody, OutgoingBody, SentBody};
pub(crate) use super::http::driver::HttpDriver;
pub(crate) use super::http::grpc::{CONTENT_TYPE as GRPC_CONTENT_TYPE, message as grpc_message};
pub(crate) use super::http::opening::{Http2Sender, OpenedHttp, open_http2};
pub(crate) use super::http::shared_client::{SharedHttpClient, SharedHttpOpener, SharedHttpUse};
