//! Summaries as a table of at most 80 characters (unless a word is longer): the text of a measurement, its rows below it, and notes
//! at the end.
//!
//! A row shows one metric: throughput if data units were moved, else response time, else connect time.

mod label;

use crate::figure::{self, ABSENT, Percentile};
use crate::grid::{self, Align, fitting_gap, line_with_gap, total_with_gap, widths, wrap};
use crate::notes::{self, Note, Weight};
use label::{LabelBlock, blocks};
use stackline_analyze::{RepeatedWork, RunMetric, Summary, flags};
use stackline_core::plan::World;
use stackline_core::units;
use std::collections::BTreeSet;

/// The width of lines, characters, unless a word is longer.
pub(crate) const WIDTH: usize = 80;
/// The least width of the label column (stack or part); a label that does not fit is written above its figures.
const LEAST_LABEL: usize = 2;
/// The index of the label column.
const LABEL: usize = 1;
/// If runs differ by more than this share of the mean, the legend explains why a rate is not the inverse of the mean time.
const UNEVEN: f64 = 0.05;
/// Labels are left-aligned, numbers right-aligned.
const ALIGN: [Align; 7] = {
    let mut align = [Align::Right; 7];
    align[LABEL] = Align::Left;
    align
};

/// How a table is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    /// Whether to use bold and yellow (terminal escape sequences).
    pub colour: bool,
    /// Further notes, such as the wake-up time of this machine.
    pub notes: Vec<Note>,
    /// The most notes below the table, the most important ones; `None` shows all, and the meaning of the flags.
    pub most_notes: Option<usize>,
    /// The percentiles of call and connect times to show; if empty, median and p99.
    pub percentiles: Vec<Percentile>,
}

/// The table as text, with its notes.
#[must_use]
pub fn table(summaries: &[Summary], options: &TableOptions) -> String {
    let mut text = table_rows(summaries, options);
    let below = below(summaries, options);
    if !below.is_empty() {
        text.push('\n');
        text.extend(
            below
                .iter()
                .flat_map(|note| hanging(note))
                .map(|line| line + "\n"),
        );
    }
    text
}

/// Only the rows of the table, which can be printed before its notes are known.
#[must_use]
pub fn table_rows(summaries: &[Summary], options: &TableOptions) -> String {
    let lines = if summaries.is_empty() {
        vec!["nothing was measured".to_owned()]
    } else {
        rows(summaries, options)
    };
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The notes below the rows.
fn below(summaries: &[Summary], options: &TableOptions) -> Vec<String> {
    let mut notes = [
        notes::notes(summaries),
        too_few(summaries, &options.percentiles),
        options.notes.clone(),
    ]
    .concat();
    notes.sort_by_key(|note| note.weight);
    let meanings = meanings(summaries);
    let Some(most) = options.most_notes else {
        return notes
            .into_iter()
            .map(|note| note.text)
            .chain(meanings)
            .collect();
    };
    let (always, mut others): (Vec<Note>, Vec<Note>) =
        notes.into_iter().partition(Note::is_always_shown);
    let left = others.len().saturating_sub(most);
    others.truncate(most);
    let more = match (left, meanings.is_empty()) {
        (0, true) => None,
        (0, false) => Some("--notes all explains what ! means".to_owned()),
        (left, _) => Some(format!(
            "{left} more with --notes all, which also explains what ! means"
        )),
    };
    let text = |notes: Vec<Note>| notes.into_iter().map(|note| note.text);
    text(others).chain(more).chain(text(always)).collect()
}

/// Notes on requested percentiles that are absent because a row has too few values.
fn too_few(summaries: &[Summary], percentiles: &[Percentile]) -> Vec<Note> {
    let times = |s: &&Summary| matches!(s.main, Some(RunMetric::Response | RunMetric::Connect));
    let Some(n) = summaries
        .iter()
        .filter(times)
        .filter_map(Summary::main_statistics)
        .map(|s| s.n)
        .min()
    else {
        return Vec::new();
    };
    let why = |one: &Percentile| Some(format!("{} is absent: {}", one.name(), one.too_few(n)?));
    percentiles
        .iter()
        .filter_map(why)
        .map(|text| Note::new(Weight::Always, text))
        .collect()
}

/// The meaning of the flags in the table, each once.
fn meanings(summaries: &[Summary]) -> Vec<String> {
    let raised: BTreeSet<_> = summaries
        .iter()
        .flat_map(|s| &s.flags)
        .filter_map(|flag| flags::meaning(flag))
        .collect();
    raised
        .into_iter()
        .map(|(flag, meaning)| format!("! {flag}: {}", meaning.replace('`', "")))
        .collect()
}

/// A note, wrapped with its later lines indented.
fn hanging(note: &str) -> Vec<String> {
    let lines = wrap(note, WIDTH - 2).into_iter().enumerate();
    lines
        .map(|(index, line)| {
            if index == 0 {
                line
            } else {
                format!("  {line}")
            }
        })
        .collect()
}

fn rows(summaries: &[Summary], options: &TableOptions) -> Vec<String> {
    let requested = &options.percentiles[..];
    let percentiles = if requested.is_empty() {
        &Percentile::USUAL[..]
    } else {
        requested
    };
    let blocks = blocks(summaries);
    let cells: Vec<Vec<String>> = blocks
        .iter()
        .flat_map(|block| cells(block, summaries, requested))
        .collect();
    let columns = Columns::measure(&head(summaries, percentiles), &cells);
    let everywhere = flags_everywhere(summaries);
    let mut lines = vec![paint(
        options.colour,
        "1",
        columns.line(&head(summaries, percentiles)),
    )];
    let mut cells = cells.iter();
    for block in &blocks {
        let under = |text: &str| format!("{}{text}", " ".repeat(columns.margin()));
        lines.extend(
            block
                .text
                .iter()
                .flat_map(|text| wrap(text, WIDTH - columns.margin()))
                .map(|line| under(&line)),
        );
        for (row, cells) in block.rows.iter().zip(&mut cells) {
            lines.extend(columns.row(cells));
            lines.extend(
                notes::results(row.summary)
                    .iter()
                    .map(|result| under(&format!("    {result}"))),
            );
            let flags = flag_line(row.summary, &everywhere, columns.margin() + 2);
            lines.extend(
                flags
                    .into_iter()
                    .map(|line| paint(options.colour, "33", line)),
            );
        }
    }
    let all = everywhere.iter().cloned().collect::<Vec<_>>().join(", ");
    if !all.is_empty() {
        lines.extend(
            hanging(&format!("! all rows: {all}"))
                .into_iter()
                .map(|line| paint(options.colour, "33", line)),
        );
    }
    lines.extend(
        legend(summaries, percentiles)
            .into_iter()
            .flat_map(|text| hanging(&text)),
    );
    lines
}

/// The layout of the table: the columns that are not empty, with their widths.
struct Columns {
    used: Vec<usize>,
    widths: Vec<usize>,
    /// Spaces between two columns.
    gap: usize,
}

impl Columns {
    /// Columns as wide as their content; if a line would be too wide, the label column is narrowed, then the gaps.
    fn measure(head: &[String], cells: &[Vec<String>]) -> Self {
        let used: Vec<usize> = (0..head.len())
            .filter(|at| *at == LABEL || cells.iter().any(|row| !row[*at].is_empty()))
            .collect();
        let chosen = |row: &[String]| used.iter().map(|at| row[*at].clone()).collect::<Vec<_>>();
        let rows: Vec<_> = std::iter::once(head)
            .chain(cells.iter().map(Vec::as_slice))
            .map(chosen)
            .collect();
        let mut widths = widths(&rows);
        let label = used.iter().position(|at| *at == LABEL).unwrap_or(0);
        let wanted = widths[label];
        widths[label] = wanted.min(LEAST_LABEL);
        let gap = fitting_gap(&widths, WIDTH);
        let others = total_with_gap(&widths, gap) - widths[label];
        widths[label] = wanted.min(WIDTH.saturating_sub(others).max(LEAST_LABEL));
        Self { used, widths, gap }
    }

    /// The position where labels begin.
    fn margin(&self) -> usize {
        if self.used[0] == LABEL {
            0
        } else {
            self.widths[0] + self.gap
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let chosen: Vec<String> = self.used.iter().map(|at| cells[*at].clone()).collect();
        let align: Vec<Align> = self.used.iter().map(|at| ALIGN[*at]).collect();
        line_with_gap(&chosen, &self.widths, &align, self.gap)
    }

    /// The lines of a row; a label that is too long for its column is written above the figures.
    fn row(&self, cells: &[String]) -> Vec<String> {
        let label = self.used.iter().position(|at| *at == LABEL).unwrap_or(0);
        if grid::width(&cells[LABEL]) <= self.widths[label] {
            return vec![self.line(cells)];
        }
        let indent = " ".repeat(cells[LABEL].len() - cells[LABEL].trim_start().len());
        let number = if self.margin() > 0 {
            format!("{:>1$}{2}", cells[0], self.widths[0], " ".repeat(self.gap))
        } else {
            String::new()
        };
        let texts = wrap(
            cells[LABEL].trim_start(),
            WIDTH - self.margin() - indent.len() - 2,
        )
        .into_iter()
        .enumerate();
        let mut lines: Vec<String> = texts
            .map(|(at, text)| match at {
                0 => format!("{number}{indent}{text}"),
                _ => format!("{}{indent}  {text}", " ".repeat(self.margin())),
            })
            .collect();
        let mut figures = cells.to_vec();
        (figures[0], figures[LABEL]) = (String::new(), String::new());
        lines.push(self.line(&figures));
        lines
    }
}

fn head(summaries: &[Summary], percentiles: &[Percentile]) -> Vec<String> {
    let times = summaries
        .iter()
        .any(|summary| matches!(summary.main, Some(RunMetric::Response | RunMetric::Connect)));
    let spread = if times {
        Percentile::names(percentiles)
    } else {
        "least..most".to_owned()
    };
    let rate = if mixed(summaries) {
        "per s"
    } else {
        summaries
            .iter()
            .find_map(|s| s.rate_of)
            .map_or("per s", per_second)
    };
    ["", "", "n", "mean ± 95 %", &spread, rate, "CPU"]
        .map(str::to_owned)
        .to_vec()
}

/// Whether rows have rates of different things (calls, connections): then each says which.
fn mixed(summaries: &[Summary]) -> bool {
    summaries
        .iter()
        .filter_map(|summary| summary.rate_of)
        .map(per_second)
        .collect::<BTreeSet<_>>()
        .len()
        > 1
}

const fn per_second(work: RepeatedWork) -> &'static str {
    match work {
        RepeatedWork::Call => "calls/s",
        RepeatedWork::Connection => "conns/s",
    }
}

/// Whether simulated runs are equal, apart from rounding, because nothing in them is random.
fn is_deterministic(summary: &Summary) -> bool {
    summary.world == World::Simulated
        && summary.main_statistics().is_some_and(|s| {
            s.half_width()
                .is_some_and(|half| half <= s.mean.abs() * 1e-12)
        })
}

/// A line that says which figures are over runs and which over calls.
fn legend(summaries: &[Summary], percentiles: &[Percentile]) -> Option<String> {
    let any = |metric| summaries.iter().any(|summary| summary.main == Some(metric));
    let over = match (any(RunMetric::Response), any(RunMetric::Connect)) {
        (true, true) => Some("calls or connections"),
        (true, false) => Some("calls"),
        (false, true) => Some("connections"),
        (false, false) => None,
    };
    let times = over.map(|over| format!("{} over {over}", Percentile::names(percentiles)));
    let runs = any(RunMetric::Throughput).then(|| "a..b lowest and highest".to_owned());
    // If runs are alike, both weightings give the same.
    let uneven = |s: &Summary| s.rate_of.is_some() && s.normalised_sd.is_some_and(|sd| sd > UNEVEN);
    let weights = summaries
        .iter()
        .any(uneven)
        .then(|| "a mean time weights calls equally, a rate weights runs equally".to_owned());
    let alike = summaries
        .iter()
        .any(is_deterministic)
        .then(|| "mean without ±: deterministic, all runs identical".to_owned());
    let first =
        (!summaries.iter().all(is_deterministic)).then(|| "mean ± 95 % over n runs".to_owned());
    let parts: Vec<String> = first
        .into_iter()
        .chain(alike)
        .chain(runs)
        .chain(times)
        .chain(weights)
        .collect();
    (parts.len() > 1).then(|| parts.join("; "))
}

fn paint(colour: bool, code: &str, line: String) -> String {
    if colour {
        format!("\x1b[{code}m{line}\x1b[0m")
    } else {
        line
    }
}

/// The rate per second, with its unit if the column's heading does not say it.
fn rate(summary: &Summary, mixed: bool) -> String {
    let Some((rate, work)) = summary.rate_per_s.zip(summary.rate_of) else {
        return String::new();
    };
    let figure = units::per_second(rate.mean).replace("/s", "");
    if mixed {
        format!("{figure} {}", per_second(work).trim_end_matches("/s"))
    } else {
        figure
    }
}

fn cells(
    block: &LabelBlock<'_>,
    summaries: &[Summary],
    percentiles: &[Percentile],
) -> Vec<Vec<String>> {
    let mixed = mixed(summaries);
    let row = |row: &label::LabelledRow<'_>| {
        let number = if summaries.len() > 1 {
            row.number.to_string()
        } else {
            String::new()
        };
        let mut cells = vec![number, row.label.clone(), row.summary.runs.to_string()];
        cells.extend(figures(row.summary, percentiles));
        cells.push(rate(row.summary, mixed));
        cells.push(cost(row.summary));
        cells
    };
    block.rows.iter().map(row).collect()
}

fn figures(summary: &Summary, percentiles: &[Percentile]) -> [String; 2] {
    let (Some(metric), Some(s)) = (summary.main, summary.main_statistics()) else {
        return [ABSENT, ABSENT].map(str::to_owned);
    };
    let half = s.half_width().filter(|_| !is_deterministic(summary));
    let mean = figure::with_half_width(metric, s.mean, half);
    let spread = match metric {
        RunMetric::Response | RunMetric::Connect if percentiles.is_empty() => {
            figure::format_values(metric, &[Some(s.median), Some(s.p99)])
        }
        RunMetric::Response | RunMetric::Connect => figure::format_values(
            metric,
            &percentiles
                .iter()
                .map(|one| one.value_in(metric, summary))
                .collect::<Vec<_>>(),
        ),
        _ => figure::range(metric, s.min, s.max),
    };
    [mean, spread]
}

fn cost(summary: &Summary) -> String {
    let per_gb = summary
        .cpu_s_per_gb
        .map(|cost| figure::cpu_per_gb(cost.both));
    let per = summary.rate_of.zip(summary.cpu_us_per_call);
    let per = || per.map(|(work, cost)| figure::cpu_per(work, cost.both));
    per_gb.or_else(per).unwrap_or_else(|| ABSENT.to_owned())
}

/// Flags that all of several rows have, which are shown only once.
fn flags_everywhere(summaries: &[Summary]) -> BTreeSet<String> {
    let (Some(first), true) = (summaries.first(), summaries.len() > 1) else {
        return BTreeSet::new();
    };
    let everywhere = |flag: &&String| summaries.iter().all(|summary| summary.flags.contains(flag));
    // These flags have figures of their own in each row.
    first
        .flags
        .iter()
        .filter(everywhere)
        .filter(|flag| !matches!(flag.as_str(), "sd>5%" | "overload" | "lost data"))
        .cloned()
        .collect()
}

/// The flag for lost data units or calls, such as `lost data (calls: 46, 3.07 %)`.
fn lost_data(summary: &Summary) -> String {
    let what = match summary.rate_of {
        Some(RepeatedWork::Call) => "calls",
        // None was answered.
        None if summary.application == "request_response" => "calls",
        _ => "units",
    };
    let share = summary
        .lost_share
        .map_or_else(String::new, |share| format!(", {}", figure::percent(share)));
    let lost = summary.lost.unwrap_or(0);
    format!("lost data ({what}: {lost}{share})")
}

/// The flags of a row as lines; deviation, overload and losses with their figures.
fn flag_line(summary: &Summary, everywhere: &BTreeSet<String>, indent: usize) -> Vec<String> {
    let spread = summary.normalised_sd.map_or_else(String::new, |sd| {
        format!("sd>5% (sd {})", figure::percent(sd))
    });
    let (overloaded, runs) = (summary.overloaded(), summary.runs);
    let overload =
        format!("overload (runs: {overloaded} of {runs}; the figures reflect the machine)");
    let lost = lost_data(summary);
    let mine = summary
        .flags
        .iter()
        .filter(|flag| !everywhere.contains(*flag));
    let flags: Vec<&str> = mine
        .map(|flag| match flag.as_str() {
            "sd>5%" => spread.as_str(),
            "overload" => overload.as_str(),
            "lost data" => lost.as_str(),
            flag => flag,
        })
        .collect();
    if flags.is_empty() {
        return Vec::new();
    }
    let margin = " ".repeat(indent);
    let lines = wrap(&flags.join(", "), WIDTH - indent - 2)
        .into_iter()
        .enumerate();
    lines
        .map(|(index, line)| format!("{margin}{} {line}", if index == 0 { "!" } else { " " }))
        .collect()
}

#[cfg(test)]
mod tests;
