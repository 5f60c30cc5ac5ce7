//! Random reads past the page cache (`O_DIRECT`), 32 at once, of one disk server with no memory of its own, beside fio on the same
//! file. In turns, medians. `cargo bench -p stackline-blockserver --bench direct [-- ROUNDS]`; the file is in `$TMPDIR`.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/common.rs"]
mod common;

mod rounds;

use common::Site;
use rounds::ours::{self, Ours, Reading};
use rounds::{Figures, Peer};
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::server;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of a block, those that the set has, and reads at once.
pub(crate) const BLOCK: usize = 48 << 10;
const BLOCKS: u64 = 16_384;
const DEPTH: usize = 32;
/// Blocks of a round.
const ROUND: u64 = 16_000;
/// What precedes the blocks on a disk, bytes.
const FIRST: u64 = 4096;

/// Which block is read as the how manieth: all of them once, in no order that a disk could guess.
const fn scattered(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BLOCKS.trailing_zeros())
}

struct Fio {
    file: PathBuf,
}

impl Peer for Fio {
    fn name(&self) -> String {
        "fio".into()
    }

    fn round(&mut self) -> Figures {
        let output = Command::new("fio")
            .args([
                "--name=read",
                "--rw=randread",
                "--direct=1",
                "--readonly",
                "--ioengine=libaio",
                "--norandommap",
            ])
            .args([
                "--output-format=json",
                &format!("--iodepth={DEPTH}"),
                &format!("--bs={BLOCK}"),
            ])
            .args([
                format!("--filename={}", self.file.display()),
                format!("--offset={FIRST}"),
            ])
            .args([
                format!("--size={}", BLOCKS * BLOCK as u64),
                format!("--io_size={}", ROUND * BLOCK as u64),
            ])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let job = &said["jobs"][0];
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let seconds = number(&job["read"]["runtime"]) / 1e3;
        let cpu = (number(&job["usr_cpu"]) + number(&job["sys_cpu"])) / 100.0 * seconds;
        let blocks = number(&job["read"]["total_ios"]) as u64;
        Figures {
            blocks,
            wall: Duration::from_secs_f64(seconds),
            server_cpu_s: cpu,
        }
    }
}

/// A site with one server that has one disk, read directly.
fn site() -> (Site, PathBuf) {
    let mut site = Site::new(0);
    let path = site.directory.path().join("direct");
    std::fs::create_dir_all(&path).unwrap();
    let disk = BlockDisk::open(&path, true, Some(BLOCKS * BLOCK as u64 * 2)).unwrap();
    let options = server::DiskServerOptions {
        cache: 0,
        depth: DEPTH,
        ..site.options(0)
    };
    site.servers
        .push(server::start(options, vec![disk]).unwrap());
    site.wait_for(1);
    (site, path.join("stackline.blocks"))
}

fn main() {
    let rounds = rounds::asked_for();
    let begun = Instant::now();
    let (site, file) = site();
    ours::load(&site, BLOCKS);
    println!(
        "{} MiB loaded in {:.1} s",
        (BLOCKS * BLOCK as u64) >> 20,
        begun.elapsed().as_secs_f64()
    );
    // Half of what is on its way is asked for at once: there are always more wanted than can be read at once.
    let reading = Reading {
        round: ROUND,
        in_flight: 4 * DEPTH as u64,
        number: scattered,
    };
    let threads = &["client", "disk", "master"];
    let ours = Ours {
        name: "stackline".into(),
        site,
        options: ours::discarding(),
        reading,
        threads,
    };
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(ours)];
    if Command::new("fio").arg("--version").output().is_ok() {
        peers.push(Box::new(Fio { file }));
    } else {
        println!("fio is not there: nothing to compare with");
    }
    let all = rounds::in_turns(&mut peers, rounds);
    println!(
        "{ROUND} blocks of {BLOCK} B a round, {DEPTH} reads at once, {rounds} rounds in turns; medians (least to most)"
    );
    rounds::print(&peers, &all);
    if let [ours, fio] = &all[..] {
        let (rate, least, most) = rounds::ratio(ours, fio, Figures::gigabytes_a_second);
        println!("throughput of stackline by that of fio: {rate:.2} ({least:.2}..{most:.2})");
    }
}
