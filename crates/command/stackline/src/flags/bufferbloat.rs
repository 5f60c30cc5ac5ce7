//! Flags of `stackline bufferbloat`. They touch nothing.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::path::PathBuf;

/// Whether latency grows under load.
#[derive(Args, Debug)]
pub(crate) struct BufferbloatFlags {
    /// The address of something large on a web server, such as https://HOST/big.bin
    #[arg(value_name = "URL", required_unless_present = "down", conflicts_with_all = ["down", "up", "rtt", "queue", "cure", "world"])]
    pub(crate) url: Option<String>,
    /// What the probes request; by default, the root of the same server
    #[arg(long, value_name = "URL", requires = "url")]
    pub(crate) probe: Option<String>,
    /// Where uploads are posted; by default, the same address as downloads
    #[arg(long, value_name = "URL", requires = "url")]
    pub(crate) upload: Option<String>,
    /// The version of HTTP; by default, the one that the server chooses: HTTP/2 over TLS if it has it, else HTTP/1.1
    #[arg(long, value_name = "VERSION", requires = "url", value_parser = http_versions())]
    pub(crate) http: Option<String>,
    /// Believe any certificate
    #[arg(long, requires = "url")]
    pub(crate) insecure: bool,
    /// Instead of a server: a modelled access line with this rate towards you, such as '100 Mbit/s'
    #[arg(long, value_name = "RATE", requires = "up")]
    pub(crate) down: Option<String>,
    /// Its rate from you
    #[arg(long, value_name = "RATE", requires = "down")]
    pub(crate) up: Option<String>,
    /// Its round trip without load
    #[arg(long, value_name = "TIME", default_value = "20 ms")]
    pub(crate) rtt: String,
    /// Its queues, such as '256 KiB' or '1000 packets fq_codel'
    #[arg(long, value_name = "QUEUE", default_value = "1000 packets")]
    pub(crate) queue: String,
    /// Queues that might cure it, tried as well; `none` tries nothing
    #[arg(long, value_name = "QUEUE", default_value = "1000 packets fq_codel")]
    pub(crate) cure: String,
    /// The world of the line
    #[arg(long = "in", value_name = "WORLD", default_value = "simulated", value_parser = PossibleValuesParser::new(["simulated", "emulated"]))]
    pub(crate) world: String,
    /// How long latency is measured in each of the three phases, s
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Connections that load the path
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) loads: u32,
    /// Print the specification, and run nothing; a server is asked for its version of HTTP alone
    #[arg(long, conflicts_with_all = ["json", "output", "plot"])]
    pub(crate) spec: bool,
    /// Draw latency over time as FILE.svg, .png or .pdf
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw latency over time in the text, also where that does not go to a terminal
    #[arg(long, conflicts_with = "json")]
    pub(crate) plot: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
}

/// The versions of HTTP, also as the option `version` of a specification names them.
fn http_versions() -> PossibleValuesParser {
    let version = |number, name| PossibleValue::new(number).alias(name);
    PossibleValuesParser::new([
        version("1", "http1"),
        version("2", "http2"),
        version("3", "http3"),
    ])
}
