//! Times on the command line.

use stackline_core::units;
use std::time::Duration;

/// `100ms`, `1.5 s`, `2min`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let form = "a number with its unit: us, ms, s, min or h, as in 100ms";
    let split = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .ok_or(form)?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(form.into()),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| form)? * factor;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| form.into())
}

/// A time with its unit, seconds without one.
pub(super) fn moment(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, unit) =
        text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let unit = if unit.is_empty() { "s" } else { unit };
    let seconds = number
        .trim()
        .parse()
        .ok()
        .zip(units::find_factor(units::TIME_UNITS, unit))
        .map(|(n, f): (f64, f64)| n * f);
    seconds
        .filter(|s| (0.0..1e9).contains(s))
        .ok_or_else(|| "a time from 0 on, as in 0.2, 1.5s or 200ms".to_owned())
}
