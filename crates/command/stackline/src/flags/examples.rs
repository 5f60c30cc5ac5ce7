//! Three examples of each command, where its help does not have them in its own text.

use clap::Command;

/// The words of a command, and lines of a shell.
type ExampleRow = (&'static str, &'static [&'static str]);

const EXAMPLES: &[ExampleRow] = &[
    (
        "show",
        &[
            "stackline show",
            "stackline show last --percentiles 50,95,99.9,max",
            "stackline show before --csv > before.csv",
        ],
    ),
    (
        "check",
        &[
            "stackline check wan.stackline",
            "stackline check -e '10 request_response 32*1000 over tcp, unix'",
            "stackline check wan.stackline --json",
        ],
    ),
    (
        "fmt",
        &[
            "stackline fmt wan.stackline",
            "stackline fmt wan.stackline --check",
            "stackline fmt -e '10 rr 32*1000 over tcp'",
        ],
    ),
    (
        "plan",
        &[
            "stackline plan wan.stackline",
            "stackline plan -e '10 request_response 32*1000 over tcp, unix'",
            "stackline plan wan.stackline --json",
        ],
    ),
    (
        "stacks",
        &[
            "stackline stacks",
            "stackline stacks tcp",
            "stackline stacks quic --in simulated",
        ],
    ),
    (
        "keywords",
        &[
            "stackline keywords",
            "stackline keywords TCP_INFO",
            "stackline keywords --json",
        ],
    ),
    (
        "compare",
        &[
            "stackline compare before after",
            "stackline compare last",
            "stackline compare before after --fail-above 5%",
        ],
    ),
    (
        "diagnose",
        &[
            "stackline diagnose last",
            "stackline diagnose before --json",
            "stackline diagnose last --simulate",
        ],
    ),
    (
        "export",
        &[
            "stackline export last --text",
            "stackline export last --otlp-json spans.json",
            "stackline export last --perfetto trace.perfetto",
        ],
    ),
    (
        "open",
        &[
            "stackline open",
            "stackline open last",
            "stackline open stackline-runs/20260101-120000-first",
        ],
    ),
    (
        "truth generate",
        &[
            "stackline truth generate labelled --count 5 --capture",
            "stackline truth generate labelled --count 3 --from 7",
            "stackline truth generate one --count 1 && \\\n      STACKLINE_RUNS=one stackline diagnose last",
        ],
    ),
    (
        "agent",
        &[
            "stackline agent --listen 0.0.0.0:7777",
            "stackline agent --listen 10.0.0.5:7777 --files /var/tmp",
            "ssh udjat stackline agent",
        ],
    ),
    (
        "clean",
        &[
            "stackline clean",
            "sudo stackline clean",
            "stackline clean && stackline net list",
        ],
    ),
    (
        "man",
        &[
            "stackline man manual",
            "stackline man ~/.local/share/man/man1 && man stackline-run",
            "stackline man --reference docs/reference",
        ],
    ),
    (
        "ncc",
        &[
            "stackline run --trace examples/arpanet.stackline && stackline ncc last",
            "stackline ncc last --svg map.svg",
            "stackline ncc last --each 1min",
        ],
    ),
    (
        "net show",
        &[
            "stackline net show wan.stackline",
            "stackline net show wan.stackline --svg wan.svg",
            "stackline net show wan.stackline --json",
        ],
    ),
    ("report", &["stackline report last -o figures.svg"]),
    (
        "net up",
        &[
            "stackline net up -e 'network lab { host a, b; link a - b 1 Gbit/s 1 ms; }'",
            "stackline net up wan.stackline && stackline net exec wan khons -- bash",
        ],
    ),
    (
        "runs note",
        &[
            "stackline runs note last 'after the kernel update'",
            "stackline runs note before baseline",
            "stackline runs note before ''",
        ],
    ),
    (
        "runs remove",
        &[
            "stackline runs remove before after",
            "stackline runs remove last",
            "stackline runs remove stackline-runs/20261128-203611-before",
        ],
    ),
    (
        "runs prune",
        &[
            "stackline runs prune --keep 50 --dry-run",
            "stackline runs prune --older-than 30d",
            "stackline runs prune --most-size '2 GB'",
        ],
    ),
    (
        "net down",
        &[
            "stackline net down wan",
            "stackline net down",
            "stackline net down wan && stackline net list",
        ],
    ),
    (
        "net list",
        &[
            "stackline net list",
            "stackline net list --json",
            "stackline net up wan.stackline && stackline net list",
        ],
    ),
    ("net set", &["stackline net set wan khons-edge --loss 2%"]),
    (
        "blocks key",
        &[
            "stackline blocks key",
            "stackline blocks key lab.key",
            "STACKLINE_BLOCKS_KEY=lab.key stackline blocks key",
        ],
    ),
    (
        "blocks list",
        &[
            "stackline blocks list",
            "stackline blocks list --json",
            "stackline blocks list --master 10.0.0.5:7480",
        ],
    ),
    (
        "blocks delete",
        &[
            "stackline blocks delete backup",
            "stackline blocks delete backup --master 10.0.0.5:7480",
            "stackline blocks delete kansas && stackline blocks load kansas kansas.tif",
        ],
    ),
    (
        "blocks master",
        &["stackline blocks master --listen 127.0.0.1:0"],
    ),
    (
        "blocks serve",
        &["stackline blocks serve --disk disk.bytes"],
    ),
    (
        "blocks gateway",
        &[
            "stackline blocks gateway",
            "stackline blocks gateway --listen 127.0.0.1:8080",
        ],
    ),
    (
        "display serve",
        &[
            "stackline display serve",
            "stackline display serve --listen 127.0.0.1:7085",
            "stackline display serve --listen 127.0.0.1:7085 --view 127.0.0.1:7086",
        ],
    ),
    (
        "display view",
        &[
            "stackline display view 127.0.0.1:7086",
            "stackline display view unix:view.socket --listen 127.0.0.1:8086",
            "stackline display view unix:view.socket",
        ],
    ),
    (
        "display bench",
        &[
            "stackline display bench --to 127.0.0.1:7085",
            "stackline display bench --level pipelined,batched --picture vectors",
            "stackline display bench --across lan.stackline --draw 'pixel = 5 us'",
        ],
    ),
    (
        "display factors",
        &[
            "stackline display factors --across lan.stackline -f 'cpu of vax x 2'",
            "stackline display factors --across lan.stackline \\\n      -f 'level = pipelined, batched'",
            "stackline display factors --across lan.stackline \\\n      -f 'bandwidth x 10' -f 'cpu of vax x 2'",
        ],
    ),
    (
        "display agent",
        &[
            "stackline display agent",
            "stackline display agent --to 127.0.0.1:7085",
            "stackline display agent --to 127.0.0.1:7085 --listen 127.0.0.1:7087",
        ],
    ),
    (
        "display terminal",
        &[
            "stackline display terminal -- bash",
            "stackline display terminal --listen 127.0.0.1:7023 -- bash",
            "stackline display terminal -- stackline display bench --to tty",
        ],
    ),
    (
        "display telnet",
        &[
            "stackline display telnet 127.0.0.1:7023",
            "stackline display telnet 127.0.0.1:7023 --to 127.0.0.1:7085",
            "stackline display telnet pup:127.0.0.1:7023",
        ],
    ),
    (
        "display internet",
        &[
            "stackline display internet",
            "stackline display internet --listen ikp:127.0.0.1:7088",
            "stackline display internet --listen ikp:10.0.0.5:7088",
        ],
    ),
    (
        "display vserver",
        &[
            "stackline display vserver -- bash",
            "stackline display vserver --listen ikp:10.0.0.5:7090 -- bash",
            "stackline display vserver -- stackline display bench --to pipe",
        ],
    ),
    (
        "display execute",
        &[
            "stackline display execute ikp:127.0.0.1:7090",
            "stackline display execute ikp:127.0.0.1:7090 --to 127.0.0.1:7085",
            "stackline display execute",
        ],
    ),
];

/// The command line with these examples at the end of each command's help, before what stands there.
pub(super) fn with_examples(mut command: Command) -> Command {
    for (words, lines) in EXAMPLES {
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

fn within(command: Command, path: &[&'static str], lines: &[&str]) -> Command {
    let Some((first, rest)) = path.split_first() else {
        let own = command.get_after_help().map(ToString::to_string);
        let own = own.unwrap_or_default();
        let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
        let help = match own.strip_prefix("Examples:") {
            Some(more) => format!("Examples:{lines}{more}"),
            None if own.is_empty() => format!("Examples:{lines}"),
            None => format!("Examples:{lines}\n\n{own}"),
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
