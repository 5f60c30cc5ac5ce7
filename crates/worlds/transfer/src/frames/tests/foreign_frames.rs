//! Frames of strangers, frames that are none, and those longer than a slot.

use super::*;

in_rooms! {
    frames_of_strangers_are_dropped
    frames_that_are_none_are_dropped
    frames_longer_than_a_slot_are_counted_as_cut
}

fn frames_of_strangers_are_dropped() {
    let (left, mut right) = veth();
    let forger = forger("near");
    let stranger = Mac([2, 9, 9, 9, 9, 9]);
    forger
        .send(&frame(stranger, right.local(), NUMBER, b"stranger"))
        .unwrap();
    forger
        .send(&frame(left.local(), stranger, NUMBER, b"for another"))
        .unwrap();
    forger
        .send(&frame(
            left.local(),
            right.local(),
            NUMBER + 1,
            b"other connection",
        ))
        .unwrap();
    forger
        .send(&frame(left.local(), right.local(), NUMBER, b"right"))
        .unwrap();
    assert_eq!(hear(&mut right).1, b"right");
    // Two while the connection was made.
    assert_eq!(
        packet_socket::take_counts(right.rx_ring.socket()).unwrap(),
        packet_socket::PacketCounts {
            packets: 3,
            drops: 0
        },
        "the kernel left the others out"
    );
}

fn frames_that_are_none_are_dropped() {
    let (left, mut right) = veth();
    let forger = forger("near");
    let good = frame(left.local(), right.local(), NUMBER, b"right");
    // The kernel refuses what is shorter than an Ethernet header.
    for length in [14, 15, PREFIX - 1, PREFIX, PREFIX + 7, PREFIX + HEAD] {
        forger.send(&good[..length]).unwrap();
    }
    let too_long = 2000_u16.to_le_bytes();
    for (at, byte) in [
        (12, 0x08),
        (13, 0xB6),
        (14, too_long[0]),
        (15, too_long[1]),
        (16, 0),
        (14, 0),
    ] {
        let mut other = good.clone();
        other[at] = byte;
        forger.send(&other).unwrap();
    }
    forger.send(&good).unwrap();
    assert_eq!(hear(&mut right).1, b"right");
    assert_eq!(
        right.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
        0
    );
}

fn frames_longer_than_a_slot_are_counted_as_cut() {
    let small = FrameCarrierOptions {
        packet: 100,
        ..options()
    };
    let (left, mut right) = pair("near", "far", NUMBER, small);
    assert_eq!(right.facts().packet, 100);
    let forger = forger("near");
    forger
        .send(&frame(left.local(), right.local(), NUMBER, &[1; 1000]))
        .unwrap();
    forger
        .send(&frame(left.local(), right.local(), NUMBER, b"right"))
        .unwrap();
    assert_eq!(hear(&mut right).1, b"right");
    assert_eq!(right.counters().cut, 1);
}
