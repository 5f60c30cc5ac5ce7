//! Any bytes as what programs say of requests: what is kept is bounded and steers no terminal, and a string of SQL does not show.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_redact::sql::{self, Backslash, Dialect};
use stackline_redact::{LONGEST_NAME, Name, attribute, foreign, http, qlog, redis};

const SECRET: &str = "SECRET";

fn bounded(name: &Name) {
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
    bounded(&redis::command(&words));
    bounded(&redis::message(&words));
    bounded(&redis::status(bytes));
    bounded(&http::request(b"GET", bytes));
    bounded(&http::request(bytes, b"/"));
    bounded(&http::call(bytes));
    let text = String::from_utf8_lossy(bytes);
    let (key, value) = text.split_once('=').unwrap_or(("", &text));
    let _ = (
        attribute::text(key, value, "mysql"),
        foreign::name(&text),
        qlog::text(key, value),
        http::query(bytes),
    );
    for dialect in dialects {
        bounded(&sql::statement(dialect, bytes));
        // Both meanings of a back-slash end such a string at the same quote.
        let inner = text
            .replace('\\', "\\\\")
            .replace('\'', "''")
            .replace('\0', "");
        let statement =
            format!("SELECT a FROM t WHERE b = '{inner}{SECRET}' AND c = '{SECRET}{inner}'");
        assert!(!sql::masked(dialect, statement.as_bytes()).contains(SECRET));
    }
    if !bytes.contains(&b'/') {
        assert!(
            !http::target(&[b"http://", bytes, SECRET.as_bytes(), b"@host/a"].concat())
                .contains(SECRET)
        );
    }
});
