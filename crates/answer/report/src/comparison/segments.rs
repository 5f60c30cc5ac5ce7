//! The comparison of two traces, segment by segment or request by request, as text and JSON.

use super::digits;
use crate::grid::{Align, line, total, widths, wrap};
use crate::lifelines::label;
use serde_json::{Value, json as object};
use stackline_analyze::ComparisonVerdict;
use stackline_analyze::compare_segments::{Median, SegmentComparison};
use stackline_analyze::names::segment_label;
use stackline_core::units;

const ALIGN: [Align; 6] = [
    Align::Left,
    Align::Right,
    Align::Right,
    Align::Right,
    Align::Left,
    Align::Left,
];

/// Width of a line in characters; long names are wrapped.
const COLUMNS: usize = 80;
/// Width of the name column at least, in characters.
const SHORTEST_NAME: usize = 16;
/// The verdict without an interval; the reason is given below the table.
const CANNOT_TELL: &str = "cannot tell";

/// The segments as a table: both medians, their ratio with its 95 % interval, and the verdict. A line with the point where a segment
/// begins precedes it if the segment before does not end there.
#[must_use]
pub fn segment_comparison(segments: &[SegmentComparison]) -> String {
    let mut rows = header("median unit times");
    let mut last = None;
    for segment in segments {
        let begins = segment.from.as_ref().filter(|from| last != Some(*from));
        rows.extend(begins.map(|from| vec![label(from)]));
        last = segment.to.as_ref();
        rows.push(row(segment));
    }
    let notes = "An interval covers variation from unit to unit within each run, not changes\nbetween the two runs.\n";
    table(&rows) + notes
}

/// Requests by name, as a table like that of segments.
#[must_use]
pub fn request_comparison(requests: &[SegmentComparison]) -> String {
    let mut rows = header("median request times");
    rows.extend(requests.iter().map(|request| {
        let mut row = row(request);
        row[0] = format!("  {}", request.name);
        row
    }));
    table(&rows)
}

fn header(title: &str) -> Vec<Vec<String>> {
    let figures = ["A", "B", "B/A", "95 %"].map(str::to_owned);
    vec![
        vec![title.to_owned()],
        [&[String::new()][..], &figures].concat(),
    ]
}

/// The rows in lines of 80 characters, and below them why some have no verdict.
fn table(rows: &[Vec<String>]) -> String {
    let is_figures = |row: &&Vec<String>| row.len() > 1;
    let figures: Vec<Vec<String>> = rows.iter().filter(is_figures).cloned().collect();
    let mut widths = widths(&figures);
    let beside = total(widths.get(1..).unwrap_or_default()) + 2;
    let room = COLUMNS.saturating_sub(beside).max(SHORTEST_NAME);
    if let Some(name) = widths.first_mut() {
        *name = (*name).min(room);
    }
    let mut out = String::new();
    for row in rows {
        if row.len() == 1 {
            out += &format!("{}\n", row[0]);
            continue;
        }
        let names = wrap(&row[0], room);
        let (last, before) = names
            .split_last()
            .map_or(("", &[][..]), |(last, before)| (last, before));
        before.iter().for_each(|part| out += &format!("{part}\n"));
        let own = if before.is_empty() {
            last.to_owned()
        } else {
            format!("    {last}")
        };
        let cells = [&[own][..], &row[1..]].concat();
        out += &format!("{}\n", line(&cells, &widths, &ALIGN));
    }
    if rows
        .iter()
        .any(|row| row.last().is_some_and(|cell| cell == CANNOT_TELL))
    {
        out += "cannot tell: too few units, or negative times\n";
    }
    out
}

fn name(segment: &SegmentComparison) -> String {
    let of = if segment.connections {
        "connections: "
    } else {
        ""
    };
    match (&segment.from, &segment.to) {
        (Some(from), Some(to)) => format!("  {of}{}", segment_label(from, to)),
        _ => "first to last, units that arrived".to_owned(),
    }
}

fn row(segment: &SegmentComparison) -> Vec<String> {
    let time = |median: &Option<Median>| {
        median.map_or_else(
            || "-".to_owned(),
            |median| units::format_time(median.median_ns / 1e9),
        )
    };
    let ratio = segment.ratio.map_or_else(|| "-".to_owned(), digits);
    let interval = segment.ci95.map_or_else(String::new, |(low, high)| {
        format!("{}..{}", digits(low), digits(high))
    });
    let verdict = match (&segment.a, &segment.b, segment.verdict) {
        (_, None, _) => "only in the first",
        (None, ..) => "only in the second",
        (.., ComparisonVerdict::Faster) => "faster",
        (.., ComparisonVerdict::Slower) => "slower",
        (.., ComparisonVerdict::NoDifferenceSeen) => "no difference seen",
        _ => CANNOT_TELL,
    };
    vec![
        name(segment),
        time(&segment.a),
        time(&segment.b),
        ratio,
        interval,
        verdict.to_owned(),
    ]
}

/// The same as JSON (docs/JSON.md).
#[must_use]
pub fn segment_comparison_json(segments: &[SegmentComparison]) -> Value {
    object!(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::lifelines::LifelinePoint;

    #[test]
    fn a_segment_is_called_as_among_lifelines() {
        let point = |keyword: &str, host: &str| {
            Some(LifelinePoint {
                keyword: keyword.into(),
                host: host.into(),
                place: String::new(),
                service: String::new(),
            })
        };
        let median = |ns: f64| {
            Some(Median {
                n: 40,
                median_ns: ns,
                ci95_ns: Some((ns * 0.9, ns * 1.1)),
            })
        };
        let slower = SegmentComparison {
            name: "to COME".into(),
            from: point("GO", "client"),
            to: point("COME", "server"),
            connections: false,
            a: median(1e6),
            b: median(2e6),
            ratio: Some(2.0),
            ci95: Some((1.8, 2.2)),
            verdict: ComparisonVerdict::Slower,
        };
        let gone = SegmentComparison {
            b: None,
            ratio: None,
            ci95: None,
            verdict: ComparisonVerdict::CannotTell,
            ..slower.clone()
        };
        let text = segment_comparison(&[slower, gone]);
        let expected = "median unit times
                        A        B    B/A  95 %
GO client
  to COME server  1.00 ms  2.00 ms  2.000  1.800..2.200  slower
GO client
  to COME server  1.00 ms        -      -                only in the first
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn lines_fit_eighty_columns_and_long_names_go_on_below() {
        let median = Some(Median {
            n: 40,
            median_ns: 111e6,
            ci95_ns: None,
        });
        let request = |name: &str, verdict| SegmentComparison {
            name: name.into(),
            from: None,
            to: None,
            connections: false,
            a: median,
            b: median,
            ratio: Some(1.0),
            ci95: Some((0.992, 1.008)),
            verdict,
        };
        let text = request_comparison(&[
            request(
                "SELECT a, b, c FROM orders o JOIN items i ON i.id = o.item WHERE o.customer = ?",
                ComparisonVerdict::NoDifferenceSeen,
            ),
            request("GET /item/:id", ComparisonVerdict::CannotTell),
        ]);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(
            text.contains("\n    o.customer = ?") || text.contains(" = ?  "),
            "{text}"
        );
        assert!(
            text.ends_with("cannot tell: too few units, or negative times\n"),
            "{text}"
        );
    }
}
