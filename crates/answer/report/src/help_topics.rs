//! Topics of help: chapters of the language manual, and the meaning of kinds of findings, for a terminal of 80 columns.

use crate::findings::wrapped;
use crate::manual_text;
use stackline_analyze::findings::FindingKind;

const LANGUAGE: &str = include_str!("../../../../docs/LANGUAGE.md");

/// The chapters of the language manual: the topic for `help`, and the heading.
const CHAPTERS: [(&str, &str); 22] = [
    ("language", "The stackline language"),
    ("markdown", "In Markdown"),
    ("specification", "1. A specification"),
    ("sizes", "Sizes and counts"),
    ("data", "Where data comes from and goes to"),
    ("limits", "Limits, repetition, warm-up"),
    ("composers", "Composers"),
    ("clauses", "Clauses"),
    ("expectations", "Expectations"),
    ("timings", "Timings"),
    ("sweeps", "Sweeps"),
    ("hosts", "2. Hosts, networks, seed"),
    ("servers", "Servers outside the run"),
    ("networks", "Networks"),
    ("loops", "Loops and templates"),
    ("sets", "Sets of hosts"),
    ("tcp1995", "TCP of 1995"),
    ("procedures", "3. Procedures: application types of your own"),
    ("distributions", "4. Distributions"),
    ("words", "5. Words, numbers, comments"),
    ("grammar", "6. The grammar"),
    ("bounds", "7. Bounds"),
];

/// The chapter of a topic; the first one is followed by the list of topics. `None` for a word that is not a topic.
#[must_use]
pub fn language_chapter(topic: &str) -> Option<String> {
    let (_, heading) = CHAPTERS.iter().find(|(word, _)| *word == topic)?;
    let text = manual_text::chapter(LANGUAGE, heading).unwrap_or_default();
    Some(match topic {
        "language" => format!(
            "{text}
{}",
            topics()
        ),
        _ => text,
    })
}

/// The words of all chapters.
pub fn language_topics() -> impl Iterator<Item = &'static str> {
    CHAPTERS.iter().map(|(word, _)| *word)
}

fn topics() -> String {
    let rows = CHAPTERS
        .iter()
        .map(|(word, heading)| format!("  stackline help {word:<15}{heading}\n"));
    format!("Chapters:\n{}", rows.collect::<String>())
}

/// The meanings of these kinds of findings.
#[must_use]
pub fn finding_meanings(kinds: &[FindingKind]) -> String {
    kinds
        .iter()
        .map(|kind| wrapped(&format!("{}: {}", kind.name, kind.meaning)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::findings::KINDS;

    #[test]
    fn every_chapter_of_the_language_has_a_word_and_fits_80_columns() {
        let headings: Vec<&str> = LANGUAGE
            .lines()
            .filter(|line| line.starts_with('#') && line.contains("# "))
            .map(|line| line.trim_start_matches('#').trim())
            .collect();
        let known: Vec<&str> = CHAPTERS.iter().map(|(_, heading)| *heading).collect();
        assert_eq!(headings, known);
        for word in language_topics() {
            let text = language_chapter(word).unwrap();
            assert!(text.lines().count() > 3, "{word}");
            for line in text.lines() {
                assert!(
                    line.chars().count() <= 80 || line.starts_with("    "),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn each_kind_of_finding_is_explained_in_80_columns() {
        let text = finding_meanings(KINDS);
        for kind in KINDS {
            let begins = format!("{}: ", kind.name);
            assert!(
                text.lines().any(|line| line.starts_with(&begins)),
                "{begins}"
            );
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}
