//! Which scales and units the axes of curves have, and where their lines are.

use crate::axes::{Axis, AxisScale, AxisTick, number, round_step};
use stackline_analyze::curves::{CurveAxis, CurveKind, CurvePoint, CurveSet};
use stackline_core::units::Quantity;
use std::collections::BTreeSet;

/// Which axes are logarithmic, whatever the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogAxes {
    /// The horizontal one alone.
    X,
    /// The vertical one alone.
    Y,
    /// Both.
    Both,
    /// None.
    Neither,
}

/// How wide a picture is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlotWidth {
    /// A column of a paper with two: 3.3 inches.
    #[default]
    Single,
    /// Both columns: 7 inches.
    Double,
}

impl PlotWidth {
    /// In points.
    pub(super) const fn points(self) -> f32 {
        match self {
            Self::Single => 237.6,
            Self::Double => 504.0,
        }
    }
}

/// A geometric sweep covers at least this factor.
const LEAST_FACTOR: f64 = 8.0;
/// Steps whose sizes differ by at most this factor are even.
const EVEN: f64 = 1.5;
/// Ratios of neighbours whose logarithms differ by at most this factor are alike.
const ALIKE: f64 = 3.5;
/// Values that cover more than this factor have a logarithmic vertical axis.
const WIDE: f64 = 100.0;
/// The most values of a sweep that are lines of the grid themselves.
const MOST_OWN_TICKS: usize = 8;
/// How many lines a grid has about.
const TICKS: f64 = 5.0;
/// Percentiles that have a line.
const PERCENTILES: [f64; 8] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999];

/// How values are placed on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisMap {
    /// The unit of the axis, in base units.
    factor: f64,
    /// Whether the place of a percentile is the number of its nines.
    is_nines: bool,
}

impl AxisMap {
    /// The number of a value on its axis.
    pub(super) fn place(self, value: f64) -> f64 {
        match self.is_nines {
            true => -(1.0 - value / 100.0).log10(),
            false => value / self.factor,
        }
    }
}

/// The axes of curves, in the units in which they are divided.
#[derive(Clone, Debug)]
pub(super) struct PlottedAxes {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) x_ticks: Vec<AxisTick>,
    pub(super) y_ticks: Vec<AxisTick>,
    pub(super) x_map: AxisMap,
    pub(super) y_map: AxisMap,
}

impl PlottedAxes {
    /// Axes on which all points have a place; on a logarithmic one, all above zero.
    pub(super) fn fit(set: &CurveSet, log: Option<LogAxes>) -> Self {
        let values: BTreeSet<u64> = set.points().map(|point| point.x.to_bits()).collect();
        let mut values: Vec<f64> = values.into_iter().map(f64::from_bits).collect();
        values.sort_by(f64::total_cmp);
        let is_nines = set.kind == CurveKind::Percentiles;
        let (x, x_map, x_ticks) = match is_nines {
            true => nines(set, &values),
            false => swept_axis(set, &values, log),
        };
        let (y, y_map) = value_axis(set, log);
        let y_ticks = round_ticks(&y);
        Self {
            x,
            y,
            x_ticks,
            y_ticks,
            x_map,
            y_map,
        }
    }

    /// Axes over time, from 0 to `length_s`.
    pub(super) fn over_time(set: &CurveSet, length_s: f64) -> Self {
        let mut axes = Self::fit(set, Some(LogAxes::Neither));
        let (factor, unit) = Quantity::Time.axis_unit(length_s);
        axes.x = Axis {
            name: axis_name(&set.x, unit),
            scale: AxisScale::Linear,
            from: 0.0,
            to: (length_s / factor).max(f64::MIN_POSITIVE),
        };
        axes.x_map = AxisMap {
            factor,
            is_nines: false,
        };
        axes.x_ticks = round_ticks(&axes.x);
        axes
    }

    /// The place of a point in the units of the axes; `None` where a logarithmic axis has none.
    pub(super) fn place(&self, point: &CurvePoint) -> Option<(f64, f64)> {
        let on = |axis: &Axis, value: f64| axis.scale == AxisScale::Linear || value > 0.0;
        let (x, y) = (self.x_map.place(point.x), self.y_map.place(point.y));
        (on(&self.x, x) && on(&self.y, y) && x.is_finite()).then_some((x, y))
    }

    /// The ends of a point's interval, in the units of the vertical axis.
    pub(super) fn interval(&self, point: &CurvePoint) -> Option<(f64, f64)> {
        let (low, high) = point.interval?;
        let low = self.y_map.place(low);
        let low = match self.y.scale {
            AxisScale::Linear => low,
            AxisScale::Logarithmic => low.max(self.y.from),
        };
        Some((low, self.y_map.place(high)))
    }

    /// How many points have no place.
    pub(super) fn without_place(&self, set: &CurveSet) -> usize {
        let lost = set.points().filter(|point| self.place(point).is_none());
        lost.count()
    }
}

/// What is written beside an axis: `response time, ms`.
pub(super) fn axis_name(axis: &CurveAxis, unit: &str) -> String {
    match (unit, axis.unit) {
        ("", "") => axis.name.clone(),
        ("", unit) | (unit, _) => format!("{}, {unit}", axis.name),
    }
}

/// Whether each value is about the same factor above the one before it.
pub(super) fn is_geometric(values: &[f64]) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else {
        return false;
    };
    if values.len() < 3 || *first <= 0.0 || last / first < LEAST_FACTOR {
        return false;
    }
    let spread = |steps: Vec<f64>| {
        let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
        steps.iter().copied().fold(0.0, f64::max) / least
    };
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
    let ratios = values.windows(2).map(|pair| (pair[1] / pair[0]).ln());
    spread(steps.collect()) > EVEN && spread(ratios.collect()) <= ALIKE
}

/// The horizontal axis of a sweep, or of times of calls.
fn swept_axis(
    set: &CurveSet,
    values: &[f64],
    log: Option<LogAxes>,
) -> (Axis, AxisMap, Vec<AxisTick>) {
    let largest = values.last().copied().unwrap_or(1.0);
    let (factor, unit) = set.x.quantity.axis_unit(largest);
    let above_zero: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| *value > 0.0)
        .collect();
    let is_wide = || match (above_zero.first(), above_zero.last()) {
        (Some(first), Some(last)) => above_zero.len() == values.len() && last / first > WIDE,
        _ => false,
    };
    let is_log = match log {
        Some(log) => matches!(log, LogAxes::X | LogAxes::Both) && !above_zero.is_empty(),
        None if set.kind == CurveKind::Cumulative => is_wide(),
        None => is_geometric(values),
    };
    let map = AxisMap {
        factor,
        is_nines: false,
    };
    let shown: Vec<f64> = match is_log {
        true => above_zero,
        false => values.to_vec(),
    };
    let ends = [shown.first(), shown.last()];
    let [from, to] = ends.map(|end| end.copied().unwrap_or(0.0) / factor);
    let (from, to) = widened(from, to, is_log);
    let own = set.kind == CurveKind::Sweep && (shown.len() <= MOST_OWN_TICKS && is_log);
    // Sizes are read in powers of two, so they have no common unit.
    let is_size = set.kind == CurveKind::Sweep && set.x.quantity == Quantity::Size;
    let axis = Axis {
        name: axis_name(&set.x, if is_size { "" } else { unit }),
        scale: scale(is_log),
        from,
        to,
    };
    let ticks = match own || is_size {
        true => own_ticks(set.x.quantity, &shown, factor, is_size),
        false => round_ticks(&axis),
    };
    (axis, map, ticks)
}

/// Ticks at values themselves.
fn own_ticks(quantity: Quantity, values: &[f64], factor: f64, with_unit: bool) -> Vec<AxisTick> {
    let tick = |value: &f64| AxisTick {
        value: value / factor,
        label: match with_unit {
            true => quantity.written(*value),
            false => Quantity::Number.written(value / factor),
        },
    };
    values.iter().map(tick).collect()
}

/// The axis of percentiles: equally long from 0 to 90, from 90 to 99, from 99 to 99.9.
fn nines(set: &CurveSet, values: &[f64]) -> (Axis, AxisMap, Vec<AxisTick>) {
    let map = AxisMap {
        factor: 1.0,
        is_nines: true,
    };
    let last = values.last().map_or(1.0, |value| map.place(*value));
    let to = if last.is_finite() { last.max(0.5) } else { 1.0 };
    let axis = Axis {
        name: set.x.name.clone(),
        scale: AxisScale::Linear,
        from: 0.0,
        to,
    };
    let ticks = std::iter::once(0.0).chain(PERCENTILES);
    let ticks = ticks.map(|percent| AxisTick {
        value: map.place(percent),
        label: format!("{percent}"),
    });
    let ticks = ticks.filter(|tick| tick.value <= to).collect();
    (axis, map, ticks)
}

/// The vertical axis: from zero, or logarithmic where values cover a wide range.
fn value_axis(set: &CurveSet, log: Option<LogAxes>) -> (Axis, AxisMap) {
    let ends = |point: &CurvePoint| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [low, point.y, high]
    };
    let highest = set.points().flat_map(ends).fold(0.0, f64::max);
    let above_zero = set.points().map(|point| point.y).filter(|y| *y > 0.0);
    let least = above_zero.fold(f64::INFINITY, f64::min);
    let lowest = set
        .points()
        .map(|point| point.y)
        .fold(f64::INFINITY, f64::min);
    let is_log = least.is_finite()
        && match log {
            Some(log) => matches!(log, LogAxes::Y | LogAxes::Both),
            None => set.y.quantity != Quantity::Percent && lowest > 0.0 && highest / lowest > WIDE,
        };
    let (factor, unit) = set.y.quantity.axis_unit(highest);
    let (from, to) = match is_log {
        true => widened(least / factor, highest / factor, true),
        false if set.kind == CurveKind::Cumulative => (0.0, 100.0),
        false => (lowest.min(0.0) / factor, 1.05 * highest / factor),
    };
    let axis = Axis {
        name: axis_name(&set.y, unit),
        scale: scale(is_log),
        from,
        to: if to > from { to } else { from + 1.0 },
    };
    let map = AxisMap {
        factor,
        is_nines: false,
    };
    (axis, map)
}

const fn scale(is_log: bool) -> AxisScale {
    match is_log {
        true => AxisScale::Logarithmic,
        false => AxisScale::Linear,
    }
}

/// A range with a margin on both sides, so that no point stands on the frame.
fn widened(from: f64, to: f64, is_log: bool) -> (f64, f64) {
    match (is_log, to > from) {
        (true, true) => {
            let margin = (to / from).powf(0.03);
            (from / margin, to * margin)
        }
        (true, false) => (from / 2.0, from * 2.0),
        (false, true) => {
            let margin = 0.03 * (to - from);
            // A range that begins at zero goes on beginning there.
            (if from == 0.0 { 0.0 } else { from - margin }, to + margin)
        }
        (false, false) if from == 0.0 => (0.0, 1.0),
        (false, false) => (from - 0.5 * from.abs(), from + 0.5 * from.abs()),
    }
}

/// Ticks at round values, with as many digits as they need.
pub(super) fn round_ticks(axis: &Axis) -> Vec<AxisTick> {
    round_ticks_of(axis, TICKS)
}

/// About so many ticks at round values.
pub(super) fn round_ticks_of(axis: &Axis, wanted: f64) -> Vec<AxisTick> {
    let step = round_step((axis.to - axis.from) / wanted);
    let tick = |value: f64| AxisTick {
        value,
        label: match axis.scale {
            AxisScale::Linear => number(value, step),
            AxisScale::Logarithmic => Quantity::Number.written(value),
        },
    };
    axis.round_values(wanted).into_iter().map(tick).collect()
}
