//! Loader, master and servers are killed at random points of loads: nothing that was acknowledged is ever lost.
//!
//! `STACKLINE_KILLS` is how many times in all; 200 unless it is set.

use crate::support::blocks::{Site, content};
use crate::support::{noise, until};
use stackline_blocks::wire::master_messages::BlockMapEntry;
use stackline_blockserver::client::{BlockClient, BlockClientEvent, OpenSet};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Sites at once: most of the time something is waited for.
const SITES: u64 = 4;
const BLOCK: usize = 4096;
const BLOCKS: usize = 500;

/// Numbers that look random (Numerical Recipes' LCG; the upper bits).
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn nothing_acknowledged_is_lost_wherever_a_load_is_killed() {
    let kills = std::env::var("STACKLINE_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200_u64);
    let within: u64 = std::thread::scope(|scope| {
        let sites = (0..SITES)
            .map(|site| scope.spawn(move || Story::new(site).run_kills((kills + site) / SITES)));
        let sites: Vec<_> = sites.collect();
        sites.into_iter().map(|site| site.join().unwrap()).sum()
    });
    eprintln!("{within} of {kills} kills came when a part of a set was acknowledged");
    assert!(within > 0);
}

struct Story {
    site: Site,
    data: Vec<u8>,
    draw: Draw,
    set: u64,
}

impl Story {
    fn new(seed: u64) -> Self {
        let site = Site::new(2);
        let data = noise(BLOCKS * BLOCK - 100, seed + 1);
        site.place.write("data", &data);
        Self {
            site,
            data,
            draw: Draw(seed),
            set: 0,
        }
    }

    /// Kills so often, then ends all loads and reads everything; how many of the kills were within a load.
    fn run_kills(mut self, kills: u64) -> u64 {
        let (mut loader, mut within) = (None, 0);
        for _ in 0..kills {
            let mut loading = loader.take().unwrap_or_else(|| self.loader(self.set));
            std::thread::sleep(Duration::from_millis(self.draw.below(150)));
            let before = self.acknowledged();
            let written = before.iter().filter(|row| !row.places.is_empty()).count();
            within += u64::from((1..BLOCKS).contains(&written));
            match self.draw.below(4) {
                0 => self.site.kill_master(),
                1 => self.site.kill_server(0),
                2 => self.site.kill_server(1),
                _ => loading.kill().unwrap(),
            }
            self.site.is_ready();
            self.all_there(&before);
            // One whose server or master was killed ends by itself; one that went on meanwhile is killed another time.
            match loading.try_wait().unwrap() {
                None => loader = Some(loading),
                Some(status) if status.success() => self.set += 1,
                Some(_) => {}
            }
        }
        drop(loader.map(|mut loading| loading.wait()));
        for set in 0..=self.set {
            until("the set is whole", || {
                let status = self.loader(set).wait().unwrap();
                (status.success() || self.is_whole(set)).then_some(())
            });
            self.site
                .blocks(&["get", &name(set), "-o", "back"])
                .succeeds();
            assert!(
                content(&self.site.place, "back") == self.data,
                "the set {set} came back otherwise"
            );
        }
        within
    }

    fn loader(&self, set: u64) -> Child {
        let name = name(set);
        let mut command = self
            .site
            .command(&["load", &name, "data", "--block", "4KiB", "--batch", "64KiB"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn is_whole(&self, set: u64) -> bool {
        let (sets, _) = self.site.client().unwrap().list().unwrap();
        sets.iter()
            .any(|info| info.about.name == name(set) && info.sealed)
    }

    /// Where the master says that blocks of the set are.
    fn acknowledged(&self) -> Vec<BlockMapEntry> {
        self.open().map_or_else(Vec::new, |(_, _, rows)| rows)
    }

    /// The set with its blocks. A load that fails before any is acknowledged deletes it again, also while it is looked at.
    fn open(&self) -> Option<(BlockClient, OpenSet, Vec<BlockMapEntry>)> {
        let client = self.site.client().unwrap();
        let open = client.open(&name(self.set)).ok()?;
        match client.map(open.id, 0, BLOCKS as u64) {
            Ok(rows) => Some((client, open, rows)),
            Err(error) => {
                assert!(
                    client.open(&name(self.set)).is_err(),
                    "the set {} is there: {error}",
                    self.set
                );
                None
            }
        }
    }

    /// What was acknowledged before still is, and all that is can be read.
    fn all_there(&self, before: &[BlockMapEntry]) {
        let is_written = |row: &BlockMapEntry| !row.places.is_empty();
        let Some((client, open, now)) = self.open() else {
            assert!(
                !before.iter().any(is_written),
                "the set {} is gone",
                self.set
            );
            return;
        };
        for (number, (row, then)) in now.iter().zip(before).enumerate() {
            assert!(
                !is_written(then) || row == then,
                "block {number} was {then:?}, is {row:?}"
            );
        }
        let mut wanted: Vec<u64> = (0..)
            .zip(&now)
            .filter(|(_, row)| is_written(row))
            .map(|(number, _)| number)
            .collect();
        client.request(open.id, wanted.clone(), true).unwrap();
        while !wanted.is_empty() {
            match client.next(Some(Duration::from_secs(20))) {
                Some(BlockClientEvent::Block(block)) => {
                    let number = block.head.number;
                    let at = number as usize * BLOCK;
                    assert!(
                        block.data == self.data[at..self.data.len().min(at + BLOCK)],
                        "block {number}"
                    );
                    wanted.retain(|one| *one != number);
                }
                Some(BlockClientEvent::Failed { number, why, .. }) => {
                    panic!("block {number}: {}", why.words())
                }
                Some(_) => {}
                None => panic!("{} blocks do not come", wanted.len()),
            }
        }
    }
}

fn name(set: u64) -> String {
    format!("set{set}")
}
