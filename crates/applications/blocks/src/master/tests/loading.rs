//! Loads: one loader a set, full disks, and space that a load which ended early gives back.

use super::{CLIENT, LOADER, MINUTE, at, join, load, master, reserves, set, to, why};
use crate::master::{Master, MasterChange};
use crate::set::BlockSet;
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{
    Commit, CommittedBlock, Create, Delete, DiskOwnerRecord, Join, Reserve,
};
use crate::wire::message::{Message, Why};
use alloc::vec;
use alloc::vec::Vec;

#[test]
fn a_set_has_one_loader_and_its_name_is_taken_once_it_is_whole() {
    let mut master = master(1 << 30);
    master.connected(12, BlockPeerRole::Loader, 102).unwrap();
    master.handle(
        at(1),
        LOADER,
        Create {
            request: 1,
            about: set(4, 1),
        }
        .into(),
    );
    let second = master.handle(
        at(1),
        12,
        Create {
            request: 1,
            about: set(4, 1),
        }
        .into(),
    );
    assert_eq!(why(&second, 12), Some(Why::Busy));
    master.disconnected(LOADER);
    let goes_on = master.handle(
        at(2),
        12,
        Create {
            request: 2,
            about: set(4, 1),
        }
        .into(),
    );
    assert!(matches!(to(&goes_on, 12)[..], [Message::Created(_)]));
    let early = master.handle(
        at(3),
        12,
        Commit {
            request: 3,
            set: 1,
            blocks: vec![],
            seal: true,
        }
        .into(),
    );
    assert_eq!(why(&early, 12), Some(Why::NoBlock));
    let gone = master.handle(
        at(4),
        12,
        Delete {
            request: 4,
            name: "map".into(),
        }
        .into(),
    );
    assert_eq!(gone.changes, [MasterChange::Deleted { set: 1 }]);
    assert_eq!(master.set("map"), None);
}

#[test]
fn full_disks_are_said_before_anything_is_written() {
    let mut master = master(64 << 10);
    master.handle(
        at(1),
        LOADER,
        Create {
            request: 1,
            about: set(64, 1),
        }
        .into(),
    );
    let blocks = (0..64).collect();
    let reserve = Reserve {
        request: 2,
        set: 1,
        blocks,
        given: vec![],
    };
    let reserved = master.handle(at(2), LOADER, reserve.into());
    assert_eq!(why(&reserved, LOADER), Some(Why::Full));
}

#[test]
fn who_only_reads_writes_nothing() {
    let mut master = master(1 << 30);
    let actions = master.handle(
        at(1),
        CLIENT,
        Create {
            request: 1,
            about: set(4, 1),
        }
        .into(),
    );
    assert_eq!(
        (why(&actions, CLIENT), actions.changes.len()),
        (Some(Why::Key), 0)
    );
    let actions = master.handle(at(1), CLIENT, join("c", 1));
    assert_eq!(actions.closes, [CLIENT]);
}

fn used(master: &Master) -> Vec<u64> {
    master
        .infos()
        .iter()
        .flat_map(|server| server.disks.iter().map(|disk| disk.used))
        .collect()
}

#[test]
fn a_load_that_is_refused_leaves_the_disks_as_they_were() {
    let mut master = master(64 << 10);
    load(&mut master, set(6, 1));
    let before = used(&master);
    let refused = reserves(&mut master, 5, 20, "big", 1000);
    assert_eq!(
        (why(&refused, 20), &refused.changes[..]),
        (Some(Why::Full), &[][..])
    );
    assert_eq!(used(&master), before);
    // All that is left is there for another one, at once.
    let fits = reserves(&mut master, 6, 21, "fits", 24);
    assert!(
        matches!(to(&fits, 21)[..], [Message::Reserved(_)]),
        "{fits:?}"
    );
}

#[test]
fn what_a_load_that_ended_did_not_commit_is_given_back() {
    for is_deleted in [false, true] {
        let mut master = master(64 << 10);
        load(&mut master, set(6, 1));
        let before = used(&master);
        let reserved = reserves(&mut master, 5, 20, "gone", 20);
        assert!(
            matches!(to(&reserved, 20)[..], [Message::Reserved(_)]),
            "{reserved:?}"
        );
        assert_ne!(used(&master), before);
        if is_deleted {
            master.handle(
                at(6),
                20,
                Delete {
                    request: 3,
                    name: "gone".into(),
                }
                .into(),
            );
        }
        master.disconnected(20);
        assert_eq!(used(&master), before);
        // What it sent may still be on its way to the disks.
        let early = reserves(&mut master, 7, 21, "next", 24);
        let Some(Message::Refused(refused)) = to(&early, 21).first().copied() else {
            panic!("{early:?}")
        };
        assert!(
            refused.words.contains("becomes free a minute after"),
            "{}",
            refused.words
        );
        let later = reserves(&mut master, 7 + MINUTE, 21, "next", 24);
        let Some(Message::Reserved(reserved)) = to(&later, 21).first().copied() else {
            panic!("{later:?}")
        };
        let mut places: Vec<_> = reserved.rows.iter().flat_map(|row| &row.places).collect();
        assert!(
            places
                .iter()
                .all(|place| place.offset >= before[usize::from(place.server)])
        );
        places.sort_by_key(|place| (place.server, place.offset));
        assert!(
            places
                .windows(2)
                .all(|two| (two[0].server, two[0].offset) != (two[1].server, two[1].offset))
        );
        // A server whose disk had been written to its end comes again: it is this master's all the same.
        master.disconnected(1);
        master.connected(1, BlockPeerRole::Server, 0).unwrap();
        let Message::Join(join) = join("a", 64 << 10) else {
            panic!()
        };
        let kept = vec![DiskOwnerRecord {
            master: 0,
            used: 60 << 10,
            last_set: 0,
        }];
        let joined = master.handle(at(9 + MINUTE), 1, Join { kept, ..join }.into());
        assert_eq!(why(&joined, 1), None);
    }
}

#[test]
fn places_that_were_given_back_cannot_be_committed() {
    let mut master = master(1 << 20);
    let reserved = reserves(&mut master, 5, 20, "gone", 2);
    let Some(Message::Reserved(reserved)) = to(&reserved, 20).first().copied() else {
        panic!("{reserved:?}")
    };
    let rows = reserved.rows.clone();
    master.disconnected(20);
    master.connected(21, BlockPeerRole::Loader, 21).unwrap();
    let about = BlockSet {
        name: "gone".into(),
        ..set(2, 1)
    };
    master.handle(at(6), 21, Create { request: 1, about }.into());
    let blocks = (0..)
        .zip(rows)
        .map(|(number, row)| CommittedBlock { number, row })
        .collect();
    let set = master.set("gone").unwrap();
    let refused = master.handle(
        at(7),
        21,
        Commit {
            request: 3,
            set,
            blocks,
            seal: true,
        }
        .into(),
    );
    assert_eq!(
        (why(&refused, 21), &refused.changes[..]),
        (Some(Why::NoBlock), &[][..])
    );
}
