//! The commands that only read a specification or list stacks: `check`, `fmt`, `plan`, `stacks`.

use crate::checked_plan::{SpecSource, Specification as _, mistakes_shown, source_of};
use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::{Plan, World};
use stackline_core::time::Duration;
use stackline_core::units::counted;
use stackline_runner::spec_source;

/// Prints every error, or a summary of the specification if there is none.
pub(crate) fn check(flags: &flags::SpecTextFlags) -> Result {
    let source = source_of(flags)?;
    let (plan, _) = source.plan_of(flags)?;
    if flags.json {
        output::json(&summary_json(&plan), false)?;
    } else {
        let (measurements, runs) = (
            counted(plan.measurements.len() as u64, "measurement"),
            counted(run_count(&plan), "run"),
        );
        output::print(&format!(
            "{}: ok, {measurements}, {runs}{}\n",
            source.name,
            at_most(&plan)
        ))?;
    }
    Ok(Exit::Done)
}

/// What `check` says of a valid specification, as JSON.
pub(crate) fn summary_json(plan: &Plan) -> serde_json::Value {
    let most_s = plan.most_time().map(Duration::seconds);
    serde_json::json!({"ok": true, "measurements": plan.measurements.len(), "runs": run_count(plan), "most_s": most_s})
}

/// The number of counted runs.
fn run_count(plan: &Plan) -> u64 {
    plan.measurements.iter().map(|m| u64::from(m.runs)).sum()
}

/// The text `, at most 90 s given the time limits`, if every measurement has a limit.
fn at_most(plan: &Plan) -> String {
    let time = plan.most_time().filter(|_| !plan.measurements.is_empty());
    time.map_or_else(String::new, |time| {
        format!(", at most {time} given the time limits")
    })
}

/// Prints, checks or writes the specification in its canonical format.
pub(crate) fn fmt(flags: &flags::Fmt) -> Result {
    let source = SpecSource::named_by(flags.expression.as_deref(), flags.spec.as_deref())?;
    let formatted = stackline_spec::format(&source.text).map_err(|mistakes| {
        let (name, text) = source.named();
        mistakes_shown(&mistakes, name, text)
    })?;
    if flags.check {
        return Ok(if formatted == source.text {
            Exit::Done
        } else {
            Exit::Failed
        });
    }
    let Some(file) = flags.spec.as_ref().filter(|_| flags.write) else {
        output::print_for_programs(&formatted)?;
        return Ok(Exit::Done);
    };
    if formatted != source.text {
        output::file(file, formatted)?;
    }
    Ok(Exit::Done)
}

/// Prints what would be run.
pub(crate) fn plan(flags: &flags::SpecTextFlags) -> Result {
    let (plan, notes) = source_of(flags)?.work(flags)?;
    if flags.json {
        output::json(&plan, true)?;
    } else {
        output::print(&stackline_report::plan(
            &plan,
            &spec_source::available(&spec_source::worlds()),
        ))?;
        for note in notes {
            output::print(&format!("\n{note}\n"))?;
        }
    }
    Ok(Exit::Done)
}

/// Lists the stacks, or prints one stack's table.
pub(crate) fn stacks(flags: &flags::Stacks) -> Result {
    let world = flags.world;
    let all = spec_source::worlds()
        .into_iter()
        .find(|(can, _)| can.world == world)
        .map_or_else(Vec::new, |(_, all)| all);
    let chosen: Vec<StackTable> = match &flags.name {
        None => all,
        Some(name) => {
            let names: Vec<&str> = all.iter().map(|s| s.name).collect();
            let found = all
                .iter()
                .find(|s| s.name.eq_ignore_ascii_case(name))
                .copied();
            let is_it = |stack: &StackTable| stack.name.eq_ignore_ascii_case(name);
            let elsewhere = spec_source::worlds()
                .into_iter()
                .find(|(_, all)| all.iter().any(is_it));
            let unknown = || {
                let error = Error::input(format!("unknown stack {name} in the {world} world"));
                match elsewhere {
                    Some((can, _)) => {
                        error.hint(format!("the {0} world has it; use `--in {0}`", can.world))
                    }
                    None => error.hint(format!("available stacks: {}", names.join(", "))),
                }
            };
            vec![found.ok_or_else(unknown)?]
        }
    };
    if flags.json {
        output::json(&chosen, true)?;
    } else if flags.name.is_none() {
        let (far_ends, own): (Vec<StackTable>, Vec<StackTable>) =
            chosen.iter().partition(|table| table.far_end);
        let mut list = stackline_report::stack_list(&own);
        if !far_ends.is_empty() {
            list += "\nProtocols of servers outside the run (`to \"http://127.0.0.1/\"`):\n";
            list += &stackline_report::stack_list(&far_ends);
        }
        let more = match flags.world {
            World::Simulated => {
                "`stackline stacks NAME --in simulated` prints a stack's options and its mapping.\n"
            }
            _ => {
                "`stackline stacks NAME` prints a stack's options and its mapping to system calls; with `--in simulated`, those of the simulated stack.\n"
            }
        };
        output::print(&format!("{list}\n{more}"))?;
    } else {
        output::print(
            &chosen
                .iter()
                .map(stackline_report::stack)
                .collect::<String>(),
        )?;
    }
    Ok(Exit::Done)
}
