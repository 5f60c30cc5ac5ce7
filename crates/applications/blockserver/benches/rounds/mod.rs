//! What the benchmarks of the block server share: rounds in turns, what a round took, medians.
#![allow(dead_code, reason = "each benchmark takes what it needs")]

pub(crate) mod ours;

use crate::BLOCK;
use stackline_testing::bench_arguments::BenchArguments;
use std::time::Duration;

/// What a round took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) blocks: u64,
    pub(crate) wall: Duration,
    pub(crate) server_cpu_s: f64,
}

impl Figures {
    pub(crate) fn cpu_us_a_block(&self) -> f64 {
        self.server_cpu_s / self.blocks as f64 * 1e6
    }

    pub(crate) fn gigabytes_a_second(&self) -> f64 {
        (self.blocks * BLOCK as u64) as f64 / self.wall.as_secs_f64() / 1e9
    }
}

/// Somebody who serves blocks.
pub(crate) trait Peer {
    fn name(&self) -> String;
    fn round(&mut self) -> Figures;
}

/// The number of rounds that the command line asks for.
pub(crate) fn asked_for() -> usize {
    BenchArguments::read().take_first_number().unwrap_or(7)
}

/// Figures of each peer; the first round warms the caches and does not count.
pub(crate) fn in_turns(peers: &mut [Box<dyn Peer>], rounds: usize) -> Vec<Vec<Figures>> {
    let mut all: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (peer, figures) in peers.iter_mut().zip(&mut all) {
            let figure = peer.round();
            if round > 0 {
                figures.push(figure);
            }
        }
    }
    all
}

/// Median, least and most.
pub(crate) fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}

/// Median, least and most of what `of` says of two peers in each round, the first by the second.
pub(crate) fn ratio(
    one: &[Figures],
    other: &[Figures],
    of: fn(&Figures) -> f64,
) -> (f64, f64, f64) {
    spread(
        one.iter()
            .zip(other)
            .map(|(one, other)| of(one) / of(other))
            .collect(),
    )
}

/// A line for each peer, and how busy the machine was.
pub(crate) fn print(peers: &[Box<dyn Peer>], all: &[Vec<Figures>]) {
    for (peer, figures) in peers.iter().zip(all) {
        let (cpu, least_cpu, most_cpu) =
            spread(figures.iter().map(Figures::cpu_us_a_block).collect());
        let (rate, least, most) = spread(figures.iter().map(Figures::gigabytes_a_second).collect());
        println!(
            "{:24} server CPU {cpu:5.1} us a block ({least_cpu:.1}..{most_cpu:.1}), {rate:.2} GB/s ({least:.2}..{most:.2})",
            peer.name()
        );
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "load of the machine in the end: {}",
        load.split(' ').take(2).collect::<Vec<_>>().join(" ")
    );
}

/// CPU seconds of the threads of this process that have such names.
pub(crate) fn cpu_of_threads(names: &[&str]) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let spent = std::fs::read_to_string(path.join("schedstat")).ok()?;
        names
            .contains(&name.trim())
            .then(|| spent.split(' ').next()?.parse::<f64>().ok())?
    };
    tasks.filter_map(|task| of(task.ok()?.path())).sum::<f64>() / 1e9
}

/// CPU seconds of the calling thread.
pub(crate) fn own_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}
