//! Where an agent is started through `ssh`: what is refused of a destination, such as a port that is not in a URL.

use alloc::format;
use alloc::string::{String, ToString as _};

/// What is wrong with the destination of an `ssh`, if anything. One that begins with `-` would be taken for an option.
pub(crate) fn bad_destination(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("the ssh destination is empty".to_string());
    }
    let port = text
        .rsplit_once(':')
        .filter(|(host, port)| !host.contains(':') && port.parse::<u16>().is_ok());
    if port.is_some() {
        return Some(format!(
            "ssh treats `{text}` as a host name, not as a name and a port; write `ssh://{text}`"
        ));
    }
    let bad = text.starts_with('-') || text.chars().any(|c| c.is_whitespace() || c.is_control());
    bad.then(|| format!("`{text}` is not a valid ssh destination"))
}
