//! `stackline agent`: serves a coordinator over stdin and stdout.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use std::io::{IsTerminal, stdin, stdout};

/// Serves until the pipe closes.
pub(crate) fn agent(flags: &flags::AgentFlags) -> Result {
    if stdin().is_terminal() {
        output::say(
            &"the agent reads from a pipe and is started automatically by `stackline run` (Ctrl-D exits)",
        );
    }
    if let Some(net) = &flags.net_namespace {
        // While this process has one thread.
        stackline_emu::enter::enter_network(flags.user_namespace.as_deref(), net)?;
    }
    stackline_live::agent::serve(
        stdin(),
        stdout().lock(),
        flags.files.as_deref(),
        flags.share,
    )?;
    Ok(Exit::Done)
}
