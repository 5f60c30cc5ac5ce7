//! Conventions of CONTRIBUTING that a reader relies on: names of types that stand for one thing, parameters with names, functions and files
//! of a length that is read at one go, words of the field.

use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Item, Pat, Signature};

/// Of all types, at most so many share their name with another one, in percent.
const SHARED_NAMES: usize = 3;
/// Names of types that stand in more than three crates, each with its one meaning.
const COMMON_NAMES: &[(&str, &str)] = &[("Error", "what a function of this crate can fail with")];
/// A function has at most so many lines.
const FUNCTION: usize = 70;
/// What of a file is no test has at most so many lines.
const FILE: usize = 700;
/// Where `tape` is what users type: the name of the form of event logs, `--tape` and the ending of its files.
const FORM_OF_LOGS: &[&str] = &[
    "exchange/src/formats/event_log.rs",
    "stackline/src/flags.rs",
    "stackline/src/flags/import_export.rs",
    "runs/src/events/paths.rs",
    "runs/src/events/import/event_log.rs",
];
/// Words that stand for another word of the field, each with what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("told", "recorded, reported, noted, distinguished"),
    ("tape", "log, event log"),
    ("tapes", "logs"),
];

/// What is looked at of a file of production code, without its tests.
struct Source {
    path: PathBuf,
    of_crate: String,
    lines: Vec<String>,
    types: Vec<String>,
    functions: Functions,
}

/// All files of the product, read once.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(sources);

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute
            .path()
            .is_ident("cfg")
            .then(|| attribute.meta.require_list());
        condition.is_some_and(|list| list.is_ok_and(|list| list.tokens.to_string() == "test"))
    })
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

fn collect(folder: &Path, of_crate: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = tree::name_of(&path);
        if path.is_dir() && !name.ends_with("tests") {
            collect(&path, of_crate, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let file = syn::parse_file(&text).unwrap();
            if is_for_tests(&file.attrs) {
                continue;
            }
            let (tests, items): (Vec<Item>, Vec<Item>) = file
                .items
                .into_iter()
                .partition(|item| is_for_tests(attributes_of(item)));
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            for test in tests.iter().rev() {
                let span = test.span();
                lines.drain(span.start().line - 1..span.end().line);
            }
            let mut types = Vec::new();
            types_of(&items, &mut types);
            let mut functions = Functions::default();
            items.iter().for_each(|item| functions.visit_item(item));
            found.push(Source {
                path,
                of_crate: of_crate.to_string(),
                lines,
                types,
                functions,
            });
        }
    }
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in tree::crates() {
        collect(&folder.join("src"), &tree::crate_name(&folder), &mut found);
    }
    assert!(found.len() > 1000, "{} files", found.len());
    found
}

fn types_of(items: &[Item], found: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Struct(item) => found.push(item.ident.to_string()),
            Item::Enum(item) => found.push(item.ident.to_string()),
            Item::Union(item) => found.push(item.ident.to_string()),
            Item::Trait(item) => found.push(item.ident.to_string()),
            Item::Type(item) => found.push(item.ident.to_string()),
            Item::Mod(item) if !is_for_tests(&item.attrs) => {
                let inside = item.content.as_ref().map(|(_, items)| items.as_slice());
                types_of(inside.unwrap_or_default(), found);
            }
            _ => {}
        }
    }
}

#[test]
fn a_name_of_a_type_stands_for_one_thing() {
    let mut crates_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for source in SOURCES.iter() {
        for name in &source.types {
            *times.entry(name.clone()).or_default() += 1;
            crates_of
                .entry(name.clone())
                .or_default()
                .insert(source.of_crate.clone());
        }
    }
    let all: usize = times.values().sum();
    let shared: usize = times.values().filter(|n| **n > 1).sum();
    println!("{shared} of {all} types share their name");
    assert!(
        shared * 100 <= all * SHARED_NAMES,
        "{shared} of {all} types share their name with another"
    );
    for (name, crates) in crates_of {
        let is_common = COMMON_NAMES.iter().any(|(common, _)| *common == name);
        assert!(
            crates.len() <= 3 || is_common,
            "types called {name} stand in {crates:?}"
        );
    }
}

/// Looks at every function that is not for tests.
#[derive(Default)]
struct Functions {
    long: Vec<(String, usize)>,
    unnamed: Vec<String>,
}

impl Functions {
    fn look(&mut self, signature: &Signature, lines: usize) {
        let name = signature.ident.to_string();
        let is_unnamed = |argument: &FnArg| matches!(argument, FnArg::Typed(typed) if matches!(*typed.pat, Pat::Tuple(_)));
        if signature.inputs.iter().any(is_unnamed) {
            self.unnamed.push(name.clone());
        }
        if lines > FUNCTION {
            self.long.push((name, lines));
        }
    }
}

fn lines_of(item: &impl Spanned) -> usize {
    let span = item.span();
    span.end().line + 1 - span.start().line
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes_of(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.look(
            &function.sig,
            lines_of(&function.sig) + lines_of(&*function.block) - 1,
        );
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.look(
                &function.sig,
                lines_of(&function.sig) + lines_of(&function.block) - 1,
            );
            visit::visit_impl_item_fn(self, function);
        }
    }
}

#[test]
fn every_parameter_has_a_name() {
    let found: Vec<String> = SOURCES
        .iter()
        .flat_map(|source| {
            let unnamed = source.functions.unnamed.iter();
            unnamed
                .into_iter()
                .map(|name| format!("{}: {name}", source.path.display()))
        })
        .collect();
    assert!(
        found.is_empty(),
        "{} functions take tuples apart:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn functions_and_files_are_read_at_one_go() {
    let mut found = Vec::new();
    for source in SOURCES.iter() {
        let path = source.path.display();
        for (name, lines) in &source.functions.long {
            found.push(format!("{path}: {name} has {lines} lines"));
        }
        let lines = source.lines.len();
        if lines > FILE {
            found.push(format!("{path} has {lines} lines"));
        }
    }
    assert!(
        found.is_empty(),
        "{} are longer:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// A comment behind a statement belongs to it, and most readers take it for the next one's: it stands above. What leaves a function, and rows
/// of a list, may have theirs beside them.
#[test]
fn comments_stand_above_what_they_are_about() {
    let mut found = Vec::new();
    for source in SOURCES.iter() {
        for (at, line) in source.lines.iter().enumerate() {
            let Some((code, comment)) = line.split_once(" // ") else {
                continue;
            };
            let code = code.trim();
            let is_sentence = comment.starts_with(char::is_uppercase);
            if is_sentence && code.ends_with([';', '}']) && !code.starts_with("return") {
                found.push(format!("{}:{}: {line}", source.path.display(), at + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whether code adds an event to a table under a keyword that stands there as a text.
fn pushes_a_keyword(code: &str) -> bool {
    code.split(".push(\"").skip(1).any(|argument| {
        let keyword = argument.split_once("\",").map(|(text, _)| text);
        keyword.is_some_and(|text| text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    })
}

/// An event is a row of the catalogue, or of one of its families, with named fields: nobody puts a keyword beside values. `runs` carries
/// events that others have written.
#[test]
fn events_are_emitted_as_rows_of_the_catalogue() {
    let mut found = Vec::new();
    for source in SOURCES.iter().filter(|source| source.of_crate != "events") {
        let lines = source.lines.iter().map(|line| line.trim());
        let code: String = lines.filter(|line| !line.starts_with("//")).collect();
        let doors = ["Keyword::new(", "event!(", "keyword::intern("];
        let door = doors.iter().find(|door| code.contains(**door));
        let carries = source.of_crate == "runs" && door == Some(&"keyword::intern(");
        let is_for_tests = source.path.iter().any(|part| part == "testing");
        if (door.is_some() && !carries) || (pushes_a_keyword(&code) && !is_for_tests) {
            found.push(format!("{} emits by a keyword", source.path.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_are_the_fields() {
    let mut found = Vec::new();
    for source in SOURCES.iter() {
        let is_form = FORM_OF_LOGS.iter().any(|file| source.path.ends_with(file));
        for (number, line) in source.lines.iter().enumerate() {
            let words = line.split(|c: char| !c.is_alphanumeric());
            for word in words
                .map(str::to_lowercase)
                .filter(|word| !(is_form && word == "tape"))
            {
                if let Some((_, better)) = WORDS.iter().find(|(banned, _)| *banned == word) {
                    found.push(format!(
                        "{}:{}: `{word}`: write {better}",
                        source.path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} words:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Turns of phrase that a reader of messages, help or documents stumbles over, each with what to write instead.
const PHRASES: &[(&str, &str)] = &[
    (" is no ", "is not a, has no, unknown"),
    (" are no ", "are not, have no"),
    (" was no ", "was not a"),
    (" told ", "reported, recorded"),
    ("of use", "applies, has an effect"),
    ("that there are", "existing, available"),
    ("that there is", "existing, available"),
    ("sends away", "disconnects"),
    ("sent away", "disconnected"),
    (" is none:", "is not valid"),
    ("to be had", "available"),
    ("exists already", "already exists"),
    ("on its way", "in flight"),
    ("on their way", "in flight"),
    ("sent again", "retransmitted"),
    ("there and back", "round trip"),
    ("of requests that were traced", "in traced requests"),
    ("another than", "different from"),
];
/// What `is no` may stand before: comparisons. Behind `there` it may always stand.
const COMPARISONS: &[&str] = &[
    "longer",
    "more",
    "less",
    "faster",
    "slower",
    "larger",
    "smaller",
    "better",
    "worse",
    "later",
    "earlier",
    "further",
    "shorter",
    "other",
    "different",
];

/// The first phrase of the list in a text, with what to write instead.
fn phrase(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let headless = ["who ", "Who ", "Whoever "]
        .into_iter()
        .find(|word| text.starts_with(word) && !text.contains('?'));
    let listed = PHRASES.iter().copied().find(|(phrase, _)| {
        text.match_indices(phrase).any(|(at, _)| {
            let rest = &text[at + phrase.len()..];
            let next = rest.split(' ').next().unwrap_or("");
            let is_whole = phrase.ends_with([' ', ':']) || !rest.starts_with(char::is_alphanumeric);
            let is_plain =
                COMPARISONS.contains(&next) || text[..at].to_lowercase().ends_with("there");
            is_whole && !(phrase.ends_with(" no ") && is_plain)
        })
    });
    listed.or(headless.map(|word| (word, "a sentence with its subject")))
}

/// The texts of literals, and of documentation where it is shown as help.
fn literals(tokens: proc_macro2::TokenStream, is_help: bool, found: &mut Vec<(usize, String)>) {
    let mut is_documentation = false;
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Group(group) => literals(group.stream(), is_help, found),
            proc_macro2::TokenTree::Ident(word) => is_documentation = word == "doc",
            proc_macro2::TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                    && (is_help || !is_documentation)
                {
                    found.push((line, text.value()));
                }
            }
            proc_macro2::TokenTree::Punct(_) => {}
        }
    }
}

/// Prose of a document: what stands in no fenced block.
fn prose(document: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let lines = document.lines().enumerate();
    lines
        .filter(|(_, line)| {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            !inside && !fence
        })
        .map(|(at, line)| (at + 1, line))
        .collect()
}

/// All documents, by path.
fn documents() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut paths = vec![
        root.join("README.md"),
        root.join("CONTRIBUTING.md"),
        root.join("packaging/README.md"),
    ];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    paths.into_iter().map(read).collect()
}

#[test]
fn sentences_are_plain_english() {
    let mut found = Vec::new();
    for source in SOURCES.iter() {
        let is_help = source
            .path
            .to_string_lossy()
            .contains("stackline/src/flags");
        let tokens = source.lines.join("\n").parse().unwrap();
        let mut texts = Vec::new();
        literals(tokens, is_help, &mut texts);
        for (line, text) in texts {
            if let Some((phrase, better)) = phrase(&text) {
                let path = source.path.display();
                found.push(format!("{path}:{line}: `{phrase}`: {better}: {text}"));
            }
        }
    }
    for (path, document) in documents() {
        for (line, text) in prose(&document) {
            if let Some((phrase, better)) = phrase(text) {
                let path = path.display();
                found.push(format!("{path}:{line}: `{phrase}`: {better}: {text}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} sentences:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn phrases_are_found_and_comparisons_are_not() {
    assert!(phrase("the file is no\n picture").is_some());
    assert!(phrase("who reads nothing is disconnected").is_some());
    assert!(phrase("`--x` is of use with `--y`").is_some());
    assert_eq!(phrase("it is no longer there"), None);
    assert_eq!(phrase("who of them?"), None);
}

/// Lines, paragraphs and cells that a reader takes in at one look.
#[test]
fn documents_are_read_without_scrolling_sideways() {
    const LINE: usize = 200;
    const PARAGRAPH: usize = 8;
    const CELL: usize = 210;
    let mut found = Vec::new();
    // Pages of reference are tables of the code.
    let read = documents().into_iter();
    for (path, document) in read.filter(|(path, _)| !path.to_string_lossy().contains("/reference/"))
    {
        let path = path.display();
        let mut paragraph = 0;
        for (number, line) in prose(&document) {
            let is_row = line.starts_with('|');
            if !is_row && line.chars().count() > LINE {
                found.push(format!("{path}:{number}: more than {LINE} characters"));
            }
            let is_list = line.starts_with("- ")
                || line.starts_with("* ")
                || line.starts_with(char::is_numeric);
            paragraph = match line.trim() {
                "" => 0,
                _ if is_row || line.starts_with('#') => 0,
                _ if is_list => 1,
                _ => paragraph + 1,
            };
            if paragraph == PARAGRAPH + 1 {
                found.push(format!(
                    "{path}:{number}: a paragraph of more than {PARAGRAPH} lines"
                ));
            }
            let wide = line.split('|').any(|cell| cell.chars().count() > CELL);
            if is_row && wide {
                found.push(format!(
                    "{path}:{number}: a cell of more than {CELL} characters"
                ));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} places:\n{}",
        found.len(),
        found.join("\n")
    );
}
