//! The text of every measurement of a plan is a specification of that measurement alone.

mod common;

use common::{context, shown};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stackline_core::plan::{Composer, Measurement, Plan, World};
use stackline_spec::{Overrides, check};

const DECLARED: &str = "host khons, udjat, a, b via local; \
    network wan { host a, b; link a - b 1 Mbit/s 1 ms; } \
    procedure Ping-pong(gap) { \
      initiator { ConnectRequest; StartMeasurement; repeat count { Delay(gap); RPCCall(unit, reply); } StopMeasurement; \
                  DisconnectRequest; } \
      responder { AwaitConnectIndication; repeat count { RPCAwaitCallInd; RPCReturn; } AwaitDisconnectIndication; } } ";

const SWEPT: &str = "; R = 1, 3; N = 0 ... 2; S = 64, 1500; T = 0.1, 3 us";

/// Without what belongs to the text it stood in: a part's own text lacks what the command line said for all.
fn alone(mut measurement: Measurement) -> Measurement {
    measurement.variables = Vec::new();
    measurement.variable_units = Vec::new();
    measurement.line = 1;
    measurement.specification = 0;
    for part in &mut measurement.parts {
        part.text = String::new();
    }
    measurement
}

/// Each text again, by itself. Returns how many there were.
fn hold(text: &str, overrides: &Overrides) -> usize {
    let plan = |text: &str, overrides: &Overrides| -> Result<Plan, String> {
        let checked = check(text, &context(), overrides);
        checked
            .plan
            .ok_or_else(|| shown(text, &checked.diagnostics))
    };
    let Ok(whole) = plan(&format!("{DECLARED}{text}"), overrides) else {
        return 0;
    };
    let count = whole.measurements.len();
    for measurement in whole.measurements {
        let again = format!("{DECLARED}{}", measurement.text);
        let found = plan(&again, &Overrides::default())
            .unwrap_or_else(|mistakes| panic!("{text}\n{mistakes}"));
        let found: Vec<Measurement> = found.measurements.into_iter().map(alone).collect();
        assert!(found == [alone(measurement)], "{text}\n{again}\n{found:?}");
    }
    count
}

#[test]
fn the_examples() {
    let spims: String = include_str!("../../../../examples/spims.stackline")
        .lines()
        .filter(|line| !line.starts_with("host"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(hold(&spims, &Overrides::default()), 38);
    assert_eq!(
        hold(
            include_str!("../../../../examples/first.stackline"),
            &Overrides::default()
        ),
        3
    );
    let total = "3 warmup 1 total over tcp(window = 1 KiB), unix on cpu 1: 2 from a to b rr N, 5*3 constant(1) | stream 10*2; N = 1, 2;";
    assert_eq!(hold(total, &Overrides::default()), 4);
}

#[test]
fn a_background_at_no_pairs() {
    let text = "10 background: rr 32*1000 | N bulk_get 1024*3000; N = 0 ... 2";
    let plan = common::clean(text);
    assert_eq!(plan.measurements[0].text, "10 background: rr 32*1000");
    assert_eq!(
        (
            plan.measurements[0].composer,
            plan.measurements[0].parts.len()
        ),
        (Composer::Background, 1)
    );
    assert_eq!(hold(text, &Overrides::default()), 3);
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

fn part() -> impl Strategy<Value = String> {
    let replicas = one_of(&["", "", "2", "N", "<N>"]);
    let ends = one_of(&["", "from khons", "to b", "from a to b", "TO a FROM b"]);
    let work = one_of(&[
        "rr 32*10",
        "RR N, <S>*5 exponential(T) constant(200 us)",
        "request-response uniform(1, <S>)*10",
        "bulk_get 64 KiB 10 MB",
        "bulk_get <S> KiB*10 < file data.bin > virtual-memory",
        "BULK_PUT bytes S*R > FILE \"out put\"",
        "bulk_get 64",
        "conn_disc 0*<R>",
        "stream 160*10 bivalue(1, 2, 0.3)",
        "bulk_get empirical(file \"sizes.txt\")*10",
        "ping-PONG 1 KiB, 2*3 constant(<T>)",
    ]);
    let tail = one_of(&[
        "",
        "over tcp(window = <S>, NODELAY), unix",
        "over blast(selective) on cpu 1 to 2",
        "on cpu <N> over quic(zero-rtt = OFF)",
        "in simulated",
        "across wan in emulated",
    ]);
    (replicas, ends, work, tail).prop_map(|(a, b, c, d)| format!("{a} {b} {c} {d}"))
}

fn specification() -> impl Strategy<Value = String> {
    let runs = one_of(&["10", "R", "<R>"]);
    let heads = one_of(&[
        "",
        "TimeLimit 5",
        "timelimit T",
        "until 2% at most 50",
        "warmup 2 s",
        "timelimit 500ms warmup <N>",
    ]);
    let composer = one_of(&[
        "",
        "parallel",
        "background",
        "Priority-Background",
        "priority background",
        "TOTAL",
    ]);
    let clauses = one_of(&[
        "",
        "",
        "over tcp, udp",
        "over tcp(linger = T)",
        "in Simulated",
        "across wan in simulated",
        "on cpu N",
    ]);
    (
        runs,
        heads,
        composer,
        clauses,
        prop::collection::vec(part(), 1..4),
    )
        .prop_map(|(runs, heads, composer, clauses, parts)| {
            if composer.is_empty() {
                format!("{runs} {heads} {}{SWEPT}", parts[0])
            } else {
                format!(
                    "{runs} {heads} {composer} {clauses}: {}{SWEPT}",
                    parts.join(" | ")
                )
            }
        })
}

fn overrides() -> impl Strategy<Value = Overrides> {
    let over = prop::sample::select(
        &[
            None,
            None,
            Some("unix, tcp(window = 64 KiB)"),
            Some("tcp(window = <S>)"),
        ][..],
    );
    let world = prop::sample::select(&[None, None, Some(World::Live), Some(World::Simulated)][..]);
    (over, world).prop_map(|(over, world)| Overrides {
        over: over.map(String::from),
        world,
        ..Overrides::default()
    })
}

/// The property is about something: many of the specifications have a plan.
#[test]
fn every_text_is_its_measurement() {
    let right = std::cell::Cell::new(0);
    let config = ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let held = TestRunner::new(config).run(&(specification(), overrides()), |(text, overrides)| {
        right.set(right.get() + usize::from(hold(&text, &overrides) > 0));
        Ok(())
    });
    held.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(right.get() > 90, "{} of 600", right.get());
}
