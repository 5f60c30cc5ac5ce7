//! Networks of IMPs: what the formula of BBN 2499 says, and what becomes of messages on bad days.

use stackline_core::network::Loss;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_proto::imp::{Address, HostKind, Options};
use stackline_sim::imps::traffic::{Run, Sender};
use stackline_sim::imps::{Host, Line, Node, OVERHEAD_BITS, Plan};

fn at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// So many lines in a row, a host at each end.
fn chain(hops: u16, bit_s: f64, miles: f64, options: Options) -> Plan {
    let line = |end: u16| Line {
        ends: (end, end + 1),
        bit_s,
        delay: Duration::from_seconds(miles * 5.4e-6),
        satellite: false,
        loss: Loss::None,
    };
    let host = |imp| Host { imp, bit_s: None, kind: HostKind::default() };
    Plan {
        imps: vec![Node { options, splits: false }; usize::from(hops) + 1],
        lines: (0..hops).map(line).collect(),
        hosts: vec![host(0), host(hops)],
        overhead_bits: OVERHEAD_BITS,
        control_is_free: false,
        routing_bits: None,
    }
}

fn ends(hops: u16, in_flight: u32) -> Sender {
    let host = |imp| Address { imp, host: 0 };
    Sender { begins: at(20.0), ..Sender::full(host(0), host(hops), in_flight) }
}

/// bit/s from end to end with so many messages in flight, over 100 s.
fn rate(plan: &Plan, hops: u16, in_flight: u32) -> f64 {
    let mut run = Run::new(plan, &[ends(hops, in_flight)], Seed::root(1));
    run.run((at(60.0), at(160.0)))[0].rate(Duration::from_seconds(100.0))
}

/// Messages in flight that keep a path full (BBN 2499, 2.1.3).
fn needed(hops: u16, bit_s: f64, miles: f64) -> f64 {
    let packet = 1160.0 / bit_s;
    (f64::from(hops) * (packet + 2.0 * miles * 5.4e-6) + 7.0 * packet) / (8.0 * packet)
}

#[test]
fn throughput_is_that_of_the_messages_in_flight() {
    for (hops, bit_s, miles) in [(1, 50e3, 10.0), (8, 50e3, 100.0), (8, 230.4e3, 1000.0)] {
        let plan = Plan { control_is_free: true, ..chain(hops, bit_s, miles, Options::UNBOUNDED) };
        let most = rate(&plan, hops, 16);
        for in_flight in [1, 2, 4] {
            let expected = (f64::from(in_flight) / needed(hops, bit_s, miles)).min(1.0);
            let is = rate(&plan, hops, in_flight) / most;
            assert!(
                (is / expected - 1.0).abs() < 0.02,
                "{hops} hops, {in_flight} in flight: {is} instead of {expected}"
            );
        }
    }
}

#[test]
fn a_line_of_50_kbit_s_without_background_carries_40() {
    let plan = chain(1, 50e3, 10.0, Options::default());
    let [one, two] = [1, 2].map(|in_flight| rate(&plan, 1, in_flight));
    assert!((39e3..41e3).contains(&two) && one < two, "{one} and {two}");
}
