//! What differs between HTTP/1.1, HTTP/2 and gRPC: the heads of requests and responses, and what surrounds a data unit.

use super::body::OutgoingBody;
use super::grpc;
use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use crate::stacks::http_exchange::{HttpExchangeKind, SharedUnits};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, TE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use stackline_core::plan::Stack;
use stackline_events::scope::FlowControlWindow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpStyle {
    Http1,
    Http2,
    Grpc,
}

/// Bytes of data units that one operation hands to the library together: they leave with fewer system calls, as those of any program that
/// has more to send.
const TOGETHER: u64 = 256 << 10;

/// How many data units of that size these are.
pub(super) fn units_at_once(bytes: usize) -> u64 {
    (TOGETHER / (bytes as u64).max(1)).max(1)
}

/// The name of the server in requests.
const AUTHORITY: &str = "stackline";

/// Windows of HTTP/2 (RFC 9113, 5.2) in which a side receives, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpWindows {
    pub(super) stream: u32,
    pub(super) connection: u32,
}

/// hyper's own windows of a server of HTTP/2, of a stream and of the connection, bytes.
pub(super) const RESPONDER_WINDOWS: HttpWindows = HttpWindows {
    stream: 1 << 20,
    connection: 1 << 20,
};

impl HttpWindows {
    /// The window that is used up first by a pair that has the connection alone.
    pub(super) const fn first_used_up(self) -> FlowControlWindow {
        if self.stream <= self.connection {
            FlowControlWindow::Stream
        } else {
            FlowControlWindow::Connection
        }
    }

    /// Those of the stack's options where they are written.
    pub(super) fn or_written(self, stack: &Stack) -> Self {
        let written = |name, own| {
            let bytes = stack.number(name).and_then(|n| u32::try_from(n).ok());
            bytes.unwrap_or(own)
        };
        Self {
            stream: written("window", self.stream),
            connection: written("connection_window", self.connection),
        }
    }

    /// By option name.
    pub(super) fn settings(self) -> [(String, String); 2] {
        [
            ("window".to_string(), format!("{} B", self.stream)),
            (
                "connection_window".to_string(),
                format!("{} B", self.connection),
            ),
        ]
    }
}

/// Most bytes of a piece that is handed to the library at once: as much as a frame of HTTP/2 carries (RFC 9113, 4.2). HTTP/2 takes a piece
/// whole when its windows have room for one byte.
const PIECE: usize = 16 << 10;

/// A unit in pieces.
fn cut(mut unit: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let here = unit.len().min(PIECE);
        (here > 0).then(|| unit.split_to(here))
    })
}

impl HttpStyle {
    pub(super) const fn is_http2(self) -> bool {
        !matches!(self, Self::Http1)
    }

    pub(super) fn is_grpc(self) -> bool {
        self == Self::Grpc
    }

    const fn path(self, kind: HttpExchangeKind) -> &'static str {
        match (self, kind) {
            (Self::Grpc, HttpExchangeKind::Call) => "/stackline.Measurement/Call",
            (Self::Grpc, HttpExchangeKind::Get) => "/stackline.Measurement/Get",
            (Self::Grpc, HttpExchangeKind::Put) => "/stackline.Measurement/Put",
            (Self::Grpc, HttpExchangeKind::Stream) => "/stackline.Measurement/Stream",
            (Self::Grpc, HttpExchangeKind::Join) => "/stackline.Measurement/Join",
            (_, kind) => kind.path(),
        }
    }

    /// A request of that kind.
    pub(super) fn request(
        self,
        kind: HttpExchangeKind,
        is_over_tls: bool,
        body: OutgoingBody,
    ) -> Request<OutgoingBody> {
        let mut request = Request::new(body);
        if kind != HttpExchangeKind::Get || self.is_grpc() {
            *request.method_mut() = Method::POST;
        }
        if self.is_http2() {
            let scheme = if is_over_tls { "https" } else { "http" };
            let whole = format!("{scheme}://{AUTHORITY}{}", self.path(kind));
            *request.uri_mut() = whole.parse().unwrap_or_default();
            *request.version_mut() = Version::HTTP_2;
        } else {
            *request.uri_mut() = Uri::from_static(self.path(kind));
            request
                .headers_mut()
                .insert(HOST, HeaderValue::from_static(AUTHORITY));
        }
        if self.is_grpc() {
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, grpc::CONTENT_TYPE);
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        request
    }

    /// The kind of a request that has arrived.
    pub(super) fn kind_of(self, request: &Request<Incoming>) -> Option<HttpExchangeKind> {
        HttpExchangeKind::ALL
            .into_iter()
            .find(|kind| request.uri().path() == self.path(*kind))
    }

    /// A response with that body.
    pub(super) fn response(self, body: OutgoingBody) -> Response<OutgoingBody> {
        let mut response = Response::new(body);
        if self.is_grpc() {
            response
                .headers_mut()
                .insert(CONTENT_TYPE, grpc::CONTENT_TYPE);
        }
        response
    }

    /// A data unit as it stands in a body.
    pub(super) fn pieces(self, unit: Bytes) -> Vec<Bytes> {
        match self {
            Self::Http1 => vec![unit],
            Self::Http2 => cut(unit).collect(),
            Self::Grpc => grpc::message(unit).into_iter().flat_map(cut).collect(),
        }
    }

    /// Some data units as they stand in a body.
    pub(super) fn batch(
        self,
        units: &mut SharedUnits,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Vec<Bytes>> {
        let mut pieces = Vec::new();
        for _ in 0..times {
            pieces.extend(self.pieces(units.next(bytes, buffers)?));
        }
        Ok(pieces)
    }

    /// Whether windows may hold back a part of a body of so many bytes.
    pub(super) const fn may_be_held_back(self, bytes: usize) -> bool {
        self.is_http2() && bytes > PIECE
    }

    /// The body of a bulk transfer's request or response that carries no data unit.
    pub(super) fn empty(self) -> Vec<Bytes> {
        if self.is_grpc() {
            grpc::message(Bytes::new())
        } else {
            Vec::new()
        }
    }

    /// What follows the body of a response.
    pub(super) fn trailers(self) -> Option<HeaderMap> {
        self.is_grpc().then(grpc::status_ok)
    }

    /// Checks the head of a response.
    pub(super) fn check(self, response: &Response<Incoming>) -> Result<()> {
        if response.status() == StatusCode::OK {
            return Ok(());
        }
        let status = response.status();
        Err(Error::measurement(format!(
            "the peer answered with {status}"
        )))
    }
}
