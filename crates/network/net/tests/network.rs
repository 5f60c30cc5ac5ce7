//! Networks small enough to be worked out by hand.

mod common;

use common::*;
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Discipline, Jitter, LinkQueue, LinkRate, LossModel, Network as Plan, NetworkInterface,
    NetworkLink, NetworkSwitch, StepSchedule,
};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, EcnMarking, NetworkPacket, NodeIndex};

fn tail(bytes: u64) -> Option<LinkQueue> {
    Some(LinkQueue {
        limit_bytes: Some(bytes),
        ..LinkQueue::default()
    })
}

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
fn a_train_stays_whole_and_its_segments_keep_their_times() {
    let two_hops = |first: f64, second: f64| Plan {
        switches: vec![switch("x")],
        links: vec![link("a-x", first, 1.0), link("x-b", second, 1.0)],
        ..pair(link("a-b", 0.0, 0.0))
    };
    for (first, second) in [
        (1200.0, 1200.0),
        (1200.0, 600.0),
        (600.0, 1200.0),
        (0.0, 600.0),
        (600.0, 0.0),
    ] {
        let last = |trains: &[NetworkPacket<Numbers>]| {
            let mut network = build(&two_hops(first, second));
            for train in trains {
                network.handle(Instant(0), train.clone());
            }
            let all = drain(&mut network);
            let numbers: Vec<u64> = all
                .iter()
                .flat_map(|(_, numbers)| numbers.clone())
                .collect();
            assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "{first} {second}");
            (all.len(), all.last().unwrap().0)
        };
        let singles: Vec<NetworkPacket<Numbers>> =
            (1..=40).map(|number| train(0, 1, 1, number)).collect();
        let (whole, alone) = (last(&[train(0, 1, 40, 1)]), last(&singles));
        assert_eq!(whole, (1, alone.1), "{first} then {second} Mbit/s");
    }
}

#[test]
fn a_train_is_cut_on_a_slow_link_and_at_the_edge_of_a_queue() {
    let mut network = build(&pair(link("a-b", 12.0, 0.0)));
    network.handle(Instant(0), train(0, 1, 3, 1));
    assert_eq!(
        drain(&mut network),
        [(MS, vec![1]), (2 * MS, vec![2]), (3 * MS, vec![3])]
    );

    let narrow = NetworkLink {
        queue: tail(6000),
        ..link("a-b", 1200.0, 0.0)
    };
    let mut network = build(&pair(narrow));
    network.handle(Instant(0), train(0, 1, 6, 1));
    assert_eq!(drain(&mut network), [(40_000, vec![1, 2, 3, 4])]);
    assert_eq!(
        network.counters().next().unwrap().drops[DropReason::QueueFull as usize],
        2
    );
}

#[test]
fn a_loss_inside_a_train_leaves_the_rest() {
    let lossy = NetworkLink {
        loss: LossModel::List(vec![3, 7]),
        ..link("a-b", 1200.0, 0.0)
    };
    let mut network = build(&pair(lossy));
    network.handle(Instant(0), train(0, 1, 5, 1));
    network.handle(Instant(0), train(0, 1, 5, 6));
    let expected = [
        (20_000, vec![1, 2]),
        (50_000, vec![4, 5]),
        (60_000, vec![6]),
        (100_000, vec![8, 9, 10]),
    ];
    assert_eq!(drain(&mut network), expected);
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

fn atm(buffer: Option<u64>, early_packet_discard: bool) -> Plan {
    let cells = NetworkSwitch {
        cell_bytes: Some(53),
        buffer_bytes: buffer,
        buffer_per_port: true,
        early_packet_discard,
        ..switch("atm")
    };
    let large = |ends: &str| NetworkLink {
        mtu_bytes: Some(9180),
        ..link(ends, 100.0, 0.0)
    };
    Plan {
        hosts: vec![host("a"), host("b"), host("c")],
        switches: vec![cells],
        links: vec![large("a-atm"), large("b-atm"), large("c-atm")],
        ..Plan::default()
    }
}

#[test]
fn cells_cut_through_a_switch() {
    let mut network = build(&atm(None, false));
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    // 192 cells of 4240 ns, and the last one once more on the second link.
    assert_eq!(drain(&mut network), [(193 * 4240, vec![1])]);
    let counters = network.counters().nth(5).unwrap();
    assert_eq!(
        (counters.packets, counters.busy, counters.spoilt),
        (192, Duration(192 * 4240), 0)
    );
}

#[test]
fn a_frame_that_loses_cells_still_uses_the_link() {
    let mut network = build(&atm(Some(1500), false));
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    network.handle(Instant(0), packet(1, 2, 9180, 2));
    let arrived = drain(&mut network);
    let counters = network.counters().nth(5).unwrap();
    // They are in step, so the first takes every place that comes free.
    assert_eq!((arrived.len(), network.incomplete_frames()), (1, 1));
    assert_eq!(
        counters.packets + counters.drops[DropReason::QueueFull as usize],
        384,
        "every cell is somewhere"
    );
    assert!(
        counters.packets > 200,
        "the rest of their cells still took the wire"
    );
    assert_eq!(
        (counters.spoilt, counters.busy),
        (1, Duration(counters.packets * 4240))
    );
    assert_eq!(network.under_way(), 0);
}

#[test]
fn early_discard_saves_one_of_two_frames() {
    let mut network = build(&atm(Some(1500), true));
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    network.handle(Instant(100_000), packet(1, 2, 9180, 2));
    // The second frame meets a buffer that holds next to nothing; both share the port until one loses a cell.
    let arrived = drain(&mut network);
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    assert_eq!(network.incomplete_frames(), 1);
}

#[test]
fn a_paced_host_spreads_its_cells() {
    let mut plan = atm(Some(1500), false);
    for host in &mut plan.hosts[..2] {
        host.interface = NetworkInterface {
            pace_bit_s: Some(50e6),
            ..NetworkInterface::default()
        };
    }
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    network.handle(Instant(0), packet(1, 2, 9180, 2));
    let arrived: Vec<Vec<u64>> = drain(&mut network)
        .into_iter()
        .map(|(_, numbers)| numbers)
        .collect();
    assert_eq!(
        arrived,
        [vec![1], vec![2]],
        "two at half the rate fit a buffer of a few cells"
    );
}

/// The SUN with the 3-Com interface of Zwaenepoel's paper: C = 1.35 ms for 1024 bytes, Ca = 0.17 ms for an acknowledgement
/// of 64; 10 Mbit/s, T = 0.82 ms, Ta = 0.05 ms.
fn sun(single_buffered: bool) -> Plan {
    let (c, ca) = (1_350_000.0, 170_000.0);
    let per_byte = (c - ca) / 960.0;
    let interface = NetworkInterface {
        buffer_frames: Some(2),
        single_buffered,
        copy_per_packet: Duration((ca - 64.0 * per_byte) as u64),
        copy_ns_per_byte: per_byte,
        ..NetworkInterface::default()
    };
    let mut plan = pair(link("a-b", 10.0, 0.0));
    for host in &mut plan.hosts {
        host.interface = interface.clone();
    }
    plan
}

const C: u64 = 1_350_000;
const CA: u64 = 170_000;
const T: u64 = 819_200;
const TA: u64 = 51_200;

#[test]
fn stop_and_wait_takes_two_copies_each_way() {
    let mut network = build(&sun(true));
    let mut now = Instant(0);
    for number in 0..10 {
        network.handle(now, packet(0, 1, 1024, number));
        now = network.poll(Instant(u64::MAX - 1)).unwrap().due;
        network.handle(now, packet(1, 0, 64, number));
        now = network.poll(Instant(u64::MAX - 1)).unwrap().due;
    }
    let formula = 10 * (2 * C + 2 * CA + T + TA);
    assert!(
        now.0.abs_diff(formula) <= 40,
        "T_SAW = N (2C + 2Ca + T + Ta): {} against {formula}",
        now.0
    );
}

#[test]
fn a_blast_copies_while_it_sends_only_with_two_buffers() {
    let blast = |single| {
        let mut network = build(&sun(single));
        (0..64).for_each(|number| network.handle(Instant(0), packet(0, 1, 1024, number)));
        let all = drain(&mut network);
        assert_eq!(all.len(), 64);
        all.last().unwrap().0
    };
    // Without the acknowledgement: N (C + T) + C single buffered; double buffered the copies are back to back (C > T).
    assert!(
        blast(true).abs_diff(64 * (C + T) + C) <= 64,
        "{}",
        blast(true)
    );
    assert!(
        blast(false).abs_diff(64 * C + T + C) <= 64,
        "{}",
        blast(false)
    );
}

#[test]
fn a_busy_waiting_host_copies_nothing_meanwhile() {
    let acknowledged = |busy_waiting| {
        let mut plan = sun(true);
        plan.hosts[0].interface.busy_waiting = busy_waiting;
        let mut network = build(&plan);
        (0..2).for_each(|number| network.handle(Instant(0), packet(0, 1, 1024, number)));
        // An acknowledgement that arrives while the second packet is on the wire.
        network.handle(Instant(2 * C + T), packet(1, 0, 64, 9));
        let all = drain(&mut network);
        all.into_iter()
            .find(|(_, numbers)| *numbers == [9])
            .unwrap()
            .0
    };
    let arrives = 2 * C + T + CA + TA;
    assert!(acknowledged(false).abs_diff(arrives + CA) <= 4);
    assert!(acknowledged(true).abs_diff(2 * (C + T) + CA) <= 4);
}

#[test]
fn the_start_of_the_next_copy_is_reported() {
    for (single, busy, second, third) in [
        (true, false, C + T, 2 * (C + T)),
        (false, false, C, 2 * C),
        (false, true, C + T, 2 * (C + T)),
    ] {
        let mut plan = sun(single);
        plan.hosts[0].interface.busy_waiting = busy;
        let mut network = build(&plan);
        let mut now = Instant(0);
        for (number, expected) in [(0, second), (1, third)] {
            assert_eq!(network.begins(now, NodeIndex(0)), now);
            network.handle(now, packet(0, 1, 1024, number));
            loop {
                while network.poll(now).is_some() {}
                let begins = network.begins(now, NodeIndex(0));
                if begins == now {
                    break;
                }
                now = begins;
            }
            assert!(
                now.0.abs_diff(expected) <= 4,
                "{single} {busy}: {now}, not {expected}"
            );
        }
    }
}

#[test]
fn an_interface_without_a_free_buffer_drops() {
    let slow = NetworkInterface {
        buffer_frames: Some(1),
        copy_per_packet: Duration(10 * MS),
        ..NetworkInterface::default()
    };
    let mut plan = pair(link("a-b", 12.0, 0.0));
    plan.hosts[1].interface = slow;
    let mut network = build(&plan);
    (0..3).for_each(|number| network.handle(Instant(0), packet(0, 1, 1500, number)));
    assert_eq!(drain(&mut network), [(11 * MS, vec![0])]);
    let drops: u64 = network
        .counters()
        .map(|counters| counters.drops[DropReason::InterfaceFull as usize])
        .sum();
    assert_eq!(drops, 2);
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
fn copying_is_charged_for_each_packet_of_a_train() {
    let slow = NetworkInterface {
        copy_per_packet: Duration(MS),
        buffer_frames: Some(4),
        ..NetworkInterface::default()
    };
    for copying in [0, 1] {
        let mut plan = pair(link("a-b", 1200.0, 0.0));
        plan.hosts[copying].interface = slow.clone();
        let mut network = build(&plan);
        network.handle(Instant(0), train(0, 1, 3, 1));
        let arrived: Vec<Vec<u64>> = drain(&mut network)
            .into_iter()
            .map(|(_, numbers)| numbers)
            .collect();
        assert_eq!(
            arrived,
            [vec![1], vec![2], vec![3]],
            "host {copying} copies"
        );
    }
}

#[test]
fn a_frame_in_cells_is_duplicated_whole() {
    let mut plan = atm(None, false);
    plan.links[0].duplicate = 1.0;
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    assert_eq!(drain(&mut network).len(), 2);
    plan.links[0].duplicate = 0.0;
    plan.links[2].duplicate = 1.0;
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 2, 9180, 1));
    assert_eq!(drain(&mut network).len(), 2);
    assert_eq!(network.under_way(), 0);
}

#[test]
fn early_discard_considers_the_shared_buffer() {
    let through = |early| {
        let mut plan = atm(Some(30_000), early);
        plan.switches[0].buffer_per_port = false;
        plan.links[2].rate = LinkRate::Constant(5e6);
        let mut network = build(&plan);
        for number in 0..60 {
            network.handle(
                Instant(number * 2 * MS),
                packet((number % 2) as u32, 2, 9180, number),
            );
            while network.poll(Instant(number * 2 * MS)).is_some() {}
        }
        drain(&mut network);
        let incomplete = network.incomplete_frames();
        assert_eq!(network.under_way(), 0);
        60 - incomplete
    };
    let (without, with) = (through(false), through(true));
    assert!(
        with > without,
        "{with} frames with early discard, {without} without"
    );
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
