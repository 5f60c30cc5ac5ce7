//! `display bench --across`: the benchmark in virtual time, client and display on hosts of a network.

mod carrier;
mod combinations;
mod factors;
mod next_steps;
mod second_client;
mod testbed;

pub(super) use factors::factors;

use super::rates::{levels, pictures, rows, show};
use crate::exit::{Exit, Result};
use crate::flags::DisplayBench;
use crate::network_stack;
use crate::output;
use stackline_displayserver::bench::{self, DisplayBenchResult};
use stackline_displayserver::simulated::{DisplayRequestPaths, measure, trace};
use stackline_report::display::DisplayRateRow;
use stackline_runs::RunFileAccess;
use stackline_runs::events::keep_run;
use std::time::{SystemTime, UNIX_EPOCH};
use testbed::DisplayTestbed;

/// Simulates what the flags say.
pub(super) fn bench(flags: &DisplayBench) -> Result {
    let own = &flags.simulated;
    let network = network_stack::network(own.across.as_deref(), own.scene.network.as_deref())?;
    let stage = DisplayTestbed::of(&own.scene, network)?;
    if let Some(beside) = &own.beside {
        return second_client::bench(flags, &stage, beside);
    }
    let mut ways = own.keep.is_some().then(DisplayRequestPaths::default);
    let all = measured(flags, &stage, ways.as_mut())?;
    if all.iter().all(|one| one.trials.is_empty()) {
        return Err(testbed::no_rate());
    }
    let place = format!("{}, simulated", stage.place());
    let rows: Vec<DisplayRateRow> = rows(&all)
        .into_iter()
        .map(|row| stage.explained(row))
        .collect();
    let (Some(name), Some(ways)) = (&own.keep, ways) else {
        return show(&place, &rows, flags.json);
    };
    let run = keep((name, own.sharing.access()), &stage, &ways)?;
    if flags.json {
        let mut value = stackline_report::display::display_json(&place, &rows);
        value["run"] = run.into();
        output::json(&value, false)?;
    } else {
        show(&place, &rows, false)?;
        output::print(&format!(
            "\nkept in {run}; `stackline lifelines last`, `diagnose last`, `open`\n"
        ))?;
    }
    Ok(Exit::Done)
}

fn measured(
    flags: &DisplayBench,
    stage: &DisplayTestbed,
    mut ways: Option<&mut DisplayRequestPaths>,
) -> Result<Vec<DisplayBenchResult>> {
    let (scene, trials) = (stage.scene(1), usize::from(flags.trials));
    let mut all = Vec::new();
    for picture in &pictures(flags) {
        let rates = bench::rates(picture, &levels(flags));
        all.extend(match &mut ways {
            Some(ways) => trace(&scene, picture, &rates, trials, ways)?,
            None => measure(&scene, picture, &rates, trials)?,
        });
    }
    Ok(all)
}

/// Keeps the ways of requests as a run; where.
fn keep(
    kept_as: (&str, RunFileAccess),
    stage: &DisplayTestbed,
    ways: &DisplayRequestPaths,
) -> Result<String> {
    let zero = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    keep_run(kept_as.0, kept_as.1, stage.client(), |emit| {
        ways.emit_events(&stage.network, zero, emit)
    })
}
