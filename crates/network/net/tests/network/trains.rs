//! Trains of segments: whole as long as they can be, cut where they cannot.

use super::tail;
use crate::common::*;
use stackline_core::network::{LossModel, Network as Plan, NetworkInterface, NetworkLink};
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, NetworkPacket};

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
