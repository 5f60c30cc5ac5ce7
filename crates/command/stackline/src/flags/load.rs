//! Flags of `stackline load`. They touch nothing.

use super::spec_text::SpecTextFlags;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
The first part is offered each rate, by all its pairs together; the other parts
and all clauses stay as they are, and a number of data units does not count.
`docs/howto/LOAD.md` explains the table and how sure the answer is.";

/// Latency against offered load.
#[derive(Args, Debug)]
pub(crate) struct LoadFlags {
    #[command(flatten)]
    pub(crate) text: SpecTextFlags,
    /// Rates to offer, such as 100/s..100k/s; by default, from a 20th of the rate without pauses on
    #[arg(long, value_name = "LOW..HIGH", value_parser = rates)]
    pub(crate) rates: Option<(f64, f64)>,
    /// How many rates to the highest
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) steps: u32,
    /// Find the highest rate with this: 'p99 < 5 ms'
    #[arg(long, value_name = "EXPECTATION", conflicts_with = "steps")]
    pub(crate) meet: Option<String>,
    /// How far met and missed rate may differ
    #[arg(long, value_name = "SHARE", default_value = "5%", requires = "meet", value_parser = super::percent::percent)]
    pub(crate) precision: f64,
    /// Runs at each rate; by default as written, or 3
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Length of a run; by default as written, or 2
    #[arg(long, value_name = "NUMBER", value_parser = seconds)]
    pub(crate) seconds: Option<f64>,
    /// How operations begin; by default as written
    #[arg(long, value_name = "ARRIVALS", value_parser = PossibleValuesParser::new(["constant", "poisson"]))]
    pub(crate) arrivals: Option<String>,
    /// Line of the measurement, if there are several
    #[arg(long, value_name = "NUMBER")]
    pub(crate) line: Option<usize>,
    /// Draw p99 by rate as FILE.svg, .png or .pdf
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw it in the text, also in a pipe
    #[arg(long, conflicts_with = "json")]
    pub(crate) plot: bool,
    #[command(flatten)]
    pub(crate) sharing: super::sharing::Sharing,
}

/// A range of rates: `100/s..100k/s`.
fn rates(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("expected two rates such as 100/s..100k/s, not `{text}`");
    let (low, high) = text.split_once("..").ok_or_else(wrong)?;
    let (low, high) = (rate(low).ok_or_else(wrong)?, rate(high).ok_or_else(wrong)?);
    match low <= high {
        true => Ok((low, high)),
        false => Err(format!("the first rate of `{text}` is the higher one")),
    }
}

/// A rate per second: `100`, `100/s`, `2.5k/s`, `1M/s`.
fn rate(text: &str) -> Option<f64> {
    let number = text.trim().trim_end_matches("/s").trim();
    let (digits, factor) = match number.chars().next_back()? {
        'k' | 'K' => (&number[..number.len() - 1], 1e3),
        'M' => (&number[..number.len() - 1], 1e6),
        _ => (number, 1.0),
    };
    let rate = factor * digits.trim().parse::<f64>().ok()?;
    ((1e-3..=1e9).contains(&rate)).then_some(rate)
}

/// The length of a run.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('s').trim().parse::<f64>().ok();
    number
        .filter(|seconds| (0.01..=86_400.0).contains(seconds))
        .ok_or_else(|| format!("expected seconds from 0.01 to 86400, not `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_written_as_people_write_them() {
        assert_eq!(rates("100/s..100k/s"), Ok((100.0, 100_000.0)));
        assert_eq!(rates("0.5..1.5K"), Ok((0.5, 1500.0)));
        assert_eq!(rates("5/s .. 2 M/s"), Ok((5.0, 2e6)));
        for wrong in [
            "100", "..", "a..b", "0..5", "9..-1", "5/s..1/s", "1..1e300", "1..é",
        ] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
    }
}
