//! `stackline completions` and `stackline man`: shell completions and manual pages, generated from the flags.

use crate::exit::{Error, Exit, Result};
use crate::flags::{Completions, Man, command_line};
use crate::output;
use crate::reference::reference_pages;
use clap_mangen::Man as Page;
use std::io::Write as _;

const NAME: &str = "stackline";
/// Width of example lines, in columns; a longer line is printed as a paragraph.
const WIDTH: usize = 78;

/// Prints the completion script for a shell.
pub(crate) fn completions(flags: &Completions) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command_line(), NAME, &mut script);
    output::print_for_programs(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a manual page for the program and for each command into a directory, or prints that of the program.
pub(crate) fn man(flags: &Man) -> Result {
    let Some(directory) = &flags.directory else {
        output::print_for_programs(&String::from_utf8_lossy(&page(
            command_line().bin_name(NAME),
        )?))?;
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
    for (name, command) in pages(command_line().name(NAME).bin_name(NAME)) {
        let path = directory.join(format!("{name}.1"));
        output::file(&path, page(command)?)?;
        output::print(&format!("{}\n", path.display()))?;
    }
    Ok(Exit::Done)
}

/// A command and those below it, each with the name of its page (`stackline-net-exec`) and the words by which it is
/// called.
fn pages(command: clap::Command) -> Vec<(String, clap::Command)> {
    let name = command.get_name().to_owned();
    let words = command.get_bin_name().unwrap_or(&name).to_owned();
    let shown = shown_below(&command);
    let below = shown.flat_map(|below| {
        let (page, words) = (
            format!("{name}-{}", below.get_name()),
            format!("{words} {}", below.get_name()),
        );
        pages(below.clone().name(page).bin_name(words))
    });
    let below: Vec<_> = below.collect();
    std::iter::once((name, command)).chain(below).collect()
}

fn shown_below(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// The manual page of a command: clap's sections, except that usage, examples and notes are printed verbatim.
fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut command = command.disable_help_subcommand(true);
    if command.find_subcommand("help").is_some() {
        command = command.mut_subcommand("help", |help| help.hide(true));
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines().map(str::trim);
    let usage = usage.collect::<Vec<_>>().join("\n");
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    let (examples, notes) = examples_and_notes(&after);
    let see_also = see_also(&command);
    let has_flags = command.get_arguments().any(|flag| !flag.is_hide_set());
    let has_commands = shown_below(&command).next().is_some();
    let page = Page::new(command);
    let mut text = Vec::new();
    let mut write = || -> std::io::Result<()> {
        page.render_title(&mut text)?;
        page.render_name_section(&mut text)?;
        as_printed(&mut text, "SYNOPSIS", &usage)?;
        page.render_description_section(&mut text)?;
        if has_flags {
            page.render_options_section(&mut text)?;
        }
        if has_commands {
            page.render_subcommands_section(&mut text)?;
        }
        as_printed(&mut text, "EXAMPLES", &examples)?;
        as_printed(&mut text, "NOTES", &notes)?;
        as_printed(&mut text, "SEE ALSO", &see_also)
    };
    write().map_err(|e| Error::measurement(format!("cannot make the manual page: {e}")))?;
    Ok(text)
}

/// Splits the text after the flags into examples and notes.
fn examples_and_notes(after: &str) -> (String, String) {
    let Some(examples) = after.strip_prefix("Examples:\n") else {
        return (String::new(), after.to_owned());
    };
    let is_example = |line: &&str| line.is_empty() || line.starts_with(' ');
    let lines: Vec<&str> = examples.lines().take_while(is_example).collect();
    let notes: Vec<&str> = examples.lines().skip(lines.len()).collect();
    let flush = |line: &str| line.strip_prefix("  ").unwrap_or(line).to_owned();
    let lines: Vec<String> = lines.into_iter().map(flush).collect();
    (lines.join("\n"), notes.join("\n"))
}

/// The pages above and below a command's own; for the program's page, the help topic on the language.
fn see_also(command: &clap::Command) -> String {
    let name = command.get_name();
    let above = name.rsplit_once('-').map(|(above, _)| above.to_owned());
    let below = shown_below(command).map(|below| format!("{name}-{}", below.get_name()));
    let pages: Vec<String> = above
        .into_iter()
        .chain(below)
        .map(|page| format!("{page}(1)"))
        .collect();
    if name == NAME {
        return "stackline help language".to_owned();
    }
    pages.join(", ")
}

/// A section whose lines are printed verbatim; nothing where there is no text.
fn as_printed(page: &mut Vec<u8>, heading: &str, text: &str) -> std::io::Result<()> {
    let text = text.trim_matches('\n');
    if text.is_empty() {
        return Ok(());
    }
    writeln!(page, ".SH \"{heading}\"\n.nf")?;
    for line in text.lines() {
        // In roff, a line that begins with `.` or `'` is a request, and a plain hyphen is printed as another
        // character.
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        // A long line is a paragraph, which roff may fill.
        if line.len() > WIDTH && !line.starts_with(' ') {
            writeln!(page, ".fi\n{guard}{line}\n.nf")?;
        } else {
            writeln!(page, "{guard}{line}")?;
        }
    }
    writeln!(page, ".fi")
}
