//! Figure 14 and section 5: how fast this machine copies memory, by the number of copies at once, and the throughput of a block
//! server over loopback beside it. By the paper's rule, a server reaches a third of the copying rate: a block is copied once from
//! disk to memory and twice from memory to network.

use super::case::middle;
use super::printed::BLOCK;
use crate::measuring::end_with_parent;
use crate::printed_and_here::nothing_printed;
use serde::{Deserialize, Serialize};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::load::{self, BlockSource};
use stackline_blockserver::{key, master, range_read, server};
use stackline_core::error::{Error, Result};
use stackline_guard::scratch;
use stackline_report::sheet::{Sheet, SheetCell};
use std::hint::black_box;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a copy: more than caches hold.
const COPIED: usize = 64 << 20;
/// Copies of which each thread's median is taken.
const COPIES: usize = 5;
/// The greatest number of threads that copy at once (processes in the paper).
const MOST: usize = 6;
/// Blocks of the set that is served: 192 MiB.
const BLOCKS: u64 = 4096;
/// How often the set is read; the median counts.
const READS: usize = 5;

/// What was measured on this machine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MagicLocalFigures {
    /// For each number of copies at once, the rate of all together, MB/s.
    pub(super) copies: Vec<(usize, f64)>,
    /// The throughput of a server to a client over loopback, or the reason why it was not measured.
    pub(super) served: std::result::Result<MagicServedThroughput, String>,
}

/// The median throughput of one server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MagicServedThroughput {
    /// From its memory, Mbit/s.
    pub(super) memory_mbit_s: f64,
    /// From a file that is in the page cache, Mbit/s.
    pub(super) disk_mbit_s: f64,
}

/// Makes the measurements, in a process of their own. The number of runs is ignored: it only has to be above 0 for this to be called.
pub(super) fn measure(_: u32) -> Result<serde_json::Value> {
    end_with_parent();
    let here = MagicLocalFigures {
        copies: (1..=MOST)
            .map(|at_once| (at_once, copied(at_once)))
            .collect(),
        served: served(),
    };
    serde_json::to_value(here).map_err(|error| {
        Error::measurement(format!("cannot write the measurements as JSON: {error}"))
    })
}

impl MagicLocalFigures {
    /// Reads what the measuring process printed; `Err` in `output` is the reason why it printed nothing.
    pub(super) fn read(
        output: std::result::Result<&[u8], &String>,
    ) -> std::result::Result<Self, String> {
        let output = output.map_err(Clone::clone)?;
        serde_json::from_slice(output)
            .map_err(|error| format!("cannot read the result of the measuring process: {error}"))
    }
}

/// The median rate at which this many threads together copy, MB/s.
fn copied(at_once: usize) -> f64 {
    let barrier = Barrier::new(at_once);
    let each = thread::scope(|scope| {
        let copier = || {
            let (from, mut to) = (vec![1_u8; COPIED], vec![0_u8; COPIED]);
            // A first copy that is not timed, so that all pages are allocated.
            to.copy_from_slice(black_box(&from));
            let times = (0..COPIES).map(|_| {
                barrier.wait();
                let begun = Instant::now();
                to.copy_from_slice(black_box(&from));
                black_box(&to);
                barrier.wait();
                begun.elapsed().as_secs_f64()
            });
            times.collect::<Vec<_>>()
        };
        let copiers: Vec<_> = (0..at_once).map(|_| scope.spawn(copier)).collect();
        copiers
            .into_iter()
            .filter_map(|copier| copier.join().ok())
            .next()
            .unwrap_or_default()
    });
    (at_once * COPIED) as f64 / middle(each) / 1e6
}

/// Measures a master, a server and a client in this process.
fn served() -> std::result::Result<MagicServedThroughput, String> {
    let directory = scratch::create_directory("magic")
        .map_err(|error| format!("cannot create a directory: {error}"))?;
    site(directory.path()).map_err(|error| error.to_string())
}

/// A source of blocks, each filled with the low byte of its number.
struct Filled;

impl BlockSource for Filled {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        into.resize(BLOCK as usize, number as u8);
        Ok(())
    }
}

/// Runs a master, and two servers one after the other: the first with all blocks in memory, the second without a cache.
fn site(directory: &Path) -> Result<MagicServedThroughput> {
    let failed = |error: std::io::Error| Error::measurement(error.to_string());
    let key = key::generate_key().map_err(failed)?;
    let anywhere = ([127, 0, 0, 1], 0).into();
    let master = master::start(
        master::BlockMasterOptions {
            listen: anywhere,
            key: Some(key.clone()),
            places: BlockConnectionLimits::default(),
            say: |_| {},
        },
        &directory.join("master"),
    )?;
    let address = master.address().to_string();
    let about = BlockSet {
        name: "memory".into(),
        block_size: BLOCK,
        bytes: BLOCKS * u64::from(BLOCK),
        replicas: 1,
        placement: BlockPlacementPolicy::RoundRobin,
        picture: None,
    };
    let mut served = [0.0; 2];
    for (at, cache) in [1 << 30, 0].into_iter().enumerate() {
        let disk = directory.join(format!("disk{at}"));
        std::fs::create_dir_all(&disk).map_err(failed)?;
        let options = server::DiskServerOptions {
            name: format!("server{at}"),
            listen: anywhere,
            master: address.clone(),
            key: key.clone(),
            cache,
            depth: 1,
            send_buffer: None,
            read_time: None,
            adopt: false,
            places: BlockConnectionLimits::default(),
            say: |_| {},
        };
        let running = server::start(options, vec![BlockDisk::open(&disk, false, Some(1 << 30))?])?;
        let about = BlockSet {
            name: format!("set{at}"),
            ..about.clone()
        };
        let outcome = wait_for(&address).and_then(|()| read(&address, &key, &about));
        running.stop();
        served[at] = outcome?;
        wait_until_down(&address)?;
    }
    master.stop();
    let [memory_mbit_s, disk_mbit_s] = served;
    Ok(MagicServedThroughput {
        memory_mbit_s,
        disk_mbit_s,
    })
}

/// Waits up to 10 s until some server is up (`wanted`), or none is.
fn wait(address: &str, wanted: bool) -> Result<()> {
    let client = BlockClient::connect(address, BlockClientOptions::default())?;
    let until = Instant::now() + Duration::from_secs(10);
    while client.list()?.1.iter().any(|server| server.up) != wanted {
        if Instant::now() > until {
            return Err(Error::measurement(
                "the server did not start or exit within 10 s",
            ));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn wait_for(address: &str) -> Result<()> {
    wait(address, true)
}

fn wait_until_down(address: &str) -> Result<()> {
    wait(address, false)
}

/// Loads a set and reads it several times; returns the median rate, Mbit/s. The first read fills the server's memory and does not count.
fn read(
    address: &str,
    key: &stackline_blocks::wire::handshake::BlockWriteKey,
    about: &BlockSet,
) -> Result<f64> {
    let loader = BlockClient::connect(
        address,
        BlockClientOptions {
            key: Some(key.clone()),
            ..BlockClientOptions::default()
        },
    )?;
    load::load(&loader, key, about, &mut Filled, None, |_| Ok(()))?;
    let client = BlockClient::connect(
        address,
        BlockClientOptions {
            check: false,
            ..BlockClientOptions::default()
        },
    )?;
    let open = client.open(&about.name)?;
    let mut rates = Vec::new();
    for _ in 0..=READS {
        let begun = Instant::now();
        range_read::read_range(&client, &open, 0, u64::MAX, |_, _| Ok(()))?;
        rates.push(about.bytes as f64 * 8.0 / begun.elapsed().as_secs_f64() / 1e6);
    }
    Ok(middle(rates.split_off(1)))
}

/// The table of Figure 14.
pub(super) fn sheet(here: &std::result::Result<MagicLocalFigures, String>) -> Sheet {
    let mut sheet = Sheet::new(
        "Figure 14",
        "memory copied on this machine, MB/s, by number of concurrent copies, and the one-third rule",
        &[
            ("at_once", "copies"),
            ("copied", "copied"),
            ("third", "a third"),
            ("third_mbit_s", "a third, Mbit/s"),
        ],
    );
    match here {
        Ok(here) => {
            for (at_once, rate) in &here.copies {
                let cells = [*at_once as f64, *rate, rate / 3.0, rate / 3.0 * 8.0];
                sheet
                    .rows
                    .push(cells.map(|number| SheetCell::Number(number, 0)).into());
            }
            let one = here
                .copies
                .first()
                .map_or(f64::NAN, |(_, rate)| rate / 3.0 * 8.0);
            sheet.notes.push(match &here.served {
                Ok(MagicServedThroughput { memory_mbit_s, disk_mbit_s }) => format!(
                    "A server over loopback here: {memory_mbit_s:.0} Mbit/s from its memory (two copies: in and out of the \
                     kernel), {disk_mbit_s:.0} Mbit/s from a file in the page cache (three), {:.1} times the rule's {one:.0}. \
                     The client copies on the same processors.",
                    disk_mbit_s / one
                ),
                Err(reason) => format!("The server was not measured: {reason}."),
            });
        }
        Err(reason) => sheet.notes.push(format!("Not measured: {reason}.")),
    }
    sheet.note(nothing_printed("the copies are made on this machine")).note(
        "Medians of 64 MiB copies by threads. Published for the SGI Onyx: just over 100 MB/s, sustained with 4 \
         processors and more than 5 processes, half of what the manufacturer states; the curve of the figure is \
         lost.",
    )
}
