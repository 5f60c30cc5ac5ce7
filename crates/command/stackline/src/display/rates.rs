//! The rates that `display bench` measures and prints: which pictures, at which levels.

use crate::exit::{Exit, Result};
use crate::flags::DisplayBench;
use crate::output;
use stackline_core::named::NamedValue as _;
use stackline_displayserver::bench::DisplayBenchPicture;
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel};
use stackline_report::display::{DisplayRateRow, display, display_json};

/// The levels to measure.
pub(super) fn levels(flags: &DisplayBench) -> Vec<DisplaySendLevel> {
    match flags.level.is_empty() {
        true => DisplaySendLevel::NAMED
            .iter()
            .map(|(level, ..)| *level)
            .collect(),
        false => flags.level.clone(),
    }
}

/// The pictures to send, each once.
pub(super) fn pictures(flags: &DisplayBench) -> Vec<DisplayPicture> {
    let wanted = match flags.picture.is_empty() {
        true => &DisplayBenchPicture::OF_PAPER[..],
        false => &flags.picture,
    };
    let all = DisplayBenchPicture::NAMED.iter();
    all.filter(|(picture, ..)| wanted.contains(picture))
        .map(|(picture, ..)| picture.picture())
        .collect()
}

/// Prints the rates of the display at `place`.
pub(super) fn show(place: &str, rows: &[DisplayRateRow], json: bool) -> Result {
    match json {
        true => output::json(&display_json(place, rows), false)?,
        false => output::print(&display(place, rows))?,
    }
    Ok(Exit::Done)
}
