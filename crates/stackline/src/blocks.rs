//! `stackline blocks`: the parallel block server.

mod gateway;

use crate::exit::Result;
use crate::flags::{Blocks, BlocksCommand};

/// Does what was asked for.
pub(crate) fn blocks(flags: &Blocks) -> Result {
    match &flags.command {
        BlocksCommand::Gateway(flags) => gateway::gateway(flags),
    }
}
