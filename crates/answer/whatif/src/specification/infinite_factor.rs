//! The limit if a factor were infinitely better: simulates the specification with the factor a thousand times better, and says what
//! limits it then.

use super::experiment_runs::{FactorsStopSignal, RunPlace, carry_out, plan_single_run, simulated};
use super::response_figures::{RunResponse, figures};
use super::subject::SpecExperiment;
use crate::advice;
use crate::experiment::ExperimentSubject as _;
use crate::simulated_runs::SimulationBudget;
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_analyze::segments::{LifelineSegment, segments};
use stackline_core::error::Result;
use stackline_core::named::NamedValue as _;
use stackline_core::network::LossModel;
use stackline_core::plan::{Plan, Size, World};
use stackline_core::procedure::{OperationCall, PairSide};
use stackline_factors::fit::ratio;
use stackline_report::factors::{FactorLimit, Response};
use stackline_runs::RunFileAccess;
use stackline_spec::{Factor, FactorLevel};

/// The least number of simulated runs for each mean.
const RUNS: u64 = 5;

/// The limits of all factors that have a better direction. Problems are added to `notes`.
pub(crate) fn limits(
    experiment: &SpecExperiment,
    first: Option<&Response>,
    replicates: u32,
    stop: &FactorsStopSignal,
    notes: &mut Vec<String>,
) -> Vec<FactorLimit> {
    let candidates: Vec<(usize, &Factor, FactorLevel)> = (0..)
        .zip(&experiment.laid_out.factors)
        .filter_map(|(at, factor)| Some((at, factor, FactorLevel::Times(factor.better()?))))
        .collect();
    let Some(first) = first.filter(|_| !candidates.is_empty()) else {
        return Vec::new();
    };
    if experiment
        .laid_out
        .base
        .measurements
        .first()
        .is_none_or(|measurement| measurement.across.is_none())
    {
        notes.push( "limits for infinite factors need a measurement across a network, because only that can be simulated".into(), );
        return Vec::new();
    }
    let base: Vec<(&Factor, &FactorLevel)> = experiment
        .laid_out
        .factors
        .iter()
        .map(|factor| (factor, &factor.levels[0]))
        .collect();
    let runs = RUNS.max(u64::from(replicates));
    let now = values_at_base(experiment, &base, first, runs, stop);
    let now = match now {
        Ok(now) => now,
        Err(error) => {
            notes.push(format!(
                "no limits, because the specification cannot be simulated: {}",
                error.message
            ));
            return Vec::new();
        }
    };
    let account = shares_at_base(experiment, &base, first, stop);
    let mut limits = Vec::new();
    for (at, factor, level) in candidates {
        let mut changes = base.clone();
        changes[at].1 = &level;
        let made = as_simulated(experiment, &changes).and_then(|plan| {
            let then = values(&plan, first, runs, stop)?;
            Ok((then, next(&plan, stop)))
        });
        match made {
            Ok((then, next)) => {
                let by_account = account.as_ref().and_then(|account| account.without(factor));
                limits.push(FactorLimit {
                    factor: at,
                    times: gain(&now, &then, first.more_is_better),
                    by_account,
                    next,
                });
            }
            Err(error) => notes.push(format!("no limit for `{}`: {}", factor.name, error.message)),
        }
    }
    limits
}

/// The plan of the specification with these levels, in the simulated world.
fn as_simulated(experiment: &SpecExperiment, changes: &[(&Factor, &FactorLevel)]) -> Result<Plan> {
    let mut plan = experiment.laid_out.subject.changed(changes)?;
    plan.measurements
        .iter_mut()
        .for_each(|measurement| measurement.world = World::Simulated);
    Ok(plan)
}

/// The values of the response at the first levels. If the experiment itself was simulated, those of its runs are taken instead of new
/// ones.
fn values_at_base(
    experiment: &SpecExperiment,
    base: &[(&Factor, &FactorLevel)],
    first: &Response,
    runs: u64,
    stop: &FactorsStopSignal,
) -> Result<Vec<f64>> {
    let row = experiment
        .laid_out
        .design
        .row_of(&vec![0; base.len()])
        .filter(|_| experiment.world() == World::Simulated);
    let of_row = first.observed.iter().filter(|one| Some(one.row) == row);
    let known: Vec<f64> = of_row.map(|one| one.value).collect();
    match known.len() {
        0 | 1 => values(&as_simulated(experiment, base)?, first, runs, stop),
        _ => Ok(known),
    }
}

/// The shares of segments at the first levels. They cover the time of calls, not the time between them, so they apply to response times
/// only.
fn shares_at_base(
    experiment: &SpecExperiment,
    base: &[(&Factor, &FactorLevel)],
    first: &Response,
    stop: &FactorsStopSignal,
) -> Option<RunTimeShares> {
    let is_of_calls = matches!(
        RunResponse::named(&first.name),
        Some(RunResponse::Response | RunResponse::Median)
    );
    let plan = is_of_calls.then(|| as_simulated(experiment, base).ok());
    RunTimeShares::from_plan(&plan.flatten()?, stop)
}

/// The values of the response in a few simulated runs.
fn values(plan: &Plan, first: &Response, runs: u64, stop: &FactorsStopSignal) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    for at in 0..runs {
        let plan = plan_single_run(plan, plan.seed.saturating_add(at));
        let records = simulated(&plan, stop)?;
        let (figures, _) = figures(&plan, &records);
        all.extend(RunResponse::named(&first.name).and_then(|name| figures.get(&name).copied()));
    }
    Ok(all)
}

/// How many times as fast: (mean, lower end, upper end of the 95 % interval).
fn gain(now: &[f64], then: &[f64], more_is_better: bool) -> Option<(f64, f64, f64)> {
    let (before, after) = if more_is_better {
        (now, then)
    } else {
        (then, now)
    };
    let log = ratio(before, after)?;
    let (least, most) = log.interval()?;
    Some((log.value.exp(), least.exp(), most.exp()))
}

/// The share of each queue and link in the time of calls, from one traced run. Only for calls of single packets: packets of a larger
/// transfer wait for each other, so a faster link would change the times of the others too.
struct RunTimeShares {
    /// For each segment: the keyword where it begins (`NET_ENQUEUE` for queues, `NET_DEQUEUE` for links), its port, its share.
    shares: Vec<(String, String, f64)>,
}

/// A message of at most this many bytes is one packet.
const ONE_PACKET: u64 = 1400;

/// If the protocol holds data back for more than this share of the time, the shares cannot be used.
const HELD: f64 = 0.02;

impl RunTimeShares {
    /// `None` if the plan has other work than calls of single packets by one pair, losses, or data held back by the protocol.
    fn from_plan(plan: &Plan, stop: &FactorsStopSignal) -> Option<Self> {
        let [part] = plan.measurements.first()?.parts.as_slice() else {
            return None;
        };
        let is_short = |size: &Size| matches!(size, Size::Bytes(bytes) if *bytes <= ONE_PACKET);
        let calls = part
            .procedure
            .calls(PairSide::Initiator)
            .iter()
            .any(|call| matches!(call, OperationCall::RpcCall { .. }));
        if !calls || part.replicas != 1 || !is_short(&part.data.unit) || !is_short(&part.data.reply)
        {
            return None;
        }
        // Losses wait for retransmission timers, which a faster link does not shorten.
        let lossless = plan
            .networks
            .iter()
            .flat_map(|network| &network.links)
            .all(|link| link.loss == LossModel::None);
        if !lossless {
            return None;
        }
        let loaded = traced(plan, stop)?;
        let lines = &loaded.lifelines;
        let found = segments(lines, Some(&loaded.index), false);
        // A faster link does not shorten by its share the time that the protocol holds data back for an acknowledgement either.
        let is_held = |segment: &&LifelineSegment| {
            lines.points[segment.to as usize].keyword == "TCP_SEGMENT" && !segment.connections
        };
        let held: f64 = found
            .iter()
            .filter(is_held)
            .map(|segment| segment.share)
            .sum();
        if held > HELD {
            return None;
        }
        let of = |segment: &LifelineSegment| {
            let from = &lines.points[segment.from as usize];
            (from.keyword.clone(), from.place.clone(), segment.share)
        };
        let shares = found
            .iter()
            .filter(|segment| !segment.connections)
            .map(of)
            .collect();
        Some(Self { shares })
    }

    /// How many times as fast calls would be without the time of a factor's links (for bandwidth and delay).
    fn without(&self, factor: &Factor) -> Option<f64> {
        let (word, ends) = factor.of_link()?;
        let keyword = match word {
            "bandwidth" => "NET_ENQUEUE",
            "delay" => "NET_DEQUEUE",
            _ => return None,
        };
        let of_link = |place: &str| {
            ends.is_none_or(|(a, b)| place == format!("{a}>{b}") || place == format!("{b}>{a}"))
        };
        let own = self
            .shares
            .iter()
            .filter(|(what, place, _)| what == keyword && of_link(place));
        let share: f64 = own.map(|(_, _, share)| share).sum();
        (share < 0.999).then(|| 1.0 / (1.0 - share))
    }
}

/// Makes a traced run of a plan and reads it back.
fn traced(plan: &Plan, stop: &FactorsStopSignal) -> Option<LoadedRun> {
    let scratch = stackline_guard::scratch::create_directory("factors").ok()?;
    let place = RunPlace {
        root: scratch.path(),
        access: RunFileAccess::Private,
        name: "limit",
    };
    let plan = plan_single_run(plan, plan.seed);
    let (path, _) = carry_out(&plan, place, stop, true).ok()?;
    LoadedRun::whatever(&path, MOST_EVENTS).ok()
}

/// What limits a plan: the first finding of one traced run.
fn next(plan: &Plan, stop: &FactorsStopSignal) -> Option<String> {
    let loaded = traced(plan, stop)?;
    let findings = advice::findings(&loaded, SimulationBudget::moment());
    // The text after the first semicolon is an explanation.
    findings
        .first()
        .and_then(|finding| finding.sentence.split("; ").next().map(str::to_owned))
}
