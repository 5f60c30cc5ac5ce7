//! `stackline predict`: predicts the results of a specification by closed-form formulas, beside a kept run if one is
//! named. What no formula covers is simulated within a time budget; nothing is measured.

use crate::checked_plan::{SpecSource, Specification as _, overrides, source_of};
use crate::exit::{Error, Exit, Result};
use crate::flags::{self, SpecTextFlags};
use crate::output;
use stackline_analyze::loaded_run::incomplete;
use stackline_analyze::predicted::{Predicted, pair_with_summaries};
use stackline_core::plan::{Plan, World};
use stackline_runs::StoredRun;
use stackline_whatif::predicted::fill_by_simulation;
use stackline_whatif::simulated_runs::SimulationBudget;

/// Predicts every measurement that crosses a network.
pub(crate) fn predict(flags: &flags::PredictFlags) -> Result {
    let source = source_of(&flags.text)?;
    let (plan, _) = source.work(&flags.text)?;
    let run = flags.run.as_deref().map(StoredRun::open).transpose()?;
    let warnings = run.as_ref().map(|run| incomplete(run, "shown"));
    warnings
        .into_iter()
        .flatten()
        .for_each(|it| output::say(&it));
    let predictions = predictions(&PredictionQuestion {
        source: &source,
        text: &flags.text,
        plan: &plan,
        run: run.as_ref(),
        simulate: flags.simulate,
        forms: flags.forms,
    })?;
    let open = predictions
        .iter()
        .any(|predicted| predicted.prediction.answer().is_none());
    if flags.text.json {
        output::json(&stackline_report::prediction_json(&predictions), false)?;
    } else {
        output::print(&stackline_report::prediction(&predictions, run.is_some()))?;
    }
    if open && !flags.simulate {
        output::say(
            &"hint: `stackline predict --simulate` takes longer, but simulates what no formula covers",
        );
    }
    Ok(Exit::Done)
}

/// What is to be predicted, and how.
pub(crate) struct PredictionQuestion<'q> {
    pub(crate) source: &'q SpecSource,
    /// What replaces parts of the specification.
    pub(crate) text: &'q SpecTextFlags,
    /// Its plan.
    pub(crate) plan: &'q Plan,
    /// A kept run whose figures stand beside the predictions.
    pub(crate) run: Option<&'q StoredRun>,
    /// Takes up to a minute to simulate what no form covers, instead of two seconds.
    pub(crate) simulate: bool,
    /// Simulates nothing.
    pub(crate) forms: bool,
}

/// Predicts every measurement that crosses a network.
///
/// # Errors
/// When the specification has no network.
pub(crate) fn predictions(question: &PredictionQuestion<'_>) -> Result<Vec<Predicted>> {
    if question.plan.networks.is_empty() {
        let message = format!(
            "there is nothing to predict from: the specification ({}) has no network",
            question.source.name
        );
        let hint = "declare one, such as `network wan { host a, b; link a - b 100 Mbit/s 5 ms; }`, and write `across wan`";
        return Err(Error::input(message).hint(hint));
    }
    let mut predictions = stackline_model::predict(question.plan);
    if !question.forms {
        let given = overrides(question.text)?;
        let budget = if question.simulate {
            SimulationBudget::patience()
        } else {
            SimulationBudget::moment()
        };
        fill_by_simulation(
            || question.source.plan_in(World::Simulated, given),
            &mut predictions,
            &budget,
        );
    }
    let summaries = question
        .run
        .map(|run| stackline_analyze::summarise(&run.plan, &run.records));
    Ok(pair_with_summaries(
        predictions,
        &summaries.unwrap_or_default(),
    ))
}
