//! The highest offered rate that meets an expectation, by a search that gives each rate more runs until it is decided.

use super::LoadedSpec;
use super::load_sweep::described;
use stackline_analyze::offered_load::rate_search::{FoundRate, RateSearch};
use stackline_analyze::offered_load::rate_verdict::{LOOKS, RateFigure, RateVerdict, judge_rate};
use stackline_analyze::offered_load::{HighestRate, LoadStep, TriedRate};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::expectation::{Expectation, ExpectedCondition};
use stackline_runner::spec_source::SpecSource;
use stackline_spec::Overrides;

/// Of the rate without pauses: the lowest and the highest rate of a search.
const SHARES: (f64, f64) = (0.001, 8.0);
/// Of the rate without pauses: where a search begins.
const FIRST_SHARE: f64 = 0.5;

/// The expectations of a flag, as `expect` writes them: `p99 < 5 ms, loss < 1 %`.
///
/// # Errors
/// A mistake in it; if it is about findings.
pub fn expectations_of(written: &str) -> Result<Vec<Expectation>> {
    // Datagrams at a rate have all figures that an expectation may name.
    let text = format!("1 rr 32*2 5/s over udp in live expect {written};");
    let checked = SpecSource::made("--meet", text).checked(&Overrides::default());
    let plan = checked.plan.ok_or_else(|| {
        let mistake = checked.diagnostics.into_iter().next();
        let (message, hint) = mistake.map_or_else(Default::default, |one| (one.message, one.hint));
        let hint = hint.unwrap_or_else(|| "write it as `p99 < 5 ms`".to_owned());
        Error::input(format!("--meet '{written}': {message}")).hint(hint)
    })?;
    let all: Vec<Expectation> = plan
        .measurements
        .into_iter()
        .flat_map(|one| one.expectations)
        .collect();
    let is_figure = |one: &Expectation| matches!(one.condition, ExpectedCondition::Figure(..));
    match all.iter().all(is_figure) && !all.is_empty() {
        true => Ok(all),
        false => Err(
            Error::input("--meet is about figures of calls, not about findings")
                .hint("write it as `p99 < 5 ms`"),
        ),
    }
}

/// Searches the highest rate that meets the expectations. Neighbouring rates differ by the factor `1 + precision` at the end.
///
/// # Errors
/// If these worlds cannot do it, or no rate has the expected figure.
pub fn find_highest_rate(
    loaded: &mut LoadedSpec<'_>,
    expectations: &[Expectation],
    precision: f64,
) -> Result<HighestRate> {
    let range = loaded.range()?;
    let (low, high, start) = match range.closed_per_s {
        Some(closed) => (SHARES.0 * closed, SHARES.1 * closed, FIRST_SHARE * closed),
        None => (range.low, range.high, (range.low * range.high).sqrt()),
    };
    let mut search = RateSearch::new(low, high, start, precision);
    let mut answer = HighestRate {
        expectations: expectations.iter().map(|one| one.text.clone()).collect(),
        tried: Vec::new(),
        found: FoundRate::default(),
        limits: (low, high),
        failed: Vec::new(),
        is_exhausted: false,
        is_interrupted: false,
    };
    while let Some(rate) = search.next_rate() {
        let verdict = match try_rate(loaded, rate, expectations) {
            Ok(Ok(tried)) => {
                let verdict = tried.verdict;
                answer.tried.push(tried);
                verdict
            }
            Ok(Err(reason)) => {
                answer.failed.push((rate, reason));
                RateVerdict::Missed
            }
            Err(error) if error.blame == Blame::Interrupted => {
                answer.is_interrupted = true;
                break;
            }
            Err(error) => return Err(error),
        };
        search.record(rate, verdict);
    }
    if let (true, [(_, reason), ..]) = (answer.tried.is_empty(), &answer.failed[..]) {
        return Err(Error::measurement(reason.clone()));
    }
    answer
        .tried
        .sort_by(|a, b| a.step.offered_per_s.total_cmp(&b.step.offered_per_s));
    answer.found = search.found();
    answer.is_exhausted = search.is_exhausted();
    Ok(answer)
}

/// Makes runs at a rate until it is decided, or was looked at as often as may be; or says why its runs failed.
fn try_rate(
    loaded: &mut LoadedSpec<'_>,
    rate: f64,
    expectations: &[Expectation],
) -> Result<std::result::Result<TriedRate, String>> {
    let mut more = loaded.extent().runs.max(2);
    for look in 1..=LOOKS {
        let trial = match loaded.run_at(rate, more)? {
            Ok(trial) => trial,
            Err(reason) => return Ok(Err(reason)),
        };
        let runs = loaded.run_summaries(trial);
        let figures: Vec<Option<RateFigure>> = expectations
            .iter()
            .map(|expectation| match &expectation.condition {
                ExpectedCondition::Figure(figure, bound) => judge_rate(&runs, *figure, *bound),
                _ => None,
            })
            .collect();
        let verdict = verdict_of_all(&figures);
        if verdict == RateVerdict::Undecided && look < LOOKS {
            more = u32::try_from(runs.len()).unwrap_or(u32::MAX);
            continue;
        }
        let Some(summary) = loaded.summary(trial) else {
            return Ok(Err("no run was completed".to_owned()));
        };
        let step = LoadStep::new(rate, &summary, None);
        (loaded.said)(&format!("{}: {}", described(&step), word(verdict)));
        return Ok(Ok(TriedRate {
            step,
            figures,
            verdict,
        }));
    }
    Ok(Err("no run was completed".to_owned()))
}

/// Missed if one is, met if all are.
fn verdict_of_all(figures: &[Option<RateFigure>]) -> RateVerdict {
    let verdict = |figure: &Option<RateFigure>| {
        figure.map_or(RateVerdict::Undecided, |figure| figure.verdict)
    };
    let verdicts = || figures.iter().map(verdict);
    if verdicts().any(|one| one == RateVerdict::Missed) {
        RateVerdict::Missed
    } else if verdicts().all(|one| one == RateVerdict::Met) {
        RateVerdict::Met
    } else {
        RateVerdict::Undecided
    }
}

const fn word(verdict: RateVerdict) -> &'static str {
    match verdict {
        RateVerdict::Met => "met",
        RateVerdict::Missed => "missed",
        RateVerdict::Undecided => "undecided",
    }
}
