//! Packets of the standards' appendices, and what is found in them.

use super::*;
use crate::conversation::tls::record_keys::Suite;
use crate::quic::packet_keys::PacketKeys;

const THERE: EventStreamDirection = EventStreamDirection::There;
const BACK: EventStreamDirection = EventStreamDirection::Back;

/// RFC 9001, appendix A.3 and A.4; RFC 9369, appendix A.3 and A.4.
const ANSWERS: [[&str; 2]; 2] = [
    [
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
         dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
         2158407dd074ee",
        "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
    ],
    [
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17
         f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8
         4bed8521e2e140",
        "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
    ],
];

fn hex(text: &str) -> Vec<u8> {
    let digit = |letter: char| letter.to_digit(16).map(|digit| digit as u8);
    let digits: Vec<u8> = text.chars().filter_map(digit).collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// The client's Initial of RFC 9001, appendix A.2, and of RFC 9369, appendix A.2.
fn first(version: usize) -> Vec<u8> {
    hex([
        include_str!("initial_v1.hex"),
        include_str!("initial_v2.hex"),
    ][version])
}

fn fed(datagrams: &[(EventStreamDirection, Vec<u8>)]) -> (QuicDissector, Vec<QuicEvent>) {
    let begin = &datagrams[0].1;
    let mut dissector = QuicDissector::begin(begin, begin.len() as u64, None).unwrap();
    let mut found = Vec::new();
    for (side, datagram) in datagrams {
        dissector.datagram(*side, datagram, &mut found);
    }
    (dissector, found)
}

#[test]
fn hellos_of_the_standards_are_read() {
    for (number, version) in [QuicVersion::V1, QuicVersion::V2].into_iter().enumerate() {
        let answer = hex(ANSWERS[number][0]);
        let (dissector, found) = fed(&[(THERE, first(number)), (BACK, answer)]);
        let hello = |side, bytes| QuicEvent::Handshake {
            side,
            news: HandshakeNews::New,
            bytes,
        };
        assert_eq!(dissector.version(), version);
        assert_eq!(
            found,
            [
                QuicEvent::NewId(THERE, Vec::new()),
                hello(THERE, 1200),
                QuicEvent::Named(RedactedName::host("QUIC handshake ", "example.com", "")),
                QuicEvent::NewId(BACK, hex("f067a5502a4262b5")),
                hello(BACK, 135),
            ]
        );
    }
}

#[test]
fn what_fills_a_datagram_up_is_no_packet() {
    let answer = [hex(ANSWERS[0][0]), vec![0; 1065]].concat();
    let (dissector, found) = fed(&[(THERE, first(0)), (BACK, answer)]);
    let is_data = |event: &QuicEvent| matches!(event, QuicEvent::Data { .. });
    assert!(!found.iter().any(is_data) && !dissector.is_sealed());
}

#[test]
fn a_retry_is_one_if_it_proves_itself() {
    for (number, [_, retry]) in ANSWERS.into_iter().enumerate() {
        let retry = hex(retry);
        let (_, found) = fed(&[
            (THERE, first(number)),
            (BACK, retry.clone()),
            (BACK, retry.clone()),
        ]);
        assert_eq!(
            found
                .iter()
                .filter(|event| **event == QuicEvent::Retry)
                .count(),
            1
        );
        let mut wrong = retry;
        wrong[20] ^= 1;
        let (_, found) = fed(&[(THERE, first(number)), (BACK, wrong)]);
        assert!(!found.contains(&QuicEvent::Retry));
    }
}

/// RFC 9001, appendix A.5; RFC 9369, appendix A.5.
#[test]
fn packets_of_chacha20_are_opened() {
    let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
    let packets = [
        (
            QuicVersion::V1,
            "4cfe4189655e5cd55c41f69080575d7999c25a5bfb",
        ),
        (
            QuicVersion::V2,
            "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba",
        ),
    ];
    for (version, packet) in packets {
        let keys = PacketKeys::new(version, Suite::from_number(0x1303).unwrap(), &secret).unwrap();
        let packet = hex(packet);
        let unmasked = keys.unmask(&packet, 1, Some(654_360_560)).unwrap();
        assert_eq!(unmasked.number, 654_360_564);
        assert_eq!(keys.open(&unmasked), Some(vec![1]));
        assert!(keys.next().unwrap().open(&unmasked).is_none());
    }
}

#[test]
fn what_is_no_beginning_begins_nothing() {
    let datagram = first(0);
    let begins = |datagram: &[u8], length: usize| {
        QuicDissector::begin(datagram, length as u64, None).is_some()
    };
    assert!(begins(&datagram, 1200));
    assert!(
        !begins(&datagram[..1199], 1199),
        "a client fills its first datagram"
    );
    assert!(begins(&datagram[..90], 1200), "a capture cut it");
    for at in [0, 1, 6, 100, 1199] {
        let mut wrong = datagram.clone();
        wrong[at] ^= 0x40;
        assert!(!begins(&wrong, 1200), "{at}");
    }
    assert!(!begins(&hex(ANSWERS[0][0]), 1200) && !begins(&[], 0) && !begins(&[0x40; 1200], 1200));
}

#[test]
fn whatever_is_cut_or_damaged_breaks_nothing() {
    let (datagram, answer) = (first(0), hex(ANSWERS[0][0]));
    for at in 0..datagram.len() {
        let mut wrong = datagram.clone();
        wrong[at] = wrong[at].wrapping_add(1 + (at % 255) as u8);
        let _ = fed(&[
            (THERE, datagram.clone()),
            (THERE, wrong),
            (BACK, datagram[..at].to_vec()),
        ]);
        let _ = fed(&[
            (THERE, datagram.clone()),
            (BACK, answer[..at.min(answer.len())].to_vec()),
        ]);
    }
}

#[test]
fn streams_that_are_one_more_than_are_followed_are_counted() {
    use crate::quic::frames::StreamPiece;
    Bound::QuicStreams.assert_reported(|count| {
        let (mut streams, mut found) = (QuicStreams::new(b"h3"), Vec::new());
        let mut left_out = crate::left_out::LeftOut::default();
        for number in 0..count as u64 {
            let piece = StreamPiece {
                stream: 4 * number,
                offset: 0,
                bytes: &[1],
                is_last: false,
            };
            streams.piece(THERE, piece, &mut found);
        }
        for event in &found {
            if let QuicEvent::LeftOut(bound, count) = event {
                left_out.add(*bound, *count);
            }
        }
        left_out
    });
}

#[test]
fn what_lies_behind_holes_of_many_streams_is_bounded() {
    use crate::conversation::reassembly::MOST_HELD;
    use crate::quic::frames::StreamPiece;
    let (mut streams, mut found) = (QuicStreams::new(b"h3"), Vec::new());
    for number in 0..2000_u64 {
        let piece = StreamPiece {
            stream: 4 * number,
            offset: 10,
            bytes: &[0; 1200],
            is_last: false,
        };
        streams.piece(THERE, piece, &mut found);
        assert!(
            streams.held() < 2 * MOST_HELD + (2 << 20),
            "{}",
            streams.held()
        );
    }
    assert!(
        found
            .iter()
            .any(|event| matches!(event, QuicEvent::LeftOut(Bound::BehindHole, 1)))
    );
}
