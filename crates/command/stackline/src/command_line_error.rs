//! A command line that cannot be read, in the form of every other error: one sentence, then a hint. Help is clap's own.

use crate::exit::{Blame, Error};
use crate::flags::command_line;
use clap::error::{ContextKind, ContextValue};

/// What is wrong with a command line.
pub(crate) fn error(refused: &clap::Error) -> Error {
    Error::new(Blame::Input, sentence(refused)).hint(hint(refused))
}

/// clap's sentence, which it breaks where it lists something.
fn sentence(refused: &clap::Error) -> String {
    let rendered = refused.to_string();
    let lines = rendered
        .lines()
        .take_while(|line| !line.is_empty() && !line.contains("[possible values:"));
    let words: Vec<&str> = lines.map(str::trim).collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// What people type to see which runs are kept.
const LISTS_RUNS: [&str; 3] = ["list", "ls", "history"];

fn hint(refused: &clap::Error) -> String {
    let said = |kind| {
        refused
            .get(kind)
            .map(ToString::to_string)
            .filter(|words| !words.is_empty())
    };
    let suggested = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let written = said(ContextKind::InvalidSubcommand).or_else(|| said(ContextKind::InvalidArg));
    let unknown = said(ContextKind::InvalidSubcommand);
    if unknown.is_some_and(|word| LISTS_RUNS.contains(&word.as_str())) && command() == "stackline" {
        return "`stackline runs` lists kept runs".to_owned();
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
        // Who mistypes a flag means no value that looks like one.
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
        usage => format!("usage: `{usage}`; {explains}"),
    }
}

/// Whether few letters differ: clap also proposes words that only share some.
fn is_near(written: &str, meant: &str) -> bool {
    let name = |word: &str| word.trim_start_matches('-').to_owned();
    let name = (name(written), name(meant));
    name.1.starts_with(&name.0) || stackline_spec::nearest(&name.0, [name.1.as_str()]).is_some()
}

/// The command that was meant, as far as its words are known.
fn command() -> String {
    let (mut command, mut path) = (command_line(), "stackline".to_owned());
    for word in std::env::args_os().skip(1) {
        let Some(below) = command.find_subcommand(word).cloned() else {
            break;
        };
        path = format!("{path} {}", below.get_name());
        command = below;
    }
    path
}
