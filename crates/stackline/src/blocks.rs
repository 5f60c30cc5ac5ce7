//! `stackline blocks`: the parallel block server and its load.

mod gateway;
mod replay;

use crate::exit::Result;
use crate::flags::{Blocks, BlocksCommand};

/// Carries out what is asked for.
pub(crate) fn blocks(flags: &Blocks) -> Result {
    match &flags.command {
        BlocksCommand::Gateway(flags) => gateway::gateway(flags),
        BlocksCommand::Replay(flags) => replay::replay(flags),
    }
}
