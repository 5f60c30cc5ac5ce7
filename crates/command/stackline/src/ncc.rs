//! `stackline ncc`: what the IMPs of a run reported, in the form of the ARPANET's Network Control Center: a table, and
//! a map of how busy the lines were.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use serde_json::json;
use stackline_analyze::imps::{self, ImpAnalysis};
use stackline_events::EventTable;
use stackline_events::table::FIELDS;
use stackline_report::LinkUse;
use stackline_runs::StoredRun;
use stackline_runs::events::{EventColumnSelection, read_batches};
use std::collections::BTreeMap;
use std::path::Path;

/// Prints what the IMPs reported.
pub(crate) fn ncc(flags: &flags::Ncc) -> Result {
    let run = StoredRun::open_events(&flags.run)?;
    let events = reported(&run)?;
    let reports = imps::reports(&events);
    if reports.imps.is_empty() {
        let path = run.path.display();
        return Err(Error::input(format!("no IMP reported anything in {path}"))
            .hint("`stackline run --trace examples/arpanet.stackline` records a run with IMPs that report"));
    }
    if let Some(path) = &flags.svg {
        draw(&run, &reports, path)?;
    }
    if let Some(span) = flags.each {
        each(
            &imps::reports_each(&events, span.as_nanos() as u64),
            span.as_secs_f64(),
            flags.json,
        )?;
    } else if flags.json {
        output::json(&stackline_report::ncc_json(&reports), false)?;
    } else {
        output::print(&stackline_report::ncc(&reports))?;
    }
    Ok(Exit::Done)
}

/// Prints the reports over time.
fn each(spans: &BTreeMap<u64, ImpAnalysis>, span_s: f64, as_json: bool) -> Result<()> {
    if !as_json {
        return output::print(&stackline_report::ncc_each(spans, span_s));
    }
    let span = |(number, reports): (&u64, &ImpAnalysis)| json!({ "from_s": *number as f64 * span_s, "reports": stackline_report::ncc_json(reports) });
    output::json(
        &json!({ "each_s": span_s, "spans": spans.iter().map(span).collect::<Vec<_>>() }),
        false,
    )
}

/// Reads the events of the reports batch by batch, so that only these are held in memory.
fn reported(run: &StoredRun) -> Result<EventTable> {
    let fields: Vec<usize> = (0..FIELDS).collect();
    let mut kept = EventTable::default();
    read_batches(&run.path, &EventColumnSelection::fields(&fields), |batch| {
        let is_report = |row: &usize| batch.keyword(*row).starts_with("IMP_");
        for row in (0..batch.len()).filter(is_report) {
            let values: Vec<_> = (0..10).map(|field| batch.value(row, field)).collect();
            kept.push(
                batch.keyword(row),
                batch.host(row),
                batch.at_ns[row],
                &values,
            );
        }
    })?;
    Ok(kept)
}

/// Draws the run's network.
fn draw(run: &StoredRun, reports: &ImpAnalysis, path: &Path) -> Result<()> {
    let picture =
        map(run, reports).ok_or_else(|| Error::input("the run has no network of IMPs to draw"))?;
    output::file(path, picture)
}

/// A drawing of a run's network with the use of its lines, if it is a network of IMPs that reported.
pub(crate) fn map(run: &StoredRun, reports: &ImpAnalysis) -> Option<String> {
    let network = run
        .plan
        .networks
        .iter()
        .find(|network| network.has_imps())
        .filter(|_| !reports.lines.is_empty())?;
    let port = |number: usize| network.port_name(u32::try_from(number).ok()?);
    let of = |number: usize| port(number).and_then(|name| reports.lines.get(&name));
    let used = |link: usize| {
        let (there, back) = (of(2 * link)?, of(2 * link + 1)?);
        Some(LinkUse {
            there: there.busy.0,
            back: back.busy.0,
            is_down: there.up_seconds.min(back.up_seconds) <= 0.0,
        })
    };
    let uses: Vec<Option<LinkUse>> = (0..network.links.len()).map(used).collect();
    stackline_report::drawing_in_use(network, &uses)
}
