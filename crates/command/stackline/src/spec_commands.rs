//! The commands that only read a specification or list stacks: `check`, `fmt`, `plan`, `stacks`.

use crate::checked_plan::{
    ShownCheck, SpecSource, Specification as _, all_sources_of, mistakes_shown, shown_check,
    source_of,
};
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags;
use crate::output;
use serde_json::{Value, json};
use stackline_core::catalogue::StackTable;
use stackline_core::plan::{Plan, World};
use stackline_core::time::Duration;
use stackline_core::units::counted;
use stackline_runner::spec_source;
use std::path::Path;

/// Prints every error, or a summary of the specification if there is none; of a Markdown file, of each of its
/// specifications.
pub(crate) fn check(flags: &flags::SpecTextFlags) -> Result {
    let sources = all_sources_of(flags)?;
    let checks = sources.iter().map(|source| shown_check(source, flags));
    let checks = checks.collect::<Result<Vec<ShownCheck>>>()?;
    let is_right = checks.iter().all(|check| check.plan.is_some());
    let is_markdown = flags.spec.as_deref().is_some_and(SpecSource::is_markdown);
    if flags.json {
        let mut value = checks_json(&checks);
        if is_markdown {
            let each = sources.iter().zip(&checks).map(|(source, check)| {
                let mut one = summary(&check.plan.iter().collect::<Vec<_>>());
                one["ok"] = check.plan.is_some().into();
                one["name"] = source.name.clone().into();
                one["line"] = source.first_line().into();
                one
            });
            value["specifications"] = each.collect();
        }
        output::json(&value, !is_right)?;
    } else {
        for (source, check) in sources.iter().zip(&checks) {
            if let Some(plan) = &check.plan {
                output::print(&summary_line(source, plan))?;
            }
        }
    }
    match is_right {
        true => Ok(Exit::Done),
        false => Err(already_shown(Blame::Input)),
    }
}

/// All checks as one JSON object.
fn checks_json(checks: &[ShownCheck]) -> Value {
    let plans: Vec<&Plan> = checks
        .iter()
        .filter_map(|check| check.plan.as_ref())
        .collect();
    let is_right = plans.len() == checks.len();
    let mut value = match (is_right, checks) {
        (true, _) => summary(&plans),
        (false, [one]) => json!({ "right": one.right }),
        (false, _) => json!({ "right": null }),
    };
    value["ok"] = is_right.into();
    let diagnostics = checks.iter().flat_map(|check| check.diagnostics.clone());
    value["diagnostics"] = diagnostics.collect();
    value
}

/// Measurements, runs and the sum of the time limits of plans.
fn summary(plans: &[&Plan]) -> Value {
    let measurements: usize = plans.iter().map(|plan| plan.measurements.len()).sum();
    let mut most = plans.iter().map(|plan| plan.most_time());
    let most = most.try_fold(Duration::ZERO, |sum, time| Some(sum + time?));
    let most_s = most.map(Duration::seconds);
    let runs = plans.iter().map(|plan| runs_of(plan)).sum::<u64>();
    json!({ "measurements": measurements, "runs": runs, "most_s": most_s })
}

fn runs_of(plan: &Plan) -> u64 {
    plan.measurements.iter().map(|m| u64::from(m.runs)).sum()
}

fn summary_line(source: &SpecSource, plan: &Plan) -> String {
    let line = match source.is_block() {
        true => format!(" (line {})", source.first_line()),
        false => String::new(),
    };
    format!(
        "{}{line}: ok, {}, {}{}\n",
        source.name,
        counted(plan.measurements.len() as u64, "measurement"),
        counted(runs_of(plan), "run"),
        at_most(plan)
    )
}

/// What `check` says of a valid specification, as JSON.
pub(crate) fn summary_json(plan: &Plan) -> Value {
    let mut value = summary(&[plan]);
    value["ok"] = true.into();
    value
}

/// The text `, at most 90 s given the time limits`, if every measurement has a limit.
fn at_most(plan: &Plan) -> String {
    let time = plan.most_time().filter(|_| !plan.measurements.is_empty());
    time.map_or_else(String::new, |time| {
        format!(", at most {time} given the time limits")
    })
}

/// Prints, checks or writes the specification in its canonical format; in a Markdown file all its specifications.
pub(crate) fn fmt(flags: &flags::Fmt) -> Result {
    let markdown = flags
        .spec
        .as_deref()
        .filter(|path| SpecSource::is_markdown(path));
    let source = match markdown {
        Some(path) => SpecSource::read_whole(path)?,
        None => SpecSource::named_by(flags.expression.as_deref(), flags.spec.as_deref())?,
    };
    if flags.write && source.is_block() {
        let all = source.shown().0;
        return Err(
            Error::input("--write formats all specifications of a Markdown file")
                .hint(format!("write {all} without a block behind it")),
        );
    }
    if flags.write && flags.spec.as_deref() == Some(Path::new("-")) {
        return Err(Error::input("--write needs a file").hint("omit --write to print the result"));
    }
    let formatted = match markdown {
        Some(_) => stackline_spec::format_markdown(&source.text),
        None => stackline_spec::format(&source.text),
    };
    let formatted = formatted.map_err(|mistakes| {
        let (name, text) = source.shown();
        mistakes_shown(&mistakes, name, text)
    })?;
    // Of a block, blank lines stand for what is before it in its file.
    let (formatted, original) = match source.is_block() {
        true => (formatted.trim_start().to_owned(), source.own_text()),
        false => (formatted, source.text.clone()),
    };
    if flags.check {
        return Ok(if formatted == original {
            Exit::Done
        } else {
            Exit::Failed
        });
    }
    let Some(file) = flags.spec.as_ref().filter(|_| flags.write) else {
        output::print_for_programs(&formatted)?;
        return Ok(Exit::Done);
    };
    if formatted != original {
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
