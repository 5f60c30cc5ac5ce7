//! Where figures of kept runs changed: as text, as JSON, and the series themselves as the CSV that Apache Otava reads.

use crate::csv;
use crate::regressions::{name, push_wrapped};
use serde_json::{Value, json as object};
use stackline_analyze::change_points::{ChangePoint, ChangePointRule};
use stackline_analyze::kept_series::KeptSeries;
use stackline_core::units::{Quantity, counted, format_rate, format_time};

/// What is shown of a kept run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesRun {
    /// The name of its directory.
    pub name: String,
    /// When it began, UTC, ISO 8601.
    pub began: String,
    /// Its tags.
    pub tags: Vec<String>,
}

/// Each series with its change points. Runs have the indices that the series name.
#[must_use]
pub fn change_points(series: &[KeptSeries], runs: &[SeriesRun]) -> String {
    let mut out = String::new();
    for one in series {
        let count = counted(one.values.len() as u64, "run");
        let found = match one.changes.len() {
            0 if one.values.len() < LEAST => "too few for a change point".to_owned(),
            0 => "no change point".to_owned(),
            changes => counted(changes as u64, "change point"),
        };
        let heading = format!(
            "{}: {} in {count}: {found}",
            name(&one.label),
            one.axis.name
        );
        push_wrapped(&mut out, &heading, 0);
        for change in &one.changes {
            out.push_str(&row(one, change, runs));
        }
    }
    out
}

/// Fewer values cannot have a change point.
const LEAST: usize = 3;

/// A change point: the first run after it, and both means.
fn row(series: &KeptSeries, change: &ChangePoint, runs: &[SeriesRun]) -> String {
    let run = run_of(series, change.index, runs);
    let mut first = run.name.clone();
    if !run.tags.is_empty() {
        first += &format!(" [{}]", run.tags.join(" "));
    }
    let mut out = String::new();
    push_wrapped(&mut out, &format!("since {first}"), 2);
    let when = run.began.get(..16).unwrap_or(&run.began).replace('T', " ");
    let percent = (change.ratio() - 1.0) * 100.0;
    let figures = format!(
        "{when}  {} -> {}  {percent:+.1} %  p {:.1e}  {}",
        value(series, change.before),
        value(series, change.after),
        change.p,
        direction(series, change),
    );
    push_wrapped(&mut out, figures.trim_end(), 4);
    out
}

/// Whether the figure became better or worse, for figures that are times or rates.
fn direction(series: &KeptSeries, change: &ChangePoint) -> &'static str {
    match series.axis.quantity {
        Quantity::Time | Quantity::Rate | Quantity::Frequency => {
            if (change.after > change.before) == series.more_is_faster {
                "faster"
            } else {
                "SLOWER"
            }
        }
        _ => "",
    }
}

fn run_of<'r>(series: &KeptSeries, at: usize, runs: &'r [SeriesRun]) -> &'r SeriesRun {
    &runs[series.runs[at]]
}

fn value(series: &KeptSeries, value: f64) -> String {
    match series.axis.quantity {
        Quantity::Time => format_time(value),
        Quantity::Rate => format_rate(value),
        quantity => format!("{} {}", quantity.written(value), series.axis.unit)
            .trim_end()
            .to_owned(),
    }
}

/// The same as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn change_points_json(
    series: &[KeptSeries],
    runs: &[SeriesRun],
    rule: &ChangePointRule,
) -> Value {
    let shown = |run: &SeriesRun| object!({"run": run.name, "began": run.began, "tags": run.tags});
    let one = |series: &KeptSeries| {
        let points = series.runs.iter().zip(&series.values);
        let points = points.map(|(run, value)| {
            let mut point = shown(&runs[*run]);
            point["value"] = object!(value);
            point
        });
        let change = |change: &ChangePoint| {
            let mut point = shown(run_of(series, change.index, runs));
            point["index"] = object!(change.index);
            point["before"] = object!(change.before);
            point["after"] = object!(change.after);
            point["ratio"] = object!(change.ratio());
            point["p"] = object!(change.p);
            point
        };
        object!({
            "text": series.label.text,
            "part": series.label.part,
            "stack": series.label.stack,
            "metric": series.axis.name,
            "more_is_faster": series.more_is_faster,
            "points": points.collect::<Vec<_>>(),
            "changes": series.changes.iter().map(change).collect::<Vec<_>>(),
        })
    };
    object!({
        "window": rule.window,
        "max_p": rule.max_p,
        "min_magnitude": rule.min_magnitude,
        "series": series.iter().map(one).collect::<Vec<_>>(),
    })
}

/// Series as a table that Otava reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtavaTable {
    /// The file: `time`, `run` and `tags`, then a column for each series, with a row for each run that has them all.
    pub csv: String,
    /// The names of the columns of series.
    pub metrics: Vec<String>,
    /// How many runs have a row.
    pub rows: usize,
    /// How many runs lack some series, and so have none.
    pub left_out: usize,
}

/// The series as CSV for Otava's importer of CSV files: it reads times in ISO 8601 and needs a number in each column of a metric.
#[must_use]
pub fn otava_table(series: &[KeptSeries], runs: &[SeriesRun]) -> OtavaTable {
    let metrics = column_names(series);
    let head = ["time", "run", "tags"].map(str::to_owned);
    let mut csv = csv::line(&[&head[..], &metrics].concat());
    let (mut rows, mut left_out) = (0, 0);
    for (at, run) in runs.iter().enumerate() {
        let value = |one: &KeptSeries| {
            let place = one.runs.binary_search(&at).ok()?;
            Some(one.values[place].to_string())
        };
        let values: Option<Vec<String>> = series.iter().map(value).collect();
        let has_any = series.iter().any(|one| one.runs.binary_search(&at).is_ok());
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            left_out += usize::from(has_any);
            continue;
        };
        let described = [run.began.clone(), run.name.clone(), run.tags.join(" ")];
        csv += &csv::line(&[&described[..], &values].concat());
        rows += 1;
    }
    OtavaTable {
        csv,
        metrics,
        rows,
        left_out,
    }
}

/// A name for each series of letters, digits and `_`, so that no configuration has to quote it.
fn column_names(series: &[KeptSeries]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for one in series {
        let text = format!("{} {}", name(&one.label), one.axis.name);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let (plain, mut number) = (words.join("_"), 1);
        let mut own = plain.clone();
        while names.contains(&own) {
            number += 1;
            own = format!("{plain}_{number}");
        }
        names.push(own);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::curves::CurveAxis;
    use stackline_analyze::{Label, change_points::find_change_points};

    fn runs(count: usize) -> Vec<SeriesRun> {
        let run = |at: usize| SeriesRun {
            name: format!("20261128-2036{at:02}-bench"),
            began: format!("2026-11-28T20:36:{at:02}Z"),
            tags: match at {
                10 => vec!["nightly".to_owned(), "a,b".to_owned()],
                _ => vec![],
            },
        };
        (0..count).map(run).collect()
    }

    fn series(text: &str, runs: Vec<usize>) -> KeptSeries {
        let value = |at: &usize| {
            let base = if *at < 10 { 0.0101 } else { 0.0121 };
            base + 1e-5 * (*at % 3) as f64
        };
        let values: Vec<f64> = runs.iter().map(value).collect();
        KeptSeries {
            label: Label {
                text: text.into(),
                part: text.into(),
                stack: "tcp".into(),
            },
            axis: CurveAxis {
                name: "p99 of response time".into(),
                quantity: Quantity::Time,
                unit: "",
            },
            more_is_faster: false,
            changes: find_change_points(&values, &ChangePointRule::USUAL),
            runs,
            values,
        }
    }

    #[test]
    fn a_change_point_names_the_first_run_behind_it_in_80_columns() {
        let both = [
            series("20 from a to b rr 32*1000 over tcp", (0..20).collect()),
            series("5 rr 1*1 over tcp", vec![0, 1]),
        ];
        let text = change_points(&both, &runs(20));
        assert_eq!(
            text,
            "20 from a to b rr 32*1000 over tcp: p99 of response time in 20 runs: 1 change\n  \
             point\n  \
             since 20261128-203610-bench [nightly a,b]\n    \
             2026-11-28 20:36  10.1 ms -> 12.1 ms  +19.8 %  p 1.4e-39  SLOWER\n\
             5 rr 1*1 over tcp: p99 of response time in 2 runs: too few for a change point\n"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_table_for_otava_has_a_number_in_each_column() {
        let both = [
            series("rr 32*1000 over tcp", (0..12).collect()),
            series("rr 32*1000 over tcp", (2..14).collect()),
        ];
        let table = otava_table(&both, &runs(15));
        assert_eq!((table.rows, table.left_out), (10, 4));
        let own = "rr_32_1000_over_tcp_p99_of_response_time";
        assert_eq!(table.metrics, [own.to_owned(), format!("{own}_2")]);
        let lines: Vec<&str> = table.csv.lines().collect();
        assert_eq!(lines[0], format!("time,run,tags,{own},{own}_2"));
        assert!(lines[1].starts_with("2026-11-28T20:36:02Z,20261128-203602-bench,,0.01"));
        assert!(lines[9].contains(",\"nightly a,b\","), "{}", lines[9]);
    }
}
