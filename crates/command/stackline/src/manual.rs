//! `stackline completions` and `stackline man`: what shells complete, and the manual pages, both made of the flags.

use crate::exit::{Error, Exit, Result};
use crate::flags::{Completions, Man, command_line};
use crate::output;
use crate::reference::reference_pages;
use clap_mangen::Man as Page;

const NAME: &str = "stackline";

/// Prints what a shell has to read to complete commands and flags.
pub(crate) fn completions(flags: &Completions) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command_line(), NAME, &mut script);
    output::print_for_programs(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a manual page for the program and for each command, or prints the one of the program.
pub(crate) fn man(flags: &Man) -> Result {
    let Some(directory) = &flags.directory else {
        output::print_for_programs(&String::from_utf8_lossy(&page(command_line())?))?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(directory)
        .map_err(|cause| output::unwritten(directory.display(), &cause))?;
    if flags.reference {
        for (name, text) in reference_pages() {
            let path = directory.join(name);
            output::file(&path, text)?;
            output::print(&format!("{}\n", path.display()))?;
        }
        return Ok(Exit::Done);
    }
    for (name, command) in pages(command_line().name(NAME)) {
        let path = directory.join(format!("{name}.1"));
        output::file(&path, page(command)?)?;
        output::print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Done)
}

/// A command and those below it, each with the name of its page: `stackline-net-exec`.
fn pages(command: clap::Command) -> Vec<(String, clap::Command)> {
    let name = command.get_name().to_owned();
    let shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let below =
        shown.flat_map(|below| pages(below.clone().name(format!("{name}-{}", below.get_name()))));
    let below: Vec<_> = below.collect();
    std::iter::once((name, command)).chain(below).collect()
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let written = Page::new(command.disable_help_subcommand(true)).render(&mut text);
    written.map_err(|e| Error::measurement(format!("cannot make the manual page: {e}")))?;
    Ok(text)
}
