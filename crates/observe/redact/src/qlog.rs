//! Redacts fields of qlog events: names, states and numbers are kept; keys, tokens, packet bytes and header values are dropped.

use crate::{LEFT_OUT, attribute, http, secret_words};
use std::borrow::Cow;

/// Fields that hold bytes or keys, whatever their content.
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
/// Header fields whose value is no secret.
const HEADERS: [&str; 5] = [
    ":method",
    ":protocol",
    ":scheme",
    ":status",
    "content-length",
];
/// States of senders and connections: the values of `new` and `old` where these hold no key.
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
/// The longest text in bytes that is kept.
const LONGEST: usize = 256;

/// Whether the content of a field, and of the fields within it, is dropped.
#[must_use]
pub fn is_hidden(field: &str) -> bool {
    HIDDEN.contains(&field) || attribute::is_secret(field)
}

/// Whether a text is the name of a state, which is kept in any field.
#[must_use]
pub fn is_state(text: &str) -> bool {
    STATES.contains(&text)
}

/// Redacts a field's text.
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

/// Redacts the value of an HTTP/3 header.
#[must_use]
pub fn redact_header<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    match name {
        ":path" => http::redact_url(value).into(),
        ":authority" => http::redact_authority(value.as_bytes()).into(),
        _ if HEADERS.contains(&name) && value.len() <= 16 => value.into(),
        _ => LEFT_OUT.to_string().into(),
    }
}
