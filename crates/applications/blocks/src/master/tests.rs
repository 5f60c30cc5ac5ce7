//! The machine by itself: who hears what after which messages.

mod disk_servers;
mod loading;
mod memory;
mod ownership;
mod readers;

use super::*;
use crate::placement::BlockPlacementPolicy;
use crate::wire::master_messages::*;
use crate::wire::server_messages::DiskInfo;
use alloc::vec;

const SERVERS: [u64; 2] = [1, 2];
const LOADER: u64 = 10;
const CLIENT: u64 = 11;
const OURS: u128 = 77;
const MINUTE: u64 = 60_001;

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
            Message::Refused(refused) => Some(Why::from_number(refused.why)),
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

/// What comes of a set of so many blocks whose places are all reserved by somebody.
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
