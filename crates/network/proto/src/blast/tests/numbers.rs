//! Numbers that wrap, and positions that are large: blasts near 2^32, rounds beyond 2^16, streams near 2^32 and 2^64 bytes.

use super::path::Path;
use super::script::{MS, Script};
use crate::blast::bitmap::Bitmap;
use crate::blast::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, COMPLETE};
use crate::blast::{
    BlastArrival, BlastConnection, BlastExtent, BlastOptions, BlastOutput, BlastReceiver,
    BlastSender, BlastState, BlastStrategy, BlastTimeout,
};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

const STRATEGIES: [BlastStrategy; 4] = [
    BlastStrategy::Full,
    BlastStrategy::FullNak,
    BlastStrategy::Partial,
    BlastStrategy::Selective,
];
const NOW: Instant = Instant(1_000_000_000);

/// Walks what is left to send, everything arriving but every `lose`th packet; how many bytes were delivered.
fn walk(sender: &mut BlastSender, receiver: &mut BlastReceiver, lose: u64) -> u64 {
    walk_from(NOW, sender, receiver, lose)
}

fn walk_from(
    mut now: Instant,
    sender: &mut BlastSender,
    receiver: &mut BlastReceiver,
    lose: u64,
) -> u64 {
    let (mut sent, from) = (0_u64, receiver.delivered());
    for _ in 0..1_000_000 {
        while let Some(run) = sender.poll(now, 64) {
            for n in 0..run.count {
                sent += 1;
                if sent % lose > 0 {
                    let arrival = receiver.handle(now, &run.header(n, 0), run.span(n).1 as usize);
                    assert_ne!(arrival, BlastArrival::Refused);
                }
            }
            while let Some((answer, body)) = receiver.poll(now) {
                sender.handle(now, &answer, &body);
            }
            receiver.consume(receiver.delivered());
            let granted = receiver.delivered()..receiver.limit();
            assert!(
                receiver
                    .expected()
                    .take(100)
                    .all(|(at, _)| granted.contains(&at))
            );
            sender.check();
            receiver.check();
        }
        match sender.deadline(now) {
            Some((at, _)) => {
                assert!(at > now);
                now = at;
            }
            None => break,
        }
    }
    assert!(sender.is_idle());
    receiver.delivered() - from
}

fn pair(options: &BlastOptions) -> (BlastSender, BlastReceiver) {
    let receiver = BlastReceiver::new(options, 7);
    (BlastSender::new(options, 7, receiver.limit()), receiver)
}

#[test]
fn more_than_four_gibibytes_and_one_byte_arrive() {
    let bytes = (1 << 32) + 1;
    for strategy in STRATEGIES {
        let options = BlastOptions {
            buffer: 1 << 30,
            flight: 2,
            ..BlastOptions::blast(strategy, 1 << 16, 1 << 24)
        };
        let (mut sender, mut receiver) = pair(&options);
        sender.send(bytes);
        sender.finish();
        assert_eq!(
            walk(&mut sender, &mut receiver, 1001),
            bytes,
            "{strategy:?}"
        );
        assert!(receiver.ended());
        assert_eq!(
            (sender.acknowledged(), sender.counters().packets > 65_536),
            (bytes, true)
        );
    }
}

#[test]
fn a_stream_may_go_on_to_its_last_possible_byte() {
    for strategy in STRATEGIES {
        let options = BlastOptions {
            buffer: u64::MAX,
            flight: 3,
            ..BlastOptions::blast(strategy, 100, 1000)
        };
        let (mut sender, mut receiver) = pair(&options);
        let left = 12_345;
        sender.start_at(u32::MAX - 5, u64::MAX - left);
        receiver.start_at(u32::MAX - 5, u64::MAX - left);
        sender.send(u64::MAX);
        sender.finish();
        assert_eq!(walk(&mut sender, &mut receiver, 17), left, "{strategy:?}");
        assert!(receiver.ended());
    }
}

#[test]
fn numbers_of_blasts_wrap() {
    for options in [
        BlastOptions::saw(100),
        BlastOptions::window(100, 8),
        BlastOptions::blast(BlastStrategy::Selective, 100, 500),
    ] {
        let mut path = Path::new(
            [BlastOptions {
                flight: 5,
                ..options
            }; 2],
            {
                let mut sent = 0;
                move |_, _| {
                    sent += 1;
                    if sent % 7 == 0 {
                        Vec::new()
                    } else {
                        [Duration(MS), Duration(2 * MS)].to_vec()
                    }
                }
            },
        );
        path.open();
        path.ends
            .iter_mut()
            .for_each(|end| end.connection.start_at(u32::MAX - 3, 0));
        path.send(0, 5000);
        path.send(1, 3000);
        path.finish(10_000, || None);
        assert!(path.arrived(0, 5000) && path.arrived(1, 3000));
    }
}

#[test]
fn rounds_wrap_and_a_long_absence_is_tolerated() {
    let interval = BlastTimeout::Fixed(Duration(10 * MS));
    for strategy in STRATEGIES {
        // Away for so many intervals: some, more than half of the rounds there are, and all of them.
        for away in [300, 32_800, 49_000, 65_536] {
            let patience = Duration(u64::MAX / 4);
            let options = BlastOptions {
                interval,
                patience,
                nak_delay: None,
                ..BlastOptions::blast(strategy, 1000, 4000)
            };
            let (mut sender, mut receiver) = pair(&options);
            sender.send(4000);
            let first = sender.poll(NOW, 64).unwrap();
            receiver.handle(NOW, &first.header(0, 0), 1000);
            receiver.handle(NOW, &first.header(3, 0), 1000);
            receiver.poll(NOW);
            let mut now = NOW;
            for _ in 0..away {
                now = sender.deadline(now).unwrap().0;
                while sender.poll(now, 64).is_some() {}
            }
            let before = sender.counters().timeouts;
            walk_from(now, &mut sender, &mut receiver, u64::MAX);
            // Only where the number is just the same again, a few rounds are taken for late ones.
            let more = sender.counters().timeouts - before;
            assert!(
                more <= if away < 65_000 { 2 } else { 258 },
                "{strategy:?} {away} {more}"
            );
            assert_eq!(receiver.delivered(), 4000);
        }
    }
}

#[test]
fn a_packet_at_the_end_of_all_positions_is_refused() {
    let options = BlastOptions {
        buffer: u64::MAX,
        flight: 4,
        ..BlastOptions::blast(BlastStrategy::Selective, 100, 1000)
    };
    let mut receiver = BlastReceiver::new(&options, 7);
    for start in [u64::MAX, u64::MAX - 1, u64::MAX - 150, u64::MAX - 1001] {
        for index in [0, 1, 9, 10, u16::MAX] {
            let header = BlastHeader {
                blast: 1,
                length: 1000,
                start,
                index,
                ..BlastHeader::new(BlastPacketKind::Data, 7)
            };
            receiver.handle(NOW, &header, 100);
            receiver.check();
            assert!(
                receiver
                    .expected()
                    .take(1000)
                    .all(|(_, bytes)| bytes <= 100)
            );
        }
    }
    assert_eq!(receiver.delivered(), 0);
}

#[test]
fn a_refusal_that_names_nothing_that_can_be_sent_changes_nothing() {
    let options = BlastOptions {
        flight: 2,
        ..BlastOptions::blast(BlastStrategy::Selective, 100, 2000)
    };
    for (index, body) in [
        (5, [0b10].as_slice()),
        (5, &[0]),
        (5, &[]),
        (20, &[1]),
        (u16::MAX, &[255; 100]),
        (8, &[0, 0, 0xf0]),
    ] {
        let mut sender = BlastSender::new(&options, 7, 1 << 20);
        sender.send(2000);
        while sender.poll(NOW, 64).is_some() {}
        let answer = BlastHeader {
            index,
            ..BlastHeader::new(BlastPacketKind::Answer, 7)
        };
        sender.handle(NOW, &answer, body);
        sender.check();
        while let Some(run) = sender.poll(NOW, 64) {
            assert!(run.count > 0 && run.first + run.count <= 20);
        }
    }
    assert_eq!(Bitmap::from_answer(u32::MAX, &[255; 9], 100).count(), 0);
}

#[test]
fn blasts_that_overlap_or_leave_something_out_are_never_delivered() {
    let options = BlastOptions {
        flight: 8,
        buffer: 4000,
        ..BlastOptions::blast(BlastStrategy::Selective, 1000, 1000)
    };
    let mut receiver = BlastReceiver::new(&options, 7);
    let data = |blast, start| BlastHeader {
        blast,
        start,
        length: 1000,
        flags: ACK_REQUEST,
        ..BlastHeader::new(BlastPacketKind::Data, 7)
    };
    assert!(matches!(
        receiver.handle(NOW, &data(1, 1500), 1000),
        BlastArrival::Place { position: 1500, .. }
    ));
    assert!(matches!(
        receiver.handle(NOW, &data(0, 0), 1000),
        BlastArrival::Place { position: 0, .. }
    ));
    receiver.check();
    // 1000..1500 has never been here.
    assert_eq!(
        (receiver.delivered(), receiver.counters().violations),
        (1000, 1)
    );
    // More blasts than fit are not taken, wherever they claim to be.
    let taken = (2..8)
        .filter(|n| receiver.handle(NOW, &data(*n, 1500), 1000) != BlastArrival::Refused)
        .count();
    receiver.check();
    assert_eq!((taken, receiver.counters().violations), (3, 4));
}

#[test]
fn a_blast_beyond_the_grant_is_refused_and_counted() {
    let options = BlastOptions {
        flight: 4,
        buffer: 3000,
        ..BlastOptions::blast(BlastStrategy::Selective, 1000, 2000)
    };
    let mut receiver = BlastReceiver::new(&options, 7);
    let data = |blast, start, length| BlastHeader {
        blast,
        start,
        length,
        ..BlastHeader::new(BlastPacketKind::Data, 7)
    };
    let cases = [
        ("beyond the limit", data(1, 2000, 2000), 1000),
        ("longer than a blast", data(0, 0, 3000), 1000),
        ("more blasts than may fly", data(4, 2000, 1000), 1000),
        ("elsewhere", data(0, 1, 1000), 1000),
        ("a packet too short", data(0, 0, 2000), 999),
        ("a packet too long", data(0, 0, 1500), 1001),
        (
            "behind the last",
            BlastHeader {
                index: 2,
                ..data(0, 0, 2000)
            },
            1000,
        ),
        (
            "an end that is not empty",
            BlastHeader {
                flags: crate::blast::wire::FIN,
                ..data(0, 0, 1000)
            },
            1000,
        ),
    ];
    for (place, (reason, header, payload)) in cases.into_iter().enumerate() {
        assert_eq!(
            receiver.handle(NOW, &header, payload),
            BlastArrival::Refused,
            "{reason}"
        );
        assert_eq!(receiver.counters().violations, place as u64 + 1);
        receiver.check();
        assert_eq!(
            (
                receiver.poll(NOW),
                receiver.deadline(NOW),
                receiver.expected().next()
            ),
            (None, None, Some((0, 1000)))
        );
    }
}

#[test]
fn memory_stays_bounded_for_any_requests_and_answers() {
    let options = BlastOptions {
        flight: 4,
        ..BlastOptions::blast(BlastStrategy::Selective, 100, 800)
    };
    let (mut sender, mut receiver) = pair(&options);
    sender.send(3200);
    while sender.poll(NOW, 64).is_some() {}
    // The first is never answered; of the others something is missing again and again.
    for round in 0..100_000_u32 {
        let answer = BlastHeader {
            blast: 1 + round % 3,
            round: (round / 3) as u16,
            ..BlastHeader::new(BlastPacketKind::Answer, 7)
        };
        sender.handle(NOW, &answer, &[1]);
        while sender.poll(NOW, 64).is_some() {}
        sender.check();
    }
    let requests_ack = BlastHeader {
        flags: ACK_REQUEST,
        length: 800,
        index: 7,
        ..BlastHeader::new(BlastPacketKind::Data, 7)
    };
    for round in 0..100_000_u32 {
        receiver.handle(
            NOW,
            &BlastHeader {
                round: round as u16,
                ..requests_ack
            },
            100,
        );
    }
    receiver.check();
    let answers = core::iter::from_fn(|| receiver.poll(NOW)).count();
    assert!(answers <= 1 << 12, "{answers}");
}

#[test]
fn packets_of_other_connections_and_of_earlier_blasts_change_nothing() {
    let options = BlastOptions {
        interval: BlastTimeout::Adaptive,
        ..BlastOptions::blast(BlastStrategy::Selective, 100, 400)
    };
    let mut script = Script::open(options);
    script.path.send(0, 1000);
    script.until(50);
    let now = script.path.now;
    let before = script.end(1).facts();
    let stranger = BlastHeader {
        blast: 3,
        start: 1000,
        length: 400,
        flags: ACK_REQUEST,
        ..BlastHeader::new(BlastPacketKind::Data, 78)
    };
    assert_eq!(
        script.end(1).handle(now, &stranger, &[], 100),
        BlastArrival::Nothing
    );
    assert_eq!(
        (script.end(1).facts(), script.end(1).poll(now, 1)),
        (before, None)
    );
    // A repeated packet is acknowledged again: the first answer may have been lost.
    let again = BlastHeader {
        blast: 1,
        round: 9,
        start: 400,
        length: 400,
        flags: ACK_REQUEST,
        ..BlastHeader::new(BlastPacketKind::Data, 77)
    };
    assert_eq!(
        script.end(1).handle(now, &again, &[], 100),
        BlastArrival::Nothing
    );
    let answer = script.end(1).poll(now, 1);
    let complete =
        |header: &BlastHeader| header.flags == COMPLETE && (header.blast, header.round) == (1, 9);
    assert!(
        matches!(&answer, Some(BlastOutput::Control(header, _)) if complete(header)),
        "{answer:?}"
    );
    // Answers to blasts that are long done, or were never sent.
    for (blast, connection) in [(0, 77), (2, 77), (3, 77), (u32::MAX, 77), (0, 78)] {
        let answer = BlastHeader {
            blast,
            connection,
            start: 0,
            ..BlastHeader::new(BlastPacketKind::Answer, 77)
        };
        script.end(0).handle(now, &answer, &[255; 20], 20);
        assert_eq!(script.end(0).poll(now, 1), None);
    }
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Open, BlastState::Open)
    );
}

#[test]
fn spans_and_ends_stop_at_the_last_position() {
    let blast = BlastExtent {
        number: 0,
        start: u64::MAX - 10,
        length: 1000,
        last: false,
    };
    assert_eq!(
        (blast.span(9, 100), blast.end()),
        ((u64::MAX, 100), u64::MAX)
    );
    let mut listener = BlastConnection::listen(&BlastOptions::saw(1), [0; 16], [0; 16]);
    listener.send(u64::MAX);
    listener.send(u64::MAX);
    assert!(!listener.sender().is_idle());
}
