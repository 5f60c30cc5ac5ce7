//! What holds in every network and for every traffic.

mod common;

use common::*;
use proptest::prelude::*;
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    ClassService, DelaySkipping, Discipline, DualPi2Settings, FourStateLoss, Jitter, LinkQueue,
    LinkRate, LossModel, Network as Plan, NetworkInterface, NetworkLink, NetworkSwitch, Policer,
    QueueClass, StepSchedule, TokenBucket,
};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{EcnMarking, NetworkPacket, PacketNetwork};
use std::collections::BTreeMap;

fn discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::DropHead),
        Just(Discipline::Red {
            min_bytes: 3000,
            max_bytes: 9000,
            most: 0.1,
            weight: 0.1
        }),
        Just(Discipline::CoDel {
            target: Duration(MS),
            interval: Duration(10 * MS)
        }),
        Just(Discipline::Pie {
            target: Duration(2 * MS),
            update: Duration(2 * MS)
        }),
        Just(Discipline::FqCoDel {
            target: Duration(MS),
            interval: Duration(10 * MS),
            flows: 8,
            quantum: 1514
        }),
        Just(Discipline::Classes),
        Just(Discipline::DualPi2(DualPi2Settings::default())),
    ]
}

/// Class 0 of strict priority, class 1 with a limit, class 2 with CoDel.
fn classes() -> Vec<QueueClass> {
    let class = |dscps: &[u8], service| QueueClass {
        dscps: dscps.to_vec(),
        service,
        ..QueueClass::default()
    };
    vec![
        class(&[46], ClassService::Strict),
        QueueClass {
            limit_packets: Some(4),
            ..class(&[34], ClassService::Weight(3))
        },
        QueueClass {
            codel: Some((Duration(MS), Duration(10 * MS))),
            ..class(&[], ClassService::Weight(1))
        },
    ]
}

fn buckets() -> BoxedStrategy<(Option<TokenBucket>, Option<Policer>)> {
    let bucket = |bit_s: f64| TokenBucket {
        bit_s,
        burst_bytes: 4500,
    };
    let shaper = proptest::option::of(Just(bucket(8e6)));
    let remark = prop_oneof![Just(None), Just(Some(34))];
    let policer = remark.prop_map(move |remark| Policer {
        bucket: bucket(5e6),
        remark,
    });
    (shaper, proptest::option::of(policer)).boxed()
}

fn skipping() -> impl Strategy<Value = Option<DelaySkipping>> {
    proptest::option::of(Just(DelaySkipping {
        share: 0.3,
        correlation: 0.5,
        gap: 3,
    }))
}

fn queue() -> BoxedStrategy<Option<LinkQueue>> {
    let limits = (
        proptest::option::of(1500_u64..40_000),
        proptest::option::of(1_u64..30),
    );
    let queue = (limits, discipline(), any::<bool>()).prop_map(
        |((limit_bytes, limit_packets), discipline, ecn)| LinkQueue {
            limit_bytes,
            limit_packets,
            discipline,
            ecn,
            classes: if discipline == Discipline::Classes {
                classes()
            } else {
                vec![]
            },
        },
    );
    proptest::option::of(queue).boxed()
}

/// Another value every 2 ms.
fn changing<T>(values: Vec<T>) -> StepSchedule<T> {
    let period = Some(Duration(values.len() as u64 * 2 * MS));
    StepSchedule {
        steps: (0..)
            .map(|step| Duration(step * 2 * MS))
            .zip(values)
            .collect(),
        period,
    }
}

fn loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        Just(LossModel::None),
        Just(LossModel::Independent(0.1)),
        Just(LossModel::BitErrors(1e-5)),
        Just(LossModel::GilbertElliott {
            to_bad: 0.05,
            to_good: 0.3,
            loss_good: 0.0,
            loss_bad: 0.8
        }),
        Just(LossModel::FourStates(FourStateLoss {
            p13: 0.05,
            p31: 0.3,
            p32: 0.2,
            p23: 0.5,
            p14: 0.01
        })),
        Just(LossModel::Every(7)),
        Just(LossModel::List(vec![1, 3, 4, 30])),
        Just(LossModel::Schedule(changing(vec![
            LossModel::None,
            LossModel::Independent(0.5),
            LossModel::Every(2)
        ]))),
    ]
}

fn any_link(ends: &'static str) -> BoxedStrategy<NetworkLink> {
    let jitter = proptest::option::of(any::<bool>());
    let duplicate = prop_oneof![Just(0.0), Just(0.1)];
    let rate = prop_oneof![Just(0.0), Just(1.0), Just(12.0), Just(1200.0)];
    let delays = proptest::option::of(Just(changing(vec![
        Duration(5 * MS),
        Duration::ZERO,
        Duration(1),
    ])));
    (
        rate,
        0.0_f64..5.0,
        delays,
        queue(),
        loss(),
        jitter,
        duplicate,
        buckets(),
        skipping(),
    )
        .prop_map(
            move |(rate, delay, delays, queue, loss, jitter, duplicate, buckets, skipping)| {
                let distribution = Distribution::Uniform(0.0, 0.003);
                let jitter = jitter.map(|reorder| Jitter {
                    distribution: distribution.clone(),
                    reorder,
                    correlation: 0.25,
                });
                NetworkLink {
                    delays,
                    queue,
                    loss,
                    jitter,
                    duplicate,
                    shaper: buckets.0,
                    policer: buckets.1,
                    dscp: (delay > 4.0).then_some(46),
                    skipping,
                    ..link(ends, rate, delay)
                }
            },
        )
        .boxed()
}

fn any_switch(name: &'static str) -> impl Strategy<Value = NetworkSwitch> {
    let buffer = proptest::option::of(1000_u64..20_000);
    (buffer, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        move |(buffer_bytes, per_port, cells, epd)| NetworkSwitch {
            buffer_bytes,
            buffer_per_port: per_port,
            cell_bytes: cells.then_some(53),
            early_packet_discard: epd,
            ..switch(name)
        },
    )
}

fn any_network() -> BoxedStrategy<Plan> {
    let links = (
        any_link("a-x"),
        any_link("b-x"),
        any_link("x-y"),
        any_link("x-y"),
        any_link("y-c"),
    );
    let interface = prop_oneof![
        Just(NetworkInterface::default()),
        Just(NetworkInterface {
            buffer_frames: Some(2),
            copy_ns_per_byte: 300.0,
            ..NetworkInterface::default()
        }),
        Just(NetworkInterface {
            single_buffered: true,
            copy_per_packet: Duration(100_000),
            ..NetworkInterface::default()
        }),
        Just(NetworkInterface {
            pace_bit_s: Some(5e6),
            ..NetworkInterface::default()
        }),
    ];
    (links, any_switch("x"), any_switch("y"), interface)
        .prop_map(|((a, b, c, d, e), x, y, interface)| {
            let mut hosts = vec![host("a"), host("b"), host("c")];
            hosts[0].interface = interface.clone();
            hosts[2].interface = interface;
            Plan {
                hosts,
                switches: vec![x, y],
                links: vec![a, b, c, d, e],
                ..Plan::default()
            }
        })
        .boxed()
}

/// Gaps, ends and lengths of what is sent.
fn traffic() -> impl Strategy<Value = Vec<(u64, u32, u32, u32)>> {
    proptest::collection::vec((0_u64..3 * MS, 0_u32..3, 0_u32..3, 1_u32..20), 1..60)
}

/// Sends everything; `looks` says how far beyond each packet's instant the network is polled before the next.
fn carry(
    network: &mut PacketNetwork<Numbers, Log>,
    traffic: &[(u64, u32, u32, u32)],
    looks: &[u64],
) -> Arrivals {
    let mut arrivals = Arrivals::default();
    let mut now = 0;
    for (number, (gap, from, to, count)) in traffic.iter().enumerate() {
        now += gap;
        let upto = Instant(
            now.saturating_sub(looks.get(number % looks.len().max(1)).copied().unwrap_or(0)),
        );
        for until in [upto, Instant(now)] {
            arrivals
                .0
                .extend(std::iter::from_fn(|| network.poll(until)).map(|d| (d.due, d.packet)));
        }
        let ecn = [
            EcnMarking::Capable,
            EcnMarking::NotCapable,
            EcnMarking::Scalable,
        ][number % 3];
        let packet = train(*from, *to, *count, number as u64 * 100);
        network.handle(
            Instant(now),
            NetworkPacket {
                ecn,
                dscp: [0, 46, 34, 7][number % 4],
                flow: *from,
                ..packet
            },
        );
    }
    arrivals.0.extend(
        std::iter::from_fn(|| network.poll(Instant(u64::MAX - 1))).map(|d| (d.due, d.packet)),
    );
    arrivals
}

#[derive(Default)]
struct Arrivals(Vec<(Instant, NetworkPacket<Numbers>)>);

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every segment is delivered, dropped with a reason, or part of a frame that lost a cell; none stays behind.
    #[test]
    fn nothing_is_lost_without_a_reason(plan in any_network(), traffic in traffic()) {
        let mut network = build(&plan);
        let arrivals = carry(&mut network, &traffic, &[]);
        prop_assert_eq!(network.under_way(), 0);
        let sent: u64 = traffic.iter().map(|(.., count)| u64::from(*count)).sum();
        let duplicated: u64 = network.counters().map(|counters| counters.duplicated).sum();
        let cells = plan.switches.iter().any(|switch| switch.cell_bytes.is_some());
        let arrived: u64 = arrivals.0.iter().map(|(_, packet)| packet.payload.0.len() as u64).sum();
        let log = network.into_tap().0;
        let drops: u64 = log.iter().filter(|(_, line)| line.contains("Drop(")).map(|(_, line)| numbers(line)).sum();
        let copies: u64 = log.iter().filter(|(_, line)| line.contains("Duplicate")).map(|(_, line)| numbers(line)).sum();
        prop_assert_eq!(sent + copies, arrived + drops);
        prop_assert!(cells || duplicated <= copies);
    }

    /// Segments of one pair of hosts keep their order where nothing on the way may change it.
    #[test]
    fn links_are_first_in_first_out(mut plan in any_network(), traffic in traffic()) {
        for link in &mut plan.links {
            link.duplicate = 0.0;
            // Cells that take no time have no order within their instant.
            if link.rate == LinkRate::Unlimited {
                link.rate = LinkRate::Constant(1.2e9);
            }
            link.jitter = link.jitter.take().map(|jitter| Jitter { reorder: false, ..jitter });
            link.skipping = None;
            if let Some(LinkQueue { discipline, .. }) = &mut link.queue
                && matches!(discipline, Discipline::FqCoDel { .. } | Discipline::Classes | Discipline::DualPi2(_))
            {
                *discipline = Discipline::DropTail;
            }
        }
        // Two links between the switches: a flow keeps to one.
        let mut network = build(&plan);
        let arrivals = carry(&mut network, &traffic, &[]);
        let mut last: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (_, packet) in &arrivals.0 {
            for number in &packet.payload.0 {
                let before = last.insert((packet.from.0, packet.to.0), *number);
                prop_assert!(before.is_none_or(|before| before < *number), "{before:?} then {number}");
            }
        }
    }

    /// Nothing arrives before its propagation delay has passed.
    #[test]
    fn nothing_arrives_early(plan in any_network(), traffic in traffic()) {
        let mut network = build(&plan);
        let mut sent = Vec::new();
        let mut now = 0;
        for (gap, ..) in &traffic {
            now += gap;
            sent.push(now);
        }
        let arrivals = carry(&mut network, &traffic, &[]);
        for (due, packet) in &arrivals.0 {
            let handed_over = sent[(packet.payload.0[0] / 100) as usize];
            let delay = network.path(packet.from, packet.to, packet.flow).map_or(Duration::ZERO, |path| path.delay);
            prop_assert!(due.0 >= handed_over + delay.0);
        }
    }

    /// One seed gives one log, however the four verbs are interleaved; time never goes back.
    #[test]
    fn the_same_seed_writes_the_same_log(plan in any_network(), traffic in traffic(), looks in proptest::collection::vec(0_u64..MS, 1..5)) {
        let log = |looks: &[u64]| {
            let mut network = build(&plan);
            let arrivals = carry(&mut network, &traffic, looks);
            let times: Vec<Instant> = arrivals.0.iter().map(|(due, _)| *due).collect();
            (times, network.into_tap().sorted())
        };
        let (times, lines) = log(&[]);
        prop_assert!(times.is_sorted());
        prop_assert_eq!((times, lines), log(&looks));
    }
}

fn numbers(line: &str) -> u64 {
    line.rsplit('[')
        .next()
        .unwrap_or_default()
        .split(',')
        .count() as u64
}

#[test]
fn another_seed_loses_other_packets() {
    let plan = pair(NetworkLink {
        loss: LossModel::Independent(0.3),
        ..link("a-b", 0.0, 0.0)
    });
    let arrived = |seed| {
        let mut network: PacketNetwork<Numbers, Log> =
            PacketNetwork::new(&plan, Seed::root(seed), Log::default());
        (0..100).for_each(|number| network.handle(Instant(number), packet(0, 1, 100, number)));
        drain(&mut network)
    };
    assert_eq!(arrived(1), arrived(1));
    assert_ne!(arrived(1), arrived(2));
}
