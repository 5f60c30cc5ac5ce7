//! How long units took that a command is about. It reads no run.

use clap::Args;
use stackline_analyze::duration_filter::DurationFilter;
use stackline_core::quantity::parse_duration;
use std::time::Duration;

/// Units by their time from the first to the last point; those that never arrived have none.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    /// Only units that arrived and took longer than this, such as 50ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    slower_than: Option<Duration>,
    /// Only units that arrived and took less than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    faster_than: Option<Duration>,
}

impl Took {
    /// What is chosen.
    pub(crate) const fn filter(self) -> DurationFilter {
        DurationFilter {
            slower_than: self.slower_than,
            faster_than: self.faster_than,
        }
    }
}
