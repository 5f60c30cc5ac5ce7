//! Turns a chapter of a Markdown manual into text for a terminal of 80 columns: paragraphs wrapped, code indented, tables as lists.

use crate::grid;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Columns before code, and before the further cells of a table's row.
const INDENT: usize = 4;

/// The text between a heading and the next one; `None` if the document has no such heading.
#[must_use]
pub fn chapter(document: &str, heading: &str) -> Option<String> {
    let mut lines = document.lines();
    lines.find(|line| heading_of(line) == Some(heading))?;
    let mut text = Text::default();
    let mut is_code = false;
    for line in lines {
        if line.starts_with("```") {
            text.end_paragraph();
            is_code = !is_code;
        } else if is_code {
            text.push_code(line);
        } else if heading_of(line).is_some() {
            break;
        } else {
            text.push_prose(line);
        }
    }
    text.end_paragraph();
    Some(format!("{heading}\n\n{}\n", text.written.trim_end()))
}

/// The words of a heading, if the line is one.
fn heading_of(line: &str) -> Option<&str> {
    let words = line.trim_start_matches('#');
    (words.len() < line.len())
        .then(|| words.strip_prefix(' '))
        .flatten()
        .map(str::trim)
}

#[derive(Default)]
struct Text {
    written: String,
    /// The current paragraph or list item, which is not written yet.
    paragraph: String,
    /// Whether the last line belonged to a table.
    is_table: bool,
    /// The length of `written` before that table.
    table_begin: usize,
}

impl Text {
    fn push_code(&mut self, line: &str) {
        self.written += format!("{:INDENT$}{line}", "").trim_end();
        self.written.push('\n');
    }

    fn push_prose(&mut self, line: &str) {
        let line = line.trim();
        self.is_table &= line.starts_with('|');
        if line.is_empty() {
            self.end_paragraph();
            if !self.written.is_empty() && !self.written.ends_with("\n\n") {
                self.written.push('\n');
            }
        } else if let Some(row) = line.strip_prefix('|') {
            self.end_paragraph();
            self.push_row(row.trim_end_matches('|'));
        } else {
            if line.starts_with("- ") {
                self.end_paragraph();
            }
            if !self.paragraph.is_empty() {
                self.paragraph.push(' ');
            }
            self.paragraph += line;
        }
    }

    /// Writes a row of a table: its first cell, and the others below it. The header above the rule (`|---|`) is removed.
    fn push_row(&mut self, row: &str) {
        if row.chars().all(|c| matches!(c, '-' | '|' | ' ' | ':')) {
            self.written.truncate(self.table_begin);
            return;
        }
        self.table_begin = if self.is_table {
            self.table_begin
        } else {
            self.written.len()
        };
        self.is_table = true;
        let cells: Vec<String> = split_cells(row).iter().map(|cell| plain(cell)).collect();
        let (first, others) = cells.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        let others: Vec<&str> = others
            .iter()
            .map(String::as_str)
            .filter(|cell| !cell.is_empty())
            .collect();
        self.push_wrapped(first, 2, 2);
        self.push_wrapped(&others.join("; "), 2 + INDENT, 2 + INDENT);
    }

    fn end_paragraph(&mut self) {
        let paragraph = plain(&std::mem::take(&mut self.paragraph));
        let hanging = if paragraph.starts_with("- ") { 2 } else { 0 };
        self.push_wrapped(&paragraph, 0, hanging);
    }

    fn push_wrapped(&mut self, words: &str, first: usize, others: usize) {
        if words.is_empty() {
            return;
        }
        for (at, line) in grid::wrap(words, WIDTH - others.max(first))
            .iter()
            .enumerate()
        {
            let indent = if at == 0 { first } else { others };
            self.written += &format!("{:indent$}{line}\n", "");
        }
    }
}

/// The cells of a row. A `|` within code or after a backslash belongs to its cell.
fn split_cells(row: &str) -> Vec<String> {
    let (mut cells, mut is_code, mut before) = (vec![String::new()], false, ' ');
    for c in row.chars() {
        match c {
            '`' => is_code = !is_code,
            '|' if !is_code && before != '\\' => {
                cells.push(String::new());
                before = c;
                continue;
            }
            _ => {}
        }
        if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
        before = c;
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Removes Markdown's marks for emphasis and links; code keeps its backticks.
fn plain(text: &str) -> String {
    let text = text.replace("**", "").replace("\\|", "|");
    let (mut plain, mut rest) = (String::new(), text.as_str());
    while let Some((before, link)) = rest.split_once('[') {
        match link.split_once("](").and_then(|(words, target)| {
            let (_, after) = target.split_once(')')?;
            (!words.contains([']', '['])).then_some((words, after))
        }) {
            Some((words, after)) => {
                plain += before;
                plain += words;
                rest = after;
            }
            None => {
                plain += before;
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = "# A\n\nIgnored.\n\n## 1. Links\n\nA **link** has two ends, see [the model](MODEL.md#x), and more words than one line of a terminal can hold.\n\n| rate | meaning |\n| --- | --- |\n| `a \\| b` | always that |\n\n- one\n  goes on\n- two\n\n```\nlink a - b [x](y);\n```\n\n## 2. Next\n";

    #[test]
    fn a_chapter_is_wrapped_and_ends_at_the_next_heading() {
        let expected = "1. Links\n\nA link has two ends, see the model, and more words than one line of a terminal can\nhold.\n\n  `a | b`\n      always that\n\n- one goes on\n- two\n\n    link a - b [x](y);\n";
        let expected = expected.replace("terminal can\nhold", "terminal\ncan hold");
        assert_eq!(chapter(MANUAL, "1. Links").unwrap(), expected);
    }

    #[test]
    fn a_heading_that_is_missing_has_no_chapter() {
        assert_eq!(chapter(MANUAL, "3. Nothing"), None);
    }
}
