//! `stackline man --reference`: reference pages in Markdown, generated from the tables that the program itself uses.

use crate::flags::command_line;
use clap::{Arg, Command};
use stackline_core::catalogue::StackTable;
use stackline_core::plan::World;
use stackline_report::reference_pages::{self, head, row, table};
use stackline_runner::spec_source;
use std::fmt::Write as _;

/// The pages: file name and text.
pub(crate) fn reference_pages() -> [(&'static str, String); 4] {
    let stacks: Vec<(World, Vec<StackTable>)> = spec_source::worlds()
        .into_iter()
        .map(|(can, stacks)| (can.world, stacks))
        .collect();
    [
        ("commands.md", commands_page()),
        ("findings.md", reference_pages::findings_page()),
        ("keywords.md", reference_pages::keywords_page()),
        ("stacks.md", reference_pages::stacks_page(&stacks)),
    ]
}

fn commands_page() -> String {
    let mut out = head("Commands", "Every command with its flags and examples.");
    describe("stackline", &command_line(), &mut out);
    out
}

fn describe(path: &str, command: &Command, out: &mut String) {
    let below: Vec<&Command> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        .collect();
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    let does_more = path != "stackline" && command.get_arguments().any(|arg| is_shown(&arg));
    if below.is_empty() || does_more {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = write!(out, "\n## {path}\n\n{about}.\n\n");
        let shown = command.get_arguments().filter(is_shown);
        let rows: String = shown
            .map(|arg| row(&[&format!("`{}`", spelled(arg)), &explained(arg)]))
            .collect();
        if !rows.is_empty() {
            *out += &(table(&["flag", "what it does"]) + &rows);
        }
        let after = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        if let Some(rest) = after.strip_prefix("Examples:\n") {
            let examples = rest.split("\n\n").next().unwrap_or_default();
            let lines = examples
                .lines()
                .map(|line| line.strip_prefix("  ").unwrap_or(line));
            let _ = write!(
                out,
                "\n```sh\n{}\n```\n",
                lines.collect::<Vec<_>>().join("\n")
            );
        }
    }
    for one in below {
        describe(&format!("{path} {}", one.get_name()), one, out);
    }
}

/// A flag in its written form: `-o, --output <FILE>`, `<RUN>`.
fn spelled(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let takes = arg.get_action().takes_values();
    let value = if takes {
        let names: Vec<String> = values.iter().map(|name| format!("<{name}>")).collect();
        names.join(" ")
    } else {
        String::new()
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    format!("{} {value}", names.join(", ")).trim().to_owned()
}

fn explained(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let mut words = help;
    if !values.is_empty() {
        let _ = write!(words, "; one of {}", values.join(", "));
    }
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(words, "; default {}", defaults.join(", "));
    }
    words
}
