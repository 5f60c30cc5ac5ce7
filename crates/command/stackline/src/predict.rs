//! `stackline predict`: predicts the results of a specification by closed-form formulas, beside a kept run if one is
//! named. What no formula covers is simulated within a time budget; nothing is measured.

use crate::checked_plan::{Specification as _, overrides, source_of};
use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::loaded_run::incomplete;
use stackline_analyze::predicted::pair_with_summaries;
use stackline_core::plan::World;
use stackline_runs::StoredRun;
use stackline_whatif::predicted::fill_by_simulation;
use stackline_whatif::simulated_runs::SimulationBudget;

/// Predicts every measurement that crosses a network.
pub(crate) fn predict(flags: &flags::PredictFlags) -> Result {
    let source = source_of(&flags.text)?;
    let (plan, _) = source.work(&flags.text)?;
    if plan.networks.is_empty() {
        let message = format!(
            "there is nothing to predict from: the specification ({}) has no network",
            source.name
        );
        let hint = "declare one, such as `network wan { host a, b; link a - b 100 Mbit/s 5 ms; }`, and write `across wan`";
        return Err(Error::input(message).hint(hint));
    }
    let run = flags.run.as_deref().map(StoredRun::open).transpose()?;
    let summaries = run.as_ref().map(|run| {
        incomplete(run, "shown").iter().for_each(output::say);
        stackline_analyze::summarise(&run.plan, &run.records)
    });
    let mut predictions = stackline_model::predict(&plan);
    if !flags.forms {
        let given = overrides(&flags.text)?;
        let budget = if flags.simulate {
            SimulationBudget::patience()
        } else {
            SimulationBudget::moment()
        };
        fill_by_simulation(
            || source.plan_in(World::Simulated, given),
            &mut predictions,
            &budget,
        );
    }
    let open = predictions
        .iter()
        .any(|prediction| prediction.answer().is_none());
    let predictions = pair_with_summaries(predictions, &summaries.unwrap_or_default());
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
