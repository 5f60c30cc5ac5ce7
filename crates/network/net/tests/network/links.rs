//! Packets over links: serialisation, delay, jitter, duplication, and a link that changes.

use super::tail;
use crate::common::*;
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Jitter, LinkRate, LossModel, Network as Plan, NetworkLink, StepSchedule,
};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, NodeIndex};

#[test]
fn a_packet_is_serialised_then_propagates() {
    let mut network = build(&pair(link("a-b", 12.0, 5.0)));
    network.handle(Instant(0), packet(0, 1, 1500, 1));
    network.handle(Instant(0), packet(0, 1, 1500, 2));
    assert_eq!(network.poll(Instant(6 * MS - 1)).map(|d| d.due), None);
    assert_eq!(network.deadline().map(|(at, _)| at), Some(Instant(6 * MS)));
    assert_eq!(drain(&mut network), [(6 * MS, vec![1]), (7 * MS, vec![2])]);
    assert_eq!(network.under_way(), 0);
    let busy: Vec<Duration> = network.counters().map(|counters| counters.busy).collect();
    assert_eq!(
        busy,
        [Duration(2 * MS), Duration::ZERO],
        "two packets of a millisecond each"
    );
}

#[test]
fn every_hop_stores_and_forwards() {
    let plan = Plan {
        switches: vec![switch("x"), switch("y")],
        links: vec![
            link("a-x", 12.0, 1.0),
            link("x-y", 1.2, 10.0),
            link("y-b", 12.0, 1.0),
        ],
        ..pair(link("a-b", 0.0, 0.0))
    };
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 1, 1500, 1));
    network.handle(Instant(0), packet(0, 1, 1500, 2));
    // 1 + 1, 10 + 10, 1 + 1; the second waits 10 ms for the slow link, less the 1 ms it came later.
    assert_eq!(
        drain(&mut network),
        [(24 * MS, vec![1]), (34 * MS, vec![2])]
    );
    let path = network.path(NodeIndex(0), NodeIndex(1), 0).unwrap();
    assert_eq!(
        (path.mtu, path.delay, path.ports.len()),
        (1500, Duration(12 * MS), 3)
    );
}

#[test]
fn too_large_and_without_a_path() {
    let mut network = build(&Plan {
        hosts: vec![host("a"), host("b"), host("c")],
        ..pair(link("a-b", 0.0, 0.0))
    });
    network.handle(Instant(0), packet(0, 1, 1501, 1));
    network.handle(Instant(0), packet(0, 2, 100, 2));
    network.handle(Instant(0), packet(0, 0, 9000, 3));
    assert_eq!(drain(&mut network), [(0, vec![3])]);
    assert_eq!(
        (
            network.counters().next().unwrap().drops[DropReason::TooLarge as usize],
            network.without_path()
        ),
        (1, 1)
    );
    assert_eq!(network.under_way(), 0);
}

#[test]
fn jitter_keeps_the_order_unless_reordering_is_asked_for() {
    let delayed = |reorder| {
        let jitter = Some(Jitter {
            distribution: Distribution::Uniform(0.0, 0.01),
            reorder,
            correlation: 0.0,
        });
        let mut network = build(&pair(NetworkLink {
            jitter,
            ..link("a-b", 12.0, 1.0)
        }));
        (0..200).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
        drain(&mut network)
            .into_iter()
            .map(|(_, numbers)| numbers[0])
            .collect::<Vec<_>>()
    };
    assert_eq!(delayed(false), (0..200).collect::<Vec<_>>());
    let mut mixed = delayed(true);
    assert!(!mixed.is_sorted());
    mixed.sort_unstable();
    assert_eq!(mixed, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_delay_that_falls_keeps_the_order_unless_reordering_is_asked_for() {
    let arrivals = |reorder: bool| {
        let steps = vec![
            (Duration(0), Duration(20 * MS)),
            (Duration(2 * MS), Duration(MS)),
        ];
        let delays = Some(StepSchedule {
            steps,
            period: Some(Duration(100 * MS)),
        });
        let jitter = reorder.then_some(Jitter {
            distribution: Distribution::Constant(0.0),
            reorder,
            correlation: 0.0,
        });
        let mut network = build(&pair(NetworkLink {
            delays,
            jitter,
            ..link("a-b", 12.0, 0.0)
        }));
        (0..3).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
        let mut all = drain(&mut network);
        // A packet takes 1 ms to leave.
        for (at, number) in [(40, 3), (99, 4)] {
            network.handle(Instant(at * MS), packet(0, 1, 1500, number));
            all.extend(drain(&mut network));
        }
        all.into_iter()
            .map(|(at, numbers)| (at, numbers[0]))
            .collect::<Vec<_>>()
    };
    // The second and the third leave after the fall, at 2 and at 3 ms, and wait for the first.
    let later = [(42 * MS, 3), (120 * MS, 4)];
    assert_eq!(
        arrivals(false),
        [
            [(21 * MS, 0), (21 * MS + 1, 1), (21 * MS + 2, 2)].as_slice(),
            &later
        ]
        .concat()
    );
    assert_eq!(
        arrivals(true),
        [[(3 * MS, 1), (4 * MS, 2), (21 * MS, 0)].as_slice(), &later].concat()
    );
}

#[test]
fn a_duplicated_packet_arrives_twice() {
    let mut network = build(&pair(NetworkLink {
        duplicate: 1.0,
        ..link("a-b", 12.0, 0.0)
    }));
    network.handle(Instant(0), packet(0, 1, 1500, 1));
    assert_eq!(drain(&mut network), [(MS, vec![1]), (MS, vec![1])]);
}

#[test]
fn the_log_has_every_event() {
    let queue = tail(1500);
    let mut network = build(&pair(NetworkLink {
        queue,
        ..link("a-b", 12.0, 1.0)
    }));
    network.handle(Instant(0), packet(0, 1, 1500, 1));
    network.handle(Instant(500_000), packet(0, 1, 1500, 2));
    drain(&mut network);
    let expected = [
        "0.000000000 port 0 Enqueue(1500) [1]",
        "0.000500000 port 0 Drop(QueueFull) [2]",
        "0.001000000 port 0 Dequeue [1]",
        "0.002000000 host 1 Deliver [1]",
    ];
    assert_eq!(network.into_tap().sorted(), expected);
}

#[test]
fn a_link_changes_from_now_on() {
    let plan = pair(NetworkLink {
        queue: tail(9000),
        ..link("a-b", 12.0, 20.0)
    });
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 1, 1500, 0));
    let shorter = NetworkLink {
        delay: Duration(MS),
        queue: tail(3000),
        ..plan.links[0].clone()
    };
    network.change(&plan, 0, &shorter, Seed::root(2));
    // Two fit the new limit; the second of them would overtake the first, which left with the long delay.
    (1..4).for_each(|number| network.handle(Instant(MS), packet(0, 1, 1500, number)));
    assert_eq!(
        drain(&mut network),
        [
            (21 * MS, vec![0]),
            (21 * MS + 1, vec![1]),
            (21 * MS + 2, vec![2])
        ]
    );
    let plan = pair(shorter);
    let lossy = NetworkLink {
        rate: LinkRate::Constant(6e6),
        loss: LossModel::Every(2),
        ..plan.links[0].clone()
    };
    network.change(&plan, 0, &lossy, Seed::root(3));
    (4..6).for_each(|number| network.handle(Instant(30 * MS), packet(0, 1, 1500, number)));
    assert_eq!(drain(&mut network), [(33 * MS, vec![4])]);
}
