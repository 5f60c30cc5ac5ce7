//! Groups the rows of a table under common texts, and labels each row.

use stackline_analyze::{RunMetric, Summary};

/// If the text and label of a single row are longer than this, the text is written above the row.
const ON_ONE_LINE: usize = 16;

/// Rows under one text; without a text, the label of the single row contains it.
pub(super) struct LabelBlock<'s> {
    pub(super) text: Option<String>,
    pub(super) rows: Vec<LabelledRow<'s>>,
}

pub(super) struct LabelledRow<'s> {
    /// Its number in the table, from 1.
    pub(super) number: usize,
    pub(super) label: String,
    pub(super) summary: &'s Summary,
}

/// All rows in blocks: the parts of a measurement together, and consecutive measurements that differ only in their stack.
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

/// The label of a row: the stack, or the part with its stack if the measurement has several rows.
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
