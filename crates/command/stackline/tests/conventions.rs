//! Conventions of CONTRIBUTING that a reader relies on: names of types that stand for one thing, parameters with names, functions and files
//! of a length that is read at one go, words of the field.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod tree;

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
/// Longer functions; the list only gets shorter.
const LONGER: &[(&str, &str)] = &[
    ("exchange/src/capture/reading.rs", "segment"),
    ("exchange/src/capture/host_addresses.rs", "addresses"),
    ("whatif/src/specification/infinite_factor.rs", "limits"),
    ("stackline/src/display.rs", "bench"),
    ("stackline/src/run.rs", "run"),
];
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
        if path.is_dir() && name != "tests" {
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
        let is_listed = |function: &str| {
            let listed = LONGER.iter().filter(|(_, name)| *name == function);
            listed
                .into_iter()
                .any(|(file, _)| source.path.ends_with(file))
        };
        let long = source.functions.long.iter();
        for (name, lines) in long.filter(|(name, _)| !is_listed(name)) {
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
