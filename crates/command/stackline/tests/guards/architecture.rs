//! Holds the table of docs/ARCHITECTURE.md: who may use whom, who is pure, where unsafe code lives.

use crate::tree;
use crate::tree::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate and what it may use of ours.
const MAY_USE: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("os", &["core"]),
    ("guard", &["core", "os"]),
    ("spec", &["core"]),
    ("net", &["core"]),
    ("model", &["core"]),
    ("truth", &["core"]),
    ("proto", &["core"]),
    ("blocks", &["core"]),
    (
        "blockserver",
        &[
            "core", "blocks", "events", "guard", "net", "os", "sim", "transfer", "runs", "emu",
        ],
    ),
    ("blockclient", &["core", "blocks", "blockserver"]),
    ("redact", &[]),
    ("dissect", &["proto", "events", "redact"]),
    ("requests", &["dissect", "events", "redact", "core"]),
    ("endpoint", &["core"]),
    ("sim", &["core", "net", "proto", "endpoint", "events"]),
    ("emu", &["core", "guard", "net", "os"]),
    ("transfer", &["core", "proto", "events", "os"]),
    ("monitor", &["core", "events", "os"]),
    (
        "live",
        &[
            "core", "guard", "os", "proto", "transfer", "endpoint", "events", "monitor",
        ],
    ),
    ("events", &[]),
    ("runs", &["core", "events", "guard"]),
    ("analyze", &["core", "events", "model", "runs"]),
    (
        "exchange",
        &[
            "core", "events", "analyze", "dissect", "requests", "redact", "guard", "runs",
        ],
    ),
    ("factors", &["core", "analyze"]),
    ("display", &[]),
    (
        "displayserver",
        &[
            "core", "display", "events", "guard", "net", "proto", "sim", "transfer", "spec",
            "factors", "report", "runner", "whatif",
        ],
    ),
    (
        "report",
        &["core", "spec", "events", "runs", "analyze", "factors"],
    ),
    (
        "runner",
        &[
            "core", "net", "dissect", "sim", "emu", "live", "events", "runs", "guard", "spec",
        ],
    ),
    (
        "papers",
        &[
            "core",
            "guard",
            "spec",
            "model",
            "net",
            "proto",
            "sim",
            "emu",
            "runner",
            "blocks",
            "blockserver",
            "transfer",
            "display",
            "displayserver",
            "factors",
            "analyze",
            "report",
        ],
    ),
    (
        "trace",
        &[
            "core", "guard", "os", "events", "runs", "monitor", "requests", "sim", "emu", "runner",
        ],
    ),
    (
        "whatif",
        &[
            "core", "guard", "spec", "events", "runs", "live", "runner", "analyze", "factors",
            "report",
        ],
    ),
    (
        "stackline",
        &[
            "core",
            "guard",
            "os",
            "spec",
            "net",
            "proto",
            "model",
            "sim",
            "emu",
            "monitor",
            "live",
            "events",
            "runs",
            "runner",
            "analyze",
            "exchange",
            "report",
            "papers",
            "truth",
            "blocks",
            "blockserver",
            "requests",
            "redact",
            "factors",
            "display",
            "displayserver",
            "trace",
            "whatif",
        ],
    ),
    ("testing", &[]),
    ("verdicts", &["truth"]),
    ("walks", &["core", "proto", "dissect", "events"]),
];

/// The folders of `crates/`, each with what it holds: a crate uses crates of its own folder and of those above it in this list.
const FOLDERS: &[(&str, &[&str])] = &[
    ("language", &["core", "model", "spec"]),
    ("network", &["net", "proto"]),
    ("system", &["guard", "os"]),
    ("record", &["events", "runs"]),
    ("observe", &["dissect", "monitor", "redact", "requests"]),
    (
        "worlds",
        &[
            "emu", "endpoint", "live", "runner", "sim", "trace", "transfer",
        ],
    ),
    (
        "answer",
        &["analyze", "exchange", "factors", "report", "whatif"],
    ),
    (
        "applications",
        &[
            "blockclient",
            "blocks",
            "blockserver",
            "display",
            "displayserver",
        ],
    ),
    ("papers", &["papers"]),
    ("testing", &["testing", "truth", "verdicts", "walks"]),
    ("command", &["stackline"]),
];

/// Crates in which no clock, file, socket or thread can be named.
const PURE: &[&str] = &["core", "spec", "net", "proto", "model", "blocks"];

/// What cargo knows of the workspace.
fn metadata(more: &[&str]) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(more)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Our crates and which of ours each uses outside its tests, by short name.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let short = |name: &str| name.trim_start_matches("stackline-").to_string();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let ours = dependencies
                .filter(|d| d["kind"].is_null())
                .map(|d| d["name"].as_str().unwrap())
                .filter(|name| name.starts_with("stackline"))
                .map(short)
                .collect();
            (short(package["name"].as_str().unwrap()), ours)
        })
        .collect()
}

#[test]
fn every_crate_uses_only_what_the_table_allows() {
    let table: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    assert_eq!(
        table.len(),
        MAY_USE.len(),
        "a crate stands twice in the table"
    );
    for (name, uses) in MAY_USE {
        let distinct: BTreeSet<&&str> = uses.iter().collect();
        assert_eq!(distinct.len(), uses.len(), "{name} names a crate twice");
    }
    let arrows = arrows();
    assert_eq!(
        arrows.keys().map(String::as_str).collect::<Vec<_>>(),
        table.keys().copied().collect::<Vec<_>>()
    );
    for (name, uses) in arrows {
        for used in uses {
            assert!(
                table[name.as_str()].contains(&used.as_str()),
                "{name} must not use {used}: see docs/ARCHITECTURE.md"
            );
        }
    }
}

/// `rust-version` is kept by ours through the lint `incompatible_msrv`, which clippy checks; by others, as they say themselves.
#[test]
fn no_crate_needs_a_newer_rust_than_the_workspace() {
    let release = |text: &str| -> (u32, u32) {
        let mut numbers = text.split('.').map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap_or(0))
    };
    // Those of this platform: others are not built.
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let packages = metadata["packages"].as_array().unwrap();
    let wanted = |package: &Value| package["rust_version"].as_str().map(release);
    let ours = packages
        .iter()
        .find(|package| package["name"] == "stackline")
        .and_then(wanted)
        .unwrap();
    let newer: Vec<&Value> = packages
        .iter()
        .filter(|package| wanted(package).is_some_and(|other| other > ours))
        .map(|package| &package["name"])
        .collect();
    assert!(
        newer.is_empty(),
        "rust-version of the workspace is {ours:?}, and these need a newer one: {newer:?}"
    );
}

#[test]
fn folders_use_only_folders_above_them() {
    let held: Vec<(String, Vec<String>)> = tree::groups()
        .iter()
        .map(|group| {
            let crates = tree::crates()
                .into_iter()
                .filter(|folder| folder.starts_with(group));
            let mut names: Vec<String> = crates.map(|folder| tree::crate_name(&folder)).collect();
            names.sort();
            (tree::name_of(group), names)
        })
        .collect();
    let mut listed: Vec<(String, Vec<String>)> = FOLDERS
        .iter()
        .map(|(folder, names)| {
            (
                folder.to_string(),
                names.iter().map(ToString::to_string).collect(),
            )
        })
        .collect();
    listed.sort();
    assert_eq!(held, listed);
    assert!(
        held.len() < 12,
        "one of the twelve entries of crates/ is `query`"
    );
    let place = |name: &str| {
        let folder = FOLDERS.iter().position(|(_, names)| names.contains(&name));
        folder.unwrap_or_else(|| panic!("{name} stands in no folder"))
    };
    for (name, uses) in MAY_USE {
        for used in *uses {
            assert!(
                place(used) <= place(name),
                "{name} uses {used}, whose folder stands below its own"
            );
        }
    }
}

/// One version of each crate of others, in one place.
#[test]
fn versions_stand_in_the_manifest_of_the_workspace() {
    for folder in tree::crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("dependencies]").unwrap_or_default();
        let named = dependencies.lines().find(|line| {
            let value = line.split_once(" = ").map_or("", |(_, value)| value);
            value.starts_with('"') && value[1..].starts_with(char::is_numeric)
                || value.contains("version = ")
        });
        assert!(named.is_none(), "{}: {named:?}", folder.display());
    }
}

/// What programs of others link; nothing else goes to a registry.
const PUBLISHED: [&str; 1] = ["events"];

#[test]
fn only_crates_for_others_may_be_published() {
    for folder in tree::crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = tree::name_of(&folder);
        let may = !manifest.lines().any(|line| line == "publish = false");
        assert_eq!(
            may,
            PUBLISHED.contains(&name.as_str()),
            "{}",
            folder.display()
        );
        // A registry has no other crate of the workspace.
        let needs = manifest.split("[dependencies]").nth(1).unwrap_or("");
        let needs = needs.split("\n[").next().unwrap_or("");
        assert!(
            !may || !needs.contains("stackline-"),
            "{}",
            folder.display()
        );
    }
}

/// The only row of the map that begins with this word.
fn the_row<'m>(map: &'m str, word: &str) -> &'m str {
    let begin = format!("| `{word}` |");
    let rows: Vec<&str> = map
        .lines()
        .filter(|line| line.starts_with(&begin))
        .collect();
    assert_eq!(rows.len(), 1, "rows of {word} in docs/ARCHITECTURE.md");
    rows[0]
}

#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    for (name, uses) in MAY_USE {
        let cells: Vec<&str> = the_row(&map, name)
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let uses: BTreeSet<&str> = uses.iter().copied().collect();
        let named: BTreeSet<&str> = match cells[2] {
            "nothing of ours" => BTreeSet::new(),
            // The command: `MAY_USE` says which.
            "all" => uses.clone(),
            list => list.split(", ").collect(),
        };
        assert_eq!(named, uses, "the crates that {name} may use");
    }
}

/// The first screen of the map: the folders of `crates/`, each once, with the crates in it.
#[test]
fn the_map_names_every_folder() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    for (folder, names) in FOLDERS {
        let row = the_row(&map, &format!("{folder}/"));
        let (_, list) = row.rsplit_once(": ").unwrap();
        let marked: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
        for name in *names {
            assert!(marked.contains(name), "{folder}/ does not name {name}");
        }
    }
}

/// Paths of files of the tree: from its root, from `crates`, or from a crate of it. A part in capitals stands for any name.
#[test]
fn every_path_of_the_map_and_its_index_exists() {
    let read = |page: &str| fs::read_to_string(root().join("docs").join(page)).unwrap();
    let map = read("ARCHITECTURE.md") + &read("WHERE.md");
    let marked = map.split('`').skip(1).step_by(2);
    let tops = ["crates/", "docs/", ".ci/", "fuzz/", "examples/"];
    let is_path =
        |word: &&str| tops.iter().any(|top| word.starts_with(top)) || word.contains("/src/");
    let is_there = |word: &str| {
        let fixed: PathBuf = Path::new(word)
            .iter()
            .take_while(|part| !part.to_str().unwrap().contains("NAME"))
            .collect();
        let bases = [
            root(),
            root().join("crates"),
            tree::in_crate("stackline/tests"),
        ];
        let mut bases = tree::groups()
            .into_iter()
            .chain(tree::crates())
            .chain(bases);
        bases.any(|base| base.join(&fixed).exists())
    };
    let links = map
        .split("](../")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let paths: Vec<&str> = marked.filter(is_path).chain(links).collect();
    assert!(paths.len() > 200, "{paths:?}");
    let missing: Vec<&str> = paths.into_iter().filter(|word| !is_there(word)).collect();
    assert!(
        missing.is_empty(),
        "docs/ARCHITECTURE.md and WHERE.md name paths that do not exist: {missing:?}"
    );
}

#[test]
fn pure_crates_have_no_std() {
    for name in PURE {
        let lib = fs::read_to_string(tree::in_crate(&format!("{name}/src/lib.rs"))).unwrap();
        assert!(
            lib.lines().any(|line| line == "#![no_std]"),
            "{name} is not no_std"
        );
        assert!(!lib.contains("extern crate std"), "{name} brings std back");
    }
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The crates that may have unsafe code, and each why.
const WITH_UNSAFE: [&str; 4] = [
    // What several crates need of the operating system.
    "os",
    // Programs of others link it, so that it uses nothing of ours.
    "events",
    // ptrace.
    "monitor",
    // The interface for C.
    "blockclient",
];

/// Whether a line of code begins something unsafe.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
        .iter()
        .any(|word| code.contains(word))
}

#[test]
fn unsafe_code_is_in_sys_modules_and_says_why() {
    for (name, _) in MAY_USE {
        let mut files = Vec::new();
        rust_files(&tree::in_crate(&format!("{name}/src")), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let in_sys = file.components().any(|part| part.as_os_str() == "sys");
            for (number, line) in text.lines().enumerate().filter(|(_, line)| is_unsafe(line)) {
                assert!(
                    in_sys && WITH_UNSAFE.contains(name),
                    "{}:{} has unsafe code outside a sys module",
                    file.display(),
                    number + 1
                );
                // What is unsafe to call says so to its callers.
                if !line.contains("unsafe {") && !line.contains("unsafe impl") {
                    continue;
                }
                let before: Vec<&str> = text.lines().take(number + 1).collect();
                let near = before.iter().rev().take(4).any(|l| l.contains("SAFETY"));
                assert!(
                    near,
                    "{}:{} gives no reason: {line}",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for (name, _) in MAY_USE {
        let mut files = Vec::new();
        rust_files(&tree::in_crate(&format!("{name}/src")), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                text.starts_with("//!"),
                "{} does not begin with what it does",
                file.display()
            );
        }
    }
}

/// A foreseeable name in a directory for all is a trap, and a file without a bound another: these doors are opened in `guard` alone.
#[test]
fn temporary_files_are_made_by_guard() {
    let doors = [
        "env::temp_dir(",
        "tempfile::tempdir()",
        "tempfile::tempfile",
        ".tempdir()",
        "tempfile::NamedTempFile::new(",
    ];
    for (name, _) in MAY_USE.iter().filter(|(name, _)| *name != "guard") {
        let mut files = Vec::new();
        rust_files(&tree::in_crate(&format!("{name}/src")), &mut files);
        for file in files.iter().filter(|file| !is_of_tests(file)) {
            let text = fs::read_to_string(file).unwrap();
            let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let opened = doors.iter().find(|door| product.contains(**door));
            assert!(
                opened.is_none(),
                "{} opens {opened:?}: stackline_guard::scratch makes private ones",
                file.display()
            );
        }
    }
}

fn is_of_tests(file: &Path) -> bool {
    let names = file
        .components()
        .filter_map(|part| part.as_os_str().to_str());
    names
        .into_iter()
        .any(|name| name == "testing" || name.trim_end_matches(".rs").ends_with("tests"))
}
