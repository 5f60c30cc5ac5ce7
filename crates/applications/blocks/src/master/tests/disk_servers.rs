//! Servers that come with other disks, without one, or with disks that can only be read.

use super::{
    CLIENT, LOADER, SERVERS, at, join, joining, load, master, next_place, open, set, to, wants, why,
};
use crate::set::BlockSet;
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{Create, DiskChanged, Reserve};
use crate::wire::message::{Message, Why};
use crate::wire::server_messages::DiskInfo;
use alloc::vec;
use alloc::vec::Vec;

#[test]
fn a_server_that_comes_back_with_other_disks_is_refused() {
    let mut master = master(1 << 30);
    master.disconnected(1);
    master.connected(20, BlockPeerRole::Server, 0).unwrap();
    let disk = DiskInfo {
        identity: 5,
        path: "/b".into(),
        capacity: 1,
        used: 0,
        up: true,
        writable: true,
        damaged: 0,
    };
    let other = joining("a", vec![disk]);
    let actions = master.handle(at(5), 20, other.into());
    assert_eq!(
        (why(&actions, 20), &actions.closes[..]),
        (Some(Why::Disk), &[20][..])
    );
    master.connected(21, BlockPeerRole::Server, 0).unwrap();
    let actions = master.handle(at(6), 21, join("a", 1 << 30));
    assert!(matches!(to(&actions, 21)[..], [Message::Joined(joined)] if joined.server == 0));
}

/// A disk of a server as it says when it starts: one that is not there has no identity.
fn two(first: u128, second: u128) -> Message {
    let disk = |identity| DiskInfo {
        identity,
        path: "/d".into(),
        capacity: 1 << 30,
        used: 0,
        up: identity != 0,
        writable: true,
        damaged: 0,
    };
    joining("c", vec![disk(first), disk(second)]).into()
}

#[test]
fn a_server_without_one_of_its_disks_serves_the_others() {
    let mut master = master(1 << 30);
    for (connection, disks, joins) in [
        (20, two(0, 8), false),
        (21, two(7, 8), true),
        (22, two(0, 8), true),
        (23, two(8, 0), false),
        (24, two(7, 8), true),
    ] {
        master
            .connected(connection, BlockPeerRole::Server, 0)
            .unwrap();
        let actions = master.handle(at(5), connection, disks);
        assert_eq!(why(&actions, connection).is_none(), joins, "{connection}");
        let server = master.infos().into_iter().find(|server| server.name == "c");
        let known: Vec<(u128, bool)> = server
            .iter()
            .flat_map(|server| &server.disks)
            .map(|disk| (disk.identity, disk.up))
            .collect();
        match connection {
            20 => assert_eq!(known, []),
            22 => assert_eq!(known, [(7, false), (8, true)]),
            23 => assert_eq!(known, [(7, false), (8, false)]),
            _ => assert_eq!(known, [(7, true), (8, true)]),
        }
        master.disconnected(connection);
    }
}

#[test]
fn a_disk_that_can_only_be_read_is_read_and_gets_no_blocks() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let (_, id) = open(&mut master);
    for server in SERVERS {
        master.handle(
            at(5),
            server,
            DiskChanged {
                disk: 0,
                up: true,
                writable: false,
            }
            .into(),
        );
    }
    let actions = master.handle(at(9), CLIENT, wants(id, &[0, 1, 2, 3]));
    assert_eq!(to(&actions, CLIENT), Vec::<&Message>::new());
    assert_eq!(next_place(&mut master), Err(Why::Full));
    let about = BlockSet {
        name: "words".into(),
        ..set(1, 1)
    };
    master.handle(at(10), LOADER, Create { request: 1, about }.into());
    let set = master.set("words").unwrap();
    let reserved = master.handle(
        at(10),
        LOADER,
        Reserve {
            request: 2,
            set,
            blocks: vec![0],
            given: vec![],
        }
        .into(),
    );
    assert!(
        matches!(to(&reserved, LOADER)[..], [Message::Refused(refused)] if refused.words.contains("read-only"))
    );
    master.handle(
        at(11),
        2,
        DiskChanged {
            disk: 0,
            up: true,
            writable: true,
        }
        .into(),
    );
    assert!(next_place(&mut master).is_ok());
}
