//! Flags of `stackline probe`.

use super::runs::{RunsSince, parse_age, parse_since};
use super::sharing::Sharing;
use super::spec_text::SpecTextFlags;
use clap::{Args, Subcommand, ValueEnum};
use stackline_core::quantity::{parse_duration, parse_size};
use stackline_exchange::openmetrics::listen_address::DEFAULT_METRICS_ADDRESS;
use stackline_exchange::openmetrics::parse_listen_address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline probe wan.stackline --every 1s --for 3s --listen
  stackline probe wan.stackline --name wan --every 1s --count 2 \\
      --alert 'p99 > 50 ms for 5m' --alert 'failures > 10 % for 10m'
  stackline probe list
  stackline probe show wan --since 7d -o wan.svg
  stackline probe remove wan

A command of --on-alert finds the alert in STACKLINE_ALERT, _STATE, _SINCE and
_VALUE; STACKLINE_WEBHOOK and STACKLINE_OTLP may hold the URLs, out of sight.";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ProbeFlags {
    #[command(subcommand)]
    pub(crate) command: Option<ProbeCommand>,
    #[command(flatten)]
    pub(crate) text: SpecTextFlags,
    /// Time between probes, at multiples of it
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = parse_interval)]
    pub(crate) every: Duration,
    /// Name of the series
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// How long records are kept
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_age)]
    pub(crate) keep: Duration,
    /// Most room of the series
    #[arg(long, value_name = "SIZE", default_value = "100MiB", value_parser = parse_room)]
    pub(crate) most_size: u64,
    /// A bad state and how long it lasts; may be repeated
    #[arg(long, value_name = "ALERT")]
    pub(crate) alert: Vec<String>,
    /// Run this by sh when one fires or is resolved
    #[arg(long, value_name = "COMMAND", requires = "alert")]
    pub(crate) on_alert: Option<String>,
    /// Post alerts as JSON, as Alertmanager does
    #[arg(
        long,
        value_name = "URL",
        requires = "alert",
        env = "STACKLINE_WEBHOOK",
        hide_env = true
    )]
    pub(crate) webhook: Option<String>,
    /// End with code 4 when one fires
    #[arg(long, requires = "alert")]
    pub(crate) exit_on_alert: bool,
    /// Serve metrics (:PORT: on this machine only)
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = DEFAULT_METRICS_ADDRESS, value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Push metrics, with --trace traces, by OTLP
    #[arg(long, value_name = "URL", env = "STACKLINE_OTLP", hide_env = true)]
    pub(crate) otlp: Option<String>,
    /// Trace each probe, find what limits it
    #[arg(long)]
    pub(crate) trace: bool,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_age)]
    pub(crate) duration: Option<Duration>,
    /// End after so many probes
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// List the series
    List(ProbeList),
    /// Show a series by hours or days, or draw it
    Show(ProbeShow),
    /// Remove series
    Remove(ProbeRemove),
}

#[derive(Args, Debug)]
pub(crate) struct ProbeList {
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProbeShow {
    /// The series
    pub(crate) name: String,
    /// Only probes within this time, such as 7d, or since this date (UTC), such as 2026-01-31
    #[arg(long, value_name = "TIME|DATE", value_parser = parse_since)]
    pub(crate) since: Option<RunsSince>,
    /// Draw FILE.svg, .png, .pdf or .html, or write the points as FILE.csv; may be given several times
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// What is drawn; by default times, if there are any
    #[arg(long, value_name = "times|throughput", hide_possible_values = true)]
    pub(crate) y: Option<DrawnFigure>,
    /// Print JSON on stdout
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProbeRemove {
    /// The series
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
}

/// What a picture of a series shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawnFigure {
    Times,
    Throughput,
}

/// The shortest time between two probes, and the longest.
const INTERVALS: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(7 * 86_400));
/// The least room of a series, in bytes.
const LEAST_ROOM: u64 = 64 << 10;

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)?;
    match (INTERVALS.0..=INTERVALS.1).contains(&interval) {
        true => Ok(interval),
        false => Err("expected a time from 10ms to 168h".to_owned()),
    }
}

fn parse_room(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0..LEAST_ROOM => Err("expected at least 64 KiB".to_owned()),
        room => Ok(room),
    }
}
