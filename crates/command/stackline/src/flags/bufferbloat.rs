//! Flags of `stackline bufferbloat`. They touch nothing.

use clap::Args;
use clap::builder::PossibleValuesParser;

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
    /// The version of HTTP; by default, HTTP/2 over TLS and HTTP/1.1 without
    #[arg(long, value_name = "VERSION", requires = "url", value_parser = PossibleValuesParser::new(["http1", "http2", "http3"]))]
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
    /// Print the specification, and run nothing
    #[arg(long, conflicts_with = "json")]
    pub(crate) spec: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
}
