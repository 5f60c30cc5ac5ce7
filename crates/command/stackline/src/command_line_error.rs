//! The error for a command line that cannot be parsed, in the form of all other errors: one sentence, then a hint.
//! Help is printed by clap itself.

use crate::exit::{Blame, Error};
use crate::flags::command_line;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error for a command line that clap refused.
pub(crate) fn error(refused: &clap::Error) -> Error {
    Error::new(Blame::Input, sentence(refused)).hint(hint(refused))
}

/// clap's sentence, on one line; clap breaks it where it lists something.
fn sentence(refused: &clap::Error) -> String {
    let rendered = refused.to_string();
    let lines = rendered
        .lines()
        .take_while(|line| !line.is_empty() && !line.contains("[possible values:"));
    let words: Vec<&str> = lines.map(str::trim).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// Words that people type to list the kept runs.
const LISTS_RUNS: [&str; 3] = ["list", "ls", "history"];

fn hint(refused: &clap::Error) -> String {
    let said = |kind| {
        refused
            .get(kind)
            .map(ToString::to_string)
            .filter(|words| !words.is_empty())
    };
    let refused_value = said(ContextKind::InvalidArg).unwrap_or_default();
    if refused_value.starts_with("--pid") && refused.kind() == ErrorKind::ValueValidation {
        return "a process ID is a number, which `pgrep -n NAME` prints; a service or container is named by --unit or --container".to_owned();
    }
    let suggested = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let written = said(ContextKind::InvalidSubcommand).or_else(|| said(ContextKind::InvalidArg));
    let unknown = said(ContextKind::InvalidSubcommand);
    if unknown.is_some_and(|word| LISTS_RUNS.contains(&word.as_str())) && command() == "stackline" {
        return "`stackline runs` lists kept runs".to_owned();
    }
    let is_conflict = refused.kind() == ErrorKind::ArgumentConflict;
    let slip = || is_conflict.then(mistyped_command).flatten();
    let unknown = slip().or_else(|| said(ContextKind::InvalidSubcommand));
    if let Some(meant) = unknown.and_then(|word| near_command(&word)) {
        return format!("did you mean `{meant}`?");
    }
    if let Some(meant) = suggested.into_iter().find_map(said)
        && is_near(&written.unwrap_or_default(), &meant)
    {
        return format!("did you mean `{meant}`?");
    }
    if refused.get(ContextKind::InvalidSubcommand).is_some() && command() == "stackline" {
        return "`stackline help all` lists the commands".to_owned();
    }
    if let Some(ContextValue::StyledStrs(tips)) = refused.get(ContextKind::Suggested)
        // clap's tip to pass a mistyped flag "as a value" is never what was meant.
        && let Some(tip) = tips.iter().map(ToString::to_string).find(|tip| !tip.contains("as a value"))
    {
        return tip;
    }
    if let Some(values) = said(ContextKind::ValidValue) {
        return format!("expected one of {values}");
    }
    let explains = format!("see `{} --help`", command());
    let usage = said(ContextKind::Usage).unwrap_or_default();
    match usage.trim_start_matches("Usage:").trim() {
        "" => explains,
        // The first of several usage lines.
        usage => {
            let usage = usage.lines().next().unwrap_or_default().trim();
            format!("usage: `{usage}`; {explains}")
        }
    }
}

/// The command at this level whose name nearly equals the word (transposed letters included), or which is the only one
/// that begins with it.
fn near_command(word: &str) -> Option<String> {
    let command = known_command().0;
    let shown = || {
        command
            .get_subcommands()
            .filter(|below| !below.is_hide_set())
    };
    let names: Vec<&str> = shown().map(clap::Command::get_name).collect();
    let begins = || {
        let mut begun = names.iter().filter(|name| name.starts_with(word));
        begun.next().filter(|_| begun.next().is_none())
    };
    stackline_spec::nearest(word, names.iter().copied())
        .or_else(|| begins().map(|name| (*name).to_owned()))
}

/// Whether few letters differ. clap also proposes words that only share some letters.
fn is_near(written: &str, meant: &str) -> bool {
    let name = |word: &str| word.trim_start_matches('-').to_owned();
    let name = (name(written), name(meant));
    name.1.starts_with(&name.0) || stackline_spec::nearest(&name.0, [name.1.as_str()]).is_some()
}

/// The command that was meant, as far as its words are known: `stackline runs`.
fn command() -> String {
    known_command().1
}

/// The word after that command, if it may be a mistyped subcommand that was taken for something else: `runs remve x`.
fn mistyped_command() -> Option<String> {
    let known = known_command().1.split(' ').count();
    let word = std::env::args_os().nth(known)?.into_string().ok()?;
    (!word.starts_with('-')).then_some(word)
}

/// The deepest subcommand whose words are known, and its words.
fn known_command() -> (clap::Command, String) {
    let (mut command, mut path) = (command_line(), "stackline".to_owned());
    for word in std::env::args_os().skip(1) {
        let Some(below) = command.find_subcommand(word).cloned() else {
            break;
        };
        path = format!("{path} {}", below.get_name());
        command = below;
    }
    (command, path)
}

/// Whether `--json` is in a command line that cannot be parsed and belongs to this program. Words after the name of a
/// program to start belong to that program.
pub(crate) fn asks_for_json() -> bool {
    let (command, path) = known_command();
    let starts_programs = command
        .get_positionals()
        .any(|it| it.is_trailing_var_arg_set());
    let takes_value = |word: &str| {
        let name = word.trim_start_matches("--");
        command
            .get_arguments()
            .any(|flag| flag.get_long() == Some(name) && flag.get_action().takes_values())
    };
    let mut words = std::env::args_os().skip(path.split(' ').count());
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--json") => return true,
            Some("--") => return false,
            Some(flag) if flag.starts_with("--") && takes_value(flag) => drop(words.next()),
            Some(flag) if flag.starts_with('-') => {}
            _ if starts_programs => return false,
            _ => {}
        }
    }
    false
}

/// The error for a word that looks like a flag where the name of a program is expected: no program's name begins with
/// `-`.
pub(crate) fn unknown_flag(word: &str, command: &str) -> Error {
    let line = command_line();
    let flags: Vec<String> = line
        .find_subcommand(command)
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .filter_map(|flag| flag.get_long().map(|name| format!("--{name}")))
        .chain(["--help".to_owned()])
        .collect();
    let name = word.split('=').next().unwrap_or(word);
    let name = if name.starts_with("--") {
        name.to_owned()
    } else {
        format!("-{name}")
    };
    let near = stackline_spec::nearest(&name, flags.iter().map(String::as_str));
    let error = Error::new(Blame::Input, format!("unexpected argument '{word}' found"));
    error.hint(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("see `stackline {command} --help`"),
    })
}
