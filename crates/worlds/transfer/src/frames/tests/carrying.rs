//! Bytes that two ends carry to each other: packets in order, of any length, and a channel over them.

use super::*;
use crate::{BlastChannel, options as channel};
use stackline_proto::blast::BlastStrategy;

in_rooms! {
    a_run_crosses_a_veth_pair
    loopback_has_two_ends_and_long_packets
    short_packets_are_filled_up_and_nothing_of_that_is_data
    a_channel_carries_bytes_both_ways_and_closes
}

fn a_run_crosses_a_veth_pair() {
    let (mut left, mut right) = veth();
    assert_eq!(left.facts().packet, 1496);
    let each = 1496 - HEAD;
    let data = bytes(199 * each + 17);
    crosses(&mut left, &mut right, 200, &data, each);
    crosses(&mut right, &mut left, 200, &data, each);
    assert_eq!(left.counters().sent, 202);
    assert_eq!(
        (left.counters().send_calls, right.counters().received),
        (2 + 4, 202)
    );
    let long = PacketRun {
        head: HEAD,
        heads: &[PacketHeadBuffer::EMPTY],
        payload: &data[..each + 1],
        each,
    };
    assert_eq!(
        left.send(long).unwrap_err().raw_os_error(),
        Some(libc::EMSGSIZE)
    );
}

fn loopback_has_two_ends_and_long_packets() {
    let (mut left, mut right) = pair("lo", "lo", NUMBER, options());
    assert_ne!(left.local(), right.local());
    let each = left.facts().packet - HEAD;
    assert_eq!(each, 65_532 - HEAD);
    let data = bytes(20 * each - 5);
    crosses(&mut left, &mut right, 20, &data, each);
    crosses(&mut right, &mut left, 20, &data, each);
    assert_eq!(
        left.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
        0,
        "its own frames are not heard"
    );
}

fn short_packets_are_filled_up_and_nothing_of_that_is_data() {
    let (mut left, mut right) = veth();
    for length in 0..50 {
        crosses(&mut left, &mut right, 1, &bytes(length), length);
    }
    // A packet shorter than the head.
    let run = PacketRun {
        head: 8,
        heads: &[head(BlastPacketKind::Data, NUMBER)],
        payload: &[],
        each: 0,
    };
    assert_eq!(left.send(run).unwrap(), 1);
    assert_eq!(right.receive(HEAD, &mut [], &[], LONG).unwrap(), 1);
    assert_eq!(
        (right.packet(0).head.len(), right.packet(0).payload.length()),
        (8, 0)
    );
}

/// One channel: 3 MB one way and a few bytes back.
fn transfer(
    near: &str,
    far: &str,
    frames: FrameCarrierOptions,
    options: &channel::BlastChannelOptions,
) {
    let data = &bytes(3_000_001);
    let far = FrameCarrier::listen(far, None, frames).unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut channel = BlastChannel::answer(far, options).unwrap();
            let mut into = vec![0; data.len()];
            assert_eq!(channel.receive_into(&mut into).unwrap(), data.len());
            assert!(into == *data, "the bytes are others");
            channel.send(b"thanks").unwrap();
            assert_eq!(channel.receive_into(&mut [0]).unwrap(), 0);
        });
        let mut channel =
            BlastChannel::connect_over(FrameCarrier::connect(near, frames).unwrap(), options)
                .unwrap();
        channel.send(data).unwrap();
        let mut thanks = [0; 6];
        assert_eq!(
            (channel.receive_into(&mut thanks).unwrap(), &thanks),
            (6, b"thanks")
        );
        channel.close().unwrap();
        receiver.join().unwrap();
    });
}

fn a_channel_carries_bytes_both_ways_and_closes() {
    for (near, far, packet) in [("near", "far", 0), ("lo", "lo", 0), ("lo", "lo", 1024)] {
        for strategy in [
            BlastStrategy::Selective,
            BlastStrategy::Partial,
            BlastStrategy::Full,
        ] {
            let frames = FrameCarrierOptions {
                packet: if packet == 0 {
                    0
                } else {
                    packet + LONGEST_HEAD
                },
                ..options()
            };
            let mut options = channel::BlastChannelOptions::new(strategy);
            options.blast.packet = packet as u32;
            transfer(near, far, frames, &options);
        }
    }
}
