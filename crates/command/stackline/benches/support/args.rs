//! The command line of the benchmark.

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
pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        quick: false,
        json: None,
        list: false,
        words: Vec::new(),
        sides: Vec::new(),
    };
    let mut words = words;
    let mut rounds = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => {} // cargo adds it
            "--quick" => options.quick = true,
            "--list" => options.list = true,
            "--rounds" => rounds = Some(number(words.next())?),
            "--json" => options.json = Some(words.next().ok_or("--json takes a file")?.into()),
            flag if flag.starts_with('-') => {
                return Err(format!("`{flag}` is no flag of this benchmark"));
            }
            side if SIDES.contains(&side) => options.sides.push(word),
            _ => options.words.push(word),
        }
    }
    options.rounds = rounds.unwrap_or(if options.quick { 1 } else { options.rounds });
    Ok(options)
}

fn number(word: Option<String>) -> Result<usize, String> {
    let number = word
        .and_then(|word| word.parse().ok())
        .filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "--rounds takes a number from 1 to 1000".to_owned())
}
