//! The intervals of runs as lines: time, transfer and rate by pair, what was sent again, window, round trip; of datagrams, jitter and
//! losses; of calls, their number and times.

use crate::grid::{Align, fitting_gap, line_with_gap, widths, wrap};
use stackline_analyze::time_series::interval_table::{IntervalFigures, IntervalTable};
use stackline_core::units::{Quantity, format_rate, format_time, per_second, three_digits};

/// Columns of a terminal that a table may use.
const COLUMNS: usize = 80;

/// A column: its name, and what is in it of an interval.
type IntervalColumn = (&'static str, fn(&IntervalFigures) -> Option<String>);

const TRANSFER: [IntervalColumn; 7] = [
    ("transfer", |row| row.bytes.map(bytes)),
    ("rate", |row| row.bit_s.map(format_rate)),
    ("retr", |row| row.retransmits.map(|n| n.to_string())),
    ("cwnd", |row| row.window_bytes.map(bytes)),
    ("rtt", |row| row.round_trip_s.map(format_time)),
    ("jitter", |row| row.jitter_s.map(format_time)),
    ("lost/total", lost),
];
const CALLS: [IntervalColumn; 6] = [
    ("calls", |row| row.calls.map(|n| n.to_string())),
    ("calls/s", |row| row.calls_per_s.map(per_second)),
    ("median", |row| row.median_s.map(format_time)),
    ("p99", |row| row.p99_s.map(format_time)),
    ("max", |row| row.max_s.map(format_time)),
    ("retr", |row| row.retransmits.map(|n| n.to_string())),
];

/// Bytes in a decimal unit, so that those of intervals can be compared.
fn bytes(bytes: u64) -> String {
    let (factor, unit) = Quantity::Size.axis_unit(bytes as f64);
    format!("{} {unit}", three_digits(bytes as f64 / factor))
}

/// Lost datagrams of all, with their share.
fn lost(row: &IntervalFigures) -> Option<String> {
    let (lost, all) = (row.lost?, row.datagrams?);
    let share = if all == 0 {
        0.0
    } else {
        100.0 * lost as f64 / all as f64
    };
    Some(format!("{lost}/{all} ({share:.2} %)"))
}

/// A table for each run of each part; each line ends with a line break.
#[must_use]
pub fn interval_lines(tables: &[IntervalTable]) -> String {
    tables.iter().map(table).collect()
}

fn table(table: &IntervalTable) -> String {
    let heading = format!("{}, run {}:", table.text, table.run + 1);
    let mut text = wrap(&heading, COLUMNS).join("\n") + "\n";
    let has_calls = table.rows.iter().any(|row| row.calls.is_some());
    let has_pairs = table.rows.iter().any(|row| row.pair.is_some());
    let columns: &[IntervalColumn] = if has_calls { &CALLS } else { &TRANSFER };
    // What no interval knows has no column; where nothing was sent again, calls need none for it.
    let is_shown = |column: &&IntervalColumn| {
        let cells = || table.rows.iter().filter_map(|row| column.1(row));
        let is_empty = has_calls && column.0 == "retr" && cells().all(|cell| cell == "0");
        cells().next().is_some() && !is_empty
    };
    let columns: Vec<&IntervalColumn> = columns.iter().filter(is_shown).collect();
    let digits = digits_of(table.every_s);
    let mut rows = vec![vec!["interval".to_owned()]];
    if has_pairs {
        rows[0].push("pair".into());
    }
    rows[0].extend(columns.iter().map(|column| column.0.to_owned()));
    for row in &table.rows {
        let mut cells = vec![format!("{:.digits$}-{:.digits$} s", row.from_s, row.to_s)];
        if has_pairs {
            let pair = row.pair.map(|pair| (pair + 1).to_string());
            cells.push(pair.unwrap_or_else(|| "all".into()));
        }
        let known = columns.iter().map(|column| column.1(row));
        cells.extend(known.map(|cell| cell.unwrap_or_else(|| "-".into())));
        rows.push(cells);
    }
    let widths = widths(&rows);
    let gap = fitting_gap(&widths, COLUMNS);
    let align = vec![Align::Right; widths.len()];
    for row in &rows {
        text += &(line_with_gap(row, &widths, &align, gap) + "\n");
    }
    text
}

/// Digits behind the point of moments that are this far apart, s.
fn digits_of(every_s: f64) -> usize {
    match every_s {
        each if each >= 0.1 => 2,
        each if each >= 0.01 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(at: u32, pair: Option<usize>) -> IntervalFigures {
        IntervalFigures {
            pair,
            from_s: f64::from(at),
            to_s: f64::from(at) + 1.0,
            bytes: Some(1_250_000),
            bit_s: Some(1e7),
            ..IntervalFigures::default()
        }
    }

    fn table_of(rows: Vec<IntervalFigures>) -> IntervalTable {
        IntervalTable {
            measurement: 0,
            part: 0,
            run: 0,
            text: "timelimit 2 bulk_put 128 KiB over tcp".into(),
            every_s: 1.0,
            rows,
        }
    }

    #[test]
    fn pairs_and_their_sum_stand_below_each_other() {
        let rows = vec![figures(0, Some(0)), figures(0, Some(1)), figures(0, None)];
        let text = interval_lines(&[table_of(rows)]);
        let expected = "\
timelimit 2 bulk_put 128 KiB over tcp, run 1:
   interval  pair  transfer         rate
0.00-1.00 s     1   1.25 MB  10.0 Mbit/s
0.00-1.00 s     2   1.25 MB  10.0 Mbit/s
0.00-1.00 s   all   1.25 MB  10.0 Mbit/s
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_widest_tables_fit_80_columns() {
        let wide = IntervalFigures {
            from_s: 3598.0,
            retransmits: Some(123_456),
            window_bytes: Some(123_456_789),
            round_trip_s: Some(0.123),
            ..figures(3599, Some(10))
        };
        let datagrams = IntervalFigures {
            jitter_s: Some(1.234e-3),
            lost: Some(12_345),
            datagrams: Some(123_456),
            ..figures(3599, None)
        };
        let calls = IntervalFigures {
            calls: Some(1_234_567),
            calls_per_s: Some(1_234_567.0),
            median_s: Some(1.234e-3),
            p99_s: Some(1.234e-3),
            max_s: Some(1.234e-3),
            retransmits: Some(3),
            ..figures(3599, Some(3))
        };
        for row in [wide, datagrams, calls] {
            let text = interval_lines(&[table_of(vec![row])]);
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn losses_have_their_share_and_what_is_unknown_a_dash() {
        let row = IntervalFigures {
            lost: Some(1),
            datagrams: Some(200),
            ..figures(0, None)
        };
        let text = interval_lines(&[table_of(vec![row, figures(1, None)])]);
        let last: Vec<&str> = text.lines().skip(2).collect();
        assert!(last[0].ends_with("1/200 (0.50 %)"), "{text}");
        assert!(last[1].ends_with(" -"), "{text}");
    }
}
