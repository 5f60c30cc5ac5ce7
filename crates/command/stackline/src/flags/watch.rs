//! Flags of `stackline watch`. They touch nothing.

use super::choice::choice;
use clap::Args;
use stackline_core::quantity::parse_duration;
use stackline_exchange::openmetrics::listen_address::DEFAULT_METRICS_ADDRESS;
use stackline_exchange::openmetrics::parse_listen_address;
use stackline_monitor::snmp::{Authentication, Privacy};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline watch                                       # live, until Ctrl-C
  # in NetLogger's text format
  stackline watch --for 10s --tcp 5001 > events.log
  # a run for lifelines, report and query
  stackline watch --keep night --interval 1s
  STACKLINE_SNMP_COMMUNITY=public stackline watch --snmp switch1
  # metrics for Prometheus at http://127.0.0.1:9464/metrics
  stackline watch --listen

Exact TCP events need root; without it, connections are sampled once per interval. The FILE of --snmp-secrets \
has lines `community = ...`, `authentication = ...`, `privacy = ...`; alternatively, set the \
environment variables STACKLINE_SNMP_COMMUNITY, STACKLINE_SNMP_AUTHENTICATION and \
STACKLINE_SNMP_PRIVACY.";

#[derive(Args, Debug)]
pub(crate) struct WatchFlags {
    /// Sampling interval of the monitors: 10ms to 60s
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    pub(crate) interval: Duration,
    /// How long to watch; by default until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Only TCP connections with one of these ports at either end
    #[arg(long, value_name = "PORT", num_args = 1..)]
    pub(crate) tcp: Vec<u16>,
    /// Also count the machine's system calls (needs root; each call then takes a little longer)
    #[arg(long)]
    pub(crate) system_calls: bool,
    /// Only these interfaces
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) interface: Vec<String>,
    /// A switch whose port counters are read, as HOST or HOST:PORT; may be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) snmp: Vec<String>,
    /// SNMPv3 user name
    #[arg(long, value_name = "NAME", requires = "snmp")]
    pub(crate) snmp_user: Option<String>,
    /// How the user is authenticated
    #[arg(long, value_name = "HASH", value_parser = choice::<Authentication>(), requires = "snmp_user")]
    pub(crate) snmp_auth: Option<Authentication>,
    /// How requests are encrypted
    #[arg(long, value_name = "CIPHER", value_parser = choice::<Privacy>(), requires = "snmp_auth")]
    pub(crate) snmp_privacy: Option<Privacy>,
    /// File with the SNMP secrets
    #[arg(long, value_name = "FILE", requires = "snmp")]
    pub(crate) snmp_secrets: Option<PathBuf>,
    /// Host name to put in events, instead of the machine's name
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Print events in the text format (default in a pipe)
    #[arg(long, conflicts_with_all = ["json", "keep"])]
    pub(crate) text: bool,
    /// Print events as JSON, one per line
    #[arg(long, conflicts_with = "keep")]
    pub(crate) json: bool,
    /// Keep events as a run with this name instead of printing them
    #[arg(long, value_name = "NAME")]
    pub(crate) keep: Option<String>,
    /// Serve metrics at :PORT (this machine only) or ADDRESS:PORT; by default :9464
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = DEFAULT_METRICS_ADDRESS, value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
}
