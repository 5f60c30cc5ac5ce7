//! Redacts attributes of spans (OpenTelemetry's semantic conventions, Jaeger's tags) and of logs, by their keys: statements, targets and
//! URLs as [`crate::sql`] and [`crate::http`] do; headers, bodies, error texts, identities and secrets are dropped. Other values are
//! kept, as the program's author wrote them to be read.

use crate::sql::{Backslash, Dialect, mask_statement};
use crate::{LEFT_OUT, LONGEST_TEXT, foreign_names, http, redis, secret_words};
use std::borrow::Cow;

/// Keys whose value is a statement.
const STATEMENTS: [&str; 7] = [
    "db.statement",
    "db.query.text",
    "db.query.summary",
    "sql.query",
    "db.sql",
    "query",
    "statement",
];
/// Keys whose value is a request target or a URL.
const TARGETS: [&str; 17] = [
    "http.url",
    "http.target",
    "http.referer",
    "http.referrer",
    "http.path",
    "url",
    "uri",
    "path",
    "url.full",
    "url.original",
    "url.path",
    "request.uri",
    "request_uri",
    "referer",
    "referrer",
    "location",
    "redirect",
];
/// Keys whose value is the query of a URL.
const QUERIES: [&str; 2] = ["url.query", "http.query"];
/// Keys whose value is a name of unknown kind.
const NAMES: [&str; 10] = [
    "event",
    "event.name",
    "name",
    "operation",
    "operation.name",
    "operation_name",
    "resource.name",
    "span.name",
    "transaction",
    "transaction.name",
];
/// Prefixes of keys whose value is dropped.
const LEFT_OUT_BELOW: [&str; 20] = [
    "http.request.header.",
    "http.response.header.",
    "http.header.",
    "http.request.body",
    "http.response.body",
    "http.request.content",
    "rpc.grpc.request.metadata.",
    "rpc.grpc.response.metadata.",
    "rpc.connect_rpc.request.metadata.",
    "rpc.connect_rpc.response.metadata.",
    "db.query.parameter",
    "db.operation.parameter",
    "db.statement.parameter",
    "messaging.message.body",
    "messaging.message.payload",
    "enduser.",
    "user.",
    "process.command_",
    "process.environment_variable.",
    "code.function.argument",
];
/// Keys whose value is dropped.
const LEFT_OUT_AT: [&str; 24] = [
    "db.connection_string",
    "db.user",
    "db.redis.args",
    "db.mongodb.query",
    "exception.message",
    "exception.stacktrace",
    "error.message",
    "error.object",
    "error.stack",
    "otel.status_description",
    "status.message",
    "message",
    "stack",
    "url.fragment",
    "url.username",
    "url.password",
    "messaging.kafka.message.key",
    "email",
    "user",
    "username",
    "body",
    "args",
    "payload",
    "headers",
];
/// Parts of a key that mark its value as personal, or as user input.
const PERSONAL: [&str; 32] = [
    "auth",
    "bodies",
    "body",
    "content",
    "credential",
    "document",
    "documents",
    "email",
    "form",
    "key",
    "keys",
    "login",
    "param",
    "parameter",
    "parameters",
    "params",
    "payload",
    "payloads",
    "queries",
    "query",
    "session",
    "sessionid",
    "sql",
    "statement",
    "statements",
    "tokens",
    "user",
    "userid",
    "userinfo",
    "username",
    "users",
    "variables",
];
/// Pairs of parts that are harmless although one part by itself is not.
const HARMLESS: [[&str; 2]; 6] = [
    ["content", "length"],
    ["content", "type"],
    ["flag", "key"],
    ["key", "phase"],
    ["key", "type"],
    ["user", "agent"],
];
/// Words of a key that mark its value as a secret.
const SECRETS: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "authorization",
    "authentication",
    "cookie",
    "cookies",
    "apikey",
    "credential",
    "credentials",
    "signature",
    "jwt",
    "bearer",
    "otp",
];

/// The quoting rules of the server that `db.system` names.
#[must_use]
pub fn dialect(system: &str) -> Dialect {
    match system {
        "postgresql" | "postgres" | "cockroachdb" | "redshift" => {
            Dialect::Postgres(Backslash::Unknown)
        }
        "mysql" | "mariadb" => Dialect::MySql(Backslash::Unknown),
        _ => Dialect::Unknown,
    }
}

/// Redacts the text of an attribute. `system` is the span's `db.system`, empty if it has none.
#[must_use]
pub fn redact_attribute<'v>(key: &str, value: &'v str, system: &str) -> Cow<'v, str> {
    let parts = parts(key);
    let key = key.to_ascii_lowercase();
    let is_size = [".size", ".length", "_size", "_length", ".count", "_count"]
        .iter()
        .any(|end| key.ends_with(end));
    // The size of a secret is not one.
    if is_size && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.into();
    }
    // Asked first: a key may also fit one of the lists of what is kept.
    let below = LEFT_OUT_BELOW.iter().any(|below| key.starts_with(below));
    match () {
        () if below || is_one(&key, &LEFT_OUT_AT) || is_secret(&key) => LEFT_OUT.to_string().into(),
        () if is_one(&key, &STATEMENTS) => statement(value, system).into(),
        () if is_one(&key, &QUERIES) => http::redact_query(value.as_bytes()).into(),
        () if is_one(&key, &TARGETS) => target(value).into(),
        () if is_one(&key, &NAMES) => foreign_names::redact_foreign_name(value).into(),
        () if is_query(&parts) => http::redact_query(value.as_bytes()).into(),
        () if is_personal(&parts) => LEFT_OUT.to_string().into(),
        () => free(value),
    }
}

/// Splits a key into lower-case parts: at separators, and where capital letters begin a word.
fn parts(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let letters: Vec<char> = key.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        // In `HTTPUrl`, the `U` begins a word, though a capital stands before it.
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase()
                    || letters.get(at + 1).is_some_and(|next| next.is_lowercase())
            });
        if begins || !letter.is_alphanumeric() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| letter.is_alphanumeric()) {
            part.extend(letter.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a key marks its value as the query of a URL.
fn is_query(parts: &[String]) -> bool {
    let of_url = parts
        .iter()
        .any(|part| is_one(part, &["http", "uri", "url"]));
    of_url && parts.last().is_some_and(|part| part == "query")
}

/// Whether parts of a key mark its value as personal or as user input.
fn is_personal(parts: &[String]) -> bool {
    let is_pair = |at: usize| {
        parts
            .get(at..at + 2)
            .is_some_and(|two| HARMLESS.iter().any(|pair| two == pair))
    };
    (0..parts.len()).any(|at| {
        let is_harmless = is_pair(at) || at.checked_sub(1).is_some_and(is_pair);
        (is_one(&parts[at], &PERSONAL) || is_one(&parts[at], &SECRETS)) && !is_harmless
    })
}

/// Redacts a statement by its server's rules.
fn statement(value: &str, system: &str) -> String {
    if matches!(system, "redis" | "valkey" | "keydb") {
        let words: Vec<Vec<u8>> = value
            .split_ascii_whitespace()
            .take(10)
            .map(|word| word.as_bytes().to_vec())
            .collect();
        return redis::redact_command(&words).kept().to_owned();
    }
    mask_statement(dialect(system), value.as_bytes())
}

/// Redacts a target, or a route with placeholders (`/item/{id}`).
fn target(value: &str) -> String {
    match value {
        "" => String::new(),
        _ if value.starts_with('/') || value.contains("://") || value == "*" => {
            http::redact_url(value)
        }
        // A path needs its `/` for the rules; it is taken off again.
        _ => http::redact_url(&format!("/{value}")).split_off(1),
    }
}

/// Redacts a free text: URLs keep their path only; personal addresses and tokens with an `@` are dropped.
fn free(value: &str) -> Cow<'_, str> {
    let looked_at = &value[..value.floor_char_boundary(LONGEST_TEXT)];
    if !looked_at.contains("://") && !looked_at.contains('@') {
        return looked_at.into();
    }
    let words = looked_at.split(' ').map(|part| match part {
        _ if part.contains("://") => {
            http::redact_url(part.trim_matches(['"', '\'', '(', ')', '<', '>', ',']))
        }
        _ if part.contains('@') && secret_words::is_opaque(part) => LEFT_OUT.to_string(),
        _ => part.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ").into()
}

/// Whether a key marks its value, text or not, as secret or personal.
#[must_use]
pub fn names_secret(key: &str) -> bool {
    is_secret(key) || is_personal(&parts(key))
}

/// Whether a key marks its value as a secret.
pub(crate) fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let words = || key.split(|letter: char| !letter.is_ascii_alphanumeric());
    words().any(|word| is_one(word, &SECRETS))
        || [
            "api_key",
            "api-key",
            "api.key",
            "private_key",
            "access_key",
            "session_id",
            "sessionid",
            "session-id",
        ]
        .iter()
        .any(|both| key.contains(both))
        || [
            "password",
            "passwd",
            "secret",
            "apikey",
            "accesstoken",
            "refreshtoken",
            "authtoken",
        ]
        .iter()
        .any(|part| key.contains(part))
}

fn is_one(word: &str, words: &[&str]) -> bool {
    words.contains(&word)
}
