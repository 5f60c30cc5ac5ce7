//! Shapers, policers, code points, classes, DualPI2 and packets that skip the delay.

use crate::common::*;
use stackline_core::network::{
    ClassService, DelaySkipping, Discipline, DualPi2Settings, LinkQueue, NetworkLink, Policer,
    QueueClass, TokenBucket,
};
use stackline_core::time::Instant;
use stackline_net::{DropReason, EcnMarking, NetworkPacket, PacketNetwork};

const EF: u8 = 46;

fn bucket(mbit_s: f64, burst_bytes: u64) -> TokenBucket {
    TokenBucket {
        bit_s: mbit_s * 1e6,
        burst_bytes,
    }
}

fn of_class(dscp: u8, number: u64) -> NetworkPacket<Numbers> {
    NetworkPacket {
        dscp,
        ..packet(0, 1, 1500, number)
    }
}

/// The instants at which packets arrive, by number.
fn arrivals(network: &mut PacketNetwork<Numbers, Log>) -> Vec<(u64, u64)> {
    drain(network)
        .into_iter()
        .flat_map(|(at, numbers)| numbers.into_iter().map(move |number| (at, number)))
        .collect()
}

#[test]
fn a_shaper_passes_a_burst_at_the_links_rate_and_the_rest_at_its_own() {
    // 1500 bytes take 1 ms at 12 Mbit/s, 100 us at 120 Mbit/s. The bucket holds three packets.
    let shaped = NetworkLink {
        shaper: Some(bucket(12.0, 4500)),
        ..link("a-b", 120.0, 1.0)
    };
    let expected = [1100, 1200, 1300, 2100, 3100, 4100].map(|us| us * 1000);
    let mut network = build(&pair(shaped.clone()));
    (1..=6).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
    let times: Vec<u64> = arrivals(&mut network).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, expected);
    // A train comes packet by packet, with the same times.
    let mut network = build(&pair(shaped.clone()));
    network.handle(Instant(0), train(0, 1, 6, 1));
    let times: Vec<u64> = arrivals(&mut network).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, expected);
    // Waiting for tokens is no transmitting.
    let counters = network.counters().next().unwrap();
    assert_eq!((counters.packets, counters.busy.0), (6, 600_000));
    // The bucket is full again after a pause of 3 ms.
    network.handle(Instant(10 * MS), packet(0, 1, 1500, 7));
    network.handle(Instant(10 * MS), packet(0, 1, 1500, 8));
    assert_eq!(arrivals(&mut network), [(11_100_000, 7), (11_200_000, 8)]);
}

#[test]
fn what_finds_the_queue_of_a_shaper_full_is_dropped() {
    let mut network = build(&pair(NetworkLink {
        shaper: Some(bucket(12.0, 1500)),
        queue: Some(LinkQueue {
            limit_bytes: Some(3000),
            ..LinkQueue::default()
        }),
        ..link("a-b", 0.0, 0.0)
    }));
    (1..=5).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
    // The first goes at once; two wait, a millisecond for each.
    assert_eq!(arrivals(&mut network), [(0, 1), (MS, 2), (2 * MS, 3)]);
    let counters = network.counters().next().unwrap();
    assert_eq!(counters.drops[DropReason::QueueFull as usize], 2);
}

#[test]
fn a_discipline_that_holds_packets_waits_for_tokens_too() {
    for discipline in [
        Discipline::DropHead,
        Discipline::FqCoDel {
            target: stackline_core::time::Duration(5 * MS),
            interval: stackline_core::time::Duration(100 * MS),
            flows: 8,
            quantum: 1514,
        },
        Discipline::DualPi2(DualPi2Settings::default()),
    ] {
        let mut network = build(&pair(NetworkLink {
            shaper: Some(bucket(12.0, 3000)),
            queue: Some(LinkQueue {
                discipline,
                ..LinkQueue::default()
            }),
            ..link("a-b", 0.0, 0.0)
        }));
        network.handle(Instant(0), train(0, 1, 5, 1));
        let expected = [(0, 1), (0, 2), (MS, 3), (2 * MS, 4), (3 * MS, 5)];
        assert_eq!(arrivals(&mut network), expected, "{discipline:?}");
    }
}

#[test]
fn a_policer_drops_what_exceeds_or_marks_it() {
    let arrived = |remark| {
        let policer = Policer {
            bucket: bucket(12.0, 3000),
            remark,
        };
        let mut network = build(&pair(NetworkLink {
            policer: Some(policer),
            dscp: Some(10),
            ..link("a-b", 0.0, 0.0)
        }));
        network.handle(Instant(0), train(0, 1, 4, 1));
        network.handle(Instant(MS), of_class(EF, 5));
        let arrived: Vec<(Vec<u64>, u8)> =
            std::iter::from_fn(|| network.poll(Instant(u64::MAX - 1)))
                .map(|delivery| (delivery.packet.payload.0, delivery.packet.dscp))
                .collect();
        let counters = network.counters().next().unwrap();
        (arrived, counters.drops[DropReason::Policed as usize])
    };
    let (dropping, drops) = arrived(None);
    assert_eq!(dropping, [(vec![1], 10), (vec![2], 10), (vec![5], 10)]);
    assert_eq!(drops, 2);
    let (remarking, drops) = arrived(Some(12));
    let expected = [(1, 10), (2, 10), (3, 12), (4, 12), (5, 10)];
    assert_eq!(
        remarking,
        expected.map(|(number, dscp)| (vec![number], dscp))
    );
    assert_eq!(drops, 0);
}

#[test]
fn classes_before_a_link_take_turns_by_their_code_points() {
    let class = |dscps: &[u8], service| QueueClass {
        dscps: dscps.to_vec(),
        service,
        ..QueueClass::default()
    };
    let queue = LinkQueue {
        discipline: Discipline::Classes,
        limit_packets: Some(7),
        classes: vec![
            class(&[EF], ClassService::Strict),
            class(&[34], ClassService::Weight(2)),
            class(&[], ClassService::Weight(1)),
        ],
        ..LinkQueue::default()
    };
    let mut network = build(&pair(NetworkLink {
        queue: Some(queue),
        ..link("a-b", 12.0, 0.0)
    }));
    // The first is being sent when the others come, and counts. Of eight, the newest of the longest class goes.
    for (number, dscp) in [(1, 0), (2, 0), (3, 0), (4, 34), (5, 34), (6, 0), (7, 34)] {
        network.handle(Instant(0), of_class(dscp, number));
    }
    network.handle(Instant(MS / 2), of_class(EF, 8));
    let order: Vec<u64> = arrivals(&mut network).iter().map(|(_, n)| *n).collect();
    assert_eq!(order, [1, 8, 2, 4, 5, 3, 7]);
    let counters = network.counters().next().unwrap();
    assert_eq!(counters.drops[DropReason::QueueFull as usize], 1);
}

#[test]
fn dualpi2_marks_l4s_packets_and_drops_what_cannot_be_marked() {
    // One packet takes 1 ms. Classic packets come every 1.1 ms, L4S packets every 5 ms: 11 % too much.
    let counted = |ecn| {
        let mut network = build(&pair(NetworkLink {
            queue: Some(LinkQueue {
                discipline: Discipline::DualPi2(DualPi2Settings::default()),
                ecn: true,
                ..LinkQueue::default()
            }),
            ..link("a-b", 12.0, 0.0)
        }));
        let mut l4s = 0;
        for tick in 0..200_000_u64 {
            let now = Instant(tick * MS / 10);
            if tick % 11 == 0 {
                network.handle(
                    now,
                    NetworkPacket {
                        ecn,
                        ..packet(0, 1, 1500, 0)
                    },
                );
            }
            if tick % 50 == 0 {
                network.handle(
                    now,
                    NetworkPacket {
                        ecn: EcnMarking::Scalable,
                        ..packet(0, 1, 1500, tick)
                    },
                );
            }
            while let Some(delivery) = network.poll(now) {
                let sent = Instant(delivery.packet.payload.0[0] * MS / 10);
                if sent > Instant(0) {
                    l4s += 1;
                    assert!(delivery.due.since(sent).0 <= 3 * MS, "{:?}", delivery.due);
                }
            }
        }
        let counters = network.counters().next().unwrap();
        (
            l4s,
            counters.marked,
            counters.drops[DropReason::DualPi2 as usize],
        )
    };
    let (l4s, marked, dropped) = counted(EcnMarking::NotCapable);
    assert!(
        l4s > 3900 && marked > 1000 && dropped > 1500,
        "{l4s} {marked} {dropped}"
    );
    // Classic packets that can be marked stay, until the queue is overloaded: nothing here slows down.
    let (_, more, _) = counted(EcnMarking::Capable);
    assert!(more > marked, "{more}");
}

#[test]
fn chosen_packets_overtake_those_before_them() {
    let skipping = DelaySkipping {
        share: 1.0,
        correlation: 0.0,
        gap: 3,
    };
    let mut network = build(&pair(NetworkLink {
        skipping: Some(skipping),
        ..link("a-b", 12.0, 10.0)
    }));
    network.handle(Instant(0), train(0, 1, 6, 1));
    let expected = [(3, 3), (6, 6), (11, 1), (12, 2), (14, 4), (15, 5)];
    assert_eq!(
        arrivals(&mut network),
        expected.map(|(ms, number)| (ms * MS, number))
    );
    let path = network
        .path(stackline_net::NodeIndex(0), stackline_net::NodeIndex(1), 0)
        .unwrap();
    assert_eq!(path.delay.0, 0, "some packets have none");
}
