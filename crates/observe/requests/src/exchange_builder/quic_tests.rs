//! Two real ends of QUIC, looked at from the client, the server, both and between: with secrets and without, with losses, Retry, other
//! suites and new keys.

use super::*;
use stackline_testing::quic_session::{QuicSession, QuicSessionPlan, run_quic_session};

/// `GET /a` and `POST /b` by static fields and literal paths, `200`, `404`, each with some data.
fn call(number: usize) -> [Vec<u8>; 2] {
    let (method, path, status) = [(0xd1, b'a', 0xd9), (0xd4, b'b', 0xdb)][number % 2];
    let question = vec![1, 7, 0, 0, method, 0x51, 2, b'/', path];
    let mut answer = vec![1, 3, 0, 0, status, 0, 0x80, 0, 0x0f, 0xa0];
    answer.resize(10 + 4000, b'x');
    [question, answer]
}

fn plan(calls: usize) -> QuicSessionPlan {
    QuicSessionPlan {
        calls: (0..calls).map(call).collect(),
        ..QuicSessionPlan::default()
    }
}

const CLIENT: usize = 0;
const SERVER: usize = 1;
const FIRST_US: u64 = 1_000_000;

/// What is found of a session at those doors.
fn seen(
    session: &QuicSession,
    transit_us: u64,
    doors: &[usize],
    with_keys: bool,
) -> (Vec<Exchange>, Unknown, Builder) {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let ends = [address("10.0.0.1:5000"), address("10.0.0.2:443")];
    let host = |at: usize| ObservedHost {
        name: ["client", "server"][at].into(),
        addresses: vec![ends[at].ip()],
    };
    let mut builder = Builder::new(doors.iter().map(|door| host(*door)).collect());
    let secrets = Secrets::default();
    if with_keys {
        let _ = secrets.learn(&session.keys);
    }
    builder = builder.with_secrets(secrets);
    let mut passages = Vec::new();
    for datagram in &session.datagrams {
        let (from, to) = if datagram.is_client {
            (CLIENT, SERVER)
        } else {
            (SERVER, CLIENT)
        };
        for (number, door) in doors.iter().enumerate() {
            let at_us = FIRST_US + datagram.at_us;
            if *door == from {
                passages.push((at_us, number, PacketPassage::Leaves, [from, to], datagram));
            } else if !datagram.is_lost {
                passages.push((
                    at_us + transit_us,
                    number,
                    PacketPassage::Arrives,
                    [from, to],
                    datagram,
                ));
            }
        }
    }
    passages.sort_by_key(|(at_us, ..)| *at_us);
    for (at_us, host, door, [from, to], datagram) in passages {
        let bytes = datagram.bytes.len() as u64;
        let dissected = DissectedDatagram {
            ends: (ends[from], ends[to]),
            bytes,
            ttl: 64,
        };
        let read = builder.datagram(host, door, 1000 * at_us, &dissected, &datagram.bytes);
        assert_eq!(read, OfDatagram::Read);
    }
    let (exchanges, unknown) = builder.finish();
    (exchanges, unknown, builder)
}

fn words(exchanges: &[Exchange]) -> Vec<String> {
    let calls = exchanges
        .iter()
        .filter(|one| one.kind == ExchangeKind::Call);
    calls
        .map(|one| format!("{:?} {:?}", one.name, one.status))
        .collect()
}

fn expected(calls: usize) -> Vec<String> {
    (0..calls)
        .map(|at| ["\"GET /a\" \"200\"", "\"POST /b\" \"404\""][at % 2].to_owned())
        .collect()
}

const US: u64 = 1000;

#[test]
fn requests_are_read_with_their_secrets_from_either_end() {
    for suite in [0x1301, 0x1302, 0x1303] {
        let plan = QuicSessionPlan {
            suite,
            updates: vec![2, 5],
            ..plan(8)
        };
        let session = run_quic_session(&plan);
        for doors in [&[CLIENT][..], &[SERVER], &[CLIENT, SERVER]] {
            let (exchanges, unknown, mut builder) = seen(&session, plan.transit_us, doors, true);
            assert_eq!(
                words(&exchanges),
                expected(8),
                "suite {suite:x} at {doors:?}"
            );
            assert_eq!((unknown.sealed_quic, unknown.unopened_quic), (0, 0));
            assert!(
                exchanges.iter().all(|one| one.void.is_none()),
                "{exchanges:?}"
            );
            let set_up = &exchanges[0];
            assert_eq!(
                (set_up.kind, set_up.name.kept(), set_up.status.kept()),
                (
                    ExchangeKind::Handshake,
                    "QUIC handshake web.test (h3)",
                    "QUIC v1"
                )
            );
            // A round trip and a half of a way, and what the programs take for it.
            let round_trip_us = set_up.round_trip_ns.unwrap() / US;
            assert!(
                (20_000..22_000).contains(&round_trip_us),
                "{round_trip_us} us at {doors:?}"
            );
            for (one, (asked_us, answered_us)) in exchanges[1..].iter().zip(&session.calls_us) {
                let at = |us: u64| (FIRST_US + us) * US;
                if doors.contains(&CLIENT) {
                    assert!(one.asked_ns().unwrap().abs_diff(at(*asked_us)) <= 200 * US);
                    assert!(one.end_ns().unwrap().abs_diff(at(*answered_us)) <= 200 * US);
                }
                if doors.contains(&SERVER) {
                    let (_, arrived) = one.request.arrived.unwrap();
                    let (left, _) = one.response.as_ref().unwrap().left.unwrap();
                    let work_us = (left - arrived) / US;
                    assert!((4_800..5_500).contains(&work_us), "{work_us} us");
                }
            }
            let accounts = builder.take_quic_accounts();
            assert_eq!(accounts.len(), 1);
        }
    }
}

#[test]
fn without_secrets_no_request_is_invented() {
    let plan = plan(6);
    let session = run_quic_session(&plan);
    for doors in [&[CLIENT][..], &[SERVER], &[CLIENT, SERVER]] {
        let (exchanges, unknown, _) = seen(&session, plan.transit_us, doors, false);
        assert_eq!(exchanges.len(), 1, "its set-up alone");
        assert_eq!(unknown.sealed_quic, 1);
        assert!(unknown.lines()[0].ends_with("its contents were not read"));
    }
}

#[test]
fn a_server_that_asks_to_try_again_or_speaks_something_else_is_seen() {
    let again = QuicSessionPlan {
        has_retry: true,
        ..plan(2)
    };
    let session = run_quic_session(&again);
    let (exchanges, ..) = seen(&session, again.transit_us, &[CLIENT], true);
    assert_eq!(words(&exchanges), expected(2));
    let refused = QuicSessionPlan {
        protocols: [b"doq", b"h3"],
        ..plan(1)
    };
    let session = run_quic_session(&refused);
    let (exchanges, unknown, _) = seen(&session, refused.transit_us, &[CLIENT], false);
    assert_eq!(
        words(&exchanges),
        ["\"QUIC handshake web.test (doq)\" \"alert 120\""]
    );
    assert_eq!(
        (exchanges[0].void, unknown.sealed_quic),
        (Some("its connection was refused"), 0)
    );
}

#[test]
fn whatever_is_lost_in_transit_is_sent_again_and_counted_once() {
    let whole = run_quic_session(&plan(4)).datagrams.len();
    for lost in 0..whole {
        let plan = QuicSessionPlan {
            lost: vec![lost],
            ..plan(4)
        };
        let session = run_quic_session(&plan);
        for doors in [&[CLIENT][..], &[SERVER], &[CLIENT, SERVER]] {
            // Of a client whose first packet never arrived, the second one begins the connection there.
            let (exchanges, ..) = seen(&session, plan.transit_us, doors, true);
            assert_eq!(
                words(&exchanges),
                expected(4),
                "{lost} of {whole} lost, at {doors:?}"
            );
            let calls = exchanges
                .iter()
                .filter(|one| one.kind == ExchangeKind::Call);
            for (one, (asked_us, answered_us)) in calls.zip(&session.calls_us) {
                if doors.contains(&CLIENT) {
                    let took_us = (one.end_ns().unwrap() - one.asked_ns().unwrap()) / US;
                    assert!(
                        took_us.abs_diff(answered_us - asked_us) <= 300,
                        "{took_us} us, {lost} lost at {doors:?}: {asked_us} {answered_us} {one:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_server_that_is_not_there_answers_nothing() {
    let plan = QuicSessionPlan {
        lost: (0..1000).collect(),
        ..plan(1)
    };
    let session = run_quic_session(&plan);
    let (exchanges, ..) = seen(&session, plan.transit_us, &[CLIENT], true);
    assert_eq!(exchanges.len(), 1);
    assert_eq!(
        (exchanges[0].void, exchanges[0].is_unopened),
        (Some("nothing answered its connection"), true)
    );
    assert!(exchanges[0].connect_again >= 2);
}
