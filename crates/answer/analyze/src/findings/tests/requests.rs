//! Requests of programs that are not ours: each cause planted alone in a table of what a trace tells, and found first.

use super::*;
use stackline_events::{EventValue, unit_ids};

const PARTS: [&str; 11] = [
    "lookup",
    "connect",
    "handshake",
    "client",
    "hold",
    "there",
    "unread",
    "work",
    "sending",
    "back",
    "client_unread",
];

/// A request: who, when it ended, its parts in ms, and what is said beside.
#[derive(Clone, Default)]
pub(super) struct Planted {
    pub(super) protocol: &'static str,
    pub(super) client: &'static str,
    pub(super) server: &'static str,
    pub(super) end_ms: u64,
    pub(super) parts: Vec<(&'static str, i64)>,
    pub(super) work: Vec<(usize, i64)>,
    /// What the holders of locks did, as fields of LOCK_HOLDER.
    pub(super) holders: Vec<(usize, i64)>,
    pub(super) network: Vec<(usize, i64)>,
    pub(super) bytes: (i64, i64),
    /// How long the senders of both messages stood still, as fields of REQUEST_STALL.
    pub(super) stalls: Vec<(usize, i64)>,
    pub(super) stream_parts: i64,
    pub(super) parent: Option<i64>,
    pub(super) status: &'static str,
    pub(super) unknown: Option<&'static str>,
    /// It has times although nothing answered it: the client gave up.
    pub(super) gave_up: bool,
    /// What it is called, where it is not `GET /`, and how often it goes there and back.
    pub(super) name: &'static str,
    pub(super) rounds: i64,
    /// It has a connection of its own.
    pub(super) is_apart: bool,
    /// Whether the program that the trace is about made it, where that is known.
    pub(super) is_callers: Option<bool>,
    /// The programs of both ends, where these are not curl and httpd.
    pub(super) programs: Option<(&'static str, &'static str)>,
    /// It is a connection that was not set up.
    pub(super) is_unopened: bool,
}

impl Planted {
    pub(super) fn new(end_ms: u64, parts: &[(&'static str, i64)]) -> Self {
        let parts = parts.to_vec();
        let bytes = (100, 500);
        Self {
            protocol: "HTTP/1.1",
            status: "200",
            client: "a",
            server: "b",
            end_ms,
            parts,
            bytes,
            ..Self::default()
        }
    }
}

pub(super) fn table(requests: &[Planted]) -> EventTable {
    let mut table = EventTable::default();
    for (number, one) in requests.iter().enumerate() {
        let unit = EventValue::from(match one.is_apart {
            true => unit_ids::unit(number as u32 + 1, 0),
            false => number as i64,
        });
        let at_ns = one.end_ms * MS;
        let call = [
            unit,
            if one.is_unopened {
                "connection"
            } else {
                "call"
            }
            .into(),
            one.protocol.into(),
            1.into(),
            if one.is_unopened {
                "".into()
            } else if one.name.is_empty() {
                "GET /".into()
            } else {
                one.name.into()
            },
            one.status.into(),
        ];
        let (client, server) = one.programs.unwrap_or(("curl", "httpd"));
        let ends = [
            one.client.into(),
            one.server.into(),
            client.into(),
            server.into(),
        ];
        let sizes = [
            one.bytes.0.into(),
            one.bytes.1.into(),
            one.stream_parts.into(),
            one.unknown.map_or(EventValue::Absent, EventValue::from),
        ];
        table.push(
            "REQUEST",
            one.client,
            at_ns,
            &[&call[..], &ends, &sizes].concat(),
        );
        if one.unknown.is_some() && !one.gave_up {
            continue;
        }
        let part = |name: &str| {
            one.parts
                .iter()
                .find(|(of, _)| of == &name)
                .map(|(_, ms)| *ms * MS as i64)
        };
        let total: i64 = PARTS.iter().filter_map(|name| part(name)).sum();
        let mut times = vec![unit, total.into()];
        times.extend(PARTS.map(|name| EventValue::from(part(name))));
        times.push((2 * MS).into());
        times.push(one.rounds.max(1).into());
        table.push("REQUEST_TIME", one.client, at_ns, &times);
        let mut row = |keyword: &str, count: usize, values: &[(usize, i64)]| {
            if !values.is_empty() {
                let mut fields = vec![EventValue::from(0); count];
                fields[0] = unit;
                values
                    .iter()
                    .for_each(|(at, value)| fields[*at] = (*value).into());
                table.push(keyword, one.client, at_ns, &fields);
            }
        };
        row("REQUEST_NETWORK", 14, &one.network);
        row("REQUEST_STALL", 4, &one.stalls);
        row("REQUEST_WORK", 13, &one.work);
        row("LOCK_HOLDER", 13, &one.holders);
        if let Some(is_callers) = one.is_callers {
            let pids = [EventValue::from(100 + number as i64), 7.into()];
            let [client, server] = pids;
            let row = [unit, client, server, i64::from(is_callers).into()];
            table.push("REQUEST_PROCESS", one.client, at_ns, &row);
        }
        if let Some(parent) = one.parent {
            table.push(
                "REQUEST_PARENT",
                one.client,
                at_ns,
                &[unit, parent.into(), 980_000.into()],
            );
        }
    }
    table
}

pub(super) fn found(requests: &[Planted]) -> Vec<Finding> {
    of_events(&table(requests))
}

fn first(requests: &[Planted]) -> (&'static str, f64) {
    let found = found(requests);
    (found[0].kind, found[0].share)
}

/// Ten requests, each like this one, one after the other.
pub(super) fn ten(one: &Planted) -> Vec<Planted> {
    let all: i64 = one.parts.iter().map(|(_, ms)| ms).sum();
    (1..=10)
        .map(|at| Planted {
            end_ms: 1000 + at * (all as u64 + 50),
            ..one.clone()
        })
        .collect()
}

/// Causes, each planted alone, and the kind of finding that names it.
pub(super) fn planted_causes() -> Vec<(Planted, &'static str)> {
    let network = [("there", 1), ("back", 1)];
    let with = |more: &[(&'static str, i64)]| Planted::new(0, &[&network[..], more].concat());
    let work = |field: usize| Planted {
        work: vec![(field, 20 * MS as i64)],
        ..with(&[("work", 20)])
    };
    let network = |field: usize, part: &'static str| Planted {
        network: vec![(field, 18 * MS as i64)],
        ..with(&[(part, 18)])
    };
    vec![
        (with(&[("lookup", 20)]), "slow_lookup"),
        (with(&[("connect", 2)]), "connection_per_request"),
        (
            with(&[("connect", 1), ("handshake", 9)]),
            "handshake_per_request",
        ),
        (with(&[("unread", 20)]), "server_away"),
        (with(&[("work", 20)]), "server_takes"),
        (work(2), "server_computes"),
        (work(3), "server_no_core"),
        (work(4), "server_lock"),
        (work(5), "server_disk"),
        (work(6), "server_sleeps"),
        (work(8), "server_child"),
        (work(9), "server_stopped"),
        (work(10), "server_collects"),
        (with(&[("client_unread", 20)]), "client_reads_late"),
        (network(5, "hold"), "request_held"),
        (network(6, "sending"), "request_held"),
        (network(2, "hold"), "request_loss"),
        (network(8, "sending"), "request_window"),
        (network(11, "hold"), "client_pauses"),
        (network(13, "hold"), "server_takes"),
        (
            Planted {
                bytes: (100, 5_000_000),
                ..with(&[("sending", 400)])
            },
            "request_rate",
        ),
        (
            Planted {
                bytes: (100, 5_000_000),
                stalls: vec![(2, 300 * MS as i64)],
                ..with(&[("sending", 400)])
            },
            "request_sender_window",
        ),
        (
            Planted {
                bytes: (5_000_000, 100),
                stalls: vec![(1, 300 * MS as i64)],
                ..with(&[("hold", 400)])
            },
            "request_sender_window",
        ),
    ]
}

#[test]
fn each_cause_is_named_first() {
    for (planted, kind) in planted_causes() {
        let (first, share) = first(&ten(&planted));
        assert_eq!(first, kind);
        let all: i64 = planted.parts.iter().map(|(_, ms)| ms).sum();
        assert!(share > 0.4 && share <= 1.0, "{kind}: {share} of {all} ms");
    }
}

#[test]
fn of_healthy_requests_nothing_is_alleged() {
    let found = found(&ten(&Planted::new(
        0,
        &[("there", 5), ("work", 0), ("back", 5)],
    )));
    assert_eq!(
        found.iter().map(|one| one.kind).collect::<Vec<_>>(),
        ["healthy"]
    );
    assert!(
        found[0].sentence.contains("100 % is the network"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn set_up_is_no_network_in_words_as_it_is_none_in_the_table() {
    let one = Planted::new(0, &[("handshake", 9), ("there", 1), ("back", 2)]);
    let found = found(&ten(&one)[..1]);
    assert_eq!(found[0].kind, "healthy");
    let sentence = &found[0].sentence;
    assert!(
        sentence
            .contains("25 % is the network and 75 % security handshakes, logins or name lookups"),
        "{sentence}"
    );
}

#[test]
fn requests_that_wait_while_the_server_works_on_others_are_queued() {
    // Four come at once, each takes 20 ms, one after the other.
    let one = |at: i64| Planted {
        is_apart: true,
        ..Planted::new(
            1000 + 20 * (at as u64 + 1),
            &[("there", 1), ("unread", 20 * at), ("work", 19), ("back", 0)],
        )
    };
    let requests: Vec<Planted> = (0..4).map(one).collect();
    let found = found(&requests);
    assert_eq!(found[0].kind, "server_one_at_a_time");
    assert!(
        found[0].sentence.contains("1 at a time"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn a_wait_beyond_the_quickest_is_the_networks() {
    let mut requests = ten(&Planted::new(0, &[("there", 40), ("back", 1)]));
    requests[3].parts = vec![("there", 1), ("back", 1)];
    assert_eq!(first(&requests).0, "request_queue");
}

/// A request of 60 ms, in which five are made to a database, each 10 ms of way and nothing else.
pub(super) fn chain_of_five() -> Vec<Planted> {
    let outer = Planted {
        end_ms: 1060,
        work: vec![(2, 5 * MS as i64)],
        ..Planted::new(0, &[("there", 2), ("work", 56), ("back", 2)])
    };
    let inner = |at: u64| Planted {
        protocol: "RESP",
        client: "b",
        server: "c",
        end_ms: 1014 + 10 * at,
        parent: Some(0),
        is_apart: true,
        ..Planted::new(0, &[("there", 5), ("back", 5)])
    };
    [outer].into_iter().chain((0..5).map(inner)).collect()
}

#[test]
fn what_a_server_asks_others_is_their_time() {
    let requests = chain_of_five();
    let found = found(&requests);
    assert_eq!(found[0].kind, "chatty_requests");
    assert!(
        found[0].sentence.contains("5 requests from b to c"),
        "{}",
        found[0].sentence
    );
    assert!(
        (found[0].share - 50.0 / 60.0).abs() < 0.02,
        "{}",
        found[0].share
    );
}

#[test]
fn requests_without_an_answer_are_counted() {
    let mut requests = ten(&Planted::new(0, &[("there", 5), ("back", 5)]));
    requests[0].unknown = Some("nothing answered it");
    requests[1].unknown = Some("nothing answered it");
    assert_eq!(
        found(&requests)[0].kind,
        "healthy",
        "two of ten may have been under way in the end"
    );
    requests[2].unknown = Some("nothing answered it");
    let found = found(&requests);
    assert_eq!(found[0].kind, "unanswered_requests");
    assert!((found[0].share - 0.3).abs() < 1e-9);
}

#[test]
fn what_was_under_way_when_the_trace_ended_did_not_fail_unless_it_hung() {
    let under_way = |since_ms: u64, bytes: i64| Planted {
        unknown: Some("it was under way when the trace ended"),
        bytes: (100, bytes),
        ..Planted::new(since_ms, &[])
    };
    let with = |one: Planted| {
        let quick = ten(&Planted::new(0, &[("there", 5), ("back", 5)]));
        let last_ms = quick[9].end_ms;
        let more = (0..3).map(|_| Planted {
            end_ms: last_ms - one.end_ms,
            ..one.clone()
        });
        found(&quick.into_iter().chain(more).collect::<Vec<_>>())
    };
    // Downloads that went on, and requests that had just been made.
    for one in [under_way(600, 9_000), under_way(90, 0)] {
        assert_eq!(with(one)[0].kind, "healthy");
    }
    let hung: Vec<Planted> = [
        under_way(1, 0),
        Planted::new(9_000, &[("there", 5), ("back", 5)]),
    ]
    .into();
    let found = found(&hung);
    assert_eq!(found[0].kind, "unanswered_requests", "{found:?}");
}

#[test]
fn requests_that_are_given_up_are_waits() {
    let given_up = |end_ms| Planted {
        bytes: (100, 0),
        unknown: Some("nothing answered it"),
        gave_up: true,
        ..Planted::new(end_ms, &[("there", 1), ("work", 499)])
    };
    let requests = [
        given_up(1500),
        given_up(2000),
        Planted::new(2200, &[("there", 1), ("work", 198), ("back", 1)]),
    ];
    let found = found(&requests);
    assert_eq!(found[0].kind, "unanswered_requests");
    assert!((found[0].share - 1000.0 / 1200.0).abs() < 1e-9, "{found:?}");
    assert!(
        found[0].sentence.starts_with(
            "httpd on b did not answer 2 of 3 requests from curl on a; curl on a gives up"
        ),
        "{}",
        found[0].sentence
    );
    assert!(
        found[0]
            .sentence
            .ends_with("on each after 500 ms (83 % of the time in all); number retried: 2"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn an_answer_that_is_cut_off_is_not_given_up() {
    let cut = Planted {
        unknown: Some("the connection ended in the middle of it"),
        gave_up: true,
        bytes: (100, 5_000_000),
        ..Planted::new(9000, &[("there", 1), ("sending", 5000), ("back", 1)])
    };
    let found = found(&[cut, Planted::new(100, &[("there", 1), ("back", 1)])]);
    assert!(
        found.iter().all(|one| one.kind != "unanswered_requests"),
        "{found:?}"
    );
}

#[test]
fn a_client_that_waits_after_failures_backs_off() {
    let quick = |end_ms, status| Planted {
        status,
        ..Planted::new(end_ms, &[("there", 5), ("back", 5)])
    };
    let requests = [quick(1000, "503"), quick(1110, "503"), quick(1320, "200")];
    let found = found(&requests);
    // What failed comes before what only took time.
    assert_eq!(found[0].kind, "failed_requests");
    assert!(
        found[0]
            .sentence
            .starts_with("httpd on b answered 2 of 3 requests from curl on a with 503 (2)"),
        "{}",
        found[0].sentence
    );
    let found = &found[1..];
    assert_eq!(found[0].kind, "client_backs_off");
    assert!((found[0].share - 300.0 / 330.0).abs() < 1e-9, "{found:?}");
    assert!(
        found[0]
            .sentence
            .contains("curl on a waits before it retries failed attempts (503)"),
        "{}",
        found[0].sentence
    );
    assert!(
        found[0]
            .sentence
            .contains("2 times, 150 ms each, 200 ms at most"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn costs_add_up_and_say_what_would_be_left() {
    let found = found(&ten(&Planted {
        work: vec![(2, 30 * MS as i64)],
        ..Planted::new(0, &[("there", 5), ("work", 30), ("back", 5)])
    }));
    assert!((found[0].share - 0.75).abs() < 1e-9, "{found:?}");
    assert!(
        found[0]
            .takes
            .as_ref()
            .is_some_and(|takes| takes.gain().contains("100 ms instead of 400 ms")),
        "{found:?}"
    );
}

/// A statement of so many round trips of 10 ms, and nothing else.
fn statement(trips: i64) -> Planted {
    Planted {
        protocol: "PostgreSQL",
        name: "SELECT a FROM t WHERE b = ?",
        status: "SELECT 1",
        rounds: trips,
        ..Planted::new(0, &[("there", 5 * trips), ("back", 5 * trips)])
    }
}

/// Ten requests like this one, each right behind the one before.
fn in_a_row(one: &Planted) -> Vec<Planted> {
    let each: i64 = one.parts.iter().map(|(_, ms)| ms).sum();
    let at = |number: u64| Planted {
        end_ms: 1000 + number * each.unsigned_abs(),
        ..one.clone()
    };
    (1..=10).map(at).collect()
}

#[test]
fn round_trips_of_one_statement_are_named() {
    let mut requests = ten(&statement(3));
    requests.truncate(2);
    let found = found(&requests);
    assert_eq!(found[0].kind, "request_round_trips");
    assert!(
        found[0]
            .sentence
            .contains("take 3 round trips each for SELECT a FROM t WHERE b = ?"),
        "{}",
        found[0].sentence
    );
    // Two of three round trips of 10 ms.
    assert!(
        (found[0].share - 20.0 / 30.0).abs() < 0.02,
        "{}",
        found[0].share
    );
    let control = ten(&statement(1));
    assert_eq!(of_events(&table(&control[..2]))[0].kind, "healthy");
}

#[test]
fn many_statements_of_several_round_trips_are_chatty() {
    let requests = in_a_row(&statement(3));
    let found = found(&requests);
    assert_eq!(found[0].kind, "chatty_requests");
    assert!(
        found[0].sentence.contains("up to 10 requests from a to b")
            && found[0].sentence.contains("3 round trips"),
        "{}",
        found[0].sentence
    );
    assert!(found.iter().all(|one| one.kind != "request_round_trips"));
}

#[test]
fn a_statement_of_three_round_trips_is_no_queue_beside_one_of_one() {
    let mut requests = ten(&statement(1));
    requests.extend(
        ten(&Planted {
            end_ms: 0,
            ..statement(3)
        })
        .into_iter()
        .map(|one| Planted {
            end_ms: one.end_ms + 10_000,
            ..one
        }),
    );
    let found = found(&requests);
    assert!(
        found.iter().all(|one| one.kind != "request_queue"),
        "{found:?}"
    );
}

#[test]
fn errors_of_databases_and_caches_are_failures() {
    for (protocol, status, words) in [
        ("PostgreSQL", "ERROR 42P01", "no such table (3)"),
        (
            "MySQL",
            "ERROR 1213 (40001)",
            "another transaction came first (3)",
        ),
        ("RESP", "WRONGTYPE", "another kind of value (3)"),
    ] {
        let mut requests = ten(&Planted {
            protocol,
            status: "OK",
            ..Planted::new(0, &[("work", 50)])
        });
        requests[2..5]
            .iter_mut()
            .for_each(|one| one.status = status);
        let found = found(&requests);
        assert_eq!(found[0].kind, "failed_requests", "{found:?}");
        assert!(
            found[0]
                .sentence
                .starts_with("httpd on b answered 3 of 10 requests from curl on a with ")
                && found[0].sentence.contains(words),
            "{}",
            found[0].sentence
        );
    }
    let nil = ten(&Planted {
        protocol: "RESP",
        status: "nil",
        ..Planted::new(0, &[("work", 50)])
    });
    assert!(found(&nil).iter().all(|one| one.kind != "failed_requests"));
}

/// Redis is asked for one thing that takes 50 ms and fifteen that take 0.1 ms, all at once on one connection, then 100 ms later for
/// one that takes 45 ms.
fn pipeline(first_ms: i64) -> Vec<Planted> {
    let one = |name: &'static str, begin: u64, end: u64| Planted {
        protocol: "RESP",
        status: "OK",
        name,
        ..Planted::new(end, &[("work", (end - begin) as i64)])
    };
    let first = 1000 + first_ms.unsigned_abs();
    let mut all = vec![one("KEYS", 1000, first)];
    all.extend((1..16).map(|at| one("GET k:1", 1000, first + at)));
    all.push(one("SORT k:2", 2000, 2045));
    all
}

#[test]
fn what_is_pipelined_counts_the_time_in_which_any_is_under_way() {
    let found = found(&pipeline(50));
    // 65 ms for the pipeline and 45 ms for the last.
    let takes = found.iter().find(|one| one.kind == "server_takes").unwrap();
    assert!((takes.share - 1.0).abs() < 0.01, "{}", takes.share);
    let all = takes.takes.as_ref().unwrap();
    assert!((all.of_s - 0.110).abs() < 0.001, "{}", all.of_s);
}

#[test]
fn the_slow_one_in_front_is_named() {
    let slow = found(&pipeline(50));
    let behind = slow
        .iter()
        .find(|one| one.kind == "request_behind_slow")
        .unwrap();
    assert!(
        behind.sentence.starts_with(
            "15 requests from a to b wait behind KEYS on the same connection, 50.0 ms each"
        ),
        "{}",
        behind.sentence
    );
    assert!(
        (behind.share - 50.0 / 110.0).abs() < 0.01,
        "{}",
        behind.share
    );
    // What sets the connection up is no slow request.
    let mut first = pipeline(1);
    first[0].parts.push(("handshake", 50));
    assert!(
        found(&first)
            .iter()
            .all(|one| one.kind != "request_behind_slow")
    );
    // One that is slower than others of its name has a cause of its own.
    let mut alike = pipeline(50);
    alike.iter_mut().for_each(|one| one.name = "GET k:1");
    assert!(
        found(&alike)
            .iter()
            .all(|one| one.kind != "request_behind_slow")
    );
    // Where all of them are alike, nobody is to blame.
    assert!(
        found(&pipeline(1))
            .iter()
            .all(|one| one.kind != "request_behind_slow")
    );
}

#[test]
fn a_broker_is_not_blamed_for_who_answers() {
    let one = Planted {
        protocol: "NATS",
        name: "PUB orders.get",
        status: "message",
        // Its threads sleep between messages.
        work: vec![(6, 50 * MS as i64)],
        ..Planted::new(0, &[("there", 1), ("work", 50), ("back", 1)])
    };
    let found = found(&ten(&one));
    assert_eq!(found[0].kind, "responder_takes");
    assert!(
        found[0]
            .sentence
            .starts_with("the responder behind httpd on b is slow to answer PUB orders.get"),
        "{}",
        found[0].sentence
    );
    assert!(
        found.iter().all(|one| !one.kind.starts_with("server_")),
        "{found:?}"
    );
}
