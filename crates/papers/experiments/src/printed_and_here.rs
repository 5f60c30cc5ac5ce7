//! The columns that compare printed values with reproduced ones: the difference, and the reason where it is more than
//! a tenth. They are made in one place, so that no table leaves them out where the values differ.

use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// Difference from which on a reason is given, percent.
pub(crate) const DIFFERENCE_NEEDS_REASON: f64 = 10.0;
/// The text where the reason is unknown.
const NOT_KNOWN: &str = "unknown";
/// The beginning of the note of a table without printed values.
const NOTHING: &str = "No published values to compare";

/// The columns of difference and reason, which follow those of the values.
const COLUMNS: [(&str, &str); 2] = [("off_percent", "off %"), ("why", "why")];
/// The columns before them, in tables with one value in each row.
const VALUES: [(&str, &str); 2] = [("printed", "published"), ("here", "here")];

/// A figure as a paper prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PrintedFigure {
    Nothing,
    Figure(f64),
    Range(f64, f64),
    AtLeast(f64),
    UpTo(f64),
}

impl From<f64> for PrintedFigure {
    fn from(value: f64) -> Self {
        Self::Figure(value)
    }
}

impl PrintedFigure {
    /// The figure as a table shows it.
    pub(crate) fn cell(self) -> SheetCell {
        match self {
            Self::Nothing => SheetCell::Absent,
            // Sums and ratios of printed figures have no more digits than these.
            Self::Figure(value) => SheetCell::text(format!("{}", (value * 1e3).round() / 1e3)),
            Self::Range(least, most) => SheetCell::text(format!("{least} to {most}")),
            Self::AtLeast(least) => SheetCell::text(format!(">= {least}")),
            Self::UpTo(most) => SheetCell::text(format!("<= {most}")),
        }
    }

    /// The difference of a reproduced figure from the printed one, %; from the nearest value if a range is printed.
    pub(crate) fn off_percent(self, here: f64) -> Option<f64> {
        let nearest = match self {
            Self::Nothing => return None,
            Self::Figure(value) => value,
            Self::Range(least, most) => here.clamp(least, most),
            Self::AtLeast(least) => here.max(least),
            Self::UpTo(most) => here.min(most),
        };
        let off = 100.0 * (here / nearest - 1.0);
        off.is_finite()
            .then_some(if off.abs() < 0.05 { 0.0 } else { off })
    }
}

/// The cells of these columns.
pub(crate) fn cells(
    printed: impl Into<PrintedFigure>,
    here: f64,
    why: Option<&str>,
) -> [SheetCell; 2] {
    cells_of_difference(printed.into().off_percent(here), why)
}

/// The cells of these columns for a known difference; with several values in a row, the largest.
pub(crate) fn cells_of_difference(off_percent: Option<f64>, why: Option<&str>) -> [SheetCell; 2] {
    let Some(off) = off_percent else {
        return [SheetCell::Absent, SheetCell::text("")];
    };
    [
        SheetCell::Number(off, usize::from(off != 0.0)),
        SheetCell::text(reason(off, why).unwrap_or_default()),
    ]
}

/// The reason for a difference, if it needs one.
pub(crate) fn reason(off_percent: f64, why: Option<&str>) -> Option<&str> {
    (off_percent.abs() > DIFFERENCE_NEEDS_REASON).then(|| why.unwrap_or(NOT_KNOWN))
}

/// The difference with the largest absolute value.
pub(crate) fn largest(differences: impl Iterator<Item = f64>) -> Option<f64> {
    differences.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// A printed value and the reproduced one.
pub(crate) struct PrintedValue {
    pub(crate) printed: PrintedFigure,
    pub(crate) here: f64,
    /// Number of decimal places.
    pub(crate) digits: usize,
    /// The reason for the difference, where it is known.
    pub(crate) why: Option<&'static str>,
}

impl PrintedValue {
    /// A value for which no reason for a difference is known.
    pub(crate) fn new(printed: impl Into<PrintedFigure>, here: f64, digits: usize) -> Self {
        Self {
            printed: printed.into(),
            here,
            digits,
            why: None,
        }
    }

    /// The same value with a reason for its difference.
    pub(crate) fn because(mut self, why: &'static str) -> Self {
        self.why = Some(why);
        self
    }

    /// The value's row, after cells that say what it is.
    pub(crate) fn row(&self, what: impl IntoIterator<Item = SheetCell>) -> Vec<SheetCell> {
        let here = if self.here.is_finite() {
            SheetCell::Number(self.here, self.digits)
        } else {
            SheetCell::Absent
        };
        let own = what.into_iter().chain([self.printed.cell(), here]);
        own.chain(cells(self.printed, self.here, self.why))
            .collect()
    }
}

/// A table with one value in each row, after columns that say what it is.
pub(crate) fn sheet(name: &str, title: &str, what: &[(&'static str, &str)]) -> Sheet {
    let mut sheet = Sheet::new(name, title, &[what, &VALUES].concat());
    sheet.columns.extend(columns());
    sheet
}

/// The columns of difference and reason, as columns of a sheet.
pub(crate) fn columns() -> impl Iterator<Item = SheetColumn> {
    COLUMNS.into_iter().map(|(key, head)| SheetColumn {
        head: head.into(),
        key,
    })
}

/// The note of a table without printed values, which takes the place of these columns.
pub(crate) fn nothing_printed(why: &str) -> String {
    format!("{NOTHING}: {why}.")
}

/// What a table lacks: the columns, or a difference or a reason in one of its rows.
#[cfg(test)]
pub(crate) fn lacks(sheet: &Sheet) -> Option<String> {
    let place = |key: &str| sheet.columns.iter().position(|column| column.key == key);
    let (Some(off), Some(why)) = (place("off_percent"), place("why")) else {
        let excused =
            place("printed").is_none() && sheet.notes.iter().any(|note| note.starts_with(NOTHING));
        return (!excused).then(|| "columns".into());
    };
    let has_printed = |row: &[SheetCell]| {
        place("printed").is_none_or(|at| match &row[at] {
            SheetCell::Absent => false,
            SheetCell::Text(words) => !["", "-", "lost"].contains(&words.as_str()),
            SheetCell::Number(value, _) => *value != 0.0,
        })
    };
    let incomplete = |row: &&Vec<SheetCell>| match (&row[off], &row[why]) {
        (SheetCell::Number(off, _), SheetCell::Text(why)) => {
            off.abs() > DIFFERENCE_NEEDS_REASON && why.is_empty()
        }
        (SheetCell::Absent, _) => has_printed(row),
        _ => true,
    };
    sheet
        .rows
        .iter()
        .find(incomplete)
        .map(|row| format!("{row:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_by_more_than_a_tenth_has_a_reason() {
        let why = |here, why| match &cells(100.0, here, why)[1] {
            SheetCell::Text(words) => words.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(why(109.0, Some("noise")), "", "near enough");
        assert_eq!(why(111.0, Some("noise")), "noise");
        assert_eq!(why(111.0, None), NOT_KNOWN);
        assert_eq!(why(80.0, None), NOT_KNOWN);
        assert_eq!(
            cells(PrintedFigure::Nothing, 80.0, None)[0],
            SheetCell::Absent
        );
        assert_eq!(largest([3.0, -7.0, 5.0].into_iter()), Some(-7.0));
    }

    #[test]
    fn a_figure_inside_what_is_printed_is_not_off() {
        let off = |printed: PrintedFigure, here| printed.off_percent(here).map(f64::round);
        assert_eq!(off(PrintedFigure::Range(15.0, 20.0), 16.0), Some(0.0));
        assert_eq!(off(PrintedFigure::AtLeast(2.0), 3.0), Some(0.0));
        assert_eq!(off(PrintedFigure::UpTo(10.0), 12.0), Some(20.0));
        assert_eq!(off(PrintedFigure::Range(15.0, 20.0), 12.0), Some(-20.0));
        assert_eq!(off(PrintedFigure::Nothing, 1.0), None);
    }

    #[test]
    fn a_table_without_its_columns_lacks_them_unless_it_says_that_nothing_is_printed() {
        let value = PrintedValue::new(8.4, 12.6, 1);
        let mut made = sheet("T", "t", &[("value", "value")]);
        made.rows = vec![value.row([SheetCell::text("sum, Mbit/s")])];
        assert_eq!(lacks(&made), None);
        made.rows[0][4] = SheetCell::text("");
        assert!(lacks(&made).is_some(), "a reason is missing");
        made.rows[0][3] = SheetCell::Absent;
        assert!(lacks(&made).is_some(), "a difference is missing");
        let bare = Sheet::new("T", "t", &[("a", "a")]);
        assert!(lacks(&bare).is_some());
        assert_eq!(
            lacks(&bare.note(nothing_printed("its curve is lost"))),
            None
        );
    }
}
