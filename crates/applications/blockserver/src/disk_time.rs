//! Parses how long a read of a disk takes, as a person writes it.

use stackline_core::distribution::Distribution;
use stackline_core::error::{Error, Result};
use stackline_core::units;

/// A time or a distribution of times, in seconds.
///
/// # Errors
/// If the text is neither.
pub fn parse_disk_time(text: &str) -> Result<Distribution> {
    let wrong = || {
        Error::input(format!("{text} is neither a time nor a distribution of times")).hint(
            "examples: `10 ms`, `uniform(5 ms, 15 ms)`, `bivalue(8 ms, 22 ms)`, `exponential(12 ms)`",
        )
    };
    match text.split_once('(') {
        None => seconds(text).map(Distribution::Constant).ok_or_else(wrong),
        Some((name, rest)) => {
            let inner = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
            let values: Option<Vec<f64>> = inner.split(',').map(seconds).collect();
            Distribution::build(name.trim(), &values.ok_or_else(wrong)?).map_err(|_| wrong())
        }
    }
}

fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = if unit.is_empty() {
        Some(1.0)
    } else {
        units::find_factor(units::TIME_UNITS, unit.trim())
    }?;
    number
        .trim()
        .parse::<f64>()
        .ok()
        .map(|number| number * factor)
        .filter(|value| (0.0..=3600.0).contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_distributions() {
        assert_eq!(
            parse_disk_time("10 ms").unwrap(),
            Distribution::Constant(0.01)
        );
        assert_eq!(
            parse_disk_time("bivalue(8 ms, 22ms)").unwrap(),
            Distribution::Bivalue(0.008, 0.022, 0.5)
        );
        for wrong in [
            "",
            "fast",
            "10 m/s",
            "uniform(9 ms, 1 ms)",
            "bivalue(8 ms",
            "-1 ms",
            "nan",
        ] {
            assert!(parse_disk_time(wrong).is_err(), "{wrong}");
        }
    }
}
