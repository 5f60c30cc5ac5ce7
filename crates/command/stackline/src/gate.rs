//! `stackline gate`: judges a run by another or by a baseline file, and saves baselines.

use crate::exit::{Error, Exit, Result};
use crate::flags::GateFlags;
use crate::output;
use crate::verdicts::{exit_of_gate, new_report, say_lines, write_reports};
use serde_json::json;
use stackline_analyze::baseline_runs::{baseline_of, gate_runs};
use stackline_analyze::compared_runs::same_run;
use std::path::Path;

/// Judges the new run by the base, or saves a baseline.
pub(crate) fn gate(flags: &GateFlags) -> Result {
    if let Some(file) = &flags.save {
        return save(flags, file);
    }
    let new = flags.new.as_ref().ok_or_else(|| {
        Error::input("a gate takes two runs").hint("write `stackline gate BASE NEW`")
    })?;
    let rule = flags.rule.rule()?;
    if let Some(run) = same_run(&flags.base, new) {
        let message = format!("both arguments name the same run, {}", run.display());
        return Err(Error::input(message).hint("a run is never worse than itself; `last~1` is the one before `last`, and of several runs with one name the newest is meant"));
    }
    let mut warn = |words: String| output::say(&words);
    let outcome = gate_runs(&flags.base, new, rule, &flags.scope.scope(), &mut warn)?;
    if flags.json {
        output::json(&stackline_report::regressions_json(&outcome), false)?;
    } else {
        output::print(&stackline_report::regressions(&outcome))?;
    }
    say_lines(&outcome);
    let mut report = new_report(format!("stackline gate {}", flags.base.display()));
    report.add_regressions(&outcome);
    write_reports(&flags.reports, &report)?;
    Ok(exit_of_gate(outcome.verdict))
}

/// Saves the figures of a run in a file.
fn save(flags: &GateFlags, file: &Path) -> Result {
    let mut warn = |words: String| output::say(&words);
    let baseline = baseline_of(&flags.base, &mut warn)?;
    output::file(file, baseline.text())?;
    let measurements = baseline.measurements.len();
    if flags.json {
        let saved = json!({ "saved": file.display().to_string(), "measurements": measurements });
        output::json(&saved, false)?;
    } else {
        let what = stackline_core::units::counted(measurements as u64, "measurement");
        output::print(&format!("saved {what} in {}\n", file.display()))?;
    }
    Ok(Exit::Done)
}
