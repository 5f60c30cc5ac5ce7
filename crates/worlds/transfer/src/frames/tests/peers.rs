//! How two ends find each other: what opens, what answers, and whom an end hears.

use super::*;

in_rooms! {
    connections_share_an_interface
    an_opener_speaks_to_everybody_until_it_is_answered
    an_opener_hears_nothing_before_it_speaks
    a_waiting_end_accepts_only_opening_packets
    a_message_opens_too
    an_initiator_with_a_known_peer_does_not_broadcast
    a_refusal_settles_nothing
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
