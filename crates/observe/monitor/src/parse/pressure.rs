//! Parses pressure stall information: the share of time in which tasks waited for a processor, memory or a disk.

/// One line of a file below `/proc/pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PressureStall {
    /// The share of the last 10 s in which tasks waited, percent.
    pub(crate) percent_10s: f64,
    /// How long tasks have waited since boot, us.
    pub(crate) total_us: u64,
}

/// The line of the given kind: `some` (at least one task waited) or `full` (all did).
pub(crate) fn parse(text: &str, kind: &str) -> Option<PressureStall> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
    Some(PressureStall {
        percent_10s: super::parse_finite(field(line, "avg10=")?)?,
        total_us: field(line, "total=")?.parse().ok()?,
    })
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix(name))
}
