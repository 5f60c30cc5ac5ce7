//! Sizes and times as a person writes them in a flag: `48KiB`, `1.5 s`.

use crate::units;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use core::time::Duration;

/// The error for a size that cannot be parsed.
const SIZE: &str = "expected a whole number followed by B, kB, MB, GB, KiB, MiB or GiB, or by k, M or G (powers of 1024)";
/// The error for a time that cannot be parsed.
const TIME: &str = "expected a number with a unit (us, ms, s, min or h), as in 100ms";

/// Parses a size in bytes, at least 1.
///
/// # Errors
/// A sentence that says how a size is written.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match text[digits.len()..].trim() {
        "" => Some(1),
        "k" | "K" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        "T" => Some(1 << 40),
        unit => units::find_factor(units::SIZE_UNITS, unit).map(|factor| factor as u64),
    };
    let bytes = factor.and_then(|factor| digits.parse::<u64>().ok()?.checked_mul(factor));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| SIZE.to_owned())
}

/// Parses a size in bytes, or `0`.
///
/// # Errors
/// A sentence that says how a size is written.
pub fn parse_size_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { parse_size(text) }
}

/// Parses a time above zero: `100ms`, `1.5 s`, `2min` or `2m`.
///
/// # Errors
/// A sentence that says how a time is written.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .ok_or(TIME)?;
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "us" | "ms" | "s" | "min" | "h" => unit,
        "m" => "min",
        _ => return Err(TIME.into()),
    };
    let factor = units::find_factor(units::TIME_UNITS, unit).ok_or(TIME)?;
    let seconds = number.trim().parse::<f64>().map_err(|_| TIME)? * factor;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| TIME.into())
}

/// Parses a time in seconds, at least 0 and below 1e9; a number without a unit is in seconds.
///
/// # Errors
/// A sentence that says how a time is written.
pub fn parse_moment(text: &str) -> Result<f64, String> {
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
        .ok_or_else(|| "expected a time of 0 or more, as in 0.2, 1.5s or 200ms".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        let sizes = [
            ("1", 1),
            ("64k", 65_536),
            ("48KiB", 49_152),
            ("3 kB", 3000),
            ("2G", 2 << 30),
            ("1 TiB", 1 << 40),
        ];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "k",
            "1.5MiB",
            "12 potatoes",
            "99999999999GiB",
        ] {
            assert_eq!(parse_size(text), Err(SIZE.to_owned()), "{text}");
        }
    }
}
