//! The series rule: which values `1, 8, 32 ... 4096` stands for.

use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::tree::{Sweep, SweepStep};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// Most values of one sweep.
const MOST: usize = 10_000;
/// How far from a whole number of steps still counts as whole, because of rounding.
const CLOSE: f64 = 1e-9;

/// All values of a sweep; `None` when there are none, after mistakes were reported.
pub(crate) fn values(sweep: &Sweep, report: &mut DiagnosticReport) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = Vec::new();
    for (step, value, span) in &sweep.values {
        if *step == SweepStep::Next || values.is_empty() {
            values.push(*value);
        } else {
            let more = fill(&values, *value, *span, report)?;
            values.extend(more);
        }
        if values.len() > MOST {
            report.push(too_many(*span));
            return None;
        }
    }
    if values.is_empty() {
        None
    } else {
        Some(values)
    }
}

fn too_many(span: TextSpan) -> Diagnostic {
    Diagnostic::error(
        span,
        format!("a sweep can have at most {MOST} values"),
        "the series is too long",
    )
    .hint("write two values before `...` to specify a larger step")
}

/// The values that `...` and the end add after `before`.
fn fill(
    before: &[f64],
    end: f64,
    span: TextSpan,
    report: &mut DiagnosticReport,
) -> Option<Vec<f64>> {
    let last = *before.last()?;
    let previous = before
        .len()
        .checked_sub(2)
        .and_then(|at| before.get(at))
        .copied();
    let step = previous.map_or(1.0, |previous| last - previous);
    let ratio = previous
        .filter(|previous| *previous != 0.0)
        .map(|previous| last / previous);
    let ratio = ratio.filter(|ratio| *ratio >= 2.0 && is_whole(*ratio));
    if let Some(ratio) = ratio {
        let (powers, next) = geometric(last, ratio, end);
        if powers.last() == Some(&end) {
            return Some(powers);
        }
        if let Some(steps) = arithmetic(last, step, end, span, report)? {
            return Some(steps);
        }
        if end > last {
            return Some(ended(powers, last, next, end, span, report));
        }
    } else if let Some(steps) = arithmetic(last, step, end, span, report)? {
        return Some(steps);
    }
    let message = format!("the series does not reach {end}");
    let label = format!("steps of {step} from {last} miss it");
    report.push(
        Diagnostic::error(span, message, label).hint("end it with a value that the steps reach"),
    );
    None
}

/// A geometric series that misses its end: the end is added as the last value.
fn ended(
    mut powers: Vec<f64>,
    last: f64,
    next: f64,
    end: f64,
    span: TextSpan,
    report: &mut DiagnosticReport,
) -> Vec<f64> {
    let below = powers.last().copied().unwrap_or(last);
    let near = if end - below < next - end {
        below
    } else {
        next
    };
    report.push(
        Diagnostic::warning(
            span,
            format!("the series does not reach {end}"),
            format!("still used as the last value, after {below}"),
        )
        .hint(format!("did you mean {near}?")),
    );
    powers.push(end);
    powers
}

/// The powers after `last` that are not above `end`, and the first one above.
fn geometric(last: f64, ratio: f64, end: f64) -> (Vec<f64>, f64) {
    let mut powers = Vec::new();
    let mut value = last * ratio;
    while value <= end && value > 0.0 {
        powers.push(value);
        value *= ratio;
    }
    (powers, value)
}

/// The steps to `end`; `Some(None)` when they miss it, `None` when they are too many (reported).
fn arithmetic(
    last: f64,
    step: f64,
    end: f64,
    span: TextSpan,
    report: &mut DiagnosticReport,
) -> Option<Option<Vec<f64>>> {
    let steps = (end - last) / step;
    if !steps.is_finite() || steps < 0.5 || !is_whole(steps) {
        return Some(None);
    }
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    if steps > MOST as f64 {
        report.push(too_many(span));
        return None;
    }
    let mut values = vec![];
    let mut count = 1.0;
    while count < steps - 0.5 {
        values.push(last + count * step);
        count += 1.0;
    }
    values.push(end);
    Some(Some(values))
}

/// Whether the number is whole except for rounding.
pub(crate) fn is_whole(value: f64) -> bool {
    let rest = value % 1.0;
    let off = if rest.abs() > 0.5 {
        1.0 - rest.abs()
    } else {
        rest.abs()
    };
    off <= CLOSE * value.abs().max(1.0)
}
