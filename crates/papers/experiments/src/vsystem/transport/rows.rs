//! Rows of tables: the printed and the simulated value, their difference, and whether the value sets the profile.

use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_report::sheet::{Sheet, SheetCell};

/// What a row is in the judgement of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowBasis {
    /// It sets a figure of the profile or of the experiment.
    Sets,
    /// Nothing was chosen for it.
    Predicts,
    /// There is nothing printed to compare with.
    Shown,
}

/// A table of such rows.
pub(super) fn sheet(name: &str, title: &str) -> Sheet {
    printed_and_here::sheet(name, title, &[("what", ""), ("is", "is")])
}

/// A row, its figure with so many digits.
pub(super) fn row(
    what: impl Into<String>,
    printed: PrintedFigure,
    simulated: f64,
    digits: usize,
    basis: RowBasis,
) -> Vec<SheetCell> {
    row_of_value(what, &PrintedValue::new(printed, simulated, digits), basis)
}

/// A row of a value that is off for a reason.
pub(super) fn row_of_value(
    what: impl Into<String>,
    value: &PrintedValue,
    basis: RowBasis,
) -> Vec<SheetCell> {
    let word = match basis {
        RowBasis::Sets => "sets",
        RowBasis::Predicts => "predicted",
        RowBasis::Shown => "shown",
    };
    value.row([SheetCell::text(what), SheetCell::text(word)])
}
