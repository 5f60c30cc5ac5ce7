//! The command line of `blocks`: the parallel block server and its load. Nothing here touches the machine.

mod gateway;
mod replay;

use clap::{Args, Subcommand};

pub(crate) use gateway::BlocksGateway;
pub(crate) use replay::{BlockTransport, Replay, ViewerPath, Where};

#[derive(Args, Debug)]
pub(crate) struct Blocks {
    #[command(subcommand)]
    pub(crate) command: BlocksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlocksCommand {
    /// Serve sets to HTTP clients: blocks, ranges, tiles, a page that shows pictures
    #[command(after_help = gateway::AFTER)]
    Gateway(BlocksGateway),
    /// Ask for lists of blocks by the clock, as a viewer does, and show what came in time
    #[command(after_help = replay::AFTER)]
    Replay(Box<Replay>),
}
