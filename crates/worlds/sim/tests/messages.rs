//! An application that is no endpoint: messages over connections, in virtual time.

mod common;

use common::close;
use stackline_core::plan::{Plan, Stack};
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::NodeIndex;
use stackline_proto::pup;
use stackline_sim::messages::{Happening, MessageNetwork};
use stackline_sim::{CAPABILITIES, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};

const SECOND: u64 = 1_000_000_000;

/// What a text declares: its network, and the stack of its first part.
fn plan(text: &str) -> Plan {
    let stacks = stack_tables();
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let checked = check(
        text,
        &CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        &Overrides::default(),
    );
    checked
        .plan
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn messages(link: &str, stack: &str) -> (MessageNetwork<u32, ()>, Stack) {
    let text = format!(
        "network wan {{ host a, b; link a - b {link}; }} 1 from a to b rr 1*1 over {stack} across wan;"
    );
    let plan = plan(&text);
    (
        MessageNetwork::new(&plan.networks[0], Seed::root(1), (), true),
        plan.measurements[0].parts[0].stack.clone(),
    )
}

#[test]
fn messages_arrive_whole_in_order_at_the_links_rate() {
    let (mut world, stack) = messages("10 Mbit/s 10 ms", "tcp");
    let connection = world
        .connect(NodeIndex(0), NodeIndex(1), [&stack; 2])
        .unwrap();
    for number in 0..100 {
        world.send(connection, PairSide::Initiator, 50_000, number);
    }
    let mut came = Vec::new();
    let mut last = Instant(0);
    while let Some((at, happening)) = world.next(Instant(60 * SECOND)).unwrap() {
        if let Happening::Arrived {
            side: PairSide::Responder,
            message,
            ..
        } = happening
        {
            came.push(message);
            last = at;
        }
    }
    assert_eq!(came, (0..100).collect::<Vec<_>>());
    // 5 MB with headers of 52 in 1500 bytes, and a handshake and a slow start of some round trips.
    close(
        last.0 as f64 / 1e9,
        5e6 * 8.0 * 1500.0 / 1448.0 / 10e6 + 0.06,
        0.02,
    );
}

#[test]
fn who_does_not_read_stops_the_sender_and_goes_on_later() {
    let (mut world, stack) = messages(
        "100 Mbit/s 1 ms",
        "tcp(send_buffer = 64 KiB, receive_buffer = 64 KiB)",
    );
    let connection = world
        .connect(NodeIndex(0), NodeIndex(1), [&stack; 2])
        .unwrap();
    world.set_reading(connection, PairSide::Responder, false);
    for number in 0..20 {
        world.send(connection, PairSide::Initiator, 49_152, number);
    }
    let (mut sent, mut came) = (0, 0);
    while let Some((_, happening)) = world.next(Instant(5 * SECOND)).unwrap() {
        sent += u32::from(matches!(happening, Happening::Sent { .. }));
        came += u32::from(matches!(happening, Happening::Arrived { .. }));
    }
    assert!(
        (2..6).contains(&sent) && came == 0,
        "{sent} sent, {came} came"
    );
    world.set_reading(connection, PairSide::Responder, true);
    while let Some((_, happening)) = world.next(Instant(10 * SECOND)).unwrap() {
        came += u32::from(matches!(happening, Happening::Arrived { .. }));
    }
    assert_eq!(came, 20);
}

#[test]
fn losses_are_repaired_and_traced() {
    let (mut world, stack) = messages("10 Mbit/s 10 ms loss 2%", "tcp");
    let connection = world
        .connect(NodeIndex(0), NodeIndex(1), [&stack; 2])
        .unwrap();
    for number in 0..50 {
        world.send(connection, PairSide::Initiator, 49_152, number);
    }
    let mut came = 0;
    while let Some((_, happening)) = world.next(Instant(60 * SECOND)).unwrap() {
        came += u32::from(matches!(happening, Happening::Arrived { .. }));
    }
    let again = world.take_traced().into_iter().filter(|traced| {
        matches!(
            traced.event,
            stackline_proto::tcp::TcpConnectionEvent::Again { .. }
        ) && traced.side == PairSide::Initiator
    });
    let (again, facts) = (
        again.count(),
        world.facts(connection, PairSide::Initiator).unwrap(),
    );
    assert_eq!(came, 50);
    // 1,700 segments at 2 %.
    assert!(
        (10..80).contains(&again) && facts.retransmits as usize >= again / 2,
        "{again}"
    );
}

#[test]
fn timers_come_in_their_order() {
    let (mut world, _) = messages("10 Mbit/s 10 ms", "tcp");
    for (at, token) in [(3, 30), (1, 10), (2, 20), (1, 11)] {
        world.set_timer(Instant(at * SECOND), token);
    }
    let mut came = Vec::new();
    while let Some((at, happening)) = world.next(Instant(10 * SECOND)).unwrap() {
        if let Happening::Timer(token) = happening {
            came.push((at.0 / SECOND, token));
        }
    }
    assert_eq!(came, [(1, 10), (1, 11), (2, 20), (3, 30)]);
}

#[test]
fn a_stack_that_is_no_stream_is_refused() {
    let (mut world, stack) = messages("10 Mbit/s 10 ms", "udp");
    assert!(
        world
            .connect(NodeIndex(0), NodeIndex(1), [&stack; 2])
            .unwrap_err()
            .message
            .contains("over tcp")
    );
}

#[test]
fn messages_over_pup_arrive_whole_and_in_order_also_where_packets_are_lost() {
    for (line, most) in [("1 Mbit/s 5 ms", 3.0), ("1 Mbit/s 5 ms loss 5%", 30.0)] {
        let (mut world, _) = messages(line, "tcp");
        let options = pup::PupOptions {
            packet: 200,
            receive_buffer: 2000,
            ..pup::PupOptions::default()
        };
        let connection = world
            .connect_pup(NodeIndex(0), NodeIndex(1), options)
            .unwrap();
        (0..1000).for_each(|number| {
            world.send(
                connection,
                PairSide::Initiator,
                100 + u64::from(number % 7),
                number,
            )
        });
        world.send(connection, PairSide::Responder, 5000, 7000);
        let mut came = Vec::new();
        let mut last = Instant(0);
        while let Some((at, happening)) = world.next(Instant(60 * SECOND)).unwrap() {
            if let Happening::Arrived { message, .. } = happening {
                came.push(message);
                last = at;
            }
        }
        came.retain(|message| *message != 7000);
        assert_eq!(came, (0..1000).collect::<Vec<_>>());
        // 103 KB in packets of 200 bytes with 50 of headers, a window of 2000 bytes and 10 ms there and back: at least 1.04 s.
        assert!(
            (1.03..most).contains(&(last.0 as f64 / 1e9)),
            "{line}: {last}"
        );
    }
}

/// Packets of 2000 messages of 100 bytes to a reader that takes one a millisecond.
fn packets_of_a_slow_reader(options: &str) -> u64 {
    let (mut world, stack) = messages(
        "10 Mbit/s 1 ms",
        &format!("tcp(receive_buffer = 4 KiB, nodelay{options})"),
    );
    let connection = world
        .connect(NodeIndex(0), NodeIndex(1), [&stack; 2])
        .expect("a path leads there");
    (0..2000).for_each(|number| world.send(connection, PairSide::Initiator, 100, number));
    let mut came = 0;
    while let Some((at, happening)) = world.next(Instant(60 * SECOND)).expect("time goes on") {
        match happening {
            Happening::Arrived { .. } => {
                came += 1;
                world.set_reading(connection, PairSide::Responder, false);
                world.set_timer(Instant(at.0 + SECOND / 1000), 0);
            }
            Happening::Timer(_) => world.set_reading(connection, PairSide::Responder, true),
            _ => {}
        }
    }
    assert_eq!(came, 2000);
    world.counters()[0].packets
}

#[test]
fn silly_windows_make_small_segments_of_a_slow_readers_stream() {
    let (usual, silly) = (
        packets_of_a_slow_reader(""),
        packets_of_a_slow_reader(", silly_windows"),
    );
    assert!(silly > 5 * usual, "{usual} {silly}");
}
