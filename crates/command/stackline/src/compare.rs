//! `stackline compare`: compares two kept runs, or the stacks of one run, by ratios; compares two traces segment by
//! segment.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use crate::verdicts::exit_of_gate;
use stackline_analyze::GateOutcome;
use stackline_analyze::compared_runs::{compare_runs, compare_stacks_of, same_run};

/// Compares the second run with the first, or the stacks of one run with its first stack.
pub(crate) fn compare(flags: &flags::Compare) -> Result {
    let after = flags.after.as_ref();
    let mut warn = |words: String| output::say(&words);
    let compared = match after {
        Some(after) => compare_runs(&flags.before, after, &mut warn)?,
        None => compare_stacks_of(&flags.before, &mut warn)?,
    };
    if compared.is_empty() {
        let hint = match after {
            Some(_) => {
                "`stackline compare A B` compares traces, and measurements with the same text or application type"
            }
            None => {
                "list several stacks, as in `over tcp, unix`, or compare two runs with `stackline compare A B`"
            }
        };
        return Err(Error::input("nothing to compare").hint(hint));
    }
    if let Some(run) = after.and_then(|after| same_run(&flags.before, after)) {
        output::say(&format_args!(
            "note: both arguments name the same run, {}; comparing it with itself",
            run.display()
        ));
    }
    let gate = flags.fail_above.map(|limit| compared.judge(limit));
    if flags.json {
        let json = stackline_report::compared_runs_json(&compared, gate.as_ref());
        output::json(&json, false)?;
    } else {
        output::print(&stackline_report::compared_runs(&compared))?;
    }
    let Some(gate) = gate else {
        return Ok(Exit::Done);
    };
    // For instance because an option was changed.
    for (a, b) in compared.unlike_texts().filter(|_| after.is_some()) {
        output::say(&format_args!(
            "note: the texts differ: `{a}` is compared with `{b}`"
        ));
    }
    Ok(report_gate(&gate))
}

/// Prints the result of a gate and returns its exit code.
fn report_gate(outcome: &GateOutcome) -> Exit {
    let lines = stackline_report::gate_lines(outcome);
    lines.iter().for_each(output::say);
    exit_of_gate(outcome.verdict)
}
