//! Frames in cells through an ATM switch: cut-through, loss of cells, early discard.

use crate::common::*;
use stackline_core::network::{
    LinkRate, Network as Plan, NetworkInterface, NetworkLink, NetworkSwitch,
};
use stackline_core::time::{Duration, Instant};
use stackline_net::DropReason;

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
