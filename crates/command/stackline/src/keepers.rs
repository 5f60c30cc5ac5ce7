//! Which commands have keepers: those that start programs, or take things of the machine that do not go with a process.
//!
//! Others need none. Agents and emulators end when their pipes close, a program on a host with the first process of its number space,
//! namespaces with their descriptors. What `net up` makes stays on purpose.

use crate::clean;
use crate::exit::{Error, Result};
use crate::flags::{BlocksCommand, Command, DisplayCommand};
use stackline_guard::keeper::{self, Goes, Keeping};

/// Returns in the process that carries the command out.
pub(crate) fn keep(command: &Command) -> Result<()> {
    let Some(goes) = goes(command) else {
        return Ok(());
    };
    let keeping = Keeping {
        goes,
        stays,
        sweep: clean::sweep,
    };
    keeper::keep(&keeping)
        .map_err(|error| Error::environment(format!("no process can be started: {error}")))
}

fn goes(command: &Command) -> Option<Goes> {
    match command {
        Command::Trace(_) => Some(Goes::Everything),
        Command::Display(display) => match display.command {
            DisplayCommand::Terminal(_) | DisplayCommand::Vserver(_) => Some(Goes::Everything),
            _ => None,
        },
        Command::Blocks(blocks) => match &blocks.command {
            BlocksCommand::Replay(replay) => replay.across.is_some().then_some(Goes::Session),
            _ => None,
        },
        Command::Watch(_) | Command::Factors(_) => Some(Goes::Session),
        Command::Reproduce(reproduce) => reproduce.paper.is_some().then_some(Goes::Session),
        _ => None,
    }
}

/// The emulator of a shared network ends with its last program, which may be another command's, or by `net down`.
fn stays(process: u32) -> bool {
    keeper::runs_this_program(process, "emulate")
}
