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
