//! The stacks of protocols beside programs that use the same libraries directly: the same calls and the same transfer, in turns.
//!
//! ```text
//! cargo bench -p stackline-live --bench libraries [-- WORD... [--rounds N] [--quick]]
//! ```
//!
//! A word keeps the stacks that have it in their name. Both sides of a turn are two threads of this process on loopback. A call carries 32
//! bytes each way; a transfer brings units of 64 KiB to the initiator. What is compared are medians over the rounds: of a call's time, of the
//! throughput, and of the CPU seconds of both.

mod blocking;
mod futures;
mod stacks;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bytes of a request and of its answer.
const CALL: usize = 32;
/// Bytes of a data unit of a transfer.
const UNIT: usize = 64 << 10;
/// How much slower than the library alone a stack may be.
const MARGIN: f64 = 1.05;

/// What a turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Calls(u64),
    Units(u64),
}

impl Work {
    const fn name(self) -> &'static str {
        match self {
            Self::Calls(_) => "call",
            Self::Units(_) => "transfer",
        }
    }
}

/// How long the work took once the connection stood, for the initiator.
type Side = fn(Work) -> Duration;

/// A stack and a program that does the same with its library.
struct Rivals {
    stack: &'static str,
    library: Side,
}

const RIVALS: [Rivals; 6] = [
    Rivals {
        stack: "tls",
        library: blocking::tls,
    },
    Rivals {
        stack: "websocket",
        library: blocking::websocket,
    },
    Rivals {
        stack: "http1",
        library: futures::http1,
    },
    Rivals {
        stack: "http2",
        library: futures::http2,
    },
    Rivals {
        stack: "quic",
        library: futures::quic,
    },
    Rivals {
        stack: "http3",
        library: futures::http3,
    },
];

/// Wall and CPU seconds of a turn, for one call or one unit.
#[derive(Clone, Copy)]
struct Turn {
    wall: f64,
    cpu: f64,
}

fn cpu_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |used| {
        (used.user_time() + used.system_time()).num_microseconds() as f64 / 1e6
    })
}

fn turn(work: Work, side: impl FnOnce(Work) -> Duration) -> Turn {
    let before = cpu_seconds();
    let begun = Instant::now();
    let took = side(work);
    // Connecting is not compared; its CPU time is little beside the work's.
    debug_assert!(took <= begun.elapsed());
    let times = match work {
        Work::Calls(times) | Work::Units(times) => times as f64,
    };
    Turn {
        wall: took.as_secs_f64() / times,
        cpu: (cpu_seconds() - before) / times,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The ratio of medians, ours to the library's, of wall and of CPU time.
fn compare(rivals: &Rivals, work: Work, rounds: usize) -> (f64, f64) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let stack = || turn(work, |work| stacks::carry_out(rivals.stack, work));
        let library = || turn(work, rivals.library);
        // Who is first changes from round to round.
        if round % 2 == 0 {
            ours.push(stack());
            theirs.push(library());
        } else {
            theirs.push(library());
            ours.push(stack());
        }
    }
    let of = |turns: &[Turn], field: fn(&Turn) -> f64| median(turns.iter().map(field).collect());
    let [wall, cpu] = [|turn: &Turn| turn.wall, |turn: &Turn| turn.cpu];
    println!(
        "{:<10} {:<9} {:>9.2} us {:>9.2} us   {:>9.2} us {:>9.2} us   {:>5.2} {:>5.2}",
        rivals.stack,
        work.name(),
        of(&ours, wall) * 1e6,
        of(&theirs, wall) * 1e6,
        of(&ours, cpu) * 1e6,
        of(&theirs, cpu) * 1e6,
        of(&ours, wall) / of(&theirs, wall),
        of(&ours, cpu) / of(&theirs, cpu),
    );
    (
        of(&ours, wall) / of(&theirs, wall),
        of(&ours, cpu) / of(&theirs, cpu),
    )
}

/// What is asked for: whether quickly, how many rounds, and words of names.
fn asked() -> Result<(bool, usize, Vec<String>), String> {
    let mut arguments = BenchArguments::read();
    let quick = arguments.take_flag("--quick");
    let rounds = arguments.take_number("--rounds", if quick { 3 } else { 11 })?;
    Ok((quick, rounds, arguments.into_words()?))
}

fn main() -> ExitCode {
    let (quick, rounds, words) = match asked() {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::FAILURE;
        }
    };
    let (calls, units) = if quick { (500, 200) } else { (5000, 4000) };
    println!("medians of {rounds} rounds, ours and the library's, for one call or unit of 64 KiB");
    println!(
        "{:<20} {:>25}   {:>25}   {:>11}",
        "", "wall", "CPU", "ratios"
    );
    let mut within = true;
    for rivals in &RIVALS {
        if !words.is_empty()
            && !words
                .iter()
                .any(|word| rivals.stack.contains(word.as_str()))
        {
            continue;
        }
        for work in [Work::Calls(calls), Work::Units(units)] {
            let (wall, _) = compare(rivals, work, rounds);
            within &= wall <= MARGIN;
        }
    }
    println!(
        "{}",
        if within {
            "all within 5 % of their libraries"
        } else {
            "not all within 5 % of their libraries"
        }
    );
    ExitCode::SUCCESS
}
