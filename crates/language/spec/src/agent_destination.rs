//! How an agent that is no child process of ours is reached: `ssh`, `tcp` or `exec` and a destination, and what is refused of it.

use alloc::format;
use alloc::string::{String, ToString as _};
use stackline_core::plan::Via;

/// The words behind `via` that take a destination, and what that looks like.
pub(crate) const WAYS: [(&str, &str); 3] = [
    ("ssh", "\"user@10.0.0.5\""),
    ("tcp", "\"10.0.0.5:7777\""),
    ("exec", "\"docker exec -i web stackline agent\""),
];

/// How an agent is reached; `way` is one of [`WAYS`].
///
/// # Errors
/// One sentence: what is wrong with the destination.
pub(crate) fn via(way: &str, destination: &str) -> Result<Via, String> {
    if destination.trim().is_empty() {
        return Err(format!("the {way} destination is empty"));
    }
    if destination.chars().any(char::is_control) {
        return Err(format!(
            "the {way} destination contains a control character"
        ));
    }
    match way {
        "tcp" => tcp(destination),
        "exec" => Ok(Via::Exec(destination.to_string())),
        _ => ssh(destination),
    }
}

/// One that begins with `-` would be taken for an option.
fn ssh(text: &str) -> Result<Via, String> {
    let port = text
        .rsplit_once(':')
        .filter(|(host, port)| !host.contains(':') && port.parse::<u16>().is_ok());
    if port.is_some() {
        return Err(format!(
            "ssh treats `{text}` as a host name, not as a name and a port; write `ssh://{text}`"
        ));
    }
    if text.starts_with('-') || text.chars().any(char::is_whitespace) {
        return Err(format!("`{text}` is not a valid ssh destination"));
    }
    Ok(Via::Ssh(text.to_string()))
}

/// A host and the port that its agent listens on.
fn tcp(text: &str) -> Result<Via, String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!(
            "`{text}` has no port; add the port its agent listens on, as in `{text}:7777`"
        ));
    };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !bracketed {
        return Err(format!(
            "`{text}` is not a valid HOST:PORT; write an IPv6 address in brackets, such as `[fd00::5]:7777`"
        ));
    }
    let valid = !host.is_empty()
        && !host.contains(|c: char| c.is_whitespace() || c == '/' || c == '@')
        && port.parse::<u16>().is_ok_and(|port| port > 0);
    if !valid {
        return Err(format!("`{text}` is not a valid HOST:PORT"));
    }
    Ok(Via::Tcp(text.to_string()))
}
