//! `stackline help`: prints a command's help, all commands, a chapter of the language manual, or the meaning of kinds
//! of findings.

use crate::exit::{Error, Exit, Result};
use crate::flags::{HelpFlags, all_commands, command_line};
use crate::output;
use stackline_analyze::findings::{FindingKind, KINDS};
use stackline_report::{manual_text, wrapped};

const LANGUAGE: &str = include_str!("../../../../docs/LANGUAGE.md");

/// The chapters of the language manual: the topic for `help`, and the heading.
const CHAPTERS: [(&str, &str); 17] = [
    ("language", "The stackline language"),
    ("specification", "1. A specification"),
    ("sizes", "Sizes and counts"),
    ("data", "Where data comes from and goes to"),
    ("limits", "Limits, repetition, warm-up"),
    ("composers", "Composers"),
    ("clauses", "Clauses"),
    ("timings", "Timings"),
    ("sweeps", "Sweeps"),
    ("hosts", "2. Hosts, networks, seed"),
    ("networks", "Networks"),
    ("tcp1995", "TCP of 1995"),
    ("procedures", "3. Procedures: application types of your own"),
    ("distributions", "4. Distributions"),
    ("words", "5. Words, numbers, comments"),
    ("grammar", "6. The grammar"),
    ("bounds", "7. Bounds"),
];

/// Prints the help that was asked for.
pub(crate) fn help(flags: &HelpFlags) -> Result {
    let mut command = command_line();
    let written: Vec<String> = flags.words.iter().map(|word| word.to_lowercase()).collect();
    let words: Vec<&str> = written.iter().map(String::as_str).collect();
    match words[..] {
        [] => print_help(&mut command, false)?,
        ["all"] => output::print(&all_commands(&command))?,
        [word] if let Some(heading) = heading(word) => output::print(&chapter(word, heading))?,
        ["findings"] => output::print(&meanings(KINDS))?,
        [word] if let Some(kind) = KINDS.iter().position(|kind| kind.name == word) => {
            output::print(&meanings(&KINDS[kind..=kind]))?;
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

fn heading(topic: &str) -> Option<&'static str> {
    CHAPTERS
        .iter()
        .find(|(word, _)| *word == topic)
        .map(|(_, heading)| *heading)
}

/// The text of a chapter; the first one is followed by the list of topics.
fn chapter(word: &str, heading: &str) -> String {
    let text = manual_text::chapter(LANGUAGE, heading).unwrap_or_default();
    if word == "language" {
        format!("{text}\n{}", topics())
    } else {
        text
    }
}

fn topics() -> String {
    let rows = CHAPTERS
        .iter()
        .map(|(word, heading)| format!("  stackline help {word:<15}{heading}\n"));
    format!("Chapters:\n{}", rows.collect::<String>())
}

/// The meanings of these kinds of findings.
fn meanings(kinds: &[FindingKind]) -> String {
    kinds
        .iter()
        .map(|kind| wrapped(&format!("{}: {}", kind.name, kind.meaning)))
        .collect()
}

fn unknown(words: &str) -> Error {
    let topics = CHAPTERS.iter().map(|(word, _)| *word);
    let topics: Vec<&str> = topics.chain(["findings"]).collect();
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
    fn every_chapter_of_the_language_has_a_word_and_fits_80_columns() {
        let headings: Vec<&str> = LANGUAGE
            .lines()
            .filter(|line| line.starts_with('#') && line.contains("# "))
            .map(|line| line.trim_start_matches('#').trim())
            .collect();
        let known: Vec<&str> = CHAPTERS.iter().map(|(_, heading)| *heading).collect();
        assert_eq!(headings, known);
        for (word, heading) in CHAPTERS {
            let text = chapter(word, heading);
            assert!(text.lines().count() > 3, "{word}");
            for line in text.lines() {
                assert!(
                    line.chars().count() <= 80 || line.starts_with("    "),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn each_kind_of_finding_is_explained_in_80_columns() {
        let text = meanings(KINDS);
        for kind in KINDS {
            let begins = format!("{}: ", kind.name);
            assert!(
                text.lines().any(|line| line.starts_with(&begins)),
                "{begins}"
            );
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn no_topic_hides_a_command() {
        let command = command_line();
        let kinds = KINDS.iter().map(|kind| kind.name);
        let words = CHAPTERS.iter().map(|(word, _)| *word);
        for word in words.chain(kinds).chain(["findings"]) {
            assert!(command.find_subcommand(word).is_none(), "{word}");
        }
    }
}
