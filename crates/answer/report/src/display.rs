//! The result of a display benchmark (how fast pictures are drawn on a remote display): items per second of each picture at each
//! level, with intervals.

use crate::grid::{Align, line, widths};
use serde_json::{Value, json};
use stackline_analyze::SampleStatistics;

/// One rate of a picture.
#[derive(Clone, Debug)]
pub struct DisplayRateRow {
    /// The name of the picture.
    pub picture: &'static str,
    /// The name of the rate, such as `stop-and-wait`.
    pub rate: &'static str,
    /// The unit, such as vectors/s.
    pub unit: &'static str,
    /// The value of each trial.
    pub trials: Vec<f64>,
    /// Why the rate was not measured, if so.
    pub absent: Option<String>,
}

/// The table, and below it why rates are absent.
#[must_use]
pub fn display(address: &str, rows: &[DisplayRateRow]) -> String {
    let head = [
        "picture",
        "rate",
        "n",
        "mean",
        "± 95 %",
        "",
        "times stop-and-wait",
    ];
    let mut all = vec![
        head.iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
    ];
    all.extend(rows.iter().filter_map(|row| cells(row, rows)));
    let widths = widths(&all);
    let align = [
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Right,
    ];
    let mut out = format!("display at {address}\n\n");
    all.iter()
        .for_each(|row| out += &(line(row, &widths, &align).trim_end().to_owned() + "\n"));
    out += "\nmean ± 95 % over n trials; construction: with the window hidden; display: timed by the display\n";
    let mut notes: Vec<String> = Vec::new();
    for row in rows {
        let note = row
            .absent
            .as_ref()
            .map(|why| format!("{} - {why}\n", row.rate));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    out + &notes.concat()
}

/// A row of the table; `None` if the rate was not measured and has no reason.
fn cells(row: &DisplayRateRow, rows: &[DisplayRateRow]) -> Option<Vec<String>> {
    let named = |n: String, mean: String, half: String, times: String| {
        vec![
            row.picture.to_owned(),
            row.rate.to_owned(),
            n,
            mean,
            half,
            row.unit.to_owned(),
            times,
        ]
    };
    let Some(statistics) = SampleStatistics::from_values(&row.trials) else {
        let absent = || "-".to_owned();
        return row
            .absent
            .as_ref()
            .map(|_| named(absent(), absent(), absent(), String::new()));
    };
    // Construction and display rates are not levels, so they are not compared with the slowest level.
    let is_level = !matches!(row.rate, "construction" | "display");
    let slowest =
        |other: &&DisplayRateRow| other.picture == row.picture && other.rate == "stop-and-wait";
    let base = rows.iter().filter(|_| is_level).find(slowest);
    let base = base
        .and_then(|base| SampleStatistics::from_values(&base.trials))
        .map(|base| base.mean);
    let times = base.map_or(String::new(), |base| {
        format!("{:.1}", statistics.mean / base)
    });
    let half = match statistics.half_width() {
        Some(half) if half <= statistics.mean.abs() * 1e-12 => "deterministic".to_owned(),
        half => half.map_or("-".to_owned(), number),
    };
    Some(named(
        statistics.n.to_string(),
        number(statistics.mean),
        half,
        times,
    ))
}

/// Three significant digits, with thousands separated by spaces.
fn number(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.3}")
            .get(..5)
            .unwrap_or("")
            .trim_end_matches('.')
            .to_owned();
    }
    let scale = 10_f64.powi(value.log10() as i32 - 2);
    let digits = format!("{:.0}", (value / scale).round() * scale);
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// The result as JSON, with every trial.
#[must_use]
pub fn display_json(address: &str, rows: &[DisplayRateRow]) -> Value {
    let row = |row: &DisplayRateRow| {
        let statistics = SampleStatistics::from_values(&row.trials);
        json!({
            "picture": row.picture, "rate": row.rate, "unit": row.unit, "trials": row.trials,
            "mean": statistics.as_ref().map(|one| one.mean),
            "ci95_half_width": statistics.as_ref().and_then(SampleStatistics::half_width),
            "absent": row.absent,
        })
    };
    json!({ "display": address, "rates": rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_their_interval_and_stand_beside_the_slowest_level() {
        let row = |rate, trials: &[f64]| DisplayRateRow {
            picture: "vectors",
            rate,
            unit: "vectors/s",
            trials: trials.to_vec(),
            absent: None,
        };
        let text = display(
            "x",
            &[
                row("stop-and-wait", &[1e4, 1.2e4]),
                row("pipelined", &[2.2e6; 3]),
            ],
        );
        let cells = |at: usize| {
            text.lines()
                .nth(at)
                .unwrap()
                .split("  ")
                .filter(|c| !c.is_empty())
                .map(str::trim)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            cells(3),
            [
                "vectors",
                "stop-and-wait",
                "2",
                "11 000",
                "12 700",
                "vectors/s",
                "1.0"
            ]
        );
        assert_eq!(
            cells(4),
            [
                "vectors",
                "pipelined",
                "3",
                "2 200 000",
                "deterministic",
                "vectors/s",
                "200.0"
            ]
        );
    }
    #[test]
    fn a_rate_that_is_absent_has_its_row_and_one_reason() {
        let row = |picture, rate, trials: &[f64], absent: Option<&str>| DisplayRateRow {
            picture,
            rate,
            unit: "items/s",
            trials: trials.to_vec(),
            absent: absent.map(str::to_owned),
        };
        let why = Some("takes no time");
        let rows = [
            row("vectors", "construction", &[], why),
            row("vectors", "batched", &[2.0], None),
            row("text", "construction", &[], why),
        ];
        let text = display("x", &rows);
        let words = |at: usize| {
            text.lines()
                .nth(at)
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(3),
            ["vectors", "construction", "-", "-", "-", "items/s"]
        );
        assert!(
            text.ends_with("by the display\nconstruction - takes no time\n"),
            "{text}"
        );
        let json = display_json("x", &rows);
        assert_eq!(
            (
                &json["rates"][0]["mean"],
                json["rates"][0]["absent"].as_str()
            ),
            (&Value::Null, why)
        );
        assert_eq!(
            (
                json["rates"][1]["mean"].as_f64(),
                &json["rates"][1]["absent"]
            ),
            (Some(2.0), &Value::Null)
        );
    }
}
