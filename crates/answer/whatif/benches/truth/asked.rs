//! A question predicted, and run.

use crate::runs::plan_of;
use stackline_analyze::predicted::{PredictedQuantity, SIMULATED};
use stackline_analyze::summarise;
use stackline_analyze::summary::{RunMetric, Summary};
use stackline_core::plan::Plan;
use stackline_runner::simulate;
use stackline_verdicts::Question;
use stackline_verdicts::question::RUNS;
use stackline_whatif::predicted::fill_by_simulation;
use stackline_whatif::simulated_runs::{SimulationBudget, single_group_plan};
use std::sync::atomic::AtomicBool;

/// So far from the seeds of its runs are those of a prediction.
const OTHER_SEEDS: u64 = 1_000_000_007;

/// What was predicted, and what came of it.
pub(crate) struct Asked {
    pub(crate) predicted: Option<f64>,
    pub(crate) interval: Vec<f64>,
    /// Whether it comes from simulated runs instead of a form.
    pub(crate) is_simulated: bool,
    /// One a run.
    pub(crate) figures: Vec<f64>,
}

impl Asked {
    /// What is predicted of a question, by forms alone or with what is simulated, and the figures of its runs.
    pub(crate) fn new(question: &Question, simulates: bool) -> Result<Self, String> {
        let plan = plan_of(&question.text)?;
        let other = Plan {
            // What it simulates are other runs than those it is judged by.
            seed: question.seed + OTHER_SEEDS,
            ..plan.clone()
        };
        let mut predictions = stackline_model::predict(&other);
        if simulates {
            let budget = SimulationBudget::moment();
            fill_by_simulation(|| Ok(other), &mut predictions, &budget);
        }
        let first = predictions.first().ok_or("nothing is predicted")?;
        let summary = simulated_summary(&plan, first.part_index)?;
        let answer = first.answer();
        let quantity = answer.map(|answer| answer.quantity);
        let metric = match quantity {
            Some(PredictedQuantity::Response) => RunMetric::Response,
            Some(PredictedQuantity::Connect) => RunMetric::Connect,
            Some(PredictedQuantity::Throughput) | None => RunMetric::Throughput,
        };
        Ok(Self {
            predicted: answer.map(|answer| answer.value),
            interval: answer.map_or_else(Vec::new, |answer| answer.interval.to_vec()),
            is_simulated: answer.is_some_and(|answer| answer.limit == SIMULATED),
            figures: summary.values(metric).to_vec(),
        })
    }
}

/// What runs of the seeds of a plan come to.
fn simulated_summary(plan: &Plan, part: Option<usize>) -> Result<Summary, String> {
    let plan = single_group_plan(plan, 0);
    let (nobody, mut records) = (AtomicBool::new(false), Vec::new());
    let seeds = plan.seed..=plan.seed + u64::from(RUNS) - 1;
    simulate(&plan, seeds, &nobody, |some| records.extend(some)).map_err(|error| error.message)?;
    let mut summaries = summarise(&plan, &records).into_iter();
    let of_it = summaries.find(|summary| !summary.background && summary.part_index == part);
    of_it.ok_or_else(|| "nothing was measured".to_owned())
}
