//! Summaries as CSV (RFC 4180), for spreadsheets and scripts: one line each, in the units of the JSON. Columns are described in
//! `docs/JSON.md`; they may be added, but never renamed or removed. Further percentiles have columns at the end.

use crate::figure::Percentile;
use stackline_analyze::{self as analyze, SampleStatistics, Summary};
use std::collections::BTreeSet;

/// A column: its name, and its value for a summary; `None` if absent.
type CsvColumn = (&'static str, fn(&Summary) -> Option<String>);
/// A metric: its name, and its statistics in a summary.
type CsvMetric = (&'static str, fn(&Summary) -> Option<SampleStatistics>);
/// A figure of a metric's statistics: its name and its value.
type CsvFigure = (&'static str, fn(&SampleStatistics) -> Option<f64>);

/// Columns that describe the measurement.
const DESCRIBED: [CsvColumn; 10] = [
    ("measurement", |s| Some((s.measurement + 1).to_string())),
    ("text", |s| Some(s.text.clone())),
    ("part", |s| Some(s.part.clone())),
    ("application", |s| Some(s.application.clone())),
    ("stack", |s| Some(s.stack.clone())),
    ("world", |s| Some(s.world.to_string())),
    ("from", |s| Some(s.from.clone())),
    ("to", |s| Some(s.to.clone())),
    ("replicas", |s| Some(s.replicas.to_string())),
    ("runs", |s| Some(s.runs.to_string())),
];

/// Metrics; each has a column for every one of [`FIGURES`].
const METRICS: [CsvMetric; 6] = [
    ("throughput_bit_s", |s| s.throughput_bit_s),
    ("response_s", |s| s.response_s),
    ("connect_s", |s| s.connect_s),
    ("rate_per_s", |s| s.rate_per_s),
    ("transaction_s", |s| s.transaction_s),
    ("transactions_per_s", |s| s.transactions_per_s),
];

const FIGURES: [CsvFigure; 9] = [
    ("mean", |s| Some(s.mean)),
    ("ci95_low", |s| s.ci95.map(|ci| ci.0.max(0.0))),
    ("ci95_high", |s| s.ci95.map(|ci| ci.1)),
    ("min", |s| Some(s.min)),
    ("median", |s| Some(s.median)),
    ("p90", |s| Some(s.p90)),
    ("p99", |s| Some(s.p99)),
    ("p999", |s| Some(s.p999)),
    ("max", |s| Some(s.max)),
];

/// Columns of costs, losses and flags.
const SPENT: [CsvColumn; 4] = [
    ("cpu_s_per_gb", |s| {
        s.cpu_s_per_gb.map(|cost| cost.both.to_string())
    }),
    ("cpu_us_per_call", |s| {
        s.cpu_us_per_call.map(|cost| cost.both.to_string())
    }),
    ("lost", |s| s.lost.map(|lost| lost.to_string())),
    ("flags", |s| Some(s.flags.join("; "))),
];

/// A header line, then a line for each summary. Each variable of a sweep has a column after the descriptive ones.
#[must_use]
pub fn csv(summaries: &[Summary], percentiles: &[Percentile]) -> String {
    let variables: BTreeSet<&str> = summaries
        .iter()
        .flat_map(|summary| &summary.variables)
        .map(|(name, _)| name.as_str())
        .collect();
    let figures = || {
        METRICS
            .iter()
            .flat_map(|metric| FIGURES.iter().map(move |figure| (metric, figure)))
    };
    let described = DESCRIBED.iter().map(|(name, _)| (*name).to_owned());
    let names = described.chain(variables.iter().map(|name| (*name).to_owned()));
    let names =
        names.chain(figures().map(|((metric, _), (figure, _))| format!("{metric}_{figure}")));
    let names = names.chain(SPENT.iter().map(|(name, _)| (*name).to_owned()));
    let further = further(percentiles);
    let head: Vec<String> = names
        .chain(further.iter().map(|(name, ..)| name.clone()))
        .collect();
    let row = |s: &Summary| -> Vec<String> {
        let described = DESCRIBED.iter().map(|(_, value)| value(s));
        let swept = variables
            .iter()
            .map(|name| Some(s.variables.iter().find(|(n, _)| n == name)?.1.to_string()));
        let measured =
            figures().map(|((_, metric), (_, figure))| Some(figure(&metric(s)?)?.to_string()));
        let spent = SPENT.iter().map(|(_, value)| value(s));
        let further = further
            .iter()
            .map(|(_, metric, percentile)| Some(percentile.value_in(*metric, s)?.to_string()));
        described
            .chain(swept)
            .chain(measured)
            .chain(spent)
            .chain(further)
            .map(Option::unwrap_or_default)
            .collect()
    };
    std::iter::once(head)
        .chain(summaries.iter().map(row))
        .map(|cells| line(&cells))
        .collect()
}

/// Columns for requested percentiles that have no fixed column: name, metric, percentile.
fn further(percentiles: &[Percentile]) -> Vec<(String, analyze::RunMetric, Percentile)> {
    let known = |one: &Percentile| {
        FIGURES
            .iter()
            .any(|(name, _)| *name == one.name().replace('.', ""))
    };
    let metrics = [
        ("response_s", analyze::RunMetric::Response),
        ("connect_s", analyze::RunMetric::Connect),
    ];
    let of = |(name, metric): &(&str, analyze::RunMetric)| {
        let (name, metric) = ((*name).to_owned(), *metric);
        percentiles
            .iter()
            .filter(|one| !known(one))
            .map(move |one| (format!("{name}_{}", one.name()), metric, *one))
    };
    metrics.iter().flat_map(of).collect()
}

/// A line of CSV: cells with a comma, a quote or a line break are quoted, with quotes doubled.
pub(crate) fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::summaries;

    #[test]
    fn a_line_a_row_with_a_column_a_variable() {
        let mut all = summaries();
        all[0].variables = vec![("N".into(), 8.0)];
        all[1].text = "a \"b\", c".into();
        let text = csv(&all, &[]);
        let lines: Vec<&str> = text.lines().collect();
        let head: Vec<&str> = lines[0].split(',').collect();
        let first: Vec<&str> = lines[1].split(',').collect();
        let of = |name: &str| first[head.iter().position(|other| *other == name).unwrap()];
        assert_eq!((lines.len(), head.len()), (all.len() + 1, first.len()));
        assert_eq!(
            (
                of("measurement"),
                of("N"),
                of("runs"),
                of("response_s_mean")
            ),
            ("1", "8", "3", "")
        );
        assert_eq!(
            of("throughput_bit_s_mean").parse::<f64>().unwrap(),
            all[0].throughput_bit_s.unwrap().mean
        );
        let further = csv(
            &all,
            &[Percentile::Percent(99.9), Percentile::Percent(75.0)],
        );
        assert!(
            further
                .lines()
                .next()
                .unwrap()
                .ends_with("flags,response_s_p75,connect_s_p75"),
            "{further}"
        );
        assert!(
            lines[2].starts_with("2,\"a \"\"b\"\", c\","),
            "{}",
            lines[2]
        );
    }
}
