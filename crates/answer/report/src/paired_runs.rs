//! The result of pairs of runs of two specifications, A and B, as text and as JSON.

use crate::regressions::{change, figure_name, regressions, regressions_json, share};
use serde_json::{Value, json as object};
use stackline_analyze::{GateVerdict, JudgedFigure, RegressionOutcome, RegressionVerdict};
use stackline_core::units::counted;

/// What was judged, and how it was made.
#[derive(Clone, Debug)]
pub struct PairedOutcome {
    /// The figures of A (the base) and B (the new side).
    pub outcome: RegressionOutcome,
    /// How many pairs were made.
    pub pairs: u32,
    /// How many were permitted.
    pub most: u32,
    /// The directories in which the runs of A and of B are kept.
    pub runs: [String; 2],
}

/// The figures of each measurement, A before B, with their change and verdict.
#[must_use]
pub fn paired_runs(paired: &PairedOutcome) -> String {
    let pairs = counted(u64::from(paired.pairs), "pair");
    format!("A -> B, {pairs}\n{}", regressions(&paired.outcome))
}

/// The verdict and its rule, as sentences.
#[must_use]
pub fn paired_lines(paired: &PairedOutcome) -> Vec<String> {
    let outcome = &paired.outcome;
    let rate = share(outcome.rule.error_rate);
    let margin = share(outcome.rule.margin);
    let pairs = counted(u64::from(paired.pairs), "pair");
    let of = |verdict| -> Vec<&JudgedFigure> {
        let all = outcome.figures.iter();
        all.filter(|one| one.verdict == verdict).collect()
    };
    let named = |figures: &[&JudgedFigure]| {
        let each = figures.iter().copied();
        let each = each.map(|one| format!("{} ({})", figure_name(one), change(one)));
        each.collect::<Vec<_>>().join("; ")
    };
    let (better, worse) = (of(RegressionVerdict::Better), of(RegressionVerdict::Worse));
    match outcome.verdict {
        GateVerdict::Worse => vec![format!(
            "B is worse after {pairs}: {} (error rate {rate})",
            named(&worse)
        )],
        GateVerdict::Passed if !better.is_empty() => vec![format!(
            "B is better after {pairs}: {}; nothing is worse by {margin} or more (error rate {rate})",
            named(&better)
        )],
        GateVerdict::Passed if of(RegressionVerdict::NotWorse).is_empty() => vec![format!(
            "A and B are the same within {margin} after {pairs} (error rate {rate})"
        )],
        GateVerdict::Passed => vec![format!(
            "B is not worse by {margin} or more after {pairs}, and may be better (error rate {rate})"
        )],
        GateVerdict::Undecided => {
            let open = of(RegressionVerdict::CannotSay);
            let names: Vec<String> = open.into_iter().map(figure_name).collect();
            let mut lines = vec![format!(
                "cannot say after {pairs} whether B is worse by {margin}: {}",
                names.join("; ")
            )];
            let more = outcome.figures.iter().filter_map(|one| one.more_runs).max();
            lines.extend(more.map(|more| {
                let all = more.saturating_add(u64::from(paired.pairs));
                format!(
                    "hint: about {} would decide; write `--most {all}`",
                    counted(all, "pair")
                )
            }));
            lines
        }
    }
}

/// The result as JSON, described in `docs/JSON.md`.
#[must_use]
pub fn paired_runs_json(paired: &PairedOutcome) -> Value {
    let mut json = regressions_json(&paired.outcome);
    json["pairs"] = object!(paired.pairs);
    json["most_pairs"] = object!(paired.most);
    json["runs"] = object!(paired.runs);
    json
}
