//! Parses `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then a line of numbers, both after the same group and a colon.

use std::collections::BTreeMap;

/// Every counter by group and name: `Tcp`, `RetransSegs`. Lines without a partner are left out.
pub(crate) fn parse(text: &str) -> BTreeMap<(&str, &str), i64> {
    let mut counters = BTreeMap::new();
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .peekable();
    while let Some((group, names)) = lines.next() {
        if let Some((_, values)) = lines.next_if(|(next, _)| *next == group) {
            counters.extend(pair(group, names, values));
        }
    }
    counters
}

fn pair<'a>(
    group: &'a str,
    names: &'a str,
    values: &'a str,
) -> impl Iterator<Item = ((&'a str, &'a str), i64)> {
    let values = values
        .split_ascii_whitespace()
        .map_while(|value| value.parse().ok());
    names
        .split_ascii_whitespace()
        .zip(values)
        .map(move |(name, value)| ((group, name), value))
}
