//! Flags of `trace`.

use super::choice::choice;
use clap::Args;
use stackline_trace::scope::TraceScope;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline trace -- curl http://127.0.0.1:8080/            # a program here
  # two on hosts of an emulated network
  stackline trace --on wan.stackline web -- nginx -g 'daemon off;' client -- \\
      curl http://web/
  stackline trace here -- ./server here -- ./client         # two here
  stackline trace --pid 4242 --for 10s                      # one that runs
  # a container; --unit nginx.service, --cgroup PATH
  stackline trace --container web --for 10s
  stackline lifelines last; stackline diagnose last; stackline open

A host's name or `here` directly before `--` begins the next program. Programs are started in this \
order; those before the last are given time to listen. It ends with the last program, or with \
Ctrl-C; the others are then asked to end. docs/REAL.md says what is seen, what is not and what it \
costs.";

#[derive(Args, Debug)]
pub(crate) struct TraceFlags {
    /// An emulated network, as a specification or by the name of one that is up; hosts are its hosts
    #[arg(long, value_name = "NETWORK")]
    pub(crate) on: Option<PathBuf>,
    /// Processes that already run, here or in containers, with their children
    #[arg(long, value_name = "PID", num_args = 1.., conflicts_with = "on")]
    pub(crate) pid: Vec<u32>,
    /// A running container of Docker, Podman, containerd or a pod, by its name or the beginning of its id; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "on")]
    pub(crate) container: Vec<String>,
    /// A running systemd unit, such as nginx.service, of the system or of a user; may be repeated
    #[arg(long, value_name = "UNIT", conflicts_with = "on")]
    pub(crate) unit: Vec<String>,
    /// All processes of a control group and of those below it; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "on")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// How long to trace running programs; by default until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = stackline_core::quantity::parse_duration)]
    pub(crate) duration: Option<std::time::Duration>,
    /// How much of the disk the events of requests may take: when half of it is full, requests of one second in four are kept, later of
    /// one in sixteen, and so on, and a note says how many were left out; packets of an emulated network have half of it
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = stackline_core::quantity::parse_size)]
    pub(crate) most_disk: u64,
    /// What to record besides packets
    #[arg(long, value_parser = choice::<TraceScope>(), default_value_t = TraceScope::Calls)]
    pub(crate) see: TraceScope,
    /// Keep names of requests whole, up to 256 bytes each, instead of without values: targets of HTTP with users, queries and fragments,
    /// statements of SQL with literals and passwords, keys of Redis, users of logins, texts that answer. Headers, bodies, rows, bound
    /// values and texts of errors are never kept
    #[arg(long)]
    pub(crate) keep_contents: bool,
    /// Let programs write down the secrets of their TLS sessions (SSLKEYLOGFILE: OpenSSL's curl, GnuTLS, Python, Firefox), and read
    /// the requests within; they are gone with the trace
    #[arg(long)]
    pub(crate) decipher: bool,
    /// Run the programs again with a link of the network changed, such as 'link client - edge 100 Mbit/s', and compare; once for each
    #[arg(long = "try", value_name = "LINK")]
    pub(crate) tries: Vec<String>,
    /// The name of the run that is kept
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Programs: COMMAND..., or HOST -- COMMAND... for each
    #[arg(
        value_name = "HOST -- COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,
}
