//! Flags of `completions` and `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write a page for each command to this directory; by default, print the program's own page on stdout
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write reference pages in Markdown instead: commands, findings, keywords, stacks
    #[arg(long, requires = "directory")]
    pub(crate) reference: bool,
}
