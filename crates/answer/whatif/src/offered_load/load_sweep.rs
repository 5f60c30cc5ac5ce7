//! Offered rates that rise by one factor until the system, or the generator, is at its limit.

use super::LoadedSpec;
use stackline_analyze::offered_load::{
    LoadCurve, LoadStep, LoadStop, geometric_rates, three_digits,
};
use stackline_core::error::{Blame, Error, Result};
use stackline_core::units;

/// The most rates of a sweep.
pub const MOST_STEPS: u32 = 100;
/// Of the rate without pauses: where the steps end that are laid out beforehand.
const HIGHEST_SHARE: f64 = 1.25;

/// Offers `number` rates, and further ones by the same factor until one is too much.
///
/// # Errors
/// If nothing could be measured at the first rate, or these worlds cannot do it.
pub fn sweep_load(loaded: &mut LoadedSpec<'_>, number: u32) -> Result<LoadCurve> {
    let range = loaded.range()?;
    let end = match range.closed_per_s {
        Some(closed) => HIGHEST_SHARE * closed,
        None => range.high,
    };
    let mut rates = geometric_rates(range.low, end, number);
    let factor = match rates[..] {
        [first, second, ..] => second / first,
        _ => 2.0,
    };
    let mut steps: Vec<LoadStep> = Vec::new();
    let mut at = 0;
    let stop = loop {
        if at >= MOST_STEPS as usize {
            break LoadStop::Steps;
        }
        let Some(rate) = rates.get(at).copied() else {
            if range.closed_per_s.is_none() {
                break LoadStop::Highest;
            }
            let last = rates.last().copied().unwrap_or(range.low);
            rates.push(three_digits(last * factor));
            continue;
        };
        let runs = loaded.extent().runs;
        let trial = match loaded.run_at(rate, runs) {
            Ok(Ok(trial)) => trial,
            Ok(Err(reason)) if !steps.is_empty() => break LoadStop::Failed(reason),
            Ok(Err(reason)) => return Err(Error::measurement(reason)),
            Err(error) if error.blame == Blame::Interrupted => {
                break LoadStop::Interrupted;
            }
            Err(error) => return Err(error),
        };
        let Some(summary) = loaded.summary(trial) else {
            break LoadStop::Failed("no run was completed".to_owned());
        };
        let step = LoadStep::new(rate, &summary, steps.first());
        (loaded.said)(&described(&step));
        let saturated = step.saturated;
        steps.push(step);
        if let Some(sign) = saturated {
            break LoadStop::Saturated(sign);
        }
        at += 1;
    };
    Ok(LoadCurve {
        steps,
        stop,
        closed_per_s: range.closed_per_s,
    })
}

/// A step in a sentence, as it is done.
pub(super) fn described(step: &LoadStep) -> String {
    let achieved = step.achieved_per_s.map_or(0.0, |achieved| achieved.mean);
    let p99 = step.p99.map_or_else(String::new, |p99| {
        format!(", p99 {}", units::format_time(p99.value_s))
    });
    format!(
        "offered {}, achieved {}{p99}",
        units::per_second(step.offered_per_s),
        units::per_second(achieved)
    )
}
