//! Networks written anew keep their meaning: formatted, or made for each value of a variable and read again.

use crate::common::{checked, clean};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stackline_core::network::LinkRate;
use stackline_spec::format;

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

fn host_statements() -> impl Strategy<Value = String> {
    let statement = one_of(&[
        "buffer 2 frames",
        "single-buffered",
        "busy_waiting",
        "copy 1.35ms per packet,0.47 us per byte",
        "COPY 1 us PER BYTE",
        "cpu 2",
        "pace 30Mbit/s",
        "clock AHEAD 20ms",
        "clock behind 1 s at 10 s",
        "clock slow 2.5 ppm",
    ]);
    prop::collection::vec(statement, 0..4).prop_map(|list| list.join(";"))
}

fn queues_written() -> impl Strategy<Value = String> {
    let limit = one_of(&["", "64KiB", "100 packets", "9000"]);
    let discipline = one_of(&[
        "drop-tail",
        "Drop_Head",
        "red(min=3 KiB,max=9 KiB,probability=5%,weight=0.01)",
        "codel",
        "CoDel(target=2ms)",
        "pie(target=20 ms,update = 5 ms)",
        "fq-codel(flows=64,quantum=300)",
        "Classes(EF cs6 strict 20 packets,Af41 weight 3 64KiB codel(target=2 ms),default weight 1)",
        "classes(default weight 2 Drop-Tail)",
        "DualPI2(step=1ms,classic=20%)",
    ]);
    (limit, discipline, one_of(&["", "ecn"])).prop_map(|(a, b, c)| format!("queue {a} {b} {c}"))
}

fn link_written() -> impl Strategy<Value = String> {
    let ends = one_of(&["a - s", "s - b", "a -> b", "b->a", "b - a"]);
    let rate = one_of(&[
        "10Mbit/s",
        "Unlimited",
        "schedule (0 s 1 Mbit/s,5 s 0 bit/s)every 10 s",
        "trace \"up.trace\"",
        "SCHEDULE(0 1kbit/s)",
    ]);
    let loss = one_of(&[
        "",
        "loss 0.1 %",
        "loss bit-errors 1e-6",
        "loss BIT errors 1e-6",
        "loss every 7",
        "loss packets 1,2,9",
        "loss Gilbert-Elliott( 1% ,20%, 0%,50% )",
    ]);
    let jitter = one_of(&[
        "",
        "jitter uniform(0,2ms)",
        "jitter Normal(1 ms, 1 ms) Reordering",
        "jitter uniform(0,2ms) correlation 25% reordering",
        "Reorder 25% Correlation 50% gap 5",
    ]);
    let others = one_of(&[
        "",
        "duplicate 1%",
        "mtu 9180 charge WIRE",
        "charge frames",
        "Shape 1Mbit/s Burst 32KiB latency 50ms",
        "police 1 Mbit/s burst 9KiB remark AF12 dscp EF",
        "loss State(1%,50%,5%) dscp 0",
    ]);
    let queue = prop::option::of(queues_written());
    (ends, rate, loss, jitter, others, queue).prop_map(
        |(ends, rate, loss, jitter, others, queue)| {
            format!(
                "link {ends} {rate} 1ms {loss} {jitter} {} {others};",
                queue.unwrap_or_default()
            )
        },
    )
}

fn network_written() -> impl Strategy<Value = String> {
    let switch = (
        one_of(&["switch", "Router"]),
        one_of(&[
            "",
            "buffer 64KiB per port;",
            "cells 53;early-packet-discard ON;abr on",
        ]),
    );
    let switch = (switch, prop::option::of(queues_written()));
    (host_statements(), switch, prop::collection::vec(link_written(), 1..5)).prop_map(
        |(host, ((word, body), queue), links)| {
            let queue = queue.map_or(String::new(), |queue| format!(";{queue}"));
            let base = "link a-s unlimited 0;".replace("a-s", "a - s");
            format!(
                "network w{{host a{{{host}}}host b;{word} s{{{body}{queue}}}{base}link s - b unlimited 0;{}}}1 rr 1*1",
                links.join("\n")
            )
        },
    )
}

/// The property is about something: many of the networks have a plan.
#[test]
fn every_form_keeps_its_meaning_when_formatted() {
    let right = std::cell::Cell::new(0);
    let config = ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let held = TestRunner::new(config).run(&network_written(), |text| {
        let networks = |text: &str| checked(text).plan.map(|plan| plan.networks);
        let before = networks(&text);
        right.set(right.get() + usize::from(before.is_some()));
        let Ok(once) = format(&text) else {
            return Ok(());
        };
        let twice = format(&once);
        prop_assert_eq!(twice.as_deref(), Ok(once.as_str()));
        prop_assert_eq!(before, networks(&once), "{}\n{}", text, once);
        Ok(())
    });
    held.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(right.get() > 150, "{} of 1000", right.get());
}

#[test]
fn a_network_is_made_for_each_value_and_its_measurement_can_be_read_again() {
    let declared = "network w { host a, b; link a - b <R> 1 ms queue <Q>; }";
    let text = format!(
        "{declared} 1 from a to b rr 32*1 across w over tcp, udp; R = 1 Mbit/s, 2 Mbit/s; Q = 4 KiB"
    );
    let whole = clean(&text);
    let made: Vec<(&str, &LinkRate, Option<u64>)> = whole
        .networks
        .iter()
        .map(|network| {
            let link = &network.links[0];
            (
                network.name.as_str(),
                &link.rate,
                link.queue.as_ref().and_then(|queue| queue.limit_bytes),
            )
        })
        .collect();
    assert_eq!(
        made,
        [
            (
                "w(R = 1 Mbit/s, Q = 4 KiB)",
                &LinkRate::Constant(1e6),
                Some(4096)
            ),
            (
                "w(R = 2 Mbit/s, Q = 4 KiB)",
                &LinkRate::Constant(2e6),
                Some(4096)
            ),
        ]
    );
    for measurement in &whole.measurements {
        let again = clean(&format!("{declared} {};", measurement.text));
        assert_eq!(again.measurements[0].across, measurement.across);
        assert_eq!(again.measurements[0].text, measurement.text);
        assert!(
            whole.networks.contains(&again.networks[0]),
            "{}",
            measurement.text
        );
    }
}
