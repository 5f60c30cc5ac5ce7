//! DNS questions are the lookup of the connection behind them.

use super::*;

#[test]
fn a_question_after_a_name_belongs_to_the_connection_behind_it() {
    let mut path = Path::new();
    let datagram = |from: &str, to: &str| DissectedDatagram {
        ends: (address(from), address(to)),
        bytes: 30,
        ttl: 64,
    };
    let question = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3][..],
        b"web",
        &[4],
        b"test",
        &[0, 0, 1, 0, 1],
    ]
    .concat();
    let answer = [&[0, 7, 0x81, 0x80][..], &question[4..]].concat();
    let (there, back) = (
        datagram("10.0.0.1:4000", "10.0.0.9:53"),
        datagram("10.0.0.9:53", "10.0.0.1:4000"),
    );
    path.builder
        .datagram(0, PacketPassage::Leaves, MS, &there, &question);
    path.builder
        .datagram(0, PacketPassage::Leaves, 5001 * MS, &there, &question);
    path.builder
        .datagram(0, PacketPassage::Arrives, 5031 * MS, &back, &answer);
    path.connect(5032);
    path.send(5042, 0, GET, "");
    path.send(5048, 1, ANSWER, "");
    let done = path.finish();
    let dns = done
        .iter()
        .find(|exchange| exchange.protocol == "DNS")
        .unwrap();
    assert_eq!(
        (dns.name.kept(), dns.status.kept(), dns.request.again),
        ("A web.test", "NOERROR", 1)
    );
    let get = done
        .iter()
        .find(|exchange| exchange.name.kept() == "GET /a")
        .unwrap();
    assert_eq!(parts(get)[0], (ExchangePhase::Lookup, 5030));
}

#[test]
fn all_that_a_resolver_asked_is_the_lookup_of_the_connection() {
    let lookup = |asked: &[(u64, u64, &str, Option<u64>)]| {
        let mut path = Path::new();
        for (id, at_ms, name, answered_ms) in asked {
            let mut question = vec![0, *id as u8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in name.split('.') {
                question.push(label.len() as u8);
                question.extend(label.as_bytes());
            }
            question.extend([0, 0, 1, 0, 1]);
            let answer = [&[0, *id as u8, 0x81, 0x80][..], &question[4..]].concat();
            let port = 4000 + id;
            let ends = (address(&format!("10.0.0.1:{port}")), address("10.0.0.9:53"));
            let there = DissectedDatagram {
                ends,
                bytes: 30,
                ttl: 64,
            };
            path.builder
                .datagram(0, PacketPassage::Leaves, at_ms * MS, &there, &question);
            if let Some(answered) = answered_ms {
                let back = DissectedDatagram {
                    ends: (ends.1, ends.0),
                    bytes: 30,
                    ttl: 64,
                };
                path.builder
                    .datagram(0, PacketPassage::Arrives, answered * MS, &back, &answer);
            }
        }
        path.connect(9_500);
        path.send(9_510, 0, GET, "");
        path.send(9_520, 1, ANSWER, "");
        let done = path.finish();
        let get = done
            .iter()
            .find(|exchange| exchange.name.kept() == "GET /a")
            .unwrap();
        parts(get)[0]
    };
    // A search list: two names that are not there, then the one that is.
    let search = [
        (1, 9_000, "web.test.corp", Some(9_200)),
        (2, 9_201, "web.test.lan", Some(9_400)),
        (3, 9_401, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&search), (ExchangePhase::Lookup, 499));
    // The first name server is silent, and the second is asked from another socket.
    let silent = [
        (4, 4_490, "web.test", None),
        (5, 9_490, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&silent), (ExchangePhase::Lookup, 5_009));
    // What somebody else asked after is not part of it.
    let others = [
        (6, 4_490, "db.test", None),
        (7, 9_000, "mail.test", Some(9_010)),
        (8, 9_490, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&others), (ExchangePhase::Lookup, 9));
}

/// A question and its answer as they pass two hosts, b 2 ms after a: the passages at each, or nothing.
fn passing_hosts(from: &str, to: &str, doors: [Option<PacketPassage>; 2]) -> Exchange {
    let mut builder = Path::new().builder;
    let question = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3][..],
        b"web",
        &[0, 0, 1, 0, 1],
    ]
    .concat();
    let answer = [&[0, 7, 0x81, 0x80][..], &question[4..]].concat();
    let (from, to) = (address(from), address(to));
    for (ends, at_ms, message) in [((from, to), 10, &question), ((to, from), 60, &answer)] {
        let datagram = DissectedDatagram {
            ends,
            bytes: message.len() as u64,
            ttl: 64,
        };
        for (host, door) in doors.into_iter().enumerate() {
            let Some(door) = door else { continue };
            let is_back = ends.0 == to;
            let (door, later) = match (door, is_back) {
                (PacketPassage::Leaves, true) => (PacketPassage::Arrives, 0),
                (PacketPassage::Arrives, true) => (PacketPassage::Leaves, 0),
                (door, _) => (door, 2 * host as u64),
            };
            builder.datagram(host, door, (at_ms + later) * MS, &datagram, message);
        }
    }
    let (mut done, _) = builder.finish();
    assert_eq!(done.len(), 1, "{done:?}");
    done.remove(0)
}

#[test]
fn a_question_that_passes_between_is_asked_at_neither_end() {
    use PacketPassage::{Arrives, Between, Leaves};
    let (client, server) = ("10.0.9.1:4000", "10.0.9.53:53");
    let one = passing_hosts(client, server, [Some(Between), None]);
    assert_eq!(
        (one.client.host, one.server.host, one.seen_at),
        (None, None, Some(0))
    );
    assert_eq!(one.begin_ns().zip(one.end_ns()), Some((10 * MS, 60 * MS)));
    // A second place on the way sees the same question, not another.
    let both = passing_hosts(client, server, [Some(Between), Some(Between)]);
    assert_eq!((both.request.again, both.end_ns()), (0, Some(60 * MS)));
    // Where an end itself is seen, the way adds nothing.
    let own = passing_hosts("10.0.0.1:4000", server, [Some(Leaves), Some(Between)]);
    assert_eq!(
        (own.client.host, own.seen_at, own.request.again),
        (Some(0), None, 0)
    );
    assert_eq!((own.request.arrived, own.end_ns()), (None, Some(60 * MS)));
    let asked = passing_hosts(client, "10.0.0.1:53", [Some(Arrives), Some(Between)]);
    assert_eq!(
        (asked.server.host, asked.seen_at, asked.request.again),
        (Some(0), None, 0)
    );
}
