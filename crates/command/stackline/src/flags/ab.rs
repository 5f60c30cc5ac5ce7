//! Flags of `stackline ab`.

use super::choice::choice;
use super::gate::{CiFlags, GateRuleFlags};
use super::sharing::Sharing;
use super::spec_text::{SpecTextFlags, core};
use crate::exit::{Error, Result};
use clap::Args;
use stackline_core::plan::World;
use std::path::PathBuf;

pub(super) const AFTER: &str = "\
Examples:
  stackline ab before.stackline after.stackline --worse 5%
  stackline ab wan.stackline --b-over 'tcp(nodelay)'
  stackline ab -e '1 rr 32*200 over tcp' -e '1 rr 32*200 over unix' --most 500

How often the specifications repeat their measurements does not matter: pairs
are made until the verdict is known. Exit codes: 0 B is not worse, 4 B is worse,
5 that cannot be said after --most pairs. docs/CI.md states the rule.";

#[derive(Args, Debug)]
#[command(
    override_usage = "stackline ab [OPTIONS] <A> <B>\n       stackline ab [OPTIONS] -e <TEXT> -e <TEXT>\n       stackline ab [OPTIONS] <SPEC | -e TEXT> --b-over <STACKS>"
)]
pub(crate) struct AbFlags {
    /// The specifications: A, which is judged by, and B; files, or README.md#2
    #[arg(value_name = "SPEC", num_args = 0..=2)]
    pub(crate) specs: Vec<PathBuf>,
    /// A specification itself; files come before texts
    #[arg(short = 'e', long, value_name = "TEXT")]
    pub(crate) expression: Vec<String>,
    /// Stacks of B instead of its specification's; with one specification, A has its own
    #[arg(long, value_name = "STACKS")]
    pub(crate) b_over: Option<String>,
    /// World to run both in, instead of the specifications'
    #[arg(long = "in", value_name = "WORLD", value_parser = choice::<World>())]
    pub(crate) world: Option<World>,
    /// How to reach a host: NAME=local, =ssh:USER@HOST, =tcp:HOST:PORT or =exec:COMMAND; may be repeated
    #[arg(long = "host", value_name = "NAME=WHERE")]
    pub(crate) hosts: Vec<String>,
    /// Seed of both, instead of the one in the specifications
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Core to pin both ends to, or two: one for initiators, one for responders
    #[arg(long, value_name = "I[,R]", value_delimiter = ',', num_args = 1, value_parser = core)]
    pub(crate) cpu: Vec<usize>,
    /// Directory of the files of `< file` and `> file`
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Make at most this many pairs
    #[arg(long, value_name = "PAIRS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) most: u32,
    #[command(flatten)]
    pub(crate) rule: GateRuleFlags,
    #[command(flatten)]
    pub(crate) reports: CiFlags,
    /// Name of the kept runs, which get -a and -b behind it, instead of the specifications'
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

impl AbFlags {
    /// What both sides are given: A, then B.
    pub(crate) fn sides(&self) -> Result<[SpecTextFlags; 2]> {
        let files = self.specs.iter().map(|file| (Some(file.clone()), None));
        let texts = self
            .expression
            .iter()
            .map(|text| (None, Some(text.clone())));
        let given: Vec<_> = files.chain(texts).collect();
        let side = |of: &(Option<PathBuf>, Option<String>), over: Option<&String>| SpecTextFlags {
            spec: of.0.clone(),
            expression: of.1.clone(),
            over: over.cloned(),
            world: self.world,
            hosts: self.hosts.clone(),
            seed: self.seed,
            cpu: self.cpu.clone(),
            json: self.json,
        };
        let over = self.b_over.as_ref();
        match given.as_slice() {
            [a, b] => Ok([side(a, None), side(b, over)]),
            [both] if over.is_some() => Ok([side(both, None), side(both, over)]),
            _ => {
                let message = format!(
                    "`ab` compares two specifications, but {} given",
                    match given.len() {
                        0 => "none is",
                        1 => "one is",
                        _ => "more are",
                    }
                );
                Err(Error::input(message).hint("write `stackline ab A.stackline B.stackline`, or one specification with `--b-over STACKS`"))
            }
        }
    }
}
