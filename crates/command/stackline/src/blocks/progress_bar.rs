//! The progress bar of a load or a read, drawn on a terminal only, and the line that summarises it.

use crate::progress::draw_target;
use indicatif::{ProgressBar, ProgressStyle};
use stackline_core::units;
use std::time::{Duration, Instant};

/// A progress bar that counts bytes; any thread may advance it.
pub(super) fn create_byte_bar(all: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all), draw_target());
    let style = ProgressStyle::with_template(
        "{bar:24} {bytes}/{total_bytes}, {bytes_per_sec}, about {eta} left  {msg}",
    );
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// The text `1366 blocks, 64 MiB in 812 ms, 82.6 MB/s`.
pub(super) fn describe_throughput(blocks: u64, bytes: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-9);
    let rate = (bytes as f64 / seconds) as u64;
    let blocks = if blocks == 1 {
        "1 block".to_owned()
    } else {
        format!("{blocks} blocks")
    };
    format!(
        "{blocks}, {} in {}, {}/s",
        units::format_size(bytes),
        units::format_time(seconds),
        units::format_size(rate)
    )
}

/// Starts a clock; the result returns the time since.
pub(super) fn start_clock() -> impl Fn() -> Duration {
    let began = Instant::now();
    move || began.elapsed()
}
