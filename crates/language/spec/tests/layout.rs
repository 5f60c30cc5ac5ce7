//! The formatter: one form, no comment lost, no plan changed.

mod common;

use common::{checked, examples, without_lines};
use proptest::prelude::*;
use stackline_spec::{PRELUDE, format};

#[track_caller]
fn formats(text: &str, expected: &str) {
    let once = format(text).unwrap_or_else(|d| panic!("{}", common::shown(text, &d)));
    assert_eq!(once, expected);
    assert_eq!(format(&once).as_deref(), Ok(once.as_str()));
}

/// Formatting twice is formatting once, and the plan stays.
fn holds(text: &str) {
    let Ok(once) = format(text) else { return };
    assert_eq!(
        format(&once).as_deref(),
        Ok(once.as_str()),
        "not idempotent:\n{text}"
    );
    let (before, after) = (checked(text), checked(&once));
    assert_eq!(
        before.plan.map(without_lines),
        after.plan.map(without_lines),
        "another plan:\n{text}\n{once}"
    );
    assert_eq!(
        before.diagnostics.len(),
        after.diagnostics.len(),
        "other mistakes:\n{text}\n{once}"
    );
    let comments = |text: &str| text.matches('#').count();
    assert_eq!(
        comments(text),
        comments(&once),
        "a comment was lost:\n{text}"
    );
}

#[test]
fn one_spelling() {
    formats(
        "10   REQUEST-RESPONSE 32 * 1000",
        "10 request_response 32*1000;\n",
    );
    formats(
        "10 Parallel : < N > BULK-GET 1024*1000 , N=1...10",
        "10 parallel: <N> bulk_get 1024*1000; N = 1 ... 10;\n",
    );
    formats(
        "1 priority_Background:rr 1 , 2*3|stream 64KiB*1 <FILE x > Virtual-Memory",
        "1 priority background: rr 1, 2*3 | stream 64 KiB*1 < file x > virtual memory;\n",
    );
    formats(
        "1 UNTIL 2 % AT MOST 5 rr UNIFORM( 1,2 )*3 Exponential(20ms) OVER tcp(a=1,b),unix ON CPU 1 TO 2 IN Live",
        "1 until 2% at most 5 rr uniform(1, 2)*3 exponential(20 ms) over tcp(a = 1, b), unix on cpu 1 to 2 in live;\n",
    );
    formats(
        "1 rr 1*1 OVER Plugin ( \"./a  b.so\",options=\"C, d\" ) ,program( \"x\" , \"y\" )",
        "1 rr 1*1 over Plugin(\"./a  b.so\", options = \"C, d\"), program(\"x\", \"y\");\n",
    );
    formats(
        "5 rr 32*1 EXPECT P99<20ms , Loss<=1 %,mean Within 1ms..2ms,rate>5/s , finding NOT Outage",
        "5 rr 32*1 expect p99 < 20 ms, loss <= 1%, mean within 1 ms .. 2 ms, rate > 5/s, finding not outage;\n",
    );
    formats(
        "HOST a , b VIA SSH \"x\" AT \"y\" ; SEED 7 ;",
        "host a, b via ssh \"x\" at \"y\";\nseed 7;\n",
    );
}

#[test]
fn expectations_of_a_long_specification_have_their_own_line() {
    formats(
        "10 from khons to udjat request_response 32, 1024*1000 over tcp(nodelay) across wan expect p99 < 20 ms, rate > 50/s",
        "10 from khons to udjat request_response 32, 1024*1000 over tcp(nodelay) across wan\n  expect p99 < 20 ms, rate > 50/s;\n",
    );
}

#[test]
fn blocks_and_long_lines() {
    formats(
        "network wan{host a,b;switch e{buffer 1500 bytes per port;cells 53}link a-1 - b 100Mbit/s 1ms loss 1%}",
        "network wan {\n  host a, b;\n  switch e { buffer 1500 bytes per port; cells 53; }\n  link a-1 - b 100 Mbit/s 1 ms loss 1%;\n}\n",
    );
    formats(
        "network w{HOST a,b{Copy 1ms PER packet,2us per byte;clock Ahead 1ms at 5s};router r{queue 9kB RED(min=1 kB,max=3 kB)ECN};link a->r SCHEDULE (0 1bit/s,1 2bit/s)Every 5 0 Loss Gilbert-Elliott(1%,2%);link r - b Unlimited 0 jitter constant(1)Reordering charge WIRE}",
        "network w {\n  host a, b { copy 1 ms per packet, 2 us per byte; clock ahead 1 ms at 5 s; }\n  router r { queue 9 kB red(min = 1 kB, max = 3 kB) ecn; }\n  link a -> r schedule(0 1 bit/s, 1 2 bit/s) every 5 0 loss gilbert_elliott(1%, 2%);\n  link r - b unlimited 0 jitter constant(1) reordering charge wire;\n}\n",
    );
    formats(
        "procedure X-y(a,b){initiator{repeat COUNT{rpccall(UNIT,reply)}\nstartMeasurements}responder{}}",
        "procedure X_y(a, b) {\n  initiator {\n    repeat count { RPCCall(unit, reply); }\n    StartMeasurement;\n  }\n  responder { }\n}\n",
    );
    formats("procedure x ( ) { }", "procedure x() { }\n");
    let long = "10 parallel over tcp across wan: 3 from khons to udjat bulk_put 49152*200 | from udjat to khons rr 32*1000; N = 1";
    formats(
        long,
        "10 parallel over tcp across wan:\n  3 from khons to udjat bulk_put 49152*200\n  | from udjat to khons rr 32*1000;\n  N = 1;\n",
    );
}

#[test]
fn comments_and_blank_lines() {
    formats(
        "\n\n# first  \n\n\n10 rr 1*1 # behind\n; # more\n# own\n10 rr # inside\n 2*2\n\n\n# last",
        "# first\n\n10 rr 1*1; # behind\n# more\n# own\n10 rr # inside\n  2*2;\n\n# last\n",
    );
    formats(
        "procedure p { # a\n\n # b\n initiator { ConnectRequest; # c\n\n\n DisconnectRequest } # d\n # e\n }",
        "procedure p { # a\n\n  # b\n  initiator {\n    ConnectRequest; # c\n\n    DisconnectRequest;\n  } # d\n  # e\n}\n",
    );
    formats("", "");
    formats("# alone", "# alone\n");
}

#[test]
fn the_prelude_and_the_examples_keep_their_form() {
    assert_eq!(format(PRELUDE).unwrap(), PRELUDE);
    // `spims.stackline` stands as the paper prints it.
    for (name, text) in examples() {
        if name != "spims.stackline" {
            assert_eq!(format(&text).as_deref(), Ok(text.as_str()), "{name}");
        }
        holds(&text);
    }
}

#[test]
fn a_text_with_mistakes_is_not_formatted() {
    assert!(format("10 rr 32*;").is_err());
    assert!(format("10 nothing 32*5;").is_ok());
}

const WORDS: &[&str] = &[
    "10",
    "1",
    "0",
    "1024",
    "2.5",
    "rr",
    "bulk_get",
    "BULK-GET",
    "stream",
    "conn_disc",
    "ping",
    "from",
    "to",
    "khons",
    "N",
    "M",
    "<N>",
    "<",
    ">",
    "*",
    ",",
    ";",
    ":",
    "|",
    "(",
    ")",
    "{",
    "}",
    "=",
    "-",
    "...",
    "%",
    "/",
    "over",
    "tcp",
    "unix",
    "blast",
    "selective",
    "in",
    "simulated",
    "across",
    "wan",
    "on",
    "cpu",
    "timelimit",
    "until",
    "at",
    "most",
    "warmup",
    "parallel",
    "background",
    "priority",
    "total",
    "host",
    "via",
    "local",
    "ssh",
    "\"x\"",
    "network",
    "switch",
    "link",
    "buffer",
    "per",
    "port",
    "cells",
    "Mbit",
    "s",
    "ms",
    "KiB",
    "bytes",
    "file",
    "memory",
    "virtual",
    "uniform",
    "exponential",
    "constant",
    "empirical",
    "procedure",
    "initiator",
    "responder",
    "repeat",
    "count",
    "unit",
    "reply",
    "ConnectRequest",
    "RPCCall",
    "Delay",
    "StartMeasurement",
    "seed",
    "loss",
    "mtu",
    "queue",
    "router",
    "->",
    "copy",
    "work",
    "operation",
    "polls",
    "priority",
    "clock",
    "ahead",
    "fast",
    "ppm",
    "frames",
    "packets",
    "every",
    "schedule",
    "trace",
    "jitter",
    "reordering",
    "charge",
    "wire",
    "codel",
    "fq_codel",
    "target",
    "ecn",
    "\n",
    "\n",
    "# note\n",
    "\n\n# own\n",
];

const VALID: &[&str] = &[
    "100 from khons to udjat bulk_get bytes 1024*1000 < memory > memory;",
    "10 background: request_response 32*1000 | <N> bulk_get 1024*3000; N = 0...5;",
    "10 request_response N*1000; N = 1, 8, 32 ... 4096,",
    "10 timelimit 5 parallel over tcp, unix on cpu 1: 4 bulk_get 1024*1000 | rr 32,64*10 exponential(1 ms) over quic | stream 1 MiB;",
    "host khons, udjat via local at \"10.0.0.1\";",
    "network wan { host a, b; switch e { buffer 1500 bytes per port; cells 53 } link a - e 100 Mbit/s 1 ms; link e - b 1 Gbit/s 6 ms loss 1% mtu 9180; }",
    "10 from a to b rr 32*10 across wan in simulated;",
    "network lan { host a { buffer 2 frames; copy 1 ms per packet, 1 us per byte; work 1 ms per operation, 2 ms per message; priority messages; polls 5 ms; clock fast 20 ppm } host b; router r { queue 64 KiB red ecn } link a -> r schedule(0 s 1 Mbit/s, 5 s 0 bit/s) every 9 s 1 ms; link r -> a unlimited 0 loss gilbert_elliott(1%, 20%); link r - b 1 Gbit/s 50 us jitter uniform(0, 1 ms) reordering charge wire queue fq_codel(target = 2 ms, flows = 64) ecn; }",
    "procedure ping(gap) { initiator { ConnectRequest; StartMeasurement; repeat count { Pace(gap); RPCCall(unit, reply) } StopMeasurement; DisconnectRequest; } responder { AwaitConnectIndication; repeat count { RPCAwaitCallInd; RPCReturn; } AwaitDisconnectIndication; } }",
    "5 ping 32*10 constant(1 ms);",
    "10 until 2% at most 40 warmup 1 s rr empirical(file \"sizes.txt\")*10;",
    "1 rr 1*1 over tcp(window = <W>, nodelay); W = 1 KiB, 2 KiB;",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..40).prop_map(|words| words.join(" "))
}

/// Valid items in any order, with some words replaced, dropped, doubled or set apart by comments and line breaks.
fn mutated() -> impl Strategy<Value = String> {
    let items = prop::collection::vec(prop::sample::select(VALID), 1..6);
    let edits = prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            prop::sample::select(WORDS),
            0..4_u8,
        ),
        0..4,
    );
    (items, edits).prop_map(|(items, edits)| {
        let mut words: Vec<String> = items.join("\n").split(' ').map(String::from).collect();
        for (at, word, how) in edits {
            let at = at.index(words.len());
            match how {
                0 => words[at] = word.to_string(),
                1 if words.len() > 1 => {
                    words.remove(at);
                }
                2 => words[at].push_str(" # c\n"),
                _ => words[at].push_str("\n\n # own\n"),
            }
        }
        words.join(" ")
    })
}

/// Like `mutated`, but still valid: only layout and case change.
fn laid_out() -> impl Strategy<Value = String> {
    let gaps = prop::collection::vec(
        prop::sample::select(
            &[
                " ",
                "  ",
                "\n",
                "\n\n\n",
                " # c\n",
                "\n# own\n",
                "\n\n  # own\n\n",
            ][..],
        ),
        60,
    );
    (
        prop::collection::vec(prop::sample::select(VALID), 1..5),
        gaps,
    )
        .prop_map(|(items, gaps)| {
            let mut gaps = gaps.into_iter().cycle();
            let text = items.join("\n");
            let mut out = String::new();
            for word in text.split(' ') {
                out.push_str(word);
                out.push_str(gaps.next().unwrap_or(" "));
            }
            out
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn soups_never_panic(text in soup()) {
        let result = checked(&text);
        let errors = result.diagnostics.iter().any(|d| d.severity == stackline_spec::Severity::Error);
        prop_assert_eq!(result.plan.is_none(), errors);
        holds(&text);
    }

    #[test]
    fn mutated_texts_hold(text in mutated()) {
        checked(&text);
        holds(&text);
    }

    #[test]
    fn layout_never_matters(text in laid_out()) {
        let _: String = format(&text).unwrap_or_else(|d| panic!("{}", common::shown(&text, &d)));
        holds(&text);
    }

    #[test]
    fn any_characters(text in "\\PC{0,60}") {
        checked(&text);
        holds(&text);
    }
}
