//! Requests of readers: sets are opened, and the blocks of a list are looked up and distributed over the disk servers.

use super::block_map::Choice;
use super::{Actions, Master, SetState};
use crate::limits;
use crate::wire::master_messages::{
    Ask, BlockCopyLocation, BlockInventoryReply, BlockListRequest, BlockMapEntry, Map, Mapped,
    MissingBlocksNotice, OpenSetReply, OpenSetRequest, SetInfo,
};
use crate::wire::message::Why;
use crate::wire::server_messages::BlockListEntry;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// The blocks of a list by the number of the server that has them, and by reason those that cannot come.
struct AssignedBlocks {
    by_server: BTreeMap<u16, Vec<BlockListEntry>>,
    missing: BTreeMap<Why, Vec<u64>>,
}

fn send_missing(
    connection: u64,
    list: &BlockListRequest,
    why: Why,
    blocks: Vec<u64>,
    actions: &mut Actions,
) {
    let (set, serial, why) = (list.set, list.serial, why as u8);
    actions.send(
        connection,
        MissingBlocksNotice {
            set,
            serial,
            why,
            blocks,
        },
    );
}

impl Master {
    pub(super) fn open(&mut self, connection: u64, open: &OpenSetRequest, actions: &mut Actions) {
        let Some(set) = self.by_name.get(&open.name).copied() else {
            let words = alloc::format!("unknown set {}", open.name);
            return actions.refuse(connection, open.request, Why::NoSet, words);
        };
        let servers = self.infos();
        let (Some(peer), Some(state)) = (self.peers.get_mut(&connection), self.sets.get(&set))
        else {
            return;
        };
        if !peer.open.contains(&set) {
            if peer.open.len() >= limits::MOST_OPEN {
                return actions.refuse(
                    connection,
                    open.request,
                    Why::Limit,
                    "too many sets are open",
                );
            }
            peer.open.push(set);
        }
        let about = state.about.clone();
        let (request, session, master) = (open.request, peer.session, self.identity);
        actions.send(
            connection,
            OpenSetReply {
                request,
                session,
                master,
                set,
                about,
                servers,
            },
        );
    }

    pub(super) fn close(&mut self, connection: u64, set: u32) {
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.open.retain(|open| *open != set);
        }
    }

    /// Handles a list: each server gets a list of the blocks that it has, with their places on disk.
    pub(super) fn list(
        &self,
        now: Instant,
        connection: u64,
        list: &BlockListRequest,
        actions: &mut Actions,
    ) {
        let Some(peer) = self.peers.get(&connection) else {
            return;
        };
        let Some(set) = self
            .sets
            .get(&list.set)
            .filter(|_| peer.open.contains(&list.set))
        else {
            // Each block is reported to the client, since it waits for each: the set may have been deleted.
            return send_missing(connection, list, Why::NoSet, list.blocks.clone(), actions);
        };
        let AssignedBlocks { by_server, missing } = self.assign(set, &list.blocks);
        for (why, blocks) in missing {
            send_missing(connection, list, why, blocks, actions);
        }
        for (id, entries) in by_server {
            let server = self.servers.get(&id).and_then(|server| server.connection);
            let Some(server) = server.filter(|_| list.supersedes || !entries.is_empty()) else {
                continue;
            };
            let stamps = [list.app_send, now.0, now.0];
            let session = peer.session;
            actions.send(server, list.for_server(session, stamps, entries));
        }
    }

    /// Chooses the server for each block of a list.
    fn assign(&self, set: &SetState, blocks: &[u64]) -> AssignedBlocks {
        let mut by_server: BTreeMap<u16, Vec<BlockListEntry>> =
            self.up().map(|(id, _)| (id, Vec::new())).collect();
        let mut missing: BTreeMap<Why, Vec<u64>> = BTreeMap::new();
        for (index, number) in blocks.iter().enumerate() {
            let index = index as u32;
            let length = set.about.length(*number);
            match set.rows.choose(*number, |place| self.reachable(place)) {
                Choice::At(checksum, place) => {
                    let BlockCopyLocation { disk, offset, .. } = place;
                    let entry = BlockListEntry {
                        index,
                        number: *number,
                        disk,
                        offset,
                        length,
                        checksum,
                    };
                    by_server.entry(place.server).or_default().push(entry);
                }
                Choice::NotWritten => missing.entry(Why::NoBlock).or_default().push(*number),
                Choice::Unreachable => missing.entry(Why::NoServer).or_default().push(*number),
            }
        }
        AssignedBlocks { by_server, missing }
    }

    pub(super) fn map(&self, connection: u64, map: &Map, actions: &mut Actions) {
        let Some(set) = self.sets.get(&map.set) else {
            return actions.refuse(connection, map.request, Why::NoSet, "unknown set");
        };
        let last = set
            .about
            .blocks()
            .min(map.first.saturating_add(u64::from(map.count)));
        let nowhere = || BlockMapEntry {
            checksum: 0,
            places: Vec::new(),
        };
        let rows = (map.first..last)
            .map(|number| set.rows.get(number).unwrap_or_else(nowhere))
            .collect();
        actions.send(
            connection,
            Mapped {
                request: map.request,
                set: map.set,
                first: map.first,
                rows,
            },
        );
    }

    pub(super) fn answer_inventory(&self, connection: u64, ask: &Ask, actions: &mut Actions) {
        let sets = self.sets.values().map(|set| SetInfo {
            about: set.about.clone(),
            written: set.rows.written(),
            reachable: set
                .rows
                .iter()
                .filter(|(_, row)| row.places.iter().any(|place| self.reachable(place)))
                .count() as u64,
            sealed: set.sealed,
        });
        actions.send(
            connection,
            BlockInventoryReply {
                request: ask.request,
                sets: sets.collect(),
                servers: self.infos(),
            },
        );
    }
}
