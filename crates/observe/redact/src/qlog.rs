//! Fields of events of qlog: names, states, numbers are kept; keys, tokens, bytes of packets and values of headers are not.

use crate::{LEFT_OUT, attribute, http, secret_words};
use std::borrow::Cow;

/// Fields that hold bytes or keys, whatever is in them.
const HIDDEN: [&str; 11] = [
    "body",
    "data",
    "details",
    "key",
    "message",
    "new",
    "old",
    "payload",
    "reason",
    "reason_phrase",
    "value",
];
/// Fields of headers whose value is not a secret.
const HEADERS: [&str; 5] = [
    ":method",
    ":protocol",
    ":scheme",
    ":status",
    "content-length",
];
/// States of senders and connections: what `new` and `old` say where they hold no key.
const STATES: [&str; 16] = [
    "application_limited",
    "attempted",
    "closed",
    "closing",
    "congestion_avoidance",
    "draining",
    "early_write",
    "handshake_complete",
    "handshake_completed",
    "handshake_confirmed",
    "handshake_started",
    "open",
    "peer_validated",
    "recovery",
    "slow_start",
    "validated",
];
/// Bytes of a text.
const LONGEST: usize = 256;

/// Whether what is in a field, and in the fields of it, is left out.
#[must_use]
pub fn is_hidden(field: &str) -> bool {
    HIDDEN.contains(&field) || attribute::is_secret(field)
}

/// Whether a text is the name of a state, which is kept wherever it stands.
#[must_use]
pub fn is_state(text: &str) -> bool {
    STATES.contains(&text)
}

/// What is kept of a field's text.
#[must_use]
pub fn redact_field<'v>(field: &str, value: &'v str) -> Cow<'v, str> {
    let is_id = ["cid", "connection_id", "group_id"]
        .iter()
        .any(|end| field.to_ascii_lowercase().ends_with(end));
    let is_hex = value.len() >= 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    match () {
        () if is_hidden(field) || value.len() > LONGEST => LEFT_OUT.to_string().into(),
        () if is_id && is_hex => value.into(),
        () if secret_words::is_opaque(value) => LEFT_OUT.to_string().into(),
        () => attribute::redact_attribute(field, value, ""),
    }
}

/// What is kept of the value of a header of HTTP/3.
#[must_use]
pub fn redact_header<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    match name {
        ":path" => http::redact_url(value).into(),
        ":authority" => http::redact_authority(value.as_bytes()).into(),
        _ if HEADERS.contains(&name) && value.len() <= 16 => value.into(),
        _ => LEFT_OUT.to_string().into(),
    }
}
