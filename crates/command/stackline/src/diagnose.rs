//! `stackline diagnose`: reports what limits a kept run, with evidence and advice.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::findings::{describe_last_program, find_named_requests, find_transfers};
use stackline_analyze::loaded_run::{LoadedRun, incomplete};
use stackline_whatif::advice;
use stackline_whatif::simulated_runs::SimulationBudget;

/// Diagnoses a run and stores the findings in its directory.
pub(crate) fn diagnose(flags: &flags::Diagnose) -> Result {
    let loaded = LoadedRun::whatever(&flags.run, flags.most_events)?;
    let run = &loaded.run;
    incomplete(run, "diagnosed").iter().for_each(output::say);
    let scope = stackline_analyze::scope::scope(&loaded.input());
    if run.plan.measurements.is_empty() && scope.is_none() {
        let path = run.path.display();
        return Err(Error::input(format!(
            "{path} has neither measurements nor events to diagnose"
        ))
        .hint("diagnose a run made by `stackline run`, `watch --keep` or `import`"));
    }
    if loaded.events.is_empty() && scope.is_none() {
        let path = run.path.display();
        output::say(&format_args!(
            "warning: {path} has no events; findings from its records alone are less certain\nhint: `stackline run SPEC --trace` keeps events"
        ));
    }
    say_notes(&loaded);
    let budget = if flags.simulate {
        SimulationBudget::patience()
    } else {
        SimulationBudget::moment()
    };
    let findings = loaded.placed(advice::findings(&loaded, budget));
    let mut json =
        stackline_report::findings_json(&run.path.display().to_string(), run.complete, &findings);
    json["scope"] = scope.clone().into();
    json["left_out"] = serde_json::json!(loaded.index.left_out);
    let requests = find_named_requests(&loaded.input());
    if !requests.is_empty() {
        json["requests"] = serde_json::json!(requests);
    }
    let transfers = find_transfers(&loaded.input());
    if !transfers.is_empty() {
        json["transfers"] = serde_json::json!(transfers);
    }
    if let Err(error) = run.keep_findings(&json) {
        output::say(&format_args!("warning: {error}\nhint: {}", error.hint));
    }
    if flags.json {
        output::json(&json, false)?;
    } else {
        if !requests.is_empty() {
            output::print(&format!(
                "{}\n",
                stackline_report::named_requests(&requests)
            ))?;
        }
        if !transfers.is_empty() {
            output::print(&format!("{}\n", stackline_report::transfers(&transfers)))?;
        }
        output::print(&stackline_report::findings(&run.plan, &findings))?;
        let nothing = if findings.is_empty() {
            "No cause was found. "
        } else {
            "\n"
        };
        scope.map_or(Ok(()), |scope| {
            output::print(&stackline_report::wrapped(&format!("{nothing}{scope}")))
        })?;
    }
    Ok(Exit::Done)
}

/// Says how the traced program ended, and what was not read of the run.
fn say_notes(loaded: &LoadedRun) {
    let left_out = stackline_requests::LeftOut::of_names(&loaded.index.left_out).lines();
    let end = describe_last_program(&loaded.input());
    end.into_iter()
        .chain(loaded.note("diagnose"))
        .chain(left_out)
        .for_each(|note| output::say(&format_args!("note: {note}")));
}
