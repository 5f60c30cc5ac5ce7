//! Conversations in TLS as scripts.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, test_hostile_input,
};
use super::hellos::RETRY;
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<TlsDissector>(script)
}

/// A record of that kind.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [
        &[kind, 3, 3, (body.len() >> 8) as u8, body.len() as u8],
        body,
    ]
    .concat()
}

/// A message of the handshake, in clear.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 0, (body.len() >> 8) as u8, body.len() as u8], body].concat()
}

fn extension(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[0, kind, 0, value.len() as u8], value].concat()
}

fn extensions(all: &[Vec<u8>]) -> Vec<u8> {
    let all = all.concat();
    [&[0, all.len() as u8], all.as_slice()].concat()
}

fn client_hello(session: &[u8], more: &[Vec<u8>]) -> Vec<u8> {
    let name = extension(0, b"\0\x0a\0\0\x07a.local");
    let mut body = [
        &[3, 3][..],
        &[7; 32],
        &[session.len() as u8],
        session,
        &[0, 2, 0x13, 1, 1, 0],
    ]
    .concat();
    body.extend(extensions(&[&[name], more].concat()));
    message(1, &body)
}

fn server_hello(random: u8, session: &[u8], more: &[Vec<u8>]) -> Vec<u8> {
    let mut body = [
        &[3, 3][..],
        &[random; 32],
        &[session.len() as u8],
        session,
        &[0x13, 1, 0],
    ]
    .concat();
    body.extend(extensions(more));
    message(2, &body)
}

fn newer() -> Vec<u8> {
    extension(43, &[3, 4])
}

#[test]
fn a_handshake_of_1_3_then_data_by_turns() {
    let hello = record(HANDSHAKE, &client_hello(&[], &[]));
    let ours = [
        record(HANDSHAKE, &server_hello(9, &[], &[newer()])),
        record(CHANGE_CIPHER_SPEC, &[1]),
    ]
    .concat();
    let flight = [
        record(DATA, &[1; 40]),
        record(DATA, &[2; 900]),
        record(DATA, &[3; 53]),
    ]
    .concat();
    let finished = [record(CHANGE_CIPHER_SPEC, &[1]), record(DATA, &[4; 53])].concat();
    let script: DialogueScript<'_> = &[
        ('>', &hello),
        ('<', &ours),
        ('<', &flight),
        ('>', &finished),
        ('<', &record(DATA, &[5; 250])),
        ('<', &record(DATA, &[5; 250])),
        ('>', &record(DATA, b"request")),
        ('<', &record(DATA, b"response")),
        ('<', &record(DATA, b"more of it")),
        ('>', &record(DATA, &[6; 19])),
        ('<', &record(DATA, &[6; 19])),
        ('<', b""),
        ('>', b""),
    ];
    let (there, back) = (hello.len(), ours.len() + flight.len());
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0 (handshake)".to_owned(),
            format!("0 request ends > {there}"),
            "0 request is TLS handshake a.local".to_owned(),
            "0 response begins < 0 (handshake)".to_owned(),
            "0 response is TLS 1.3".to_owned(),
            format!("0 response ends < {back}"),
            format!("1 request begins > {}", there + 64),
            format!("1 request ends > {}", there + 76),
            format!("1 response begins < {}", back + 510),
            format!("1 response ends < {}", back + 538),
        ]
    );
}

#[test]
fn data_of_an_alerts_length_are_data_where_more_follows() {
    let script: DialogueScript<'_> = &[
        ('>', &record(HANDSHAKE, &client_hello(&[], &[]))),
        ('<', &record(HANDSHAKE, &server_hello(9, &[], &[newer()]))),
        ('>', &record(DATA, &[4; 53])),
        ('>', &record(DATA, &[5; 19])),
        ('<', &record(DATA, &[5; 19])),
        ('>', &record(DATA, &[5; 19])),
        ('<', &record(DATA, b"response")),
        ('>', &record(DATA, &[6; 19])),
        ('>', b""),
        ('<', b""),
    ];
    let dissected = dissect_lines(script);
    let requests: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("request ends"))
        .collect();
    assert_eq!(
        (requests.len(), dissected.last().map(|line| &line[..15])),
        (3, Some("2 response ends")),
        "{dissected:?}"
    );
}

#[test]
fn two_records_of_one_length_before_the_response_are_tickets() {
    let response = |first: &[u8], second: &[u8]| {
        let script: DialogueScript<'_> = &[
            ('>', &record(HANDSHAKE, &client_hello(&[], &[]))),
            ('<', &record(HANDSHAKE, &server_hello(9, &[], &[newer()]))),
            (
                '>',
                &[record(DATA, &[4; 53]), record(DATA, b"request")].concat(),
            ),
            ('<', first),
            ('<', second),
            ('<', b""),
        ];
        dissect_lines(script)[8..].join(", ")
    };
    let tickets = record(DATA, &[5; 250]).repeat(2);
    let begins = record(HANDSHAKE, &server_hello(9, &[], &[newer()])).len();
    assert_eq!(
        response(&tickets, &record(DATA, b"answer")),
        format!(
            "1 response begins < {}, 1 response ends < {}",
            begins + 510,
            begins + 521
        )
    );
    // One alone, or two of different length, are what answers.
    assert_eq!(
        response(&tickets[..255], &record(DATA, b"answer")),
        format!(
            "1 response begins < {begins}, 1 response ends < {}",
            begins + 266
        )
    );
    assert_eq!(
        response(&tickets[..255], b""),
        format!(
            "1 response begins < {begins}, 1 response ends < {}",
            begins + 255
        )
    );
}

#[test]
fn sessions_are_resumed_where_both_sides_say_so() {
    let name = |client: Vec<u8>, server: Vec<u8>| {
        let script: DialogueScript<'_> = &[('>', &client), ('<', &server)];
        dissect_lines(script)
            .into_iter()
            .rfind(|line| line.contains("request is"))
    };
    let (new, old) = (
        Some("0 request is TLS handshake a.local"),
        Some("0 request is TLS handshake a.local, resumed"),
    );
    let hello = |session: &[u8], more: &[Vec<u8>]| record(HANDSHAKE, &client_hello(session, more));
    let answer =
        |session: &[u8], more: &[Vec<u8>]| record(HANDSHAKE, &server_hello(9, session, more));
    let (key, none) = (extension(41, &[0, 0]), &[][..]);
    // TLS 1.3: by the key; the same session id means nothing.
    assert_eq!(
        name(
            hello(&[1; 32], std::slice::from_ref(&key)),
            answer(&[1; 32], &[newer(), key.clone()])
        )
        .as_deref(),
        old
    );
    assert_eq!(
        name(hello(&[1; 32], &[key]), answer(&[1; 32], &[newer()])).as_deref(),
        new
    );
    // TLS 1.2: by the same session id, or as there is no certificate.
    assert_eq!(
        name(hello(&[1; 32], none), answer(&[1; 32], none)).as_deref(),
        old
    );
    assert_eq!(
        name(hello(&[1; 32], none), answer(&[2; 32], none)).as_deref(),
        new
    );
    let ticket = extension(35, &[1; 9]);
    let ciphers = record(CHANGE_CIPHER_SPEC, &[1]);
    let silent = [answer(&[], none), ciphers.clone()].concat();
    assert_eq!(
        name(hello(&[], std::slice::from_ref(&ticket)), silent).as_deref(),
        old
    );
    let certificate = [
        server_hello(9, &[], none),
        message(11, &[8; 300]),
        message(14, &[]),
    ]
    .concat();
    let certificate = [
        record(HANDSHAKE, &certificate[..100]),
        record(HANDSHAKE, &certificate[100..]),
        ciphers,
    ]
    .concat();
    assert_eq!(name(hello(&[], &[ticket]), certificate).as_deref(), new);
}

#[test]
fn a_handshake_of_1_2_ends_with_the_servers_finished() {
    let hello = record(HANDSHAKE, &client_hello(&[], &[]));
    let flight = [
        server_hello(9, &[1; 32], &[]),
        message(11, &[8; 700]),
        message(12, &[8; 99]),
        message(14, &[]),
    ]
    .concat();
    let flight = record(HANDSHAKE, &flight);
    let keys = [
        record(HANDSHAKE, &message(16, &[3; 65])),
        record(CHANGE_CIPHER_SPEC, &[1]),
        record(HANDSHAKE, &[4; 40]),
    ]
    .concat();
    let finished = [
        record(HANDSHAKE, &message(4, &[5; 180])),
        record(CHANGE_CIPHER_SPEC, &[1]),
        record(HANDSHAKE, &[6; 40]),
    ]
    .concat();
    let script: DialogueScript<'_> = &[
        ('>', &hello),
        ('<', &flight),
        ('>', &keys),
        ('<', &finished),
        ('>', &record(DATA, b"request")),
        ('<', &record(DATA, b"response")),
    ];
    let dissected = dissect_lines(script);
    assert_eq!(
        dissected[4..],
        [
            "0 response is TLS 1.2".to_owned(),
            format!("0 response ends < {}", flight.len() + finished.len()),
            format!("1 request begins > {}", hello.len() + keys.len()),
            format!("1 request ends > {}", hello.len() + keys.len() + 12),
            format!("1 response begins < {}", flight.len() + finished.len()),
        ]
    );
}

#[test]
fn a_retry_and_a_client_with_a_certificate() {
    let mut retry = server_hello(9, &[], &[newer()]);
    retry[6..14].copy_from_slice(&RETRY);
    let again = [
        record(CHANGE_CIPHER_SPEC, &[1]),
        record(HANDSHAKE, &client_hello(&[], &[])),
    ]
    .concat();
    let certified = [
        record(DATA, &[1; 800]),
        record(DATA, &[2; 281]),
        record(DATA, &[3; 69]),
    ]
    .concat();
    let flight = [
        record(HANDSHAKE, &server_hello(9, &[], &[newer()])),
        record(DATA, &[1; 900]),
    ]
    .concat();
    let script: DialogueScript<'_> = &[
        ('>', &record(HANDSHAKE, &client_hello(&[], &[]))),
        ('<', &record(HANDSHAKE, &retry)),
        ('>', &again),
        ('<', &flight),
        ('>', &certified),
        ('>', &record(DATA, b"request")),
        ('<', &record(DATA, b"response")),
    ];
    let dissected = dissect_lines(script);
    assert_eq!(
        dissected[5],
        format!("0 response ends < {}", flight.len() + 5 + retry.len())
    );
    assert!(
        dissected[6].starts_with("1 request begins"),
        "{dissected:?}"
    );
    assert_eq!(dissected.len(), 9, "{dissected:?}");
}

#[test]
fn a_refused_handshake_is_answered_by_its_alert() {
    let script: DialogueScript<'_> = &[
        ('>', &record(HANDSHAKE, &client_hello(&[], &[]))),
        ('<', &record(ALERT, &[2, 40])),
        ('<', b""),
        ('>', b""),
    ];
    let dissected = dissect_lines(script);
    assert_eq!(
        dissected[3..],
        [
            "0 response begins < 0 (handshake)",
            "0 response is alert 40",
            "0 response ends < 7"
        ]
    );
}

#[test]
fn a_server_that_its_client_refuses_in_secret_has_failed() {
    let hidden = record(DATA, &[9; 19]);
    let script: DialogueScript<'_> = &[
        ('>', &record(HANDSHAKE, &client_hello(&[], &[]))),
        ('<', &record(HANDSHAKE, &server_hello(9, &[], &[newer()]))),
        ('<', &record(DATA, &[8; 900])),
        (
            '>',
            &[&record(CHANGE_CIPHER_SPEC, &[1])[..], &hidden].concat(),
        ),
        ('>', b""),
        ('<', b""),
    ];
    let dissected = dissect_lines(script);
    let mut names = dissected.iter().filter(|line| line.contains(" is "));
    assert_eq!(
        names.next_back().map(String::as_str),
        Some("0 response is client alert (encrypted)"),
        "{dissected:?}"
    );
}

#[test]
fn what_was_not_seen_of_records_does_no_harm() {
    let (mut tls, mut found) = (TlsDissector::default(), Vec::new());
    let hello = record(HANDSHAKE, &client_hello(&[], &[]));
    let server = record(HANDSHAKE, &server_hello(9, &[], &[newer()]));
    let (there, back) = (hello.len() as u64, server.len() as u64);
    tls.bytes(EventStreamDirection::There, 0, &hello, &mut found);
    tls.bytes(EventStreamDirection::Back, 0, &server, &mut found);
    tls.unseen(EventStreamDirection::Back, back, 3000, &mut found);
    tls.bytes(
        EventStreamDirection::There,
        there,
        &record(DATA, &[4; 53]),
        &mut found,
    );
    assert!(
        matches!(found.last(), Some(DissectorEvent::Ends { exchange: 0, role: ExchangeRole::Response, at, .. }) if *at == back + 3000)
    );
    // A request of 1000 bytes of which 9 were captured.
    tls.bytes(
        EventStreamDirection::There,
        there + 58,
        &record(DATA, &[4; 1000])[..9],
        &mut found,
    );
    tls.unseen(EventStreamDirection::There, there + 67, 996, &mut found);
    tls.bytes(
        EventStreamDirection::Back,
        back + 3000,
        &record(DATA, b"response"),
        &mut found,
    );
    tls.end(EventStreamDirection::Back, back + 3013, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Ends { exchange: 1, role: ExchangeRole::Response, at, .. }) if *at == back + 3013)
    );
    assert!(!tls.is_exact());
}

#[test]
fn a_handshake_of_which_a_hello_was_not_seen_is_void() {
    let (mut tls, mut found) = (TlsDissector::default(), Vec::new());
    let hello = record(HANDSHAKE, &client_hello(&[], &[]));
    tls.bytes(EventStreamDirection::There, 0, &hello, &mut found);
    tls.unseen(EventStreamDirection::Back, 0, 1000, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 0, .. })),
        "{found:?}"
    );
    let at = hello.len() as u64;
    tls.bytes(
        EventStreamDirection::There,
        at,
        &[record(DATA, &[4; 53]), record(DATA, b"request")].concat(),
        &mut found,
    );
    tls.bytes(
        EventStreamDirection::Back,
        1000,
        &record(DATA, b"response"),
        &mut found,
    );
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Begins {
                exchange: 1,
                role: ExchangeRole::Response,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn only_a_client_hello_is_recognised() {
    let verdict = |there: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back: &[],
            port: 443,
        })
    };
    assert_eq!(
        verdict(&record(HANDSHAKE, &client_hello(&[], &[]))),
        ProtocolVerdict::Yes
    );
    assert_eq!(verdict(&[22, 3]), ProtocolVerdict::Perhaps);
    assert_eq!(verdict(&record(HANDSHAKE, &[2; 50])), ProtocolVerdict::No);
    assert_eq!(verdict(b"GET / HTTP/1.1"), ProtocolVerdict::No);
}

const WORDS: &[&[u8]] = &[
    &[22, 3, 1, 0, 4, 1, 0, 0, 0],
    &[22, 3, 3, 0, 46, 2, 0, 0, 42, 3, 3],
    &[7; 32],
    &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4],
    &[0, 0x13, 1, 0, 0, 0],
    &[20, 3, 3, 0, 1, 1],
    &[22, 3, 3, 0, 2, 1, 1],
    &[23, 3, 3, 0, 3, 1, 1, 1],
    &[23, 3, 3, 0, 53],
    &[0; 53],
    &[21, 3, 3, 0, 2, 2, 40],
    &[23, 3, 3, 0, 200],
    &[0; 200],
];

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(moves in test_hostile_input(WORDS)) {
        let mut tls = TlsDissector::default();
        prop_assert_eq!(is_unharmed_by(&mut tls, &moves), Ok(()));
        prop_assert!(tls.hello.len() <= LONGEST_HEAD && tls.flight.len() <= LONGEST_FLIGHT + 1 && tls.alerts.len() <= 2);
        prop_assert!(tls.sides.iter().all(|side| side.records.held().len() <= HEAD + LONGEST_RECORD));
    }
}
