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
  stackline trace --pid 4242 --for 10s                      # a running one
  # a container; also --unit nginx.service, --cgroup PATH
  stackline trace --container web --for 10s
  stackline lifelines last; stackline diagnose last; stackline open

A host name or `here` directly before `--` begins the next program. Programs are started in this \
order; all but the last are given time to start listening. The trace ends when the last program \
exits, or with Ctrl-C; the others are then asked to exit. docs/REAL.md describes what is seen, \
what is not, and what tracing costs.";

#[derive(Args, Debug)]
pub(crate) struct TraceFlags {
    /// An emulated network, given as a specification or by the name of one that is up; HOST is then one of its hosts
    #[arg(long, value_name = "NETWORK")]
    pub(crate) on: Option<PathBuf>,
    /// The network of the specification, if several have the first host
    #[arg(long, value_name = "NAME", requires = "on")]
    pub(crate) network: Option<String>,
    /// Running processes, here or in containers, with their children
    #[arg(long, value_name = "PID", num_args = 1.., conflicts_with = "on")]
    pub(crate) pid: Vec<u32>,
    /// A running container (in Docker, Podman, containerd or a pod), by name or by a prefix of its id; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "on")]
    pub(crate) container: Vec<String>,
    /// A running systemd unit of the system or of a user, such as nginx.service; may be repeated
    #[arg(long, value_name = "UNIT", conflicts_with = "on")]
    pub(crate) unit: Vec<String>,
    /// All processes in a control group and the groups below it; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "on")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// How long to trace running programs; by default until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = stackline_core::quantity::parse_duration)]
    pub(crate) duration: Option<std::time::Duration>,
    /// Disk space that request events may take: when half of it is full, requests from one second in four are kept, then from one in sixteen, and
    /// so on; a note reports how many were left out. It is never more than a quarter of what is free on the disk. With an emulated network, half of
    /// the space is for its packets
    #[arg(long, value_name = "SIZE", default_value = "8GiB", value_parser = stackline_core::quantity::parse_size)]
    pub(crate) most_disk: u64,
    /// What to record besides packets
    #[arg(long, value_parser = choice::<TraceScope>(), default_value_t = TraceScope::Calls)]
    pub(crate) see: TraceScope,
    /// Keep request names whole, up to 256 bytes each, rather than without their values: HTTP targets with userinfo, queries and fragments, SQL
    /// statements with literals and passwords, Redis keys, login user names, response texts. Headers, bodies, rows, bound values and error texts
    /// are never kept
    #[arg(long)]
    pub(crate) keep_contents: bool,
    /// Make programs write their TLS session secrets to a file (SSLKEYLOGFILE: curl with OpenSSL, GnuTLS, Python, Firefox), and decrypt the requests
    /// with them; the secrets are deleted when the trace ends
    #[arg(long)]
    pub(crate) decipher: bool,
    /// Run the programs again with a link of the network changed, such as 'link client - edge 100 Mbit/s', and compare; may be repeated
    #[arg(long = "try", value_name = "LINK")]
    pub(crate) tries: Vec<String>,
    /// Name of the kept run
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
    /// Print the findings as JSON on standard output; what the programs print goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// How many notes to print: three, or all
    #[arg(
        long,
        value_name = "few|all",
        hide_possible_values = true,
        default_value = "few"
    )]
    pub(crate) notes: super::NotesFlag,
    /// Programs: COMMAND..., or HOST -- COMMAND... for each
    #[arg(
        value_name = "HOST -- COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<OsString>,
}
