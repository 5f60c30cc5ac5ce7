//! One disk server, one connection, blocks of 48 KiB that are in memory, eight in flight: the server's CPU a block and the
//! throughput, beside a bare loop that writes the same blocks from memory, and beside nginx and redis where they are there.
//! In turns, medians. `cargo bench -p stackline-blockserver --bench serve [-- ROUNDS]`.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/common.rs"]
mod common;

mod peers;
mod rounds;

use common::Site;
use peers::{bare, nginx, redis};
use rounds::Peer;
use rounds::ours::{self, Ours, Reading};

/// Bytes of a block, blocks that are asked for in turn, and blocks in flight.
pub(crate) const BLOCK: usize = 48 << 10;
pub(crate) const BLOCKS: u64 = 1024;
pub(crate) const IN_FLIGHT: u64 = 8;
/// Blocks of a round.
pub(crate) const ROUND: u64 = 40_000;

fn main() {
    let rounds = rounds::asked_for();
    let site = Site::new(1);
    ours::load(&site, BLOCKS);
    let reading = Reading {
        round: ROUND,
        in_flight: IN_FLIGHT,
        number: |at| at % BLOCKS,
    };
    let threads = &["client", "disk", "master"];
    let ours = Ours {
        name: "stackline".into(),
        site,
        options: ours::discarding(),
        reading,
        threads,
    };
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(ours), Box::new(bare::Bare)];
    peers.extend(nginx::start().map(|nginx| Box::new(nginx) as Box<dyn Peer>));
    peers.extend(redis::start().map(|redis| Box::new(redis) as Box<dyn Peer>));
    let all = rounds::in_turns(&mut peers, rounds);
    println!(
        "{ROUND} blocks of {BLOCK} B a round, {IN_FLIGHT} in flight, {rounds} rounds in turns; medians (least to most)"
    );
    rounds::print(&peers, &all);
    for (peer, figures) in peers.iter().zip(&all).skip(1) {
        let (cpu, least, most) = rounds::ratio(&all[0], figures, rounds::Figures::cpu_us_a_block);
        println!(
            "server CPU a block of stackline by that of {}: {cpu:.2} ({least:.2}..{most:.2})",
            peer.name()
        );
    }
}
