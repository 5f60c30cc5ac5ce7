//! What the clients of all versions of HTTP have in common.

use crate::error::{Error, Result};
use http::{HeaderValue, Method, Request, Uri, header};
use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::net::SocketAddr;

/// The option that names the method of `bulk_put`.
pub(super) const UPLOAD_METHOD: OptionTable = OptionTable::new(
    "method",
    OptionKind::Word(&["put", "post"]),
    "put",
    "the method with which `bulk_put` sends its data: PUT or POST",
);

/// The option that gives the length of the data of `bulk_put`.
pub(super) const CONTENT_LENGTH: OptionTable = OptionTable::new(
    "content_length",
    OptionKind::Bytes(1, 1 << 40),
    "not said",
    "bytes of each `bulk_put`, said in its head for servers that need to know",
);

/// How the data of `bulk_put` is sent.
#[derive(Clone, Debug)]
pub(super) struct UploadForm {
    pub(super) method: Method,
    /// What its head says of its length, in bytes.
    pub(super) length: Option<u64>,
}

impl UploadForm {
    /// As the options have it.
    pub(super) fn in_options(stack: &Stack) -> Self {
        let method = match stack.word(UPLOAD_METHOD.name) {
            Some("post") => Method::POST,
            _ => Method::PUT,
        };
        Self {
            method,
            length: stack.number(CONTENT_LENGTH.name),
        }
    }

    /// The head of a request with that method and length.
    pub(super) fn say_length<B>(&self, request: &mut Request<B>) {
        if let Some(length) = self.length {
            let headers = request.headers_mut();
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
    }

    /// Checks that an upload that has had `sent` bytes has room for so many more.
    ///
    /// # Errors
    /// When it would be longer than its head says.
    pub(super) fn has_room(&self, sent: u64, more: u64) -> Result<()> {
        match self.length {
            Some(length) if sent + more > length => Err(not_as_said(length, "more")),
            _ => Ok(()),
        }
    }

    /// Checks that an upload that ends after `sent` bytes has the length that its head says.
    ///
    /// # Errors
    /// When it is shorter.
    pub(super) fn is_complete(&self, sent: u64) -> Result<()> {
        match self.length {
            Some(length) if sent < length => Err(not_as_said(length, "less")),
            _ => Ok(()),
        }
    }
}

fn not_as_said(length: u64, than: &str) -> Error {
    Error::input(format!(
        "an upload has {than} data than its `content_length` of {length} B"
    ))
    .hint("`content_length` is the size times the count of a `bulk_put`; a time limit needs none")
}

/// The error of a server that has answered a request before it had taken its body, so that what was sent of it is not known.
pub(super) fn answered_early(server: SocketAddr, method: &Method) -> Error {
    Error::measurement(format!(
        "the web server at {server} answered a {method} before it had received its body"
    ))
    .hint("send the data to an address that reads it; calls without data (size 0) are GET")
}

/// The error of an answer with that status, its reason and where it redirects to, over TLS or without it.
pub(super) fn refused_status(
    server: SocketAddr,
    status: u16,
    reason: &str,
    location: Option<&str>,
    is_over_tls: bool,
) -> Error {
    let shown = |text: &str| {
        text.chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect::<String>()
    };
    let failure = Error::measurement(format!(
        "the web server at {server} answered with status {status} {}",
        shown(reason)
    ));
    match (status, location) {
        (300..=399, Some(location)) => {
            failure.hint(format!("measure the address it redirects to: {}", shown(location)))
        }
        // Web servers answer so what comes to their port for TLS without it.
        (400, _) if !is_over_tls => failure.hint("is this its port for TLS? `https://` is with TLS"),
        (401 | 403 | 407, _) => failure.hint("measure an address that needs no login"),
        (404, _) => failure.hint("check the path of the address"),
        (405 | 411, _) => failure.hint(
            "the server does not accept this method: calls without data (size 0) are GET, others POST; `bulk_put` is PUT, or POST with the option `method = post`",
        ),
        (429 | 503, _) => {
            failure.hint("the server is overloaded or limits its clients: use fewer pairs or a lower rate")
        }
        _ => failure,
    }
}

/// The address as requests of HTTP/2 and HTTP/3 have it.
pub(super) fn request_uri(address: &FarEndAddress) -> Result<Uri> {
    let path = match address.path.as_str() {
        path if path.starts_with('/') => path.to_string(),
        query => format!("/{query}"),
    };
    let host = if address.host.contains(':') {
        format!("[{}]", address.host)
    } else {
        address.host.clone()
    };
    let port = address
        .port
        .map_or(String::new(), |port| format!(":{port}"));
    let whole = format!("{}://{host}{port}{path}", address.scheme);
    whole.parse().map_err(|e| {
        Error::input(format!(
            "`{whole}` is not an address that HTTP can ask for: {e}"
        ))
    })
}
