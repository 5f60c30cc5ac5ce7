//! The TextMate grammar of `packaging/editors`, made of the tables of the language, and a test that it is as they are.
//!
//! Keywords are what the parser takes for keywords in the tables' words, the prelude, the examples and all texts of the tests, so a
//! keyword that some test uses cannot be missing.

extern crate std;

use crate::diagnostic::{DiagnosticReport, TextOrigin};
use crate::prelude::PRELUDE;
use crate::spelling::{self, ALIASES, CLAUSES, COMPOSERS, HEADS, ITEMS, PACES};
use crate::token_layout::{Marked, TokenRole};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::distribution::TABLE;
use stackline_core::plan::World;
use stackline_core::procedure::OPERATIONS;
use stackline_core::units::{RATE_UNITS, SIZE_UNITS, TIME_UNITS};
use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

/// The texts of the files in a folder whose names have that end.
fn texts(folder: &str, end: &str) -> Vec<String> {
    let entries = fs::read_dir(in_repository(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let named = paths.filter(|path| path.to_str().is_some_and(|path| path.ends_with(end)));
    named
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// The words that the parser takes for keywords in a text, in their common form.
fn keywords_of(text: &str) -> BTreeSet<String> {
    let mut report = DiagnosticReport::default();
    let tokens = crate::token::lex(text, TextOrigin::File, &mut report);
    let mut marked = Marked::new(text, &tokens);
    crate::parse::parse(&mut marked, &mut report);
    // In a wrong text a misspelt word may have been taken for a keyword.
    if report.errors() > 0 {
        return BTreeSet::new();
    }
    let keywords = tokens
        .list
        .iter()
        .zip(&marked.marks)
        .filter(|(token, mark)| {
            token.kind == crate::token::TokenKind::Name
                && matches!(mark.role, TokenRole::Keyword | TokenRole::Keywords)
        });
    let words = keywords.filter_map(|(token, _)| text.get(token.span.start..token.span.end));
    words.map(spelling::fold).collect()
}

/// All keywords.
fn keywords() -> BTreeSet<String> {
    let tables = [ITEMS, CLAUSES, HEADS, PACES].concat();
    let mut words: BTreeSet<String> = tables.iter().map(ToString::to_string).collect();
    words.extend(
        COMPOSERS
            .iter()
            .flat_map(|words| words.split(' '))
            .map(ToString::to_string),
    );
    words.extend(keywords_of(PRELUDE));
    for text in texts("examples", ".stackline") {
        words.extend(keywords_of(&text));
    }
    for cases in texts("crates/language/spec/tests/data", ".txt") {
        let texts = cases.split("\n> ").skip(1);
        for text in texts {
            words.extend(keywords_of(text.lines().next().unwrap_or_default()));
        }
    }
    let named: BTreeSet<String> = [applications(), distributions(), worlds(), units()]
        .concat()
        .into_iter()
        .collect();
    words
        .into_iter()
        .filter(|word| !named.contains(word))
        .collect()
}

fn applications() -> Vec<String> {
    let short = ALIASES.iter().map(|(short, _)| *short);
    spelling::prelude()
        .chain(short)
        .map(ToString::to_string)
        .collect()
}

fn distributions() -> Vec<String> {
    let names = TABLE.iter().map(|(name, ..)| *name).chain(["empirical"]);
    names.map(ToString::to_string).collect()
}

fn worlds() -> Vec<String> {
    World::ALL.iter().map(ToString::to_string).collect()
}

fn units() -> Vec<String> {
    let all = SIZE_UNITS.iter().chain(TIME_UNITS).chain(RATE_UNITS);
    all.map(|(unit, _)| unit.to_string()).collect()
}

/// An expression for any of these words, the longest first; `-` and `_` are the same in names.
fn any_of(words: impl IntoIterator<Item = String>) -> String {
    let mut words: Vec<String> = words
        .into_iter()
        .map(|word| word.replace('_', "[-_]"))
        .collect();
    words.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
    words.dedup();
    words.join("|")
}

/// A pattern of the grammar.
fn pattern(name: &str, expression: &str) -> String {
    let expression = expression.replace('\\', "\\\\").replace('"', "\\\"");
    format!("    {{ \"name\": \"{name}.stackline\", \"match\": \"{expression}\" }}")
}

/// A pattern for whole words, whatever their letters' case.
fn words(name: &str, words: impl IntoIterator<Item = String>) -> String {
    pattern(
        name,
        &format!("(?<![\\w.-])(?i:{})(?![\\w-])", any_of(words)),
    )
}

/// The grammar as a file.
fn grammar() -> String {
    let operations = OPERATIONS.iter().map(|(name, ..)| name.to_string());
    let patterns = [
        pattern("comment.line.number-sign", "#.*$"),
        pattern("string.quoted.double", "\"[^\"\\n]*\"?"),
        pattern("variable.parameter", "<\\s*[A-Za-z_][\\w-]*\\s*>"),
        pattern(
            "constant.numeric",
            &format!(
                "(?<![\\w.])\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?(?:\\s*%|\\s*(?:{})(?:/s)?(?![\\w]))?",
                any_of(units())
            ),
        ),
        words("support.function.application", applications()),
        words("support.function.operation", operations),
        words("support.function.distribution", distributions()),
        words("constant.language.world", worlds()),
        words("keyword.control", keywords()),
        pattern("keyword.operator", "->|\\*|=|\\.\\.\\.|\\||<|>"),
        pattern("punctuation.separator", "[;:,]"),
        pattern("variable.other", "(?<![\\w.-])[A-Za-z_][\\w.-]*"),
    ];
    format!(
        "{{\n  \"$comment\": \"Made of the language's tables: UPDATE_GOLDEN=1 cargo test -p stackline-spec --lib editor_grammar\",\n  \"name\": \"stackline\",\n  \"scopeName\": \"source.stackline\",\n  \"fileTypes\": [\"stackline\"],\n  \"patterns\": [\n{}\n  ]\n}}\n",
        patterns.join(",\n")
    )
}

#[test]
fn the_grammar_of_editors_has_the_words_of_the_language() {
    let path = in_repository("packaging/editors/stackline.tmLanguage.json");
    let grammar = grammar();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &grammar).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(
        kept == grammar,
        "{} differs from the tables; UPDATE_GOLDEN=1 writes it",
        path.display()
    );
}

#[test]
fn every_word_of_the_tables_has_one_kind() {
    let keywords = keywords();
    for word in [ITEMS, CLAUSES, HEADS].concat() {
        assert!(keywords.contains(word), "{word}");
    }
    for word in ["link", "loss", "codel", "initiator", "repeat", "via"] {
        assert!(keywords.contains(word), "{word}");
    }
    for other in ["bulk_get", "exponential", "simulated", "khons"] {
        assert!(!keywords.contains(other), "{other}");
    }
    assert_eq!(any_of(["a".to_string(), "ab_c".to_string()]), "ab[-_]c|a");
}
