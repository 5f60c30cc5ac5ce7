//! Every command line that the documents, the help and the packaged units show is one that this program takes.

use super::command_line;
use clap::Command;
use std::path::Path;

/// The command lines of a shell's text, comments left out and continued lines joined.
fn lines_of(text: &str) -> Vec<String> {
    text.replace("\\\n", " ")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The simple commands of a line, as a shell divides it: words without their quotes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    let end_word = |word: &mut String, is_word: &mut bool, commands: &mut Vec<Vec<String>>| {
        if std::mem::take(is_word) {
            commands.last_mut().unwrap().push(std::mem::take(word));
        }
    };
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => break,
            (None, ' ') => end_word(&mut word, &mut is_word, &mut commands),
            (None, '|' | '&' | ';' | '(' | ')') => {
                end_word(&mut word, &mut is_word, &mut commands);
                commands.push(Vec::new());
            }
            (None, '>' | '<') => {
                end_word(&mut word, &mut is_word, &mut commands);
                // Where it goes is no argument.
                while characters.peek() == Some(&' ') {
                    characters.next();
                }
                while characters.peek().is_some_and(|c| !" ;|&".contains(*c)) {
                    characters.next();
                }
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    end_word(&mut word, &mut is_word, &mut commands);
    commands
}

/// What of a simple command is `stackline` and its arguments; before it may stand variables and `sudo`.
fn of_stackline(words: &[String]) -> Option<&[String]> {
    let at = words
        .iter()
        .position(|word| word != "sudo" && !word.contains('='))?;
    (words[at] == "stackline").then(|| &words[at..])
}

/// Checks the command lines of a text; returns how many there are.
fn check(place: &str, text: &str) -> usize {
    let mut checked = 0;
    for line in lines_of(text) {
        // `[` and `...` stand for something: no shell would take the line.
        if line.contains("...") && !line.contains('\'') {
            continue;
        }
        for words in commands(&line) {
            let Some(words) = of_stackline(&words) else {
                continue;
            };
            if let Err(error) = command_line().try_get_matches_from(words) {
                assert!(!error.use_stderr(), "{place}: {line}\n{error}");
            }
            checked += 1;
        }
    }
    checked
}

/// The parts of a Markdown text that are marked as a shell's.
fn shell_parts(document: &str) -> String {
    let parts = document.split("```sh\n").skip(1);
    parts
        .filter_map(|part| part.split_once("```"))
        .map(|(shell, _)| shell)
        .collect()
}

#[test]
fn the_commands_of_the_documents_are_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/howto"] {
        let pages = std::fs::read_dir(root.join(folder)).unwrap();
        documents.extend(pages.map(|entry| entry.unwrap().path()));
    }
    documents.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut checked = 0;
    for path in documents {
        let document = std::fs::read_to_string(&path).unwrap();
        checked += check(&path.display().to_string(), &shell_parts(&document));
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn the_examples_of_every_command_are_taken() {
    fn count_lines(command: &Command) -> usize {
        let after = command.get_after_help().map(ToString::to_string);
        let own = check(command.get_name(), &after.unwrap_or_default());
        own + command.get_subcommands().map(count_lines).sum::<usize>()
    }
    let checked = count_lines(&command_line());
    assert!(checked > 80, "{checked}");
}

#[test]
fn the_commands_of_the_packaged_units_are_taken() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging");
    let mut units = 0;
    for entry in std::fs::read_dir(packaging).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "service") {
            continue;
        }
        let unit = std::fs::read_to_string(&path).unwrap();
        let starts = unit
            .lines()
            .filter_map(|line| line.strip_prefix("ExecStart=/usr/bin/"));
        let checked: usize = starts
            .map(|line| check(&path.display().to_string(), line))
            .sum();
        assert_eq!(checked, 1, "{}", path.display());
        units += 1;
    }
    assert!(units >= 2, "{units}");
}
