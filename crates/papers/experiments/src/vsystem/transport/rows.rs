//! What is printed, what is simulated, how far off that is, and whether it sets the profile.

use stackline_report::sheet::{Sheet, SheetCell};

/// A figure as it is printed.
#[derive(Clone, Copy, Debug)]
pub(super) enum VSystemPrintedFigure {
    Nothing,
    Figure(f64),
    Range(f64, f64),
    AtLeast(f64),
    UpTo(f64),
}

impl VSystemPrintedFigure {
    fn cell(self) -> SheetCell {
        match self {
            Self::Nothing => SheetCell::Absent,
            Self::Figure(value) => SheetCell::text(format!("{value}")),
            Self::Range(least, most) => SheetCell::text(format!("{least} to {most}")),
            Self::AtLeast(least) => SheetCell::text(format!(">= {least}")),
            Self::UpTo(most) => SheetCell::text(format!("<= {most}")),
        }
    }

    /// By how much a figure is off, %: of the nearest that is printed.
    fn off(self, simulated: f64) -> Option<f64> {
        let nearest = match self {
            Self::Nothing => return None,
            Self::Figure(value) => value,
            Self::Range(least, most) => simulated.clamp(least, most),
            Self::AtLeast(least) => simulated.max(least),
            Self::UpTo(most) => simulated.min(most),
        };
        Some(100.0 * (simulated / nearest - 1.0))
    }
}

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
    let columns = [
        ("what", ""),
        ("printed", "printed"),
        ("simulated", "simulated"),
        ("off", "% off"),
        ("is", "is"),
    ];
    Sheet::new(name, title, &columns)
}

/// A row, its figure with so many digits.
pub(super) fn row(
    what: impl Into<String>,
    printed: VSystemPrintedFigure,
    simulated: f64,
    digits: usize,
    basis: RowBasis,
) -> Vec<SheetCell> {
    let word = match basis {
        RowBasis::Sets => "sets",
        RowBasis::Predicts => "predicted",
        RowBasis::Shown => "shown",
    };
    let off = printed.off(simulated).map_or(SheetCell::Absent, |off| {
        SheetCell::Number(off.round() + 0.0, 0)
    });
    vec![
        SheetCell::text(what),
        printed.cell(),
        SheetCell::Number(simulated, digits),
        off,
        SheetCell::text(word),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_inside_what_is_printed_is_not_off() {
        assert_eq!(VSystemPrintedFigure::Range(15.0, 20.0).off(16.0), Some(0.0));
        assert_eq!(VSystemPrintedFigure::AtLeast(2.0).off(3.0), Some(0.0));
        assert_eq!(
            VSystemPrintedFigure::UpTo(10.0).off(12.0).map(f64::round),
            Some(20.0)
        );
        assert_eq!(
            VSystemPrintedFigure::Range(15.0, 20.0)
                .off(12.0)
                .map(f64::round),
            Some(-20.0)
        );
        assert_eq!(VSystemPrintedFigure::Nothing.off(1.0), None);
    }
}
