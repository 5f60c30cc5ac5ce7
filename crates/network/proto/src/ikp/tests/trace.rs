//! Packet by packet: which packet leaves when, as the protocol is described. Times in us; the path takes 100.

use super::world::{Act, START, World};
use crate::blast::{BlastHeader, BlastPacketKind, BlastTimeout};
use crate::ikp::client::{IkpClientState, IkpFailure};
use crate::ikp::{Grants, IkpOptions};
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::Duration;

/// The paper's way: fixed intervals, here of 5 ms.
fn fixed(options: IkpOptions) -> IkpOptions {
    let interval = BlastTimeout::Fixed(Duration(5_000_000));
    IkpOptions {
        interval,
        patience: Duration(20_000_000),
        ..options
    }
}

/// All packets until the message has ended, on a path that loses the nth packet (from 0) if `loses` returns true for
/// it.
fn said(
    options: IkpOptions,
    message: u32,
    grants: Grants,
    script: &[Act],
    lost: &[usize],
) -> Vec<String> {
    let mut world = world(options, lost.to_vec());
    world.script = script.to_vec();
    world.send(message, grants);
    world.finish(1000);
    assert!(world.is_right() || world.client.state() != IkpClientState::Idle);
    world.log.take().unwrap_or_default()
}

fn world(
    options: IkpOptions,
    lost: Vec<usize>,
) -> World<impl FnMut(usize, &BlastHeader) -> Vec<Duration>> {
    let mut number = 0;
    let hand = move |_: usize, _: &BlastHeader| {
        number += 1;
        if lost.contains(&(number - 1)) {
            Vec::new()
        } else {
            alloc::vec![Duration(100_000)]
        }
    };
    let mut world = World::new(options, 1, hand);
    world.log = Some(Vec::new());
    world
}

const REPLY: Act = Act::Reply(32, 0, 0);
const NONE: Grants = Grants {
    readable: 0,
    writable: 0,
};

#[test]
fn a_small_call_is_one_packet_each_way() {
    assert_eq!(
        said(fixed(IkpOptions::v()), 32, NONE, &[REPLY], &[]),
        ["0 -> Send 1 round 0 +32", "100 <- Reply 1 round 0 +32"]
    );
}

#[test]
fn data_travels_with_the_message_and_with_the_reply() {
    let grants = Grants {
        readable: 5000,
        writable: 500,
    };
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            32,
            grants,
            &[Act::Reply(32, 0, 500)],
            &[]
        ),
        ["0 -> Send 1 round 0 +1056", "100 <- Reply 1 round 0 +532"]
    );
}

#[test]
fn a_lost_send_is_sent_again() {
    assert_eq!(
        said(fixed(IkpOptions::v()), 32, NONE, &[REPLY], &[0]),
        [
            "0 -> Send 1 round 0 +32",
            "5000 -> Send 1 round 1 +32",
            "5100 <- Reply 1 round 1 +32"
        ]
    );
}

#[test]
fn a_lost_reply_is_repeated_where_duplicates_are_suppressed() {
    let mut world = world(fixed(IkpOptions::once()), alloc::vec![1]);
    world.script = alloc::vec![REPLY];
    world.send(32, NONE);
    world.finish(100);
    assert_eq!(
        world.log.take().unwrap(),
        [
            "0 -> Send 1 round 0 +32",
            "100 <- Reply 1 round 0 +32",
            "5000 -> Send 1 round 1 +32",
            "5100 <- Reply 1 round 1 +32"
        ]
    );
    assert_eq!(
        (world.deliveries[&1], world.server.counters().repeated),
        (1, 1)
    );
}

#[test]
fn a_message_that_is_worked_on_is_pending() {
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            32,
            NONE,
            &[Act::Think(Duration(12_000_000)), REPLY],
            &[]
        ),
        [
            "0 -> Send 1 round 0 +32",
            "5000 -> Send 1 round 1 +32",
            "5100 <- Pending 1 round 1 +0",
            "10200 -> Send 1 round 2 +32",
            "10300 <- Pending 1 round 2 +0",
            "12100 <- Reply 1 round 2 +32"
        ]
    );
}

#[test]
fn a_pending_message_is_repeated_less_and_less_often() {
    let sends = said(
        IkpOptions {
            patience: Duration(4_000_000_000),
            ..IkpOptions::v()
        },
        32,
        NONE,
        &[Act::Think(Duration(60_000_000_000)), REPLY],
        &[],
    );
    // At 1 s each from some point on: not the 600 that the first interval would make.
    let sends = sends.iter().filter(|line| line.contains("Send")).count();
    assert!((60..90).contains(&sends), "{sends}");
}

#[test]
fn a_move_to_is_a_blast_and_one_answer() {
    let grants = Grants {
        readable: 0,
        writable: 3000,
    };
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            32,
            grants,
            &[Act::To(0, 3000), REPLY],
            &[]
        ),
        [
            "0 -> Send 1 round 0 +32",
            "100 <- Data 0.0 packet 0",
            "100 <- Data 0.0 packet 1",
            "100 <- Data 0.0 packet 2",
            "200 -> Answer 0.0 packet 0",
            "300 <- Reply 1 round 0 +32"
        ]
    );
}

#[test]
fn a_move_to_is_resent_from_the_first_missing_packet() {
    let grants = Grants {
        readable: 0,
        writable: 3000,
    };
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            32,
            grants,
            &[Act::To(0, 3000), REPLY],
            &[2]
        ),
        [
            "0 -> Send 1 round 0 +32",
            "100 <- Data 0.0 packet 0",
            "100 <- Data 0.0 packet 1",
            "100 <- Data 0.0 packet 2",
            "200 -> Answer 0.0 packet 1",
            "300 <- Data 0.1 packet 1",
            "300 <- Data 0.1 packet 2",
            "400 -> Answer 0.1 packet 0",
            "500 <- Reply 1 round 0 +32"
        ]
    );
}

#[test]
fn a_move_from_is_requested_and_comes_as_a_blast() {
    let grants = Grants {
        readable: 4000,
        writable: 0,
    };
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            1056,
            grants,
            &[Act::From(1000, 2000), Act::From(0, 1000), REPLY],
            &[]
        ),
        [
            "0 -> Send 1 round 0 +1056",
            "100 <- MoveFrom 1 round 0 +0",
            "200 -> Data 0.0 packet 0",
            "200 -> Data 0.0 packet 1",
            "300 <- Answer 0.0 packet 0",
            "300 <- MoveFrom 1 round 0 +0",
            "400 -> Data 1.0 packet 0",
            "500 <- Reply 1 round 0 +32"
        ]
    );
}

#[test]
fn lost_requests_are_repeated_and_late_answers_ignored() {
    let grants = Grants {
        readable: 4000,
        writable: 0,
    };
    // Lost: the first request, and the answer to the first range.
    assert_eq!(
        said(
            fixed(IkpOptions::v()),
            1056,
            grants,
            &[Act::From(0, 1000), Act::From(3000, 1000), REPLY],
            &[1, 6]
        ),
        [
            "0 -> Send 1 round 0 +1056",
            "100 <- MoveFrom 1 round 0 +0",
            "5000 -> Send 1 round 1 +1056",
            "5100 <- Pending 1 round 1 +0",
            "5100 <- MoveFrom 1 round 1 +0",
            "5200 -> Data 0.0 packet 0",
            "5300 <- Answer 0.0 packet 0",
            "5300 <- MoveFrom 1 round 0 +0",
            "5400 -> Data 1.0 packet 0",
            "5500 <- Reply 1 round 1 +32"
        ]
    );
}

#[test]
fn a_server_that_never_was_there_is_given_up() {
    let mut world = world(fixed(IkpOptions::v()), (0..100).collect());
    world.send(32, NONE);
    world.finish(100);
    assert_eq!(
        world.client.state(),
        IkpClientState::Failed(IkpFailure::Silent)
    );
    assert_eq!(
        (world.log.take().unwrap().len(), world.now - START),
        (4, Duration(20_000_000))
    );
    // It is over for this message only.
    world.send(32, NONE);
    assert_eq!(world.client.state(), IkpClientState::Sending);
}

#[test]
fn a_client_that_is_gone_ends_a_move() {
    let mut world = world(fixed(IkpOptions::v()), Vec::new());
    world.script = alloc::vec![Act::To(0, 3000), REPLY];
    world.send(
        32,
        Grants {
            readable: 0,
            writable: 3000,
        },
    );
    world.client.abandon();
    while world.step() {}
    assert_eq!(
        world.server.progress(1),
        crate::ikp::server::IkpMoveProgress::Failed
    );
    assert_eq!(world.now - START, Duration(20_100_000));
}

#[test]
fn the_next_message_ends_the_last() {
    let mut world = world(fixed(IkpOptions::once()), Vec::new());
    world.script = alloc::vec![Act::Think(Duration(1_000_000_000)), REPLY];
    world.send(32, NONE);
    world.step();
    world.client.abandon();
    world.script = alloc::vec![REPLY];
    world.send(32, NONE);
    world.finish(100);
    assert!(world.is_right());
    let late = world.server.reply(world.now, 1, 32, 0, 0);
    assert_eq!(late, Err(crate::ikp::server::IkpReplyError::Gone));
}

#[test]
fn a_message_that_is_ignored_is_given_up() {
    let mut world = world(fixed(IkpOptions::once()), Vec::new());
    world.send(32, NONE);
    world.step();
    world.server.ignore(1);
    world.finish(100);
    assert_eq!(
        world.client.state(),
        IkpClientState::Failed(IkpFailure::Silent)
    );
    // Not so the next one.
    world.script = alloc::vec![REPLY];
    world.send(32, NONE);
    world.finish(100);
    assert!(world.is_right());
}

#[test]
fn old_packets_are_of_no_transaction() {
    // Everything is doubled, and the copy comes three transactions later.
    let hand = |_: usize, _: &BlastHeader| alloc::vec![Duration(100_000), Duration(1_500_000)];
    let mut world = World::new(fixed(IkpOptions::v()), u32::MAX - 3, hand);
    let grants = Grants {
        readable: 2500,
        writable: 3000,
    };
    world.script = alloc::vec![Act::From(0, 2500), Act::To(0, 3000), REPLY];
    for _ in 0..12 {
        world.send(32, grants);
        world.finish(1000);
        assert!(world.is_right());
    }
    assert!(world.deliveries.values().all(|times| *times == 1));
    assert!(world.client.counters().stale > 20 && world.server.counters().stale > 20);
    assert_eq!(
        (
            world.client.counters().violations,
            world.server.counters().violations
        ),
        (0, 0)
    );
}

#[test]
fn nothing_moves_beyond_the_grants() {
    use crate::ikp::server::IkpReplyError;
    let mut world = world(fixed(IkpOptions::v()), Vec::new());
    world.send(
        32,
        Grants {
            readable: 100,
            writable: 200,
        },
    );
    world.step();
    assert_eq!(
        world.server.move_to(1, 1, 200),
        Err(IkpReplyError::Outside(200))
    );
    assert_eq!(
        world.server.move_to(1, u32::MAX, u32::MAX),
        Err(IkpReplyError::Outside(200))
    );
    assert_eq!(
        world.server.move_from(world.now, 1, 100, 1),
        Err(IkpReplyError::Outside(100))
    );
    assert_eq!(
        world.server.reply(world.now, 1, 32, 150, 51),
        Err(IkpReplyError::Outside(200))
    );
    assert_eq!(
        world.server.reply(world.now, 1, 1000, 0, 100),
        Err(IkpReplyError::Long(1056))
    );
    // A server that does not keep to it is refused by the client.
    let header = BlastHeader {
        blast: 1,
        length: 51,
        start: 50,
        index: 1,
        ..BlastHeader::new(BlastPacketKind::MoveFrom, 7)
    };
    world.put(1, &header, &[]);
    let data = BlastHeader {
        length: 201,
        start: 1 << 32,
        ..BlastHeader::new(BlastPacketKind::Data, 7)
    };
    world.put(1, &data, &[9; 201]);
    let reply = BlastHeader {
        blast: 1,
        length: 10,
        start: 195,
        ..BlastHeader::new(BlastPacketKind::Reply, 7)
    };
    world.put(1, &reply, &[9; 10]);
    world.step();
    assert_eq!(
        (world.client.counters().violations, world.client.state()),
        (3, IkpClientState::Sending)
    );
}
