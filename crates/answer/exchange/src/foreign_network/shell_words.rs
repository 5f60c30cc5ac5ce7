//! Words of a command line, as a shell splits them, and the numbers of `tc` among them.

use super::network_text::shown;
use stackline_core::error::{Error, Result};

/// The words of a line; quotation marks and backslashes hold together what they do in a shell.
pub(super) fn words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Error::input("a quotation mark of the line is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// Lines without comments, those that end with a backslash joined, each command by itself.
pub(super) fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined
        .lines()
        .map(|line| line.split(" #").next().unwrap_or(""));
    let lines = lines.filter(|line| !line.trim_start().starts_with('#'));
    let split = |line: &str| -> Vec<String> {
        line.replace("&&", ";")
            .split(';')
            .map(|one| one.trim().to_owned())
            .collect()
    };
    lines
        .flat_map(split)
        .filter(|one| !one.is_empty())
        .collect()
}

/// The words of a command that are read one after another.
pub(super) struct WordReader<'w> {
    words: &'w [String],
    at: usize,
}

impl<'w> WordReader<'w> {
    pub(super) const fn new(words: &'w [String]) -> Self {
        Self { words, at: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'w str> {
        self.words.get(self.at).map(String::as_str)
    }

    pub(super) fn next(&mut self) -> Option<&'w str> {
        let word = self.peek();
        self.at += 1;
        word
    }

    /// The word behind `after`.
    pub(super) fn value(&mut self, after: &str) -> Result<&'w str> {
        self.next()
            .ok_or_else(|| Error::input(format!("a value is missing behind `{}`", shown(after))))
    }

    /// The next word, if it is read by `read`.
    pub(super) fn maybe<T>(&mut self, read: fn(&str) -> Option<T>) -> Option<T> {
        let value = self.peek().and_then(read);
        self.at += usize::from(value.is_some());
        value
    }
}

/// The number at the beginning of a word, and the letters behind it.
fn split_number(word: &str) -> Option<(f64, String)> {
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    let number: f64 = word.get(..end)?.parse().ok()?;
    (number <= 1e15).then(|| (number, word.get(end..).unwrap_or("").to_ascii_lowercase()))
}

/// A time of `tc`, in seconds: without a unit it is in microseconds.
pub(super) fn tc_time(word: &str) -> Option<f64> {
    let (number, unit) = split_number(word)?;
    let factor = match unit.as_str() {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "us" | "usec" | "usecs" | "" => 1e-6,
        "ns" | "nsec" | "nsecs" => 1e-9,
        _ => return None,
    };
    Some(number * factor)
}

/// A rate of `tc`, in bit/s: `mbit` is a power of 1000, `mbps` counts bytes.
pub(super) fn tc_rate(word: &str) -> Option<f64> {
    let (number, unit) = split_number(word)?;
    let (prefix, factor) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (
            unit.strip_suffix("bit").or(unit.is_empty().then_some(""))?,
            1.0,
        ),
    };
    let power = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor * power)
}

/// A size of `tc`, in bytes: `k` and `kb` are 1024 bytes, `kbit` is 128 bytes.
pub(super) fn tc_size(word: &str) -> Option<f64> {
    let (number, unit) = split_number(word)?;
    let factor = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 128.0,
        "mbit" => 128.0 * 1024.0,
        "gbit" => 128.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * factor).floor())
}

/// A percentage of `tc`, with or without `%`.
pub(super) fn tc_percent(word: &str) -> Option<f64> {
    let number: f64 = word.strip_suffix('%').unwrap_or(word).parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// A whole number.
pub(super) fn tc_number(word: &str) -> Option<u64> {
    word.parse().ok()
}

/// A rate in the language.
pub(super) fn rate_text(bit_s: f64) -> String {
    let units = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)];
    let fits = |unit: &&(&str, f64)| bit_s >= unit.1;
    let (unit, factor) = units.iter().find(fits).copied().unwrap_or(("bit/s", 1.0));
    format!("{} {unit}", rounded(bit_s / factor))
}

/// A time in the language.
pub(super) fn time_text(seconds: f64) -> String {
    let (unit, factor) = match seconds {
        0.0 => ("s", 1.0),
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 0.000_999_9 => ("ms", 1e3),
        s if s >= 0.000_000_999_9 => ("us", 1e6),
        _ => ("ns", 1e9),
    };
    format!("{} {unit}", rounded(seconds * factor))
}

/// A size in the language.
pub(super) fn size_text(bytes: f64) -> String {
    let units = [("MiB", 1024.0 * 1024.0), ("KiB", 1024.0)];
    let whole = |unit: &&(&str, f64)| bytes >= unit.1 && bytes % unit.1 == 0.0;
    let (unit, factor) = units.iter().find(whole).copied().unwrap_or(("B", 1.0));
    format!("{} {unit}", rounded(bytes / factor))
}

/// Nine significant digits, so that no digits of binary fractions are printed.
pub(super) fn rounded(number: f64) -> f64 {
    format!("{number:.8e}").parse().unwrap_or(number)
}
