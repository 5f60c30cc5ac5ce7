//! What a benchmark of a display came to: items a second of each picture at each level, with their intervals.

use crate::grid::{Align, line, widths};
use serde_json::{Value, json};
use stackline_analyze::Statistics;

/// A rate of a picture.
#[derive(Clone, Debug)]
pub struct Row {
    /// The picture.
    pub picture: &'static str,
    /// Which rate.
    pub rate: &'static str,
    /// What is counted a second.
    pub unit: &'static str,
    /// Each trial.
    pub trials: Vec<f64>,
}

/// The table.
#[must_use]
pub fn display(address: &str, rows: &[Row]) -> String {
    let head = ["picture", "rate", "n", "mean", "± 95 %", "", "times stop-and-wait"];
    let mut all = vec![head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
    for row in rows {
        let Some(statistics) = Statistics::from_values(&row.trials) else { continue };
        // What is no level is not compared with one.
        let is_level = !matches!(row.rate, "construction" | "display");
        let base = rows
            .iter()
            .filter(|_| is_level)
            .find(|other| other.picture == row.picture && other.rate == "stop-and-wait");
        let base = base.and_then(|base| Statistics::from_values(&base.trials)).map(|base| base.mean);
        let times = base.map_or(String::new(), |base| format!("{:.1}", statistics.mean / base));
        let half = statistics.half_width().map_or("-".to_owned(), number);
        all.push(vec![
            row.picture.to_owned(),
            row.rate.to_owned(),
            statistics.n.to_string(),
            number(statistics.mean),
            half,
            row.unit.to_owned(),
            times,
        ]);
    }
    let widths = widths(&all);
    let align = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left, Align::Right];
    let mut out = format!("display at {address}\n\n");
    all.iter().for_each(|row| out += &(line(row, &widths, &align).trim_end().to_owned() + "\n"));
    out += "\nmean ± 95 % over n trials; construction: nothing is shown; display: by the display's own clock\n";
    out
}

/// Three digits, with thousands apart.
fn number(value: f64) -> String {
    if value < 1000.0 {
        return format!("{value:.3}").get(..5).unwrap_or("").trim_end_matches('.').to_owned();
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

/// The same as JSON: every trial.
#[must_use]
pub fn display_json(address: &str, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let statistics = Statistics::from_values(&row.trials);
        json!({
            "picture": row.picture, "rate": row.rate, "unit": row.unit, "trials": row.trials,
            "mean": statistics.as_ref().map(|one| one.mean),
            "ci95_half_width": statistics.as_ref().and_then(Statistics::half_width),
        })
    };
    json!({ "display": address, "rates": rows.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_their_interval_and_stand_beside_the_slowest_level() {
        let row = |rate, trials: &[f64]| Row { picture: "vectors", rate, unit: "vectors/s", trials: trials.to_vec() };
        let text = display("x", &[row("stop-and-wait", &[1e4, 1.2e4]), row("pipelined", &[2.2e6; 3])]);
        let cells = |at: usize| {
            text.lines().nth(at).unwrap().split("  ").filter(|c| !c.is_empty()).map(str::trim).collect::<Vec<_>>()
        };
        assert_eq!(cells(3), ["vectors", "stop-and-wait", "2", "11 000", "12 700", "vectors/s", "1.0"]);
        assert_eq!(cells(4), ["vectors", "pipelined", "3", "2 200 000", "0.000", "vectors/s", "200.0"]);
    }
}
