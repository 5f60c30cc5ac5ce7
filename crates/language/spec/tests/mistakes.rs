//! Mistakes that are not in the text, and texts that no file of cases should hold. All others are in `data/`.

mod common;

use common::{checked, context, shown};
use stackline_spec::{Overrides, TextOrigin, check};

/// The first mistakes of a text, at most 100 of them.
#[track_caller]
fn refused(text: &str) -> String {
    let result = checked(text);
    assert!(
        result.plan.is_none() && result.diagnostics.len() <= 100,
        "{text:.100}"
    );
    shown(text, &result.diagnostics)
}

#[test]
fn mistakes_on_the_command_line_say_so() {
    let over = |text: &str| {
        check(
            "10 rr 32*10",
            &context(),
            &Overrides {
                over: Some(text.into()),
                ..Overrides::default()
            },
        )
    };
    for (text, message) in [
        ("tpc", "unknown stack `tpc`"),
        ("", "unexpected end of input"),
        ("tcp;", "unexpected `;`"),
        ("tcp udp", "unexpected `udp`"),
        ("udp, tcp(x)", "the stack `tcp` has no option `x`"),
    ] {
        let result = over(text);
        let [only] = result.diagnostics.as_slice() else {
            panic!("{:?}", result.diagnostics)
        };
        assert_eq!(
            (only.origin, only.message.as_str()),
            (TextOrigin::Over, message)
        );
        assert!(result.plan.is_none());
    }
}

#[test]
fn a_host_of_the_command_line_that_the_text_does_not_name() {
    let hosts = |text: &str, hosts: &[&str]| {
        let hosts = hosts
            .iter()
            .map(|host| stackline_spec::host_argument(host).unwrap())
            .collect();
        check(
            text,
            &context(),
            &Overrides {
                hosts,
                ..Overrides::default()
            },
        )
    };
    let network = "network w { host khons, b; link khons - b 1 Mbit/s 1 ms; }";
    for text in [
        "1 from khons rr 1*1",
        "1 to khons rr 1*1",
        "host khons via local; 1 rr 1*1",
        network,
    ] {
        assert!(hosts(text, &["khons=local"]).plan.is_some(), "{text}");
    }
    for (text, hint) in [
        (
            "1 from khons rr 1*1; host khons via local;",
            "did you mean `khons`?",
        ),
        ("1 from a to b rr 1*1; host a, b;", "its hosts: a, b"),
        (
            "1 rr 1*1",
            "omit it; without FROM and TO, both ends are on this machine",
        ),
    ] {
        let result = hosts(text, &["khon=local"]);
        let [only] = result.diagnostics.as_slice() else {
            panic!("{:?}", result.diagnostics)
        };
        assert_eq!(
            (only.origin, only.message.as_str()),
            (TextOrigin::Host(0), "the specification has no host `khon`")
        );
        assert_eq!(
            (only.hint.as_deref(), only.span.clone()),
            (Some(hint), 0..4)
        );
        assert!(result.plan.is_none());
    }
    assert_eq!(
        hosts("1 from a rr 1*1", &["a=local", "b=local"]).diagnostics[0].origin,
        TextOrigin::Host(1)
    );
    // It may be meant where the text cannot be read.
    assert_eq!(
        hosts("1 form khons rr 1*1", &["khons=local"])
            .diagnostics
            .len(),
        1
    );
    assert_eq!(
        hosts("1 form khons rr 1*1", &["khon=local"])
            .diagnostics
            .len(),
        2
    );
}

#[test]
fn hostile_texts_are_refused_with_few_mistakes() {
    let parts = vec!["rr 1*1"; 10_000].join(" | ");
    let links = "link a - b trace \"large.trace\" 1 ms; ".repeat(5);
    let switches: String = (0..32_768).map(|n| format!("switch s{n}; ")).collect();
    for (text, words) in [
        ("10 rr 1*1, ".repeat(20_000), "more than 10000 measurements"),
        ("x".repeat(2 << 20), "the input is longer than 1 MiB"),
        (
            format!("10 parallel: {parts} | N rr 1*1; N = 1 ... 9000"),
            "need too much memory",
        ),
        (
            format!("network w {{ host a; {switches} }} 1 rr 1*1"),
            "at most 32768 hosts and switches",
        ),
        (
            format!("network w {{ host a, b; {links} }} 1 rr 1*1"),
            "contain more than 4000000 values",
        ),
        (
            format!(
                "procedure p {{ initiator {{ {} {} }} responder {{ }} }}",
                "repeat 1 {".repeat(40),
                "}".repeat(40)
            ),
            "repeats are nested more than 32 levels deep",
        ),
    ] {
        let list = refused(&text);
        assert!(list.contains(words), "{text:.100}\n{list}");
    }
    for piece in [
        "{",
        "(",
        "repeat ",
        "1 rr 1, a(",
        "host a",
        "network w {",
        "network w { host a { ",
        "network w { link a - b 1 bit/s 0 queue red(min = ",
        "network w { host a; link a - b 1 bit/s 0 loss packets 1, ",
        "<",
        "1 ",
        "N = ",
        "procedure p {",
        "procedure p; ",
        "procedure p( ",
        "10 x:",
        "10 rr 1*1 x | ",
        "10 parallel x ",
        "a b ",
        "\"",
        "10 parallel over a, ",
    ] {
        refused(&piece.repeat(20_000));
    }
    let hosts: String = (0..20_000)
        .map(|n| format!("host h{n} via local; 1 from g{n} rr 1*1;\n"))
        .collect();
    assert!(checked(&hosts).plan.is_none());
    let star: String = (0..4000)
        .map(|n| format!("host h{n}; link h{n} - s 1 Mbit/s 1 ms;\n"))
        .collect();
    assert!(
        checked(&format!("network w {{ switch s;\n{star} }} 1 rr 1*1"))
            .plan
            .is_some()
    );
}
