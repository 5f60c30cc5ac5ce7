//! `stackline truth generate`: makes simulated runs with known causes and their events, for testing programs that find
//! causes. The cost of a cause is found by removing it and simulating again, independently of the findings.

use crate::exit::{Blame, Error, Exit, Result};
use crate::flags::{Generate, TruthCommand, TruthFlags as Flags};
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate;
use stackline_runner::spec_source::SpecSource;
use stackline_runs::{RunDirectory, replace_with};
use stackline_spec::Overrides;
use stackline_truth::judge::{CAUSE, MeasuredTruth, NONE, seconds_for_all};
use stackline_truth::{LimitCause, Scenario};
use stackline_whatif::unattended_runs::{UnattendedOptions, make_unattended_runs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// The file in a run that holds its true causes.
const LABEL: &str = "truth.json";

/// Carries out the subcommand of `truth`.
pub(crate) fn truth(flags: &Flags) -> Result {
    match &flags.command {
        TruthCommand::Generate(flags) => generate(flags),
    }
}

/// Makes the labelled runs, one for each seed; those that were complete before an interruption stay.
fn generate(flags: &Generate) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let mut made = 0;
    // The bar draws itself on a terminal only.
    let bar = ProgressBar::new(flags.count);
    for seed in flags.from..flags.from.saturating_add(flags.count) {
        bar.inc(1);
        let scenario = Scenario::draw(seed);
        let label = match label(&scenario, &interrupted) {
            Ok(label) => label,
            // Example: a connection that gives up after too many losses. Such a run cannot be labelled.
            Err(error) if error.blame == Blame::Measurement => {
                output::say(&format_args!("seed {seed} skipped: {}", error.message));
                continue;
            }
            Err(error) => return Err(error),
        };
        keep(&scenario, &label, flags, &interrupted)?;
        made += 1;
    }
    bar.finish_and_clear();
    output::print(&format!(
        "runs written to {}: {made}, each with a {LABEL}\n",
        flags.directory.display()
    ))?;
    Ok(Exit::Done)
}

/// The label of a scenario: its description, and how much time each change saves.
fn label(scenario: &Scenario, interrupted: &AtomicBool) -> Result<Value> {
    let first = measured(scenario, interrupted)?;
    let took_s = seconds_for_all(&first);
    let mut without = BTreeMap::new();
    for change in LimitCause::ALL {
        if let Some(other) = change.without(scenario) {
            without.insert(change, seconds_for_all(&measured(&other, interrupted)?));
        }
    }
    let truth = MeasuredTruth::new(took_s, &without);
    let spent = [&first.initiator, &first.responder].map(|side| {
        let (start, stop) = side.transport?;
        Some(stop.spent?.since(start.spent?))
    });
    Ok(json!({
        "stackline": env!("CARGO_PKG_VERSION"),
        "seed": scenario.seed,
        "scenario": scenario,
        "took_s": took_s,
        "without_s": without,
        "saves": truth.saves,
        "causes": truth.causes(),
        "cause_from": CAUSE,
        "no_cause_below": NONE,
        "spent": { "initiator": spent[0], "responder": spent[1] },
    }))
}

/// The record of a scenario's measured part, simulated once and not stored.
fn measured(scenario: &Scenario, interrupted: &AtomicBool) -> Result<RunRecord> {
    let (plan, mut records) = (plan(scenario)?, Vec::new());
    simulate(&plan, plan.seed..=plan.seed, interrupted, |some| {
        records.extend(some)
    })?;
    let of_it = records.into_iter().find(|record| record.part == 0);
    of_it.ok_or_else(|| Error::new(Blame::Interrupted, "interrupted"))
}

fn plan(scenario: &Scenario) -> Result<Plan> {
    SpecSource::made("drawn", scenario.to_string()).plan_in(World::Simulated, Overrides::default())
}

/// Makes the run itself with its events, and writes its label beside them.
fn keep(
    scenario: &Scenario,
    label: &Value,
    flags: &Generate,
    interrupted: &Arc<AtomicBool>,
) -> Result<()> {
    let plan = plan(scenario)?;
    let directory = RunDirectory::create(
        &flags.directory,
        &format!("truth-{}", scenario.seed),
        SystemTime::now(),
        flags.sharing.access(),
    )?;
    directory.write_specification(&scenario.to_string())?;
    write_label(directory.path(), label)?;
    let capture = if flags.capture {
        vec!["all".to_owned()]
    } else {
        Vec::new()
    };
    let options = UnattendedOptions {
        trace: true,
        capture,
        ended: interrupted,
        signalled: interrupted,
        warn: |words| output::say(&words),
    };
    make_unattended_runs(&plan, directory, options)?;
    if interrupted.load(Ordering::Relaxed) {
        Err(Error::new(Blame::Interrupted, "interrupted"))
    } else {
        Ok(())
    }
}

fn write_label(run: &Path, label: &Value) -> Result<()> {
    let text = format!("{label:#}\n");
    replace_with(&run.join(LABEL), text.as_bytes()).map_err(Error::from)
}
