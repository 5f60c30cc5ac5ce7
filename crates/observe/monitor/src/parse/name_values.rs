//! Parses lines `name value` of `/proc/meminfo`, `/proc/vmstat` and `cpu.stat`, and lines `NAME="value"` of `os-release`.

pub(crate) use stackline_os::cgroup_formats::counters;
use std::collections::BTreeMap;

/// The values of `/proc/meminfo` by name: `MemTotal: 123 kB` in bytes, and lines without a unit as they are.
pub(crate) fn meminfo(text: &str) -> BTreeMap<&str, u64> {
    text.lines().filter_map(meminfo_line).collect()
}

fn meminfo_line(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let value: u64 = words.next()?.parse().ok()?;
    let factor = if words.next() == Some("kB") { 1024 } else { 1 };
    Some((name.trim(), value.checked_mul(factor)?))
}

/// The value of `NAME=value`, without its quotes.
pub(crate) fn assignment<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        Some(
            line.strip_prefix(name)?
                .strip_prefix('=')?
                .trim()
                .trim_matches(['"', '\'']),
        )
    })
}
