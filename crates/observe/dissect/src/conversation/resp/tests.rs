//! Conversations with Redis as scripts.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Resp>(script)
}

/// What exchanges are called and how they are answered.
fn names(script: DialogueScript<'_>) -> Vec<String> {
    dissect_lines(script)
        .into_iter()
        .filter(|line| line.contains(" is "))
        .collect()
}

/// A command as an array of strings.
fn command(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split(' ').collect();
    let strings = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), strings.collect::<String>()).into_bytes()
}

#[test]
fn commands_and_their_answers() {
    let script: DialogueScript<'_> = &[
        ('>', b"*3\r\n$3\r\nset\r\n$6\r\nuser:7\r\n$5\r\nhello\r\n"),
        ('<', b"+OK\r\n"),
        ('>', b"*2\r\n$3\r\nGET\r\n$6\r\nuser:7\r\n"),
        ('<', b"$5\r\nhello\r\n"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0",
            "0 request is SET user:7",
            "0 request ends > 36",
            "0 response begins < 0",
            "0 response is OK",
            "0 response ends < 5",
            "1 request begins > 36",
            "1 request is GET user:7",
            "1 request ends > 61",
            "1 response begins < 5",
            "1 response is string",
            "1 response ends < 16",
        ]
    );
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &["MULTI", "INCR n", "LRANGE l 0 9", "EXEC"]
                .map(command)
                .concat(),
        ),
        (
            '<',
            b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n",
        ),
        (
            '>',
            &["LPUSH s x", "HGETALL h", "GET none"].map(command).concat(),
        ),
        ('<', b"-WRONGTYPE Operation against a key\r\n"),
        ('<', b"%1\r\n$1\r\nf\r\n*0\r\n_\r\n"),
    ];
    let dissected = dissect_lines(script);
    let answers: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("response is"))
        .collect();
    let statuses = ["OK", "QUEUED", "QUEUED", "array", "WRONGTYPE", "map", "nil"];
    let wanted: Vec<String> = (0..)
        .zip(statuses)
        .map(|(number, status)| format!("{number} response is {status}"))
        .collect();
    assert_eq!(answers, wanted.iter().collect::<Vec<_>>());
    assert_eq!(
        dissected.last().map(String::as_str),
        Some("6 response ends < 101")
    );
}

#[test]
fn names_are_commands_with_their_first_key() {
    let name = |words: &str| {
        let whole = command(words);
        dissect_lines(&[('>', &whole)])
            .into_iter()
            .find_map(|line| line.strip_prefix("0 request is ").map(str::to_owned))
    };
    for (words, wanted) in [
        ("blpop queue 0", "BLPOP queue, blocking"),
        ("XREAD COUNT 9 BLOCK 0 STREAMS s $", "XREAD s, blocking"),
        ("XREAD STREAMS BLOCK $", "XREAD BLOCK"),
        ("WAIT 1 100", "WAIT, blocking"),
        ("EVALSHA abcdef 1 k v", "EVALSHA k"),
        ("client setname me", "CLIENT SETNAME"),
        ("OBJECT ENCODING k", "OBJECT ENCODING k"),
        ("AUTH user secret", "AUTH"),
        ("PUBLISH ch text", "PUBLISH ch"),
        ("DBSIZE", "DBSIZE"),
    ] {
        assert_eq!(name(words).as_deref(), Some(wanted));
    }
    let long = name(&format!("GET {}", "k".repeat(9000))).unwrap_or_default();
    assert!(
        long.starts_with("GET kkk") && long.len() <= super::super::LONGEST_NAME,
        "{long}"
    );
}

#[test]
fn messages_of_channels_answer_nothing() {
    let script: DialogueScript<'_> = &[
        ('>', &command("SUBSCRIBE a b")),
        (
            '<',
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n",
        ),
        ('<', b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"),
        ('>', &command("PING")),
        ('<', b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
    ];
    assert_eq!(
        dissect_lines(script)[3..],
        [
            "0 response begins < 0",
            "0 response is OK",
            "0 response ends < 60",
            "1 response begins < 60 (one way)",
            "1 response is message a",
            "1 response ends < 92",
            "2 request begins > 33",
            "2 request is PING",
            "2 request ends > 47",
            "2 response begins < 92",
            "2 response is array",
            "2 response ends < 112",
        ]
    );
}

#[test]
fn pushes_answer_nothing_and_attributes_belong_to_the_answer() {
    let script: DialogueScript<'_> = &[
        ('>', &command("HELLO 3")),
        ('<', b"%1\r\n+proto\r\n:3\r\n"),
        ('>', &command("GET k")),
        ('<', b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"),
        ('<', b"|1\r\n+ttl\r\n:9\r\n$1\r\nv\r\n"),
        ('>', &command("SUBSCRIBE a")),
        ('<', b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"),
    ];
    let dissected = dissect_lines(script);
    assert_eq!(dissected[0], "0 request begins > 0 (handshake)");
    assert_eq!(
        dissected[9..],
        [
            "2 response begins < 16 (one way)",
            "2 response is invalidate",
            "2 response ends < 48",
            "1 response begins < 48",
            "1 response is string",
            "1 response ends < 69",
            "3 request begins > 42",
            "3 request is SUBSCRIBE a",
            "3 request ends > 68",
            "3 response begins < 69",
            "3 response is OK",
            "3 response ends < 99",
        ]
    );
}

#[test]
fn a_client_may_turn_answers_off() {
    let script: DialogueScript<'_> = &[
        (
            '>',
            &["CLIENT REPLY SKIP", "SET a 1", "GET a"]
                .map(command)
                .concat(),
        ),
        ('<', b"$1\r\n1\r\n"),
        (
            '>',
            &["CLIENT REPLY OFF", "SET a 2", "CLIENT REPLY ON", "GET a"]
                .map(command)
                .concat(),
        ),
        ('<', b"+OK\r\n$1\r\n2\r\n"),
    ];
    let dissected = dissect_lines(script);
    let one_way: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("one way"))
        .collect();
    assert_eq!(
        one_way
            .iter()
            .map(|line| line.as_bytes()[0])
            .collect::<Vec<_>>(),
        b"0134"
    );
    let answers: Vec<&String> = dissected
        .iter()
        .filter(|line| line.contains("response is"))
        .collect();
    assert_eq!(
        answers,
        [
            "2 response is string",
            "5 response is OK",
            "6 response is string"
        ]
    );
}

#[test]
fn commands_as_lines_and_what_a_monitor_sees() {
    let script: DialogueScript<'_> = &[
        ('>', b"PING\r\n"),
        ('<', b"+PONG\r\n"),
        ('>', b"monitor\r\n"),
        ('<', b"+OK\r\n"),
        ('<', b"+1.5 \"GET\" \"a\"\r\n"),
    ];
    let wanted = [
        "0 request is PING",
        "0 response is PONG",
        "1 request is MONITOR",
        "1 response is OK",
        "2 response is monitor",
    ];
    assert_eq!(names(script), wanted);
}

#[test]
fn what_was_not_seen_of_strings_does_no_harm() {
    let (mut resp, mut found) = (Resp::default(), Vec::new());
    resp.bytes(
        EventStreamDirection::There,
        0,
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\nabc",
        &mut found,
    );
    resp.unseen(EventStreamDirection::There, 31, 4990, &mut found);
    resp.bytes(
        EventStreamDirection::There,
        5021,
        b"wxyz567\r\n",
        &mut found,
    );
    resp.bytes(EventStreamDirection::Back, 0, b"+OK\r\n", &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 0,
                role: ExchangeRole::Response,
                at: 5,
                ..
            })
        ),
        "{found:?}"
    );
    // A head that was not seen makes void; the next command is known again.
    resp.bytes(
        EventStreamDirection::There,
        5030,
        &command("GET k"),
        &mut found,
    );
    resp.unseen(EventStreamDirection::Back, 5, 100, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 1, .. })),
        "{found:?}"
    );
    resp.bytes(
        EventStreamDirection::There,
        5050,
        &command("GET k"),
        &mut found,
    );
    resp.bytes(EventStreamDirection::Back, 105, b"$1\r\nv\r\n", &mut found);
    assert!(
        matches!(
            found.last(),
            Some(DissectorEvent::Ends {
                exchange: 2,
                role: ExchangeRole::Response,
                at: 112,
                ..
            })
        ),
        "{found:?}"
    );
}

#[test]
fn who_pipelines_is_not_found_again() {
    let (mut resp, mut found) = (Resp::default(), Vec::new());
    resp.bytes(
        EventStreamDirection::There,
        0,
        &["GET k", "GET l"].map(command).concat(),
        &mut found,
    );
    resp.unseen(EventStreamDirection::Back, 0, 100, &mut found);
    assert!(
        matches!(found.last(), Some(DissectorEvent::Void { exchange: 1, .. })),
        "{found:?}"
    );
    let before = found.len();
    resp.bytes(
        EventStreamDirection::There,
        40,
        &command("GET k"),
        &mut found,
    );
    resp.bytes(EventStreamDirection::Back, 100, b"$1\r\nv\r\n", &mut found);
    assert_eq!(found.len(), before);
}

#[test]
fn answers_that_nothing_asked_for_and_other_bytes_are_void() {
    let wrong: DialogueScript<'_> = &[('>', &command("GET k")), ('<', b"HTTP/1.1 400\r\n")];
    assert_eq!(dissect_lines(wrong)[3..], ["0 void: it is not RESP"]);
    let twice: DialogueScript<'_> = &[
        ('>', &command("GET k")),
        ('<', b"+OK\r\n+OK\r\n"),
        ('>', b"*1\r\n$4\r\n"),
        ('>', b""),
    ];
    assert_eq!(dissect_lines(twice).len(), 6);
    let copies: DialogueScript<'_> = &[
        ('>', &command("PSYNC ? -1")),
        ('<', b"+FULLRESYNC\r\n$9\r\nREDIS"),
        ('<', b""),
    ];
    assert_eq!(
        dissect_lines(copies)[3..],
        ["0 void: a copy of the database follows"]
    );
}

#[test]
fn it_is_recognised_by_an_array_of_strings_or_a_command() {
    let verdict = |there: &[u8]| {
        recognise(&ConversationOpening {
            there,
            back: &[],
            port: 1,
        })
    };
    for bytes in [
        "*1\r\n$4\r\nPING\r\n",
        "*12\r\n$1\r\n",
        "PING\r\n",
        "ping hello\r\n",
    ] {
        assert_eq!(verdict(bytes.as_bytes()), ProtocolVerdict::Yes, "{bytes}");
    }
    for bytes in [
        "", "*", "*1", "*1\r", "*1\r\n", "*1\r\n$", "PIN", "PING", "info s",
    ] {
        assert_eq!(
            verdict(bytes.as_bytes()),
            ProtocolVerdict::Perhaps,
            "{bytes}"
        );
    }
    for bytes in [
        "**",
        "*x",
        "*1\r\nx",
        "PINGS\r\n",
        "HELO a\r\n",
        "*1234567890\r\n$",
    ] {
        assert_eq!(verdict(bytes.as_bytes()), ProtocolVerdict::No, "{bytes}");
    }
    assert_eq!(
        recognise(&ConversationOpening {
            there: b"",
            back: b"220",
            port: 6379
        }),
        ProtocolVerdict::No
    );
}

const WORDS: &[&[u8]] = &[
    b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n",
    b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
    b"*1\r\n$7\r\nMONITOR\r\n",
    b"*2147483647\r\n",
    b"*1\r\n",
    b"|1\r\n",
    b">2\r\n",
    b"$5\r\n",
    b"$1099511627776\r\n",
    b"hello\r\n",
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":1\r\n",
];

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(moves in test_hostile_input(WORDS)) {
        let mut resp = Resp::default();
        prop_assert_eq!(is_unharmed_by(&mut resp, &moves), Ok(()));
        prop_assert!(resp.waiting.len() <= crate::conversation::MOST_WAITING);
        prop_assert!(resp.sides.iter().all(|side| side.value.words().len() <= 10));
    }
}
