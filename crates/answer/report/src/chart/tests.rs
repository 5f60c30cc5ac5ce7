//! Charts: against a golden file, and what lies beyond their axes.

use super::*;
use crate::testing::golden;

fn axis(scale: AxisScale, from: f64, to: f64) -> Axis {
    Axis {
        name: "time <ms>".into(),
        scale,
        from,
        to,
    }
}

fn sample() -> Chart {
    let curve = |name: &str, factor: f64| ChartCurve {
        name: name.into(),
        line: [1e-6, 1e-4, 1e-2]
            .map(|at: f64| (at, factor * at.sqrt() * 1e3))
            .into(),
        points: vec![(1e-4, factor * 10.0)],
    };
    Chart {
        title: "Figure & title".into(),
        x: axis(AxisScale::Logarithmic, 1e-6, 1e-1),
        y: axis(AxisScale::Linear, 0.0, 50.0),
        band: Some((1e-5, 1e-4, "here".into())),
        curves: vec![curve("one", 1.0), curve("ten", 10.0), curve("a third", 3.0)],
        below: "lines: formula; points: simulated".into(),
    }
}

#[test]
fn a_chart_is_drawn() {
    golden("chart.svg", &chart(&sample()));
}

#[test]
fn what_lies_beyond_stays_a_number() {
    let mut chart = sample();
    chart.curves[0].line = vec![(1e-6, -1e300), (1e-3, 1e300)];
    chart.curves[0].points = vec![(1e-6, 1e300), (1e-1, 50.0)];
    let drawn = super::chart(&chart);
    assert!(!drawn.contains("inf") && drawn.len() < 8000);
    assert_eq!(
        drawn.matches("<circle ").count(),
        2,
        "points beyond the axes are not drawn, one on the frame is"
    );
}
