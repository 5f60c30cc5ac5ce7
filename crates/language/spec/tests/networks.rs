//! Networks: what is written to what is meant.

mod common;

use common::{checked, clean, examples, mistake, plan, shown};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Charge, ClockModel, Discipline, ImpMachine, ImpSettings, Jitter, LinkQueue, LinkRate,
    LossModel, Network, NetworkInterface, NetworkLink, ProgramCosts, RateSchedule, StepSchedule,
    WorkKind,
};
use stackline_core::plan::World;
use stackline_core::time::Duration;
use stackline_spec::{Available, CheckContext, Overrides, check, format};

const MS: u64 = 1_000_000;

fn network(body: &str) -> Network {
    plan(&format!("network w {{ {body} }} 1 rr 1*1;"))
        .networks
        .remove(0)
}

/// The first link, between two hosts, with what stands behind its ends.
fn link(rest: &str) -> NetworkLink {
    network(&format!("host a, b; link a - b {rest};"))
        .links
        .remove(0)
}

fn interface(statements: &str) -> NetworkInterface {
    network(&format!("host a {{ {statements} }}"))
        .hosts
        .remove(0)
        .interface
}

fn clock(statements: &str) -> ClockModel {
    network(&format!("host a {{ {statements} }}"))
        .hosts
        .remove(0)
        .clock
}

fn queue(text: &str) -> LinkQueue {
    link(&format!("1 Mbit/s 0 queue {text}"))
        .queue
        .expect("a queue")
}

#[test]
fn hosts_share_what_stands_in_their_braces() {
    let network = network(
        "host a, b { buffer 2 frames; single_buffered; } host c; switch s; link a - s 1 Mbit/s 1 ms; link b - s 1 Mbit/s 1 ms; link c - s 1 Mbit/s 1 ms;",
    );
    let names: Vec<&str> = network
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let alike = NetworkInterface {
        buffer_frames: Some(2),
        single_buffered: true,
        ..NetworkInterface::default()
    };
    assert_eq!(network.hosts[0].interface, alike);
    assert_eq!(network.hosts[1].interface, alike);
    assert_eq!(network.hosts[2].interface, NetworkInterface::default());
}

#[test]
fn interfaces() {
    let none = NetworkInterface::default;
    let both = interface("copy 1.35 ms per packet, 0.47 us per byte; cpu 2.5; pace 30 Mbit/s");
    assert!((both.copy_ns_per_byte - 470.0).abs() < 1e-9);
    assert_eq!(
        (both.copy_per_packet, both.cpu_speed, both.pace_bit_s),
        (Duration(1_350_000), Some(2.5), Some(30e6))
    );
    assert!((interface("COPY 470 ns PER BYTE").copy_ns_per_byte - 470.0).abs() < 1e-9);
    assert_eq!(
        interface("copy 1 us per packet"),
        NetworkInterface {
            copy_per_packet: Duration(1000),
            ..none()
        }
    );
    assert_eq!(
        interface("copy 2 ns per byte, 1 us per packet").copy_per_packet,
        Duration(1000)
    );
    assert_eq!(
        interface("Single-Buffered"),
        NetworkInterface {
            single_buffered: true,
            ..none()
        }
    );
    assert_eq!(
        interface("busy-waiting"),
        NetworkInterface {
            busy_waiting: true,
            ..none()
        }
    );
    let by_itself = NetworkInterface {
        interface_copies: true,
        copy_per_packet: Duration(1000),
        ..none()
    };
    assert_eq!(
        interface("copy 1 us per packet; interface_copies"),
        by_itself
    );
}

#[test]
fn what_programs_take() {
    let work = |statements: &str| {
        network(&format!("host a {{ {statements} }}"))
            .hosts
            .remove(0)
            .work
    };
    let all = work(
        "work 2 ms per operation, 3 us per byte, 1 ms per message; polls 200 ms; priority Messages",
    );
    assert!((all.ns_per_byte - 3000.0).abs() < 1e-9);
    assert_eq!(
        (all.per_operation, all.per_message),
        (Duration(2 * MS), Duration(MS))
    );
    assert_eq!(
        (all.polls, all.first),
        (Some(Duration(200 * MS)), Some(WorkKind::Messages))
    );
    assert_eq!(
        work("work 1 us per message"),
        ProgramCosts {
            per_message: Duration(1000),
            ..ProgramCosts::default()
        }
    );
    assert!(work("cpu 2; copy 1 us per packet").is_nothing());
}

#[test]
fn clocks() {
    assert_eq!(
        clock("clock ahead 20 ms"),
        ClockModel {
            offset_ns: 20_000_000,
            ..ClockModel::default()
        }
    );
    assert_eq!(
        clock("clock behind 1 s; clock slow 20 ppm").offset_ns,
        -1_000_000_000
    );
    assert_eq!(
        clock("clock behind 1 s; clock slow 20 ppm").drift_ppm,
        -20.0
    );
    assert_eq!(clock("clock fast 0.5 ppm").drift_ppm, 0.5);
    let steps = clock("clock behind 2 ms at 10 s; clock ahead 1 ms at 5 s").steps;
    assert_eq!(
        steps,
        [
            (Duration(5000 * MS), 1_000_000),
            (Duration(10_000 * MS), -2_000_000)
        ]
    );
}

#[test]
fn switches_and_routers() {
    let text = "host a, b; router r { queue 64 KiB codel } switch s { buffer 1 MiB; early_packet_discard on; cells 53; abr on } \
                link a - r 1 Mbit/s 1 ms; link r - s 1 Mbit/s 1 ms; link s - b 1 Mbit/s 1 ms;";
    let network = network(text);
    assert_eq!(
        network.switches[0].queue.as_ref().unwrap().limit_bytes,
        Some(65_536)
    );
    let switch = &network.switches[1];
    assert_eq!(
        (switch.buffer_bytes, switch.buffer_per_port),
        (Some(1 << 20), false)
    );
    assert_eq!(
        (switch.cell_bytes, switch.early_packet_discard, switch.abr),
        (Some(53), true, true)
    );
}

#[test]
fn links_of_one_way_and_several_between_two_nodes() {
    let text =
        "host a, b; link a -> b 2 Mbit/s 1 ms; link b->a 1 Mbit/s 1 ms; link a - b unlimited 0;";
    let links = network(text).links;
    assert_eq!(
        links.iter().map(|link| link.one_way).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(
        (links[1].ends.0.as_str(), links[1].ends.1.as_str()),
        ("b", "a")
    );
    assert_eq!(links[2].rate, LinkRate::Unlimited);
}

#[test]
fn delays_and_losses_that_change() {
    let found = link(
        "1 Mbit/s schedule(0 s 10 ms, 2 s 30 ms) every 4 s loss schedule(0 s 0%, 1 s 2%, 2 s gilbert_elliott(1%, 25%))",
    );
    let delays = vec![
        (Duration(0), Duration(10 * MS)),
        (Duration(2000 * MS), Duration(30 * MS)),
    ];
    assert_eq!(
        found.delays,
        Some(StepSchedule {
            steps: delays,
            period: Some(Duration(4000 * MS))
        })
    );
    assert_eq!(
        (found.delay, found.least_delay()),
        (Duration(20 * MS), Duration(10 * MS))
    );
    let bursts = LossModel::GilbertElliott {
        to_bad: 0.01,
        to_good: 0.25,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    let losses = [LossModel::None, LossModel::Independent(0.02), bursts].into_iter();
    let steps = (0..)
        .map(|step| Duration(step * 1000 * MS))
        .zip(losses)
        .collect();
    assert_eq!(
        found.loss,
        LossModel::Schedule(StepSchedule {
            steps,
            period: None
        })
    );
}

#[test]
fn rates_that_change() {
    let schedule = |steps: &[(u64, f64)], period: Option<u64>| {
        let steps = steps
            .iter()
            .map(|(ms, rate)| (Duration(ms * MS), *rate))
            .collect();
        LinkRate::Schedule(RateSchedule {
            steps,
            period: period.map(|ms| Duration(ms * MS)),
        })
    };
    assert_eq!(
        link("schedule(0 s 10 Mbit/s, 5 s 0 bit/s, 6 s 1 Mbit/s) every 10 s 1 ms").rate,
        schedule(&[(0, 10e6), (5000, 0.0), (6000, 1e6)], Some(10_000))
    );
    assert_eq!(
        link("schedule(0 1 kbit/s) 1 ms").rate,
        schedule(&[(0, 1e3)], None)
    );
    let LinkRate::Trace(trace) = link("trace \"up.trace\" 1 ms").rate else {
        panic!("no trace")
    };
    assert_eq!(
        (trace.file.as_str(), trace.opportunities_ms.as_slice()),
        ("up.trace", &[0, 1, 1, 20][..])
    );
}

#[test]
fn losses() {
    let loss = |text: &str| link(&format!("1 Mbit/s 1 ms loss {text}")).loss;
    assert_eq!(loss("1%"), LossModel::Independent(0.01));
    assert_eq!(loss("0%"), LossModel::None);
    assert_eq!(loss("100%"), LossModel::Independent(1.0));
    assert_eq!(loss("bit errors 1e-6"), LossModel::BitErrors(1e-6));
    assert_eq!(loss("every 100"), LossModel::Every(100));
    assert_eq!(loss("packets 1, 5, 6"), LossModel::List(vec![1, 5, 6]));
    let (to_bad, to_good) = (0.01, 0.25);
    let defaults = LossModel::GilbertElliott {
        to_bad,
        to_good,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    assert_eq!(loss("gilbert-elliott(1%, 25%)"), defaults);
    let all = LossModel::GilbertElliott {
        to_bad,
        to_good,
        loss_good: 0.001,
        loss_bad: 0.5,
    };
    assert_eq!(loss("gilbert_elliott(1%, 25%, 0.1%, 50%)"), all);
}

#[test]
fn clauses_in_any_order() {
    let link = link(
        "1 Mbit/s 1 ms charge wire mtu 9180 duplicate 0.5% jitter normal(2 ms, 1 ms) reordering loss 1%",
    );
    assert_eq!((link.charge, link.mtu()), (Charge::Wire, 9180));
    assert_eq!(
        (link.duplicate, link.loss),
        (0.005, LossModel::Independent(0.01))
    );
    assert_eq!(
        link.jitter,
        Some(Jitter {
            distribution: Distribution::Normal(0.002, 0.001),
            reorder: true
        })
    );
    let link = self::link("1 Mbit/s 1 ms jitter uniform(0, 1 ms) charge frames");
    assert_eq!(
        (link.jitter.map(|jitter| jitter.reorder), link.charge),
        (Some(false), Charge::Frame)
    );
    assert_eq!(
        self::link("1 Mbit/s 1 ms charge packets").charge,
        Charge::Packet
    );
    assert_eq!(
        self::link("1 Mbit/s 1 ms queue 9 kB charge frames").charge,
        Charge::Frame
    );
}

#[test]
fn queues() {
    let limit_bytes = Some(65_536);
    assert_eq!(
        queue("64 KiB"),
        LinkQueue {
            limit_bytes,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("64 KiB drop-tail"),
        LinkQueue {
            limit_bytes,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("100 packets"),
        LinkQueue {
            limit_packets: Some(100),
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("5 packets drop_head").discipline,
        Discipline::DropHead
    );
    let (target, interval) = (Duration(5 * MS), Duration(100 * MS));
    assert_eq!(
        queue("codel ecn"),
        LinkQueue {
            discipline: Discipline::CoDel { target, interval },
            ecn: true,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("codel(interval = 300 ms)").discipline,
        Discipline::CoDel {
            target,
            interval: Duration(300 * MS)
        }
    );
    let fifteen = Duration(15 * MS);
    assert_eq!(
        queue("1 MB pie").discipline,
        Discipline::Pie {
            target: fifteen,
            update: fifteen
        }
    );
    assert_eq!(
        queue("pie(target = 20 ms)").discipline,
        Discipline::Pie {
            target: Duration(20 * MS),
            update: fifteen
        }
    );
    assert_eq!(
        queue("fq-codel").discipline,
        Discipline::FqCoDel {
            target,
            interval,
            flows: 1024,
            quantum: 1514
        }
    );
    assert_eq!(
        queue("fq_codel(quantum = 300 B, flows = 64, target = 1 ms)").discipline,
        Discipline::FqCoDel {
            target: Duration(MS),
            interval,
            flows: 64,
            quantum: 300
        }
    );
}

#[test]
fn thresholds_of_red_follow_from_the_limit() {
    let red = |min_bytes, max_bytes, most, weight| Discipline::Red {
        min_bytes,
        max_bytes,
        most,
        weight,
    };
    assert_eq!(
        queue("60 kB red").discipline,
        red(10_000, 30_000, 0.1, 0.002)
    );
    assert_eq!(
        queue("60 kB red(min = 5 kB)").discipline,
        red(5_000, 30_000, 0.1, 0.002)
    );
    let all = queue("red(min = 5 kB, max = 15 kB, probability = 2%, weight = 0.01) ecn");
    assert_eq!(
        (all.discipline, all.ecn),
        (red(5_000, 15_000, 0.02, 0.01), true)
    );
}

#[test]
fn every_example_is_right_in_every_world() {
    let stacks = common::stacks_of_examples();
    for (name, text) in examples() {
        for world in [None, Some(World::Simulated), Some(World::Emulated)] {
            let worlds = common::context()
                .worlds
                .iter()
                .map(|world| Available {
                    stacks: &stacks,
                    ..*world
                })
                .collect::<Vec<_>>();
            let context = CheckContext {
                worlds: &worlds,
                ..common::context()
            };
            let checked = check(
                &text,
                &context,
                &Overrides {
                    world,
                    ..Overrides::default()
                },
            );
            if name == "arpanet.stackline" && world == Some(World::Emulated) {
                assert!(
                    shown(&text, &checked.diagnostics).contains("consists of IMPs"),
                    "IMPs are simulated"
                );
                continue;
            }
            let Some(plan) = checked.plan else {
                panic!("{name}: {}", shown(&text, &checked.diagnostics))
            };
            assert!(!plan.measurements.is_empty(), "{name}");
            for measurement in &plan.measurements {
                let usual = if plan.networks.is_empty() {
                    World::Live
                } else {
                    World::Simulated
                };
                assert_eq!(
                    measurement.world,
                    world.unwrap_or(usual),
                    "{name} leaves the world to the command line"
                );
                assert_eq!(
                    measurement.across.is_some(),
                    !plan.networks.is_empty(),
                    "{name}"
                );
            }
        }
    }
}

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
    ]);
    let others = one_of(&["", "duplicate 1%", "mtu 9180 charge WIRE", "charge frames"]);
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

/// A data centre: it would take minutes if any step visited all the others.
#[test]
fn twenty_thousand_hosts() {
    const HOSTS: usize = 20_000;
    let star = |n: usize| format!("host h{n}; link h{n} - s{} 1 Gbit/s 1 ms;\n", n % 2);
    let hosts: String = (0..HOSTS).map(star).collect();
    let switches = "switch s0; switch s1; link s0 - s1 10 Gbit/s 1 ms;";
    let last = HOSTS - 1;
    let plan = clean(&format!(
        "network w {{ {switches}\n{hosts} }} 1 from h0 to h{last} rr 1*1 across w in simulated"
    ));
    assert_eq!(
        (plan.networks[0].hosts.len(), plan.networks[0].links.len()),
        (HOSTS, HOSTS + 1)
    );
    let apart = "switch s0; switch s1; link s0 -> s1 10 Gbit/s 1 ms;";
    let lost = mistake(&format!(
        "network w {{ {apart}\n{hosts} }} 1 from h0 to h{last} rr 1*1 across w in simulated"
    ));
    assert!(
        lost.starts_with("error: no path leads from `h1` to `h0`"),
        "{lost}"
    );
}

#[test]
fn a_path_has_as_many_links_as_a_packet_can_cross() {
    let chain = |switches: usize| {
        let names: Vec<String> = (0..switches).map(|n| format!("s{n}")).collect();
        let nodes: Vec<&str> = ["a"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .chain(["b"])
            .collect();
        let links: String = nodes
            .windows(2)
            .map(|ends| format!("link {} - {} 1 Gbit/s 1 ms; ", ends[0], ends[1]))
            .collect();
        let names = names.join(", ");
        format!(
            "network n {{ host a, b; switch {names}; {links} }} 1 from a to b rr 1*1 across n in simulated;"
        )
    };
    assert!(checked(&chain(63)).plan.is_some());
    let mistakes = checked(&chain(64)).diagnostics;
    assert!(
        mistakes
            .iter()
            .any(|m| m.message.contains("65 links") && m.hint.is_some()),
        "{mistakes:?}"
    );
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
                "w(R = 1000000 bit/s, Q = 4096 B)",
                &LinkRate::Constant(1e6),
                Some(4096)
            ),
            (
                "w(R = 2000000 bit/s, Q = 4096 B)",
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

#[test]
fn the_profiles_are_as_their_sources_have_them() {
    // kbit/s to the client and from it, ms there and back.
    const SOURCES: [(&str, f64, f64, f64); 11] = [
        ("dial_up", 49.0, 30.0, 120.0),
        ("edge", 240.0, 200.0, 840.0),
        ("three_g", 1600.0, 768.0, 300.0),
        ("three_g_fast", 1600.0, 768.0, 150.0),
        ("four_g", 9000.0, 9000.0, 170.0),
        ("lte", 12_000.0, 12_000.0, 70.0),
        ("dsl", 1500.0, 384.0, 50.0),
        ("cable", 5000.0, 1000.0, 28.0),
        ("wifi", 30_000.0, 15_000.0, 2.0),
        ("satellite_geo", 19_730.0, 2430.0, 558.0),
        ("leo", 104_710.0, 14_840.0, 45.0),
    ];
    let plan = clean(include_str!("../../../../examples/profiles.stackline"));
    let found = plan.networks.iter().map(|network| {
        let [down, up] = &network.links[..] else {
            panic!("{}", network.name)
        };
        assert_eq!(
            (down.ends.1.as_str(), up.ends.0.as_str()),
            ("client", "client")
        );
        let rate = |link: &NetworkLink| {
            link.rate
                .mean_bit_s()
                .map_or(0.0, |rate| (rate / 1e3).round())
        };
        (
            network.name.as_str(),
            rate(down),
            rate(up),
            (down.delay.seconds() + up.delay.seconds()) * 1e3,
        )
    });
    assert_eq!(found.collect::<Vec<_>>(), SOURCES);
    let crossed: Vec<&str> = plan
        .measurements
        .iter()
        .filter_map(|m| m.across.as_deref())
        .collect();
    assert_eq!(
        crossed,
        SOURCES.map(|(name, ..)| name),
        "each has its measurement"
    );
}

/// A network of two IMPs with a host each, and more in it.
fn imps(more: &str) -> String {
    format!(
        "network n {{ imp A 516 {{ reassembly 10; routing september; reservation off; }} imp B, C tip; host x, y; \
         link x - A 100 kbit/s 0 us; link y - B 100 kbit/s 0 us; link A - B 50 kbit/s 1 ms; link B - C 50 kbit/s 1 ms; {more} }}"
    )
}

#[test]
fn imps_are_what_is_said_of_them() {
    let network = plan(&format!("{} 1 rr 1*1;", imps(""))).networks.remove(0);
    let said = network
        .switches
        .iter()
        .map(|switch| switch.imp.clone().unwrap())
        .collect::<Vec<_>>();
    assert!(network.has_imps());
    assert_eq!(
        said[0],
        ImpSettings {
            reassembly: Some(10),
            september: true,
            unreserved: true,
            ..ImpSettings::default()
        }
    );
    assert_eq!([said[1].machine, said[2].machine], [ImpMachine::Tip; 2]);
}

#[test]
fn what_no_network_of_imps_has_is_refused_with_a_hint() {
    for (more, message) in [
        (
            "switch s; link s - A 50 kbit/s 0 us;",
            "`s` is a switch in a network of IMPs",
        ),
        (
            "link x - B 100 kbit/s 0 us;",
            "`x` must be connected to one IMP, by one link",
        ),
        (
            "link A - C 50 kbit/s 1 ms queue 10 packets;",
            "a line between IMPs cannot have a queue of its own: its channels serve as the queue",
        ),
        (
            "link A - C unlimited 1 ms;",
            "a line between IMPs cannot have a rate that changes or is unlimited",
        ),
        (
            "link A -> C 50 kbit/s 1 ms;",
            "a line between IMPs cannot have only one direction",
        ),
        ("imp D 517;", "unexpected `517`"),
        ("imp D 516 { room 3; }", "unexpected `room`"),
    ] {
        let text = imps(more);
        let said = shown(&text, &checked(&text).diagnostics);
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("error: {message} [")));
        assert!(
            line.is_some_and(|line| !line.ends_with("/ -") || message.starts_with("unexpected")),
            "{more}: {said}"
        );
    }
    let said = mistake(&format!(
        "{} 1 from x to y rr 32*10 across n in simulated;",
        imps("")
    ));
    assert!(
        said.contains("tcp cannot cross the IMPs of `n` [") && said.contains("use `over ncp`"),
        "{said}"
    );
    let said = mistake(&format!(
        "{} 1 from x to y rr 32*10 across n in emulated;",
        imps("")
    ));
    assert!(
        said.contains("consists of IMPs, which the emulated world does not support")
            && said.contains("simulated"),
        "{said}"
    );
}
