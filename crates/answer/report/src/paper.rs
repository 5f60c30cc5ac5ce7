//! The reproduction of a paper's tables and figures: what was printed, what formulas give, what was simulated and measured.
//!
//! All times are seconds in the data and milliseconds in the text. Empty columns are left out.

use crate::figure::ABSENT;
use crate::grid::{Align, line, widths, wrap};
use crate::sheet::Sheet;
use crate::table::WIDTH;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as object};
use stackline_core::units;

/// The reproduction of one paper.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperReport {
    /// Its name on the command line.
    pub name: String,
    /// Author, year and title.
    pub title: String,
    /// Notes on the whole, such as the costs of the simulated machines.
    pub notes: Vec<String>,
    /// Times in the same columns, in the order of the paper.
    pub exhibits: Vec<Exhibit>,
    /// Tables with columns of their own, in the order of the paper.
    pub sheets: Vec<Sheet>,
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
    pub rows: Vec<PaperRow>,
    /// Notes that matter for comparisons, one or two sentences each.
    pub notes: Vec<String>,
}

/// One line: a case, and what is known of it. Times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaperRow {
    /// The protocol, or the step of a breakdown.
    pub subject: String,
    /// The number of packets (N or D in the paper).
    pub packets: Option<u32>,
    /// The probability that a packet is lost.
    pub loss: Option<f64>,
    /// The retransmission interval Tr: as a multiple, in the paper's words, and in seconds.
    pub interval: Option<(String, f64)>,
    /// The printed figure, if the paper has one.
    pub printed: Option<PaperFigure>,
    /// The value of the formula as printed, if that formula is not correct.
    pub as_printed: Option<f64>,
    /// The value of the correct formula with the paper's rounded costs.
    pub formula: Option<f64>,
    /// The value of the correct formula with the costs of the simulated host profile.
    pub profile: Option<f64>,
    /// The simulation with that profile.
    pub simulated: Option<SimulatedTransfers>,
    /// The measurement on this machine.
    pub measured: Option<MeasuredTransfers>,
    /// By how many percent the simulation, or without one the formula, deviates from the printed figure.
    pub off_percent: Option<f64>,
    /// Why it deviates, if by much.
    pub why: Option<String>,
}

/// A figure of the paper.
#[derive(Clone, Debug, PartialEq)]
pub enum PaperFigure {
    /// All available copies of the paper lack it.
    Lost,
    /// As printed, in milliseconds, and in seconds.
    Here(&'static str, f64),
}

/// A figure from simulated transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedTransfers {
    /// In seconds.
    pub seconds: f64,
    /// Its standard error in seconds; `None` if nothing is random.
    pub error: Option<f64>,
    /// How many transfers were simulated; one if nothing is random.
    pub transfers: u64,
}

/// Transfers on this machine, all in seconds. The median is shown, as a few transfers that the scheduler delayed do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTransfers {
    /// How many.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1).
    pub sd: f64,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The longest.
    pub max: f64,
}

impl PaperRow {
    /// The deviation of the simulation from the formula with the same costs, as a share.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        let (simulated, profile) = self.simulated.zip(self.profile)?;
        (profile > 0.0).then(|| simulated.seconds / profile - 1.0)
    }
}

/// A column: its heading, the heading's meaning, its alignment, and its text in a row.
struct PaperColumn {
    head: &'static str,
    means: &'static str,
    align: Align,
    cell: fn(&PaperRow, usize) -> Option<String>,
}

impl PaperColumn {
    const fn left(
        head: &'static str,
        means: &'static str,
        cell: fn(&PaperRow, usize) -> Option<String>,
    ) -> Self {
        Self {
            head,
            means,
            align: Align::Left,
            cell,
        }
    }

    const fn right(
        head: &'static str,
        means: &'static str,
        cell: fn(&PaperRow, usize) -> Option<String>,
    ) -> Self {
        Self {
            align: Align::Right,
            ..Self::left(head, means, cell)
        }
    }
}

const COLUMNS: [PaperColumn; 12] = [
    PaperColumn::left("", "", |row, _| Some(row.subject.clone())),
    PaperColumn::right("packets", "", |row, _| row.packets.map(|n| n.to_string())),
    PaperColumn::right("loss", "", |row, _| row.loss.map(|p| format!("{p:e}"))),
    PaperColumn::right("Tr", "", |row, _| {
        row.interval.as_ref().map(|(words, _)| words.clone())
    }),
    PaperColumn::right(
        "published",
        "in the paper; \"lost\" where all available copies lack it",
        |row, _| row.printed.as_ref().map(PaperFigure::text),
    ),
    PaperColumn::right(
        "as published",
        "the paper's formula, shown where a different one is correct",
        |row, digits| row.as_printed.map(|s| ms(s, digits)),
    ),
    PaperColumn::right(
        "formula",
        "the correct formula, with the paper's costs",
        |row, digits| row.formula.map(|s| ms(s, digits)),
    ),
    PaperColumn::right(
        "profile",
        "the correct formula with the host profile's costs, including the latency",
        |row, digits| row.profile.map(|s| ms(s, digits)),
    ),
    PaperColumn::right(
        "simulated",
        "with the host profile; in parentheses, the deviation from the formula (= means equal after rounding) and the standard error of random values",
        |row, digits| {
            Some(format!(
                "{}{}",
                ms(row.simulated?.seconds, digits),
                apart(row)
            ))
        },
    ),
    PaperColumn::right("here", "median on this machine today", |row, _| {
        row.measured.map(|s| units::format_time(s.median))
    }),
    PaperColumn::right(
        "off %",
        "deviation of the simulation, or of the formula where nothing is simulated, from the printed figure",
        |row, _| row.off_percent.map(|off| format!("{off:.1}")),
    ),
    PaperColumn::left("why", "", |row, _| row.why.clone()),
];

impl PaperFigure {
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

/// The deviation from the formula, with its standard error, as a text that follows a figure.
fn apart(row: &PaperRow) -> String {
    let Some(share) = row.apart() else {
        return String::new();
    };
    if share.abs() < SAME {
        return " (=)".to_owned();
    }
    match row
        .simulated
        .and_then(|simulated| Some(simulated.error? / simulated.seconds))
    {
        // Two digits after the point, or four if the error is small.
        Some(error) => {
            let digits = if error < 1e-3 { 4 } else { 2 };
            format!(
                " ({:+.digits$} ± {:.digits$} %)",
                100.0 * share,
                100.0 * error
            )
        }
        None => format!(" ({:+.4} %)", 100.0 * share),
    }
}

/// The paper as text.
#[must_use]
pub fn paper(paper: &PaperReport) -> String {
    let mut lines = vec![paper.title.clone()];
    if !paper.exhibits.is_empty() {
        lines.extend(legend(paper));
    }
    lines.extend(paper.notes.iter().flat_map(|note| wrap(note, WIDTH)));
    for exhibit in &paper.exhibits {
        lines.push(String::new());
        lines.push(format!("{}: {}", exhibit.name, exhibit.title));
        lines.extend(table(exhibit).into_iter().map(|line| format!("  {line}")));
        for note in &exhibit.notes {
            let wrapped = wrap(note, WIDTH - 4).into_iter().enumerate();
            lines.extend(
                wrapped.map(|(at, line)| format!("  {}{line}", if at == 0 { "- " } else { "  " })),
            );
        }
    }
    lines.extend(paper.sheets.iter().flat_map(Sheet::lines));
    lines
        .into_iter()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// A smaller deviation than this share counts as rounding: simulated times are whole nanoseconds.
const SAME: f64 = 5e-6;

/// The meaning of the headings that occur.
fn legend(paper: &PaperReport) -> Vec<String> {
    let there = |column: &PaperColumn| paper.exhibits.iter().any(|exhibit| exhibit.has(column));
    let each = COLUMNS
        .iter()
        .filter(|column| !column.means.is_empty() && there(column));
    let each: Vec<String> = each
        .map(|column| format!("{}: {}.", column.head, column.means))
        .collect();
    wrap(&format!("Times in ms. {}", each.join(" ")), WIDTH)
}

impl Exhibit {
    fn has(&self, column: &PaperColumn) -> bool {
        self.rows
            .iter()
            .any(|row| (column.cell)(row, self.digits).is_some())
    }
}

fn table(exhibit: &Exhibit) -> Vec<String> {
    let cell = |row: &PaperRow, column: &PaperColumn| (column.cell)(row, exhibit.digits);
    let columns: Vec<&PaperColumn> = COLUMNS
        .iter()
        .filter(|column| exhibit.has(column))
        .collect();
    let heads = columns.iter().map(|column| {
        if column.head.is_empty() {
            exhibit.subject
        } else {
            column.head
        }
    });
    let mut rows: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    rows.extend(exhibit.rows.iter().map(|row| {
        columns
            .iter()
            .map(|column| cell(row, column).unwrap_or_else(|| ABSENT.to_owned()))
            .collect()
    }));
    let (widths, align) = (
        widths(&rows),
        columns
            .iter()
            .map(|column| column.align)
            .collect::<Vec<_>>(),
    );
    rows.iter().map(|row| line(row, &widths, &align)).collect()
}

/// The paper as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn paper_json(paper: &PaperReport) -> Value {
    let exhibits: Vec<Value> = paper
        .exhibits
        .iter()
        .map(exhibit)
        .chain(paper.sheets.iter().map(Sheet::json))
        .collect();
    object!({ "paper": paper.name, "title": paper.title, "notes": paper.notes, "exhibits": exhibits })
}

fn exhibit(exhibit: &Exhibit) -> Value {
    object!({
        "name": exhibit.name,
        "title": exhibit.title,
        "rows": exhibit.rows.iter().map(row).collect::<Vec<_>>(),
        "notes": exhibit.notes,
    })
}

fn row(row: &PaperRow) -> Value {
    let printed = match row.printed {
        Some(PaperFigure::Here(_, seconds)) => Some(seconds),
        Some(PaperFigure::Lost) | None => None,
    };
    object!({
        "subject": row.subject,
        "packets": row.packets,
        "loss": row.loss,
        "interval": row.interval.as_ref().map(|(words, _)| words),
        "interval_s": row.interval.as_ref().map(|(_, seconds)| seconds),
        "printed_s": printed,
        "lost": row.printed == Some(PaperFigure::Lost),
        "formula_as_printed_s": row.as_printed,
        "formula_s": row.formula,
        "profile_s": row.profile,
        "simulated_s": row.simulated.map(|s| s.seconds),
        "simulated_error_s": row.simulated.and_then(|s| s.error),
        "simulated_transfers": row.simulated.map(|s| s.transfers),
        "apart": row.apart(),
        "measured": row.measured,
        "off_percent": row.off_percent,
        "why": row.why,
    })
}

#[cfg(test)]
mod tests;
