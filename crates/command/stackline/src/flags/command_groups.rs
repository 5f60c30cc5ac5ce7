//! The commands by what people come for: the first screen of help, and the list of all.

use super::StacklineFlags;
use super::examples::with_examples;
use clap::{Command, CommandFactory as _};

/// A group of commands under one heading.
struct CommandGroup {
    heading: &'static str,
    /// What the first screen shows, at most twelve in all groups.
    first: &'static [&'static str],
    /// What `help all` shows beside those.
    others: &'static [&'static str],
}

const GROUPS: [CommandGroup; 7] = [
    CommandGroup {
        heading: "Look at programs",
        first: &["trace", "import", "watch"],
        others: &["client"],
    },
    CommandGroup {
        heading: "Measure",
        first: &["run", "compare"],
        others: &[
            "gate",
            "ab",
            "bufferbloat",
            "check",
            "fmt",
            "plan",
            "stacks",
        ],
    },
    CommandGroup {
        heading: "Networks",
        first: &["net"],
        others: &[],
    },
    CommandGroup {
        heading: "Read results",
        first: &["open", "diagnose", "lifelines", "show"],
        others: &[
            "runs", "archive", "plot", "report", "export", "query", "keywords",
        ],
    },
    CommandGroup {
        heading: "Design and predict",
        first: &["predict", "factors"],
        others: &["truth"],
    },
    CommandGroup {
        heading: "The papers' systems",
        first: &[],
        others: &["papers"],
    },
    CommandGroup {
        heading: "Agents and housekeeping",
        first: &[],
        others: &["agent", "session", "clean", "completions", "man"],
    },
];

/// Old spellings of what stands below `papers`: they work, and no list shows them.
const PAPERS: [&str; 4] = ["blocks", "display", "ncc", "reproduce"];

/// The whole command line, with help by groups.
pub(crate) fn command_line() -> Command {
    let mut command = with_examples(StacklineFlags::command());
    for old in PAPERS {
        command = command.mut_subcommand(old, |old| old.hide(true));
    }
    let groups = first_screen(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{after-help}}"
    ))
}

/// The commands of the first screen, and a line for each thing behind it.
fn first_screen(command: &Command) -> String {
    let shown = GROUPS.iter().filter(|group| !group.first.is_empty());
    let groups: Vec<String> = shown
        .map(|group| listed(command, group.heading, group.first.iter()))
        .collect();
    format!(
        "{}\nAll commands: stackline help all      The papers' systems: stackline papers\n\
         The language, by chapter: stackline help language\n",
        groups.join("\n")
    )
}

/// Every command that is not hidden, by groups.
pub(crate) fn all_commands(command: &Command) -> String {
    let groups = GROUPS.iter().map(|group| {
        let commands = group.first.iter().chain(group.others);
        listed(command, group.heading, commands)
    });
    groups.collect::<Vec<_>>().join("\n")
}

fn listed<'g>(
    command: &Command,
    heading: &str,
    names: impl Iterator<Item = &'g &'static str>,
) -> String {
    let rows = names.map(|name| {
        let about = command
            .find_subcommand(name)
            .and_then(Command::get_about)
            .map(ToString::to_string)
            .unwrap_or_default();
        format!("  {name:<12}{about}\n")
    });
    format!("{heading}\n{}", rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_stands_in_one_group_and_fits_80_columns() {
        let command = command_line();
        let shown: BTreeSet<&str> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
            .map(Command::get_name)
            .collect();
        let names: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.first.iter().chain(group.others))
            .copied()
            .collect();
        assert_eq!(names.len(), shown.len());
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), shown);
        let lines = all_commands(&command);
        for line in lines.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn the_first_screen_has_at_most_twelve_commands_and_begins_with_trace() {
        let first: Vec<&str> = GROUPS
            .iter()
            .flat_map(|group| group.first)
            .copied()
            .collect();
        assert!(first.len() <= 12, "{first:?}");
        assert_eq!(first[0], "trace");
        let screen = command_line().render_help().to_string();
        assert!(screen.lines().count() <= 40, "{screen}");
        for line in screen.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
