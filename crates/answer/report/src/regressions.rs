//! The result of a gate against a baseline, as text and as JSON.

use crate::figure;
use crate::grid::{Align, line, width, widths, wrap};
use crate::json::statistics;
use crate::table::WIDTH;
use serde_json::{Value, json as object};
use stackline_analyze::{
    GateFigure, GateVerdict, JudgedFigure, Label, RegressionOutcome, RegressionRule,
    RegressionVerdict, RunMetric,
};
use stackline_core::units::counted;

/// Alignment of the columns: metric, baseline, new, change, verdict.
const ALIGN: [Align; 5] = [
    Align::Left,
    Align::Right,
    Align::Left,
    Align::Right,
    Align::Left,
];

/// The figures of each measurement with their change and verdict, what was not judged, and other differences.
#[must_use]
pub fn regressions(outcome: &RegressionOutcome) -> String {
    let rows: Vec<Vec<String>> = outcome.figures.iter().map(row).collect();
    let widths = widths(&rows);
    let (mut out, mut last) = (String::new(), String::new());
    for (figure, row) in outcome.figures.iter().zip(&rows) {
        let heading = name(&figure.label);
        if heading != last {
            push_wrapped(&mut out, &heading, 0);
            last = heading;
        }
        if row[0].is_empty() {
            push_wrapped(&mut out, figure.figure.name(), 2);
        }
        out.push_str(&format!("  {}\n", line(row, &widths, &ALIGN)));
        if let Some(reason) = undecided_reason(figure) {
            push_wrapped(&mut out, &reason, 4);
        }
    }
    for label in &outcome.missing {
        let text = format!("{}: only in the baseline", name(label));
        push_wrapped(&mut out, &text, 0);
    }
    for label in &outcome.added {
        let text = format!("{}: not in the baseline, so not judged", name(label));
        push_wrapped(&mut out, &text, 0);
    }
    if !outcome.caveats.is_empty() {
        out.push_str("\nBoth sides also differ in what no figure shows:\n");
        for caveat in &outcome.caveats {
            push_wrapped(&mut out, &format!("- {caveat}"), 0);
        }
    }
    out
}

/// The verdict of the gate and its rule, as sentences.
#[must_use]
pub fn regression_lines(outcome: &RegressionOutcome) -> Vec<String> {
    let RegressionRule {
        margin, error_rate, ..
    } = outcome.rule;
    let (margin, rate) = (share(margin), share(error_rate));
    let names = |verdict| -> Vec<String> {
        let all = outcome.figures.iter().filter(|one| one.verdict == verdict);
        all.map(figure_name).collect()
    };
    match outcome.verdict {
        GateVerdict::Worse => {
            let all = outcome.figures.iter();
            let worse = all.filter(|one| one.verdict == RegressionVerdict::Worse);
            let said: Vec<String> = worse
                .map(|one| format!("{} is worse ({})", figure_name(one), change(one)))
                .collect();
            vec![format!("failed: {} (error rate {rate})", said.join("; "))]
        }
        GateVerdict::Passed => vec![format!(
            "passed: nothing is worse by {margin} or more, and nothing is shown to be worse (error rate {rate})"
        )],
        GateVerdict::Undecided => {
            let mut open = names(RegressionVerdict::CannotSay);
            open.extend(
                outcome
                    .missing
                    .iter()
                    .map(|label| format!("`{}`", name(label))),
            );
            let mut lines = vec![format!(
                "cannot say whether anything is worse by {margin}: {}",
                open.join("; ")
            )];
            let more = outcome.figures.iter().filter_map(|one| one.more_runs).max();
            lines.extend(more.map(|more| {
                let runs = counted(more, "more run");
                format!("hint: about {runs} of each side would decide; write more runs at the beginning of the measurement")
            }));
            lines
        }
    }
}

/// The gate as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn regressions_json(outcome: &RegressionOutcome) -> Value {
    let figure = |one: &JudgedFigure| {
        let (metric, segment) = match &one.figure {
            GateFigure::Metric(metric) => (object!(metric), None),
            GateFigure::Segment(name) => (object!("segment"), Some(name)),
        };
        object!({
            "text": one.label.text,
            "part": one.label.part,
            "stack": one.label.stack,
            "metric": metric,
            "segment": segment,
            "base": statistics(Some(&one.base)),
            "new": statistics(Some(&one.new)),
            "ratio": one.ratio,
            "bounds": one.bounds,
            "p_worse": one.p_worse,
            "verdict": one.verdict,
            "reason": one.reason,
            "more_runs": one.more_runs,
        })
    };
    object!({
        "verdict": outcome.verdict,
        "worse": outcome.rule.margin,
        "error_rate": outcome.rule.error_rate,
        "tolerate": outcome.rule.tolerance,
        "figures": outcome.figures.iter().map(figure).collect::<Vec<_>>(),
        "missing": outcome.missing,
        "added": outcome.added,
        "caveats": outcome.caveats,
    })
}

pub(crate) fn push_wrapped(out: &mut String, text: &str, indent: usize) {
    for (at, part) in wrap(text, WIDTH - indent - 2).into_iter().enumerate() {
        let more = if at == 0 { 0 } else { 2 };
        out.push_str(&format!("{}{part}\n", " ".repeat(indent + more)));
    }
}

/// The measurement, with its part and stack where the text does not say them.
pub(crate) fn name(label: &Label) -> String {
    let part = match label.text.contains(&label.part) {
        true => String::new(),
        false => format!(": {}", label.part),
    };
    let stack = match label.text.contains(" over ") {
        true => String::new(),
        false => format!(" over {}", label.stack),
    };
    format!("{}{part}{stack}", label.text)
}

/// `response time of 5 rr 32*1000 over tcp`.
pub(crate) fn figure_name(one: &JudgedFigure) -> String {
    let of = name(&one.label);
    match &one.figure {
        GateFigure::Metric(metric) => format!("{} of `{of}`", metric.name()),
        GateFigure::Segment(segment) => format!("segment {segment} of `{of}`"),
    }
}

/// The longest name that stands in its row; a longer one has a line of its own.
const NAME: usize = 21;

fn row(one: &JudgedFigure) -> Vec<String> {
    let metric = match &one.figure {
        GateFigure::Metric(metric) => *metric,
        GateFigure::Segment(_) => RunMetric::Response,
    };
    let is_short = width(one.figure.name()) <= NAME;
    vec![
        if is_short { one.figure.name() } else { "" }.to_owned(),
        figure::value(metric, one.base.mean),
        format!("-> {}", figure::value(metric, one.new.mean)),
        change(one),
        regression_word(one.verdict).to_owned(),
    ]
}

/// The verdict as it is shown.
pub(crate) const fn regression_word(verdict: RegressionVerdict) -> &'static str {
    match verdict {
        RegressionVerdict::Better => "better",
        RegressionVerdict::Same => "same",
        RegressionVerdict::NotWorse => "not worse",
        RegressionVerdict::Worse => "WORSE",
        RegressionVerdict::CannotSay => "cannot say",
    }
}

/// The change with its bounds, in per cent: `+2.1 % (+1.3..+2.9)`.
pub(crate) fn change(one: &JudgedFigure) -> String {
    let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    if !one.ratio.is_finite() {
        return figure::ABSENT.to_owned();
    }
    let is_exact = |s: &stackline_analyze::SampleStatistics| s.n > 1 && s.min >= s.max;
    match one.bounds {
        _ if is_exact(&one.base) && is_exact(&one.new) => {
            format!("{} % (deterministic)", percent(one.ratio))
        }
        Some((low, high)) => format!(
            "{} % ({}..{})",
            percent(one.ratio),
            percent(low),
            percent(high)
        ),
        None => format!("{} %", percent(one.ratio)),
    }
}

/// Why nothing can be said of a figure, and how many more runs would decide.
pub(crate) fn undecided_reason(one: &JudgedFigure) -> Option<String> {
    let reason = one.reason.as_ref()?;
    Some(match one.more_runs {
        Some(more) => format!(
            "{reason}; about {} of each side would decide",
            counted(more, "more run")
        ),
        None => reason.clone(),
    })
}

/// A share in per cent, as a flag has it: `5 %`, `0.5 %`.
pub(crate) fn share(share: f64) -> String {
    // Rounded, because 0.07 x 100 is not exactly 7.
    format!("{} %", (share * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_short() {
        assert_eq!(
            [0.05, 0.07, 0.005, 0.0].map(share),
            ["5 %", "7 %", "0.5 %", "0 %"]
        );
    }
}
