//! A newer list discards what an older one left pending, also what is being handed over or is under way, and nothing else.

use super::*;
use crate::wire::server_messages::{Flushed, NOT_READ};
use alloc::vec;

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
