//! Flags of `client`.

use clap::{Args, ValueEnum};

pub(super) const AFTER: &str = "\
Examples:
  # the whole client: include it, compile with -pthread
  stackline client c > stackline_events.h
  stackline client c --example > example.c
  cc -pthread -o example example.c && STACKLINE_EVENTS=text:app.log ./example
  stackline import app.log && stackline lifelines last

  stackline client python > stackline_events.py    # the whole client: import it";

#[derive(Args, Debug)]
pub(crate) struct ClientFlags {
    /// The language of the program
    pub(crate) language: Language,
    /// Instead, print an example program that uses the client
    #[arg(long)]
    pub(crate) example: bool,
    /// Instead, print what a stack of your own needs (`over plugin`, `over program`): the header in C, with --example a whole stack; in Python a pair of programs
    #[arg(long)]
    pub(crate) stack: bool,
}

/// A language that events are emitted from.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Language {
    C,
    Python,
}
