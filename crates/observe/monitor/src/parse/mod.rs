//! Parsers of the kernel's text files: text in, plain data out. None reads a file, and none panics, whatever the text.

pub(crate) mod block;
pub(crate) mod cpuinfo;
pub(crate) mod interfaces;
pub(crate) mod limits;
pub(crate) mod loadavg;
pub(crate) mod name_values;
pub(crate) mod pressure;
pub(crate) mod softnet;
pub(crate) mod stat;
#[cfg(test)]
mod tests;

/// A finite number: Rust also reads `nan` and `inf`, which no kernel writes and JSON cannot hold.
pub(crate) fn parse_finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// How many numbers a kernel list such as `0-3,8` has.
pub(crate) fn list_length(text: &str) -> Option<u64> {
    text.trim()
        .split(',')
        .map(range_length)
        .try_fold(0, |sum: u64, n| sum.checked_add(n?))
}

/// The length of `8` or `0-3`.
fn range_length(range: &str) -> Option<u64> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    last.parse::<u64>()
        .ok()?
        .checked_sub(first.parse().ok()?)?
        .checked_add(1)
}

/// The word in brackets of `always [madvise] never`; the whole line when there are no brackets.
pub(crate) fn bracketed_word(line: &str) -> &str {
    line.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(line, |(word, _)| word)
}
