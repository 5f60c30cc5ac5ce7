//! Charts of Figures 4 to 6: the formulas with the paper's costs as lines, simulated values as points.

use super::figures::{ExpectedCurve, INTERVALS, deviation, multiple};
use super::formulas::{BlastCostModel, BlastFigureProtocol, BlastResendStrategy};
use stackline_report::chart::{Axis, AxisScale, Chart, ChartCurve};
use stackline_report::paper::{PaperReport, PaperRow};

/// The number of intervals into which a curve is divided.
const POINTS: u32 = 200;

/// The charts by file name, from the rows of the reproduced figures.
pub(super) fn charts(paper: &PaperReport) -> [(&'static str, Chart); 3] {
    let rows = |name: &str| {
        let exhibit = paper.exhibits.iter().find(|exhibit| exhibit.name == name);
        exhibit.map_or(&[][..], |exhibit| &exhibit.rows[..])
    };
    [
        ("figure-4.svg", elapsed_chart(rows("Figure 4"))),
        ("figure-5.svg", expected_chart(rows("Figure 5"))),
        ("figure-6.svg", deviation_chart(rows("Figure 6"))),
    ]
}

/// Values evenly spread over an axis, by its scale.
fn along(axis: &Axis) -> impl Iterator<Item = f64> {
    let (scale, from, to) = (axis.scale, axis.from, axis.to);
    (0..=POINTS).map(move |at| {
        let share = f64::from(at) / f64::from(POINTS);
        match scale {
            AxisScale::Linear => from + share * (to - from),
            AxisScale::Logarithmic => from * (to / from).powf(share),
        }
    })
}

fn losses() -> Axis {
    Axis {
        name: "packet loss probability".into(),
        scale: AxisScale::Logarithmic,
        from: 1e-6,
        to: 1e-1,
    }
}

/// The simulated points, in ms, of the rows for which `of` holds; `at` gives their place on the x axis.
fn points(
    rows: &[PaperRow],
    of: impl Fn(&PaperRow) -> bool,
    at: impl Fn(&PaperRow) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let point = |row: &PaperRow| Some((at(row)?, row.simulated?.seconds * 1e3));
    rows.iter()
        .filter(|row| of(row))
        .filter_map(point)
        .collect()
}

/// The caption below a chart.
fn below(curves: &[ChartCurve]) -> String {
    let drawn = curves.iter().any(|curve| !curve.points.is_empty());
    let points = if drawn {
        "; points: simulated with the host profile"
    } else {
        ""
    };
    format!("lines: formulas with the paper's costs{points}")
}

fn elapsed_chart(rows: &[PaperRow]) -> Chart {
    let x = Axis {
        name: "packets of 1 kilobyte".into(),
        scale: AxisScale::Linear,
        from: 0.0,
        to: 64.0,
    };
    let curve = |protocol: BlastFigureProtocol| ChartCurve {
        name: protocol.name().into(),
        line: (1..=64)
            .map(|n| {
                (
                    f64::from(n),
                    1e3 * protocol.elapsed(&BlastCostModel::STANDALONE, n),
                )
            })
            .collect(),
        points: points(
            rows,
            |row| row.subject == protocol.name(),
            |row| row.packets.map(f64::from),
        ),
    };
    let curves = BlastFigureProtocol::ALL.map(curve).to_vec();
    Chart {
        title: "Figure 4: elapsed time against the number of packets".into(),
        x,
        y: Axis {
            name: "elapsed time, ms".into(),
            scale: AxisScale::Linear,
            from: 0.0,
            to: 260.0,
        },
        band: None,
        below: below(&curves),
        curves,
    }
}

fn expected_chart(rows: &[PaperRow]) -> Chart {
    let x = losses();
    let curve = |curve: ExpectedCurve| ChartCurve {
        name: format!("{}, Tr = {}", curve.protocol.name(), curve.interval()),
        line: along(&x)
            .filter_map(|loss| Some((loss, 1e3 * curve.time(&BlastCostModel::V_KERNEL, loss)?)))
            .collect(),
        points: points(
            rows,
            |row| {
                row.subject == curve.protocol.name()
                    && row
                        .interval
                        .as_ref()
                        .is_some_and(|i| i.0 == curve.interval())
            },
            |row| row.loss,
        ),
    };
    let curves = ExpectedCurve::ALL.map(curve).to_vec();
    Chart {
        title: "Figure 5: expected time for 64 packets against the loss probability".into(),
        y: Axis {
            name: "expected time, ms".into(),
            scale: AxisScale::Linear,
            from: 0.0,
            to: 500.0,
        },
        band: Some((1e-5, 1e-4, "operating region".into())),
        below: below(&curves),
        curves,
        x,
    }
}

fn deviation_chart(rows: &[PaperRow]) -> Chart {
    let x = Axis {
        to: 1e-2,
        ..losses()
    };
    let interval = multiple(INTERVALS[0], "To(D)");
    let curve = |strategy: BlastResendStrategy| ChartCurve {
        name: strategy.name().into(),
        line: along(&x)
            .filter_map(|loss| {
                Some((
                    loss,
                    1e3 * deviation(strategy, &BlastCostModel::V_KERNEL, INTERVALS[0], loss)?,
                ))
            })
            .collect(),
        points: points(
            rows,
            |row| {
                row.subject == strategy.name()
                    && row.interval.as_ref().is_some_and(|i| i.0 == interval)
            },
            |row| row.loss,
        ),
    };
    let curves = BlastResendStrategy::ALL.map(curve).to_vec();
    Chart {
        title: format!(
            "Figure 6: standard deviation against the loss probability, Tr = {interval}"
        ),
        y: Axis {
            name: "standard deviation, ms".into(),
            scale: AxisScale::Logarithmic,
            from: 0.1,
            to: 1000.0,
        },
        band: Some((1e-5, 1e-4, "operating region".into())),
        below: below(&curves),
        curves,
        x,
    }
}
