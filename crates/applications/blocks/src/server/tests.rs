//! The machine by itself: what is read and written after which lists.

use super::*;
use crate::wire::server_messages::{BlockListEntry, Flushed, NOT_READ};
use alloc::string::String;
use alloc::vec;

const SESSION: u128 = 7;
const OTHER: u128 = 8;
const KIB: u32 = 1024;

fn ms(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn entry(index: u32, number: u64) -> BlockListEntry {
    BlockListEntry {
        index,
        number,
        disk: (number % 2) as u16,
        offset: number * 4096,
        length: 4 * KIB,
        checksum: 0,
    }
}

fn list(session: u128, serial: u64, blocks: &[u64]) -> ServerBlockRequests {
    let entries = blocks
        .iter()
        .enumerate()
        .map(|(index, number)| entry(index as u32, *number))
        .collect();
    let (first_unit, stamps) = (serial * 100, [1, 2, 3]);
    ServerBlockRequests {
        session,
        set: 1,
        serial,
        supersedes: true,
        report: true,
        first_unit,
        stamps,
        entries,
    }
}

/// A server with two disks whose blocks are texts.
fn server(cache: u64) -> DiskServerMachine<String> {
    let mut server = DiskServerMachine::new(3, 2, cache);
    server.attach(SESSION, 1, None).unwrap();
    server.attach(OTHER, 2, None).unwrap();
    server
}

/// Reads what a disk has to read next.
fn read(server: &mut DiskServerMachine<String>, now: u64, disk: u16) -> Option<u64> {
    let mut woken = Woken::default();
    let read = server.next_read(ms(now), disk, &mut woken)?;
    let number = read.spot.offset / 4096;
    server.read_done(
        ms(now + 10),
        read.spot,
        Ok(alloc::format!("block {number}")),
    );
    Some(number)
}

#[derive(Debug, PartialEq)]
enum Wrote {
    Block(u64),
    Words(Message),
}

use Wrote::{Block, Words};

/// What a connection writes next: numbers of blocks, words as they are.
fn written(server: &mut DiskServerMachine<String>, now: u64, connection: u64) -> Vec<Wrote> {
    let mut woken = Woken::default();
    let writes = core::iter::from_fn(|| server.next_write(ms(now), connection, &mut woken));
    let writes = writes.map(|write| match write {
        Write::Words(words) => Words(words),
        Write::Block(head, block) => {
            assert_eq!(block, alloc::format!("block {}", head.number));
            Block(head.number)
        }
    });
    writes.collect()
}

#[test]
fn blocks_are_read_by_disk_and_written_as_they_come() {
    let mut server = server(1 << 20);
    let woken = server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 1, 2]))
        .unwrap();
    assert_eq!(
        woken,
        Woken {
            disks: vec![0, 1],
            connections: vec![]
        }
    );
    assert_eq!(read(&mut server, 1, 1), Some(1));
    assert_eq!(written(&mut server, 12, 1), [Block(1)]);
    assert_eq!(
        (
            read(&mut server, 13, 0),
            read(&mut server, 24, 0),
            read(&mut server, 35, 0)
        ),
        (Some(0), Some(2), None)
    );
    assert_eq!(written(&mut server, 40, 1), [Block(0), Block(2)]);
}

#[test]
fn stamps_travel_with_the_block() {
    let mut server = server(0);
    server
        .requests(ms(5), ms(5), list(SESSION, 1, &[2]))
        .unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(6), 0, &mut woken).unwrap();
    let woken = server.read_done(ms(28), what.spot, Ok("block 2".into()));
    assert_eq!(woken.connections, [1]);
    let mut woken = Woken::default();
    let Some(Write::Block(head, _)) = server.next_write(ms(30), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!((head.unit, head.server, head.cached), (100, 3, false));
    assert_eq!((head.app_send, head.master_in, head.master_out), (1, 2, 3));
    let at = [
        head.server_in,
        head.start_read,
        head.end_read,
        head.start_write,
    ]
    .map(|ns| ns / 1_000_000);
    assert_eq!(at, [5, 6, 28, 30]);
    server.write_done(ms(33), 1, head.unit);
    server
        .requests(ms(40), ms(40), list(SESSION, 2, &[4]))
        .unwrap();
    read(&mut server, 41, 0);
    let Some(Write::Block(head, _)) = server.next_write(ms(60), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!((head.before, head.before_end_write), (100, 33_000_000));
}

#[test]
fn a_newer_list_discards_what_is_pending_and_keeps_what_was_read() {
    let mut server = server(1 << 20);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    assert_eq!(read(&mut server, 1, 0), Some(0));
    // Block 2 is being read while the list comes; 4 and 6 wait.
    let mut woken = Woken::default();
    let reading = server.next_read(ms(12), 0, &mut woken).unwrap();
    server
        .requests(ms(13), ms(13), list(SESSION, 2, &[2, 8]))
        .unwrap();
    assert_eq!(server.counts().flushed, 4);
    server.read_done(ms(22), reading.spot, Ok("block 2".into()));
    let mut writes = written(&mut server, 23, 1);
    let Words(Message::Flushed(Flushed {
        serial: 1, blocks, ..
    })) = writes.remove(0)
    else {
        panic!("what was discarded")
    };
    let of = |index| blocks.iter().find(|block| block.index == index).unwrap();
    assert_eq!((of(0).start_read, of(0).end_read), (1000, 11_000));
    assert_eq!((of(1).start_read, of(1).end_read), (12_000, NOT_READ));
    assert_eq!((of(2).start_read, of(3).start_read), (NOT_READ, NOT_READ));
    // Nothing of the old list is begun; 2 is in memory when its turn comes.
    assert_eq!(writes, []);
    assert_eq!(read(&mut server, 24, 0), Some(8));
    assert_eq!(written(&mut server, 40, 1), [Block(2), Block(8)]);
    assert_eq!(server.counts().cached, 1);
}

#[test]
fn only_lists_of_the_same_session_and_set_discard() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0]))
        .unwrap();
    server.requests(ms(1), ms(1), list(OTHER, 1, &[2])).unwrap();
    server
        .requests(
            ms(2),
            ms(2),
            ServerBlockRequests {
                set: 2,
                ..list(SESSION, 2, &[4])
            },
        )
        .unwrap();
    assert_eq!(server.counts().flushed, 0);
    // A list that was overtaken is not taken.
    server
        .requests(ms(3), ms(3), list(SESSION, 5, &[6]))
        .unwrap();
    server
        .requests(ms(4), ms(4), list(SESSION, 4, &[8]))
        .unwrap();
    let mut order = core::iter::from_fn(|| read(&mut server, 5, 0)).collect::<Vec<_>>();
    order.sort_unstable();
    assert_eq!(order, [2, 4, 6]);
}

#[test]
fn a_list_that_adds_discards_nothing() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0]))
        .unwrap();
    server
        .requests(
            ms(1),
            ms(1),
            ServerBlockRequests {
                supersedes: false,
                ..list(SESSION, 2, &[2])
            },
        )
        .unwrap();
    assert_eq!(
        (read(&mut server, 2, 0), read(&mut server, 3, 0)),
        (Some(0), Some(2))
    );
    assert_eq!(written(&mut server, 20, 1), [Block(0), Block(2)]);
}

#[test]
fn sessions_take_turns_at_a_disk() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4]))
        .unwrap();
    server
        .requests(ms(1), ms(1), list(OTHER, 1, &[10, 12]))
        .unwrap();
    let order: Vec<_> = core::iter::from_fn(|| read(&mut server, 2, 0)).collect();
    assert_eq!(order, [0, 10, 2, 12, 4]);
}

#[test]
fn a_block_that_two_want_is_read_once() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0]))
        .unwrap();
    server.requests(ms(0), ms(0), list(OTHER, 1, &[0])).unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(1), 0, &mut woken).unwrap();
    assert_eq!(server.next_read(ms(1), 0, &mut woken), None);
    let woken = server.read_done(ms(9), what.spot, Ok("block 0".into()));
    assert_eq!(woken.connections, [1, 2]);
    assert_eq!(
        (written(&mut server, 10, 1), written(&mut server, 10, 2)),
        (vec![Block(0)], vec![Block(0)])
    );
}

#[test]
fn a_slow_reader_has_bounded_memory_and_goes_on_later() {
    let mut server = server(1 << 30);
    let length = (limits::WRITE_QUEUE / 4) as u32;
    let mut wanted = list(SESSION, 1, &[0, 2, 4, 6, 8, 10, 12]);
    wanted
        .entries
        .iter_mut()
        .for_each(|entry| entry.length = length);
    server.requests(ms(0), ms(0), wanted).unwrap();
    let mut woken = Woken::default();
    let mut reads = 0;
    while let Some(what) = server.next_read(ms(1), 0, &mut woken) {
        server.read_done(ms(1), what.spot, Ok("a block".into()));
        reads += 1;
    }
    assert_eq!(reads, 4);
    let mut woken = Woken::default();
    assert!(server.next_write(ms(2), 1, &mut woken).is_some());
    assert_eq!(woken.disks, [0]);
    assert!(server.next_read(ms(3), 0, &mut woken).is_some());
}

#[test]
fn old_blocks_are_dropped_where_they_have_an_age() {
    let mut server = server(0);
    server.attach(SESSION, 1, Some(50_000_000)).unwrap();
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    read(&mut server, 1, 0);
    assert_eq!(written(&mut server, 50, 1), [Block(0)]);
    read(&mut server, 30, 0);
    assert_eq!(written(&mut server, 51, 1), []);
    assert_eq!(server.counts().aged, 1);
}

#[test]
fn a_disk_that_goes_fails_what_is_wanted_of_it_and_nothing_else() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 1, 2]))
        .unwrap();
    let woken = server.set_disk(0, false);
    assert_eq!(woken.connections, [1]);
    let failed: Vec<u64> = written(&mut server, 1, 1)
        .into_iter()
        .map(|what| match what {
            Words(Message::Failed(failed)) if failed.why == Why::Disk as u8 => failed.number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(failed, [0, 2]);
    assert_eq!(
        (read(&mut server, 2, 0), read(&mut server, 2, 1)),
        (None, Some(1))
    );
    server
        .requests(ms(3), ms(3), list(SESSION, 2, &[4]))
        .unwrap();
    assert!(matches!(
        &written(&mut server, 4, 1)[..],
        [Words(Message::Failed(_))] | [Words(Message::Flushed(_)), ..]
    ));
}

#[test]
fn what_is_more_than_allowed_is_refused_whole() {
    let mut server = server(0);
    let many: Vec<u64> = (0..limits::MOST_REQUESTED_BLOCKS as u64 + 1).collect();
    assert_eq!(
        server.requests(ms(0), ms(0), list(SESSION, 1, &many)),
        Err(Why::Limit)
    );
    assert_eq!(server.counts().requested, 0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &many[1..]))
        .unwrap();
}

#[test]
fn a_session_that_ends_leaves_nothing() {
    let mut server = server(1 << 20);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(1), 0, &mut woken).unwrap();
    server.detach(1);
    assert_eq!(
        server.read_done(ms(5), what.spot, Ok("block 0".into())),
        Woken::default()
    );
    assert_eq!(server.next_read(ms(6), 0, &mut woken), None);
    // What was read for it is in memory for others.
    server.requests(ms(7), ms(7), list(OTHER, 1, &[0])).unwrap();
    assert_eq!(written(&mut server, 8, 2), [Block(0)]);
}

/// Units of the blocks that a connection is given at a time.
fn given(server: &mut DiskServerMachine<String>, now: u64) -> Vec<u64> {
    let mut woken = Woken::default();
    let writes = core::iter::from_fn(|| server.next_write(ms(now), 1, &mut woken));
    writes
        .filter_map(|write| {
            if let Write::Block(head, _) = write {
                Some(head.unit)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn what_a_transport_did_not_begin_waits_in_its_old_place() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    assert_eq!(given(&mut server, 20), [100, 101, 102, 103]);
    server.write_done(ms(21), 1, 100);
    server.not_begun(1, Some(101));
    assert_eq!(server.counts().written, 2);
    // The newer list discards what was not begun, and only that.
    server
        .requests(ms(22), ms(22), list(SESSION, 2, &[8]))
        .unwrap();
    let mut writes = written(&mut server, 23, 1);
    let Words(Message::Flushed(Flushed { blocks, .. })) = writes.remove(0) else {
        panic!("what was discarded")
    };
    assert_eq!(
        blocks.iter().map(|block| block.index).collect::<Vec<_>>(),
        [2, 3]
    );
    assert_eq!(writes, []);
    server.write_done(ms(24), 1, 101);
    read(&mut server, 25, 0);
    assert_eq!(written(&mut server, 40, 1), [Block(8)]);
}

#[test]
fn what_a_list_discarded_while_it_was_being_handed_over_is_reported_once_that_is_known() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    assert_eq!(given(&mut server, 20), [100, 101, 102]);
    server
        .requests(ms(21), ms(21), list(SESSION, 2, &[6]))
        .unwrap();
    assert_eq!(
        (server.counts().flushed, written(&mut server, 22, 1)),
        (0, vec![])
    );
    server.write_done(ms(23), 1, 100);
    server.not_begun(1, Some(101));
    server.write_done(ms(24), 1, 101);
    let reported = written(&mut server, 25, 1);
    let [
        Words(Message::Flushed(Flushed {
            serial: 1,
            at: 21_000_000,
            blocks,
            ..
        })),
    ] = &reported[..]
    else {
        panic!("{reported:?}")
    };
    assert_eq!(
        (blocks.len(), blocks[0].index, server.counts().flushed),
        (1, 2, 1)
    );
}

#[test]
fn the_end_of_every_write_is_reported_once() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    let mut reported = Vec::new();
    let mut write = |server: &mut DiskServerMachine<String>, now: u64, count: usize| {
        let mut woken = Woken::default();
        let writes = core::iter::from_fn(|| server.next_write(ms(now), 1, &mut woken));
        let heads = writes.take(count).map(|write| match write {
            Write::Block(head, _) => head,
            Write::Words(words) => panic!("{words:?}"),
        });
        let heads: Vec<BlockHead> = heads.collect();
        reported.extend(
            heads
                .iter()
                .filter(|head| head.before > 0)
                .map(|head| (head.before, head.before_end_write)),
        );
        heads
    };
    while read(&mut server, 1, 0).is_some() {}
    for head in write(&mut server, 20, 2) {
        server.write_done(ms(head.unit), 1, head.unit);
    }
    // One is given back: what it reported is reported again.
    assert_eq!(write(&mut server, 30, 2).len(), 2);
    server.not_begun(1, None);
    assert_eq!(write(&mut server, 31, 2).len(), 2);
    assert_eq!(reported, [(100, 100_000_000), (101, 101_000_000)].repeat(2));
}

#[test]
fn of_blocks_that_were_handed_over_together_the_last_is_reported() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    let mut woken = Woken::default();
    let mut next = |server: &mut DiskServerMachine<String>, now: u64| match server.next_write(
        ms(now),
        1,
        &mut woken,
    ) {
        Some(Write::Block(head, _)) => (head.unit, head.before, head.before_end_write),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (next(&mut server, 20), next(&mut server, 20)),
        ((100, 0, 0), (101, 0, 0))
    );
    server.write_done(ms(22), 1, 100);
    server.write_done(ms(22), 1, 101);
    assert_eq!(next(&mut server, 23), (102, 101, 22_000_000));
    server.write_done(ms(24), 1, 102);
    assert_eq!(next(&mut server, 25), (103, 102, 24_000_000));
}

#[test]
fn lists_that_overtake_one_another_on_two_paths_lose_nothing_that_is_wanted() {
    // The master passes a list on; what the client asks for again comes directly, and may be here first.
    let add = |serial, blocks: &[u64]| ServerBlockRequests {
        supersedes: false,
        ..list(SESSION, serial, blocks)
    };
    let mut adding = server(0);
    adding.requests(ms(0), ms(0), add(2, &[7])).unwrap();
    adding.requests(ms(1), ms(1), add(1, &[1, 3])).unwrap();
    let came: Vec<_> = (0..3).map(|at| read(&mut adding, 10 * at, 1)).collect();
    assert_eq!(came, [Some(7), Some(1), Some(3)]);
    // A list that supersedes discards what is older, not what is newer.
    let mut late = server(0);
    late.requests(ms(0), ms(0), list(SESSION, 1, &[1])).unwrap();
    late.requests(ms(1), ms(1), add(3, &[7])).unwrap();
    late.requests(ms(2), ms(2), list(SESSION, 2, &[3])).unwrap();
    let came: Vec<_> = (0..3).map(|at| read(&mut late, 10 * at + 3, 1)).collect();
    assert_eq!(came, [Some(7), Some(3), None]);
    // And what was superseded before it came is not read.
    late.requests(ms(40), ms(40), add(1, &[5])).unwrap();
    assert_eq!(read(&mut late, 41, 1), None);
}

#[test]
fn a_block_that_waits_for_room_is_being_written_and_can_be_discarded() {
    let mut server = server(0);
    let mut woken = Woken::default();
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    server.waits_for_room(ms(12), 1);
    server.waits_for_room(ms(15), 1);
    server
        .requests(ms(20), ms(20), list(SESSION, 2, &[4]))
        .unwrap();
    let Some(Write::Words(Message::Flushed(flushed))) = server.next_write(ms(21), 1, &mut woken)
    else {
        panic!("words")
    };
    let starts: Vec<u32> = flushed
        .blocks
        .iter()
        .map(|block| block.start_write)
        .collect();
    assert_eq!(starts, [12_000, NOT_READ]);
    // The next has waited since it was there.
    read(&mut server, 22, 0);
    let Some(Write::Block(head, _)) = server.next_write(ms(40), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!((head.end_read, head.start_write), (32_000_000, 32_000_000));
}

/// Hands over one block, and says its unit.
fn begin(server: &mut DiskServerMachine<String>, now: u64) -> u64 {
    let mut woken = Woken::default();
    match server.next_write(ms(now), 1, &mut woken) {
        Some(Write::Block(head, _)) => head.unit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_newer_list_cuts_off_the_block_that_is_under_way() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    let before = begin(&mut server, 20);
    server.write_done(ms(21), 1, before);
    let unit = begin(&mut server, 25);
    assert!(!server.is_superseded(1, unit));
    server
        .requests(ms(30), ms(30), list(SESSION, 2, &[6, 8]))
        .unwrap();
    assert!(server.is_superseded(1, unit) && !server.is_superseded(2, unit));
    server.cut(1, unit);
    server.cut(1, unit);
    server.write_done(ms(31), 1, unit);
    assert_eq!((server.counts().written, server.counts().flushed), (1, 2));
    // Each is reported once, and nothing of the old list begins.
    let reported: Vec<_> = written(&mut server, 32, 1)
        .into_iter()
        .flat_map(|what| match what {
            Words(Message::Flushed(Flushed {
                serial: 1,
                at: 30_000_000,
                blocks,
                ..
            })) => blocks,
            other => panic!("{other:?}"),
        })
        .map(|block| (block.index, block.start_write))
        .collect();
    assert_eq!(reported, [(2, NOT_READ), (1, 25_000)]);
    // The client dropped the head that reported the block before it: the next one reports it again.
    read(&mut server, 33, 0);
    let mut woken = Woken::default();
    let Some(Write::Block(head, _)) = server.next_write(ms(50), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!(
        (head.number, head.before, head.before_end_write),
        (6, before, 21_000_000)
    );
}

#[test]
fn a_block_under_way_is_not_cut_off_where_it_is_of_use() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    let unit = begin(&mut server, 20);
    // A list that adds, one of another set, and one of another session.
    server
        .requests(
            ms(21),
            ms(21),
            ServerBlockRequests {
                supersedes: false,
                ..list(SESSION, 2, &[4])
            },
        )
        .unwrap();
    server
        .requests(
            ms(22),
            ms(22),
            ServerBlockRequests {
                set: 2,
                ..list(SESSION, 3, &[6])
            },
        )
        .unwrap();
    server
        .requests(ms(23), ms(23), list(OTHER, 9, &[8]))
        .unwrap();
    assert!(!server.is_superseded(1, unit));
    // One that asks for it again, and one that does not.
    server
        .requests(ms(24), ms(24), list(SESSION, 4, &[10, 0]))
        .unwrap();
    assert!(!server.is_superseded(1, unit));
    server
        .requests(ms(25), ms(25), list(SESSION, 5, &[10]))
        .unwrap();
    assert!(server.is_superseded(1, unit));
}

#[test]
fn those_who_read_nothing_leave_room_for_others_and_none_is_forgotten() {
    let mut server = DiskServerMachine::new(3, 1, 0);
    let length = 1 << 20;
    let wants = |session: u128, blocks: u64| {
        let entry = |index: u64| {
            let offset = (session as u64 * 1000 + index) * u64::from(length);
            BlockListEntry {
                index: index as u32,
                number: index,
                disk: 0,
                offset,
                length,
                checksum: 0,
            }
        };
        let (first_unit, stamps) = (session as u64 * 1000, [1, 2, 3]);
        let entries = (0..blocks).map(entry).collect();
        ServerBlockRequests {
            session,
            set: 1,
            serial: 1,
            supersedes: true,
            report: true,
            first_unit,
            stamps,
            entries,
        }
    };
    let read_all = |server: &mut DiskServerMachine<String>| {
        let mut woken = Woken::default();
        while let Some(read) = server.next_read(ms(1), 0, &mut woken) {
            server.read_done(ms(2), read.spot, Ok(String::new()));
            assert!(server.waiting_bytes() <= limits::WRITE_QUEUES);
        }
    };
    // Three times as many as could each have all that one may have.
    let clients = 3 * (limits::WRITE_QUEUES / limits::WRITE_QUEUE) as u128;
    for session in 1..=clients {
        server.attach(session, session as u64, None).unwrap();
        server.requests(ms(0), ms(0), wants(session, 40)).unwrap();
        read_all(&mut server);
    }
    assert!(
        server.waiting_bytes() > limits::WRITE_QUEUES / 3,
        "{}",
        server.waiting_bytes()
    );
    // Who comes now gets a block at once.
    let (late, connection) = (clients + 1, 5000);
    server.attach(late, connection, None).unwrap();
    server.requests(ms(3), ms(3), wants(late, 1)).unwrap();
    read_all(&mut server);
    assert_eq!(server.to_write(connection), 1);
    // And once everybody reads, or goes, all comes.
    let mut woken = Woken::default();
    server.forget(1);
    let mut came = 0;
    while (2..=clients).any(|session| server.to_write(session as u64) > 0) {
        for session in 2..=clients {
            while let Some(Write::Block(head, _)) =
                server.next_write(ms(4), session as u64, &mut woken)
            {
                server.write_done(ms(4), session as u64, head.unit);
                came += 1;
            }
            read_all(&mut server);
        }
    }
    assert_eq!(
        (came, server.is_crowded()),
        (40 * (clients as u64 - 1), false)
    );
    assert_eq!(server.waiting_bytes(), u64::from(length), "what came late");
}

#[test]
fn a_client_that_hears_nothing_of_what_was_discarded_asks_for_nothing_more() {
    let mut server = server(0);
    let blocks: Vec<u64> = (0..8192).collect();
    let lists = (1..).take_while(|serial| {
        server
            .requests(ms(0), ms(0), list(SESSION, *serial, &blocks))
            .is_ok()
    });
    let taken = lists.count() as u64;
    assert!(
        taken > limits::WORDS / (16 * 8192) / 2 && taken < limits::WORDS / (16 * 8192) + 10,
        "{taken}"
    );
    assert_eq!(server.counts().refused, 8192);
    written(&mut server, 1, 1);
    assert!(
        server
            .requests(ms(2), ms(2), list(SESSION, 5000, &blocks))
            .is_ok()
    );
    // Numbers that begin near their end do no harm.
    let last = ServerBlockRequests {
        first_unit: u64::MAX,
        ..list(SESSION, 5001, &[1, 2])
    };
    server.requests(ms(3), ms(3), last).unwrap();
    assert_eq!(
        (read(&mut server, 4, 1), read(&mut server, 4, 0)),
        (Some(1), Some(2))
    );
    written(&mut server, 5, 1);
}
