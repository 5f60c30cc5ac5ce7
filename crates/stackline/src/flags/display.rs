//! The command line of `display`: a structured display served, looked at, measured. Nothing here touches the machine.

use clap::{Args, Subcommand, ValueEnum};
use stackline_displayserver::address::Address;
use stackline_displayserver::level::Level;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  stackline display serve                    # prints the address of its page; open it
  stackline display bench --to 127.0.0.1:7085
  stackline display bench --level pipelined,batched --picture vectors

docs/DISPLAY.md describes symbols, levels, the protocol, what is bounded.";

#[derive(Args, Debug)]
pub(crate) struct Display {
    #[command(subcommand)]
    pub(crate) command: DisplayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DisplayCommand {
    /// Serve a display until Ctrl-C: clients draw on it, browsers look on
    Serve(DisplayServe),
    /// Measure a display with the V-System's pictures at four levels of the protocol
    Bench(DisplayBench),
    /// Bring a display's page to a port: from a unix socket, as out of an emulated host
    View(DisplayView),
}

#[derive(Args, Debug)]
pub(crate) struct DisplayServe {
    /// Where clients connect: HOST:PORT, or unix:PATH; may be given several times
    #[arg(long, value_name = "ADDRESS", value_parser = Address::of, default_value = "127.0.0.1:7085")]
    pub(crate) listen: Vec<Address>,
    /// Where browsers look on: HOST:PORT, or unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = Address::of, default_value = "127.0.0.1:8085")]
    pub(crate) view: Address,
    /// What clients have to know; needed where others than this machine's programs can connect
    #[arg(long, value_name = "SECRET", env = "STACKLINE_DISPLAY_SECRET", hide_env_values = true)]
    pub(crate) secret: Option<String>,
    /// Memory of a client's symbols, at most
    #[arg(long, value_name = "SIZE", value_parser = super::size::size, default_value = "64MiB")]
    pub(crate) memory: u64,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayBench {
    /// The display; one of its own where none is given
    #[arg(long, value_name = "ADDRESS", value_parser = Address::of)]
    pub(crate) to: Option<Address>,
    /// What its clients have to know
    #[arg(long, value_name = "SECRET", env = "STACKLINE_DISPLAY_SECRET", hide_env_values = true)]
    pub(crate) secret: Option<String>,
    /// Levels, instead of all four
    #[arg(long, value_name = "LEVEL,...", value_delimiter = ',')]
    pub(crate) level: Vec<LevelFlag>,
    /// Pictures, instead of the paper's three
    #[arg(long, value_name = "PICTURE,...", value_delimiter = ',')]
    pub(crate) picture: Vec<PictureFlag>,
    /// Trials of each rate
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) trials: u16,
    /// Keep the pictures on the display for so long at the end
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    pub(crate) hold: Option<Duration>,
    /// Write each picture as it was drawn into a directory (with a display of its own)
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "to")]
    pub(crate) png: Option<PathBuf>,
    /// Print JSON on stdout: every trial
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayView {
    /// Where the display shows itself, as `display serve` prints it: unix:PATH?SECRET, or HOST:PORT
    #[arg(value_name = "ADDRESS")]
    pub(crate) from: String,
    /// The port for browsers
    #[arg(long, value_name = "HOST:PORT", value_parser = Address::of, default_value = "127.0.0.1:8085")]
    pub(crate) listen: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelFlag {
    StopAndWait,
    Pipelined,
    Batched,
    Structured,
}

impl From<LevelFlag> for Level {
    fn from(flag: LevelFlag) -> Self {
        match flag {
            LevelFlag::StopAndWait => Self::StopAndWait,
            LevelFlag::Pipelined => Self::Pipelined,
            LevelFlag::Batched => Self::Batched,
            LevelFlag::Structured => Self::Structured,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFlag {
    Vectors,
    Rectangles,
    Text,
    /// Lines of 10 pixels, as x11perf has them; only where it is named
    Short,
}

impl PictureFlag {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Vectors => "vectors",
            Self::Rectangles => "rectangles",
            Self::Text => "text",
            Self::Short => "short",
        }
    }
}
