//! `display bench --across`: the benchmark in virtual time, client and display on hosts of a network.

mod beside;
mod carrier;
mod combinations;
mod factors;
mod stage;
mod steps;

pub(super) use factors::factors;

use super::rates::{levels, pictures, rows, show};
use crate::across;
use crate::exit::{Exit, Result};
use crate::flags::DisplayBench;
use crate::{kept, output};
use stackline_displayserver::bench::{self, Measured};
use stackline_displayserver::simulated::{Ways, measure, trace};
use stackline_report::display::Row;
use stackline_runs::Access;
use stage::Stage;
use std::time::{SystemTime, UNIX_EPOCH};

/// Simulates what the flags say.
pub(super) fn bench(flags: &DisplayBench) -> Result {
    let own = &flags.simulated;
    let network = across::network(own.across.as_deref(), own.scene.network.as_deref())?;
    let stage = Stage::of(&own.scene, network)?;
    if let Some(beside) = &own.beside {
        return beside::bench(flags, &stage, beside);
    }
    let mut ways = own.keep.is_some().then(Ways::default);
    let all = measured(flags, &stage, ways.as_mut())?;
    if all.iter().all(|one| one.trials.is_empty()) {
        return Err(stage::no_rate());
    }
    let place = format!("{}, simulated", stage.place());
    let rows: Vec<Row> = rows(&all)
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
    stage: &Stage,
    mut ways: Option<&mut Ways>,
) -> Result<Vec<Measured>> {
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
fn keep(kept_as: (&str, Access), stage: &Stage, ways: &Ways) -> Result<String> {
    let zero = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    kept::keep(kept_as, stage.client(), |emit| {
        ways.tell(&stage.network, zero, emit)
    })
}
