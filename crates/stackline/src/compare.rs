//! `stackline compare`: two kept runs, or the stacks of one, ratio by ratio.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::{MetricComparison, Summary};
use stackline_runs::Run;
use std::collections::BTreeMap;
use std::path::Path;

/// Compares the second with the first, or the stacks of one.
pub(crate) fn compare(flags: &flags::Compare) -> Result {
    let before = read(&flags.before)?;
    let comparisons = match &flags.after {
        Some(after) => stackline_analyze::compare(&before, &read(after)?),
        None => stackline_analyze::compare_stacks(&before),
    };
    if comparisons.iter().all(|comparison| comparison.metrics.is_empty()) {
        let hint = match &flags.after {
            Some(_) => {
                "`stackline compare A B` compares measurements of the same text, or of the same application type"
            }
            None => "several stacks are written `over tcp, unix`; two runs are compared with `stackline compare A B`",
        };
        return Err(Error::input("there is nothing to compare").hint(hint));
    }
    if flags.json {
        output::json(&stackline_report::comparison_json(&comparisons), false)?;
    } else {
        output::print(&stackline_report::comparison(&comparisons))?;
    }
    let Some(limit) = flags.fail_above else { return Ok(Exit::Done) };
    let worse = comparisons.iter().flat_map(|comparison| &comparison.metrics).filter_map(MetricComparison::worse_by);
    let worst = worse.fold(0.0, f64::max);
    if worst <= limit {
        return Ok(Exit::Done);
    }
    output::say(&format_args!("worse by {:.1} %, more than {:.1} %", worst * 100.0, limit * 100.0));
    Ok(Exit::Worse)
}

/// The summaries of a run, with warnings of what one has to know of it.
fn read(path: &Path) -> Result<Vec<Summary>> {
    let run = Run::open(path)?;
    if !run.complete {
        let reason = run.reason.as_deref().unwrap_or("it was killed");
        output::say(&format_args!(
            "warning: {} is incomplete ({reason}); what it holds is compared",
            run.path.display()
        ));
    }
    let summaries = stackline_analyze::summarise(&run.plan, &run.records);
    overload(&run.path, &summaries);
    Ok(summaries)
}

/// Warns of measurements in which the machine could not keep up with the network it emulated.
fn overload(path: &Path, summaries: &[Summary]) {
    let overloaded = summaries.iter().filter(|summary| summary.overloaded() > 0);
    let measurements: BTreeMap<usize, &Summary> = overloaded.map(|summary| (summary.measurement, summary)).collect();
    for summary in measurements.values() {
        let (n, runs, text) = (summary.overloaded(), summary.runs, &summary.text);
        let path = path.display();
        output::say(&format_args!(
            "warning: {path}: in {n} of {runs} runs of `{text}` the emulator was overloaded; its figures are the machine's"
        ));
    }
}
