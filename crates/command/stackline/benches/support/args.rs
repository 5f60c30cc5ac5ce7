//! The command line of the benchmark.

use stackline_testing::bench_arguments::BenchArguments;
use std::path::PathBuf;

/// One line of help.
pub(crate) const USAGE: &str =
    "cargo bench --bench peers [-- WORD... [--rounds N] [--quick] [--json FILE] [--list]]";

/// Names of sides, which as words on the command line select sides and not cases.
pub(crate) const SIDES: [&str; 6] = ["stackline", "bare", "iperf3", "iperf", "sockperf", "qperf"];

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How often each side of each case runs.
    pub(crate) rounds: usize,
    /// One round with a tenth of the work.
    pub(crate) quick: bool,
    /// Where the results go as JSON.
    pub(crate) json: Option<PathBuf>,
    /// Only name the cases.
    pub(crate) list: bool,
    /// Words a case has to have in its name.
    words: Vec<String>,
    /// Sides to run; all when empty.
    sides: Vec<String>,
}

impl Options {
    /// Whether a case is to run.
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.words.iter().all(|word| case.contains(word.as_str()))
    }

    /// Whether a side is to run.
    pub(crate) fn wants_side(&self, side: &str) -> bool {
        let first = side.split(' ').next().unwrap_or(side);
        self.sides.is_empty() || self.sides.iter().any(|wanted| wanted == first)
    }

    /// The work of a round: a tenth of it when in a hurry.
    pub(crate) fn scaled(&self, count: u64) -> u64 {
        if self.quick {
            (count / 10).max(1)
        } else {
            count
        }
    }
}

/// Reads the words after the program's name.
pub(crate) fn parse(mut arguments: BenchArguments) -> Result<Options, String> {
    let quick = arguments.take_flag("--quick");
    let rounds = arguments.take_number("--rounds", if quick { 1 } else { 5 })?;
    if !(1..=1000).contains(&rounds) {
        return Err("--rounds takes a number from 1 to 1000".to_owned());
    }
    let list = arguments.take_flag("--list");
    let json = arguments.take_word("--json")?.map(PathBuf::from);
    let is_side = |word: &String| SIDES.contains(&word.as_str());
    let (sides, words) = arguments.into_words()?.into_iter().partition(is_side);
    Ok(Options {
        rounds,
        quick,
        json,
        list,
        words,
        sides,
    })
}
