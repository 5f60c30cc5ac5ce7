//! The specification that a command is given, and what replaces parts of it.

use super::choice::choice;
use clap::Args;
use stackline_core::plan::World;
use std::path::PathBuf;

#[derive(Args, Debug, Default)]
pub(crate) struct SpecTextFlags {
    /// The specification: a file, - (standard input), or README.md#2
    #[arg(required_unless_present = "expression", conflicts_with = "expression")]
    pub(crate) spec: Option<PathBuf>,
    /// The specification itself
    #[arg(short = 'e', long, value_name = "TEXT")]
    pub(crate) expression: Option<String>,
    /// Stacks instead of the specification's, such as 'tcp(nodelay), unix'; or all
    #[arg(long, value_name = "STACKS")]
    pub(crate) over: Option<String>,
    /// World to run in, instead of the specification's
    #[arg(long = "in", value_name = "WORLD", value_parser = choice::<World>())]
    pub(crate) world: Option<World>,
    /// How to reach a host: NAME=local, =ssh:USER@HOST, =tcp:HOST:PORT or =exec:COMMAND; may be repeated
    #[arg(long = "host", value_name = "NAME=WHERE")]
    pub(crate) hosts: Vec<String>,
    /// Seed to use instead of the one in the specification
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Core to pin both ends to, or two: one for initiators, one for responders
    #[arg(long, value_name = "I[,R]", value_delimiter = ',', num_args = 1, value_parser = core)]
    pub(crate) cpu: Vec<usize>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// The number of a core.
pub(super) fn core(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| {
        format!("`{text}` is not a valid core number; separate two cores with a comma, as in `--cpu 0,1`")
    })
}
