//! `stackline help`: prints a command's help, all commands, a chapter of the language manual, or the meaning of kinds
//! of findings.

use crate::exit::{Error, Exit, Result};
use crate::flags::{HelpFlags, all_commands, command_line};
use crate::output;
use stackline_analyze::findings::KINDS;
use stackline_report::help_topics::{finding_meanings, language_chapter, language_topics};

/// Prints the help that was asked for.
pub(crate) fn help(flags: &HelpFlags) -> Result {
    let mut command = command_line();
    let written: Vec<String> = flags.words.iter().map(|word| word.to_lowercase()).collect();
    let words: Vec<&str> = written.iter().map(String::as_str).collect();
    match words[..] {
        [] => print_help(&mut command, false)?,
        ["all"] => output::print(&all_commands(&command))?,
        [word] if let Some(chapter) = language_chapter(word) => output::print(&chapter)?,
        ["findings"] => output::print(&finding_meanings(KINDS))?,
        [word] if let Some(kind) = KINDS.iter().position(|kind| kind.name == word) => {
            output::print(&finding_meanings(&KINDS[kind..=kind]))?;
        }
        _ => {
            command.build();
            let mut below = &mut command;
            for word in &words {
                below = below
                    .find_subcommand_mut(word)
                    .ok_or_else(|| unknown(&words.join(" ")))?;
            }
            print_help(below, true)?;
        }
    }
    Ok(Exit::Done)
}

fn print_help(command: &mut clap::Command, is_long: bool) -> Result<()> {
    let text = if is_long {
        command.render_long_help()
    } else {
        command.render_help()
    };
    output::print(&text.to_string())
}

fn unknown(words: &str) -> Error {
    let topics: Vec<&str> = language_topics().chain(["findings"]).collect();
    let command = command_line();
    let shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    let kinds = KINDS.iter().map(|kind| kind.name);
    let known = topics.iter().copied().chain(kinds);
    let known = known.chain(shown.map(clap::Command::get_name));
    let hint = match stackline_spec::nearest(words, known) {
        Some(near) => format!("did you mean `stackline help {near}`?"),
        None => format!(
            "`stackline help all` lists the commands; the topics are {}",
            topics.join(", ")
        ),
    };
    Error::input(format!("`{words}` is neither a command nor a topic")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_topic_hides_a_command() {
        let command = command_line();
        let kinds = KINDS.iter().map(|kind| kind.name);
        for word in language_topics().chain(kinds).chain(["findings"]) {
            assert!(command.find_subcommand(word).is_none(), "{word}");
        }
    }
}
