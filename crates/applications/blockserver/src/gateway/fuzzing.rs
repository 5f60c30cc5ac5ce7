//! The fuzz target's entry to the parsing of requests. Its interface may change.

use super::range::{GatewayRangeRequest, parse_range};
use super::route::GatewayRoute;

/// Parses a path, and a Range header for a set of `length` bytes.
///
/// # Panics
/// If a parsed range is not within the set.
pub fn request(path: &str, range: Option<&str>, length: u64) {
    let _ = GatewayRoute::parse(path);
    if let GatewayRangeRequest::Part(first, last) = parse_range(range, length) {
        assert!(first <= last && last < length, "{first}-{last} of {length}");
    }
}
