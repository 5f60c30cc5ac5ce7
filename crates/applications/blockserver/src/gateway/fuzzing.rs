//! What a stranger asks of the gateway, read and nothing more: for the fuzz target. Its interface may change.

use super::range::{Asked, asked};
use super::route::Route;

/// Reads a path and a header Range over so many bytes.
///
/// # Panics
/// When a part is not within the set.
pub fn request(path: &str, range: Option<&str>, length: u64) {
    let _ = Route::of(path);
    if let Asked::Part(first, last) = asked(range, length) {
        assert!(first <= last && last < length, "{first}-{last} of {length}");
    }
}
