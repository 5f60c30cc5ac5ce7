//! Checks requests by RFC 9112 beyond what hyper's parser does. The answer to a malformed request closes the connection, since what follows
//! may not be what it seems.

use hyper::header::{HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Version};

/// Why a request's head is malformed, in words; `None` if it is not.
pub(super) fn find_request_fault(head: &Parts) -> Option<&'static str> {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // Section 6.1. hyper leaves Content-Length out where both are there, so they cannot be distinguished from this alone; no request has a body here.
        return Some("requests here must not have a transfer encoding");
    }
    hosts(&head.headers, head.version)
}

/// Section 3.2: exactly one Host in HTTP/1.1, at most one in HTTP/1.0.
fn hosts(headers: &HeaderMap, version: Version) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version >= Version::HTTP_11 => {
            Some("an HTTP/1.1 request must have a Host header")
        }
        (Some(_), Some(_)) => Some("a request must have only one Host header"),
        (Some(host), None) if !is_host(host.as_bytes()) => {
            Some("the Host header must be HOST:PORT")
        }
        _ => None,
    }
}

/// Whether the field is `uri-host [ ":" port ]` (RFC 9110, section 7.2). What stands in brackets is not checked to be an IP address.
fn is_host(field: &[u8]) -> bool {
    let name = match field.iter().rposition(|byte| *byte == b':') {
        Some(at) if !field.ends_with(b"]") => match &field[at + 1..] {
            port if port.iter().all(u8::is_ascii_digit) => &field[..at],
            _ => return false,
        },
        _ => field,
    };
    let name = name
        .strip_prefix(b"[")
        .map_or(name, |name| name.strip_suffix(b"]").unwrap_or(b"["));
    let is_address = name.len() + 2 <= field.len() && field.starts_with(b"[");
    name.iter()
        .all(|byte| is_of_host(*byte) && (is_address || *byte != b':'))
}

/// Whether the byte may be in a host (RFC 3986, section 3.2.2): unreserved, percent-encoded, sub-delims, and the colons of an address.
const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'%' | b':' | b'!' | b'$' | b'&' | b'\''
                ..=b',' | b';' | b'='
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_or_an_address_and_a_port_in_digits() {
        for host in [
            "",
            "a",
            "a.b-c",
            "h:80",
            "h:",
            "127.0.0.1:7481",
            "[::1]",
            "[::1]:80",
            "%41",
            "a_b!",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "h:port", "h:+1", "h:1:2", "::1", "[::1", "::1]", "[::1]x", "a b", "a/b", "a@b",
            "h:80 ", "[a]b:1", "\u{e4}",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
