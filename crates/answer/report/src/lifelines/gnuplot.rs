//! Lifelines as data files and a script for gnuplot: time on the x axis, monitor points on the y axis, one line for each unit, and
//! marks (drops, retransmissions) as crosses on top.

use super::{Shown, label};
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome};
use std::fmt::Write as _;

/// The name of the script.
pub const SCRIPT: &str = "lifelines.gp";

/// The files, as (name, content).
#[must_use]
pub fn lifelines_gnuplot(shown: &Shown<'_>) -> Vec<(String, String)> {
    let begun = shown
        .lifelines
        .lines
        .iter()
        .filter_map(|line| shown.lifelines.passages_of(line).first());
    let begun = begun.map(|passage| passage.at_ns).min().unwrap_or(0);
    let mut files = vec![(SCRIPT.to_owned(), script(shown))];
    for (group, _) in shown.lifelines.groups.iter().enumerate() {
        let of = |flushed: bool| {
            move |line: &&Lifeline| {
                line.group as usize == group
                    && matches!(line.outcome, LifelineOutcome::Flushed { .. }) == flushed
            }
        };
        files.push((came(group), lines(shown, begun, of(false))));
        files.push((flushed(group), lines(shown, begun, of(true))));
    }
    files.push(("marks.dat".into(), marks(shown, begun)));
    files
}

fn came(group: usize) -> String {
    format!("lines-{group}.dat")
}

fn flushed(group: usize) -> String {
    format!("flushed-{group}.dat")
}

fn ms(begun: u64, at_ns: u64) -> f64 {
    at_ns.wrapping_sub(begun) as i64 as f64 * 1e-6
}

/// The data of lines: a row for each passage with its time (ms) and the number of its point (from 1); an empty row after each line.
fn lines(shown: &Shown<'_>, begun: u64, wanted: impl Fn(&&Lifeline) -> bool) -> String {
    let mut text = String::from("# ms point\n");
    for line in shown.lifelines.lines.iter().filter(wanted) {
        for passage in shown.lifelines.passages_of(line) {
            let _ = writeln!(
                text,
                "{:.6} {}",
                ms(begun, passage.at_ns),
                passage.point + 1
            );
        }
        text.push('\n');
    }
    text
}

fn marks(shown: &Shown<'_>, begun: u64) -> String {
    let mut text = String::from("# ms row\n");
    let top = shown.lifelines.points.len() + 1;
    for mark in shown
        .lifelines
        .lines
        .iter()
        .flat_map(|line| shown.lifelines.marks_of(line))
    {
        let _ = writeln!(
            text,
            "{:.6} {}",
            ms(begun, mark.at_ns),
            top + mark.point as usize
        );
    }
    text
}

/// A text as a quoted string of gnuplot.
fn quoted(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("'{}'", plain.replace('\'', "''"))
}

fn script(shown: &Shown<'_>) -> String {
    let rows = shown.lifelines.points.iter().chain(&shown.lifelines.marked);
    let tics: Vec<String> = rows
        .enumerate()
        .map(|(row, point)| format!("{} {}", quoted(&label(point)), row + 1))
        .collect();
    let mut plots = Vec::new();
    for (group, name) in shown.lifelines.groups.iter().enumerate() {
        let (colour, title) = (group + 1, quoted(name));
        plots.push(format!(
            "'{}' using 1:2 with lines linecolor {colour} title {title}",
            came(group)
        ));
        plots.push(format!(
            "'{}' using 1:2 with lines linecolor {colour} dashtype 2 notitle",
            flushed(group)
        ));
    }
    plots.push("'marks.dat' using 1:2 with points pointtype 2 linecolor 'black' notitle".into());
    format!(
        "set terminal svg size 1200,700 noenhanced\nset output 'lifelines.svg'\nset xlabel 'ms'\n\
         set ytics noenhanced ({})\nset yrange [0.5:{}.5]\nset grid ytics\nplot {}\n",
        tics.join(", "),
        tics.len(),
        plots.join(", \\\n     ")
    )
}
