//! What a header block of HTTP/2 or HTTP/3 says about a message; nothing else of it is kept.

use super::http2::grpc;
use super::{RedactedName, trace_context};
use stackline_events::traceparent::Traceparent;
use stackline_redact::{LONGEST_TEXT, http};

/// The fields of a header block that matter.
#[derive(Debug, Default)]
pub(super) struct HttpMessageHead {
    method: Vec<u8>,
    path: Vec<u8>,
    authority: Vec<u8>,
    pub(super) status: Option<u16>,
    /// The status in the trailers of a gRPC call.
    pub(super) grpc_status: Option<u16>,
    pub(super) is_grpc: bool,
    /// The trace context of a request.
    pub(super) context: Option<Traceparent>,
}

impl HttpMessageHead {
    /// Takes one header field.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        let cut = &value[..value.len().min(LONGEST_TEXT)];
        let number = || {
            std::str::from_utf8(cut)
                .ok()
                .and_then(|number| number.parse().ok())
        };
        match name {
            b":method" => self.method = cut.to_vec(),
            b":path" => self.path = cut.to_vec(),
            b":authority" => self.authority = cut.to_vec(),
            b":status" => self.status = number(),
            b"grpc-status" => self.grpc_status = number(),
            b"content-type" => self.is_grpc = grpc::is_type(cut),
            _ => self.context = trace_context(name, value).or(self.context),
        }
    }

    /// The name of a request; `None` if the block has no method.
    pub(super) fn name(&self) -> Option<RedactedName> {
        // CONNECT has no path.
        let target = if self.path.is_empty() {
            &self.authority
        } else {
            &self.path
        };
        match (self.method.is_empty(), self.is_grpc) {
            (true, _) => None,
            (false, true) => Some(http::redact_call(target)),
            (false, false) => Some(http::redact_request(&self.method, target)),
        }
    }
}
