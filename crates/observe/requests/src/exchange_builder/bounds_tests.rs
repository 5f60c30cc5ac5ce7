//! One beyond each bound of the builder: it is counted, and has words; what just fills it is not.

use super::*;
use stackline_dissect::left_out::LeftOut;

fn builder() -> Builder {
    Builder::new(vec![ObservedHost {
        name: "a".into(),
        addresses: vec!["10.0.0.1".parse().unwrap()],
    }])
}

/// A SYN of the host's to a server of that number.
fn syn(server: usize) -> DissectedSegment {
    let [_, high, middle, low] = (server as u32).to_be_bytes();
    DissectedSegment {
        ends: (
            "10.0.0.1:5000".parse().unwrap(),
            SocketAddr::from(([11, high, middle, low], 80)),
        ),
        sequence: 7,
        bytes: 0,
        syn: true,
        fin: false,
        reset: false,
        acknowledged: None,
        window: 0,
        selectively_acknowledged: None,
        window_scale: None,
        largest_segment: None,
        ttl: 64,
        length: 40,
    }
}

fn dns(id: usize, answers: bool) -> Vec<u8> {
    let flags = if answers { [0x81, 0x80] } else { [1, 0] };
    [
        &(id as u16).to_be_bytes()[..],
        &flags,
        b"\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
    ]
    .concat()
}

fn datagram(answers: bool) -> DissectedDatagram {
    let (client, server): (SocketAddr, SocketAddr) = (
        "10.0.0.1:4000".parse().unwrap(),
        "10.0.0.9:53".parse().unwrap(),
    );
    DissectedDatagram {
        ends: if answers {
            (server, client)
        } else {
            (client, server)
        },
        bytes: 19,
        ttl: 64,
    }
}

#[test]
fn connections() {
    Bound::Connections.assert_reported(|count| {
        // The oldest is sought each time, so only the last ones are real.
        let mut builder = builder();
        (0..count).for_each(|at| builder.segment(0, true, at as u64, &syn(at), b""));
        let (exchanges, unknown) = builder.finish();
        assert_eq!(exchanges.len(), count, "what gives way is reported");
        unknown.left_out
    });
    let mut builder = builder().remembering_origins();
    let key = |at| RequestConnectionKey::new(0, syn(at).ends);
    (0..=Bound::Origins.most()).for_each(|at| {
        builder.remember(&key(at), EventStreamDirection::There, &syn(at), at as u32)
    });
    assert_eq!(builder.unknown.left_out.count_of(Bound::Origins), 1);
    assert!(builder.unknown.left_out.lines()[0].contains("more than 1,048,576"));
}

#[test]
fn questions_after_names() {
    Bound::Lookups.assert_reported(|count| {
        let mut builder = builder();
        for id in 0..count {
            builder.datagram(
                0,
                PacketPassage::Leaves,
                id as u64,
                &datagram(false),
                &dns(id, false),
            );
        }
        let (exchanges, unknown) = builder.finish();
        assert_eq!(exchanges.len(), count, "what gives way is reported");
        unknown.left_out
    });
    Bound::Answered.assert_reported(|count| {
        let mut builder = builder();
        for id in 0..count {
            builder.datagram(
                0,
                PacketPassage::Leaves,
                id as u64,
                &datagram(false),
                &dns(id, false),
            );
            builder.datagram(
                0,
                PacketPassage::Arrives,
                id as u64,
                &datagram(true),
                &dns(id, true),
            );
        }
        builder.finish().1.left_out
    });
    Bound::Pointers.assert_reported(|count| {
        let mut builder = builder();
        let chain: Vec<u8> = (0..count)
            .flat_map(|at| [0xc0, 14 + 2 * at as u8])
            .collect();
        let message = [&dns(1, false)[..12], &chain, &[0, 0, 1, 0, 1]].concat();
        builder.datagram(0, PacketPassage::Leaves, 1, &datagram(false), &message);
        builder.finish().1.left_out
    });
}

#[test]
fn sockets() {
    let (own, other) = syn(1).ends;
    Bound::EarlyCalls.assert_reported(|count| {
        let mut builder = builder();
        builder.socket(0, 1, 7, SocketEvent::Opened(own, other));
        (0..count).for_each(|at| builder.socket(at as u64, 1, 7, SocketEvent::Wrote(1)));
        let elsewhere = builder.unknown.left_out.clone();
        assert_eq!(elsewhere, LeftOut::default(), "no packet was seen of it");
        builder.segment(0, true, count as u64, &syn(1), b"");
        builder.finish().1.left_out
    });
    Bound::Sockets.assert_reported(|count| {
        let mut builder = builder();
        (0..count).for_each(|at| builder.socket(0, at as u64, 7, SocketEvent::Opened(own, other)));
        builder.finish().1.left_out
    });
    Bound::Sessions.assert_reported(|count| {
        let secrets = Secrets::default();
        let lines = (0..count).map(|at| format!("CLIENT_RANDOM {at:064x} 0102\n"));
        secrets.learn(&lines.collect::<String>());
        builder().with_secrets(secrets).finish().1.left_out
    });
}

#[test]
fn what_was_made_for_what() {
    use crate::request_parents::{RequestSpan, find_parents};
    Bound::Parents.assert_reported(|count| {
        let span = |unit: usize, client: Option<usize>, server: Option<usize>| RequestSpan {
            unit: unit as i64,
            client_host: client,
            client: (0, 0),
            asked: (10, 20),
            server_host: server,
            service: None,
            server: (0, 0, 0),
            served: (5, 30),
        };
        let mut spans: Vec<RequestSpan> =
            (0..count).map(|unit| span(unit, None, Some(0))).collect();
        spans.push(span(count, Some(0), None));
        let mut left_out = LeftOut::default();
        let _ = find_parents(&spans, &mut left_out);
        left_out
    });
}

#[test]
fn connections_of_quic() {
    use stackline_testing::quic_session::{QuicSessionPlan, run_quic_session};
    let session = run_quic_session(&QuicSessionPlan::default());
    let first = &session.datagrams[0].bytes;
    let of = |client: usize| DissectedDatagram {
        ends: (syn(client).ends.1, syn(0).ends.0),
        bytes: first.len() as u64,
        ttl: 64,
    };
    Bound::QuicConnections.assert_reported(|count| {
        let mut builder = builder();
        for client in 0..count {
            builder.datagram(0, PacketPassage::Arrives, client as u64, &of(client), first);
        }
        let (exchanges, unknown) = builder.finish();
        assert_eq!(exchanges.len(), count, "what gives way is reported");
        unknown.left_out
    });
    Bound::Doors.assert_reported(|count| {
        let mut builder = builder();
        builder.datagram(0, PacketPassage::Arrives, 1, &of(1), first);
        for number in 1..count {
            let data = [&[0x40], &number.to_be_bytes()[..], &[0; 20]].concat();
            builder.datagram(0, PacketPassage::Arrives, 1, &of(1), &data);
        }
        builder.finish().1.left_out
    });
}
