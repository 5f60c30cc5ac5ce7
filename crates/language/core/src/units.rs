//! Sizes, rates and times as people write and read them.
//!
//! Sizes: kB = 1000 bytes, KiB = 1024 bytes. Rates are bit/s with SI prefixes. Times are seconds with SI prefixes.
//! Every function that formats a value includes the unit.

use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Units of size, in bytes. Names are case-sensitive, except that `kB` may be written `KB`.
pub const SIZE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Units of time, in seconds.
pub const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("secs", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("msec", 1e-3),
    ("usec", 1e-6),
    ("min", 60.0),
    ("minutes", 60.0),
    ("h", 3600.0),
    ("hours", 3600.0),
];

/// Units of rate in front of `/s`, in bit/s.
pub const RATE_UNITS: &[(&str, f64)] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("Kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
    ("Tbit", 1e12),
    ("bits", 1.0),
    ("Kbits", 1e3),
    ("Mbits", 1e6),
    ("Gbits", 1e9),
    ("b", 1.0),
    ("kb", 1e3),
    ("Kb", 1e3),
    ("Mb", 1e6),
    ("Gb", 1e9),
    ("Tb", 1e12),
    ("B", 8.0),
    ("kB", 8e3),
    ("KB", 8e3),
    ("MB", 8e6),
    ("GB", 8e9),
    ("TB", 8e12),
    ("KiB", 8.0 * 1024.0),
    ("MiB", 8.0 * 1_048_576.0),
    ("GiB", 8.0 * 1_073_741_824.0),
];

/// Units of rate that are written without `/s`, in bit/s.
pub const BIT_RATES: &[(&str, f64)] = &[
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("Tbps", 1e12),
];

/// The factor of the unit `name` in one of the tables above.
#[must_use]
pub fn find_factor(table: &[(&str, f64)], name: &str) -> Option<f64> {
    table
        .iter()
        .find(|(unit, _)| *unit == name)
        .map(|(_, factor)| *factor)
}

/// A time in seconds as text: `82.1 us`, `1.50 s`.
#[must_use]
pub fn format_time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        0.0 => (0.0, "s"),
        // Just below the unit, three digits would be rounded up to 1000 of the smaller one.
        s if s < 0.999_5e-6 => (seconds * 1e9, "ns"),
        s if s < 0.999_5e-3 => (seconds * 1e6, "us"),
        s if s < 0.999_5 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A rate in bit/s as text: `18.1 Gbit/s`.
#[must_use]
pub fn format_rate(bits_per_second: f64) -> String {
    let (value, prefix) = scale(bits_per_second, &["", "k", "M", "G", "T"], 1000.0);
    format!("{} {prefix}bit/s", three_digits(value))
}

/// A size in bytes as text, in binary units when it is a whole number of them: `64 KiB`, `1500 B`, `1.50 MB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "only for reading")]
pub fn format_size(bytes: u64) -> String {
    const BINARY: [(&str, u64); 4] = [
        ("TiB", 1 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ];
    if let Some((unit, factor)) = BINARY
        .iter()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
    {
        return format!("{} {unit}", bytes / factor);
    }
    if bytes < 10_000 {
        return format!("{bytes} B");
    }
    let (value, prefix) = scale(bytes as f64, &["", "k", "M", "G", "T"], 1000.0);
    format!("{} {prefix}B", three_digits(value))
}

/// What a number is about, which decides how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// A number without a unit.
    #[default]
    Number,
    /// A size in bytes.
    Size,
    /// A time in seconds.
    Time,
    /// A rate in bit/s.
    Rate,
    /// A share in percent.
    Percent,
    /// A frequency in 1/s.
    Frequency,
}

impl Quantity {
    /// The unit in which an axis that ends at `largest` is divided: its factor to the base unit, and its name.
    #[must_use]
    pub fn axis_unit(self, largest: f64) -> (f64, &'static str) {
        let units: &[(f64, &str)] = match self {
            Self::Number => &[(1.0, "")],
            Self::Size => &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")],
            Self::Time => &[(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s")],
            Self::Rate => &[
                (1.0, "bit/s"),
                (1e3, "kbit/s"),
                (1e6, "Mbit/s"),
                (1e9, "Gbit/s"),
            ],
            Self::Percent => &[(1.0, "%")],
            Self::Frequency => &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")],
        };
        let fitting = units.iter().rev().find(|(factor, _)| largest >= *factor);
        *fitting.unwrap_or(&units[0])
    }

    /// A value as it is written in a specification, with as many digits as it has: `40 ms`, `0.1 %`, `64 KiB`.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a whole number of bytes below 2^53"
    )]
    pub fn written(self, value: f64) -> String {
        let bytes = value as u64;
        if self == Self::Size
            && bytes as f64 == value
            && (value < 10_000.0 || bytes.is_multiple_of(1024))
        {
            return format_size(bytes);
        }
        let (factor, unit) = self.axis_unit(value.abs());
        let gap = if unit.is_empty() || unit == "/s" {
            ""
        } else {
            " "
        };
        format!("{}{gap}{unit}", shortest(value / factor))
    }
}

/// A number without the digits that only come from rounding: `12.3`, not `12.299999999999999`.
fn shortest(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 {
        return format!("{value:e}");
    }
    let text = format!("{value:.6}");
    String::from(text.trim_end_matches('0').trim_end_matches('.'))
}

/// A number with its noun: `1 run`, `2 runs`.
#[must_use]
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A frequency in 1/s as text: `12.5 k/s`.
#[must_use]
pub fn per_second(value: f64) -> String {
    let (value, prefix) = scale(value, &["", "k", "M", "G"], 1000.0);
    let gap = if prefix.is_empty() { "" } else { " " };
    format!("{}{gap}{prefix}/s", three_digits(value))
}

/// About three significant digits without an exponent: `4.81`, `18.1`, `245`, `1200`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        // Just below a power of ten, rounding adds a digit.
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        0.0 => String::from("0"),
        _ => format!("{value:.2}"),
    }
}

/// Divides `value` by `step` as often as there are prefixes and it stays at least about 1. Returns it with its prefix.
fn scale<'p>(value: f64, prefixes: &[&'p str], step: f64) -> (f64, &'p str) {
    let mut value = value;
    let mut index = 0;
    while value.abs() >= step * 0.999_5 && index + 1 < prefixes.len() {
        value /= step;
        index += 1;
    }
    (value, prefixes[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(format_time(0.0), "0 s");
        assert_eq!(format_time(82.1e-6), "82.1 us");
        assert_eq!(format_time(0.999_9e-3), "1.00 ms");
        assert_eq!(format_time(1.5), "1.50 s");
        assert_eq!(format_time(6.4e-9), "6.40 ns");
    }

    #[test]
    fn sizes() {
        assert_eq!(format_size(0), "0 B");
        assert_eq!(format_size(1024), "1 KiB");
        assert_eq!(format_size(1500), "1500 B");
        assert_eq!(format_size(64 << 10), "64 KiB");
        assert_eq!(format_size(1_500_000), "1.50 MB");
    }

    #[test]
    fn values_of_sweeps_are_written_as_in_a_specification() {
        let written = |quantity: Quantity, value| quantity.written(value);
        assert_eq!(written(Quantity::Time, 0.04), "40 ms");
        assert_eq!(written(Quantity::Time, 0.012_3), "12.3 ms");
        assert_eq!(written(Quantity::Time, 0.0), "0 ns");
        assert_eq!(written(Quantity::Percent, 0.1), "0.1 %");
        assert_eq!(written(Quantity::Rate, 1e7), "10 Mbit/s");
        assert_eq!(written(Quantity::Size, 65_536.0), "64 KiB");
        assert_eq!(written(Quantity::Size, 1e6), "1 MB");
        assert_eq!(written(Quantity::Size, 1000.0), "1000 B");
        assert_eq!(written(Quantity::Number, 4096.0), "4096");
        assert_eq!(written(Quantity::Number, 1e-5), "1e-5");
        assert_eq!(written(Quantity::Frequency, 2000.0), "2 k/s");
        assert_eq!(Quantity::Time.axis_unit(0.25), (1e-3, "ms"));
        assert_eq!(Quantity::Rate.axis_unit(0.0), (1.0, "bit/s"));
    }

    #[test]
    fn rates() {
        assert_eq!(format_rate(18.14e9), "18.1 Gbit/s");
        assert_eq!(format_rate(999.9), "1.00 kbit/s");
        assert_eq!(per_second(12_500.0), "12.5 k/s");
        assert_eq!(per_second(12.5), "12.5/s");
    }
}
