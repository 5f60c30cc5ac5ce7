//! `stackline ncc`: what the IMPs of a run reported, in the form of the ARPANET's Network Control Center: a table, and
//! a map of how busy the lines were.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::imps;
use stackline_runs::StoredRun;

/// Prints what the IMPs reported.
pub(crate) fn ncc(flags: &flags::Ncc) -> Result {
    let run = StoredRun::open_events(&flags.run)?;
    let events = imps::read_reports(&run)?;
    let reports = imps::reports(&events);
    if reports.imps.is_empty() {
        let path = run.path.display();
        return Err(Error::input(format!("no IMP reported anything in {path}"))
            .hint("`stackline run --trace examples/arpanet.stackline` records a run with IMPs that report"));
    }
    if let Some(path) = &flags.svg {
        let picture = stackline_report::imp_map(&run.plan.networks, &reports);
        let absent = || Error::input("the run has no network of IMPs to draw");
        output::file(path, picture.ok_or_else(absent)?)?;
    }
    if let Some(span) = flags.each {
        let spans = imps::reports_each(&events, span.as_nanos() as u64);
        match flags.json {
            true => output::json(
                &stackline_report::ncc_each_json(&spans, span.as_secs_f64()),
                false,
            )?,
            false => output::print(&stackline_report::ncc_each(&spans, span.as_secs_f64()))?,
        }
    } else if flags.json {
        output::json(&stackline_report::ncc_json(&reports), false)?;
    } else {
        output::print(&stackline_report::ncc(&reports))?;
    }
    Ok(Exit::Done)
}
