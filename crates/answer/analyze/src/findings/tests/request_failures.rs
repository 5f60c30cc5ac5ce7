//! Failures name the programs of both ends and the port, and what failed because of another failure is its consequence.

use super::request_account::nothing;
use super::requests::{Planted, found, table, ten};
use super::*;
use stackline_events::{EventValue, unit_ids};

/// The findings of requests with a connection each, whose servers listen at these ports.
fn found_at(requests: &[Planted], ports: &[u16]) -> Vec<Finding> {
    let requests: Vec<Planted> = requests
        .iter()
        .map(|one| Planted {
            is_apart: true,
            ..one.clone()
        })
        .collect();
    let flows = requests.iter().zip(ports).enumerate();
    let flows = flows.map(|(number, (one, port))| RunFlow {
        id: number as u32 + 1,
        hosts: (one.client.into(), one.server.into()),
        service: format!("{}:{port}", one.server),
        ..RunFlow::default()
    });
    let given = Given {
        index: Index {
            flows: flows.collect(),
            ..Index::default()
        },
        events: table(&requests),
        ..nothing()
    };
    diagnose(&given.input())
}

/// Requests of curl at a proxy, each with one of the proxy's own at another server: of each ten the first three fail so.
fn proxied(child: &Planted, parent: &Planted) -> (Vec<Planted>, Vec<u16>) {
    let (mut requests, mut ports) = (Vec::new(), Vec::new());
    for at in 0..10 {
        let end_ms = 1_000 + 100 * at;
        let front = match at < 3 {
            true => parent.clone(),
            false => Planted::new(0, &[("there", 0), ("work", 2), ("back", 0)]),
        };
        let back = match at < 3 {
            true => child.clone(),
            false => Planted::new(0, &[("there", 0), ("work", 1), ("back", 0)]),
        };
        let unit = unit_ids::unit(requests.len() as u32 + 1, 0);
        requests.push(Planted {
            client: "here",
            server: "here",
            programs: Some(("curl", "nginx")),
            end_ms,
            ..front
        });
        requests.push(Planted {
            client: "here",
            server: "here",
            programs: Some(("nginx", if back.is_unopened { "" } else { "python3" })),
            end_ms: end_ms - 1,
            parent: Some(unit),
            ..back
        });
        ports.extend([80, 8000]);
    }
    (requests, ports)
}

fn bad_gateway() -> Planted {
    Planted {
        status: "502",
        ..Planted::new(0, &[("there", 0), ("work", 2), ("back", 0)])
    }
}

fn sentences(found: &[Finding]) -> Vec<(&'static str, &str)> {
    let failures = found.iter().filter(|one| one.takes.is_none());
    failures
        .map(|one| (one.kind, one.sentence.as_str()))
        .collect()
}

#[test]
fn a_reset_of_the_back_end_is_the_cause_of_the_proxys_502() {
    let reset = Planted {
        unknown: Some("the server reset its connection"),
        gave_up: true,
        bytes: (100, 0),
        ..Planted::new(0, &[("there", 0), ("work", 1)])
    };
    let (requests, ports) = proxied(&reset, &bad_gateway());
    let found = found_at(&requests, &ports);
    assert_eq!(
        sentences(&found),
        [(
            "server_ends_connection",
            "python3 (port 8000) reset 3 of 10 requests from nginx, which answered curl with 502"
        )]
    );
}

#[test]
fn an_answer_that_is_passed_on_is_of_who_gave_it() {
    let error = Planted {
        status: "500",
        ..Planted::new(0, &[("there", 0), ("work", 1), ("back", 0)])
    };
    let (requests, ports) = proxied(&error, &bad_gateway());
    let found = found_at(&requests, &ports);
    assert_eq!(
        sentences(&found),
        [(
            "failed_requests",
            "python3 (port 8000) answered 3 of 10 requests from nginx with 500 (3), which answered curl with 502"
        )]
    );
    // What failed with nothing behind it is the proxy's own.
    let (mut requests, ports) = proxied(&error, &bad_gateway());
    requests[1].parent = None;
    let found = found_at(&requests, &ports);
    assert!(
        found[0].sentence.ends_with("; 1 more elsewhere"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn nothing_that_listens_is_named_by_its_port_and_who_tried() {
    let refused = Planted {
        protocol: "TCP",
        status: "",
        is_unopened: true,
        unknown: Some("its connection was refused"),
        gave_up: true,
        bytes: (0, 0),
        ..Planted::new(0, &[("work", 0)])
    };
    let (requests, ports) = proxied(&refused, &bad_gateway());
    // Only the requests that are refused go to that port.
    let ports: Vec<u16> = requests
        .iter()
        .zip(ports)
        .map(|(one, port)| if one.is_unopened { 18_012 } else { port })
        .collect();
    let found = found_at(&requests, &ports);
    assert_eq!(
        sentences(&found),
        [(
            "unanswered_requests",
            "here:18012 refused 3 of 3 connections from nginx, which answered curl with 502; nothing is listening there"
        )]
    );
}

#[test]
fn deadlines_are_one_failure_whoever_sees_them_first() {
    let call = |status: &'static str, unknown: Option<&'static str>, ms: i64| Planted {
        protocol: "gRPC",
        name: "/shop.Stock/Get",
        status,
        unknown,
        gave_up: unknown.is_some(),
        bytes: (49, if unknown.is_some() { 0 } else { 100 }),
        programs: Some(("client", "server")),
        ..Planted::new(0, &[("there", 0), ("work", ms), ("back", 0)])
    };
    let mut requests = Vec::new();
    let mut end_ms = 1_000;
    for at in 0..30 {
        let (one, ms) = match (at % 3, at % 2) {
            (2, 0) => (call("grpc-status 4", None, 152), 152),
            (2, _) => (
                call("", Some("its stream was reset before its response"), 155),
                155,
            ),
            _ => (call("grpc-status 0", None, 1), 1),
        };
        end_ms += ms + 1;
        requests.push(Planted { end_ms, ..one });
    }
    let all = found_at(&requests, &[50_051; 30]);
    let failures: Vec<&Finding> = all
        .iter()
        .filter(|one| one.kind == "unanswered_requests" || one.kind == "failed_requests")
        .collect();
    assert_eq!(failures.len(), 1, "{all:?}");
    assert_eq!(
        failures[0].sentence,
        "10 of 30 calls from client on a to server on b (port 50051) exceeded their deadline of 150 ms: 99 % of the time"
    );
    assert!(all.iter().all(|one| one.kind != "client_backs_off"));
}

#[test]
fn a_lookup_names_the_name_server_and_the_network_to_it() {
    let page = Planted::new(1_400, &[("lookup", 182), ("there", 1), ("back", 1)]);
    let question = |parts: &[(&'static str, i64)]| Planted {
        protocol: "DNS",
        server: "dns",
        programs: Some(("curl", "")),
        ..Planted::new(1_398, parts)
    };
    let sentence =
        |parts: &[(&'static str, i64)]| found(&[page.clone(), question(parts)])[0].sentence.clone();
    let far = sentence(&[("there", 90), ("work", 1), ("back", 90)]);
    assert_eq!(
        far,
        "a looks up the server's address at dns: 99 % of the time, 182 ms each; each lookup spends 180 ms on the round trip"
    );
    let slow = sentence(&[("there", 1), ("work", 179), ("back", 1)]);
    assert!(slow.ends_with("182 ms each"), "{slow}");
}

#[test]
fn a_server_of_this_machine_that_was_not_traced_is_named_by_its_process() {
    let call = Planted {
        is_callers: Some(true),
        ..Planted::new(0, &[("there", 1), ("work", 50), ("back", 1)])
    };
    let untraced = found(&ten(&call));
    assert_eq!(untraced[0].kind, "server_takes");
    let attempts = format!("{:?}", untraced[0]);
    assert!(attempts.contains("`stackline trace --pid 7`"), "{attempts}");
    let traced = Planted {
        work: vec![(2, 1_000_000)],
        ..call
    };
    let all = format!("{:?}", found(&ten(&traced)));
    assert!(!all.contains("--pid"), "{all}");
}

/// A connection that waits to be accepted has no program yet: it is the one that serves others at its port.
#[test]
fn whose_connection_was_not_accepted_waits_for_the_program_of_its_port() {
    let given_up = |end_ms, server| Planted {
        bytes: (100, 0),
        unknown: Some("nothing answered it"),
        gave_up: true,
        programs: Some(("curl", server)),
        ..Planted::new(end_ms, &[("there", 1), ("work", 499)])
    };
    let requests = [
        given_up(1500, "httpd"),
        given_up(2500, ""),
        given_up(3500, "httpd"),
        given_up(4500, ""),
    ];
    let found = found_at(&requests, &[80; 4]);
    assert_eq!(found[0].kind, "unanswered_requests", "{found:?}");
    let sentence = &found[0].sentence;
    assert!(
        sentence.starts_with("httpd on b (port 80) did not answer 4 of 4 requests"),
        "{sentence}"
    );
}

/// A client that does not accept a certificate ends the handshake: it, not the server, is named.
#[test]
fn a_client_that_ends_a_handshake_is_named() {
    let handshake = |status| Planted {
        protocol: "TLS",
        name: "handshake",
        status,
        programs: Some(("curl", "openssl")),
        ..Planted::new(0, &[("there", 1), ("work", 1)])
    };
    let by_client = found(&ten(&handshake("client alert 48")));
    assert_eq!(by_client[0].kind, "failed_requests", "{by_client:?}");
    let wanted = "curl on a ended 10 of 10 handshakes with openssl on b: client alert 48";
    assert!(by_client[0].sentence.starts_with(wanted), "{by_client:?}");
    assert!(by_client[0].sentence.contains("certificate authority"));
    let by_server = found(&ten(&handshake("alert 40")));
    let wanted = "openssl on b answered 10 of 10 requests";
    assert!(by_server[0].sentence.starts_with(wanted), "{by_server:?}");
}

/// Servers that end are found before what that does to requests; a daemon's first process and the traced program's own exit code are
/// no failures.
#[test]
fn programs_that_end_come_first() {
    let reset = Planted {
        unknown: Some("the server reset its connection"),
        ..Planted::new(0, &[])
    };
    let with = |ends: &[(&str, Option<i64>, Option<i64>, i64)]| {
        let mut events = table(&ten(&reset));
        for (program, code, signal, is_last) in ends {
            let row = [
                (*program).into(),
                77.into(),
                (*code).into(),
                (*signal).into(),
                (*is_last).into(),
            ];
            events.push("PROGRAM_END", "b", 1_100 * MS, &row);
        }
        of_events(&events)
    };
    let killed = with(&[("httpd", None, Some(9), 0), ("curl", Some(56), None, 1)]);
    assert_eq!(killed[0].kind, "program_ended");
    let wanted = "httpd (process 77) on b ended with signal 9 before the trace did";
    assert_eq!(killed[0].sentence, wanted);
    assert_eq!(killed[1].kind, "server_ends_connection");
    for harmless in [
        ("nginx", Some(0), None, 0),
        ("timeout", Some(124), None, 1),
        ("wrk", None, Some(2), 1),
    ] {
        assert_eq!(with(&[harmless])[0].kind, "server_ends_connection");
    }
    assert_eq!(
        with(&[("curl", None, Some(11), 1)])[0].kind,
        "program_ended"
    );
}

/// Requests that no program has read, on a machine whose programs are traced: waiting longer would not help.
#[test]
fn requests_that_nobody_read_are_not_worth_waiting_for() {
    let given_up = |server| Planted {
        bytes: (100, 0),
        unknown: Some("nothing answered it"),
        gave_up: true,
        client: "here",
        server,
        programs: Some(("curl", "")),
        ..Planted::new(0, &[("there", 0), ("work", 499)])
    };
    let advice = |server| {
        let mut events = table(&ten(&given_up(server)));
        // The client's process is known, the server's is not.
        for unit in 0..10 {
            let row = [unit.into(), 100.into(), EventValue::Absent, 1.into()];
            events.push("REQUEST_PROCESS", "here", 1_000 * MS, &row);
        }
        format!("{:?}", of_events(&events)[0].tries)
    };
    assert!(advice("here").contains("accepts or reads nothing"));
    assert!(!advice("here").contains("wait longer"));
    assert!(!advice("b").contains("already given up"));
}
