//! Every text of the language in the documents is right for the program itself, with the stacks it really has.

use crate::support::Place;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const DOCUMENTS: [(&str, &str); 6] = [
    ("README", include_str!("../../../../../README.md")),
    ("LANGUAGE", include_str!("../../../../../docs/LANGUAGE.md")),
    ("TUTORIAL", include_str!("../../../../../docs/TUTORIAL.md")),
    ("PAPERS", include_str!("../../../../../docs/PAPERS.md")),
    ("CI", include_str!("../../../../../docs/CI.md")),
    (
        "COMING-FROM",
        include_str!("../../../../../docs/COMING-FROM.md"),
    ),
];

/// The fenced blocks of a document with their language, empty for texts of ours.
fn blocks(document: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        match line.strip_prefix("```") {
            Some(language) if !inside => {
                blocks.push((language.to_owned(), String::new()));
                inside = true;
            }
            Some(_) => inside = false,
            None if inside => blocks.last_mut().unwrap().1 += &format!("{line}\n"),
            None => {}
        }
    }
    blocks
}

#[test]
fn the_specifications_of_the_documents_are_right() {
    let place = Place::new();
    let mut checked = 0;
    for (name, document) in DOCUMENTS {
        // The grammar is none.
        let texts = blocks(document)
            .into_iter()
            .filter(|(language, text)| language.is_empty() && !text.contains("specification ="));
        for (_, text) in texts {
            place.write("text", &text);
            let output = place.stackline(&["check", "text"]);
            assert!(output.status.success(), "{name}:\n{text}\n{}", output.err);
            checked += 1;
        }
    }
    assert!(checked >= 8, "{checked}");
}

#[test]
fn the_commands_of_the_documents_take_their_texts() {
    let place = Place::new();
    let mut checked = 0;
    for (name, document) in DOCUMENTS {
        for (_, text) in blocks(document)
            .into_iter()
            .filter(|(language, _)| language == "sh")
        {
            for text in text
                .lines()
                .filter_map(|line| line.split_once("-e '")?.1.split_once('\''))
                .map(|(text, _)| text)
            {
                let output = place.stackline(&["check", "-e", text]);
                assert!(output.status.success(), "{name}: {text}\n{}", output.err);
                checked += 1;
            }
        }
    }
    assert!(checked >= 5, "{checked}");
}

/// The examples of a command's help, as lines of a shell.
fn examples(help: &str) -> Vec<String> {
    let after = help.split("Examples:\n").nth(1).unwrap_or_default();
    let lines = after.lines().take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn examples_of_commands_that_need_nothing_run() {
    let place = Place::new();
    let network = "network wan { host khons, udjat; link khons - udjat 10 Mbit/s 5 ms; }";
    place.write(
        "wan.stackline",
        format!("{network} 2 from khons to udjat rr 32*20 over tcp, udp across wan in simulated;"),
    );
    for name in ["before", "after"] {
        place
            .stackline(&["run", "--trace", "--name", name, "wan.stackline"])
            .succeeds();
    }
    // The program by its own name, for the shell.
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    symlink(place.command(&[]).get_program(), bin.join("stackline")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for command in [
        "show", "check", "fmt", "plan", "stacks", "keywords", "compare", "diagnose", "export",
        "net show",
    ] {
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        for line in examples(&place.stackline(&words).out) {
            let mut shell = place.command(&[]);
            let environment: Vec<_> = shell
                .get_envs()
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect();
            shell = Command::new("sh");
            shell
                .args(["-c", &line])
                .current_dir(place.path(""))
                .envs(environment)
                .env("PATH", &path);
            let finished = place.finish(&mut shell);
            // `fmt --check` says by its code that a text has another form; equal runs differ by nothing.
            let expected: &[i32] = if line.contains("fmt wan") {
                &[0, 2]
            } else {
                &[0]
            };
            let code = finished.status.code().unwrap();
            assert!(
                expected.contains(&code),
                "{line}: {code}\n{}{}",
                finished.out,
                finished.err
            );
            count += 1;
        }
    }
    assert!(count >= 30, "{count}");
}
