//! A second client draws the same at the same time, through an internet server on another host. This is how the paper compares a local with
//! a remote server (section 9.2). No events are kept.

use super::testbed::{DisplayTestbed, no_rate};
use crate::bench::{self, DisplayBenchResult, rate_rows};
use crate::send_level::{DisplayPicture, DisplaySendLevel};
use crate::simulated::{SimulatedDisplayScene, together};
use stackline_core::error::{Error, Result};
use stackline_report::display::DisplayRateRow;

/// What one of two clients measured.
#[derive(Clone, Debug)]
pub struct ClientRates {
    /// Where, in words.
    pub place: String,
    /// Its rates.
    pub rows: Vec<DisplayRateRow>,
}

/// Measures the rates of both clients; the second one's internet server is on the host `beside`.
///
/// # Errors
/// If the first client has no internet server, or nothing could be measured.
pub fn measure_two_clients(
    stage: &DisplayTestbed,
    pictures: &[DisplayPicture],
    levels: &[DisplaySendLevel],
    trials: usize,
    beside: &str,
) -> Result<[ClientRates; 2]> {
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
    let scenes = [first, second];
    let mut all: [Vec<DisplayBenchResult>; 2] = [Vec::new(), Vec::new()];
    for picture in pictures {
        for rate in bench::rates(picture, levels) {
            let measured = together(&scenes, picture, rate, trials)?;
            all.iter_mut()
                .zip(measured)
                .for_each(|(all, measured)| all.push(measured));
        }
    }
    if all.iter().flatten().all(|one| one.trials.is_empty()) {
        return Err(no_rate());
    }
    let place = |scene: &SimulatedDisplayScene| {
        let server = scene.internet.as_deref().unwrap_or_default();
        format!(
            "{} through {server}, two clients at once, simulated",
            stage.place()
        )
    };
    let (one, other) = (&all[0], &all[1]);
    Ok([
        ClientRates {
            place: place(&scenes[0]),
            rows: explained_rows(one, other, stage),
        },
        ClientRates {
            place: place(&scenes[1]),
            rows: explained_rows(other, one, stage),
        },
    ])
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
    rate_rows(own).into_iter().zip(other).map(row).collect()
}
