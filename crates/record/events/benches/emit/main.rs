//! What an event costs, beside the bare clock and other tracers: rounds of each in turn in one run, medians printed with the
//! least and the largest, then two threads that emit 2 million events a second together.
//!
//! `cargo bench -p stackline-events --bench emit [-- ROUNDS [SECONDS]]` (9 rounds; 10 seconds, 0 to pass the last part over).
//! A tracer that is not installed is passed over with a word: `cc` for the C client, `python3`, and `lttng-tools` with
//! `liblttng-ust-dev` for LTTng-UST.
#![allow(
    unsafe_code,
    reason = "the standard library reads no clock of processor time"
)]

mod programs;
mod rivals;
mod sustained;

use stackline_testing::bench_arguments::BenchArguments;
use std::error::Error;

type Failure = Box<dyn Error + Send + Sync>;

/// Something whose cost is measured in turn with others.
struct Rival {
    name: &'static str,
    /// One round: ns an event.
    round: Box<dyn FnMut() -> Result<f64, Failure>>,
    costs: Vec<f64>,
}

impl Rival {
    fn new(name: &'static str, round: impl FnMut() -> Result<f64, Failure> + 'static) -> Self {
        Self {
            name,
            round: Box::new(round),
            costs: Vec::new(),
        }
    }

    fn median(&self) -> f64 {
        self.costs[self.costs.len() / 2]
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = BenchArguments::read();
    let rounds = arguments.take_first_number().unwrap_or(9_usize).max(1);
    let seconds = arguments.take_first_number().unwrap_or(10);
    let directory = tempfile::tempdir()?;
    let mut rivals = rivals::own(directory.path())?;
    rivals.extend(programs::others(directory.path())?);
    // The first round warms everything up.
    for round in 0..=rounds {
        for rival in &mut rivals {
            let cost = (rival.round)().map_err(|error| format!("{}: {error}", rival.name))?;
            if round > 0 {
                rival.costs.push(cost);
            }
        }
    }
    println!(
        "{:44} {:>9} {:>19}",
        "ns an event",
        "median",
        format!("{rounds} rounds")
    );
    for rival in &mut rivals {
        rival.costs.sort_by(f64::total_cmp);
        let (least, most) = (rival.costs[0], rival.costs[rounds - 1]);
        println!(
            "{:44} {:9.2} {:>19}",
            rival.name,
            rival.median(),
            format!("{least:.2}..{most:.2}")
        );
    }
    ratios(&rivals);
    if seconds > 0 {
        sustained::run(seconds as u64)
    } else {
        Ok(())
    }
}

/// What was promised.
fn ratios(rivals: &[Rival]) {
    let own = rivals
        .iter()
        .find(|rival| rival.name == rivals::ON)
        .map_or(f64::NAN, Rival::median);
    for (name, asked) in [(rivals::TRACING, 30.0), (programs::LTTNG, 4.0)] {
        if let Some(rival) = rivals.iter().find(|rival| rival.name == name) {
            println!(
                "{name} / event!: {:.1} (asked: {asked})",
                rival.median() / own
            );
        }
    }
}
