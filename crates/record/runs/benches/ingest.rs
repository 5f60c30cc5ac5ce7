//! Text logs into Parquet, beside polars and DuckDB on the same file in the same run: CPU seconds, wall, memory, bytes an event.
//!
//! `cargo bench -p stackline-runs --bench ingest`. Beside others when a Python that has them is named:
//! `STACKLINE_PYTHON=target/venv/bin/python`. `BLOCKS` (1,250,000) and `ROUNDS` (5) may be set. `-- --write FILE BLOCKS` only
//! writes the log.

#[path = "ingest/blocks.rs"]
mod blocks;
#[path = "ingest/cost.rs"]
mod cost;

use cost::{Cost, cost, middle};
use stackline_runs::events::{
    EventColumnSelection, EventFileReader, ImportLog, Intake, Merged, event_files, import_text,
};
use std::env;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--write", file, blocks] => {
            println!(
                "{} lines",
                blocks::write(blocks.parse()?, 1, &mut BufWriter::new(File::create(file)?))?
            );
            Ok(())
        }
        // One import in a process of its own, so that its CPU seconds and memory are its own.
        ["--import", log, run] => import(Path::new(log), Path::new(run)),
        ["--read", run] => read(Path::new(run)),
        _ => compare(),
    }
}

fn import(log: &Path, run: &Path) -> Fallible<()> {
    let mut bytes = File::open(log)?;
    let mut intake = Intake::begin(run)?;
    let log = ImportLog {
        bytes: &mut bytes,
        name: "log",
        host: None,
        present_ns: u64::MAX,
    };
    let import = import_text(log, &mut intake)?;
    intake.finish()?;
    assert!(import.refused.is_empty(), "{:?}", import.refused);
    Ok(())
}

fn read(run: &Path) -> Fallible<()> {
    let mut sum = 0_u64;
    for path in event_files(run)? {
        let mut reader = EventFileReader::open(&path, &EventColumnSelection::fields(&[0]))?;
        while let Some(batch) = reader.next_batch()? {
            sum = sum.wrapping_add(batch.at_ns.iter().copied().fold(0, u64::wrapping_add));
        }
    }
    assert_ne!(sum, 1);
    Ok(())
}

fn compare() -> Fallible<()> {
    let number = |name: &str, usual: u64| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(usual)
    };
    let (blocks, rounds) = (number("BLOCKS", 1_250_000), number("ROUNDS", 5) as usize);
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("blocks.log");
    let lines = blocks::write(blocks, 1, &mut BufWriter::new(File::create(&log)?))?;
    println!(
        "{lines} lines, {} MB; {rounds} rounds, interleaved; medians (least to most)",
        fs::metadata(&log)?.len() / 1_000_000
    );
    let run = directory.path().join("run");
    let own = env::current_exe()?;
    let python = env::var_os("STACKLINE_PYTHON").map(PathBuf::from);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ingest/others.py");
    let other = |name: &str| -> Option<(String, Command)> {
        let mut command = Command::new(python.as_ref()?);
        command
            .arg(&script)
            .arg(name)
            .arg(&log)
            .arg(directory.path().join(format!("{name}.parquet")));
        Some((name.to_owned(), command))
    };
    let mut ours = Command::new(&own);
    ours.arg("--import").arg(&log).arg(&run);
    let mut reads = Command::new(&own);
    reads.arg("--read").arg(&run);
    let mut runners = vec![("stackline".to_owned(), ours)];
    runners.extend(["polars", "duckdb"].into_iter().filter_map(other));
    runners.push((
        "read back: time, keyword, host, one field".to_owned(),
        reads,
    ));
    let mut costs = vec![Vec::new(); runners.len()];
    for _ in 0..rounds {
        let _ = fs::remove_dir_all(&run);
        for ((_, command), costs) in runners.iter_mut().zip(&mut costs) {
            costs.push(cost(command)?.0);
        }
    }
    let size: u64 = event_files(&run)?
        .iter()
        .map(|path| fs::metadata(path).map_or(0, |data| data.len()))
        .sum();
    let ours = middle(&costs[0], |cost| cost.cpu_s).1;
    for ((name, _), costs) in runners.iter().zip(&costs) {
        let (least, cpu, most) = middle(costs, |cost| cost.cpu_s);
        let (wall, memory) = (
            middle(costs, |cost| cost.wall_s).1,
            middle(costs, |cost| cost.memory_mb).1,
        );
        println!(
            "{name:<44} CPU {cpu:>6.2} s ({least:.2} to {most:.2}), wall {wall:>5.2} s, {memory:>5.0} MB, {:.2} of ours",
            cpu / ours
        );
    }
    println!("at rest: {:.2} bytes an event", size as f64 / lines as f64);
    let others = ["polars", "duckdb"]
        .map(|name| fs::metadata(directory.path().join(format!("{name}.parquet"))));
    for (name, data) in ["polars", "duckdb"]
        .iter()
        .zip(others)
        .filter_map(|(name, data)| Some((name, data.ok()?)))
    {
        println!(
            "at rest by {name}: {:.2} bytes an event",
            data.len() as f64 / lines as f64
        );
    }
    no_order(
        &own,
        &directory.path().join("shuffled.log"),
        &directory.path().join("shuffled"),
        blocks / 4,
    )?;
    let begin = Instant::now();
    let mut count = 0;
    Merged::open(&run, false)?.each(|_, rows| {
        count += rows.len() as u64;
        Ok(())
    })?;
    println!(
        "all hosts merged by time: {count} events in {:.2} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The worst case: lines in no order at all.
fn no_order(own: &Path, log: &Path, run: &Path, blocks: u64) -> Fallible<()> {
    let mut bytes = Vec::new();
    let count = blocks::write(blocks, 2, &mut bytes)?;
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut state = 1_u64;
    for last in (1..lines.len()).rev() {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        lines.swap(last, (state >> 33) as usize % (last + 1));
    }
    fs::write(log, lines.concat())?;
    let Cost {
        cpu_s, memory_mb, ..
    } = cost(Command::new(own).arg("--import").arg(log).arg(run))?.0;
    let cpu = cpu_s / count as f64 * 1e6;
    println!(
        "{count} lines in no order: CPU {cpu_s:.2} s, {cpu:.2} s a million, {memory_mb:.0} MB"
    );
    Ok(())
}
