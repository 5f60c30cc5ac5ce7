//! Flags of `blocks`: the parallel block server.

mod gateway;

use clap::{Args, Subcommand};

pub(crate) use gateway::BlocksGateway;

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
}
