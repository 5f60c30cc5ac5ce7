//! The table of requests by name for the page, and which row each line belongs to.

use serde_json::{Value, json};
use stackline_analyze::findings::NamedRequests;
use stackline_analyze::lifelines::Lifelines;
use std::collections::HashMap;

/// Most names on a page.
const MOST: usize = 50;

/// The rows as `{name, protocol, server, background, for_others, count, failed, p50, p99, most, share}` with times in ns, those with the
/// greatest total time first; and for each line the number of its row, or null. Null if the run has no requests.
pub(super) fn requests_by_name(
    named: &[NamedRequests],
    lifelines: &Lifelines,
    lines: &[u32],
) -> Value {
    if named.is_empty() {
        return Value::Null;
    }
    let shown = &named[..named.len().min(MOST)];
    let rows_of_units: HashMap<i64, usize> = shown
        .iter()
        .enumerate()
        .flat_map(|(row, one)| one.units.iter().map(move |unit| (*unit, row)))
        .collect();
    let row_of = |line: &u32| {
        let unit = lifelines.lines[*line as usize].unit.number()?;
        rows_of_units.get(&unit).copied()
    };
    let row = |one: &NamedRequests| {
        json!({
            "name": one.label(), "protocol": one.protocol, "server": one.server,
            "background": one.is_background, "for_others": one.is_made_for_others,
            "count": one.count, "failed": one.failed, "p50": one.p50_ns, "p99": one.p99_ns,
            "most": one.most_of_it, "share": one.share,
        })
    };
    json!({
        "rows": shown.iter().map(row).collect::<Vec<_>>(),
        "of": named.len(),
        "of_line": lines.iter().map(row_of).collect::<Vec<_>>(),
    })
}
