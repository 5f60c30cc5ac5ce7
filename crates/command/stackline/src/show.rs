//! Prints the results of a run as table, JSON or CSV, at the end of `run` and for `show` of a kept run.
//!
//! Nothing is measured or stored here.

use crate::exit::{Exit, Result};
use crate::flags::{Show, TableFlags};
use crate::output;
use stackline_analyze::Summary;
use stackline_core::plan::World;
use stackline_core::run_record::WakeUp;
use stackline_core::units;
use stackline_report::{Note, ReportHeader, TableOptions, Weight};
use stackline_runs::StoredRun;
use std::io::stdout;

/// Prints the results of a kept run.
pub(crate) fn show(flags: &Show) -> Result {
    let run = StoredRun::open(&flags.run)?;
    let header = header(&run);
    let mut summaries = stackline_analyze::summarise(&run.plan, &run.records);
    summaries.retain(|summary| header.complete || summary.runs > 0);
    if flags.json {
        output::json(
            &stackline_report::json(&header, &summaries, &flags.shown.percentiles),
            false,
        )?;
        return Ok(Exit::Done);
    }
    let incomplete = header
        .reason
        .clone()
        .unwrap_or_else(|| "the run was killed".into());
    let incomplete =
        (!header.complete).then(|| Note::new(Weight::Always, format!("INCOMPLETE: {incomplete}")));
    present(&flags.shown, &header, &summaries, || {
        incomplete.into_iter().collect()
    })?;
    Ok(Exit::Done)
}

/// The facts that apply to all measurements of a kept run.
pub(crate) fn header(run: &StoredRun) -> ReportHeader {
    ReportHeader {
        stackline: env!("CARGO_PKG_VERSION").into(),
        run: run.path.display().to_string(),
        seed: run.plan.seed,
        world: run
            .plan
            .measurements
            .first()
            .map_or(World::Live, |measurement| measurement.world),
        wake_up: wake_up(run),
        complete: run.complete,
        running: run.running,
        reason: run.reason.clone(),
    }
}

/// The cost of waking a thread, if it was measured.
fn wake_up(run: &StoredRun) -> Option<WakeUp> {
    let worlds = run.environment.get("worlds")?.as_object()?.values();
    let hosts = worlds
        .filter_map(|world| world.get("hosts")?.as_object())
        .flat_map(|hosts| hosts.values());
    hosts
        .filter_map(|host| serde_json::from_value(host.get("wake_up")?.clone()).ok())
        .next()
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
    options.notes.extend(header.wake_up.and_then(wake_up_note));
    options
        .notes
        .push(Note::new(Weight::Always, format!("kept in {}", header.run)));
    output::print_coloured(&stackline_report::table(summaries, &options)[rows.len()..])
}

fn wake_up_note(wake_up: WakeUp) -> Option<Note> {
    let same = wake_up.same_core_s?;
    let other = wake_up.other_core_s.map_or_else(
        || "the only one in this machine".into(),
        |s| format!("{} on another core", units::format_time(s)),
    );
    Some(Note::new(
        Weight::Detail,
        format!(
            "waking a thread costs {} on the same core, {other}",
            units::format_time(same)
        ),
    ))
}
