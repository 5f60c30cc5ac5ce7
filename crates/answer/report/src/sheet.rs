//! Tables with arbitrary columns, for results of a paper's experiments beside the printed ones.
//!
//! An absent cell is a dash in the text and null in JSON.

use crate::figure::ABSENT;
use crate::grid::{Align, line, widths, wrap};
use crate::table::WIDTH;
use serde_json::{Map, Value, json as object};

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Where it stands in the paper: `Table 2`, `4.3.3`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<SheetColumn>,
    /// Its lines, each with a cell for each column.
    pub rows: Vec<Vec<SheetCell>>,
    /// Notes that matter for comparisons, one or two sentences each.
    pub notes: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SheetColumn {
    /// Its heading, with its unit.
    pub head: String,
    /// Its key in the JSON; the keys of a table must differ.
    pub key: &'static str,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum SheetCell {
    /// The value is not known.
    Absent,
    /// Words.
    Text(String),
    /// A number, and how many digits after the point are shown.
    Number(f64, usize),
}

impl SheetCell {
    /// Words.
    #[must_use]
    pub fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }

    fn shown(&self) -> String {
        match self {
            Self::Absent => ABSENT.to_owned(),
            Self::Text(words) => words.clone(),
            Self::Number(value, digits) => format!("{value:.digits$}"),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Absent => Value::Null,
            Self::Text(words) => words.clone().into(),
            Self::Number(value, _) => (*value).into(),
        }
    }
}

impl Sheet {
    /// A table without rows; `columns` has the key and heading of each column.
    #[must_use]
    pub fn new(name: &str, title: &str, columns: &[(&'static str, &str)]) -> Self {
        let columns = columns.iter().map(|(key, head)| SheetColumn {
            head: (*head).to_owned(),
            key,
        });
        Self {
            name: name.into(),
            title: title.into(),
            columns: columns.collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, words: impl Into<String>) -> Self {
        self.notes.push(words.into());
        self
    }

    /// The sheet as lines of text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        lines.extend(wrap(&format!("{}: {}", self.name, self.title), WIDTH));
        let mut rows: Vec<Vec<String>> = vec![
            self.columns
                .iter()
                .map(|column| column.head.clone())
                .collect(),
        ];
        rows.extend(
            self.rows
                .iter()
                .map(|row| row.iter().map(SheetCell::shown).collect()),
        );
        let align: Vec<Align> = (0..self.columns.len()).map(|at| self.align(at)).collect();
        let widths = widths(&rows);
        lines.extend(
            rows.iter()
                .map(|row| format!("  {}", line(row, &widths, &align))),
        );
        for note in &self.notes {
            let wrapped = wrap(note, WIDTH - 4).into_iter().enumerate();
            lines.extend(
                wrapped.map(|(at, line)| format!("  {}{line}", if at == 0 { "- " } else { "  " })),
            );
        }
        lines
    }

    /// The alignment of a column: left for a first column of words, right for all others.
    fn align(&self, at: usize) -> Align {
        let words = self
            .rows
            .iter()
            .any(|row| at == 0 && matches!(row.get(at), Some(SheetCell::Text(_))));
        if words { Align::Left } else { Align::Right }
    }

    /// The sheet as JSON: a row is an object of its columns' keys.
    pub(crate) fn json(&self) -> Value {
        let row = |row: &Vec<SheetCell>| {
            let cells = self
                .columns
                .iter()
                .zip(row)
                .map(|(column, cell)| (column.key.to_owned(), cell.value()));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        object!({
            "name": self.name,
            "title": self.title,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new(
            "Table 2",
            "throughput",
            &[("host", "host"), ("burst", "burst, Mbit/s")],
        );
        sheet
            .rows
            .push(vec![SheetCell::text("SS20"), SheetCell::Number(68.04, 1)]);
        sheet
            .rows
            .push(vec![SheetCell::text("a longer name"), SheetCell::Absent]);
        sheet.note("One sentence.")
    }

    #[test]
    fn numbers_stand_to_the_right_and_what_is_not_known_is_a_dash() {
        let expected = [
            "",
            "Table 2: throughput",
            "  host           burst, Mbit/s",
            "  SS20                    68.0",
            "  a longer name              -",
            "  - One sentence.",
        ];
        let lines: Vec<String> = sheet()
            .lines()
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn programs_get_keys_and_null() {
        let json = sheet().json();
        assert_eq!(json["rows"][0]["burst"], 68.04);
        assert_eq!(json["rows"][1]["burst"], Value::Null);
    }
}
