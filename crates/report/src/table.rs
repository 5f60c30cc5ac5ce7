//! Summaries as a table: one row each, and below it what one has to know before believing the figures.
//!
//! A row is judged by one metric: throughput where data units moved, else response time, else connect time.

use crate::figure::{self, ABSENT};
use crate::grid::{self, Align, line, total, widths, wrap};
use crate::notes::notes;
use stackline_analyze::{Metric, Summary};

/// Lines are not wider than this where their words allow it.
pub(crate) const WIDTH: usize = 110;
/// The measurement is not squeezed below this.
const LEAST_LABEL: usize = 18;
/// A stack with options is not wider than this where its words allow it.
const MOST_STACK: usize = 14;
/// Which columns the measurement and the stack stand in.
const LABEL: usize = 1;
const STACK: usize = 2;
const HEAD: [&str; 8] = ["", "measurement", "stack", "runs", "mean ± 95 %", "median / p99", "min..max", "CPU"];
/// Texts stand left, numbers right.
const ALIGN: [Align; 8] = {
    let mut align = [Align::Right; 8];
    align[LABEL] = Align::Left;
    align[STACK] = Align::Left;
    align
};

/// How a table is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Bold and yellow by escape sequences.
    pub colour: bool,
    /// Lines put below the table as they are, such as the wake-up time of this machine.
    pub notes: Vec<String>,
}

/// The table, with a line end behind each line. Medians and percentiles of throughput are over runs, those of response
/// and connect times over calls and connections.
#[must_use]
pub fn table(summaries: &[Summary], options: &TableOptions) -> String {
    let mut lines = Vec::new();
    if summaries.is_empty() {
        lines.push("nothing was measured".to_owned());
    } else {
        lines.extend(rows(summaries, options.colour));
    }
    let below: Vec<String> = notes(summaries).into_iter().chain(options.notes.iter().cloned()).collect();
    if !below.is_empty() {
        lines.push(String::new());
        lines.extend(below.iter().flat_map(|note| hanging(note)));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// A note, wrapped with its later lines indented.
fn hanging(note: &str) -> Vec<String> {
    let lines = wrap(note, WIDTH - 2).into_iter().enumerate();
    lines.map(|(index, line)| if index == 0 { line } else { format!("  {line}") }).collect()
}

fn rows(summaries: &[Summary], colour: bool) -> Vec<String> {
    let head = HEAD.map(str::to_owned).to_vec();
    let cells: Vec<Vec<String>> = summaries.iter().enumerate().map(|(index, s)| cells(index, s, summaries)).collect();
    let widths = fitting(&[vec![head.clone()], cells.clone()].concat());
    let mut lines = vec![paint(colour, "1", line(&head, &widths, &ALIGN))];
    let mut last = None;
    for (cells, summary) in cells.iter().zip(summaries) {
        if of_several(summary, summaries) && last != Some(summary.measurement) {
            lines.extend(wrap(&summary.text, WIDTH - widths[0]).iter().map(|text| under(text, widths[0])));
        }
        last = Some(summary.measurement);
        lines.extend(on_its_own_line(cells, &widths));
        lines.extend(row(&short_label(cells, &widths), &widths));
        lines.extend(flags(summary, widths[0]).into_iter().map(|line| paint(colour, "33", line)));
    }
    lines
}

/// The widths of the columns, stack and measurement made narrower for the line to fit.
fn fitting(rows: &[Vec<String>]) -> Vec<usize> {
    let longest_word = |at: usize| rows.iter().flat_map(|row| row[at].split(' ')).map(grid::width).max().unwrap_or(0);
    let mut widths = widths(rows);
    widths[STACK] = widths[STACK].min(MOST_STACK.max(longest_word(STACK)));
    let others = total(&widths) - widths[LABEL];
    widths[LABEL] = widths[LABEL].min(WIDTH.saturating_sub(others).max(LEAST_LABEL));
    widths
}

/// A measurement too long for its column stands above its figures.
fn on_its_own_line(cells: &[String], widths: &[usize]) -> Vec<String> {
    if grid::width(&cells[LABEL]) <= widths[LABEL] {
        return Vec::new();
    }
    let texts = wrap(&cells[LABEL], WIDTH - widths[0]).into_iter().enumerate();
    let number = |index: usize| if index == 0 { cells[0].as_str() } else { "" };
    texts.map(|(index, text)| format!("{:>1$}  {text}", number(index), widths[0])).collect()
}

/// The cells of the figures' line: without a measurement that stands above it.
fn short_label(cells: &[String], widths: &[usize]) -> Vec<String> {
    let mut cells = cells.to_vec();
    if grid::width(&cells[LABEL]) > widths[LABEL] {
        cells[0] = String::new();
        cells[LABEL] = String::new();
    }
    cells
}

/// Text in the column of the measurement that may be longer than it.
fn under(text: &str, number: usize) -> String {
    format!("{}{text}", " ".repeat(number + 2))
}

fn paint(colour: bool, code: &str, line: String) -> String {
    if colour { format!("\x1b[{code}m{line}\x1b[0m") } else { line }
}

/// A row, with measurement and stack on as many lines as they need.
fn row(cells: &[String], widths: &[usize]) -> Vec<String> {
    let wrapped = [LABEL, STACK].map(|at| wrap(&cells[at], widths[at]));
    let indent = &cells[LABEL][..cells[LABEL].len() - cells[LABEL].trim_start().len()];
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    let cell = |at: usize, index: usize| wrapped[at].get(index).cloned().unwrap_or_default();
    let more = (1..height).map(|index| vec![String::new(), format!("{indent}{}", cell(0, index)), cell(1, index)]);
    let mut first = cells.to_vec();
    (first[LABEL], first[STACK]) = (cell(0, 0), cell(1, 0));
    std::iter::once(first).chain(more).map(|cells| line(&cells, widths, &ALIGN)).collect()
}

fn cells(index: usize, summary: &Summary, all: &[Summary]) -> Vec<String> {
    let number = if all.len() > 1 { (index + 1).to_string() } else { String::new() };
    let mut cells = vec![number, label(summary, all), summary.stack.clone(), summary.runs.to_string()];
    cells.extend(figures(summary));
    cells.push(cost(summary));
    cells
}

/// Whether its measurement has several rows; they stand under a line with its text.
fn of_several(summary: &Summary, all: &[Summary]) -> bool {
    all.iter().filter(|other| other.measurement == summary.measurement).count() > 1
}

/// The measurement, or the part where there are several, without its stack, which has its own column.
fn label(summary: &Summary, all: &[Summary]) -> String {
    let short = |text: &str| text.replace(&format!(" over {}", summary.stack), "");
    let load = if summary.background { " (load)" } else { "" };
    match summary.part_index {
        _ if !of_several(summary, all) => short(&summary.text),
        Some(_) => format!("  {}{load}", short(&summary.part)),
        None => "  all together".to_owned(),
    }
}

fn figures(summary: &Summary) -> [String; 3] {
    let (Some(metric), Some(s)) = (summary.main, summary.main_statistics()) else {
        return [ABSENT, ABSENT, ABSENT].map(str::to_owned);
    };
    let mean = figure::with_half_width(metric, s.mean, s.half_width());
    let mean = if metric == Metric::Connect { format!("connect {mean}") } else { mean };
    [mean, figure::percentiles(metric, s.median, s.p99), figure::range(metric, s.min, s.max)]
}

fn cost(summary: &Summary) -> String {
    let per_gb = summary.cpu_s_per_gb.map(|cost| figure::cpu_per_gb(cost.both));
    let per = summary.rate_of.zip(summary.cpu_us_per_call);
    let per = || per.map(|(work, cost)| figure::cpu_per(work, cost.both));
    per_gb.or_else(per).unwrap_or_else(|| ABSENT.to_owned())
}

/// The flags on lines of their own, the deviation and overload with their figures.
fn flags(summary: &Summary, indent: usize) -> Vec<String> {
    if summary.flags.is_empty() {
        return Vec::new();
    }
    let spread = summary.normalised_sd.map_or_else(String::new, |sd| format!("sd>5% (sd {})", figure::percent(sd)));
    let (overloaded, runs) = (summary.overloaded(), summary.runs);
    let overload = format!("overload ({overloaded} of {runs} runs; the figures are the machine's)");
    let flags: Vec<&str> = summary
        .flags
        .iter()
        .map(|flag| match flag.as_str() {
            "sd>5%" => spread.as_str(),
            "overload" => overload.as_str(),
            flag => flag,
        })
        .collect();
    let margin = " ".repeat(indent + 2);
    let lines = wrap(&flags.join(", "), WIDTH - grid::width(&margin) - 2).into_iter().enumerate();
    lines.map(|(index, line)| format!("{margin}{} {line}", if index == 0 { "!" } else { " " })).collect()
}

#[cfg(test)]
mod tests;
