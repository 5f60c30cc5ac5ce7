//! The client library reads blocks from disk servers of this process.

use super::{Figures, Peer, cpu_of_threads};
use crate::BLOCK;
use crate::common::Site;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::client::{BlockClient, BlockClientEvent, BlockClientOptions};
use stackline_blockserver::load::{self, BlockSource};
use std::time::{Duration, Instant};

/// How long a datagram may take; what has not come then is lost.
const LOST: Duration = Duration::from_millis(500);

struct Numbers;

impl BlockSource for Numbers {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> stackline_core::error::Result<()> {
        into.resize(BLOCK, number as u8);
        Ok(())
    }
}

/// Loads a set of so many blocks.
pub(crate) fn load(site: &Site, blocks: u64) {
    let (block_size, placement, picture) = (BLOCK as u32, BlockPlacementPolicy::RoundRobin, None);
    let about = BlockSet {
        name: "set".into(),
        block_size,
        bytes: blocks * BLOCK as u64,
        replicas: 1,
        placement,
        picture,
    };
    load::load(
        &site.loader(),
        &site.key,
        &about,
        &mut Numbers,
        None,
        |_| Ok(()),
    )
    .unwrap();
}

/// What is read, and how.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// Blocks of a round, of which so many are on their way.
    pub(crate) round: u64,
    pub(crate) in_flight: u64,
    /// Which block is asked for as the how manieth.
    pub(crate) number: fn(u64) -> u64,
}

/// Reads blocks; half of what is on its way is asked for at once. What took how long, and how many blocks were lost.
pub(crate) fn read(client: &BlockClient, reading: Reading) -> (Duration, u64) {
    let open = client.open("set").unwrap();
    let (mut asked, mut came, mut lost) = (0, 0, 0);
    let begun = Instant::now();
    while came + lost < reading.round {
        while asked < reading.round && asked - came - lost <= reading.in_flight / 2 {
            let until = (asked + reading.in_flight / 2).min(reading.round);
            let blocks = (asked..until).map(reading.number).collect();
            client.request_directly(open.id, blocks, false).unwrap();
            asked = until;
        }
        match client.next(Some(LOST)) {
            Some(BlockClientEvent::Block(_)) => came += 1,
            Some(_) => {}
            None => lost = asked - came,
        }
    }
    (begun.elapsed(), lost)
}

/// Servers of this process.
pub(crate) struct Ours {
    pub(crate) name: String,
    pub(crate) site: Site,
    pub(crate) options: BlockClientOptions,
    pub(crate) reading: Reading,
    /// The threads that serve.
    pub(crate) threads: &'static [&'static str],
}

impl Peer for Ours {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn round(&mut self) -> Figures {
        let client = self.site.client(self.options.clone());
        let cpu = cpu_of_threads(self.threads);
        let (wall, lost) = read(&client, self.reading);
        if lost > 0 {
            println!("{}: {lost} blocks were lost", self.name);
        }
        Figures {
            blocks: self.reading.round - lost,
            wall,
            server_cpu_s: cpu_of_threads(self.threads) - cpu,
        }
    }
}

/// That the bytes of blocks are thrown away as they come.
pub(crate) fn discarding() -> BlockClientOptions {
    BlockClientOptions {
        discard: true,
        check: false,
        ..BlockClientOptions::default()
    }
}
