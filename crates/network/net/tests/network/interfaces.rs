//! Interfaces of hosts: copies with one buffer and with two, busy waiting, and no free buffer.

use crate::common::*;
use stackline_core::network::{Network as Plan, NetworkInterface};
use stackline_core::time::{Duration, Instant};
use stackline_net::{DropReason, NodeIndex};

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
