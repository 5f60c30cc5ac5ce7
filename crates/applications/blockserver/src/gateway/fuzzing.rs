//! What a stranger asks of the gateway, read and nothing more: for the fuzz target. Its interface may change.

use super::range::{GatewayRangeRequest, parse_range};
use super::route::GatewayRoute;

/// Reads a path and a header Range over so many bytes.
///
/// # Panics
/// When a part is not within the set.
pub fn request(path: &str, range: Option<&str>, length: u64) {
    let _ = GatewayRoute::of(path);
    if let GatewayRangeRequest::Part(first, last) = parse_range(range, length) {
        assert!(first <= last && last < length, "{first}-{last} of {length}");
    }
}
