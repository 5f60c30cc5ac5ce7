//! A master that is started again knows what was remembered, and gives no space away twice.

use super::{
    CLIENT, LOADER, MINUTE, OURS, SERVERS, at, comes, join, load, master, open, remembering,
    reserves, set, to, why,
};
use crate::master::{Master, MasterChange};
use crate::set::BlockSet;
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{
    BlockCopyLocation, BlockMapEntry, CommittedBlock, Create, DiskOwnerRecord, Map, Reserve,
};
use crate::wire::message::{Message, Why};
use alloc::vec;

#[test]
fn what_was_remembered_is_all_that_a_new_master_needs() {
    let mut first = master(1 << 30);
    let changes = load(&mut first, set(100, 2));
    let mut second = Master::default();
    second.remember(MasterChange::Server {
        id: 0,
        name: "a".into(),
        disks: vec![1097],
    });
    second.remember(MasterChange::Server {
        id: 1,
        name: "b".into(),
        disks: vec![1098],
    });
    changes
        .into_iter()
        .for_each(|change| second.remember(change));
    for (connection, name) in SERVERS.into_iter().zip(["a", "b"]) {
        second
            .connected(connection, BlockPeerRole::Server, 0)
            .unwrap();
        second.handle(at(0), connection, join(name, 1 << 30));
    }
    second
        .connected(LOADER, BlockPeerRole::Loader, 100)
        .unwrap();
    second
        .connected(CLIENT, BlockPeerRole::Client, 101)
        .unwrap();
    let (_, id) = open(&mut second);
    let map = Map {
        request: 5,
        set: id,
        first: 0,
        count: 100,
    };
    let old = first.handle(at(9), CLIENT, map.clone().into());
    assert_eq!(old, second.handle(at(9), CLIENT, map.into()));
    // No place is given away twice, although nothing says how much of the last piece was used.
    let about = BlockSet {
        name: "other".into(),
        ..set(3, 1)
    };
    second.handle(at(10), LOADER, Create { request: 1, about }.into());
    let reserve = Reserve {
        request: 2,
        set: 2,
        blocks: vec![0, 1, 2],
        given: vec![],
    };
    let reserved = second.handle(at(11), LOADER, reserve.into());
    let Message::Reserved(rows) = to(&reserved, LOADER)[0] else {
        panic!("{reserved:?}")
    };
    assert!(rows.rows.iter().all(|row| row.places[0].offset >= 16 << 20));
}

#[test]
fn after_a_restart_the_space_behind_what_was_written_is_given_away() {
    let capacity = 1 << 30;
    let row = |offset| BlockMapEntry {
        checksum: 1,
        places: vec![BlockCopyLocation {
            server: 0,
            disk: 0,
            offset,
        }],
    };
    // The file says that all of the disk was given away, its blocks end at one place, and the disk's page says another: what lies
    // behind both was never written. What an old copy of the file does not know is behind the page's.
    for (used, goes_on) in [(12_288, 12_288), (8192, 12_288), (1 << 20, 1 << 20)] {
        let mut master = remembering(OURS, Some(capacity));
        master.remember(MasterChange::Set {
            id: 1,
            about: set(2, 1),
            sealed: true,
        });
        let blocks = (0..2)
            .map(|number| CommittedBlock {
                number,
                row: row(4096 * (number + 1)),
            })
            .collect();
        master.remember(MasterChange::Rows { set: 1, blocks });
        assert_eq!(
            why(
                &comes(
                    &mut master,
                    1,
                    DiskOwnerRecord {
                        master: OURS,
                        used,
                        last_set: 0
                    },
                    false
                ),
                1
            ),
            None
        );
        assert_eq!(
            why(&reserves(&mut master, 1, 20, "next", 1), 20),
            Some(Why::Full)
        );
        let later = reserves(&mut master, MINUTE, 20, "next", 1);
        let Some(Message::Reserved(reserved)) = to(&later, 20).first().copied() else {
            panic!("{later:?}")
        };
        assert_eq!(reserved.rows[0].places[0].offset, goes_on);
        // The server comes again: nothing is given back twice.
        master.disconnected(1);
        comes(
            &mut master,
            2,
            DiskOwnerRecord {
                master: OURS,
                used,
                last_set: 0,
            },
            false,
        );
        let more = reserves(&mut master, 3 * MINUTE, 21, "more", 1);
        let Some(Message::Reserved(reserved)) = to(&more, 21).first().copied() else {
            panic!("{more:?}")
        };
        assert_eq!(reserved.rows[0].places[0].offset, goes_on + 4096);
    }
}
