//! Lifelines out of a large log beside DuckDB on the same files in the same run: CPU seconds, wall, memory, and whether both
//! say the same.
//!
//! `cargo bench -p stackline-analyze --bench lifelines`. Beside DuckDB when a Python that has it is named:
//! `STACKLINE_PYTHON=target/venv/bin/python`. `BLOCKS` (1,250,000) and `ROUNDS` (5) may be set.

#[path = "../../../record/runs/benches/ingest/blocks.rs"]
mod blocks;
#[path = "../../../record/runs/benches/ingest/cost.rs"]
mod cost;

use cost::{Cost, cost, middle};
use stackline_analyze::assemble::{Assembler, LifelineOptions, fields};
use stackline_analyze::lifelines::Lifelines;
use stackline_analyze::segments::segments;
use stackline_events::EventTable;
use stackline_events::text::EventTextReader;
use stackline_runs::events::{EventColumnSelection, EventFileWriter, events_path, read_batches};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Command;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// What takes longer than this between the last two points is a stall, ns.
const STALL: i64 = 1_000_000_000;

fn main() -> Fallible<()> {
    let arguments: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Each question in a process of its own, so that its CPU seconds and memory are its own.
        ["percentiles", run] => percentiles(Path::new(run)),
        ["stalls", run] => stalls(Path::new(run)),
        _ => compare(),
    }
}

fn assembled(run: &Path, options: &LifelineOptions) -> Fallible<Lifelines> {
    let mut assembler = Assembler::new(None, options);
    read_batches(
        run,
        &EventColumnSelection::fields(&fields(options)),
        |batch| assembler.add(batch, None),
    )?;
    Ok(assembler.finish())
}

/// Each segment of a block's way: keywords, n, median, p99.
fn percentiles(run: &Path) -> Fallible<()> {
    let made = assembled(run, &LifelineOptions::default())?;
    // One segment a pair of keywords: every block has the same points, at one of several servers.
    let mut pooled = made;
    pool_hosts(&mut pooled);
    for segment in segments(&pooled, None, false) {
        let keyword = |point: u32| pooled.points[point as usize].keyword.as_str();
        let (from, to, ns) = (keyword(segment.from), keyword(segment.to), segment.ns);
        println!("{from} {to} {} {:.2} {:.2}", ns.n, ns.median_ns, ns.p99_ns);
    }
    Ok(())
}

/// Makes one point of each keyword's hosts.
fn pool_hosts(made: &mut Lifelines) {
    let mut first: BTreeMap<String, u32> = BTreeMap::new();
    let keywords = made
        .points
        .iter()
        .zip(0..)
        .map(|(point, at)| *first.entry(point.keyword.clone()).or_insert(at));
    let pooled: Vec<u32> = keywords.collect();
    made.passages
        .iter_mut()
        .for_each(|passage| passage.point = pooled[passage.point as usize]);
}

/// Stalls before the last point, and those of them in which something of the block's own bytes was sent again.
fn stalls(run: &Path) -> Fallible<()> {
    let made = assembled(
        run,
        &LifelineOptions {
            ranges: true,
            ..LifelineOptions::default()
        },
    )?;
    let (mut all, mut explained) = (0, 0);
    for line in &made.lines {
        let [.., before, last] = made.passages_of(line) else {
            continue;
        };
        if last.at_ns as i64 - before.at_ns as i64 > STALL
            && made.points[last.point as usize].keyword == "APP_RECEIVE"
        {
            all += 1;
            let within = |at_ns: u64| (before.at_ns..=last.at_ns).contains(&at_ns);
            explained += u32::from(made.marks_of(line).iter().any(|mark| within(mark.at_ns)));
        }
    }
    println!("{all} {explained}");
    Ok(())
}

/// The log as a run's files: it is in the order of time already.
fn written(run: &Path, blocks: u64) -> Fallible<u64> {
    let log = run.with_extension("log");
    let lines = blocks::write(blocks, 1, &mut BufWriter::new(File::create(&log)?))?;
    let mut hosts: BTreeMap<String, (EventFileWriter<File>, EventTable)> = BTreeMap::new();
    fs::create_dir_all(run.join("events"))?;
    for event in EventTextReader::new(
        &mut BufReader::new(File::open(&log)?) as &mut dyn BufRead,
        "log",
    ) {
        let event = event?;
        if !hosts.contains_key(&event.host) {
            let path = events_path(run, &event.host)?;
            hosts.insert(
                event.host.clone(),
                (
                    EventFileWriter::new(File::create(&path)?, &path)?,
                    EventTable::default(),
                ),
            );
        }
        let Some((writer, table)) = hosts.get_mut(&event.host) else {
            continue;
        };
        table.push_event(&event);
        if table.len() == 1 << 20 {
            push(writer, table)?;
        }
    }
    for (mut writer, mut table) in hosts.into_values() {
        push(&mut writer, &mut table)?;
        writer.finish()?;
    }
    fs::remove_file(log)?;
    Ok(lines)
}

fn push(writer: &mut EventFileWriter<File>, table: &mut EventTable) -> Fallible<()> {
    let rows: Vec<u32> = (0..table.len() as u32).collect();
    writer.push(table, &rows)?;
    *table = EventTable::default();
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
    let run = directory.path().join("run");
    let lines = written(&run, blocks)?;
    println!("{lines} events; {rounds} rounds, interleaved; medians (least to most)");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/lifelines/others.py");
    let python = env::var_os("STACKLINE_PYTHON").map(PathBuf::from);
    let mut sides: Vec<(String, Command)> = Vec::new();
    for question in ["percentiles", "stalls"] {
        let mut ours = Command::new(env::current_exe()?);
        ours.arg(question).arg(&run);
        sides.push((format!("{question}, stackline"), ours));
        if let Some(python) = &python {
            let mut theirs = Command::new(python);
            theirs.arg(&script).arg(question).arg(&run);
            sides.push((format!("{question}, DuckDB"), theirs));
        }
    }
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); sides.len()];
    let mut said: Vec<String> = vec![String::new(); sides.len()];
    for _ in 0..rounds {
        for ((_, command), (costs, said)) in sides.iter_mut().zip(costs.iter_mut().zip(&mut said)) {
            let (cost, text) = cost(command)?;
            costs.push(cost);
            *said = text;
        }
    }
    for ((name, _), costs) in sides.iter().zip(&costs) {
        let of = |of: fn(&Cost) -> f64| middle(costs, of);
        let (cpu, wall, memory) = (
            of(|cost| cost.cpu_s),
            of(|cost| cost.wall_s),
            of(|cost| cost.memory_mb),
        );
        println!(
            "{name:<24} CPU {:>5.2} s ({:.2} to {:.2}), wall {:>5.2} s, {:>5.0} MB",
            cpu.1, cpu.0, cpu.2, wall.1, memory.1
        );
    }
    if python.is_some() {
        let same = said.chunks(2).all(|pair| pair[0] == pair[1]);
        println!("both say the same: {same}");
        if !same {
            said.iter().for_each(|text| println!("---\n{text}"));
        }
    }
    Ok(())
}
