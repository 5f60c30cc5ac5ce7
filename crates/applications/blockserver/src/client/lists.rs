//! Sending lists: to the master, or directly to the servers if the master is gone or cannot help.

use super::{BlockClientEvent, BlockClientShared, BlockClientState, SentList, lock, not_open};
use crate::server::now;
use stackline_blocks::wire::master_messages::BlockListRequest;
use stackline_blocks::wire::message::Why;
use stackline_blocks::wire::server_messages::BlockListEntry;
use stackline_blocks::{limits, placement};
use stackline_core::error::{Error, Result};
use stackline_core::time::Instant;
use std::collections::BTreeMap;

impl BlockClientShared {
    pub(super) fn request(
        &self,
        set: u32,
        blocks: Vec<u64>,
        supersedes: bool,
        directly: bool,
    ) -> Result<SentList> {
        if blocks.len() > limits::LONGEST_LIST {
            let words = format!(
                "a list may have at most {} blocks, but this one has {}",
                limits::LONGEST_LIST,
                blocks.len()
            );
            return Err(Error::input(words)
                .hint("request the rest in a second list that does not supersede the first"));
        }
        let (list, before) = {
            let mut known = lock(&self.known);
            if known.machine.about(set).is_none() {
                return Err(not_open(set));
            }
            known
                .machine
                .request(now(), set, blocks, supersedes, self.options.report)
        };
        self.send_list(&list, directly)?;
        Ok(SentList {
            first_unit: list.first_unit,
            serial: list.serial,
            before,
        })
    }

    pub(super) fn withdraw(&self, set: u32) -> Result<()> {
        let (list, _) = {
            let mut known = lock(&self.known);
            if known.machine.about(set).is_none() {
                return Err(not_open(set));
            }
            *known.withdrawn.entry(set).or_default() += 1;
            known
                .machine
                .request(now(), set, Vec::new(), true, self.options.report)
        };
        self.send_list(&list, false)
    }

    fn send_list(&self, list: &BlockListRequest, directly: bool) -> Result<()> {
        if let Some(capture) = &self.capture
            && let Some(about) = lock(&self.known).machine.about(list.set)
        {
            lock(capture).list(Instant(list.app_send), &about.name, &list.blocks);
        }
        if directly || self.goes_around(list.set) || self.send(&list.clone().into()).is_err() {
            self.send_directly(list)?;
        }
        Ok(())
    }

    /// Sends a list to the servers directly, using the known places of its blocks.
    fn send_directly(&self, list: &BlockListRequest) -> Result<()> {
        let links = lock(&self.links);
        if links.is_empty() {
            return Err(no_server_reached(&lock(&self.known)));
        }
        let (session, parts) = {
            let known = lock(&self.known);
            (known.session, divide(list, &known, links.keys().copied()))
        };
        for (id, entries) in parts.by_server {
            if let Some(link) = links
                .get(&id)
                .filter(|_| list.supersedes || !entries.is_empty())
            {
                // The master was not involved, so its two stamps repeat the application's.
                let stamps = [list.app_send; 3];
                link.send(&list.for_server(session, stamps, entries).into());
            }
        }
        drop(links);
        self.report_nowhere(list, parts.nowhere);
        Ok(())
    }

    /// Reports blocks of a list that no server can be asked for.
    fn report_nowhere(&self, list: &BlockListRequest, nowhere: Vec<u64>) {
        let (set, serial) = (list.set, list.serial);
        for number in nowhere {
            let withdrawals = {
                let mut known = lock(&self.known);
                known.machine.drop_block(set, number, Some(serial));
                known.withdrawals(set)
            };
            self.report_block_event(
                BlockClientEvent::Failed {
                    set,
                    number,
                    why: Why::NoServer,
                },
                withdrawals,
            );
        }
    }
}

/// The parts of a list, one per server, and the blocks that no server can be asked for.
struct DividedList {
    by_server: BTreeMap<u16, Vec<BlockListEntry>>,
    nowhere: Vec<u64>,
}

/// Divides a list by the known places of its blocks, avoiding copies that failed.
fn divide(
    list: &BlockListRequest,
    known: &BlockClientState,
    servers: impl Iterator<Item = u16>,
) -> DividedList {
    let mut by_server: BTreeMap<u16, Vec<BlockListEntry>> =
        servers.map(|id| (id, Vec::new())).collect();
    let mut nowhere = Vec::new();
    for (index, number) in list.blocks.iter().enumerate() {
        let row = known
            .rows
            .get(&list.set)
            .and_then(|rows| rows.get(*number as usize));
        let failed = known.failed.get(&(list.set, *number));
        let places = row.into_iter().flat_map(|row| row.places.iter().cloned());
        let place = placement::choose_copy(*number, places, |place| {
            let has_failed =
                failed.is_some_and(|failed| failed.contains(&(place.server, place.disk)));
            by_server.contains_key(&place.server) && !has_failed
        });
        match (row, place) {
            (Some(row), Some(place)) => {
                let length = known
                    .machine
                    .about(list.set)
                    .map_or(0, |about| about.length(*number));
                let entry = BlockListEntry {
                    index: index as u32,
                    number: *number,
                    disk: place.disk,
                    offset: place.offset,
                    length,
                    checksum: row.checksum,
                };
                by_server.entry(place.server).or_default().push(entry);
            }
            _ => nowhere.push(*number),
        }
    }
    DividedList { by_server, nowhere }
}

fn no_server_reached(known: &BlockClientState) -> Error {
    let away: Vec<String> = known
        .away
        .iter()
        .map(|(id, words)| format!("{}: {words}", known.server(*id)))
        .collect();
    let away = if away.is_empty() {
        String::new()
    } else {
        format!(": {}", away.join("; "))
    };
    Error::environment(format!("cannot reach any server{away}"))
        .hint("`stackline blocks list` shows which servers are up")
}
