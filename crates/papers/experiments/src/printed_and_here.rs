//! What is printed beside what came here: how far off it is, and why where that is more than a tenth. One place makes these columns, so that
//! no table leaves them out where they contradict.

use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// From this difference on a reason stands beside it, percent.
pub(crate) const DIFFERENCE_NEEDS_REASON: f64 = 10.0;
/// What stands there where nobody knows.
const NOT_KNOWN: &str = "unknown";
/// How the note of a table begins that has nothing printed.
const NOTHING: &str = "No published values to compare";

/// The columns, behind those of the values themselves.
const COLUMNS: [(&str, &str); 2] = [("off_percent", "off %"), ("why", "why")];
/// The columns before them, of tables with a value in each row.
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
    /// As it stands in a table.
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

    /// By how much a figure is off, %: of the nearest that is printed.
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

/// The cells of those columns.
pub(crate) fn cells(
    printed: impl Into<PrintedFigure>,
    here: f64,
    why: Option<&str>,
) -> [SheetCell; 2] {
    cells_of_difference(printed.into().off_percent(here), why)
}

/// The same of a difference that is known; of several in a row, the largest.
pub(crate) fn cells_of_difference(off_percent: Option<f64>, why: Option<&str>) -> [SheetCell; 2] {
    let Some(off) = off_percent else {
        return [SheetCell::Absent, SheetCell::text("")];
    };
    [
        SheetCell::Number(off, usize::from(off != 0.0)),
        SheetCell::text(reason(off, why).unwrap_or_default()),
    ]
}

/// The reason of a difference that needs one.
pub(crate) fn reason(off_percent: f64, why: Option<&str>) -> Option<&str> {
    (off_percent.abs() > DIFFERENCE_NEEDS_REASON).then(|| why.unwrap_or(NOT_KNOWN))
}

/// The largest of some differences, whichever its sign.
pub(crate) fn largest(differences: impl Iterator<Item = f64>) -> Option<f64> {
    differences.max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// One value that the paper prints.
pub(crate) struct PrintedValue {
    pub(crate) printed: PrintedFigure,
    pub(crate) here: f64,
    /// Digits behind the point.
    pub(crate) digits: usize,
    /// Why it is off, where that is known.
    pub(crate) why: Option<&'static str>,
}

impl PrintedValue {
    /// Of which nothing is known that would explain a difference.
    pub(crate) fn new(printed: impl Into<PrintedFigure>, here: f64, digits: usize) -> Self {
        Self {
            printed: printed.into(),
            here,
            digits,
            why: None,
        }
    }

    /// Why it is off.
    pub(crate) fn because(mut self, why: &'static str) -> Self {
        self.why = Some(why);
        self
    }

    /// Its row, behind cells that say what it is.
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

/// A table with a value in each row, behind columns that say what it is.
pub(crate) fn sheet(name: &str, title: &str, what: &[(&'static str, &str)]) -> Sheet {
    let mut sheet = Sheet::new(name, title, &[what, &VALUES].concat());
    sheet.columns.extend(columns());
    sheet
}

/// The columns as a sheet has them.
pub(crate) fn columns() -> impl Iterator<Item = SheetColumn> {
    COLUMNS.into_iter().map(|(key, head)| SheetColumn {
        head: head.into(),
        key,
    })
}

/// The note of a table that has nothing printed: what stands in place of these columns.
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
