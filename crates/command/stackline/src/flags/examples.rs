//! Three examples of each command, where its help does not have them in its own text.

use clap::Command;

/// The words of a command, and below them lines of a shell as they are printed.
const EXAMPLES: &str = include_str!("examples.txt");

/// The command line with these examples at the end of each command's help, before what stands there.
pub(super) fn with_examples(mut command: Command) -> Command {
    let blocks = EXAMPLES.trim_end().split("\n\n");
    for (words, lines) in blocks.filter_map(|block| block.split_once('\n')) {
        let path: Vec<&str> = words.split(' ').collect();
        command = within(command, &path, lines);
        // What stands below `papers` has its old spelling too.
        let papers = command.find_subcommand("papers");
        if papers.is_some_and(|papers| papers.find_subcommand(path[0]).is_some()) {
            let path = [&["papers"][..], &path].concat();
            command = within(command, &path, lines);
        }
    }
    command
}

fn within(command: Command, path: &[&str], lines: &str) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let own = command.get_after_help().map(ToString::to_string);
        let own = own.unwrap_or_default();
        let help = match own.strip_prefix("Examples:") {
            Some(more) => format!("Examples:\n{lines}{more}"),
            None if own.is_empty() => format!("Examples:\n{lines}"),
            None => format!("Examples:\n{lines}\n\n{own}"),
        };
        return command.after_help(help);
    };
    command.mut_subcommands(|below| {
        if below.get_name() == *first {
            within(below, rest, lines)
        } else {
            below
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::flags::command_line;
    use clap::Command;

    #[test]
    fn every_command_has_three_examples_that_fit() {
        fn look(path: &str, command: &Command, lacking: &mut Vec<String>) {
            let below: Vec<&Command> = command
                .get_subcommands()
                .filter(|below| below.get_name() != "help" && !below.is_hide_set())
                .collect();
            for one in &below {
                look(&format!("{path} {}", one.get_name()), one, lacking);
            }
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            // A wider line would be broken without a `\`, and a shell would take it for two.
            let own = help
                .split("\n\n")
                .find(|part| part.starts_with("Examples:"));
            let wide = own.and_then(|own| own.lines().find(|line| line.len() > 80));
            assert_eq!(wide, None);
            let examples = help.matches(&path.replace(" papers", "")).count();
            if below.is_empty() && examples < 3 {
                lacking.push(format!("{path}: {examples}"));
            }
        }
        let mut lacking = Vec::new();
        look("stackline", &command_line(), &mut lacking);
        assert!(lacking.is_empty(), "{lacking:#?}");
    }
}
