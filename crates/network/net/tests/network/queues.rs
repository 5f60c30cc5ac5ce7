//! Queues: what they refuse, drop and mark, and the buffer that ports of a switch share.

use super::tail;
use crate::common::*;
use stackline_core::network::{Discipline, LinkQueue, Network as Plan, NetworkLink, NetworkSwitch};
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, EcnMarking, NetworkPacket};

#[test]
fn a_full_queue_refuses_what_comes_until_something_has_left() {
    let mut network = build(&pair(NetworkLink {
        queue: tail(3000),
        ..link("a-b", 12.0, 0.0)
    }));
    for number in 1..=4 {
        network.handle(Instant(0), packet(0, 1, 1500, number));
    }
    assert_eq!(network.poll(Instant(MS)).unwrap().packet.payload.0, [1]);
    network.handle(Instant(MS), packet(0, 1, 1500, 5));
    assert_eq!(drain(&mut network), [(2 * MS, vec![2]), (3 * MS, vec![5])]);
    let counters = network.counters().next().unwrap();
    assert_eq!(
        (
            counters.packets,
            counters.drops[DropReason::QueueFull as usize]
        ),
        (3, 2)
    );
}

#[test]
fn a_queue_that_drops_at_its_head_keeps_the_newest() {
    let queue = Some(LinkQueue {
        limit_packets: Some(2),
        discipline: Discipline::DropHead,
        ..LinkQueue::default()
    });
    let mut network = build(&pair(NetworkLink {
        queue,
        ..link("a-b", 12.0, 0.0)
    }));
    (1..=5).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
    assert_eq!(drain(&mut network), [(MS, vec![1]), (2 * MS, vec![5])]);
    assert_eq!(
        network.counters().next().unwrap().drops[DropReason::Displaced as usize],
        3
    );
}

#[test]
fn codel_marks_capable_packets_and_drops_the_rest() {
    let discipline = Discipline::CoDel {
        target: Duration(5 * MS),
        interval: Duration(100 * MS),
    };
    let overloaded = |ecn| {
        let queue = Some(LinkQueue {
            discipline,
            ecn: true,
            ..LinkQueue::default()
        });
        let mut network = build(&pair(NetworkLink {
            queue,
            ..link("a-b", 12.0, 0.0)
        }));
        for number in 0..1500 {
            // One packet takes 1 ms; one comes each 800 us.
            network.handle(
                Instant(number * 800_000),
                NetworkPacket {
                    ecn,
                    ..packet(0, 1, 1500, number)
                },
            );
            while network.poll(Instant(number * 800_000)).is_some() {}
        }
        drain(&mut network);
        assert_eq!(network.under_way(), 0);
        let counters = network.counters().next().unwrap();
        (counters.marked, counters.drops[DropReason::CoDel as usize])
    };
    let (marked, dropped) = overloaded(EcnMarking::Capable);
    assert!(marked > 10 && dropped == 0, "{marked} {dropped}");
    let (marked, dropped) = overloaded(EcnMarking::NotCapable);
    assert!(marked == 0 && dropped > 10, "{marked} {dropped}");
}

#[test]
fn ports_of_a_switch_share_its_buffer() {
    let shared = NetworkSwitch {
        buffer_bytes: Some(3000),
        ..switch("x")
    };
    let plan = Plan {
        hosts: vec![host("a"), host("b"), host("c")],
        switches: vec![shared],
        links: vec![
            link("a-x", 0.0, 0.0),
            link("x-b", 12.0, 0.0),
            link("x-c", 12.0, 0.0),
        ],
        ..Plan::default()
    };
    let mut network = build(&plan);
    for (to, number) in [(1, 1), (2, 2), (1, 3), (2, 4)] {
        network.handle(Instant(0), packet(0, to, 1500, number));
    }
    assert_eq!(drain(&mut network), [(MS, vec![1]), (MS, vec![2])]);
    network.handle(Instant(MS), packet(0, 1, 1500, 5));
    assert_eq!(drain(&mut network), [(2 * MS, vec![5])]);
    let drops: u64 = network
        .counters()
        .map(|counters| counters.drops[DropReason::SharedBufferFull as usize])
        .sum();
    assert_eq!(drops, 2);
}

#[test]
fn drop_head_makes_room_in_a_shared_buffer() {
    let queue = Some(LinkQueue {
        discipline: Discipline::DropHead,
        ..LinkQueue::default()
    });
    let plan = Plan {
        switches: vec![NetworkSwitch {
            buffer_bytes: Some(4500),
            ..switch("x")
        }],
        links: vec![
            link("a-x", 0.0, 0.0),
            NetworkLink {
                queue,
                ..link("x-b", 12.0, 0.0)
            },
        ],
        ..pair(link("a-b", 0.0, 0.0))
    };
    let mut network = build(&plan);
    (1..=5).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
    let arrived: Vec<Vec<u64>> = drain(&mut network)
        .into_iter()
        .map(|(_, numbers)| numbers)
        .collect();
    assert_eq!(arrived, [vec![1], vec![4], vec![5]]);
}
