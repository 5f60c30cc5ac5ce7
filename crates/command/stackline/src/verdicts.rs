//! The verdicts on a run: what its specification expects, and a gate against a baseline; their reports, and the exit code.

use crate::exit::{Error, Exit, Result};
use crate::flags::{CiFlags, GateRuleFlags, GateScopeFlags};
use crate::output;
use serde_json::Value;
use stackline_analyze::baseline_runs::{GateScope, gate_runs};
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_analyze::{
    DiagnosedFindings, ExpectationVerdict, GateVerdict, JudgedExpectation, RegressionOutcome,
    RegressionRule, Summary, expects_findings, judge_expectations,
};
use stackline_core::plan::Plan;
use stackline_report::ci::{CiReport, ci_markdown, github_annotations, junit};
use stackline_runs::{Baseline, iso_utc, located};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a run is judged by.
pub(crate) struct GateBase {
    /// A baseline file, or the directory of a run.
    path: PathBuf,
    rule: RegressionRule,
    scope: GateScope,
}

impl GateBase {
    /// The base that `--against` names. It is found and read before the runs begin: a name such as `last` means another run
    /// afterwards.
    pub(crate) fn find(
        against: Option<&Path>,
        rule: &GateRuleFlags,
        scope: &GateScopeFlags,
    ) -> Result<Option<Self>> {
        let Some(base) = against else {
            if rule.are_given() || scope.are_given() {
                let message = "--worse, --error-rate, --tolerate, --figures and --segments are about a gate, but no baseline is given";
                return Err(Error::input(message).hint("add `--against BASE`"));
            }
            return Ok(None);
        };
        let path = if base.is_file() {
            Baseline::read(base)?;
            base.to_owned()
        } else {
            located(base)?
        };
        let rule = rule.rule()?;
        let scope = scope.scope();
        Ok(Some(Self { path, rule, scope }))
    }
}

/// The verdicts on a run.
pub(crate) struct RunVerdicts {
    expectations: Vec<JudgedExpectation>,
    gate: Option<RegressionOutcome>,
}

impl RunVerdicts {
    /// Judges a kept run. It is diagnosed only if its specification expects findings.
    pub(crate) fn judge(
        plan: &Plan,
        summaries: &[Summary],
        run: &Path,
        base: Option<&GateBase>,
    ) -> Result<Self> {
        let loaded = match expects_findings(plan) {
            true => Some(LoadedRun::whatever(run, MOST_EVENTS)?),
            false => None,
        };
        let findings = loaded.as_ref().map(LoadedRun::findings);
        let found = findings.as_deref().map(|findings| DiagnosedFindings {
            findings,
            has_events: loaded
                .as_ref()
                .is_some_and(|loaded| !loaded.events.is_empty()),
        });
        let mut warn = |words: String| output::say(&words);
        let gate = base.map(|base| gate_runs(&base.path, run, base.rule, &base.scope, &mut warn));
        Ok(Self {
            expectations: judge_expectations(plan, summaries, found),
            gate: gate.transpose()?,
        })
    }

    /// Adds them to the JSON of the run.
    pub(crate) fn add_to(&self, json: &mut Value) {
        json["expectations"] = stackline_report::expectations_json(&self.expectations);
        if let Some(gate) = &self.gate {
            json["gate"] = stackline_report::regressions_json(gate);
        }
    }

    /// Prints them below the results; beside CSV or JSON, what a program reads stays alone on stdout.
    pub(crate) fn print(&self, is_for_programs: bool) -> Result<()> {
        let mut text = stackline_report::expectations(&self.expectations);
        if let Some(gate) = &self.gate {
            text.push('\n');
            text.push_str(&stackline_report::regressions(gate));
        }
        if !text.is_empty() {
            match is_for_programs {
                true => output::say(&text.trim_end()),
                false => output::print(&text)?,
            }
        }
        if let Some(gate) = &self.gate {
            say_lines(gate);
        }
        Ok(())
    }

    /// Writes the reports that were asked for. `file` is that of the specification, which gave the plan.
    pub(crate) fn report(
        &self,
        flags: &CiFlags,
        name: &str,
        file: Option<&Path>,
        plan: &Plan,
    ) -> Result<()> {
        let mut report = new_report(format!("stackline run {name}"));
        report.file = file.map(|file| file.display().to_string());
        report.add_expectations(&self.expectations);
        self.gate
            .iter()
            .for_each(|gate| report.add_regressions(gate));
        report.add_lines(&plan.measurements);
        write_reports(flags, &report)
    }

    /// The exit code: what failed first, then what is undecided.
    pub(crate) fn exit(&self) -> Exit {
        let has = |verdict| self.expectations.iter().any(|one| one.verdict == verdict);
        let gate = self.gate.as_ref().map(|gate| gate.verdict);
        if has(ExpectationVerdict::Missed) || gate == Some(GateVerdict::Worse) {
            Exit::Worse
        } else if has(ExpectationVerdict::Undecided) || gate == Some(GateVerdict::Undecided) {
            Exit::Unclear
        } else {
            Exit::Done
        }
    }
}

/// The exit code of a gate.
pub(crate) const fn exit_of_gate(verdict: GateVerdict) -> Exit {
    match verdict {
        GateVerdict::Passed => Exit::Done,
        GateVerdict::Worse => Exit::Worse,
        GateVerdict::Undecided => Exit::Unclear,
    }
}

/// Says the verdict of a gate.
pub(crate) fn say_lines(gate: &RegressionOutcome) {
    let lines = stackline_report::regression_lines(gate);
    for line in &lines {
        output::say(line);
    }
}

/// An empty report of this moment.
pub(crate) fn new_report(name: String) -> CiReport {
    CiReport {
        name,
        time: iso_utc(SystemTime::now()).trim_end_matches('Z').to_owned(),
        ..CiReport::default()
    }
}

/// Writes a report in the forms that were asked for.
pub(crate) fn write_reports(flags: &CiFlags, report: &CiReport) -> Result<()> {
    if let Some(path) = &flags.junit {
        output::file(path, junit(report))?;
    }
    if let Some(path) = &flags.markdown {
        output::file(path, ci_markdown(report))?;
    }
    if flags.github {
        let lines = github_annotations(report);
        lines.lines().for_each(|line| output::say(&line));
    }
    Ok(())
}
