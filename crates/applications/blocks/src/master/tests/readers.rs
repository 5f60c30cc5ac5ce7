//! Clients with open sets: which servers their lists go to, what is missing, what they hear of changes.

use super::{
    CLIENT, LOADER, OURS, SERVERS, at, joining, load, master, open, remembering, set, to, wants,
};
use crate::master::{Actions, Master, MasterChange};
use crate::wire::handshake::BlockPeerRole;
use crate::wire::master_messages::{Close, Create, Delete, Gone};
use crate::wire::message::{Message, Why};
use crate::wire::server_messages::DiskInfo;
use alloc::vec;
use alloc::vec::Vec;

#[test]
fn a_list_goes_to_the_servers_that_have_its_blocks() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let (_, id) = open(&mut master);
    let actions = master.handle(at(9), CLIENT, wants(id, &[0, 1, 2, 9]));
    let numbers = |connection| match to(&actions, connection)[..] {
        [Message::Requests(list)] => {
            assert_eq!(
                (list.session, list.first_unit, list.stamps),
                (101, 50, [77, 9_000_000, 9_000_000])
            );
            list.entries
                .iter()
                .map(|entry| (entry.index, entry.number, entry.checksum))
                .collect::<Vec<_>>()
        }
        ref other => panic!("{other:?}"),
    };
    assert_eq!(numbers(1), [(0, 0, 0), (2, 2, 2)]);
    assert_eq!(numbers(2), [(1, 1, 1)]);
    let missing = to(&actions, CLIENT);
    assert!(
        matches!(missing[..], [Message::Missing(missing)] if missing.blocks == [9] && Why::from_number(missing.why) == Why::NoBlock)
    );
}

#[test]
fn every_server_learns_that_a_list_supersedes() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let (_, id) = open(&mut master);
    let actions = master.handle(at(9), CLIENT, wants(id, &[0]));
    assert!(
        matches!(to(&actions, 2)[..], [Message::Requests(list)] if list.entries.is_empty() && list.supersedes)
    );
}

#[test]
fn the_last_block_is_as_long_as_what_is_left() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let (_, id) = open(&mut master);
    let actions = master.handle(at(9), CLIENT, wants(id, &[3]));
    assert!(
        matches!(to(&actions, 2)[..], [Message::Requests(list)] if list.entries[0].length == 4000)
    );
}

#[test]
fn replicas_serve_when_a_server_dies_and_clients_learn_it() {
    let mut master = master(1 << 30);
    load(&mut master, set(8, 2));
    let (_, id) = open(&mut master);
    let gone = master.disconnected(2);
    assert!(
        matches!(to(&gone, CLIENT)[..], [Message::Changed(changed)] if !changed.server.up && changed.server.id == 1)
    );
    let actions = master.handle(at(9), CLIENT, wants(id, &[0, 1, 2, 3, 4, 5, 6, 7]));
    assert!(matches!(to(&actions, 1)[..], [Message::Requests(list)] if list.entries.len() == 8));
    assert_eq!(to(&actions, CLIENT), Vec::<&Message>::new());
}

#[test]
fn copies_are_read_as_evenly_as_they_were_placed() {
    for disks in [1, 2, 3] {
        let mut master = Master::default();
        for (connection, name) in SERVERS.into_iter().zip(["a", "b"]) {
            master
                .connected(connection, BlockPeerRole::Server, 0)
                .unwrap();
            let disk = |identity| DiskInfo {
                identity,
                path: "/a".into(),
                capacity: 1 << 30,
                used: 0,
                up: true,
                writable: true,
                damaged: 0,
            };
            let disks = (0..disks)
                .map(|at| disk(u128::from(connection) * 10 + at))
                .collect();
            master.handle(at(0), connection, joining(name, disks).into());
        }
        master
            .connected(LOADER, BlockPeerRole::Loader, 100)
            .unwrap();
        master
            .connected(CLIENT, BlockPeerRole::Client, 101)
            .unwrap();
        load(&mut master, set(60, 2));
        let (_, set) = open(&mut master);
        let blocks: Vec<u64> = (0..60).collect();
        let actions = master.handle(at(5), CLIENT, wants(set, &blocks));
        for server in SERVERS {
            let [Message::Requests(list)] = to(&actions, server)[..] else {
                panic!("{actions:?}")
            };
            let of = |disk| {
                list.entries
                    .iter()
                    .filter(|entry| u128::from(entry.disk) == disk)
                    .count() as u128
            };
            let counts: Vec<u128> = (0..disks).map(of).collect();
            assert!(
                counts.iter().all(|count| *count == 30 / disks),
                "server {server}: {counts:?}"
            );
        }
    }
}

#[test]
fn without_replicas_the_blocks_of_a_dead_server_are_named() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let (_, id) = open(&mut master);
    master.disconnected(1);
    let actions = master.handle(at(9), CLIENT, wants(id, &[0, 1, 2, 3]));
    assert!(
        matches!(to(&actions, CLIENT)[..], [Message::Missing(missing)]
        if missing.blocks == [0, 2] && Why::from_number(missing.why) == Why::NoServer)
    );
}

#[test]
fn blocks_of_sets_that_are_not_open_are_missing() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let missing = |actions: &Actions| match to(actions, CLIENT)[..] {
        [Message::Missing(missing)] => {
            Some((Why::from_number(missing.why), missing.blocks.clone()))
        }
        _ => None,
    };
    let early = master.handle(at(9), CLIENT, wants(1, &[0, 3]));
    assert_eq!(missing(&early), Some((Why::NoSet, vec![0, 3])));
    let (_, id) = open(&mut master);
    master.handle(at(10), CLIENT, Close { set: id }.into());
    let late = master.handle(at(11), CLIENT, wants(id, &[0]));
    assert_eq!(missing(&late), Some((Why::NoSet, vec![0])));
}

#[test]
fn who_has_a_set_open_learns_that_it_is_gone_and_its_number_is_used_once() {
    let mut first = master(1 << 30);
    load(&mut first, set(4, 1));
    let (_, id) = open(&mut first);
    let deleted = first.handle(
        at(5),
        LOADER,
        Delete {
            request: 1,
            name: "map".into(),
        }
        .into(),
    );
    assert_eq!(to(&deleted, CLIENT), [&Message::from(Gone { set: id })]);
    // After it was started again too.
    let mut second = remembering(OURS, None);
    second.remember(MasterChange::Master {
        identity: OURS,
        last_set: id,
    });
    second
        .connected(LOADER, BlockPeerRole::Loader, 100)
        .unwrap();
    let created = second.handle(
        at(6),
        LOADER,
        Create {
            request: 1,
            about: set(4, 1),
        }
        .into(),
    );
    assert!(
        matches!(to(&created, LOADER)[..], [Message::Created(created)] if created.set == id + 1)
    );
}
