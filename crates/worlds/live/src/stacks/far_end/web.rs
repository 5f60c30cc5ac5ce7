//! What the clients of all versions of HTTP have in common.

use crate::error::{Error, Result};
use http::Uri;
use stackline_core::far_end::FarEndAddress;
use std::net::SocketAddr;

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
            "the server does not accept this method: calls without data (size 0) are GET, others POST; `bulk_put` is PUT",
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
