//! A paper's tables and figures made again: what was printed, what the formulas give, what was simulated and measured.
//!
//! All times are seconds here and milliseconds in the text. Columns that nothing stands in are left out.

use crate::figure::{ABSENT, percent};
use crate::grid::{Align, line, widths, wrap};
use crate::json::statistics;
use crate::table::WIDTH;
use serde_json::{Value, json as object};
use stackline_analyze::Statistics;
use stackline_core::units;

/// What of a paper was made again.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// What the command calls it.
    pub name: String,
    /// Author, year and title.
    pub title: String,
    /// In the order of the paper.
    pub exhibits: Vec<Exhibit>,
}

/// A table or a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhibit {
    /// Where it stands in the paper: `Table 1`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What a row is about: the heading of its first column.
    pub subject: &'static str,
    /// Digits behind the point of a millisecond.
    pub digits: usize,
    /// Its lines.
    pub rows: Vec<Row>,
    /// What one has to know before comparing, one sentence or two each.
    pub notes: Vec<String>,
}

/// One line: a case, and what is known of it. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The protocol, or the step of a breakdown.
    pub subject: String,
    /// N or D.
    pub packets: Option<u32>,
    /// The probability that a packet is lost.
    pub loss: Option<f64>,
    /// The retransmission interval Tr: as a multiple, in the paper's words, and in seconds.
    pub interval: Option<(String, f64)>,
    /// What the paper says; nothing where it has no such figure.
    pub printed: Option<Printed>,
    /// The formula as the paper prints it, where that is not the right one.
    pub as_printed: Option<f64>,
    /// The right formula with the paper's rounded costs.
    pub formula: Option<f64>,
    /// The same with the costs of the host profile that is simulated.
    pub profile: Option<f64>,
    /// The simulation of that profile.
    pub simulated: Option<Simulated>,
    /// On this machine, its median is what counts.
    pub measured: Option<Statistics>,
}

/// A figure of the paper.
#[derive(Clone, Debug, PartialEq)]
pub enum Printed {
    /// It stood in the paper, but not in what is left of it.
    Lost,
    /// As printed, in milliseconds, and in seconds.
    Here(&'static str, f64),
}

/// A figure from simulated transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// In seconds.
    pub seconds: f64,
    /// How many transfers it is from; one where nothing is drawn.
    pub transfers: u64,
}

impl Row {
    /// How far the simulation is from the formula with the same costs, as a share of it.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        let (simulated, profile) = self.simulated.zip(self.profile)?;
        (profile > 0.0).then(|| simulated.seconds / profile - 1.0)
    }
}

/// A column: its heading and how it stands, and its text in a row.
struct Column {
    head: &'static str,
    align: Align,
    cell: fn(&Row, usize) -> Option<String>,
}

const COLUMNS: [Column; 10] = [
    Column { head: "", align: Align::Left, cell: |row, _| Some(row.subject.clone()) },
    Column { head: "packets", align: Align::Right, cell: |row, _| row.packets.map(|n| n.to_string()) },
    Column { head: "loss", align: Align::Right, cell: |row, _| row.loss.map(|p| format!("{p:e}")) },
    Column { head: "Tr", align: Align::Right, cell: |row, _| row.interval.as_ref().map(|(words, _)| words.clone()) },
    Column { head: "printed", align: Align::Right, cell: |row, _| row.printed.as_ref().map(Printed::text) },
    Column { head: "as printed", align: Align::Right, cell: |row, digits| row.as_printed.map(|s| ms(s, digits)) },
    Column { head: "formula", align: Align::Right, cell: |row, digits| row.formula.map(|s| ms(s, digits)) },
    Column { head: "profile", align: Align::Right, cell: |row, digits| row.profile.map(|s| ms(s, digits)) },
    Column {
        head: "simulated",
        align: Align::Right,
        cell: |row, digits| Some(format!("{}{}", ms(row.simulated?.seconds, digits), apart(row))),
    },
    Column { head: "here", align: Align::Right, cell: |row, _| row.measured.map(|s| units::time(s.median)) },
];

impl Printed {
    fn text(&self) -> String {
        match self {
            Self::Lost => "lost".to_owned(),
            Self::Here(text, _) => (*text).to_owned(),
        }
    }
}

fn ms(seconds: f64, digits: usize) -> String {
    format!("{:.digits$}", seconds * 1e3)
}

/// How far from the formula, behind the figure.
fn apart(row: &Row) -> String {
    match row.apart() {
        Some(share) if share.abs() < 5e-6 => " (=)".to_owned(),
        Some(share) => format!(" ({}{})", if share < 0.0 { "-" } else { "+" }, percent(share.abs())),
        None => String::new(),
    }
}

/// The paper as text.
#[must_use]
pub fn paper(paper: &Paper) -> String {
    let mut lines = vec![paper.title.clone()];
    lines.extend(wrap(LEGEND, WIDTH));
    for exhibit in &paper.exhibits {
        lines.push(String::new());
        lines.push(format!("{}: {}", exhibit.name, exhibit.title));
        lines.extend(table(exhibit).into_iter().map(|line| format!("  {line}")));
        for note in &exhibit.notes {
            let wrapped = wrap(note, WIDTH - 4).into_iter().enumerate();
            lines.extend(wrapped.map(|(at, line)| format!("  {}{line}", if at == 0 { "- " } else { "  " })));
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

const LEGEND: &str = "\
Times in ms. printed: in the paper (lost: in no copy at hand). as printed: the paper's formula, where another one is right. \
formula: the right one, with the paper's costs. profile: with those of the host profile, which also has the latency. \
simulated: that profile, in parentheses how far from the formula (=: less than 0.0005 %). here: median on this machine today.";

fn table(exhibit: &Exhibit) -> Vec<String> {
    let cell = |row: &Row, column: &Column| (column.cell)(row, exhibit.digits);
    let there = |column: &&Column| exhibit.rows.iter().any(|row| cell(row, column).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(there).collect();
    let heads = columns.iter().map(|column| if column.head.is_empty() { exhibit.subject } else { column.head });
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    rows.extend(
        exhibit
            .rows
            .iter()
            .map(|row| columns.iter().map(|column| cell(row, column).unwrap_or_else(|| ABSENT.to_owned())).collect()),
    );
    let (widths, align) = (widths(&rows), columns.iter().map(|column| column.align).collect::<Vec<_>>());
    rows.iter().map(|row| line(row, &widths, &align)).collect()
}

/// The paper as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn paper_json(paper: &Paper) -> Value {
    let exhibits: Vec<Value> = paper.exhibits.iter().map(exhibit).collect();
    object!({ "paper": paper.name, "title": paper.title, "exhibits": exhibits })
}

fn exhibit(exhibit: &Exhibit) -> Value {
    object!({
        "name": exhibit.name,
        "title": exhibit.title,
        "rows": exhibit.rows.iter().map(row).collect::<Vec<_>>(),
        "notes": exhibit.notes,
    })
}

fn row(row: &Row) -> Value {
    let printed = match row.printed {
        Some(Printed::Here(_, seconds)) => Some(seconds),
        Some(Printed::Lost) | None => None,
    };
    object!({
        "subject": row.subject,
        "packets": row.packets,
        "loss": row.loss,
        "interval": row.interval.as_ref().map(|(words, _)| words),
        "interval_s": row.interval.as_ref().map(|(_, seconds)| seconds),
        "printed_s": printed,
        "lost": row.printed == Some(Printed::Lost),
        "formula_as_printed_s": row.as_printed,
        "formula_s": row.formula,
        "profile_s": row.profile,
        "simulated_s": row.simulated.map(|s| s.seconds),
        "simulated_transfers": row.simulated.map(|s| s.transfers),
        "apart": row.apart(),
        "measured": statistics(row.measured.as_ref()),
    })
}

#[cfg(test)]
mod tests;
