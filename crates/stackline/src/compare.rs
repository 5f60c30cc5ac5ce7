//! `stackline compare`: two kept runs, ratio by ratio.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::Summary;
use stackline_runs::Run;
use std::collections::BTreeMap;
use std::path::Path;

/// Compares the second with the first.
pub(crate) fn compare(flags: &flags::Compare) -> Result {
    let (before, after) = (Run::open(&flags.before)?, Run::open(&flags.after)?);
    for run in [&before, &after] {
        if !run.complete {
            let reason = run.reason.as_deref().unwrap_or("it was killed");
            let path = run.path.display();
            output::say(&format_args!("warning: {path} is incomplete ({reason}); what it holds is compared"));
        }
    }
    let [a, b] = [&before, &after].map(|run| stackline_analyze::summarise(&run.plan, &run.records));
    overload(&before.path, &a);
    overload(&after.path, &b);
    let comparisons = stackline_analyze::compare(&a, &b);
    if flags.json {
        output::json(&stackline_report::comparison_json(&comparisons), false)?;
    } else {
        output::print(&stackline_report::comparison(&comparisons))?;
    }
    Ok(Exit::Done)
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
