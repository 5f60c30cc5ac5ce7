//! Rows of tables: the printed and the simulated value, their difference, and whether the value calibrates the profile.

use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_report::sheet::{Sheet, SheetCell};

/// How a row counts when the simulation is judged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowBasis {
    /// A figure of the profile or of the experiment was calibrated with it.
    Sets,
    /// It is a prediction: nothing was calibrated with it.
    Predicts,
    /// It is only shown, for example because the paper prints nothing to compare it with.
    Shown,
}

/// An empty table for such rows.
pub(super) fn sheet(name: &str, title: &str) -> Sheet {
    printed_and_here::sheet(name, title, &[("what", ""), ("is", "is")])
}

/// A row, with `digits` digits after the point.
pub(super) fn row(
    what: impl Into<String>,
    printed: PrintedFigure,
    simulated: f64,
    digits: usize,
    basis: RowBasis,
) -> Vec<SheetCell> {
    row_of_value(what, &PrintedValue::new(printed, simulated, digits), basis)
}

/// A row of a value that may come with a reason for its difference.
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
