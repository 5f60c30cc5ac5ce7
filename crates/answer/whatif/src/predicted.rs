//! What no form covers, simulated at once: a few runs of different seeds, kept nowhere.

use crate::simulated_runs::{SimulationBudget, simulate_summaries, single_group_plan};
use stackline_analyze::predicted::{PartPrediction, PredictionOutcome, RUNS, by_simulation};
use stackline_core::error::Result;
use stackline_core::plan::Plan;

/// Puts what simulated runs say in the place of what is not covered, as far as the budget goes. Where they say nothing, why. `simulated` is
/// the plan as it is carried out in the simulated world.
pub fn fill_by_simulation(
    simulated: impl FnOnce() -> Result<Plan>,
    predictions: &mut [PartPrediction],
    budget: &SimulationBudget,
) {
    let open = |prediction: &&PartPrediction| {
        prediction.answer().is_none() && prediction.network.is_some()
    };
    let mut indices: Vec<usize> = predictions
        .iter()
        .filter(open)
        .map(|prediction| prediction.measurement)
        .collect();
    indices.dedup();
    let plan = if indices.is_empty() {
        None
    } else {
        Some(simulated())
    };
    for index in indices {
        let found = match &plan {
            Some(Ok(plan)) => simulate_summaries(&single_group_plan(plan, index), RUNS, budget),
            Some(Err(error)) => Err(error.message.clone()),
            None => return,
        };
        for prediction in predictions
            .iter_mut()
            .filter(|prediction| prediction.measurement == index)
        {
            let PredictionOutcome::NotCovered(reason) = &prediction.outcome else {
                continue;
            };
            prediction.outcome = match &found {
                Ok(summaries) => {
                    let summary = summaries
                        .iter()
                        .find(|summary| summary.part_index == prediction.part_index);
                    let outcome = summary.and_then(|summary| by_simulation(reason, summary, RUNS));
                    outcome.unwrap_or_else(|| {
                        unknown(reason, "too few runs finished, and their results differ")
                    })
                }
                Err(why) => unknown(reason, why),
            };
        }
    }
}

fn unknown(reason: &str, why: &str) -> PredictionOutcome {
    PredictionOutcome::NotCovered(format!("{reason}; simulated: {why}"))
}
