//! The machine by itself: who hears what after which messages.

use super::*;
use crate::placement::BlockPlacementPolicy;
use crate::wire::master_messages::*;
use crate::wire::server_messages::DiskInfo;
use alloc::vec;

const SERVERS: [u64; 2] = [1, 2];
const LOADER: u64 = 10;
const CLIENT: u64 = 11;

fn at(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn set(blocks: u64, replicas: u8) -> BlockSet {
    let (block_size, placement, picture) = (4096, BlockPlacementPolicy::RoundRobin, None);
    BlockSet {
        name: "map".into(),
        block_size,
        bytes: blocks * 4096 - 96,
        replicas,
        placement,
        picture,
    }
}

/// A server comes with disks that nobody has used.
fn joining(name: &str, disks: Vec<DiskInfo>) -> Join {
    let kept = disks
        .iter()
        .map(|_| DiskOwnerRecord {
            master: 0,
            used: ALIGNMENT,
            last_set: 0,
        })
        .collect();
    Join {
        name: name.into(),
        address: alloc::format!("{name}:1"),
        disks,
        kept,
        adopt: false,
    }
}

fn join(name: &str, capacity: u64) -> Message {
    let identity = name.len() as u128 * 1000 + u128::from(name.as_bytes()[0]);
    let disk = DiskInfo {
        identity,
        path: "/a".into(),
        capacity,
        used: 0,
        up: true,
        writable: true,
        damaged: 0,
    };
    joining(name, vec![disk]).into()
}

/// A master with two servers of one disk each.
fn master(capacity: u64) -> Master {
    let mut master = Master::default();
    for (connection, name) in SERVERS.into_iter().zip(["a", "b"]) {
        master
            .connected(connection, BlockPeerRole::Server, 0)
            .unwrap();
        master.handle(at(0), connection, join(name, capacity));
    }
    master
        .connected(LOADER, BlockPeerRole::Loader, 100)
        .unwrap();
    master
        .connected(CLIENT, BlockPeerRole::Client, 101)
        .unwrap();
    master
}

fn to(actions: &Actions, connection: u64) -> Vec<&Message> {
    actions
        .sends
        .iter()
        .filter(|(to, _)| *to == connection)
        .map(|(_, message)| message)
        .collect()
}

fn why(actions: &Actions, connection: u64) -> Option<Why> {
    to(actions, connection)
        .iter()
        .find_map(|message| match message {
            Message::Refused(refused) => Some(Why::of(refused.why)),
            _ => None,
        })
}

/// Writes all blocks of a set; what was to be remembered.
fn load(master: &mut Master, about: BlockSet) -> Vec<MasterChange> {
    let blocks: Vec<u64> = (0..about.blocks()).collect();
    let created = master.handle(at(1), LOADER, Create { request: 1, about }.into());
    let Some(Message::Created(there)) = to(&created, LOADER).first().copied().cloned() else {
        panic!("{created:?}")
    };
    let set = there.set;
    let reserve = Reserve {
        request: 2,
        set,
        blocks: blocks.clone(),
        given: vec![],
    };
    let reserved = master.handle(at(2), LOADER, reserve.into());
    let Some(Message::Reserved(rows)) = to(&reserved, LOADER).first().copied().cloned() else {
        panic!("{reserved:?}")
    };
    let blocks = blocks.into_iter().zip(rows.rows);
    let blocks = blocks
        .map(|(number, row)| CommittedBlock {
            number,
            row: BlockMapEntry {
                checksum: number as u32,
                ..row
            },
        })
        .collect();
    let done = master.handle(
        at(3),
        LOADER,
        Commit {
            request: 3,
            set,
            blocks,
            seal: true,
        }
        .into(),
    );
    assert!(
        matches!(to(&done, LOADER)[..], [Message::Done(_)]),
        "{done:?}"
    );
    [created.changes, reserved.changes, done.changes].concat()
}

fn open(master: &mut Master) -> (Actions, u32) {
    let actions = master.handle(
        at(4),
        CLIENT,
        OpenSetRequest {
            request: 1,
            name: "map".into(),
        }
        .into(),
    );
    let set = match to(&actions, CLIENT)[..] {
        [Message::Opened(opened)] => opened.set,
        _ => panic!("{actions:?}"),
    };
    (actions, set)
}

fn wants(set: u32, blocks: &[u64]) -> Message {
    let (serial, supersedes, report, first_unit, app_send) = (1, true, true, 50, 77);
    BlockListRequest {
        set,
        serial,
        supersedes,
        report,
        first_unit,
        app_send,
        blocks: blocks.into(),
    }
    .into()
}

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
        matches!(missing[..], [Message::Missing(missing)] if missing.blocks == [9] && Why::of(missing.why) == Why::NoBlock)
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
        if missing.blocks == [0, 2] && Why::of(missing.why) == Why::NoServer)
    );
}

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

#[test]
fn blocks_of_sets_that_are_not_open_are_missing() {
    let mut master = master(1 << 30);
    load(&mut master, set(4, 1));
    let missing = |actions: &Actions| match to(actions, CLIENT)[..] {
        [Message::Missing(missing)] => Some((Why::of(missing.why), missing.blocks.clone())),
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

const OURS: u128 = 77;
const THEIRS: u128 = 78;
const PIECE: u64 = 16 << 20;

/// A master of that identity whose server `a` has used its disk up to there, as far as it remembers.
fn remembering(identity: u128, up_to: Option<u64>) -> Master {
    let mut master = Master::default();
    master.remember(MasterChange::Master {
        identity,
        last_set: 0,
    });
    if let Some(up_to) = up_to {
        master.remember(MasterChange::Server {
            id: 0,
            name: "a".into(),
            disks: vec![1097],
        });
        master.remember(MasterChange::Space {
            server: 0,
            disk: 0,
            up_to,
        });
    }
    master
}

/// What comes of a server `a` whose disk keeps that.
fn comes(master: &mut Master, connection: u64, kept: DiskOwnerRecord, adopt: bool) -> Actions {
    master
        .connected(connection, BlockPeerRole::Server, 0)
        .unwrap();
    let Message::Join(join) = join("a", 1 << 30) else {
        panic!()
    };
    master.handle(
        at(0),
        connection,
        Join {
            kept: vec![kept],
            adopt,
            ..join
        }
        .into(),
    )
}

/// Where the next block of a new set is put.
fn next_place(master: &mut Master) -> Result<u64, Why> {
    let connection = 90;
    master
        .connected(connection, BlockPeerRole::Loader, 90)
        .unwrap();
    let about = BlockSet {
        name: "next".into(),
        ..set(1, 1)
    };
    let created = master.handle(at(1), connection, Create { request: 1, about }.into());
    let Some(Message::Created(created)) = to(&created, connection).first().copied() else {
        panic!("{created:?}")
    };
    let reserve = Reserve {
        request: 2,
        set: created.set,
        blocks: vec![0],
        given: vec![],
    };
    let reserved = master.handle(at(2), connection, reserve.into());
    match to(&reserved, connection)[..] {
        [Message::Reserved(reserved)] => Ok(reserved.rows[0].places[0].offset),
        _ => Err(why(&reserved, connection).unwrap()),
    }
}

#[test]
fn a_master_writes_only_where_it_gave_out_the_space() {
    for (remembers, master, used, is_taken) in [
        // Nobody's, and empty ones of any master.
        (None, 0, ALIGNMENT, true),
        (None, THEIRS, ALIGNMENT, true),
        (Some(PIECE), OURS, ALIGNMENT, true),
        // Its own.
        (Some(PIECE), OURS, PIECE, true),
        // Another one's, whether this one has seen the disk before or not: its file is another, or empty.
        (None, THEIRS, 8192, false),
        (Some(PIECE), THEIRS, 8192, false),
        // More than it remembers: its file is an old copy, or was emptied.
        (Some(PIECE), OURS, PIECE + 1, false),
        (None, OURS, 8192, false),
        // Of a version whose disks kept no master: the one that remembers it, and enough of it.
        (Some(PIECE), 0, PIECE, true),
        (Some(PIECE), 0, PIECE + 1, false),
        (None, 0, 8192, false),
        (None, THEIRS, u64::MAX, false),
    ] {
        let mut ours = remembering(OURS, remembers);
        let actions = comes(
            &mut ours,
            1,
            DiskOwnerRecord {
                master,
                used,
                last_set: 0,
            },
            false,
        );
        let case = (remembers, master, used);
        assert_eq!(
            why(&actions, 1),
            (!is_taken).then_some(Why::Foreign),
            "{case:?}"
        );
        if is_taken {
            assert!(
                matches!(to(&actions, 1)[..], [Message::Joined(joined)] if joined.master == OURS),
                "{case:?}"
            );
            assert!(next_place(&mut ours).unwrap() >= used, "{case:?}");
        } else {
            assert_eq!(
                (&actions.closes[..], actions.notes.len()),
                (&[1][..], 1),
                "{case:?}"
            );
            assert!(
                actions.notes[0].contains("/a of the server a")
                    && actions.notes[0].contains("--adopt")
            );
            assert_eq!(next_place(&mut ours), Err(Why::Full), "{case:?}");
            // It comes again and again: whoever runs the master reads it once.
            assert_eq!(
                comes(
                    &mut ours,
                    2,
                    DiskOwnerRecord {
                        master,
                        used,
                        last_set: 0
                    },
                    false
                )
                .notes,
                Vec::<String>::new()
            );
            // Taken over, it is used behind what this master knows of it.
            let adopted = comes(
                &mut ours,
                3,
                DiskOwnerRecord {
                    master,
                    used,
                    last_set: 0,
                },
                true,
            );
            assert_eq!(why(&adopted, 3), None, "{case:?}");
            if used < 1 << 30 {
                let least = if master == THEIRS {
                    remembers.unwrap_or(ALIGNMENT)
                } else {
                    used
                };
                assert_eq!(
                    next_place(&mut ours),
                    Ok(least.next_multiple_of(ALIGNMENT)),
                    "{case:?}"
                );
            }
        }
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

const MINUTE: u64 = 60_001;

/// What comes of a set of so many blocks whose places are all reserved by somebody.
#[test]
fn an_old_copy_of_a_master_does_not_know_all_sets_of_its_disk() {
    let mut copy = remembering(OURS, Some(PIECE));
    copy.remember(MasterChange::Set {
        id: 1,
        about: set(2, 1),
        sealed: true,
    });
    let kept = |last_set| DiskOwnerRecord {
        master: OURS,
        used: 8192,
        last_set,
    };
    assert_eq!(why(&comes(&mut copy, 1, kept(1), false), 1), None);
    copy.disconnected(1);
    let refused = comes(&mut copy, 2, kept(4), false);
    assert_eq!(why(&refused, 2), Some(Why::Foreign));
    assert!(
        refused.notes[0].contains("set number 4, but this master remembers none above 1"),
        "{refused:?}"
    );
    // Taken over, the numbers of the sets that it has forgotten are not used again.
    let adopted = comes(&mut copy, 3, kept(4), true);
    assert_eq!(why(&adopted, 3), None);
    assert!(adopted.changes.contains(&MasterChange::Master {
        identity: OURS,
        last_set: 4
    }));
    reserves(&mut copy, 1, 20, "next", 1);
    assert_eq!(copy.set("next"), Some(5));
}

fn reserves(master: &mut Master, ms: u64, connection: u64, name: &str, blocks: u64) -> Actions {
    let _ = master.connected(connection, BlockPeerRole::Loader, u128::from(connection));
    let about = BlockSet {
        name: name.into(),
        ..set(blocks, 1)
    };
    let created = master.handle(at(ms), connection, Create { request: 1, about }.into());
    let Some(Message::Created(created)) = to(&created, connection).first().copied() else {
        panic!("{created:?}")
    };
    let reserve = Reserve {
        request: 2,
        set: created.set,
        blocks: (0..blocks).collect(),
        given: vec![],
    };
    master.handle(at(ms), connection, reserve.into())
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
