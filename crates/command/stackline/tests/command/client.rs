//! `client`: what an installed program has for programs of others is enough to make, to run and to look at one.

use crate::support::{Place, said, skip};
use std::process::Command;

/// The example of EVENTS.md emits into a log, which is imported; passed over where the first command is not there.
fn emits(language: &str, source: &str, example: &str, commands: &[&[&str]]) {
    let place = Place::new();
    let printed = |more: &[&str]| {
        place
            .stackline(&[&["client", language], more].concat())
            .succeeds()
            .out
            .clone()
    };
    place.write(source, printed(&[]));
    place.write(example, printed(&["--example"]));
    assert!(include_str!("../../../../../docs/EVENTS.md").contains(&printed(&["--example"])));
    for command in commands {
        let (program, words) = command.split_first().unwrap();
        let mut command = Command::new(if program.starts_with("./") {
            place.path(program)
        } else {
            (*program).into()
        });
        let Ok(output) = command
            .args(words)
            .current_dir(place.path(""))
            .env("STACKLINE_EVENTS", "text:app.log")
            .output()
        else {
            return skip(format_args!("there is no {program}"));
        };
        assert!(output.status.success(), "{program}: {}", said(&output));
    }
    let done = place.stackline(&["import", "app.log"]);
    assert!(
        done.succeeds().out.contains("app.log (text): "),
        "{}",
        done.out
    );
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    assert_eq!(json["points"][0]["keyword"], "APP_SEND", "{json}");
}

#[test]
fn a_program_in_c_needs_one_printed_header() {
    let compile = [
        "cc",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        "-o",
        "example",
        "example.c",
    ];
    emits(
        "c",
        "stackline_events.h",
        "example.c",
        &[&compile, &["./example"]],
    );
}

#[test]
fn a_program_in_python_needs_one_printed_file() {
    emits(
        "python",
        "stackline_events.py",
        "example.py",
        &[&["python3", "example.py"]],
    );
}

#[test]
fn other_languages_are_refused_with_those_there_are() {
    let refused = Place::new().stackline(&["client", "cobol"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused.err.contains("hint: expected one of c, python"),
        "{}",
        refused.err
    );
}
