//! Curves as data: points with their intervals, axes with their quantities, and what was left out.

use crate::summary::Summary;
use stackline_core::units::Quantity;
use std::collections::BTreeMap;

/// A kept run of which curves are made.
#[derive(Clone, Debug)]
pub struct CurveRun {
    /// Its name.
    pub name: String,
    /// What was measured.
    pub summaries: Vec<Summary>,
}

/// What an axis of curves shows.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveAxis {
    /// Its name, without the unit.
    pub name: String,
    /// The quantity; values are in its base unit.
    pub quantity: Quantity,
    /// The unit of values that are plain numbers; empty without one.
    pub unit: &'static str,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CurvePoint {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The 95 % interval of the value, if one is known; its ends are not below zero.
    pub interval: Option<(f64, f64)>,
    /// The number of counted runs behind it; of a distribution, of calls.
    pub n: u64,
    /// Whether something is missing before it, so that no line leads to it.
    pub begins: bool,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What is particular to it: `tcp, L = 1 %`; empty if it is the only one.
    pub name: String,
    /// The value of what distinguishes the lines, if that is one number.
    pub number: Option<f64>,
    /// The index of its panel.
    pub panel: usize,
    /// Its points, from left to right.
    pub points: Vec<CurvePoint>,
}

/// What points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveKind {
    /// A figure over a swept variable.
    Sweep,
    /// The share of calls (in percent) that take at most a time.
    Cumulative,
    /// The time of calls at a percentile.
    Percentiles,
}

/// Curves over common axes.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveSet {
    /// What its points are.
    pub kind: CurveKind,
    /// The horizontal axis.
    pub x: CurveAxis,
    /// The vertical axis.
    pub y: CurveAxis,
    /// What the names of lines are values of, if that is one thing: `L`.
    pub by: Option<CurveAxis>,
    /// What is particular to each panel; one empty name if there is one panel.
    pub panels: Vec<String>,
    /// The lines, ordered by panel.
    pub curves: Vec<Curve>,
    /// Why rows were left out, and how many for each reason.
    pub left_out: BTreeMap<String, usize>,
}

impl CurveSet {
    /// All points.
    pub fn points(&self) -> impl Iterator<Item = &CurvePoint> {
        self.curves.iter().flat_map(|curve| &curve.points)
    }

    /// How many points have no interval because they come from one run.
    #[must_use]
    pub fn single_points(&self) -> usize {
        let is_single = |point: &&CurvePoint| point.n == 1 && point.interval.is_none();
        match self.kind {
            CurveKind::Sweep => self.points().filter(is_single).count(),
            CurveKind::Cumulative | CurveKind::Percentiles => 0,
        }
    }

    /// A sentence for each reason for which rows were left out: `3 rows have no response time`.
    #[must_use]
    pub fn omissions(&self) -> Vec<String> {
        let each = self.left_out.iter();
        each.map(|(reason, count)| match count {
            1 => format!("1 row was left out: {reason}"),
            count => format!("{count} rows were left out: {reason}"),
        })
        .collect()
    }
}
