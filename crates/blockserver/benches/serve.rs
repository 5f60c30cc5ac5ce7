//! One disk server, one connection, blocks of 48 KiB that are in memory, eight in flight: the server's CPU a block and the
//! throughput, beside a bare loop that writes the same blocks from memory, and beside nginx and redis where they are there.
//! In turns, medians. `cargo bench -p stackline-blockserver --bench serve [-- ROUNDS]`.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[path = "../tests/common/mod.rs"]
mod common;

mod peers;

use common::Site;
use peers::{Figures, Peer, bare, nginx, redis};
use stackline_blocks::placement::Placement;
use stackline_blocks::set::Set;
use stackline_blockserver::client::{Event, Options};
use stackline_blockserver::load::{self, Source};
use std::time::{Duration, Instant};

/// Bytes of a block, blocks that are asked for in turn, and blocks in flight.
pub(crate) const BLOCK: usize = 48 << 10;
pub(crate) const BLOCKS: u64 = 1024;
pub(crate) const IN_FLIGHT: u64 = 8;
/// Blocks of a round.
pub(crate) const ROUND: u64 = 40_000;

struct Zeros;

impl Source for Zeros {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> stackline_core::error::Result<()> {
        into.resize(BLOCK, number as u8);
        Ok(())
    }
}

/// CPU seconds of the threads of this process whose names are those of a server's writers and receivers.
fn server_cpu() -> f64 {
    let ticks = 100.0;
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |stat: String| {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let spent = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
        ["write", "client", "disk", "master"].contains(&name).then_some(spent / ticks)
    };
    tasks.filter_map(|task| of(std::fs::read_to_string(task.ok()?.path().join("stat")).ok()?)).sum()
}

/// A server with everything in memory, in this process; its CPU is that of its threads.
struct Ours {
    site: Site,
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        "stackline"
    }

    fn round(&mut self) -> Figures {
        let client = self.site.client(Options { discard: true, check: false, ..Options::default() });
        let open = client.open("set").unwrap();
        let mut next = 0;
        let ask = |next: &mut u64, count: u64| {
            let blocks = (0..count).map(|at| (*next + at) % BLOCKS).collect();
            *next += count;
            client.request_directly(open.id, blocks, false).unwrap();
        };
        let (cpu, begun) = (server_cpu(), Instant::now());
        ask(&mut next, IN_FLIGHT);
        let mut came = 0;
        while came < ROUND {
            match client.next(Some(Duration::from_secs(10))) {
                Some(Event::Block(_)) => came += 1,
                Some(_) => {}
                None => panic!("{came} blocks came"),
            }
            // Half of what is in flight is asked for at once.
            if came % (IN_FLIGHT / 2) == 0 && next < ROUND {
                ask(&mut next, IN_FLIGHT / 2);
            }
        }
        Figures { blocks: ROUND, wall: begun.elapsed(), server_cpu_s: server_cpu() - cpu }
    }
}

fn main() {
    let rounds: usize = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(7);
    let site = Site::new(1);
    let (block_size, placement, picture) = (BLOCK as u32, Placement::RoundRobin, None);
    let about = Set { name: "set".into(), block_size, bytes: BLOCKS * BLOCK as u64, replicas: 1, placement, picture };
    load::load(&site.loader(), &site.key, &about, &mut Zeros, None, |_| Ok(())).unwrap();
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(Ours { site }), Box::new(bare::Bare)];
    peers.extend(nginx::start().map(|nginx| Box::new(nginx) as Box<dyn Peer>));
    peers.extend(redis::start().map(|redis| Box::new(redis) as Box<dyn Peer>));
    let mut all: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (peer, figures) in peers.iter_mut().zip(&mut all) {
            let figure = peer.round();
            // The first warms the caches.
            if round > 0 {
                figures.push(figure);
            }
        }
    }
    println!(
        "{ROUND} blocks of {BLOCK} B a round, {IN_FLIGHT} in flight, {rounds} rounds in turns; medians (least to most)"
    );
    for (peer, figures) in peers.iter().zip(&all) {
        let spread = |of: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = figures.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values[values.len() / 2], values[0], values[values.len() - 1])
        };
        let (cpu, least_cpu, most_cpu) = spread(Figures::cpu_us_a_block);
        let (rate, least, most) = spread(Figures::gigabytes_a_second);
        println!(
            "{:10} server CPU {cpu:5.1} us a block ({least_cpu:.1}..{most_cpu:.1}), {rate:.2} GB/s ({least:.2}..{most:.2})",
            peer.name()
        );
    }
}
