//! Every text of the language in the documents is right for the program itself, with the stacks it really has.

use crate::support::Place;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// Those, and all how-to pages.
fn documents() -> Vec<(String, String)> {
    let fixed = DOCUMENTS.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/howto");
    let pages = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    });
    fixed.into_iter().chain(pages).collect()
}

#[test]
fn the_specifications_of_the_documents_are_right() {
    let place = Place::new();
    let mut checked = 0;
    for (name, document) in documents() {
        // The grammar is none.
        let texts = blocks(&document)
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
    for (name, document) in documents() {
        for (_, text) in blocks(&document)
            .into_iter()
            .filter(|(language, _)| language == "sh")
        {
            let texts = text.lines().filter_map(|line| {
                let (text, _) = line.split_once("-e '")?.1.split_once('\'')?;
                Some((text, line.contains("stackline load ")))
            });
            for (text, is_load) in texts {
                let output = place.stackline(&["check", "-e", text]);
                // `load` gives each rate a time of its own.
                let has_no_end = output.err.contains("this part would never end");
                let is_right = output.status.success() || is_load && has_no_end;
                assert!(is_right, "{name}: {text}\n{}", output.err);
                checked += 1;
            }
        }
    }
    assert!(checked >= 5, "{checked}");
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    let place = Place::new();
    let tutorial = DOCUMENTS.iter().find(|(name, _)| *name == "TUTORIAL");
    let texts = blocks(tutorial.unwrap().1);
    let text = |begins: &str| {
        let found = texts.iter().find(|(_, text)| text.starts_with(begins));
        found.unwrap_or_else(|| panic!("no block begins with {begins}"))
    };
    let wan = &text("network wan").1;
    place.write("wan.stackline", wan);
    place.write(
        "wider.stackline",
        wan.replace("receive_buffer = 64 KiB", "receive_buffer = 1 MiB"),
    );
    for (name, file, more) in [
        ("before", "wan.stackline", &["--trace"] as &[&str]),
        ("after", "wider.stackline", &[]),
    ] {
        let words = [&["run", file, "--in", "simulated", "--name", name], more].concat();
        place.stackline(&words).succeeds();
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (arguments, block) in [
        (&["diagnose", "before"] as &[&str], "2. the window"),
        (&["compare", "before", "after"], "  throughput"),
    ] {
        let printed = words(&place.stackline(arguments).succeeds().out);
        let shown = words(&text(block).1);
        assert!(printed.contains(&shown), "{shown}\n{printed}");
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs")
}

/// Every page of the documents, by its path below `docs`.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for folder in ["", "howto/", "reference/"] {
        for entry in fs::read_dir(docs().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "md") {
                let name = format!("{folder}{}", path.file_name().unwrap().to_str().unwrap());
                pages.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    pages
}

/// Targets of links in a text, fenced blocks left out.
fn links(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2);
    outside
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect()
}

/// A path below `docs` without its turns back: `howto/../X.md` is `X.md`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().unwrap().split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What a heading is called in an address, as GitHub and mdBook have it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || "-_".contains(c) => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[test]
fn the_reference_is_what_the_program_writes() {
    let place = Place::new();
    place.stackline(&["man", "--reference", "pages"]).succeeds();
    for entry in fs::read_dir(place.path("pages")).unwrap() {
        let path = entry.unwrap().path();
        let written = fs::read_to_string(&path).unwrap();
        let kept = docs().join("reference").join(path.file_name().unwrap());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::write(&kept, &written).unwrap();
        }
        let said = fs::read_to_string(&kept).unwrap_or_default();
        assert!(
            said == written,
            "{}: `stackline man --reference docs/reference` writes it anew",
            kept.display()
        );
    }
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_somewhere() {
    let pages = pages();
    let summary = links(&pages["SUMMARY.md"]);
    // The site is built of docs/ alone; the map of the code is read beside the code.
    let is_of_code = |name: &str| ["ARCHITECTURE.md", "WHERE.md"].contains(&name);
    let mut found: Vec<String> = pages
        .keys()
        .filter(|name| *name != "SUMMARY.md" && !is_of_code(name) && !summary.contains(name))
        .map(|name| format!("{name} is not in SUMMARY.md"))
        .collect();
    for (name, text) in &pages {
        let folder = Path::new(name).parent().unwrap();
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, place) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                name.clone()
            } else {
                normal(&folder.join(file))
            };
            if !docs().join(&target).exists() {
                found.push(format!("{name}: no file {link}"));
            }
            if !is_of_code(name) && (target.starts_with("../") || is_of_code(&target)) {
                found.push(format!("{name}: {link} is not in the site"));
            }
            let is_heading = |line: &str| {
                line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == place
            };
            if let Some(text) = pages.get(&target)
                && !place.is_empty()
                && !text.lines().any(is_heading)
            {
                found.push(format!("{name}: no heading {link}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
