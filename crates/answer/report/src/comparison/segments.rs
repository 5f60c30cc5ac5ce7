//! Two traces segment by segment, as text and JSON.

use super::digits;
use crate::grid::{Align, line, widths};
use crate::lifelines::label;
use serde_json::{Value, json as object};
use stackline_analyze::ComparisonVerdict;
use stackline_analyze::compare_segments::{Median, SegmentComparison};
use stackline_analyze::names::segment_label;
use stackline_core::units;

const ALIGN: [Align; 6] = [
    Align::Left,
    Align::Right,
    Align::Left,
    Align::Right,
    Align::Left,
    Align::Left,
];

/// The segments, called as among lifelines, below the point where each begins if that is not the end of the one before; both
/// medians, their ratio with its 95 % interval, and what that allows to claim.
#[must_use]
pub fn segment_comparison(segments: &[SegmentComparison]) -> String {
    let mut rows = vec![vec!["medians of the time of units".to_owned()]];
    let mut last = None;
    for segment in segments {
        let begins = segment.from.as_ref().filter(|from| last != Some(*from));
        rows.extend(begins.map(|from| vec![label(from)]));
        last = segment.to.as_ref();
        rows.push(row(segment));
    }
    let widths = widths(&rows);
    let lines: String = rows
        .iter()
        .map(|row| line(row, &widths, &ALIGN) + "\n")
        .collect();
    lines
        + "An interval holds what varies from unit to unit of each; what changed otherwise is not in it.\n"
}

/// Requests by name, as segments are shown.
#[must_use]
pub fn request_comparison(requests: &[SegmentComparison]) -> String {
    let mut rows = vec![vec!["medians of the time of requests".to_owned()]];
    rows.extend(requests.iter().map(|request| {
        let mut row = row(request);
        row[0] = format!("  {}", request.name);
        row
    }));
    let widths = widths(&rows);
    rows.iter()
        .map(|row| line(row, &widths, &ALIGN) + "\n")
        .collect()
}

fn name(segment: &SegmentComparison) -> String {
    let of = if segment.connections {
        "connections: "
    } else {
        ""
    };
    match (&segment.from, &segment.to) {
        (Some(from), Some(to)) => format!("  {of}{}", segment_label(from, to)),
        _ => "first to last, of those that came".to_owned(),
    }
}

fn row(segment: &SegmentComparison) -> Vec<String> {
    let time = |median: &Option<Median>| {
        median.map_or_else(
            || "-".to_owned(),
            |median| units::format_time(median.median_ns / 1e9),
        )
    };
    let ratio = segment
        .ratio
        .map_or_else(|| "-".to_owned(), |ratio| format!("x {}", digits(ratio)));
    let interval = segment.ci95.map_or_else(String::new, |(low, high)| {
        format!("(95 %: {}..{})", digits(low), digits(high))
    });
    let verdict = match (&segment.a, &segment.b, segment.verdict) {
        (_, None, _) => "only in the first",
        (None, ..) => "only in the second",
        (.., ComparisonVerdict::Faster) => "faster",
        (.., ComparisonVerdict::Slower) => "slower",
        (.., ComparisonVerdict::NoDifferenceSeen) => "no difference seen",
        _ => "cannot tell: few units, or times below zero",
    };
    vec![
        name(segment),
        time(&segment.a),
        format!("-> {}", time(&segment.b)),
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
        let expected = "medians of the time of units
GO client
  to COME server              1.00 ms  -> 2.00 ms  x 2.000  (95 %: 1.800..2.200)  slower
GO client
  to COME server              1.00 ms  -> -              -                        only in the first
";
        assert!(text.starts_with(expected), "{text}");
    }
}
