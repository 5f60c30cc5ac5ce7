//! Each stack on loopback, in each application type that it carries: everything that one side sends is what the other gets.

#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;

use common::{measurement, run};
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::connection_group::{ConnectionGroup, GroupMember};
use stackline_live::stacks::contract::LiveConnectParameters;
use stackline_live::stacks::{find_stack, stack_tables};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Application types, with what the initiators and the responders receive of 20 units of 500 B, and calls.
const APPLICATIONS: [(&str, u64, u64, u64); 4] = [
    ("bulk_get 500*20", 20, 0, 0),
    ("bulk_put 500*20", 0, 20, 0),
    ("stream 500*20 constant(10 us)", 0, 20, 0),
    ("rr 500*20", 0, 0, 20),
];

/// Forms of stacks that go another way through the code because of their options.
const FORMS: [&str; 9] = [
    "tls(version = tls12)",
    "websocket(tls)",
    "http1(tls)",
    "http2(tls, window = 16 KiB, connection_window = 64 KiB)",
    "grpc(tls)",
    "quic(congestion = bbr, mtu = 1300)",
    "ftp(mode = active)",
    "ftp(classic)",
    "ftp(mode = active, classic, nagle)",
];

/// The stacks that this kernel has.
fn stacks() -> Vec<&'static str> {
    let mptcp =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let names = stack_tables().into_iter().map(|table| table.name);
    names.filter(|name| mptcp || *name != "mptcp").collect()
}

#[test]
fn what_one_side_sends_the_other_gets_over_every_stack() {
    let mut carried = 0;
    let forms = FORMS.into_iter().chain(["quic(datagrams)"]);
    for stack in stacks().into_iter().chain(forms) {
        for (application, got, put, calls) in APPLICATIONS {
            let text = format!("1 {application} over {stack};");
            if measurement(&text).is_none() {
                continue;
            }
            carried += 1;
            let [initiator, responder] = run(&text);
            let units = [&initiator, &responder].map(|side| side.record.received_units);
            assert_eq!(units, [got, put], "{text}");
            assert_eq!(initiator.calls.n(), calls, "{text}");
            assert!(!initiator.limited && !responder.limited, "{text}");
            assert!(initiator.elapsed_ns > 0, "{text}");
            assert!(
                !initiator.record.settings.is_empty(),
                "{text}: what was really used"
            );
            if calls == 0 {
                let bytes = initiator.record.received_bytes + responder.record.received_bytes;
                assert_eq!(bytes, 500 * 20, "{text}");
            }
        }
    }
    assert!(carried >= 88, "{carried} of them were carried out");
}

/// Ends with data on its way: whoever closes then must not lose it.
const PUSHES: &str = "
    procedure pushes {
        initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); } StopMeasurement; DisconnectRequest; }
        responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); } AwaitDisconnectIndication; }
    }
    procedure pulls {
        initiator { ConnectRequest; StartMeasurement; repeat count { AwaitDataIndication(unit); } StopMeasurement; DisconnectRequest; }
        responder { AwaitConnectIndication; repeat count { DataRequest(unit); } AwaitDisconnectIndication; }
    }
    procedure mixed {
        initiator {
            ConnectRequest; StartMeasurement;
            repeat count { DataRequest(unit); RPCCall(unit, unit); AwaitDataIndication(unit); }
            StopMeasurement; DisconnectRequest;
        }
        responder {
            AwaitConnectIndication;
            repeat count { AwaitDataIndication(unit); RPCAwaitCallInd(unit); RPCReturn(unit); DataRequest(unit); }
            AwaitDisconnectIndication;
        }
    }";

#[test]
fn data_that_is_sent_last_arrives_over_every_reliable_stack() {
    let reliable = |name: &str| find_stack(name).is_some_and(|stack| stack.table().reliable);
    let forms = FORMS.into_iter().chain([
        "tls(resume)",
        "tls(resume, early_data)",
        "websocket(tls, resume)",
        "websocket(tls, resume, early_data)",
    ]);
    for stack in stacks()
        .into_iter()
        .filter(|name| reliable(name))
        .chain(forms)
    {
        for (what, bytes, units) in [
            ("pushes 65536*64", [0, 64 << 16], [0, 64]),
            ("pushes 4194304*1", [0, 4 << 20], [0, 1]),
            ("pulls 65536*64", [64 << 16, 0], [64, 0]),
            ("mixed 20000*20", [20 * 20_000; 2], [20; 2]),
        ] {
            let text = format!("{PUSHES} 1 {what} over {stack};");
            if measurement(&text).is_none() {
                continue;
            }
            let sides = run(&text);
            let seen = [&sides[0].record, &sides[1].record];
            assert_eq!(
                seen.map(|side| side.received_bytes),
                bytes,
                "{what} over {stack}"
            );
            assert_eq!(
                seen.map(|side| side.received_units),
                units,
                "{what} over {stack}"
            );
        }
        let text = format!("{PUSHES} 1 timelimit 0.05 pushes 65536 over {stack};");
        if measurement(&text).is_some() {
            let [initiator, responder] = run(&text);
            let (sent, got) = (initiator.record.sent_bytes, responder.record.received_bytes);
            assert!(
                sent > 0 && sent == got,
                "{sent} sent and {got} received over {stack}"
            );
        }
    }
}

#[test]
fn connections_come_and_go_over_every_stack() {
    for stack in stacks().into_iter().chain(FORMS) {
        let text = format!("1 connect_disconnect 0*10 over {stack};");
        if measurement(&text).is_some() {
            let [initiator, _] = run(&text);
            assert_eq!(initiator.connects.n(), 10, "{text}");
        }
    }
}

#[test]
fn pairs_are_summed_and_each_has_its_own_sizes() {
    for over in ["tcp", "tcp(threads = 2)", "unix", "udp"] {
        let text = format!("1 parallel over {over}: 5 rr uniform(10, 900)*30;");
        let [initiators, responders] = run(&text);
        assert_eq!(initiators.calls.n(), 150, "{over}");
        assert!(initiators.span_ns >= initiators.elapsed_ns, "{over}");
        assert!(responders.elapsed_ns > 0, "{over}");
        let text = format!("1 parallel over {over}: 5 bulk_put uniform(10, 900)*30;");
        let [initiators, responders] = run(&text);
        // Over udp loopback keeps what fits the receiver's buffer, which 30 of these do.
        assert_eq!(
            (initiators.record.sent_units, initiators.record.sent_bytes),
            (
                responders.record.received_units,
                responders.record.received_bytes
            ),
            "{over}"
        );
        assert_eq!(responders.record.received_units, 150, "{over}");
    }
}

/// Stacks whose pairs can share a connection, with four pairs on each.
fn shared() -> Vec<String> {
    let tables = stack_tables().into_iter();
    let shared = tables.filter(|table| table.shares_connections && !table.far_end);
    let mut forms: Vec<_> = shared
        .map(|table| format!("{}(streams = 4)", table.name))
        .collect();
    assert_eq!(forms.len(), 4, "http2, grpc, quic, http3: {forms:?}");
    forms.push("http2(tls, streams = 4)".into());
    forms.push("http2(streams = 4, window = 16 KiB, connection_window = 64 KiB)".into());
    forms
}

#[test]
fn pairs_that_share_a_connection_get_what_their_own_peers_send() {
    for over in shared() {
        for (application, gets, puts, calls) in [
            ("rr uniform(10, 900)*30", 0, 0, 300),
            ("rr uniform(10, 90000)*5", 0, 0, 50),
            ("bulk_put uniform(10, 90000)*30", 0, 300, 0),
            ("bulk_get uniform(10, 90000)*30", 300, 0, 0),
            ("stream 500*30 constant(10 us)", 0, 300, 0),
        ] {
            let text = format!("1 parallel over {over}: 10 {application};");
            let [initiators, responders] = run(&text);
            let sides = [&initiators.record, &responders.record];
            assert_eq!(
                sides.map(|side| side.received_units),
                [gets, puts],
                "{text}"
            );
            assert_eq!(sides[0].sent_bytes, sides[1].received_bytes, "{text}");
            assert_eq!(sides[1].sent_bytes, sides[0].received_bytes, "{text}");
            assert_eq!(initiators.calls.n(), calls, "{text}");
        }
    }
}

#[test]
fn a_shared_connection_closes_with_its_last_pair_and_opens_again() {
    for over in shared() {
        let text = format!("1 parallel over {over}: 6 connect_disconnect 0*10;");
        let [initiators, _] = run(&text);
        assert_eq!(initiators.connects.n(), 60, "{text}");
        let text = format!("{PUSHES} 1 parallel over {over}: 6 pushes 20000*20;");
        let [initiators, responders] = run(&text);
        assert_eq!(initiators.record.sent_bytes, 6 * 20 * 20_000, "{text}");
        assert_eq!(responders.record.received_bytes, 6 * 20 * 20_000, "{text}");
        let text = format!("1 timelimit 0.05 parallel over {over}: 6 rr 32;");
        let [initiators, responders] = run(&text);
        assert!(initiators.limited && initiators.calls.n() > 0, "{text}");
        assert!(responders.elapsed_ns > 0, "{text}");
    }
}

#[test]
fn as_many_pairs_as_the_option_takes_go_on_at_once() {
    for name in ["http2", "grpc", "quic", "http3"] {
        let text = format!("1 parallel over {name}(streams = 128): 110 rr 32*3;");
        let [initiators, _] = run(&text);
        assert_eq!(initiators.calls.n(), 330, "{text}");
    }
}

/// The local addresses of the connections of five pairs, of which two each share one.
fn addresses_of_five(name: &str) -> Vec<std::net::SocketAddr> {
    let stack = find_stack(name).unwrap();
    let groups = ConnectionGroup::divide(5, 2);
    let other_side = ConnectionGroup::divide(5, 2);
    let parameters = |groups: &[Arc<ConnectionGroup>], replica: u32| LiveConnectParameters {
        stack: stack.table().stack(BTreeMap::new()),
        token: [7; 16],
        carries_data: true,
        replica,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        member: Some(GroupMember::new(
            Arc::clone(&groups[replica as usize / 2]),
            u16::try_from(replica % 2).unwrap(),
        )),
        foreign: Arc::default(),
    };
    let pairs = (0..5).map(|replica| {
        let mut listener = stack.listen(&parameters(&groups, replica)).unwrap();
        let address = format!("127.0.0.1:{}", listener.address());
        let responder = std::thread::spawn(move || {
            let mut buffers = memory();
            let mut connection = listener.accept(&mut buffers).unwrap();
            while connection.await_call(100, &mut buffers).unwrap() {
                connection.reply(100, &mut buffers).unwrap();
            }
        });
        let connector = stack.connector(&parameters(&other_side, replica), &address);
        (connector.unwrap(), responder)
    });
    let (connectors, responders): (Vec<_>, Vec<_>) = pairs.unzip();
    let mut buffers = memory();
    let mut connections = Vec::new();
    for mut connector in connectors {
        let mut connection = connector.connect(&mut buffers).unwrap();
        let called = connection.call(100, 100, Instant::default(), &mut buffers);
        assert!(called.unwrap());
        connections.push((connection, connector));
    }
    let addresses = connections
        .iter()
        .map(|(connection, _)| connection.addresses().unwrap().0);
    let addresses = addresses.collect();
    for (connection, connector) in connections {
        connection.disconnect(&mut buffers).unwrap();
        drop(connector);
    }
    for responder in responders {
        responder.join().unwrap();
    }
    addresses
}

#[test]
fn five_pairs_on_connections_of_two_have_three() {
    for name in ["http2", "grpc"] {
        let seen = addresses_of_five(name);
        assert_eq!((seen[0], seen[2]), (seen[1], seen[3]), "{name}");
        let different: std::collections::BTreeSet<_> = seen.into_iter().collect();
        assert_eq!(different.len(), 3, "{name}");
    }
}

#[test]
fn options_are_in_force_and_what_was_granted_is_said() {
    let settings = |over: &str| {
        let [initiator, _] = run(&format!("1 rr 32*5 over {over};"));
        initiator.record.settings
    };
    let [plain, nodelay] = ["tcp", "tcp(nodelay)"].map(settings);
    assert_ne!(plain["nodelay"], nodelay["nodelay"]);
    let reno = settings("tcp(congestion = reno)");
    assert_eq!(reno["congestion"], "reno");
    for (over, version) in [
        ("tls", "TLSv1_3"),
        ("tls(version = tls12)", "TLSv1_2"),
        ("http2(tls, version = tls12)", "TLSv1_2"),
    ] {
        assert_eq!(settings(over)["tls"], version, "{over}");
    }
    assert_eq!(settings("quic(mtu = 1300)")["mtu"], "1300 B");
}

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).unwrap()
}
