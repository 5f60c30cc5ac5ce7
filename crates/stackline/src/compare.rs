//! `stackline compare`: two kept runs, ratio by ratio.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_events::Run;

/// Compares the second with the first.
pub(crate) fn compare(flags: &flags::Compare) -> Result {
    let (before, after) = (Run::open(&flags.before)?, Run::open(&flags.after)?);
    for run in [&before, &after] {
        if !run.complete {
            let reason = run.reason.as_deref().unwrap_or("it was killed");
            eprintln!("warning: {} is incomplete ({reason}); what it holds is compared", run.path.display());
        }
    }
    let [a, b] = [&before, &after].map(|run| stackline_analyze::summarise(&run.plan, &run.records));
    let comparisons = stackline_analyze::compare(&a, &b);
    if flags.json {
        output::json(&stackline_report::comparison_json(&comparisons), false)?;
    } else {
        output::print(&stackline_report::comparison(&comparisons))?;
    }
    Ok(Exit::Done)
}
