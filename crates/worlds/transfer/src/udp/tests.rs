//! Real sockets on loopback, one packet size as on an Ethernet.

use super::*;
use crate::carrier::PacketHeadBuffer;
use socket2::Socket;
use std::net::{Ipv4Addr, Ipv6Addr};

const HEAD: usize = 32;
const EACH: usize = 1440;
const LONG: CarrierWait = CarrierWait::Block(Duration::from_secs(5));

fn socket(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

fn pair_over(address: SocketAddr, options: UdpCarrierOptions) -> (Udp, Udp) {
    let (left, right) = (socket(address), socket(address));
    left.connect(&right.local_addr().unwrap()).unwrap();
    right.connect(&left.local_addr().unwrap()).unwrap();
    (
        Udp::over(left, options).unwrap(),
        Udp::over(right, options).unwrap(),
    )
}

fn v4() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn pair(options: UdpCarrierOptions) -> (Udp, Udp) {
    pair_over(
        v4(),
        UdpCarrierOptions {
            packet: HEAD + EACH,
            ..options
        },
    )
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn heads(n: usize) -> Vec<PacketHeadBuffer> {
    (0..n)
        .map(|i| PacketHeadBuffer([i as u8 + 1; LONGEST_HEAD]))
        .collect()
}

fn places(n: usize) -> Vec<PayloadPlace> {
    (0..n)
        .map(|i| PayloadPlace {
            at: i * EACH,
            length: EACH,
        })
        .collect()
}

/// Everything that comes until `packets` are in: heads' first bytes, and the payloads behind each other, wherever they were.
fn collect(carrier: &mut Udp, packets: usize, room: &[PayloadPlace]) -> (Vec<u8>, Vec<u8>) {
    let (mut firsts, mut all) = (Vec::new(), Vec::new());
    while firsts.len() < packets {
        let mut into = vec![
            0;
            room.iter()
                .map(|place| place.at + place.length)
                .max()
                .unwrap_or(0)
        ];
        let n = carrier.receive(HEAD, &mut into, room, LONG).unwrap();
        assert!(
            n > 0,
            "what loopback carried is there when the send returns"
        );
        for index in 0..n {
            let packet = carrier.packet(index);
            assert!(
                packet.head.len() == HEAD && packet.head.iter().all(|byte| *byte == packet.head[0])
            );
            firsts.push(packet.head[0]);
            match packet.payload {
                CarrierPayload::Placed(length) => {
                    all.extend_from_slice(&into[room[index].at..][..length])
                }
                CarrierPayload::Here(bytes) => all.extend_from_slice(bytes),
            }
        }
    }
    (firsts, all)
}

fn crosses(left: &mut Udp, right: &mut Udp, packets: usize, length: usize, room: &[PayloadPlace]) {
    let (data, heads) = (bytes(length), heads(packets));
    assert_eq!(
        left.send(PacketRun {
            head: HEAD,
            heads: &heads,
            payload: &data,
            each: EACH
        })
        .unwrap(),
        packets
    );
    let (firsts, all) = collect(right, packets, room);
    assert_eq!(
        firsts,
        heads.iter().map(|head| head.0[0]).collect::<Vec<_>>()
    );
    assert!(all == data, "the bytes are others");
}

#[test]
fn a_run_goes_out_as_one_message_and_lands_in_its_places() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    assert_eq!(left.facts().joined_out, 128);
    assert!(right.facts().joined_in);
    let (data, heads) = (bytes(40 * EACH + 17), heads(41));
    left.send(PacketRun {
        head: HEAD,
        heads: &heads,
        payload: &data,
        each: EACH,
    })
    .unwrap();
    let mut into = vec![0; 41 * EACH];
    assert_eq!(
        right.receive(HEAD, &mut into, &places(41), LONG).unwrap(),
        41
    );
    assert_eq!(
        (left.counters().send_calls, right.counters().receive_calls),
        (1, 1)
    );
    assert_eq!(right.packet(40).payload, CarrierPayload::Placed(17));
    assert!(into[..data.len()] == data);
}

#[test]
fn places_may_lie_apart_and_in_any_order() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    let (data, heads) = (bytes(3 * EACH), heads(3));
    left.send(PacketRun {
        head: HEAD,
        heads: &heads,
        payload: &data,
        each: EACH,
    })
    .unwrap();
    let mut into = vec![0; 8 * EACH];
    let room = [6, 0, 3].map(|place| PayloadPlace {
        at: place * EACH,
        length: EACH,
    });
    assert_eq!(right.receive(HEAD, &mut into, &room, LONG).unwrap(), 3);
    for (index, place) in room.iter().enumerate() {
        assert_eq!(right.packet(index).payload, CarrierPayload::Placed(EACH));
        assert!(into[place.at..][..EACH] == data[index * EACH..][..EACH]);
    }
}

#[test]
fn packets_that_fit_no_place_are_kept() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    let short: Vec<PayloadPlace> = places(41)
        .into_iter()
        .map(|place| PayloadPlace {
            length: 1000,
            ..place
        })
        .collect();
    for room in [&[][..], &places(1), &places(40), &short, &places(128)] {
        crosses(&mut left, &mut right, 41, 40 * EACH + 17, room);
        crosses(&mut left, &mut right, 1, 0, room);
        crosses(&mut left, &mut right, 1, 1, room);
        crosses(&mut left, &mut right, 5, 4 * EACH, room);
    }
}

#[test]
fn the_most_the_kernel_joins_arrives_whole() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    let (data, heads) = (bytes(128 * 100), heads(128));
    left.send(PacketRun {
        head: HEAD,
        heads: &heads,
        payload: &data,
        each: 100,
    })
    .unwrap();
    let (firsts, all) = collect(&mut right, 128, &places(44));
    assert_eq!((firsts.len(), left.counters().send_calls), (128, 1));
    assert!(all == data);
    assert_eq!(right.counters().cut, 0);
}

#[test]
fn a_run_longer_than_a_message_goes_as_several() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    crosses(&mut left, &mut right, 120, 119 * EACH + 1, &places(44));
    assert!(left.counters().send_calls <= 2);
}

#[test]
fn without_offload_packets_go_and_come_many_at_a_time() {
    let (mut left, mut right) = pair(UdpCarrierOptions {
        offload: false,
        ..UdpCarrierOptions::default()
    });
    assert_eq!(
        (left.facts().joined_out, left.facts().joined_in),
        (1, false)
    );
    for room in [&[][..], &places(1), &places(64)] {
        crosses(&mut left, &mut right, 120, 119 * EACH + 1, room);
    }
    assert!(left.counters().send_calls < 15 && right.counters().receive_calls < 30);
}

#[test]
fn single_packets_are_soon_taken_many_at_a_time_and_joined_ones_still_come() {
    let (mut left, mut right) = pair(UdpCarrierOptions::default());
    left.facts.joined_out = 1;
    crosses(&mut left, &mut right, 120, 120 * EACH, &places(44));
    crosses(&mut left, &mut right, 120, 120 * EACH, &places(44));
    assert!(
        right.counters().receive_calls < 60,
        "{:?}",
        right.counters()
    );
    left.facts.joined_out = JOINED;
    crosses(&mut left, &mut right, 120, 120 * EACH, &places(44));
}

#[test]
fn joined_packets_refused_are_sent_singly_at_once() {
    let (left, right) = (socket(v4()), socket(v4()));
    left.connect(&right.local_addr().unwrap()).unwrap();
    right.connect(&left.local_addr().unwrap()).unwrap();
    // Without checksums the kernel cuts nothing: EINVAL.
    socket_option::set_option(left.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    let options = UdpCarrierOptions {
        packet: HEAD + EACH,
        ..UdpCarrierOptions::default()
    };
    let (mut left, mut right) = (
        Udp::over(left, options).unwrap(),
        Udp::over(right, options).unwrap(),
    );
    crosses(&mut left, &mut right, 90, 89 * EACH + 3, &places(44));
    assert_eq!((left.facts().joined_out, left.counters().fallbacks), (1, 1));
    crosses(&mut left, &mut right, 90, 89 * EACH + 3, &places(44));
    assert_eq!(left.counters().fallbacks, 1);
}

#[test]
fn loopback_takes_packets_of_64_kib_and_ipv6_too() {
    for address in [v4(), (Ipv6Addr::LOCALHOST, 0).into()] {
        let (mut left, mut right) = pair_over(address, UdpCarrierOptions::default());
        let each = left.facts().packet - HEAD;
        assert!(each > 65_000);
        let (data, heads) = (bytes(3 * each), heads(3));
        assert_eq!(
            left.send(PacketRun {
                head: HEAD,
                heads: &heads,
                payload: &data,
                each
            })
            .unwrap(),
            3
        );
        let (firsts, all) = collect(
            &mut right,
            3,
            &[PayloadPlace {
                at: 0,
                length: each,
            }],
        );
        assert_eq!(firsts, [1, 2, 3]);
        assert!(all == data);
    }
}

#[test]
fn a_peer_that_is_gone_is_reported() {
    let (mut left, right) = pair(UdpCarrierOptions::default());
    drop(right);
    left.send(PacketRun {
        head: HEAD,
        heads: &heads(1),
        payload: &[],
        each: EACH,
    })
    .unwrap();
    let error = left.receive(HEAD, &mut [], &[], LONG).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn waits_end() {
    let (mut left, _right) = pair(UdpCarrierOptions::default());
    for wait in [
        CarrierWait::No,
        CarrierWait::Block(Duration::from_micros(100)),
        CarrierWait::Spin(Duration::from_micros(100)),
    ] {
        assert_eq!(left.receive(HEAD, &mut [], &[], wait).unwrap(), 0);
    }
    assert_eq!(
        left.receive(HEAD, &mut [], &[], CarrierWait::Block(TICK))
            .unwrap(),
        0
    );
}

#[test]
fn an_empty_datagram_is_a_packet_without_a_head() {
    let (mut left, right) = pair(UdpCarrierOptions::default());
    right.socket.send(&[]).unwrap();
    assert_eq!(
        left.receive(
            HEAD,
            &mut [0; 10],
            &[PayloadPlace { at: 0, length: 10 }],
            LONG
        )
        .unwrap(),
        1
    );
    assert!(left.packet(0).head.is_empty() && left.packet(0).payload.length() == 0);
}

fn loopback_carries(bytes: usize) {
    let mtu = ["link", "set", "lo", "mtu", &bytes.to_string()].map(str::to_string);
    assert!(
        std::process::Command::new("ip")
            .args(mtu)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn packets_that_became_too_long_for_the_path_go_in_fragments() {
    crate::room::inside(
        &format!(
            "{}::packets_that_became_too_long_for_the_path_go_in_fragments",
            module_path!()
        ),
        || {
            loopback_carries(1500);
            let (mut left, mut right) = pair_over(v4(), UdpCarrierOptions::default());
            assert_eq!(left.facts().packet, HEAD + EACH);
            crosses(&mut left, &mut right, 41, 40 * EACH + 17, &places(44));
            loopback_carries(1300);
            crosses(&mut left, &mut right, 41, 40 * EACH + 17, &places(44));
            assert_eq!(
                (
                    left.facts().packet,
                    left.facts().joined_out,
                    left.counters().fallbacks
                ),
                (1272, 1, 1)
            );
            crosses(&mut left, &mut right, 41, 40 * EACH + 17, &places(44));
            assert_eq!(left.counters().fallbacks, 1);
        },
    );
}
