//! The state before a simulation begins: servers have joined the master, and sets are placed and sealed.

use super::scene::{BlockScene, SimulatedServer};
use stackline_blocks::client::BlockClientMachine;
use stackline_blocks::limits;
use stackline_blocks::master::{Actions, Master};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::{
    BlockMapEntry, Commit, CommittedBlock, Create, DiskOwnerRecord, Join, OpenSetRequest, Reserve,
};
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::DiskInfo;
use stackline_core::error::{Error, Result};
use stackline_core::time::Instant;

/// The number of the client's connection at the master.
pub(super) const CLIENT: u64 = 1;
const LOADER: u64 = 2;
pub(super) const FIRST_SERVER: u64 = 100;
/// Bytes of a simulated disk.
const CAPACITY: u64 = 1 << 50;

/// Lets servers join, and places the sets. Returns the numbers of the sets.
///
/// # Errors
/// If the master refuses something.
pub(super) fn set_up(
    scene: &BlockScene<'_>,
    master: &mut Master,
    client: &mut BlockClientMachine,
) -> Result<Vec<u32>> {
    for (at, server) in scene.servers.iter().enumerate() {
        let connection = FIRST_SERVER + at as u64;
        let _ = master.connected(connection, BlockPeerRole::Server, 0);
        ask(master, connection, join(at, server).into())?;
    }
    let _ = master.connected(LOADER, BlockPeerRole::Loader, 0);
    let _ = master.connected(CLIENT, BlockPeerRole::Client, u128::from(CLIENT));
    let mut sets = Vec::new();
    for (about, _) in &scene.sets {
        let set = place(scene, master, about)?;
        client.opened(set, about.clone());
        sets.push(set);
    }
    Ok(sets)
}

/// Sends the master a message, and returns its actions.
fn ask(master: &mut Master, connection: u64, message: Message) -> Result<Actions> {
    let actions = master.handle(Instant(0), connection, message);
    let refused = actions.sends.iter().find_map(|(_, message)| match message {
        Message::Refused(refused) => Some(refused.words.clone()),
        _ => None,
    });
    refused.map_or(Ok(actions), |words| Err(Error::input(words)))
}

/// The join message of a server whose disks are empty and have no master.
fn join(at: usize, server: &SimulatedServer) -> Join {
    let disk = |number| DiskInfo {
        identity: (at as u128 + 1) << 16 | number as u128,
        path: String::new(),
        capacity: CAPACITY,
        used: 0,
        up: true,
        writable: true,
        damaged: 0,
    };
    let owner = DiskOwnerRecord {
        master: 0,
        used: 0,
        last_set: 0,
    };
    Join {
        name: format!("{}-{at}", server.host),
        address: String::new(),
        disks: (0..server.disks.len()).map(disk).collect(),
        kept: vec![owner; server.disks.len()],
        adopt: false,
    }
}

/// Creates a set, places and seals its blocks, and opens it for the client. Returns the set's number.
fn place(scene: &BlockScene<'_>, master: &mut Master, about: &BlockSet) -> Result<u32> {
    let create = Create {
        request: 1,
        about: about.clone(),
    };
    ask(master, LOADER, create.into())?;
    let set = master
        .set(&about.name)
        .ok_or_else(|| Error::input("cannot create a set"))?;
    let mut first = 0;
    while first < about.blocks() {
        let last = (first + limits::LONGEST_BATCH as u64).min(about.blocks());
        let blocks: Vec<u64> = (first..last).collect();
        let given = if about.placement == BlockPlacementPolicy::Given {
            disks_in_turn(&scene.given, &blocks)
        } else {
            Vec::new()
        };
        let reserve = Reserve {
            request: 2,
            set,
            blocks,
            given,
        };
        let actions = ask(master, LOADER, reserve.into())?;
        let mut messages = actions.sends.into_iter().map(|(_, message)| message);
        let rows: Vec<BlockMapEntry> = messages
            .find_map(|message| match message {
                Message::Reserved(reserved) => Some(reserved.rows),
                _ => None,
            })
            .unwrap_or_default();
        let written = (first..last)
            .zip(rows)
            .map(|(number, row)| CommittedBlock { number, row });
        let commit = Commit {
            request: 3,
            set,
            blocks: written.collect(),
            seal: last == about.blocks(),
        };
        ask(master, LOADER, commit.into())?;
        first = last;
    }
    let open = OpenSetRequest {
        request: 4,
        name: about.name.clone(),
    };
    ask(master, CLIENT, open.into())?;
    Ok(set)
}

/// A disk for each block, from `given` in turn.
fn disks_in_turn(given: &[u32], blocks: &[u64]) -> Vec<u32> {
    let disk = |block: &u64| {
        given
            .get((*block % given.len().max(1) as u64) as usize)
            .copied()
            .unwrap_or(0)
    };
    blocks.iter().map(disk).collect()
}
