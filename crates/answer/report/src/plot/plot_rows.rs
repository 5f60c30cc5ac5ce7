//! The points of curves as rows of CSV (RFC 4180), in base units: bytes, seconds, bit/s, percent.

use crate::csv::line;
use stackline_analyze::curves::CurveSet;

/// A header line, then a line for each point: x, its line, y, the ends of the 95 % interval (empty where there is none), and the number of
/// counted runs, or of calls. With several panels each point has its panel too.
#[must_use]
pub fn plot_csv(set: &CurveSet) -> String {
    let mut text = line(&head(set));
    for cells in rows(set) {
        text += &line(&cells);
    }
    text
}

/// The names of the columns.
pub(super) fn head(set: &CurveSet) -> Vec<String> {
    let panel = (set.panels.len() > 1).then_some("panel");
    let names = ["x"].into_iter().chain(panel);
    let names = names.chain(["line", "y", "low", "high", "n"]);
    names.map(str::to_owned).collect()
}

/// The cells of each point.
pub(super) fn rows(set: &CurveSet) -> impl Iterator<Item = Vec<String>> {
    let has_panels = set.panels.len() > 1;
    set.curves.iter().flat_map(move |curve| {
        let panel = has_panels.then(|| set.panels.get(curve.panel).cloned().unwrap_or_default());
        curve.points.iter().map(move |point| {
            let end = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
            let mut cells = vec![point.x.to_string()];
            cells.extend(panel.clone());
            cells.extend([
                curve.name.clone(),
                point.y.to_string(),
                end(point.interval.map(|(low, _)| low)),
                end(point.interval.map(|(_, high)| high)),
                point.n.to_string(),
            ]);
            cells
        })
    })
}
