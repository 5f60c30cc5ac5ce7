//! The README's second screen: its curve is what its commands draw, its gate says what it shows, and its cell is one of the notebook's,
//! which the tests of the Python package run.

use crate::support::Place;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The code blocks of the README in that language.
fn blocks(language: &str) -> Vec<String> {
    let text = readme();
    let blocks = text.split("```").skip(1).step_by(2);
    let of_language = blocks.filter_map(|block| block.strip_prefix(&format!("{language}\n")));
    of_language.map(str::to_owned).collect()
}

#[test]
fn the_curve_is_what_its_commands_draw() {
    let commands = blocks("sh");
    let commands = commands.iter().find(|block| block.contains("plot loss"));
    let commands = commands.unwrap();
    let place = Place::new();
    place.install(
        root().join("examples/loss.stackline"),
        "examples/loss.stackline",
    );
    for line in commands.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "stackline");
        place.stackline(&words[1..]).succeeds();
    }
    let drawn = fs::read_to_string(place.path("curve.svg")).unwrap();
    let shown = root().join("docs/pictures/curve.svg");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&shown, &drawn).unwrap();
    }
    assert!(
        drawn == fs::read_to_string(shown).unwrap(),
        "docs/pictures/curve.svg is another curve: UPDATE_GOLDEN=1 makes it anew"
    );
    assert!(readme().contains("(docs/pictures/curve.svg)"));
}

#[test]
fn the_gate_says_what_is_shown() {
    let shown = blocks("text");
    let shown = shown.iter().find(|block| block.contains("--against"));
    let (command, output) = shown.unwrap().split_once('\n').unwrap();
    let place = Place::new();
    let with_delay = |delay: &str| {
        format!(
            "network wan {{ host a, b; link a - b 10 Mbit/s {delay}; }}\n5 from a to b rr 32*100 over tcp across wan in simulated;\n"
        )
    };
    place.write("bench.stackline", with_delay("5 ms"));
    place
        .stackline(&["run", "bench.stackline", "--name", "before"])
        .succeeds();
    fs::create_dir(place.path("bench")).unwrap();
    place
        .stackline(&["gate", "--save", "bench/baseline.json", "before"])
        .succeeds();
    place.write("bench.stackline", with_delay("6 ms"));
    let words: Vec<&str> = command.split_whitespace().skip(2).collect();
    let slower = place.stackline(&words);
    assert_eq!(slower.status.code(), Some(4), "{}", slower.err);
    assert!(slower.out.contains(output), "{}", slower.out);
}

#[test]
fn the_cell_is_one_of_the_notebook() {
    let notebook = fs::read_to_string(root().join("examples/first.ipynb")).unwrap();
    let notebook: serde_json::Value = serde_json::from_str(&notebook).unwrap();
    let cells = notebook["cells"].as_array().unwrap().iter();
    let sources = cells.map(|cell| {
        let lines = cell["source"].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap()).collect::<String>()
    });
    let sources: Vec<String> = sources.collect();
    for cell in blocks("python") {
        let cell = cell.trim_end();
        assert!(sources.iter().any(|source| source.contains(cell)), "{cell}");
    }
}
