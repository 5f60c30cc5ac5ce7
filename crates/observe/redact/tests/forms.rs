//! What is kept of each form of `forms.tsv`. In each the word SECRET, or a person's name, stands where something is left out; it is
//! never kept. Then the same with literals and surroundings that nobody thought of, and with texts of any length.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use proptest::prelude::*;
use stackline_redact::sql::{self, Backslash, Dialect, answer};
use stackline_redact::{
    LONGEST_NAME, LONGEST_TEXT, RedactedName, attribute, foreign_names, http, operation, redis,
};

const FORMS: &str = include_str!("forms.tsv");
const SECRET: &str = "SECRET";

const DIALECTS: [(&str, Dialect); 7] = [
    ("postgres", Dialect::Postgres(Backslash::Plain)),
    ("postgres-escapes", Dialect::Postgres(Backslash::Escapes)),
    ("postgres-unknown", Dialect::Postgres(Backslash::Unknown)),
    ("mysql", Dialect::MySql(Backslash::Escapes)),
    ("mysql-plain", Dialect::MySql(Backslash::Plain)),
    ("mysql-unknown", Dialect::MySql(Backslash::Unknown)),
    ("sql", Dialect::Unknown),
];

/// Bytes of a column: signs for what a line of a table cannot hold, `⟨hh⟩` for a byte.
fn bytes(column: &str) -> Vec<u8> {
    let text = column
        .replace('␊', "\n")
        .replace('␉', "\t")
        .replace('␍', "\r")
        .replace('␀', "\0");
    let mut parts = text.split('⟨');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_once('⟩').unwrap();
        out.push(u8::from_str_radix(byte, 16).unwrap());
        out.extend_from_slice(rest.as_bytes());
    }
    out
}

fn words(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split(|byte| *byte == b' ')
        .map(<[u8]>::to_vec)
        .collect()
}

fn kept(kind: &str, input: &[u8]) -> String {
    if let Some((_, dialect)) = DIALECTS.iter().find(|(name, _)| *name == kind) {
        return sql::redact_statement(*dialect, input).kept().to_owned();
    }
    if let Some((_, dialect)) = DIALECTS
        .iter()
        .find(|(name, _)| kind.strip_suffix("-cut") == Some(*name))
    {
        return sql::redact_beginning(*dialect, input).kept().to_owned();
    }
    let text = || String::from_utf8_lossy(input).into_owned();
    let both = |mark: u8| {
        let at = input.iter().position(|byte| *byte == mark).unwrap();
        (&input[..at], &input[at + 1..])
    };
    let name: RedactedName = match kind {
        "http" => {
            let (method, target) = both(b' ');
            http::redact_request(method, target)
        }
        "grpc" => http::redact_call(input),
        "redis" => redis::redact_command(&words(input)),
        "redis-push" => redis::redact_message(&words(input)),
        "redis-status" => redis::redact_status(input),
        "redis-error" => redis::redact_error(input),
        "memcached" => operation::redact_at_key("get", input),
        "subject" => operation::redact_at_subject("PUB", input),
        "mongodb" => {
            let (command, collection) = both(b' ');
            operation::redact_named_command(command, collection)
        }
        "nats-error" => operation::redact_error(input, &["Permissions Violation"]),
        "blocking" => operation::blocking(&operation::redact_at_key("get", input)),
        "login" => {
            let (user, database) = both(b'@');
            answer::login(user, database, true)
        }
        "identifier" => RedactedName::identifier("USE ", input),
        "postgres-error" => {
            let (severity, state) = both(b' ');
            answer::postgres_error(severity, state)
        }
        "mysql-error" => answer::mysql_error(Some(1146), Some(input)),
        "tag" => answer::tag(input),
        "greeting" => answer::greeting(input),
        "host" => RedactedName::host("A ", &text(), ""),
        "url" => return http::redact_url(&text()),
        "span" => return foreign_names::redact_foreign_name(&text()),
        "attribute" => {
            let text = text();
            let [key, system, value] = text.splitn(3, '|').collect::<Vec<_>>()[..] else {
                panic!("{text}")
            };
            return attribute::redact_attribute(key, value, system).into_owned();
        }
        _ => panic!("no such kind: {kind}"),
    };
    name.kept().to_owned()
}

#[test]
fn every_form_is_kept_as_the_table_says() {
    let (mut forms, mut wrong) = (0, Vec::new());
    for (number, line) in FORMS
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind, input, expected] = columns[..] else {
            panic!("line {}: {line}", number + 1)
        };
        forms += 1;
        let is_harmless = input.contains("nothing");
        assert!(
            input.contains(SECRET) || input.contains("bob") || is_harmless,
            "line {} hides nothing",
            number + 1
        );
        let kept = kept(kind, &bytes(input));
        if kept != expected || kept.contains(SECRET) || kept.contains("bob") {
            wrong.push(format!("{}\t{kind}\t{input}\t{kept}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(forms >= 200, "{forms} forms");
}

/// Literals of a dialect around a text that holds the marker, which its quoting lets stand as it is.
fn literals(dialect: Dialect, inner: &str) -> Vec<String> {
    let doubled = inner.replace('\'', "''");
    let escaped = inner
        .replace('\\', "\\\\")
        .replace('\'', "\\'")
        .replace('"', "\\\"");
    let twice = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
    match dialect {
        Dialect::Postgres(Backslash::Plain) => vec![
            format!("'{doubled}'"),
            format!("E'{escaped}'"),
            format!("e'{}'", twice(inner)),
            format!("N'{doubled}'"),
            format!("U&'{doubled}'"),
            format!("$q${}$q$", inner.replace("$q$", "")),
            format!("$${}$$", inner.replace('$', "")),
            format!("/*{}*/", inner.replace(['*', '/'], "")),
            format!("/* /* {} */ {SECRET} */", inner.replace(['*', '/'], "")),
            format!("--{}\n", inner.replace(['\n', '\r'], "")),
        ],
        Dialect::Postgres(_) => vec![
            format!("'{}'", twice(inner)),
            format!("E'{}'", twice(inner)),
        ],
        Dialect::MySql(Backslash::Plain) => vec![
            format!("'{doubled}'"),
            format!("\"{}\"", inner.replace('"', "\"\"")),
        ],
        Dialect::MySql(_) => vec![
            format!("'{}'", twice(inner)),
            format!("'{escaped}'"),
            format!("\"{escaped}\""),
            format!("_utf8'{escaped}'"),
            format!("# {}\n", inner.replace('\n', "")),
            format!("-- {}\n", inner.replace('\n', "")),
            format!(
                "/*{}*/",
                inner
                    .replace(['*', '/'], "")
                    .trim_start_matches(['!', 'M', 'm', '+'])
            ),
        ],
        Dialect::Unknown => vec![
            format!("'{doubled}'"),
            format!("\"{}\"", inner.replace('"', "\"\"")),
        ],
    }
}

/// What literals are made of that somebody wants to get out of them.
fn inner() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("`".to_owned()),
        Just("$".to_owned()),
        Just("$q$".to_owned()),
        Just("--".to_owned()),
        Just("/*".to_owned()),
        Just("*/".to_owned()),
        Just("#".to_owned()),
        Just(";".to_owned()),
        Just("\n".to_owned()),
        Just("é".to_owned()),
        Just(SECRET.to_owned()),
        "[ a-z0-9?]{0,4}",
    ];
    let many = proptest::collection::vec(parts, 0..8).prop_map(|parts| parts.concat());
    (many.clone(), many).prop_map(|(before, behind)| format!("{before}{SECRET}{behind}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2000)))]

    #[test]
    fn no_literal_shows(which in 0..DIALECTS.len(), first in inner(), second in inner(), choice: (u8, u8)) {
        let (_, dialect) = DIALECTS[which];
        let [first, second] = [&first, &second].map(|text| literals(dialect, text));
        let pick = |from: &[String], at: u8| from[usize::from(at) % from.len()].clone();
        let (first, second) = (pick(&first, choice.0), pick(&second, choice.1));
        for text in [
            format!("SELECT a FROM t WHERE b = {first} AND c = {second} AND d = 7"),
            format!("INSERT INTO t (a, b) VALUES ({first},{second}), ({second} , {first})"),
            format!("UPDATE t SET a={first}||{second}"),
            format!("SELECT 1; SELECT {first} -- \n, {second}"),
        ] {
            let kept = sql::mask_statement(dialect, text.as_bytes());
            prop_assert!(!kept.contains(SECRET), "{dialect:?} {text:?}: {kept}");
            prop_assert!(kept.len() <= LONGEST_NAME);
        }
    }

    #[test]
    fn what_ends_anywhere_shows_no_literal(first in inner(), choice: u8, end: usize, which in 0..DIALECTS.len()) {
        let (_, dialect) = DIALECTS[which];
        let all = literals(dialect, &first);
        let text = format!("SELECT a FROM t WHERE b = {}", all[usize::from(choice) % all.len()]);
        let end = end % (text.len() + 1);
        prop_assert!(!sql::mask_statement(dialect, &text.as_bytes()[..end]).contains(SECRET), "{text:?}");
    }

    #[test]
    fn no_part_of_a_url_but_its_path_shows(user in "[a-z%0-9]{0,4}", path in "[a-z/.]{0,9}", mark in "[;?#]", rest in "[ -~]{0,9}") {
        let all = [
            format!("http://{user}:{SECRET}@host/{path}"),
            format!("/{path}{mark}{SECRET}{rest}"),
            format!("//{user}:{SECRET}@host/{path}"),
            format!("/{path}?k={SECRET}{}", rest.replace('&', "")),
            format!("/{path}%3B{SECRET}{}", rest),
            format!("/{path}%23{SECRET}{}", rest),
        ];
        for target in all {
            // A name in a query is one: `?SECRET=` is kept, as anybody would have it.
            if target.contains(&format!("?{SECRET}")) || mark == "#" && target.starts_with("//") {
                continue;
            }
            let kept = http::redact_url(&target);
            prop_assert!(!kept.contains(SECRET), "{target}: {kept}");
        }
    }

    #[test]
    fn no_value_of_a_url_within_a_name_shows(before in "[a-zA-Z: ]{0,12}", path in "/[a-z/.]{0,9}", rest in "[ -~]{0,9}") {
        for name in [
            format!("{before} {path}?k={SECRET}"),
            format!("{before} {path}?k={SECRET} {}", rest.replace('&', "")),
            format!("{before} https://bob:{SECRET}@host{path}"),
            format!("{before} bob:{SECRET}@host"),
            format!("{before} x{path}#{SECRET}"),
            format!("{before} SELECT a FROM t WHERE b = '{SECRET}'"),
        ] {
            prop_assert!(!foreign_names::redact_foreign_name(&name).contains(SECRET), "{name}: {}", foreign_names::redact_foreign_name(&name));
        }
    }

    #[test]
    fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300), key in "[a-z._]{0,20}") {
        for (_, dialect) in DIALECTS {
            let _ = sql::redact_statement(dialect, &bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        for name in [
            http::redact_request(b"GET", &bytes),
            http::redact_request(&bytes, &bytes),
            http::redact_call(&bytes),
            redis::redact_command(&words(&bytes)),
            redis::redact_message(&words(&bytes)),
            redis::redact_status(&bytes),
            answer::login(&bytes, b"x", true),
            answer::tag(&bytes),
            answer::postgres_error(&bytes, &bytes),
            answer::mysql_error(None, Some(&bytes)),
            RedactedName::identifier("x ", &bytes),
            operation::redact_at_key("x", &bytes),
            operation::blocking(&operation::redact_at_subject("x", &bytes)),
            operation::redact_named_command(&bytes, &bytes),
            operation::redact_error(&bytes, &[]),
        ] {
            prop_assert!(name.kept().len() <= LONGEST_NAME && name.whole().len() <= LONGEST_NAME);
            prop_assert!(!name.kept().contains(char::is_control), "{name:?}");
        }
        let _ = (attribute::redact_attribute(&key, &text, "mysql"), foreign_names::redact_foreign_name(&text), http::redact_query(&bytes), redis::redact_key(&bytes));
    }

    #[test]
    fn sql_of_any_pieces_is_printable(pieces in proptest::collection::vec(
        prop_oneof![inner(), Just("SELECT".to_owned()), "[ -~]{0,3}", Just("\u{1}".to_owned())], 0..20)) {
        for (_, dialect) in DIALECTS {
            let kept = sql::mask_statement(dialect, pieces.concat().as_bytes());
            prop_assert!(kept.len() <= LONGEST_NAME && !kept.contains(char::is_control));
        }
    }
}

#[test]
fn no_more_is_looked_at_than_the_bound() {
    // Whatever stands behind the bound changes nothing, so a text of any length costs what one of the bound's length does.
    for beginning in [
        "SELECT a FROM t WHERE b = '",
        "SELECT /*",
        "SELECT $a$",
        "SELECT (",
        "SELECT [a",
        "SELECT a,",
        "SELECT $$",
        "/",
    ] {
        for filling in [
            "x", "'", "/*", "(", "[", "$a", "\\", "/%3", "a.", "''", "$1$",
        ] {
            let long = format!("{beginning}{}", filling.repeat((1 << 20) / filling.len()));
            let (long, short) = (long.as_bytes(), &long.as_bytes()[..LONGEST_TEXT]);
            for (_, dialect) in DIALECTS {
                assert_eq!(
                    sql::mask_statement(dialect, long),
                    sql::mask_statement(dialect, short)
                );
            }
            assert_eq!(http::redact_target(long), http::redact_target(short));
        }
    }
}

#[test]
fn contents_are_kept_whole_where_they_are_asked_for() {
    let name = sql::redact_statement(
        Dialect::Postgres(Backslash::Plain),
        b"SELECT  a\nFROM b WHERE c = 'it''s'",
    );
    assert_eq!(name.text(true), "SELECT a FROM b WHERE c = 'it''s'");
    assert_eq!(name.text(false), "SELECT a FROM b WHERE c = ?");
    assert_eq!(
        format!("{name:?}"),
        "\"SELECT a FROM b WHERE c = ?\"",
        "a message about a name shows no value"
    );
}
