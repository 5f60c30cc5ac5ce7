//! Names of networks and of links, as a person writes and reads them.

/// As a shell takes it.
pub(super) fn quoted(name: &str) -> String {
    if name.contains('(') {
        format!("'{name}'")
    } else {
        name.to_string()
    }
}
