//! What commands print in a terminal: lines as wide as it is, colours where it has them, and whole words when it is narrow.

use crate::support::{Finished, Place, has_program, pair, skip};
use std::process::Command;

/// The command in a terminal of so many columns, with what it printed there.
pub(crate) fn in_terminal(
    place: &Place,
    columns: u32,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Finished {
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    let plain = place.command(&[]);
    let mut command = Command::new("script");
    let line = format!(
        "stty cols {columns} rows 40; exec '{}' {}",
        plain.get_program().to_str().unwrap(),
        words.join(" ")
    );
    command
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .current_dir(place.path(""))
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs(variables.iter().copied());
    place.finish(&mut command)
}

/// A place with two traced runs `a` and `b` and a specification with a network, a factor and blocks; `None` without `script`.
fn place() -> Option<Place> {
    if !has_program("script", "bsdutils") {
        skip("no script");
        return None;
    }
    let place = Place::new();
    let text = format!(
        "{} 2 from a to b rr 32*50 over tcp, udp across n in simulated; factor delay x 0.1;",
        pair("")
    );
    place.write("spec", text);
    for name in ["a", "b"] {
        place
            .stackline(&["run", "--trace", "--name", name, "spec"])
            .succeeds();
    }
    Some(place)
}

/// What is seen in the end: of each line what came last, without what steers the terminal.
fn seen(out: &str) -> String {
    let last = |line: &str| {
        let line = line.trim_end_matches('\r');
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    };
    let plain = |line: String| {
        let mut parts = line.split("\u{1b}[");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|part| {
            part.trim_start_matches(|c: char| !c.is_ascii_alphabetic())
                .get(1..)
                .unwrap_or("")
        });
        first + &rest.collect::<String>()
    };
    let lines = out.split('\n').map(|line| plain(last(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines that are wider, but for those of one long word.
fn wider(text: &str, columns: usize) -> Vec<&str> {
    let is_word = |line: &str| !line.trim().contains(' ');
    text.lines()
        .filter(|line| line.chars().count() > columns && !is_word(line))
        .collect()
}

/// Each command that prints for people, with its exit code.
const PRINTED: &[(i32, &[&str])] = &[
    (0, &["run", "--name", "c", "spec"]),
    (0, &["run", "-e", "2 rr 32*100 over tcp, unix"]),
    (0, &["show", "a"]),
    (0, &["show", "a", "--notes", "all"]),
    (0, &["check", "spec"]),
    (0, &["plan", "spec"]),
    (0, &["predict", "spec"]),
    (2, &["factors", "spec", "--replicates", "2"]),
    (0, &["stacks"]),
    (0, &["stacks", "tcp"]),
    (0, &["stacks", "--in", "simulated", "quic"]),
    (0, &["keywords"]),
    (0, &["keywords", "TCP_INFO"]),
    (0, &["compare", "a", "b"]),
    (0, &["compare", "a"]),
    (0, &["lifelines", "a"]),
    (0, &["lifelines", "a", "--by", "server"]),
    (0, &["diagnose", "a"]),
    (0, &["report", "a"]),
    (0, &["export", "a", "--otlp-json", "file"]),
    (0, &["reproduce"]),
    (0, &["net", "show", "spec"]),
    (0, &["net", "list"]),
    (0, &["net", "exec", "--help"]),
    (0, &["watch", "--for", "700ms"]),
    (0, &["help", "language"]),
    (0, &["help", "all"]),
    (2, &["papers"]),
    (0, &["client", "c", "--help"]),
    (2, &["ncc", "a"]),
    (2, &["list"]),
    (
        2,
        &[
            "lifelines",
            "no-such-run-of-a-name-that-is-quite-long",
            "--slowest",
            "3",
        ],
    ),
    (2, &["run", "-e", "10 rr 32*1000 over tpc across nowhere"]),
];

#[test]
fn all_output_fits_a_terminal_of_80_columns() {
    let Some(place) = place() else { return };
    let mut found = Vec::new();
    for (code, arguments) in PRINTED {
        let shown = in_terminal(&place, 80, arguments, &[]);
        let got = shown.status.code();
        if got != Some(*code) {
            found.push(format!("{arguments:?} ended with {got:?}: {}", shown.out));
        }
        let seen = seen(&shown.out);
        let wide = wider(&seen, 80);
        found.extend(wide.iter().map(|line| format!("{arguments:?}: {line}")));
        if shown.out.contains('\u{fffd}') {
            found.push(format!("{arguments:?} shows U+FFFD"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_help_of_each_command_fits_a_terminal_of_80_columns() {
    let Some(place) = place() else { return };
    let all = place.stackline(&["help", "all"]).out;
    let listed = all
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let mut found = Vec::new();
    let mut count = 0;
    for command in listed {
        count += 1;
        let shown = in_terminal(&place, 80, &[command, "--help"], &[]);
        let seen = seen(&shown.out);
        let wide = wider(&seen, 80);
        found.extend(wide.iter().map(|line| format!("{command}: {line}")));
    }
    assert!(
        count > 20 && found.is_empty(),
        "{count}: {}",
        found.join("\n")
    );
}

#[test]
fn a_live_table_is_drawn_in_place_and_a_dumb_terminal_gets_lines() {
    let Some(place) = place() else { return };
    let watch = ["watch", "--for", "2s"];
    let table = in_terminal(&place, 80, &watch, &[("TERM", "xterm")]).out;
    let enters = "\u{1b}[?1049h";
    assert!(
        table.contains(enters) && table.contains("watching every 100 ms"),
        "{table}"
    );
    let lines = in_terminal(&place, 80, &watch, &[("TERM", "dumb")]).out;
    assert!(
        !lines.contains(enters) && lines.contains("CPU_USE"),
        "{lines}"
    );
}

#[test]
fn a_terminal_of_20_columns_gets_every_word() {
    let Some(place) = place() else { return };
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    for arguments in [
        &["stacks"] as &[&str],
        &["keywords"],
        &["lifelines", "a"],
        &["reproduce"],
    ] {
        let narrow = in_terminal(&place, 20, arguments, &[]);
        assert_eq!(
            narrow.status.code(),
            Some(0),
            "{arguments:?}: {}",
            narrow.out
        );
        let piped = place.stackline(arguments);
        assert_eq!(
            words(&seen(&narrow.out)),
            words(&piped.out),
            "{arguments:?}"
        );
        let seen = seen(&narrow.out);
        let wide = wider(&seen, 20);
        assert!(wide.is_empty(), "{arguments:?}: {wide:#?}");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let Some(place) = place() else { return };
    let spec = ["run", "-e", "2 rr 32*10 over tcp, unix"];
    let coloured = |variables: &[(&str, &str)]| {
        in_terminal(&place, 80, &spec, variables)
            .out
            .contains("\u{1b}[1m")
    };
    assert!(coloured(&[("TERM", "xterm")]));
    assert!(!coloured(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
    assert!(!coloured(&[("TERM", "dumb")]));
    assert!(!place.stackline(&spec).out.contains('\u{1b}'));
}
