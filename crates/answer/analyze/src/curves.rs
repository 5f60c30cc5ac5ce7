//! Results of kept runs as curves: a figure over a swept variable, with a line for each combination of what else varies; and
//! distributions of calls.
//!
//! | module | one idea |
//! | --- | --- |
//! | `curve_set` | curves as data |
//! | `metric` | which figure of a row is shown, by the names of JSON and CSV |
//! | `rows` | what distinguishes rows |
//! | `distributions` | times of calls as cumulative and percentile curves |

mod curve_set;
mod distributions;
mod metric;
mod rows;

pub use curve_set::{Curve, CurveAxis, CurveKind, CurvePoint, CurveRun, CurveSet};
pub use metric::{CurveMetric, MetricFamily, MetricFigure};

use crate::summary::RunMetric;
use distributions::{call_axes, points_of_calls};
use rows::{CurveRow, is_number_of_rows, measured_rows, ranks, swept_variables, varying_traits};
use stackline_core::error::Error;
use stackline_core::units::{Quantity, counted};
use std::collections::{BTreeMap, BTreeSet};

/// The most values of a variable that a message lists.
const LISTED: usize = 12;

/// What curves are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveQuestion {
    /// What points are.
    pub kind: CurveKind,
    /// The variable of the horizontal axis; by default that with the most values.
    pub x: Option<String>,
    /// What is shown of each row.
    pub y: CurveMetric,
    /// What distinguishes lines: a variable, or `stack`, `run` and so on; by default all that varies.
    pub by: Option<String>,
    /// What distinguishes panels; by default there is one, or what `by` leaves over.
    pub panels: Option<String>,
}

impl Default for CurveQuestion {
    fn default() -> Self {
        Self {
            kind: CurveKind::Sweep,
            x: None,
            y: CurveMetric::OWN,
            by: None,
            panels: None,
        }
    }
}

/// The curves of these runs.
///
/// # Errors
/// If nothing was measured, nothing is swept, a name is unknown, or no row has what is asked for.
pub fn curves(runs: &[CurveRun], question: &CurveQuestion) -> Result<CurveSet, Error> {
    let mut left_out = BTreeMap::new();
    let rows = measured_rows(runs, &mut left_out);
    if rows.is_empty() {
        return Err(
            Error::input("nothing was measured, so there is no curve").hint(
                "`stackline show RUN` says what the run has; a plot is of runs with measurements",
            ),
        );
    }
    let x = match question.kind {
        CurveKind::Sweep => chosen_x(&rows, question.x.as_deref())?,
        CurveKind::Cumulative | CurveKind::Percentiles => String::new(),
    };
    for name in question.by.iter().chain(&question.panels) {
        check_name(&rows, name)?;
    }
    let (with_x, without): (Vec<CurveRow<'_>>, Vec<CurveRow<'_>>) = rows
        .into_iter()
        .partition(|row| x.is_empty() || row.axis_number(&x).is_some());
    if !without.is_empty() {
        left_out.insert(format!("no value of {x}"), without.len());
    }
    let main = commonest_main(&with_x);
    let (mut drawable, mut points_of) = (Vec::new(), Vec::new());
    for row in with_x {
        match points(&row, &x, question, main) {
            Ok(points) => {
                drawable.push(row);
                points_of.push(points);
            }
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
    }
    let traits = CurveTraits::choose(&drawable, &x, question);
    let mut found: BTreeMap<CurvePlace, PlacedCurve> = BTreeMap::new();
    for (row, points) in drawable.iter().zip(points_of) {
        let placed = found
            .entry(traits.place(row))
            .or_insert_with(|| traits.placed(row));
        placed.curve.points.extend(points);
    }
    if found.is_empty() {
        let reasons: Vec<String> = left_out.keys().cloned().collect();
        let message = format!("nothing can be drawn: {}", reasons.join("; "));
        return Err(Error::input(message).hint(hint(question.kind)));
    }
    let (x, y) = axes(&drawable, &x, question, main);
    let mut set = CurveSet {
        kind: question.kind,
        x,
        y,
        by: traits.by_axis(&drawable),
        panels: Vec::new(),
        curves: Vec::new(),
        left_out,
    };
    for placed in found.into_values() {
        set.add(placed);
    }
    Ok(set)
}

/// What to do where no row has a figure.
const fn hint(kind: CurveKind) -> &'static str {
    match kind {
        CurveKind::Sweep => {
            "`stackline show RUN --json` has all figures of a run; --y names another one"
        }
        CurveKind::Cumulative | CurveKind::Percentiles => {
            "times of single calls are kept of calls, as in `10 rr 32*1000`, and with `--y connect` of connections"
        }
    }
}

/// Where a curve stands: the ranks of what distinguishes its panel, then itself.
type CurvePlace = (Vec<usize>, Vec<usize>);

/// Which traits distinguish panels and lines.
struct CurveTraits<'s> {
    panels: Vec<&'s str>,
    lines: Vec<&'s str>,
    /// By name: the place of each value.
    ranks: BTreeMap<&'s str, BTreeMap<String, usize>>,
}

/// A curve and the name of its panel.
struct PlacedCurve {
    curve: Curve,
    panel: String,
}

impl<'s> CurveTraits<'s> {
    fn choose(rows: &[CurveRow<'s>], x: &str, question: &CurveQuestion) -> Self {
        let asked = question.by.iter().chain(&question.panels);
        let kept: Vec<&str> = asked.map(String::as_str).collect();
        let varying = varying_traits(rows, x, &kept);
        let is = |wanted: &Option<String>, name: &str| wanted.as_deref() == Some(name);
        let is_panel = |name: &&'s str| match (&question.panels, &question.by) {
            (Some(_), _) => is(&question.panels, name),
            (None, Some(_)) => !is(&question.by, name),
            (None, None) => false,
        };
        let (panels, lines) = varying.iter().copied().partition(is_panel);
        let ranks = varying.iter().map(|name| (*name, ranks(rows, name)));
        Self {
            panels,
            lines,
            ranks: ranks.collect(),
        }
    }

    fn place(&self, row: &CurveRow<'_>) -> CurvePlace {
        let rank = |name: &&str| {
            let value = row.trait_named(name)?.value.as_ref();
            self.ranks.get(*name)?.get(value).copied()
        };
        let of = |names: &[&str]| -> Vec<usize> {
            let each = names.iter().map(|name| rank(name).unwrap_or(usize::MAX));
            each.collect()
        };
        (of(&self.panels), of(&self.lines))
    }

    /// A curve without points, named after a row of it.
    fn placed(&self, row: &CurveRow<'_>) -> PlacedCurve {
        let number = match self.lines[..] {
            [name] => row.trait_named(name).and_then(|one| one.number),
            _ => None,
        };
        PlacedCurve {
            curve: Curve {
                name: row.described(&self.lines),
                number,
                panel: 0,
                points: Vec::new(),
            },
            panel: row.described(&self.panels),
        }
    }

    /// What lines are values of, if that is one variable.
    fn by_axis(&self, rows: &[CurveRow<'_>]) -> Option<CurveAxis> {
        let [name] = self.lines[..] else {
            return None;
        };
        let one = rows.iter().find_map(|row| row.trait_named(name))?;
        one.number?;
        Some(CurveAxis {
            name: name.to_owned(),
            quantity: one.quantity,
            unit: "",
        })
    }
}

impl CurveSet {
    /// Adds a curve behind those of its panel, with its points in order.
    fn add(&mut self, placed: PlacedCurve) {
        let PlacedCurve { mut curve, panel } = placed;
        curve.panel = match self.panels.iter().position(|known| *known == panel) {
            Some(at) => at,
            None => {
                self.panels.push(panel);
                self.panels.len() - 1
            }
        };
        if self.kind == CurveKind::Sweep {
            curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        self.curves.push(curve);
    }
}

/// The variable of the horizontal axis.
fn chosen_x(rows: &[CurveRow<'_>], wanted: Option<&str>) -> Result<String, Error> {
    let swept = swept_variables(rows);
    if let Some(name) = wanted {
        let is_known = rows.iter().any(|row| row.axis_number(name).is_some());
        return match is_known {
            true => Ok(name.to_owned()),
            false => Err(Error::input(format!("no row has a value of `{name}`"))
                .hint(known_variables(&swept))),
        };
    }
    let most = swept.iter().map(|(_, values)| *values).max();
    let mut first = swept.iter().filter(|(_, values)| Some(*values) == most);
    match (first.next(), first.next()) {
        (Some((name, _)), None) => Ok(name.clone()),
        (Some(_), Some(_)) => Err(Error::input(
            "several variables have the most values, so it is open which is the horizontal axis",
        )
        .hint(format!(
            "name one with --x; {}",
            known_variables(&swept)
        ))),
        (None, _) => Err(Error::input("no variable has several values, so there is no curve")
            .hint(
                "a sweep is written as in `10 rr N*1000; N = 1, 2 ... 1024`; --cdf and --percentiles draw the calls of any run",
            )),
    }
}

/// The swept variables in a sentence.
fn known_variables(swept: &[(String, usize)]) -> String {
    if swept.is_empty() {
        return "no variable is swept in these runs".to_owned();
    }
    let each = swept.iter().take(LISTED);
    let each = each.map(|(name, values)| format!("{name} ({})", counted(*values as u64, "value")));
    let more = if swept.len() > LISTED { ", ..." } else { "" };
    format!("swept: {}{more}", each.collect::<Vec<_>>().join(", "))
}

/// Whether rows have a trait of this name.
fn check_name(rows: &[CurveRow<'_>], name: &str) -> Result<(), Error> {
    if rows.iter().any(|row| row.trait_named(name).is_some()) {
        return Ok(());
    }
    let traits = rows.iter().flat_map(|row| &row.traits);
    let names: BTreeSet<&str> = traits.map(|one| one.name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    Err(
        Error::input(format!("rows are not distinguished by `{name}`"))
            .hint(format!("they have {}", names.join(", "))),
    )
}

/// The metric by which most rows are judged; of several the first.
fn commonest_main(rows: &[CurveRow<'_>]) -> Option<RunMetric> {
    let judged_by = |metric: RunMetric| {
        let mine = rows.iter().filter(|row| row.summary.main == Some(metric));
        mine.count()
    };
    let mut best = None;
    for metric in RunMetric::MAIN {
        let count = judged_by(metric);
        if count > 0 && best.is_none_or(|(most, _)| count > most) {
            best = Some((count, metric));
        }
    }
    best.map(|(_, metric)| metric)
}

/// The points of a row, or why it has none.
fn points(
    row: &CurveRow<'_>,
    x: &str,
    question: &CurveQuestion,
    main: Option<RunMetric>,
) -> Result<Vec<CurvePoint>, String> {
    let summary = row.summary;
    if question.y.family == MetricFamily::Own && summary.main != main {
        let name = |metric: Option<RunMetric>| metric.map_or("nothing", RunMetric::name);
        return Err(format!(
            "judged by {}, not by {}",
            name(summary.main),
            name(main)
        ));
    }
    if question.kind != CurveKind::Sweep {
        return points_of_calls(summary, question.kind, question.y.family);
    }
    let x = row.axis_number(x).map(|(number, _)| number);
    let found = question.y.value(summary)?;
    match x.filter(|x| x.is_finite() && found.value.is_finite()) {
        Some(x) => Ok(vec![CurvePoint {
            x,
            y: found.value,
            interval: found.interval.filter(|_| summary.runs > 1),
            n: u64::from(summary.runs),
            begins: false,
        }]),
        None => Err("the value is not finite".to_owned()),
    }
}

/// Both axes.
fn axes(
    rows: &[CurveRow<'_>],
    x: &str,
    question: &CurveQuestion,
    main: Option<RunMetric>,
) -> (CurveAxis, CurveAxis) {
    if question.kind != CurveKind::Sweep {
        return call_axes(question.kind, question.y.family, main);
    }
    let known = rows.iter().find_map(|row| row.axis_number(x));
    let quantity = known.map_or(Quantity::Number, |(_, quantity)| quantity);
    let name = match is_number_of_rows(x) {
        true => x.replace('_', " ").replace(" bytes", " size"),
        false => x.to_owned(),
    };
    let x = CurveAxis {
        name,
        quantity,
        unit: "",
    };
    let mut y = question.y.axis(main);
    let works: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| metric::counted_work(row.summary.rate_of))
        .collect();
    if let (MetricFamily::Rate, Some(work), 1) = (question.y.family, works.first(), works.len()) {
        y.name = y.name.replace("rate", work);
    }
    (x, y)
}

#[cfg(test)]
mod tests;
