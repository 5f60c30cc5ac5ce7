//! One client library and one to four disk servers, blocks of 48 KiB that are in memory, eight in flight at each server: the
//! sum, beside bare senders that answer the same client. All on the same cores, in turns, medians.
//! `cargo bench -p stackline-blockserver --bench servers [-- ROUNDS]`.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/common.rs"]
mod common;

mod rounds;
#[path = "rounds/sender.rs"]
mod sender;

use common::Site;
use rounds::ours::{self, Ours, Reading};
use rounds::{Figures, Peer};

/// Bytes of a block, blocks that are asked for in turn, and blocks in flight at each server.
pub(crate) const BLOCK: usize = 48 << 10;
const BLOCKS: u64 = 1024;
const IN_FLIGHT: u64 = 8;
/// Blocks of a round.
const ROUND: u64 = 40_000;
/// Most servers.
const MOST: usize = 4;

fn reading(servers: usize) -> Reading {
    Reading {
        round: ROUND,
        in_flight: IN_FLIGHT * servers as u64,
        number: |at| at % BLOCKS,
    }
}

fn stackline(servers: usize) -> Box<dyn Peer> {
    let site = Site::new(servers);
    ours::load(&site, BLOCKS);
    let threads = &["client", "disk", "master"];
    let name = format!("stackline, {servers}");
    Box::new(Ours {
        name,
        site,
        options: ours::discarding(),
        reading: reading(servers),
        threads,
    })
}

fn bare(servers: usize) -> Box<dyn Peer> {
    let site = Site::new(0);
    (0..servers).for_each(|number| sender::start(&site, number as u16));
    site.wait_for(servers);
    ours::load(&site, BLOCKS);
    let name = format!("bare senders, {servers}");
    Box::new(Ours {
        name,
        site,
        options: ours::discarding(),
        reading: reading(servers),
        threads: &[sender::THREAD],
    })
}

fn main() {
    let rounds = rounds::asked_for();
    let mut peers: Vec<Box<dyn Peer>> = (1..=MOST)
        .flat_map(|servers| [stackline(servers), bare(servers)])
        .collect();
    let all = rounds::in_turns(&mut peers, rounds);
    println!(
        "{ROUND} blocks of {BLOCK} B a round, {IN_FLIGHT} in flight at each, {rounds} rounds in turns; medians (least to most)"
    );
    rounds::print(&peers, &all);
    let rate = Figures::gigabytes_a_second;
    for (servers, pair) in (1..=MOST).zip(all.chunks(2)) {
        let (sum, least, most) = rounds::ratio(&pair[0], &pair[1], rate);
        print!("{servers}: sum by that of bare senders {sum:.2} ({least:.2}..{most:.2})");
        let (more, least, most) = rounds::ratio(&pair[0], &all[0], rate);
        println!(", by that of one server {more:.2} ({least:.2}..{most:.2})");
    }
}
