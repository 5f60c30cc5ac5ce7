//! `display bench --beside`: a second client draws the same at the same time, through an internet server on another
//! host. This is how the paper compares a local with a remote server (section 9.2). No events are kept.

use crate::display::rates::{levels, pictures, rows, show};
use crate::exit::{Error, Exit, Result};
use crate::flags::DisplayBench;
use crate::output;
use stackline_displayserver::bench::{self, DisplayBenchResult};
use stackline_displayserver::experiment::testbed::{DisplayTestbed, no_rate};
use stackline_displayserver::simulated::{SimulatedDisplayScene, together};
use stackline_report::display::{DisplayRateRow, display_json};

/// Measures and prints the rates of both clients; the second one's internet server is at `beside`.
pub(super) fn bench(flags: &DisplayBench, stage: &DisplayTestbed, beside: &str) -> Result {
    let first = stage.scene(1);
    if first.internet.is_none() {
        return Err(Error::input(
            "--beside compares two internet servers, but the first client has none",
        )
        .hint(format!(
            "specify the first client's server, as in --internet {}",
            first.to
        )));
    }
    let second = SimulatedDisplayScene {
        internet: Some(stage.host(beside)?),
        ..first.clone()
    };
    let places = [&first, &second].map(|scene| {
        let server = scene.internet.as_deref().unwrap_or_default();
        format!(
            "{} through {server}, two clients at once, simulated",
            stage.place()
        )
    });
    let scenes = [first, second];
    let mut all: [Vec<DisplayBenchResult>; 2] = [Vec::new(), Vec::new()];
    for picture in &pictures(flags) {
        for rate in bench::rates(picture, &levels(flags)) {
            let measured = together(&scenes, picture, rate, usize::from(flags.trials))?;
            all.iter_mut()
                .zip(measured)
                .for_each(|(all, measured)| all.push(measured));
        }
    }
    if all.iter().flatten().all(|one| one.trials.is_empty()) {
        return Err(no_rate());
    }
    let [one, other] = &all;
    let all = [
        explained_rows(one, other, stage),
        explained_rows(other, one, stage),
    ];
    if flags.json {
        let mut value = display_json(&places[0], &all[0]);
        value["beside"] = display_json(&places[1], &all[1]);
        return output::json(&value, false).map(|()| Exit::Done);
    }
    show(&places[0], &all[0], false)?;
    output::print("\n")?;
    show(&places[1], &all[1], false)
}

/// A client's rates, with the reason where a rate is absent.
fn explained_rows(
    own: &[DisplayBenchResult],
    other: &[DisplayBenchResult],
    stage: &DisplayTestbed,
) -> Vec<DisplayRateRow> {
    let row = |(row, other): (DisplayRateRow, &DisplayBenchResult)| {
        if !row.trials.is_empty() || other.trials.is_empty() {
            return stage.explained(row);
        }
        DisplayRateRow {
            absent: Some(
                "no trial ended before the other client had finished all its trials".to_owned(),
            ),
            ..row
        }
    };
    rows(own).into_iter().zip(other).map(row).collect()
}
