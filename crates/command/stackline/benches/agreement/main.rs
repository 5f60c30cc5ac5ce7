//! Do the emulated world (real time, the kernel's TCP) and the simulated world (virtual time) say the same about one
//! specification? One network model stands below both, so what differs is TCP, timing, or a mistake.
//!
//! ```text
//! cargo bench -p stackline --bench agreement [-- WORD... [--quick] [--seed N] [--list]]
//! ```
//!
//! A word keeps the cells that have it in their name. The table is Markdown. The emulated world needs an idle machine and
//! says itself when it was too slow (`overload`); such a row says so behind its verdict, and one that is apart is counted
//! apart from the others.

mod cells;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod support;
mod world;

use cells::{Cell, Kind};
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeMap;
use std::process::ExitCode;
use support::table;
use world::Figure;

const USAGE: &str =
    "cargo bench -p stackline --bench agreement [-- WORD... [--quick] [--seed N] [--list]]";

/// What was asked for.
#[derive(Debug)]
struct Options {
    words: Vec<String>,
    quick: bool,
    list: bool,
    seed: u64,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}\nhint: {USAGE}");
            return ExitCode::from(2);
        }
    };
    let wanted = |cell: &Cell| {
        options
            .words
            .iter()
            .all(|word| cell.name.contains(word.as_str()))
    };
    let cells: Vec<Cell> = cells::all(options.quick)
        .into_iter()
        .filter(wanted)
        .collect();
    if options.list {
        cells
            .iter()
            .for_each(|cell| println!("{}\n    {}", cell.name, cell.spec));
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", table::host());
    println!(
        "| cell | emulated | simulated | simulated / emulated | verdict |\n| --- | --- | --- | --- | --- |"
    );
    let mut verdicts = BTreeMap::<&str, usize>::new();
    for cell in &cells {
        let (emulated, simulated) = (
            world::carry_out(cell, "emulated", options.seed),
            world::carry_out(cell, "simulated", options.seed),
        );
        let (line, verdict) = row(cell, emulated, simulated);
        println!("{line}");
        *verdicts.entry(verdict).or_default() += 1;
    }
    let counted = verdicts
        .iter()
        .map(|(verdict, count)| format!("{verdict}: {count}"))
        .collect::<Vec<_>>();
    println!("\n{} cells. {}", cells.len(), counted.join(", "));
    eprintln!("{}", table::host());
    ExitCode::SUCCESS
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    Ok(Options {
        quick: arguments.take_flag("--quick"),
        list: arguments.take_flag("--list"),
        seed: arguments.take_number("--seed", 1)?,
        words: arguments.into_words()?,
    })
}

/// A row of the table, and its verdict in a word.
fn row(
    cell: &Cell,
    emulated: Result<Figure, String>,
    simulated: Result<Figure, String>,
) -> (String, &'static str) {
    let name = &cell.name;
    let (emulated, simulated) = match (emulated, simulated) {
        (Ok(emulated), Ok(simulated)) => (emulated, simulated),
        (Err(reason), _) => return (format!("| {name} | left out: {reason} | | | |"), "left out"),
        (_, Err(reason)) => return (format!("| {name} | | left out: {reason} | | |"), "left out"),
    };
    let verdict = verdict(cell.kind, &emulated, &simulated);
    let notes = [
        emulated.overload.clone().unwrap_or_default(),
        bare(cell, &emulated),
        drops(&emulated, &simulated),
    ];
    let words = std::iter::once(verdict.to_string())
        .chain(notes)
        .filter(|words| !words.is_empty());
    let words = words.collect::<Vec<_>>().join("; ");
    let ratio = simulated.mean / emulated.mean;
    (
        format!(
            "| {name} | {} | {} | {ratio:.3} | {words} |",
            shown(cell.kind, &emulated),
            shown(cell.kind, &simulated)
        ),
        verdict,
    )
}

/// What the emulator itself adds to a response time.
fn bare(cell: &Cell, emulated: &Figure) -> String {
    let trip = emulated
        .bare_round_trip
        .filter(|_| cell.kind == Kind::Response);
    trip.map_or(String::new(), |seconds| {
        format!("the emulator's own round trip {:.3} ms", seconds * 1e3)
    })
}

/// What the bottleneck dropped in both worlds, where it did.
fn drops(emulated: &Figure, simulated: &Figure) -> String {
    let or_none = |drops: &str| {
        if drops.is_empty() {
            "none".to_owned()
        } else {
            drops.to_owned()
        }
    };
    match (emulated.drops.as_str(), simulated.drops.as_str()) {
        ("", "") => String::new(),
        (a, b) => format!("drops {} / {}", or_none(a), or_none(b)),
    }
}

/// Whether both say the same. Where losses are drawn and the means are further apart than the bound, intervals that meet
/// leave it open.
fn verdict(kind: Kind, emulated: &Figure, simulated: &Figure) -> &'static str {
    let meet = |a: (f64, f64), b: (f64, f64)| a.0 <= b.1 && b.0 <= a.1;
    if kind == Kind::Losses {
        let equal = emulated.values == simulated.values && emulated.mean == simulated.mean;
        return if equal { "equal" } else { "DIFFERENT" };
    }
    let apart = (simulated.mean / emulated.mean - 1.0).abs();
    match (emulated.interval, simulated.interval) {
        _ if apart <= kind.bound() => match kind {
            Kind::LossyThroughput | Kind::PageTime => "within 10 %",
            _ => "within 5 %",
        },
        (Some(a), Some(b)) if meet(a, b) => "open: intervals meet",
        _ if emulated.overload.is_some() => "apart, machine too slow",
        _ => "APART",
    }
}

fn shown(kind: Kind, figure: &Figure) -> String {
    let scaled = |value: f64| match kind {
        Kind::Throughput | Kind::LossyThroughput => format!("{:.3}", value / 1e6),
        Kind::Response | Kind::PageTime => format!("{:.3}", value * 1e3),
        Kind::Losses => format!("{value}"),
    };
    let unit = match kind {
        Kind::Throughput | Kind::LossyThroughput => " Mbit/s",
        Kind::Response | Kind::PageTime => " ms",
        Kind::Losses => "",
    };
    let interval = figure.interval.map_or(String::new(), |(low, high)| {
        format!(" ({}..{})", scaled(low), scaled(high))
    });
    let values = figure
        .values
        .iter()
        .map(|value| scaled(*value))
        .collect::<Vec<_>>()
        .join(", ");
    let values = if values.is_empty() {
        values
    } else {
        format!(" ({values})")
    };
    format!("{}{unit}{interval}{values}", scaled(figure.mean))
}
