//! What is no request by RFC 9112, beyond what hyper's parser refuses: it is told so, and its connection is closed, since what follows may
//! not be what it seems.

use hyper::header::{HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Version};

/// Why a head is none, in words.
pub(super) fn fault(head: &Parts) -> Option<&'static str> {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        // Section 6.1. hyper leaves Content-Length out where both are there, so they cannot be told from this alone; no request has a body here.
        return Some("a request has no transfer encoding here");
    }
    hosts(&head.headers, head.version)
}

/// Section 3.2: one Host of a request of HTTP/1.1, at most one of HTTP/1.0.
fn hosts(headers: &HeaderMap, version: Version) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version >= Version::HTTP_11 => Some("a request of HTTP/1.1 has the header Host"),
        (Some(_), Some(_)) => Some("a request has the header Host once"),
        (Some(host), None) if !host.as_bytes().iter().copied().all(is_of_host) => Some("the header Host is HOST:PORT"),
        _ => None,
    }
}

/// RFC 3986, section 3.2.2: unreserved, percent-encoded, sub-delims, and what encloses and follows an address.
const fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'%' | b'[' | b']' | b':' | b'!' | b'$' | b'&' | b'\''..=b',' | b';' | b'='
        )
}
