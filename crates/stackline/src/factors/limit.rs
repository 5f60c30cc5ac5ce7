//! The limit if a factor were infinite: the specification with that factor a thousand times better, simulated, and what limits it then.

use super::carry_out::{Stop, carried_out, once, simulated};
use super::experiment::Experiment;
use super::response::figures;
use crate::advice::{self, MOMENT};
use crate::exit::Result;
use crate::flags::ResponseFlag;
use crate::loaded::{Loaded, MOST_EVENTS};
use stackline_core::plan::{Plan, World};
use stackline_factors::fit::ratio;
use stackline_report::factors::{Limit, Response};
use stackline_spec::{Factor, Level};

/// Runs, at least: more differ less on average.
const RUNS: u64 = 5;

/// Of every factor of which more is better; what stands in the way goes to the notes.
pub(super) fn limits(
    experiment: &Experiment,
    first: Option<&Response>,
    replicates: u32,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Vec<Limit> {
    let candidates: Vec<(usize, &Factor, Level)> = (0..)
        .zip(&experiment.factors)
        .filter_map(|(at, factor)| Some((at, factor, Level::Times(factor.better()?))))
        .collect();
    let Some(first) = first.filter(|_| !candidates.is_empty()) else { return Vec::new() };
    if experiment.base.measurements[0].across.is_none() {
        notes.push("the limit if a factor were infinite needs a network that can be simulated".into());
        return Vec::new();
    }
    let base: Vec<(&Factor, &Level)> = experiment.factors.iter().map(|factor| (factor, &factor.levels[0])).collect();
    let as_simulated = |changes: &[(&Factor, &Level)]| -> Result<Plan> {
        let mut plan = experiment.plan_of(changes)?;
        plan.measurements.iter_mut().for_each(|measurement| measurement.world = World::Simulated);
        Ok(plan)
    };
    let runs = RUNS.max(u64::from(replicates));
    // What was simulated with everything as it is first stands in the table already.
    let row = experiment.design.row_of(&vec![0; base.len()]).filter(|_| experiment.world() == World::Simulated);
    let known: Vec<f64> = first.observed.iter().filter(|one| Some(one.row) == row).map(|one| one.value).collect();
    let now = match known.len() {
        0 | 1 => as_simulated(&base).and_then(|plan| values(&plan, first, runs, stop)),
        _ => Ok(known),
    };
    let now = match now {
        Ok(now) => now,
        Err(error) => {
            notes.push(format!("no limits: the specification cannot be simulated: {}", error.message));
            return Vec::new();
        }
    };
    let mut limits = Vec::new();
    for (at, factor, level) in candidates {
        let mut changes = base.clone();
        changes[at].1 = &level;
        let made = as_simulated(&changes).and_then(|plan| {
            let then = values(&plan, first, runs, stop)?;
            Ok((then, next(&plan, stop)))
        });
        match made {
            Ok((then, next)) => limits.push(Limit { factor: at, times: gain(&now, &then, first.more_is_better), next }),
            Err(error) => notes.push(format!("no limit of `{}`: {}", factor.name, error.message)),
        }
    }
    limits
}

fn response_of(first: &Response) -> Option<ResponseFlag> {
    use clap::ValueEnum;
    ResponseFlag::value_variants().iter().copied().find(|one| super::response::name(*one) == first.name)
}

/// The response of a few runs.
fn values(plan: &Plan, first: &Response, runs: u64, stop: &Stop) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for at in 0..runs {
        let plan = once(plan, plan.seed.saturating_add(at));
        let records = simulated(&plan, stop)?;
        let (figures, _) = figures(&plan, &records);
        all.extend(response_of(first).and_then(|name| figures.get(&name).copied()));
    }
    Ok(all)
}

/// How many times as fast, with its interval.
fn gain(now: &[f64], then: &[f64], more_is_better: bool) -> Option<(f64, f64, f64)> {
    let (before, after) = if more_is_better { (now, then) } else { (then, now) };
    let log = ratio(before, after)?;
    let (least, most) = log.interval()?;
    Some((log.value.exp(), least.exp(), most.exp()))
}

/// What limits a plan: its first finding, of one traced run.
fn next(plan: &Plan, stop: &Stop) -> Option<String> {
    let scratch = tempfile::tempdir().ok()?;
    let (path, _) = carried_out(&once(plan, plan.seed), scratch.path(), "limit", stop, true).ok()?;
    let loaded = Loaded::whatever(&path, MOST_EVENTS).ok()?;
    let findings = advice::findings(&loaded, MOMENT);
    findings.first().map(|finding| finding.sentence.clone())
}
