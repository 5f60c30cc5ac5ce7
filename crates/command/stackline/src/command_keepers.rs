//! Which commands have keepers: those that start programs, or take things of the machine that do not go with a process.
//!
//! Others need none. Agents and emulators end when their pipes close, a program on a host with the first process of its number space,
//! namespaces with their descriptors. What `net up` makes stays on purpose.

use crate::clean;
use crate::exit::{Error, Result};
use crate::flags::{BlocksCommand, DisplayCommand, PaperCommand, StacklineCommand};
use stackline_guard::keeper::{self, Goes, Keeping};

/// Returns in the process that carries the command out.
pub(crate) fn keep(command: &StacklineCommand) -> Result<()> {
    let Some(goes) = goes(command) else {
        return Ok(());
    };
    let keeping = Keeping {
        goes,
        stays,
        sweep: clean::sweep,
    };
    keeper::fork_keepers(&keeping)
        .map_err(|error| Error::environment(format!("cannot start a process: {error}")))
}

fn goes(command: &StacklineCommand) -> Option<Goes> {
    match command {
        StacklineCommand::Trace(_) => Some(Goes::Everything),
        StacklineCommand::Papers(papers) => goes_of_a_paper(&papers.command),
        StacklineCommand::Paper(command) => goes_of_a_paper(command),
        StacklineCommand::Watch(_) | StacklineCommand::Factors(_) => Some(Goes::Session),
        _ => None,
    }
}

fn goes_of_a_paper(command: &PaperCommand) -> Option<Goes> {
    match command {
        PaperCommand::Display(display) => match display.command {
            DisplayCommand::Terminal(_) | DisplayCommand::Vserver(_) => Some(Goes::Everything),
            _ => None,
        },
        PaperCommand::Blocks(blocks) => match &blocks.command {
            BlocksCommand::Replay(replay) => replay.across.is_some().then_some(Goes::Session),
            _ => None,
        },
        PaperCommand::Reproduce(reproduce) => reproduce.paper.is_some().then_some(Goes::Session),
        PaperCommand::Ncc(_) => None,
    }
}

/// The emulator of a shared network ends with its last program, which may be another command's, or by `net down`.
fn stays(process: u32) -> bool {
    keeper::runs_this_program(process, "emulate")
}
