//! Conversations with NATS as scripts, by its documented client protocol.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Nats>(script)
}

#[test]
fn a_message_with_a_reply_subject_is_a_request_and_others_are_one_way() {
    let script: DialogueScript<'_> = &[
        ('<', b"INFO {\"server_id\":\"x\"}\r\n"),
        ('>', b"CONNECT {\"verbose\":false}\r\nPING\r\n"),
        ('<', b"PONG\r\n"),
        (
            '>',
            b"SUB _INBOX.x.* 1\r\nPUB orders.get _INBOX.x.1 5\r\nhello\r\nPUB log 2\r\nhi\r\n",
        ),
        ('<', b"MSG news.a 2 2\r\nhi\r\n"),
        ('<', b"MSG _INBOX.x.1 1 3\r\nyes\r\n"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 response begins < 0 (one way)",
            "0 response is INFO",
            "0 response ends < 24",
            "1 request begins > 0 (one way)",
            "1 request is CONNECT",
            "1 request ends > 27",
            "2 request begins > 27",
            "2 request is PING",
            "2 request ends > 33",
            "2 response begins < 24",
            "2 response is PONG",
            "2 response ends < 30",
            "3 request begins > 33 (one way)",
            "3 request is SUB _INBOX.x.*",
            "3 request ends > 51",
            "4 request begins > 51",
            "4 request is PUB orders.get",
            "4 request ends > 87",
            "5 request begins > 87 (one way)",
            "5 request is PUB log",
            "5 request ends > 102",
            "6 response begins < 30 (one way)",
            "6 response is MSG news.a",
            "6 response ends < 50",
            "4 response begins < 50",
            "4 response is message",
            "4 response ends < 75",
        ]
    );
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

#[test]
fn answers_come_in_any_order_and_say_that_nobody_listens() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            b"PUB a i.1 0\r\n\r\nHPUB b i.2 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
        ),
        (
            '<',
            b"HMSG i.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nMSG i.1 1 0\r\n\r\nMSG i.1 1 0\r\n\r\n",
        ),
        ('>', b"PUB $JS.API.CONSUMER.MSG.NEXT.s.c i.3 0\r\n\r\n"),
        (
            '<',
            b"PING\r\n+OK\r\n-ERR 'Permissions Violation for Publish to \"x\"'\r\n",
        ),
        ('>', b"PONG\r\nPING\r\n"),
        ('<', b"-ERR 'Stale Connection'\r\n"),
    ];
    assert_eq!(
        names(script),
        [
            "0 request is PUB a",
            "1 request is HPUB b",
            "1 response is ERROR 503",
            "0 response is message",
            "2 response is MSG i.1",
            "3 request is PUB $JS.API.CONSUMER.MSG.NEXT.s.c, blocking",
            "4 response is PING",
            "5 response is ERROR Permissions Violation for Publish to \"x\"",
            "6 request is PING",
            "6 response is ERROR Stale Connection",
        ]
    );
}

#[test]
fn each_side_is_found_again_at_a_line() {
    use crate::conversation::Dissector;
    let (mut nats, mut found) = (Nats::default(), Vec::new());
    let (there, back) = (EventStreamDirection::There, EventStreamDirection::Back);
    nats.bytes(there, 0, b"PUB a i.1 0\r\n\r\n", &mut found);
    nats.unseen(back, 0, 9, &mut found);
    nats.bytes(there, 15, b"PUB a i.2 0\r\n\r\n", &mut found);
    nats.bytes(back, 9, b"MSG i.2 1 0\r\n\r\n", &mut found);
    let found: Vec<String> = found
        .iter()
        .map(super::super::script_testing::describe_event)
        .collect();
    assert_eq!(found[3], "0 void: some of its bytes were not captured");
    assert_eq!(
        found.last().map(String::as_str),
        Some("1 response ends < 24")
    );
}

#[test]
fn the_bounds_of_lines_and_of_requests_that_wait_are_counted() {
    let long = [b"SUB ".to_vec(), vec![b'k'; Bound::Head.most()]].concat();
    assert!(
        run_script(&mut Nats::default(), &[('>', &long)]).contains(&"left out: 1 head".to_owned())
    );
    let many: String = (0..=Bound::Waiting.most())
        .map(|at| format!("PUB a i.{at} 0\r\n\r\n"))
        .collect();
    let found = run_script(&mut Nats::default(), &[('>', many.as_bytes())]);
    assert_eq!(
        found.last().map(String::as_str),
        Some("left out: 1 waiting")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"INFO {}\r\n", b"PUB a i.1 2\r\nhi\r\n", b"MSG i.1 1 2\r\nhi\r\n", b"HMSG i.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", b"PING\r\n", b"PONG\r\n",
        b"-ERR 'x'\r\n", b"MSG a 1 18446744073709551615\r\n", b"SUB\r\n", b"PUB\r\n", b"MSG a 1\r\n",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Nats::default(), &moves), Ok(()));
    }
}
