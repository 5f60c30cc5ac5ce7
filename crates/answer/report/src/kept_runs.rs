//! The list of stored runs, and the one figure that represents a run in it.

use crate::figure;
use crate::grid::{Align, line, width, widths};
use stackline_analyze::Summary;

/// The width of a row, characters.
const WIDTH: usize = 80;
/// The least width of the column that says what a run is about.
const LEAST_ABOUT: usize = 12;

/// The main figure of a measurement, as in its table: `18.1 ± 0.2 Gbit/s`.
fn headline_figure(summary: &Summary) -> Option<String> {
    let (metric, figures) = (summary.main?, summary.main_statistics()?);
    let half = figures.ci95.map(|(low, high)| (high - low) / 2.0);
    let half = half.filter(|_| figures.n > 1 && figures.min < figures.max);
    Some(figure::with_half_width(metric, figures.mean, half))
}

/// The figure that represents a run: that of the first measurement that has one and is no load.
#[must_use]
pub fn headline_of(summaries: &[Summary]) -> Option<String> {
    let mut measured = summaries.iter().filter(|summary| !summary.background);
    measured.find_map(headline_figure)
}

/// A table of runs: name, result, where, size, and what each is about, cut to 80 characters.
#[must_use]
pub fn kept_run_table(runs: &[[String; 5]]) -> String {
    let head = ["run", "result", "where", "size", "about"].map(str::to_owned);
    let mut rows: Vec<Vec<String>> = [&head]
        .into_iter()
        .chain(runs)
        .map(|row| row.to_vec())
        .collect();
    let before = widths(&rows).iter().take(4).map(|width| width + 2).sum();
    let most = WIDTH.saturating_sub(before).max(LEAST_ABOUT);
    for about in rows.iter_mut().filter_map(|row| row.last_mut()) {
        if width(about) > most {
            *about = about.chars().take(most - 3).chain("...".chars()).collect();
        }
    }
    let widths = widths(&rows);
    let align = [
        Align::Left,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Left,
    ];
    rows.iter()
        .map(|row| line(row, &widths, &align) + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_is_about_is_cut_to_80_columns() {
        let row = |about: &str| {
            ["20261128-200000-a", "81.2 us", "simulated", "152 kB", about].map(str::to_owned)
        };
        let table = kept_run_table(&[row("5 rr 32*100"), row(&"x".repeat(100))]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[1],
            "20261128-200000-a  81.2 us  simulated  152 kB  5 rr 32*100"
        );
        assert!(
            lines[2].len() == 80 && lines[2].ends_with("xx..."),
            "{table}"
        );
    }
}
