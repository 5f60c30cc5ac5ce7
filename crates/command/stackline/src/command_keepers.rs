//! Decides which commands get keepers: processes that clean up when the command is killed. Commands get them that
//! start programs, or use resources of the machine that are not released when a process ends.
//!
//! Others need none: agents and emulators end when their pipes close, programs on a host end with the first process of
//! its PID namespace, and namespaces end with their descriptors. What `net up` creates is meant to stay.

use crate::clean;
use crate::exit::{Error, Result};
use crate::flags::{BlocksCommand, DisplayCommand, PaperCommand, StacklineCommand};
use stackline_guard::keeper::{self, Goes, Keeping};

/// Forks the keepers that a command needs. Returns in the process that carries the command out.
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

/// What a command's keeper ends; `None` for a command without one.
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

/// Whether a keeper leaves a process alone: the emulator of a shared network ends with its last program, which may
/// belong to another command, or by `net down`.
fn stays(process: u32) -> bool {
    keeper::runs_this_program(process, "emulate")
}
