//! Estimates what a finding's advice would gain: the run's measurement is simulated as it was and with the advised change, with the
//! same seeds.
//!
//! Advice that does not help is removed. If the run itself was simulated, a finding whose advice helps becomes more certain, and one
//! whose advice does not becomes less certain. Properties of the specification that could cost time (*suspects*) are tried too,
//! where nothing was found about them.

use crate::simulated_runs::{
    SimulationBudget, SimulationFailure, simulate_records, single_group_plan,
};
use stackline_analyze::findings::{
    Advice, Evidence, ExpectedEffect, Finding, Gauge, LEAST, PlanChange, blame_alike,
    count_time_once, suspects, takes_away,
};
use stackline_analyze::loaded_run::LoadedRun;
use stackline_analyze::statistics::median;
use stackline_analyze::summary::RunMetric;
use stackline_analyze::{Summary, summarise};
use stackline_core::plan::{Composer, MeasurementPart, Plan, World};
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide};
use std::collections::BTreeMap;

/// Pairs of simulated runs (with and without a change), so that a single lucky loss does not decide.
const RUNS: u64 = 5;
/// Pairs of runs if runs differ from each other by more than [`SPREAD`] and the budget allows so many for all trials.
const RUNS_OF_CHANCE: u64 = 25;
/// If the slowest run takes more than this many times as long as the fastest, few runs leave too much to chance.
const SPREAD: f64 = 1.1;
/// The number of changes that are expected to be tried for one measurement, to judge whether the budget suffices.
const TRIALS: u64 = 10;
/// Advice that makes the measurement less than this many times as fast is removed.
const HELPS: f64 = 1.03;
/// A change harms if it makes a run less than this many times as fast, unless its mean gain is at least [`CERTAIN`].
const HARMS: f64 = 0.97;
/// From this mean gain on, advice is kept even if it harms in some runs.
const CERTAIN: f64 = 1.5;
/// From this gain on, the change removed what limited the run, which proves the finding.
const PROVES: f64 = 1.1;
/// From this gain on, a suspect becomes a finding.
const FINDS: f64 = 1.15;
/// The least confidence of a finding that simulation proves.
const PROVED: f64 = 0.9;
/// The confidence that a finding has at most if its best advice gains nothing.
const DOUBTED: f64 = 0.5;
/// An advice that saves more than this many times the share of its finding, and a little, removes something else too.
const MORE: f64 = 1.5;
/// From this confidence on, a finding counts as the cause.
const SURE: f64 = 0.8;
/// Simulated runs count for a measured one only if its median is within this factor of their range.
const NEAR: f64 = 1.25;

/// The findings of a run, the most important first, with the expected gain of their advice as far as the budget allows.
#[must_use]
pub fn findings(loaded: &LoadedRun, budget: SimulationBudget) -> Vec<Finding> {
    let mut findings = loaded.findings();
    let trial = AdviceTrial {
        plan: &loaded.run.plan,
        budget,
    };
    let measured = summarise(trial.plan, &loaded.run.records);
    let (mut known, mut found) = (BTreeMap::new(), Vec::new());
    for finding in &mut findings {
        let Some(at) = finding.measurement else {
            continue;
        };
        if let Some(now) = known
            .entry(at)
            .or_insert_with(|| trial.as_it_was(at, &measured))
        {
            trial.judge(finding, at, now);
        }
    }
    for suspect in suspects(&loaded.input()) {
        let named = |finding: &Finding| {
            let is_alike = blame_alike(finding.kind, suspect.finding.kind);
            let same = finding.measurement == suspect.finding.measurement;
            let is_placed = suspect
                .places
                .iter()
                .any(|place| finding.sentence.contains(place));
            is_alike && same && (is_placed || advise_the_same(finding, &suspect.finding))
        };
        let Some(at) = suspect
            .finding
            .measurement
            .filter(|at| trial.is_simulated(*at))
        else {
            continue;
        };
        let Some(Some(now)) = known.get(&at) else {
            continue;
        };
        // A faster link always helps what uses it, so it is a finding only if nothing else is at fault.
        let fault = |finding: &Finding| {
            finding.measurement == Some(at) && !finding.is_healthy() && finding.confidence >= SURE
        };
        let idle = suspect
            .finding
            .tries
            .iter()
            .any(|advice| matches!(advice.change, Some(PlanChange::Faster(_))))
            && findings.iter().chain(&found).any(fault);
        if !idle && !findings.iter().chain(&found).any(named) {
            found.extend(trial.convict(suspect.finding, at, now));
        }
    }
    findings.retain(|finding| {
        !finding.is_healthy()
            || found
                .iter()
                .all(|new| new.measurement != finding.measurement)
    });
    findings.extend(found);
    count_time_once(&mut findings, loaded.run.plan.measurements.len());
    findings
}

/// Whether two findings advise the same change.
fn advise_the_same(finding: &Finding, other: &Finding) -> bool {
    let mut changes = other
        .tries
        .iter()
        .filter_map(|advice| advice.change.as_ref());
    changes.any(|change| {
        let mut tries = finding.tries.iter();
        tries.any(|advice| advice.change.as_ref() == Some(change))
    })
}

/// The plan whose changes are tried, and how much may be simulated.
struct AdviceTrial<'p> {
    plan: &'p Plan,
    budget: SimulationBudget,
}

/// The results of simulated runs of one measurement.
struct Runs {
    /// Summaries of the measured parts, or for `total` that of all parts.
    parts: Vec<Summary>,
    /// For `parallel`: the summary of all parts together.
    together: Option<Summary>,
    /// For each run: the time until its last part ended, seconds.
    elapsed_s: Vec<f64>,
    /// For each run: answered calls per second, over all its parts.
    calls_s: Vec<f64>,
    /// Unanswered calls of all runs.
    lost_calls: u64,
}

impl Runs {
    /// Whether the runs took very different times.
    fn is_spread(&self) -> bool {
        let (least, greatest) = self
            .elapsed_s
            .iter()
            .fold((f64::MAX, 0.0_f64), |(a, b), value| {
                (a.min(*value), b.max(*value))
            });
        greatest > least * SPREAD
    }
}

impl AdviceTrial<'_> {
    /// Simulates a measurement of a plan with so many seeds.
    fn runs(&self, plan: &Plan, at: usize, seeds: u64) -> Result<Runs, SimulationFailure> {
        let plan = single_group_plan(plan, at);
        let records = simulate_records(&plan, seeds, &self.budget)?;
        let mut elapsed_s: BTreeMap<u32, f64> = BTreeMap::new();
        let is_measured = |part: usize| {
            plan.measurements
                .first()?
                .parts
                .get(part)
                .map(|part| !part.background)
        };
        let mut answered: BTreeMap<u32, u64> = BTreeMap::new();
        let mut lost_calls = 0;
        for record in records
            .iter()
            .filter(|record| is_measured(record.part) == Some(true))
        {
            let calls = record.calls.n();
            *answered.entry(record.run).or_default() += calls;
            let lost = record.initiator.lost.or(record.responder.lost);
            lost_calls += lost.filter(|_| calls > 0).unwrap_or(0);
            let longest = elapsed_s.entry(record.run).or_default();
            *longest = longest.max(record.elapsed_ns as f64 / 1e9);
        }
        let composer = plan.measurements.first().map(|one| one.composer);
        let together = composer == Some(Composer::Total);
        let mut parts = summarise(&plan, &records);
        let whole = parts
            .iter()
            .position(|summary| !together && !summary.background && summary.part_index.is_none());
        let whole = whole.map(|at| parts.remove(at));
        parts.retain(|summary| is_compared(summary, together));
        let rate = |(run, seconds): (&u32, &f64)| {
            answered.get(run).copied().unwrap_or(0) as f64 / seconds.max(1e-9)
        };
        Ok(Runs {
            parts,
            together: whole,
            calls_s: elapsed_s.iter().map(rate).collect(),
            lost_calls,
            elapsed_s: elapsed_s.into_values().collect(),
        })
    }

    fn is_simulated(&self, at: usize) -> bool {
        self.plan
            .measurements
            .get(at)
            .is_some_and(|measurement| measurement.world == World::Simulated)
    }

    /// The measurement simulated unchanged; `None` if the results are not near those measured, or it cannot be simulated.
    fn as_it_was(&self, at: usize, measured: &[Summary]) -> Option<Runs> {
        let measurement = self.plan.measurements.get(at)?;
        measurement
            .across
            .as_ref()
            .filter(|_| measurement.world != World::Live)?;
        let now = self.enough_runs(at)?;
        let together = measurement.composer == Composer::Total;
        let of_this =
            |summary: &&Summary| summary.measurement == at && is_compared(summary, together);
        let near = |(was, is): (&Summary, &Summary)| {
            let metric = RunMetric::MAIN
                .into_iter()
                .find(|metric| !was.values(*metric).is_empty())?;
            let (was, is) = (median(was.values(metric).to_vec())?, is.values(metric));
            let (least, greatest) = is.iter().fold((f64::MAX, 0.0_f64), |(a, b), value| {
                (a.min(*value), b.max(*value))
            });
            Some((least / NEAR..=greatest * NEAR).contains(&was))
        };
        let mut pairs = measured.iter().filter(of_this).zip(&now.parts);
        pairs.all(|pair| near(pair) == Some(true)).then_some(now)
    }

    /// Simulates the measurement unchanged, more often if runs differ by chance and the budget allows as many runs of each change.
    fn enough_runs(&self, at: usize) -> Option<Runs> {
        let before = self.budget.left();
        let few = self.runs(self.plan, at, RUNS).ok()?;
        let each = (before - self.budget.left()) / RUNS;
        let has_room = each * RUNS_OF_CHANCE * TRIALS <= self.budget.left();
        if few.is_spread() && has_room {
            return self.runs(self.plan, at, RUNS_OF_CHANCE).ok();
        }
        Some(few)
    }

    /// Simulates a change, and compares it with the unchanged runs; `None` if it cannot be applied or compared.
    fn expected(
        &self,
        change: &PlanChange,
        at: usize,
        now: &Runs,
    ) -> Result<Option<ExpectedEffect>, SimulationFailure> {
        let Some(changed) = change.applied(self.plan, at) else {
            return Ok(None);
        };
        let then = self.runs(&changed, at, now.elapsed_s.len() as u64)?;
        Ok(self.effect(change, at, now, &then))
    }

    /// The share of a run's time that a change saves. Where calls follow each other it is that of the whole: connections that they open
    /// are part of it, and not of a response time. Where they have their own times to begin, only responses can become faster.
    fn saved(&self, at: usize, effect: &ExpectedEffect, now: &Runs, then: &Runs) -> f64 {
        let follow = self.plan.measurements.get(at).is_some_and(|measurement| {
            let mut parts = measurement.parts.iter().filter(|part| !part.background);
            measurement.time_limit.is_none() && parts.all(|part| !is_paced(part))
        });
        let gain = if follow && effect.metric == Gauge::Response {
            now.elapsed_s.iter().sum::<f64>() / then.elapsed_s.iter().sum::<f64>()
        } else {
            effect.times_as_fast[0]
        };
        (1.0 - 1.0 / gain).max(0.0)
    }

    /// The effect of a change, from runs without and with it.
    fn effect(
        &self,
        change: &PlanChange,
        at: usize,
        now: &Runs,
        then: &Runs,
    ) -> Option<ExpectedEffect> {
        let seeds = now.elapsed_s.len();
        let (metric, pairs) = compared(now, then, change.is_between_calls())?;
        let mut effects: Vec<RunEffect> = (0..seeds)
            .filter_map(|run| RunEffect::measure(metric, &pairs, run))
            .collect();
        effects.sort_unstable_by(|a, b| a.gain.total_cmp(&b.gain));
        // With 20 pairs or more, the interval leaves out the extreme 5 % at each end.
        let rare = effects.len() / 20;
        let (least, greatest) = (effects.get(rare)?.gain, effects.iter().nth_back(rare)?.gain);
        let mean = RunEffect::mean(metric, &effects)?;
        let mut effect = ExpectedEffect {
            metric,
            parts: now.parts.len(),
            now: mean.now,
            then: mean.then,
            times_as_fast: [mean.gain, least, greatest],
            saves: 0.0,
            runs: effects.len(),
        };
        effect.saves = self.saved(at, &effect, now, then);
        Some(effect)
    }

    /// Sets the expected gain of a finding's advice, and adjusts the finding's confidence; removes advice that does not help.
    fn judge(&self, finding: &mut Finding, at: usize, now: &Runs) {
        let mut failed = Vec::new();
        for advice in &mut finding.tries {
            let Some(change) = &advice.change else {
                continue;
            };
            match self.expected(change, at, now) {
                Ok(expected) => {
                    advice.expected = expected;
                    let is_share_of_time = finding.share > 0.0 && !finding.is_of_units;
                    if is_share_of_time && saves_more(advice, finding.share) {
                        advice.what += ", which shortens other waits too";
                    }
                }
                Err(SimulationFailure::TooManyEvents) => {
                    advice.what += " (not tried: it would take too many simulated events; raise the limit with `--simulate`)";
                }
                Err(SimulationFailure::Failed(why)) => {
                    advice.what += &format!(" ({why})");
                    failed.push(advice.what.clone());
                }
            }
        }
        let has_failed = |advice: &Advice| failed.contains(&advice.what);
        leave_out(finding, has_failed, "fails when it is simulated");
        // What harms, or helps by chance, is not advised, but it shows what the cause costs.
        let best_of_all = best_gain(&finding.tries);
        leave_out(finding, is_harm, "is slower when it is simulated");
        leave_out(finding, is_chance, "helps in some runs and harms in others");
        let Some(best) = best_gain(&finding.tries) else {
            if let Some(best) = best_of_all {
                self.doubt(finding, at, best);
            }
            return;
        };
        let is_removal = |advice: &&Advice| {
            let change = advice.change.as_ref();
            change.is_some_and(|change| takes_away(finding, change))
        };
        finding.saves = finding
            .tries
            .iter()
            .filter(is_removal)
            .filter_map(|advice| Some(advice.expected?.saves))
            .reduce(f64::max);
        if self.is_simulated(at) && best >= PROVES {
            finding.confidence = finding.confidence.max(PROVED);
        } else {
            self.doubt(finding, at, best);
        }
        let of_no_use = |advice: &Advice| gain(advice).is_some_and(|gain| gain < HELPS);
        leave_out(finding, of_no_use, "does not help on its own");
    }

    /// Lowers the confidence of a finding whose best advice gains that little, if the run itself was simulated.
    fn doubt(&self, finding: &mut Finding, at: usize, best: f64) {
        if self.is_simulated(at) && !finding.is_of_units {
            finding.confidence = finding.confidence.min(most_confidence(best));
        }
    }

    /// Turns a suspect into a finding if removing it helps in nearly every pair of runs and enough on average; else `None`.
    fn convict(&self, mut finding: Finding, at: usize, now: &Runs) -> Option<Finding> {
        self.judge(&mut finding, at, now);
        let always = |advice: &&Advice| {
            advice
                .expected
                .is_some_and(|expected| expected.times_as_fast[1] >= HELPS)
        };
        let gain = finding
            .tries
            .iter()
            .filter(always)
            .filter_map(gain)
            .reduce(f64::max)
            .filter(|gain| *gain >= FINDS)?;
        finding.share = 1.0 - 1.0 / gain;
        finding.sentence += &format!(
            "; this costs {:.0} % of the time, according to simulations with and without it",
            100.0 * finding.share
        );
        Some(finding)
    }
}

/// Whether an advice saves much more than the share of the time that its finding is about, so that the change removes something else too.
fn saves_more(advice: &Advice, share: f64) -> bool {
    gain(advice).is_some_and(|gain| 1.0 - 1.0 / gain > MORE * share + LEAST)
}

/// Removes advice from a finding and adds to its evidence which, and why.
fn leave_out(finding: &mut Finding, which: impl Fn(&Advice) -> bool, why: &str) {
    let (out, kept) = std::mem::take(&mut finding.tries)
        .into_iter()
        .partition::<Vec<Advice>, _>(|advice| which(advice));
    finding.tries = kept;
    finding.evidence.extend(out.iter().map(|advice| Evidence {
        what: format!("{why}: {}", advice.text()),
        ..Evidence::default()
    }));
}

/// Whether an advice makes no run faster and most of them slower.
fn is_harm(advice: &Advice) -> bool {
    advice.expected.is_some_and(|expected| {
        let [mean, _, greatest] = expected.times_as_fast;
        mean < HARMS && greatest < HELPS
    })
}

/// Whether the gain of an advice is small and chance decides whether it helps or harms in a run.
fn is_chance(advice: &Advice) -> bool {
    advice.expected.is_some_and(|expected| {
        let [mean, least, _] = expected.times_as_fast;
        least < HARMS && mean < CERTAIN
    })
}

/// Whether a summary takes part in comparisons: one of a measured part, or for `total` (`together`) that of all parts.
fn is_compared(summary: &Summary, together: bool) -> bool {
    !summary.background && (together || summary.part_index.is_some())
}

/// The highest confidence of a finding whose best advice gains less than [`PROVES`]: it rises linearly from [`DOUBTED`] at
/// [`HELPS`] to [`PROVED`] at [`PROVES`].
fn most_confidence(gain: f64) -> f64 {
    let progress = ((gain - HELPS) / (PROVES - HELPS)).clamp(0.0, 1.0);
    DOUBTED + progress * (PROVED - DOUBTED)
}

/// Whether an initiator's operations have times of their own to begin; a timing that is not written is none.
fn is_paced(part: &MeasurementPart) -> bool {
    let calls = part.procedure.calls(PairSide::Initiator);
    calls.iter().any(|call| match call {
        OperationCall::Pace(DelayArgument::Timing(index)) => *index < part.data.timings.len(),
        OperationCall::Pace(_) => true,
        _ => false,
    })
}

/// The best gain of these pieces of advice.
fn best_gain(tries: &[Advice]) -> Option<f64> {
    tries.iter().filter_map(gain).reduce(f64::max)
}

/// How many times as fast an advice makes the measurement, on average.
fn gain(advice: &Advice) -> Option<f64> {
    advice.expected.map(|expected| expected.times_as_fast[0])
}

/// Whether a higher value of the metric is better.
fn is_rate(metric: Gauge) -> bool {
    matches!(metric, Gauge::Throughput | Gauge::Calls)
}

/// Values of the same runs without and with a change.
type ValuePair<'r> = (&'r [f64], &'r [f64]);

/// A figure without and with a change.
struct RunEffect {
    now: f64,
    then: f64,
    /// How many times as fast the change makes it.
    gain: f64,
}

impl RunEffect {
    /// The effect in one run: geometric means over its parts.
    fn measure(metric: Gauge, pairs: &[ValuePair<'_>], run: usize) -> Option<Self> {
        let mean = |values: &dyn Fn(&ValuePair<'_>) -> Option<f64>| {
            let sum: f64 = pairs
                .iter()
                .map(|pair| values(pair).map(f64::ln))
                .sum::<Option<f64>>()?;
            Some((sum / pairs.len() as f64).exp())
        };
        let now = mean(&|(now, _)| now.get(run).copied())?;
        let then = mean(&|(_, then)| then.get(run).copied())?;
        Self::from_figures(metric, now, then)
    }

    /// The effect over all runs: arithmetic means, as in tables.
    fn mean(metric: Gauge, effects: &[Self]) -> Option<Self> {
        let mean = |figure: fn(&Self) -> f64| {
            effects.iter().map(figure).sum::<f64>() / effects.len() as f64
        };
        Self::from_figures(
            metric,
            mean(|effect| effect.now),
            mean(|effect| effect.then),
        )
    }

    fn from_figures(metric: Gauge, now: f64, then: f64) -> Option<Self> {
        let gain = if is_rate(metric) {
            then / now
        } else {
            now / then
        };
        (gain.is_finite() && gain > 0.0).then_some(Self { now, then, gain })
    }
}

/// The values that are compared: each part by its main metric, or all parts by the elapsed time or the rate of answered calls.
fn compared<'r>(
    now: &'r Runs,
    then: &'r Runs,
    as_a_whole: bool,
) -> Option<(Gauge, Vec<ValuePair<'r>>)> {
    let first = now.parts.first()?;
    let metric = RunMetric::MAIN
        .into_iter()
        .find(|metric| !first.values(*metric).is_empty())?;
    let gauge = match metric {
        RunMetric::Throughput => Gauge::Throughput,
        // If calls were lost, response times hide that: only answered calls have one. The rate of answered calls shows it.
        RunMetric::Response if now.lost_calls + then.lost_calls > 0 => Gauge::Calls,
        RunMetric::Response if as_a_whole => Gauge::Elapsed,
        RunMetric::Response => Gauge::Response,
        _ => Gauge::Connect,
    };
    if gauge == Gauge::Calls {
        return Some((gauge, vec![(&now.calls_s, &then.calls_s)]));
    }
    if gauge == Gauge::Elapsed {
        return Some((gauge, vec![(&now.elapsed_s, &then.elapsed_s)]));
    }
    // If one part gains what another loses, their mean hides the total; so the figure of all parts together counts.
    if let (Gauge::Throughput | Gauge::Response, Some(now), Some(then)) =
        (gauge, &now.together, &then.together)
        && !now.values(metric).is_empty()
    {
        return Some((gauge, vec![(now.values(metric), then.values(metric))]));
    }
    let both = now
        .parts
        .iter()
        .zip(&then.parts)
        .map(|(now, then)| (now.values(metric), then.values(metric)));
    Some((gauge, both.collect()))
}
