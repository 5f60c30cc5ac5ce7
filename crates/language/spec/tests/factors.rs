//! Factors at their levels: what of a text changes, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_spec::{FactorLevel, factor, factors, vary};

const TEXT: &str = "network n {
  host a, b { copy 20 us per packet; }
  host c;
  switch s { buffer 64 KiB; }
  link a - s 10 Mbit/s 5 ms loss 0.5% queue 100 packets codel;
  link s - b schedule(0 s 1 Mbit/s, 2 s 4 Mbit/s) 0.1 ms;
  link s - c unlimited 1 ms;
}
3 from a to b rr 32*1000 over tcp(nodelay, receive_buffer = 64 KiB) across n;
5 from a to b bulk_put N*100 across n; N = 1024;
";

/// The lines that a factor changes at its last level, as they are then; or its error and hint.
fn changed(text: &str) -> String {
    let factor = match factor(text) {
        Ok(factor) => factor,
        Err(mistakes) => return mistakes[0].message.clone(),
    };
    match vary(
        TEXT,
        None,
        &[(&factor, factor.levels.last().expect("a level"))],
    ) {
        Ok(after) => {
            let same: Vec<&str> = TEXT.lines().collect();
            let new = after.lines().filter(|line| !same.contains(line));
            new.map(str::trim).collect::<Vec<_>>().join(" / ")
        }
        Err(error) => format!("{} | {}", error.message, error.hint.unwrap_or_default()),
    }
}

#[test]
fn levels_are_written_where_they_belong() {
    let table = [
        (
            "bandwidth of a - s x 10",
            "link a - s 100 Mbit/s 5 ms loss 0.5% queue 100 packets codel;",
        ),
        (
            "bandwidth of s - a = 2 Mbit/s",
            "link a - s 2 Mbit/s 5 ms loss 0.5% queue 100 packets codel;",
        ),
        (
            "bandwidth of s - b x 2",
            "link s - b schedule(0 s 2 Mbit/s, 2 s 8 Mbit/s) 0.1 ms;",
        ),
        (
            "delay of s - b x 3",
            "link s - b schedule(0 s 1 Mbit/s, 2 s 4 Mbit/s) 0.3 ms;",
        ),
        (
            "loss of a - s x 0.1",
            "link a - s 10 Mbit/s 5 ms loss 0.05% queue 100 packets codel;",
        ),
        (
            "loss of s - c = 0%, 2%",
            "link s - c unlimited 1 ms loss 2%;",
        ),
        (
            "queue of a - s x 2",
            "link a - s 10 Mbit/s 5 ms loss 0.5% queue 200 packets codel;",
        ),
        (
            "queue of a - s = 1 MB",
            "link a - s 10 Mbit/s 5 ms loss 0.5% queue 1 MB codel;",
        ),
        ("mtu of s - c x 6", "link s - c unlimited 1 ms mtu 9000;"),
        (
            "bandwidth of s - c = 1 Gbit/s, 10 Gbit/s",
            "link s - c 10 Gbit/s 1 ms;",
        ),
        (
            "cpu of b x2",
            "host b { cpu 2; copy 20 us per packet; } / host a { copy 20 us per packet; }",
        ),
        ("cpu x 2", "host a, b { cpu 2; copy 20 us per packet; }"),
        ("buffer of s x 2", "switch s { buffer 128 KiB; }"),
        (
            "nodelay = off",
            "3 from a to b rr 32*1000 over tcp(receive_buffer = 64 KiB) across n;",
        ),
        ("N = 1, 8", "5 from a to b bulk_put N*100 across n; N = 8;"),
        ("N x 4", "5 from a to b bulk_put N*100 across n; N = 4096;"),
        (
            "stack = tcp, quic",
            "3 from a to b rr 32*1000 over quic across n; / 5 from a to b bulk_put N*100 across n over quic; N = 1024;",
        ),
        (
            "to = b, c",
            "3 from a to c rr 32*1000 over tcp(nodelay, receive_buffer = 64 KiB) across n; / 5 from a to c bulk_put N*100 across n; N = 1024;",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(changed(text), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_varied_is_refused_with_what_can() {
    let table = [
        (
            "bandwidth of a - b x 2",
            "no link connects `a` and `b` | known links: `a - s`, `s - b`, `s - c`",
        ),
        ("bandwidth of s - c x 2", "has an unlimited rate"),
        (
            "loss of s - b x 2",
            "has no loss to multiply | write levels, as in `loss = 0%, 1%`",
        ),
        ("cpu of c x 2", "takes no time"),
        (
            "cpu of d x 2",
            "no network has a host `d` | known hosts: `a`, `b`, `c`",
        ),
        ("stack x 2", "a stack cannot be multiplied"),
        (
            "receive_buffer x 16",
            "has neither a variable nor an option `receive_buffer`",
        ),
        (
            "bandwith x 10",
            "`bandwith` is not in the specification and cannot be varied | did you mean `bandwidth`?",
        ),
        ("bandwidth", "unexpected end"),
        ("delay x 1", "changes nothing"),
        ("delay x 0", "is not above 0"),
        ("delay x 2 of a - s", "unexpected `of`"),
        ("12", "unexpected"),
    ];
    for (text, expected) in table {
        assert!(
            changed(text).contains(expected),
            "{text}: {}",
            changed(text)
        );
    }
}

#[test]
fn options_stand_wherever_a_stack_stands() {
    let only = |text: &str| {
        let factor = factor(text).unwrap();
        let line = |line| {
            vary(
                TEXT,
                Some(line),
                &[(&factor, &factor.levels[factor.levels.len() - 1])],
            )
            .unwrap()
        };
        [9, 10].map(|number| line(number).lines().last().unwrap_or_default().to_owned())
    };
    let [first, second] = only("send_buffer = 1 MiB");
    assert!(
        first.is_empty() && second.contains("over tcp(send_buffer = 1 MiB)"),
        "{first} {second}"
    );
    let factor = factor("receive_buffer x 16").unwrap();
    let text = vary(TEXT, Some(9), &[(&factor, &FactorLevel::Times(16.0))]).unwrap();
    assert!(
        text.contains("tcp(nodelay, receive_buffer = 1024 KiB)") && !text.contains("bulk_put"),
        "{text}"
    );
    let error = vary(TEXT, Some(3), &[]).unwrap_err();
    assert!(error.hint.is_some_and(|hint| hint.contains("9, 10")));
}

#[test]
fn a_text_declares_its_factors() {
    let declared = factors(&format!(
        "factor bandwidth of a - s x 10, x 100;\nfactor loss = 0%, 1%;\n{TEXT}"
    ))
    .unwrap();
    let texts: Vec<String> = declared.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["bandwidth of a - s x 10, x 100", "loss = 0%, 1%"]);
    assert_eq!(declared[0].levels.len(), 3);
    assert_eq!(declared[1].levels.len(), 2);
}
