//! Which rows of a table stand under one text, and what each is called there.

use stackline_analyze::{RunMetric, Summary};

/// A text longer than this stands above its only row.
const ON_ONE_LINE: usize = 16;

/// Rows under one text; a single short one carries its text itself.
pub(super) struct LabelBlock<'s> {
    pub(super) text: Option<String>,
    pub(super) rows: Vec<LabelledRow<'s>>,
}

pub(super) struct LabelledRow<'s> {
    /// Its place in the table, from 1.
    pub(super) number: usize,
    pub(super) label: String,
    pub(super) summary: &'s Summary,
}

/// All rows: those of a measurement with parts together, and measurements that differ in their stack alone.
pub(super) fn blocks(summaries: &[Summary]) -> Vec<LabelBlock<'_>> {
    let numbered: Vec<(usize, &Summary)> = (1..).zip(summaries).collect();
    let together = |a: &(usize, &Summary), b: &(usize, &Summary)| {
        let parts = a.1.measurement == b.1.measurement;
        parts
            || (!of_several(a.1, summaries)
                && !of_several(b.1, summaries)
                && a.1.text_without_stack() == b.1.text_without_stack())
    };
    numbered
        .chunk_by(together)
        .map(|rows| block(rows, summaries))
        .collect()
}

fn block<'s>(rows: &[(usize, &'s Summary)], all: &[Summary]) -> LabelBlock<'s> {
    let first = rows[0].1;
    let text = if of_several(first, all) {
        first.text.clone()
    } else {
        first.text_without_stack()
    };
    let alone = rows.len() == 1 && text.chars().count() + first.stack.len() + 2 <= ON_ONE_LINE;
    let row = |(number, summary): &(usize, &'s Summary)| {
        let name = name(summary, all);
        let label = if alone {
            format!("{text}, {name}")
        } else {
            format!("  {name}")
        };
        LabelledRow {
            number: *number,
            label,
            summary,
        }
    };
    LabelBlock {
        rows: rows.iter().map(row).collect(),
        text: (!alone).then_some(text),
    }
}

/// Whether its measurement has several rows.
fn of_several(summary: &Summary, all: &[Summary]) -> bool {
    all.iter()
        .filter(|other| other.measurement == summary.measurement)
        .count()
        > 1
}

/// The stack, or the part with its stack where there are several.
fn name(summary: &Summary, all: &[Summary]) -> String {
    let connect = if summary.main == Some(RunMetric::Connect) {
        " connect"
    } else {
        ""
    };
    let load = if summary.background { " (load)" } else { "" };
    match summary.part_index {
        _ if !of_several(summary, all) => format!("{}{connect}", summary.stack),
        Some(_) if summary.part.contains(" over ") => format!("{}{load}", summary.part),
        Some(_) => format!("{} over {}{load}", summary.part, summary.stack),
        None => "all together".to_owned(),
    }
}
