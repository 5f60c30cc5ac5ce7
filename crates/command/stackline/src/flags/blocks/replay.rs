//! The command line of `blocks replay`. Nothing here touches the machine.

use crate::flags::choice::choice;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use stackline_blocks::limits;
use stackline_blocks::pyramid_viewer::ViewerMotion;
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_core::quantity::parse_duration;
use stackline_core::quantity::{parse_size, parse_size_or_none};
use stackline_core::units;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const AFTER: &str = "\
Examples:
  # a viewer flies over a loaded picture
  stackline blocks replay kansas
  stackline blocks replay kansas --path pan --for 30s --transport rtp --age \\
      200ms
  stackline blocks replay map --blocks 36 --random --interval 100ms
  # starts everything on the network's hosts
  stackline blocks replay --across wan.stackline --in emulated
  stackline blocks replay --across wan.stackline --in simulated --blocks 36 \\
      --disk 'bivalue(8 ms, 22 ms)'

A list is sent at each interval, whatever happened to the previous one. With --across, the last host \
is the client, a host named `master` is the master (otherwise the master runs on the client's \
host), and all others are disk servers. The path of each block is kept as a run: see `stackline \
diagnose last`, `lifelines last` or `open`.";

/// Where a session is replayed over a declared network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkWorld {
    /// Real processes on hosts of an emulated network
    Emulated,
    /// Virtual time
    Simulated,
}

/// The flags that stand on the command line, by their fields: others have their usual values, or those of variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenFlags(BTreeSet<String>);

impl GivenFlags {
    /// Whether that flag does.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.0.contains(flag)
    }
}

impl FromArgMatches for GivenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = |flag: &&clap::Id| {
            matches.value_source(flag.as_str()) == Some(ValueSource::CommandLine)
        };
        Ok(Self(
            matches
                .ids()
                .filter(is_given)
                .map(ToString::to_string)
                .collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for GivenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) given: GivenFlags,
    /// Sets to read; each is requested separately
    pub(crate) sets: Vec<String>,
    /// The master's address
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "STACKLINE_BLOCKS_MASTER",
        default_value = "127.0.0.1:7480"
    )]
    pub(crate) master: String,
    /// Specification that declares the network to use
    #[arg(long, value_name = "SPEC", conflicts_with = "sets")]
    pub(crate) across: Option<PathBuf>,
    /// Network name, if the specification has several
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
    /// World for that network
    #[arg(long = "in", value_name = "WORLD", default_value = "emulated")]
    pub(crate) world: NetworkWorld,
    /// The client's host
    #[arg(long, value_name = "HOST")]
    pub(crate) client: Option<String>,
    /// The master's host
    #[arg(long, value_name = "HOST")]
    pub(crate) master_host: Option<String>,
    /// A disk server's host; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) server: Vec<String>,
    /// Disks per server
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) disks: u16,
    /// Duration of a disk read, such as '10 ms' or 'bivalue(8 ms, 22 ms)'
    #[arg(long, value_name = "TIME")]
    pub(crate) disk: Option<String>,
    /// Memory for cached blocks on each server
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size_or_none)]
    pub(crate) cache: u64,
    /// Size in pixels of the picture to load
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "4096x4096", value_parser = pixels)]
    pub(crate) picture: (u32, u32),
    /// Copies of each block
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) replicas: u8,
    /// TCP options on that network, such as 'tcp(receive_buffer = 128 KiB)'; in the emulated world, only buffer sizes
    #[arg(long, value_name = "STACK", default_value = "tcp")]
    pub(crate) over: String,
    /// How the viewer moves over the picture
    #[arg(long, value_name = "PATH", value_parser = choice::<ViewerMotion>(), default_value = "flight", conflicts_with_all = ["blocks", "trace"])]
    pub(crate) path: ViewerMotion,
    /// Speed of the viewer in pixels per second
    #[arg(long, value_name = "PIXELS", default_value_t = 400.0, conflicts_with_all = ["blocks", "trace"])]
    pub(crate) speed: f64,
    /// Size of the viewer's window in pixels
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1024x768", value_parser = pixels, conflicts_with_all = ["blocks", "trace"])]
    pub(crate) window: (u32, u32),
    /// Request this many consecutive blocks per list
    #[arg(long, value_name = "N", conflicts_with = "trace", value_parser = blocks)]
    pub(crate) blocks: Option<u32>,
    /// Choose the blocks of each list at random
    #[arg(long, requires = "blocks", conflicts_with_all = ["trace", "path", "speed", "window"])]
    pub(crate) random: bool,
    /// Replay the lists written by --capture
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Time between two lists
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration, conflicts_with = "trace")]
    pub(crate) interval: Duration,
    /// How long to send lists
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) sharing: crate::flags::Sharing,
    /// Number of blocks the viewer caches and does not request again
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Maximum number of blocks in a list
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) most: u32,
    /// Append each list to the previous one instead of discarding blocks still pending
    #[arg(long)]
    pub(crate) append: bool,
    /// Transport for blocks
    #[arg(long, value_name = "WAY", value_parser = choice::<BlockDataTransport>(), default_value = "tcp")]
    pub(crate) transport: BlockDataTransport,
    /// Have servers drop blocks held longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) age: Option<Duration>,
    /// Receive buffer of each connection
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) receive_buffer: Option<u64>,
    /// Rate at which each server sends datagrams (udp, rtp), such as 50Mbit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) pace: Option<u64>,
    /// Write the lists to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Name of the kept run
    #[arg(
        long,
        value_name = "NAME",
        default_value = "replay",
        conflicts_with = "no_history"
    )]
    pub(crate) name: String,
    /// Only print the figures; do not keep a run
    #[arg(long)]
    pub(crate) no_history: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// `WIDTHxHEIGHT`, each 1 to a million.
fn pixels(text: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|side| (1..=1_000_000).contains(side))
    };
    let sides = text
        .split_once('x')
        .and_then(|(width, height)| Some((side(width)?, side(height)?)));
    sides.ok_or_else(|| format!("expected a size in pixels such as 4096x2048, not `{text}`"))
}

/// Blocks of a list.
fn blocks(text: &str) -> Result<u32, String> {
    let most = limits::LONGEST_LIST;
    let number = text
        .parse::<u32>()
        .map_err(|_| format!("`{text}` is not a valid number of blocks"))?;
    match number as usize <= most {
        true => Ok(number),
        false => Err(format!(
            "a list can have at most {most} blocks; use a shorter --interval to send more lists"
        )),
    }
}

/// A rate, in bytes a second.
fn rate(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().strip_suffix("/s").unwrap_or("");
    let bits = number
        .trim()
        .parse::<f64>()
        .ok()
        .zip(units::find_factor(units::RATE_UNITS, unit));
    let bytes = bits
        .map(|(number, bits)| number * bits / 8.0)
        .filter(|bytes| (1.0..1e12).contains(bytes));
    bytes
        .map(|bytes| bytes as u64)
        .ok_or_else(|| format!("expected a rate such as 50Mbit/s, not `{text}`"))
}
