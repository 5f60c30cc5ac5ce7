//! The simulated world beside ns-3: the same flow through the same dumbbell, in one run, in turns.
//!
//! ```text
//! cargo bench -p stackline-sim --bench peers [-- WORD... [--rounds N] [--quick]]
//! ```
//!
//! A word keeps the cases that have it in their name; `long` adds one that ns-3 takes half a minute for. Compared are data
//! segments of 1448 bytes that arrived in a CPU second: wall time would compare what else the machine did. The simulated
//! world runs inside this process, so what an empty run of ns-3's program costs is measured and taken off its figures.

mod ns3;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_core::plan::Plan;
use stackline_core::random::Seed;
use stackline_sim::{CAPABILITIES, SimRunLimits, SimRunScene, carry_out, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};
use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use std::time::Instant;

const SEGMENT: f64 = 1448.0;
/// A turn of the simulated world is repeated until it took as long, since one run of it may be too short to be measured.
const LEAST_CPU_S: f64 = 0.3;
/// How many times as fast as ns-3 it is to be.
const TARGET: f64 = 25.0;

/// A dumbbell and its flow.
pub(crate) struct Case {
    name: &'static str,
    /// Rate of the bottleneck in bit/s.
    rate: u64,
    /// Virtual seconds.
    seconds: u32,
    /// Send and receive buffer in bytes: what fills the path without overflowing the queue.
    window: u64,
    /// Packets that fit the queue before the bottleneck.
    queue: u64,
    long: bool,
}

const CASES: [Case; 3] = [
    Case {
        name: "10 Mbit/s, 10 s",
        rate: 10_000_000,
        seconds: 10,
        window: 256 << 10,
        queue: 500,
        long: false,
    },
    Case {
        name: "1 Gbit/s, 1 s",
        rate: 1_000_000_000,
        seconds: 1,
        window: 4 << 20,
        queue: 2000,
        long: false,
    },
    Case {
        name: "1 Gbit/s, 3 s",
        rate: 1_000_000_000,
        seconds: 3,
        window: 4 << 20,
        queue: 2000,
        long: true,
    },
];

/// What one side did in one turn.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    cpu: f64,
    wall: f64,
    /// Bytes of data that arrived, in so many virtual seconds.
    bytes: u64,
    seconds: f64,
    events: u64,
    dropped: u64,
}

impl Turn {
    fn segments_per_second(&self) -> f64 {
        self.bytes as f64 / SEGMENT / self.cpu
    }

    fn events_per_second(&self) -> f64 {
        self.events as f64 / self.cpu
    }

    fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds / 1e6
    }
}

struct Options {
    words: Vec<String>,
    rounds: usize,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            eprintln!(
                "error: {reason}\nhint: cargo bench -p stackline-sim --bench peers [-- WORD... [--rounds N] [--quick]]"
            );
            return ExitCode::from(2);
        }
    };
    let ns3 = ns3::Ns3::build();
    match &ns3 {
        Ok(ns3) => println!(
            "ns-3 {} (as its package built it; program with g++ -O2) and stackline-sim",
            ns3.version
        ),
        Err(reason) => println!("ns-3 left out: {reason}"),
    }
    let wants = |case: &Case| {
        let word = |word: &String| word == "long" || case.name.contains(word.as_str());
        options.words.iter().all(word)
            && (!case.long || options.words.iter().any(|word| word == "long"))
    };
    for case in CASES.iter().filter(|case| wants(case)) {
        compare(case, ns3.as_ref().ok(), options.rounds);
    }
    ExitCode::SUCCESS
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    let usual = if arguments.take_flag("--quick") { 1 } else { 5 };
    Ok(Options {
        rounds: arguments.take_number("--rounds", usual)?.max(1),
        words: arguments.into_words()?,
    })
}

/// A side and its turns, in the order of rounds.
struct Side<'a> {
    name: String,
    take: Box<dyn Fn() -> Result<Turn, String> + 'a>,
    turns: Vec<Turn>,
}

/// Runs a case, all sides in turns, and prints it.
fn compare(case: &Case, ns3: Option<&ns3::Ns3>, rounds: usize) {
    let stacks = stack_tables()
        .into_iter()
        .map(|stack| stack.name)
        .filter(|name| name.ends_with("tcp"));
    let side = |name: String, take| Side {
        name,
        take,
        turns: Vec::new(),
    };
    let mut sides: Vec<Side<'_>> = stacks
        .map(|stack| {
            side(
                format!("stackline {stack}"),
                Box::new(move || simulate(case, stack)),
            )
        })
        .collect();
    sides.extend(ns3.map(|ns3| side("ns-3 empty".into(), Box::new(|| ns3.run(case, 0)))));
    sides.extend(ns3.map(|ns3| side("ns-3".into(), Box::new(|| ns3.run(case, case.seconds)))));
    for _ in 0..rounds {
        sides.iter_mut().for_each(|side| match (side.take)() {
            Ok(turn) => side.turns.push(turn),
            Err(reason) => println!("{} left out: {reason}", side.name),
        });
        sides.reverse(); // nobody is always first
    }
    sides.sort_by_key(|side| side.name.starts_with("ns-3"));
    println!(
        "\n{}, 10 ms one way, window {} KiB, {rounds} rounds",
        case.name,
        case.window >> 10
    );
    println!(
        "  {:<18} {:>24} {:>8} {:>8} {:>8} {:>6} {:>9} {:>28}   times ns-3",
        "", "CPU s", "wall s", "Mbit/s", "events", "drops", "Mev/CPU s", "data segments/CPU s"
    );
    let turns = |name: &str| {
        sides
            .iter()
            .find(|side| side.name == name)
            .map_or(&[][..], |side| &side.turns)
    };
    let empty = turns("ns-3 empty");
    let without = |turn: &Turn, empty: &Turn| Turn {
        cpu: turn.cpu - empty.cpu,
        wall: turn.wall - empty.wall,
        ..*turn
    };
    let peer: Vec<Turn> = turns("ns-3")
        .iter()
        .zip(empty)
        .map(|(turn, empty)| without(turn, empty))
        .collect();
    sides
        .iter()
        .filter(|side| side.name.starts_with("stackline"))
        .for_each(|side| line(&side.name, &side.turns, &peer));
    line("ns-3", &peer, &[]);
    if let Some((median, ..)) = spread(&empty.iter().map(|turn| turn.cpu).collect::<Vec<_>>()) {
        println!("  an empty run of ns-3's program took {median:.3} CPU s, taken off above");
    }
}

fn line(name: &str, turns: &[Turn], peer: &[Turn]) {
    let Some(last) = turns.last() else { return };
    let of = |figure: &dyn Fn(&Turn) -> f64| {
        spread(&turns.iter().map(figure).collect::<Vec<_>>()).unwrap_or_default()
    };
    let (cpu, least, greatest) = of(&|turn| turn.cpu);
    let (rate, slowest, fastest) = of(&Turn::segments_per_second);
    let ratios = turns
        .iter()
        .zip(peer)
        .map(|(a, b)| a.segments_per_second() / b.segments_per_second());
    let verdict =
        spread(&ratios.collect::<Vec<_>>()).map_or(String::new(), |(ratio, low, high)| {
            let verdict = if ratio >= TARGET { "reached" } else { "MISSED" };
            format!("{ratio:.1} ({low:.1}..{high:.1}), {TARGET} {verdict}")
        });
    println!(
        "  {name:<18} {:>24} {:>8.3} {:>8.1} {:>8} {:>6} {:>9.2} {:>28}   {verdict}",
        format!("{cpu:.4} ({least:.4}..{greatest:.4})"),
        of(&|turn| turn.wall).0,
        last.goodput(),
        last.events,
        last.dropped,
        of(&Turn::events_per_second).0 / 1e6,
        format!("{rate:.0} ({slowest:.0}..{fastest:.0})"),
    );
}

/// A turn of the simulated world: the mean of as many equal runs as take long enough.
fn simulate(case: &Case, stack: &str) -> Result<Turn, String> {
    let plan = plan(case, stack)?;
    let scene = SimRunScene {
        network: &plan.networks[0],
        measurement: &plan.measurements[0],
        index: 0,
        run: 0,
        warmup: false,
        seed: Seed::root(1),
        limits: SimRunLimits::default(),
        interrupted: None,
    };
    let (before, start) = (cpu_seconds(UsageWho::RUSAGE_SELF), Instant::now());
    let mut runs = 0.0;
    loop {
        let (outcome, ()) = carry_out(&scene, ()).map_err(|failure| failure.to_string())?;
        runs += 1.0;
        let (cpu, wall) = (
            cpu_seconds(UsageWho::RUSAGE_SELF) - before,
            start.elapsed().as_secs_f64(),
        );
        if cpu >= LEAST_CPU_S {
            let record = &outcome.records[0];
            let seconds = record.elapsed_ns as f64 / 1e9;
            let dropped = outcome.ports[0].dropped();
            let (bytes, events) = (record.data_bytes(), outcome.events);
            return Ok(Turn {
                cpu: cpu / runs,
                wall: wall / runs,
                bytes,
                seconds,
                events,
                dropped,
            });
        }
    }
}

/// The first link is the bottleneck, and its first direction carries the data.
fn plan(case: &Case, stack: &str) -> Result<Plan, String> {
    let Case {
        rate,
        seconds,
        window,
        queue,
        ..
    } = case;
    let text = format!(
        "network bell {{ host s, r; switch left; switch right; link left - right {rate} bit/s 10 ms queue {queue} packets;
         link s - left 10 Gbit/s 100 us; link right - r 10 Gbit/s 100 us; }}
         1 timelimit {seconds} from s to r bulk_put 23168*10000000
         over {stack}(congestion = cubic, send_buffer = {window}, receive_buffer = {window}) across bell in simulated;"
    );
    let read_file = |_: &str| Err("no file".to_string());
    let stacks = stack_tables();
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let context = CheckContext {
        worlds: &worlds,
        read_file: &read_file,
        cores: &[],
    };
    let checked = check(&text, &context, &Overrides::default());
    checked.plan.ok_or_else(|| {
        checked
            .diagnostics
            .iter()
            .map(|mistake| mistake.message.as_str())
            .collect::<Vec<_>>()
            .join("; ")
    })
}

/// CPU seconds of this process, or of its children that ended.
pub(crate) fn cpu_seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("a process may ask for its own usage");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// Median, least and greatest.
fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, greatest) = (*sorted.first()?, *sorted.last()?);
    let half = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    };
    Some((median, least, greatest))
}
