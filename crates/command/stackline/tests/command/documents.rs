//! Every text of the language in the documents is right for the program itself, with the stacks it really has.

use crate::support::Place;

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
