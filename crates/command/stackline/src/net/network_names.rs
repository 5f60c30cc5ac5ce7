//! Quotes names of networks for messages.

/// The name as it has to be written in a shell.
pub(super) fn quoted(name: &str) -> String {
    if name.contains('(') {
        format!("'{name}'")
    } else {
        name.to_string()
    }
}
