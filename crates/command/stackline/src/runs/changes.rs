//! `stackline runs changes`: where figures of kept runs changed.

use super::{RunFilter, headline};
use crate::exit::{Error, Exit, Result};
use crate::flags::RunsChanges;
use crate::output;
use stackline_analyze::change_points::ChangePointRule;
use stackline_analyze::kept_series::{KeptSeries, SeriesCollector};
use stackline_core::units::counted;
use stackline_report::{SeriesRun, change_points, change_points_json, otava_table};
use stackline_runs::kept_runs::{KeptRun, RunState};
use stackline_runs::run_list::RunList;
use stackline_runs::runs_root;
use std::path::Path;
use std::time::SystemTime;

/// Shows change points of the selected runs, and writes their figures for Otava.
pub(super) fn changes(flags: &RunsChanges) -> Result {
    let (root, now) = (runs_root(), SystemTime::now());
    let filter = RunFilter::new(&flags.which, now);
    let mut list = RunList::open(&root, now, headline);
    let mut runs: Vec<KeptRun> = (0..list.len())
        .filter_map(|at| list.run(at))
        .filter(|run| run.facts.state == RunState::Complete && !run.facts.worlds.is_empty())
        .filter(|run| filter.accepts(run))
        .collect();
    list.store();
    // In order of time: of runs that began in the same second, the one that ended first.
    runs.reverse();
    runs.sort_by_key(|run| (run.began(), run.ended()));
    let mut collector = SeriesCollector::new(flags.metric);
    for run in &runs {
        if let Err(error) = collector.add_run(&run.path) {
            output::say(&format_args!("{}: left out: {}", run.name, error.message));
        }
    }
    let rule = ChangePointRule {
        window: flags.window,
        max_p: flags.max_p,
        min_magnitude: flags.magnitude,
    };
    let series = collector.finish(&rule);
    if series.is_empty() {
        let message = format!(
            "no complete run{} under {} has this figure",
            filter.words(),
            root.display()
        );
        return Err(Error::input(message)
            .hint("`stackline runs` lists the kept runs; `--metric` takes another figure"));
    }
    let shown: Vec<SeriesRun> = runs.iter().map(series_run).collect();
    if flags.json {
        output::json(&change_points_json(&series, &shown, &rule), false)?;
    } else {
        output::print(&change_points(&series, &shown))?;
    }
    match &flags.otava {
        Some(file) => write_otava(file, &series, &shown),
        None => Ok(Exit::Done),
    }
}

fn series_run(run: &KeptRun) -> SeriesRun {
    SeriesRun {
        name: run.name.clone(),
        began: run.began(),
        tags: run.facts.tags.iter().cloned().collect(),
    }
}

/// Writes the series as CSV, and says the names of its columns, which Otava's configuration has to list.
fn write_otava(file: &Path, series: &[KeptSeries], runs: &[SeriesRun]) -> Result {
    let table = otava_table(series, runs);
    if table.rows == 0 {
        let message = format!(
            "nothing was written to {}: no run has all {} figures",
            file.display(),
            series.len()
        );
        return Err(Error::input(message)
            .hint("select runs of one specification by a text, a tag or `--since`"));
    }
    output::file(file, &table.csv)?;
    if table.left_out > 0 {
        output::say(&format_args!(
            "left out of {}: {} that lack some of the {} figures",
            file.display(),
            counted(table.left_out as u64, "run"),
            series.len()
        ));
    }
    output::say(&format_args!(
        "wrote {} to {}; metrics: [{}]",
        counted(table.rows as u64, "row"),
        file.display(),
        table.metrics.join(", ")
    ));
    Ok(Exit::Done)
}
