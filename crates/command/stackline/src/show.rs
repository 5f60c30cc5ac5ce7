//! Prints the results of a run as table, JSON or CSV, at the end of `run` and for `show` of a kept run.
//!
//! Nothing is measured or stored here.

use crate::exit::Result;
use crate::flags::{Show, TableFlags};
use crate::output;
use crate::verdicts::RunVerdicts;
use stackline_analyze::Summary;
use stackline_core::plan::Plan;
use stackline_core::run_schedule::RunOrder;
use stackline_report::{Note, ReportHeader, TableOptions, Weight};
use stackline_runs::{RunInputs, StoredRun};
use std::io::stdout;

/// Prints the results of a kept run.
pub(crate) fn show(flags: &Show) -> Result {
    let run = StoredRun::open(&flags.run)?;
    let header = ReportHeader::from_run(&run);
    let mut summaries = stackline_analyze::summarise(&run.plan, &run.records);
    summaries.retain(|summary| header.complete || summary.runs > 0);
    let verdicts = RunVerdicts::judge(&run.plan, &summaries, &run.path, None)?;
    if flags.json {
        let mut json = stackline_report::json(&header, &summaries, &flags.shown.percentiles);
        verdicts.add_to(&mut json);
        output::json(&json, false)?;
        return Ok(verdicts.exit());
    }
    let incomplete = header
        .reason
        .clone()
        .unwrap_or_else(|| "the run was killed".into());
    let incomplete =
        (!header.complete).then(|| Note::new(Weight::Always, format!("INCOMPLETE: {incomplete}")));
    let inputs = RunInputs::read(&run.path).ok().flatten();
    let order = inputs.and_then(|inputs| inputs.order).unwrap_or_default();
    let order = note_of_order(order, &run.plan);
    present(&flags.shown, &header, &summaries, || {
        incomplete.into_iter().chain(order).collect()
    })?;
    verdicts.print(flags.shown.csv)?;
    Ok(verdicts.exit())
}

/// Says that the runs were not made in the order of the text.
pub(crate) fn note_of_order(order: RunOrder, plan: &Plan) -> Option<Note> {
    let within = match order {
        RunOrder::Sweeps => " within each sweep",
        RunOrder::Declared | RunOrder::Random => "",
    };
    let seed = plan.seed;
    let text = format!(
        "the runs were made in random order{within}, drawn from seed {seed}; --order declared keeps that of the text"
    );
    order.mixes(plan).then(|| Note::new(Weight::Detail, text))
}

/// Prints results as a table with notes below, or as CSV. The results are printed before `notes` is called, since that
/// may take long.
pub(crate) fn present(
    flags: &TableFlags,
    header: &ReportHeader,
    summaries: &[Summary],
    notes: impl FnOnce() -> Vec<Note>,
) -> Result<()> {
    if flags.csv {
        output::print_for_programs(&stackline_report::csv(summaries, &flags.percentiles))?;
        notes();
        return Ok(());
    }
    let mut options = TableOptions {
        colour: output::has_colours(stdout()),
        notes: Vec::new(),
        most_notes: flags.notes.most(),
        percentiles: flags.percentiles.clone(),
    };
    let rows = stackline_report::table_rows(summaries, &options);
    output::print_coloured(&rows)?;
    options.notes = notes();
    options
        .notes
        .extend(header.wake_up.and_then(Note::of_wake_up));
    options
        .notes
        .push(Note::new(Weight::Always, format!("kept in {}", header.run)));
    output::print_coloured(&stackline_report::table(summaries, &options)[rows.len()..])
}
