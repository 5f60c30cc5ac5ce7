//! The command line of `blocks`: the parallel block server and its load. Nothing here touches the machine.

mod replay;

use clap::{Args, Subcommand};

pub(crate) use replay::{BlockTransport, Replay, ViewerPath, Where};

#[derive(Args, Debug)]
pub(crate) struct Blocks {
    #[command(subcommand)]
    pub(crate) command: BlocksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlocksCommand {
    /// Ask for lists of blocks by the clock, as a viewer does, and show what came in time
    #[command(after_help = replay::AFTER)]
    Replay(Box<Replay>),
}
