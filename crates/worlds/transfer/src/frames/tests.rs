//! Real sockets in a network of the test's own: a veth pair and loopback.

use super::*;
use crate::carrier::PacketHeadBuffer;
use crate::room::inside;
use crate::{BlastChannel, options as channel};
use socket2::Socket;
use stackline_os::packet_socket;
use stackline_proto::blast::BlastStrategy;
use std::process::Command;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

const HEAD: usize = 32;
const LONG: CarrierWait = CarrierWait::Block(Duration::from_secs(10));
const NUMBER: u32 = 0x0102_0304;

/// Each of these tests is run in a network of its own.
macro_rules! in_rooms {
    ($($name:ident)*) => {
        mod each {
            $(#[test]
            fn $name() {
                super::inside(concat!(module_path!(), "::", stringify!($name)), super::$name);
            })*
        }
    };
}

in_rooms! {
    a_run_crosses_a_veth_pair
    loopback_has_two_ends_and_long_packets
    short_packets_are_filled_up_and_nothing_of_that_is_data
    connections_share_an_interface
    an_opener_speaks_to_everybody_until_it_is_answered
    an_opener_hears_nothing_before_it_speaks
    a_waiting_end_accepts_only_opening_packets
    a_message_opens_too
    an_initiator_with_a_known_peer_does_not_broadcast
    a_refusal_settles_nothing
    a_channel_carries_bytes_both_ways_and_closes
    frames_of_strangers_are_dropped
    frames_that_are_none_are_dropped
    frames_longer_than_a_slot_are_counted_as_cut
    the_ring_wraps
    frames_beyond_a_full_ring_are_lost
    a_frame_is_there_when_it_wakes
    a_frame_without_the_wake_flag_is_still_received
    waits_end
    an_interface_that_goes_down_is_an_error
    unusable_interfaces_are_reported_with_a_hint
}

fn options() -> FrameCarrierOptions {
    FrameCarrierOptions::default()
}

fn head(kind: BlastPacketKind, number: u32) -> PacketHeadBuffer {
    let mut head = PacketHeadBuffer::EMPTY;
    head.0[0] = kind as u8;
    head.0[4..8].copy_from_slice(&number.to_le_bytes());
    head
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn say(carrier: &mut FrameCarrier, kind: BlastPacketKind, number: u32, payload: &[u8]) {
    let heads = [head(kind, number)];
    assert_eq!(
        carrier
            .send(PacketRun {
                head: HEAD,
                heads: &heads,
                payload,
                each: payload.len()
            })
            .unwrap(),
        1
    );
}

/// The kind and the payload of the next packet.
fn hear(carrier: &mut FrameCarrier) -> (u8, Vec<u8>) {
    assert_eq!(carrier.receive(HEAD, &mut [], &[], LONG).unwrap(), 1);
    let packet = carrier.packet(0);
    let CarrierPayload::Here(payload) = packet.payload else {
        panic!("it is in the ring")
    };
    (packet.head[0], payload.to_vec())
}

/// Two ends that have spoken: the peers are settled.
fn pair(
    near: &str,
    far: &str,
    number: u32,
    options: FrameCarrierOptions,
) -> (FrameCarrier, FrameCarrier) {
    let mut dial = FrameCarrier::connect(near, options).unwrap();
    let mut listen = FrameCarrier::listen(far, None, options).unwrap();
    say(&mut dial, BlastPacketKind::Open, number, b"open");
    assert_eq!(
        hear(&mut listen),
        (BlastPacketKind::Open as u8, b"open".to_vec())
    );
    say(&mut listen, BlastPacketKind::Accept, number, b"accept");
    assert_eq!(
        hear(&mut dial),
        (BlastPacketKind::Accept as u8, b"accept".to_vec())
    );
    say(&mut dial, BlastPacketKind::Answer, number, b"");
    assert_eq!(hear(&mut listen), (BlastPacketKind::Answer as u8, vec![]));
    assert_eq!(
        (dial.peer(), listen.peer()),
        (Some(listen.local()), Some(dial.local()))
    );
    (dial, listen)
}

fn veth() -> (FrameCarrier, FrameCarrier) {
    pair("near", "far", NUMBER, options())
}

/// Packets with these payloads, numbered, arrive in order.
fn crosses(
    left: &mut FrameCarrier,
    right: &mut FrameCarrier,
    packets: usize,
    data: &[u8],
    each: usize,
) {
    let heads: Vec<PacketHeadBuffer> = (0..packets)
        .map(|i| {
            let mut head = head(BlastPacketKind::Data, NUMBER);
            head.0[8..12].copy_from_slice(&(i as u32).to_le_bytes());
            head
        })
        .collect();
    assert_eq!(
        left.send(PacketRun {
            head: HEAD,
            heads: &heads,
            payload: data,
            each
        })
        .unwrap(),
        packets
    );
    let (mut came, mut all) = (0, Vec::new());
    while came < packets {
        let n = right.receive(HEAD, &mut [], &[], LONG).unwrap();
        assert!(n > 0, "{came} of {packets} packets came");
        for index in 0..n {
            let packet = right.packet(index);
            assert_eq!(packet.head, &heads[came].0[..HEAD]);
            let CarrierPayload::Here(payload) = packet.payload else {
                panic!("it is in the ring")
            };
            all.extend_from_slice(payload);
            came += 1;
        }
    }
    assert!(all == data, "the bytes are others");
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

fn connections_share_an_interface() {
    for (near, far) in [("near", "far"), ("lo", "lo")] {
        let mut pairs: Vec<_> = (1..4)
            .map(|number| pair(near, far, number, options()))
            .collect();
        for (number, (left, _)) in (1..).zip(&mut pairs) {
            say(left, BlastPacketKind::Data, number, &number.to_le_bytes());
        }
        for (number, (_, right)) in (1_u32..).zip(&mut pairs) {
            assert_eq!(
                hear(right),
                (BlastPacketKind::Data as u8, number.to_le_bytes().to_vec())
            );
            assert_eq!(
                right.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
                0
            );
        }
    }
}

fn an_opener_speaks_to_everybody_until_it_is_answered() {
    let mut dial = FrameCarrier::connect("lo", options()).unwrap();
    let mut first = FrameCarrier::listen("lo", Some(NUMBER), options()).unwrap();
    let mut other = FrameCarrier::listen("lo", Some(NUMBER + 1), options()).unwrap();
    let mut second = FrameCarrier::listen("lo", None, options()).unwrap();
    for _ in 0..2 {
        say(&mut dial, BlastPacketKind::Open, NUMBER, b"open");
        assert_eq!(hear(&mut first).1, b"open");
        assert_eq!(hear(&mut second).1, b"open");
    }
    // A forged answer without effect: it still broadcasts.
    say(&mut second, BlastPacketKind::Accept, NUMBER, b"forged");
    assert_eq!(hear(&mut dial).1, b"forged");
    say(&mut dial, BlastPacketKind::Open, NUMBER, b"open");
    assert_eq!(hear(&mut first).1, b"open");
    say(&mut first, BlastPacketKind::Accept, NUMBER, b"accept");
    assert_eq!(hear(&mut dial).1, b"accept");
    say(&mut dial, BlastPacketKind::Data, NUMBER, b"data");
    assert_eq!(
        (hear(&mut first).1, dial.peer()),
        (b"data".to_vec(), Some(first.local()))
    );
    say(&mut second, BlastPacketKind::Data, NUMBER, b"too late");
    assert_eq!(
        dial.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
        0
    );
    assert_eq!(
        other.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
        0
    );
}

fn an_opener_hears_nothing_before_it_speaks() {
    let mut dial = FrameCarrier::connect("far", options()).unwrap();
    forger("near")
        .send(&frame(Mac([2; 6]), dial.local(), NUMBER, b"early"))
        .unwrap();
    say(&mut dial, BlastPacketKind::Open, NUMBER, b"");
    forger("near")
        .send(&frame(Mac([2; 6]), dial.local(), NUMBER, b"in time"))
        .unwrap();
    assert_eq!(hear(&mut dial).1, b"in time");
}

fn a_waiting_end_accepts_only_opening_packets() {
    let (mut left, right) = veth();
    let mut listen = FrameCarrier::listen("far", None, options()).unwrap();
    say(&mut left, BlastPacketKind::Data, NUMBER, b"for another");
    forger("near")
        .send(&frame(left.local(), BROADCAST, NUMBER, b"not a beginning"))
        .unwrap();
    let mut dial = FrameCarrier::connect("near", options()).unwrap();
    say(&mut dial, BlastPacketKind::Open, 9, b"open");
    assert_eq!(
        hear(&mut listen),
        (BlastPacketKind::Open as u8, b"open".to_vec())
    );
    assert_eq!(
        packet_socket::take_counts(listen.rx_ring.socket()).unwrap(),
        packet_socket::PacketCounts {
            packets: 1,
            drops: 0
        },
        "the kernel left the others out"
    );
    assert_eq!(right.local(), listen.local());
}

fn a_message_opens_too() {
    let mut client = FrameCarrier::connect("near", options()).unwrap();
    let mut server = FrameCarrier::listen("far", None, options()).unwrap();
    for message in [b"first", b"again"] {
        say(&mut client, BlastPacketKind::Send, NUMBER, message);
        assert_eq!(
            hear(&mut server),
            (BlastPacketKind::Send as u8, message.to_vec())
        );
    }
    say(&mut server, BlastPacketKind::Reply, NUMBER, b"reply");
    assert_eq!(hear(&mut client).1, b"reply");
    say(&mut client, BlastPacketKind::Send, NUMBER, b"next");
    assert_eq!(hear(&mut server).1, b"next");
    assert_eq!(
        (client.peer(), server.peer()),
        (Some(server.local()), Some(client.local()))
    );
}

fn an_initiator_with_a_known_peer_does_not_broadcast() {
    let mut listen = FrameCarrier::listen("lo", None, options()).unwrap();
    let mut other = FrameCarrier::listen("lo", None, options()).unwrap();
    let mut dial = FrameCarrier::connect(
        "lo",
        FrameCarrierOptions {
            peer: Some(listen.local()),
            ..options()
        },
    )
    .unwrap();
    say(&mut dial, BlastPacketKind::Open, NUMBER, b"open");
    assert_eq!(hear(&mut listen).1, b"open");
    say(&mut other, BlastPacketKind::Accept, NUMBER, b"not asked");
    say(&mut listen, BlastPacketKind::Accept, NUMBER, b"accept");
    assert_eq!(hear(&mut dial).1, b"accept");
    assert_eq!(
        other.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap(),
        0
    );
}

fn a_refusal_settles_nothing() {
    let mut listen = FrameCarrier::listen("far", None, options()).unwrap();
    for number in [5, 6] {
        let mut dial = FrameCarrier::connect("near", options()).unwrap();
        say(&mut dial, BlastPacketKind::Open, number, b"");
        assert_eq!(hear(&mut listen).0, BlastPacketKind::Open as u8);
        say(&mut listen, BlastPacketKind::Refuse, number, b"x");
        assert_eq!(
            hear(&mut dial),
            (BlastPacketKind::Refuse as u8, b"x".to_vec())
        );
        assert_eq!(listen.peer(), None);
    }
}

/// A socket that sends any bytes over an interface.
fn forger(interface: &str) -> Socket {
    let socket = raw().unwrap();
    let known = interface_properties(socket.as_fd(), interface).unwrap();
    packet_socket::bind(socket.as_fd(), known.index, 0).unwrap();
    socket
}

fn frame(from: Mac, to: Mac, number: u32, payload: &[u8]) -> Vec<u8> {
    let mut prefix = [0; PREFIX];
    let length = HEAD + payload.len();
    format::write(&mut prefix, to, from, ETHERTYPE, length as u16, WAKE);
    let mut frame = [
        &prefix[..],
        &head(BlastPacketKind::Data, number).0[..HEAD],
        payload,
    ]
    .concat();
    frame.resize(frame.len().max(LEAST), 0);
    frame
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

fn the_ring_wraps() {
    let small = FrameCarrierOptions {
        receive_buffer: 0,
        ..options()
    };
    let (mut left, mut right) = pair("near", "far", NUMBER, small);
    let slots = right.rx_ring.ring().slots();
    assert!((LEAST_SLOTS..2 * LEAST_SLOTS).contains(&slots));
    // Never a divisor of the ring, so that every slot is the first and the last of a send once.
    for round in 0..40 {
        let packets = 97 + round % 3;
        crosses(
            &mut left,
            &mut right,
            packets,
            &bytes(packets * 100 + round),
            100,
        );
    }
    assert_eq!(right.counters().lost, 0);
}

fn frames_beyond_a_full_ring_are_lost() {
    let small = FrameCarrierOptions {
        receive_buffer: 0,
        ..options()
    };
    let (mut left, mut right) = pair("near", "far", NUMBER, small);
    let packets = right.rx_ring.ring().slots() + 150;
    // The last frame received holds one slot.
    right.release();
    right.rx_ring.clear_wakes();
    let heads = vec![head(BlastPacketKind::Data, NUMBER); packets];
    let data = bytes(packets * 10);
    assert_eq!(
        left.send(PacketRun {
            head: HEAD,
            heads: &heads,
            payload: &data,
            each: 10
        })
        .unwrap(),
        packets
    );
    // The last frame wakes: when it is here, all are, or were.
    let (wakes, end) = (
        packets.div_ceil(WAKE_EVERY),
        Instant::now() + Duration::from_secs(120),
    );
    while right.rx_ring.wakes() < wakes && Instant::now() < end {}
    assert_eq!(right.rx_ring.wakes(), wakes);
    let mut came = 0;
    while came + 150 < packets {
        let n = right.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap();
        assert!((1..=MOST).contains(&n));
        came += n;
    }
    assert_eq!(
        right
            .receive(
                HEAD,
                &mut [],
                &[],
                CarrierWait::Block(Duration::from_millis(1))
            )
            .unwrap(),
        0
    );
    assert_eq!((came + 150, right.counters().lost), (packets, 150));
    crosses(&mut left, &mut right, 100, &data[..1000], 10);
}

fn a_frame_is_there_when_it_wakes() {
    const FRAMES: u32 = 500;
    let (mut left, mut right) = veth();
    right.release();
    right.rx_ring.clear_wakes();
    let (ready, mut early) = (AtomicU32::new(0), 0);
    thread::scope(|scope| {
        // From another thread, so that this one checks while the kernel is between the two sockets.
        scope.spawn(|| {
            for frame in 1..=FRAMES {
                while ready.load(Ordering::Acquire) < frame {
                    thread::yield_now();
                }
                say(&mut left, BlastPacketKind::Data, NUMBER, b"");
            }
        });
        for frame in 1..=FRAMES {
            ready.store(frame, Ordering::Release);
            while right.rx_ring.wakes() == 0 {
                std::hint::spin_loop();
            }
            if right.rx_ring.take().is_none() {
                early += 1;
                while right.rx_ring.take().is_none() {}
            }
            right.rx_ring.release();
            right.rx_ring.clear_wakes();
        }
    });
    assert_eq!(early, 0, "frames that woke before they were there");
}

fn a_frame_without_the_wake_flag_is_still_received() {
    let (left, mut right) = veth();
    let mut unmarked = frame(left.local(), right.local(), NUMBER, b"asleep");
    unmarked[format::FLAGS_AT] = 0;
    forger("near").send(&unmarked).unwrap();
    assert_eq!(hear(&mut right).1, b"asleep");
}

fn waits_end() {
    let (mut left, _right) = veth();
    for wait in [
        CarrierWait::No,
        CarrierWait::Block(Duration::from_millis(5)),
        CarrierWait::Spin(Duration::from_micros(100)),
    ] {
        let start = Instant::now();
        assert_eq!(left.receive(HEAD, &mut [], &[], wait).unwrap(), 0);
        let least = if let CarrierWait::Block(time) | CarrierWait::Spin(time) = wait {
            time
        } else {
            Duration::ZERO
        };
        assert!(start.elapsed() >= least, "{wait:?}");
    }
}

fn an_interface_that_goes_down_is_an_error() {
    let (mut left, mut right) = veth();
    assert!(
        Command::new("ip")
            .args(["link", "set", "far", "down"])
            .status()
            .unwrap()
            .success()
    );
    let error = right.receive(HEAD, &mut [], &[], LONG).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    assert!(
        Command::new("ip")
            .args(["link", "set", "near", "down"])
            .status()
            .unwrap()
            .success()
    );
    let run = PacketRun {
        head: HEAD,
        heads: slice::from_ref(&PacketHeadBuffer::EMPTY),
        payload: &[],
        each: 0,
    };
    assert_eq!(
        left.send(run).unwrap_err().raw_os_error(),
        Some(libc::ENETDOWN)
    );
    let error = FrameCarrier::listen("far", None, options()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
    assert!(
        error.to_string().contains("is down\nhint: `ip link set"),
        "{error}"
    );
}

fn unusable_interfaces_are_reported_with_a_hint() {
    for name in ["none-such", "", "a-name-that-is-too-long", "n\0l"] {
        let error = FrameCarrier::connect(name, options()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let why: &Unusable = error.get_ref().unwrap().downcast_ref().unwrap();
        assert!(why.message.contains(name) && why.hint.contains("ip link"));
    }
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
