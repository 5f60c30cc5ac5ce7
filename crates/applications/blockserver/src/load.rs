//! Loads a set: reserves places, writes blocks to the disk of every copy, makes them durable, and commits them to the master. What the
//! master has acknowledged is never lost.
//!
//! A load that was interrupted resumes: blocks that were acknowledged are not written again.

use crate::client::{BlockClient, READ_ON, refusal};
use crate::connection::{self, BlockConnectionHalves};
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::{BlockPeerRole, BlockWriteKey};
use stackline_blocks::wire::master_messages::{BlockMapEntry, Commit, CommittedBlock, ServerInfo};
use stackline_blocks::wire::message::{Message, Why};
use stackline_blocks::wire::server_messages::{StoreBlockRequest, Sync};
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a server may take to make a batch durable.
const SYNC: Duration = Duration::from_secs(60);

/// How long to wait for the reason when a server no longer takes data.
const SAID: Duration = Duration::from_millis(500);

/// The hint for a load that was interrupted through no fault of its own.
const AGAIN: &str = "once the master is up, start the load again: it will resume";

/// A source of the blocks of a set.
pub trait BlockSource {
    /// Appends the bytes of a block to `into`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()>;
}

/// The result of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLoadCounts {
    /// Blocks that this load wrote.
    pub written: u64,
    /// Blocks that an earlier load had written.
    pub before: u64,
}

/// The options of a load.
#[derive(Clone, Copy)]
pub struct BlockLoadOptions<'a> {
    /// The disk of each block, if the set's placement is that the loader names it.
    pub given: Option<&'a dyn Fn(u64) -> u32>,
    /// Bytes that are committed at a time: the most that is lost when a loader is killed.
    pub batch: u64,
}

impl Default for BlockLoadOptions<'_> {
    /// Batches of 16 MiB.
    fn default() -> Self {
        Self {
            given: None,
            batch: 16 << 20,
        }
    }
}

/// Loads a set. `given` names the disk of each block if the set's placement requires it; `progress` is called with the number of blocks
/// that are acknowledged.
///
/// # Errors
/// As for [`load_with`].
pub fn load(
    client: &BlockClient,
    key: &BlockWriteKey,
    about: &BlockSet,
    source: &mut dyn BlockSource,
    given: Option<&dyn Fn(u64) -> u32>,
    progress: impl FnMut(u64) -> Result<()>,
) -> Result<BlockLoadCounts> {
    load_with(
        client,
        key,
        about,
        source,
        BlockLoadOptions {
            given,
            ..BlockLoadOptions::default()
        },
        progress,
    )
}

/// Loads a set with these options; `progress` is called with the number of blocks that are acknowledged.
///
/// # Errors
/// If the set exists, somebody else loads it, it was begun with other content, there is no space, or a server is lost.
pub fn load_with(
    client: &BlockClient,
    key: &BlockWriteKey,
    about: &BlockSet,
    source: &mut dyn BlockSource,
    BlockLoadOptions { given, batch }: BlockLoadOptions<'_>,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<BlockLoadCounts> {
    let created = client.create(about)?;
    let mut writers = Writers {
        servers: created.servers,
        set: created.set,
        key,
        connections: BTreeMap::new(),
        written_before: created.written,
        loaded: BlockLoadCounts {
            written: 0,
            before: 0,
        },
    };
    let options = BlockLoadOptions { given, batch };
    let result = writers.write_all(client, about, source, options, &mut progress);
    let loaded = writers.loaded;
    if result.is_err() && created.written + loaded.written == 0 {
        // Nothing of the set was reported to the master, so the set is deleted and its name is free again.
        let _ = client.delete(&about.name);
    }
    result
        .map(|()| loaded)
        .map_err(|error| match error.hint.as_deref() {
            None | Some(READ_ON) if !client.has_master() => error.hint(AGAIN),
            _ => error,
        })
}

/// Reads a block into `into`, padded with zeros to its length.
fn whole(
    about: &BlockSet,
    source: &mut dyn BlockSource,
    number: u64,
    into: &mut Vec<u8>,
) -> Result<()> {
    into.clear();
    source.block(number, into)?;
    into.resize(about.length(number) as usize, 0);
    Ok(())
}

/// Checks with one block that the source is the one with which the load was begun. One block of each batch is checked.
fn same(about: &BlockSet, source: &mut dyn BlockSource, number: u64, checksum: u32) -> Result<()> {
    let mut data = Vec::new();
    whole(about, source, number, &mut data)?;
    if crc32fast::hash(&data) == checksum {
        return Ok(());
    }
    let error = Error::input(format!(
        "the set {} was created with different content: its block {number} differs",
        about.name
    ));
    Err(error.hint(
        "choose another name, or first use `stackline blocks delete` to remove what was loaded",
    ))
}

struct Writers<'k> {
    servers: Vec<ServerInfo>,
    /// The number of the set.
    set: u32,
    key: &'k BlockWriteKey,
    connections: BTreeMap<u16, BlockConnectionHalves>,
    /// Blocks that an earlier load had committed when this one began.
    written_before: u64,
    loaded: BlockLoadCounts,
}

impl Writers<'_> {
    /// Writes all missing blocks of the set, batch by batch, and seals it.
    fn write_all(
        &mut self,
        client: &BlockClient,
        about: &BlockSet,
        source: &mut dyn BlockSource,
        options: BlockLoadOptions<'_>,
        progress: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let BlockLoadOptions { given, batch } = options;
        let set = self.set;
        let (blocks, mut done) = (about.blocks(), 0);
        let at_once = (batch / u64::from(about.block_size)).clamp(1, 1024);
        while done < blocks {
            let batch = done..(done + at_once).min(blocks);
            let rows = if self.written_before > 0 {
                client.map(set, batch.start, batch.end - batch.start)?
            } else {
                Vec::new()
            };
            let missing: Vec<u64> = batch
                .clone()
                .filter(|number| {
                    rows.get((number - batch.start) as usize)
                        .is_none_or(|row| row.places.is_empty())
                })
                .collect();
            self.loaded.before += batch.end - batch.start - missing.len() as u64;
            if let Some((number, row)) = (batch.start..)
                .zip(&rows)
                .find(|(_, row)| !row.places.is_empty())
            {
                same(about, source, number, row.checksum)?;
            }
            if !missing.is_empty() {
                let given: Vec<u32> = given.map_or_else(Vec::new, |given| {
                    missing.iter().map(|number| given(*number)).collect()
                });
                let places = client.reserve(set, &missing, &given)?;
                let written = self.write(about, source, &missing, places)?;
                // Counted before the answer: if the answer is lost, the master may have stored them nevertheless.
                self.loaded.written += missing.len() as u64;
                client.commit(|request| Commit {
                    request,
                    set,
                    blocks: written,
                    seal: false,
                })?;
            }
            done = batch.end;
            progress(done)?;
        }
        client.commit(|request| Commit {
            request,
            set,
            blocks: Vec::new(),
            seal: true,
        })
    }

    fn connection(&mut self, server: u16) -> Result<&mut BlockConnectionHalves> {
        if !self.connections.contains_key(&server) {
            let info = self.servers.iter().find(|info| info.id == server);
            let address = &info
                .ok_or_else(|| {
                    Error::environment("a server joined while blocks were being loaded")
                })?
                .address;
            let halves = connection::connect(address, BlockPeerRole::Writer, Some(self.key), None)
                .map_err(|error| error.within(&self.name(server)))?;
            let failed = |error| Error::environment(format!("{address}: {error}"));
            halves
                .0
                .stream()
                .set_read_timeout(Some(SYNC))
                .map_err(failed)?;
            self.connections.insert(server, halves);
        }
        self.connections
            .get_mut(&server)
            .ok_or_else(|| Error::environment("no connection"))
    }

    fn name(&self, server: u16) -> String {
        let info = self.servers.iter().find(|info| info.id == server);
        info.map_or_else(
            || format!("server {server}"),
            |info| format!("server {} at {}", info.name, info.address),
        )
    }

    /// Writes blocks to all their copies, and waits until they are durable.
    fn write(
        &mut self,
        about: &BlockSet,
        source: &mut dyn BlockSource,
        numbers: &[u64],
        places: Vec<BlockMapEntry>,
    ) -> Result<Vec<CommittedBlock>> {
        let mut written = Vec::new();
        let mut touched = Vec::new();
        let mut data = Vec::new();
        for (number, row) in numbers.iter().zip(places) {
            whole(about, source, *number, &mut data)?;
            let checksum = crc32fast::hash(&data);
            for place in &row.places {
                let (disk, offset, length) = (place.disk, place.offset, data.len() as u32);
                let store = StoreBlockRequest {
                    request: *number as u32,
                    disk,
                    offset,
                    length,
                    checksum,
                };
                let sent = self
                    .connection(place.server)?
                    .1
                    .with_data(&store.into(), &data);
                if let Err(error) = sent {
                    return Err(self.broke_off(place.server, &error.to_string()));
                }
                if !touched.contains(&place.server) {
                    touched.push(place.server);
                }
            }
            written.push(CommittedBlock {
                number: *number,
                row: BlockMapEntry { checksum, ..row },
            });
        }
        let set = self.set;
        for server in &touched {
            let sent = self
                .connection(*server)?
                .1
                .message(&Sync { request: 0, set }.into());
            if let Err(error) = sent {
                return Err(self.broke_off(*server, &error.to_string()));
            }
        }
        for server in &touched {
            let name = self.name(*server);
            match self.connection(*server)?.0.message() {
                Ok(Message::Synced(_)) => {}
                Ok(Message::Refused(refused)) if Why::from_number(refused.why) == Why::Full => {
                    return Err(refusal(&refused.into())
                        .within(&name)
                        .hint("free space on its disk, or give it a larger one"));
                }
                Ok(other) => return Err(refusal(&other).within(&name)),
                Err(ended) => return Err(self.gone(*server, &ended.to_string())),
            }
        }
        Ok(written)
    }

    /// The error for a server that no longer takes data: its own reason, if it has sent one.
    fn broke_off(&mut self, server: u16, words: &str) -> Error {
        let name = self.name(server);
        let receiver = self
            .connections
            .get_mut(&server)
            .map(|(receiver, _)| receiver);
        let said = receiver.and_then(|receiver| {
            receiver.stream().set_read_timeout(Some(SAID)).ok()?;
            receiver.message().ok()
        });
        match said {
            Some(message @ Message::Refused(_)) => refusal(&message).within(&name),
            _ => self.gone(server, words),
        }
    }

    fn gone(&self, server: u16, words: &str) -> Error {
        Error::environment(format!("{}: {words}", self.name(server))).hint(
            "acknowledged blocks are kept: start the load again once the server is up, and it will resume",
        )
    }
}
