//! Any bytes as what programs say of requests: what is kept is bounded and steers no terminal, and a string of SQL does not show.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_redact::sql::{self, Backslash, Dialect};
use stackline_redact::{LONGEST_NAME, RedactedName, attribute, foreign_names, http, operation, qlog, redis};

const SECRET: &str = "SECRET";

fn bounded(name: &RedactedName) {
    assert!(name.kept().len() <= LONGEST_NAME && name.whole().len() <= LONGEST_NAME);
    assert!(!name.kept().contains(char::is_control));
}

fuzz_target!(|bytes: &[u8]| {
    let dialects = [
        Dialect::Unknown,
        Dialect::Postgres(Backslash::Plain),
        Dialect::Postgres(Backslash::Escapes),
        Dialect::Postgres(Backslash::Unknown),
        Dialect::MySql(Backslash::Plain),
        Dialect::MySql(Backslash::Escapes),
        Dialect::MySql(Backslash::Unknown),
    ];
    let words: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b' ')
        .take(10)
        .map(<[u8]>::to_vec)
        .collect();
    bounded(&redis::redact_command(&words));
    bounded(&redis::redact_message(&words));
    bounded(&redis::redact_status(bytes));
    bounded(&operation::redact_at_key("get", bytes));
    bounded(&operation::blocking(&operation::redact_at_subject("PUB", bytes)));
    bounded(&operation::redact_named_command(bytes, bytes));
    bounded(&operation::redact_error(bytes, &["x"]));
    bounded(&http::redact_request(b"GET", bytes));
    bounded(&http::redact_request(bytes, b"/"));
    bounded(&http::redact_call(bytes));
    let text = String::from_utf8_lossy(bytes);
    let (key, value) = text.split_once('=').unwrap_or(("", &text));
    let _ = (
        attribute::redact_attribute(key, value, "mysql"),
        foreign_names::redact_foreign_name(&text),
        qlog::redact_field(key, value),
        http::redact_query(bytes),
    );
    for dialect in dialects {
        bounded(&sql::redact_statement(dialect, bytes));
        // Both meanings of a back-slash end such a string at the same quote.
        let inner = text
            .replace('\\', "\\\\")
            .replace('\'', "''")
            .replace('\0', "");
        let statement =
            format!("SELECT a FROM t WHERE b = '{inner}{SECRET}' AND c = '{SECRET}{inner}'");
        assert!(!sql::mask_statement(dialect, statement.as_bytes()).contains(SECRET));
    }
    if !bytes.contains(&b'/') {
        assert!(
            !http::redact_target(&[b"http://", bytes, SECRET.as_bytes(), b"@host/a"].concat())
                .contains(SECRET)
        );
    }
});
