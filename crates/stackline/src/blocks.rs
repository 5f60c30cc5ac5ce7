//! `stackline blocks`: the parallel block server and its load.

mod replay;

use crate::exit::Result;
use crate::flags::{Blocks, BlocksCommand};

/// Carries out what is asked for.
pub(crate) fn blocks(flags: &Blocks) -> Result {
    match &flags.command {
        BlocksCommand::Replay(flags) => replay::replay(flags),
    }
}
