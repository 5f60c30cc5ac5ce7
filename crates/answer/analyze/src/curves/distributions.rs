//! Times of calls as curves: the share that takes at most a time, and the time at each percentile.

use crate::curves::curve_set::{CurveAxis, CurveKind, CurvePoint};
use crate::curves::metric::MetricFamily;
use crate::statistics::to_f64;
use crate::summary::{RunMetric, Summary};
use stackline_core::units::Quantity;

/// Seconds in a nanosecond.
const NANO: f64 = 1e-9;

/// The points of a row: one for each value of its histogram.
pub(super) fn points_of_calls(
    summary: &Summary,
    kind: CurveKind,
    family: MetricFamily,
) -> Result<Vec<CurvePoint>, String> {
    let (times, what) = match times_of(family, summary.main) {
        RunMetric::Connect => (&summary.connect_ns, "connections"),
        _ => (&summary.response_ns, "calls"),
    };
    let n = times.n();
    if n == 0 {
        return Err(format!("no times of single {what}"));
    }
    let all = to_f64(n);
    let mut passed = 0;
    let point = |(value, count): &(u64, u64)| {
        passed += count;
        let percent = match kind {
            // Nothing lies above the last value, so it has the place of its middle.
            CurveKind::Percentiles if passed == n => 100.0 * (all - 0.5) / all,
            _ => 100.0 * to_f64(passed) / all,
        };
        let time = to_f64(*value) * NANO;
        let (x, y) = match kind {
            CurveKind::Percentiles => (percent, time),
            CurveKind::Cumulative | CurveKind::Sweep => (time, percent),
        };
        CurvePoint {
            x,
            y,
            n,
            ..CurvePoint::default()
        }
    };
    Ok(times.counts.iter().map(point).collect())
}

/// Whose times are shown.
fn times_of(family: MetricFamily, main: Option<RunMetric>) -> RunMetric {
    match (family, main) {
        (MetricFamily::Connect, _) | (MetricFamily::Own, Some(RunMetric::Connect)) => {
            RunMetric::Connect
        }
        _ => RunMetric::Response,
    }
}

/// The axes of such curves: x and y.
pub(super) fn call_axes(
    kind: CurveKind,
    family: MetricFamily,
    main: Option<RunMetric>,
) -> (CurveAxis, CurveAxis) {
    let (time, calls) = match times_of(family, main) {
        RunMetric::Connect => ("connect time", "share of connections"),
        _ => ("response time", "share of calls"),
    };
    let time = CurveAxis {
        name: time.to_owned(),
        quantity: Quantity::Time,
        unit: "",
    };
    let share = |name: &str| CurveAxis {
        name: name.to_owned(),
        quantity: Quantity::Percent,
        unit: "",
    };
    match kind {
        CurveKind::Percentiles => (share("percentile"), time),
        CurveKind::Cumulative | CurveKind::Sweep => (time, share(calls)),
    }
}
