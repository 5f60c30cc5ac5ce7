//! Files of a crate use each other downwards: no ring of more than two files, over the paths of their `use` items and all other paths in
//! them that begin with `crate`, `super`, `self` or a module of the file, macros included.
//!
//! A name that a file only passes on (`pub use`) counts for the file that defines it. Tests may import what they like.

use crate::tree;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, UseTree, Visibility};

/// The names from the root of a crate to one of its modules, or to what stands in it.
type Names = Vec<String>;

/// One file: what it takes from others, and what it passes on under which name.
#[derive(Default)]
struct Module {
    uses: Vec<Names>,
    passed_on: BTreeMap<String, Names>,
}

/// All files of a crate by their module.
type Modules = BTreeMap<Names, Module>;

fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute
            .path()
            .is_ident("cfg")
            .then(|| attribute.parse_args::<syn::Ident>().ok())
            .flatten();
        condition.is_some_and(|name| name == "test")
    })
}

/// Reads the file of a module and those of its submodules.
fn read(file: &Path, module: &Names, found: &mut Modules) {
    let text = fs::read_to_string(file).unwrap();
    let tree = syn::parse_file(&text).unwrap();
    let root = ["lib.rs", "main.rs", "mod.rs"]
        .iter()
        .any(|name| file.ends_with(name));
    let folder = if root {
        file.parent().unwrap().to_path_buf()
    } else {
        file.with_extension("")
    };
    let mut content = Module::default();
    let mut children = BTreeMap::new();
    for item in &tree.items {
        match item {
            Item::Mod(child) if child.content.is_none() && !only_for_tests(&child.attrs) => {
                children.insert(
                    child.ident.to_string(),
                    file_of(&folder, &child.ident.to_string()),
                );
            }
            _ => {}
        }
    }
    for item in &tree.items {
        match item {
            Item::Use(taken) if !only_for_tests(&taken.attrs) => {
                let public = !matches!(taken.vis, Visibility::Inherited);
                flatten(&taken.tree, &Vec::new(), &mut |path, name| {
                    let Some(path) = from_the_root(path, module, &children) else {
                        return;
                    };
                    // The others are found among all paths.
                    if let (Some(name), true) = (name, public) {
                        content.passed_on.insert(name, path);
                    }
                });
            }
            _ => {}
        }
    }
    inline_paths(
        text.parse().unwrap(),
        &mut module.clone(),
        &children,
        &mut |path| content.uses.push(path),
    );
    found.insert(module.clone(), content);
    for (name, file) in children {
        let child = [module.as_slice(), &[name]].concat();
        read(&file, &child, found);
    }
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(format!("{name}.rs"));
    if file.exists() {
        file
    } else {
        folder.join(name).join("mod.rs")
    }
}

/// Each path in tokens that leads into the crate, as seen from its root. What is for tests alone is passed over.
fn inline_paths(
    tokens: TokenStream,
    module: &mut Names,
    children: &BTreeMap<String, PathBuf>,
    each: &mut dyn FnMut(Names),
) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let text = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
    let ends_item = |at: usize| match &tokens[at] {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => token.to_string() == ";",
    };
    let mut at = 0;
    while at < tokens.len() {
        let is_for_tests = text(at) == "#" && text(at + 1).replace(' ', "") == "[cfg(test)]";
        if is_for_tests {
            at = (at..tokens.len())
                .find(|at| ends_item(*at))
                .map_or(tokens.len(), |end| end + 1);
            continue;
        }
        if text(at) == "use" {
            let end = (at..tokens.len())
                .find(|at| text(*at) == ";")
                .unwrap_or(tokens.len() - 1);
            if let Ok(taken) =
                syn::parse2::<syn::ItemUse>(tokens[at..=end].iter().cloned().collect())
            {
                let public = matches!(text(at.wrapping_sub(1)).chars().next(), Some('('))
                    || text(at.wrapping_sub(1)) == "pub";
                flatten(&taken.tree, &Vec::new(), &mut |path, name| {
                    // What is passed on counts where it is used.
                    let used = name.is_none() || !public;
                    from_the_root(path, module, children)
                        .filter(|_| used)
                        .into_iter()
                        .for_each(&mut *each);
                });
            }
            at = end + 1;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inline =
                    at >= 2 && text(at - 2) == "mod" && group.delimiter() == Delimiter::Brace;
                module.extend(inline.then(|| text(at - 1)));
                inline_paths(group.stream(), module, children, each);
                module.truncate(module.len() - usize::from(inline));
            }
            TokenTree::Ident(first) if text(at + 1) == ":" && text(at + 2) == ":" => {
                let goes_on = at >= 1 && [":", "."].contains(&text(at - 1).as_str());
                let mut path = vec![first.to_string()];
                while text(at + 1) == ":"
                    && text(at + 2) == ":"
                    && matches!(tokens.get(at + 3), Some(TokenTree::Ident(_)))
                {
                    at += 3;
                    path.push(text(at));
                }
                if let Some(path) = (!goes_on)
                    .then(|| from_the_root(path, module, children))
                    .flatten()
                {
                    each(path);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Each path of a `use`, with the name it gets here; no name for all names of a module (`*`).
fn flatten(tree: &UseTree, before: &Names, each: &mut dyn FnMut(Names, Option<String>)) {
    let with = |name: &syn::Ident| [before.as_slice(), &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), each),
        UseTree::Name(name) if name.ident == "self" => each(before.clone(), before.last().cloned()),
        UseTree::Name(name) => each(with(&name.ident), Some(name.ident.to_string())),
        UseTree::Rename(renamed) if renamed.ident == "self" => {
            each(before.clone(), Some(renamed.rename.to_string()))
        }
        UseTree::Rename(renamed) => each(with(&renamed.ident), Some(renamed.rename.to_string())),
        UseTree::Glob(_) => each(before.clone(), None),
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|tree| flatten(tree, before, each)),
    }
}

/// A path as seen from the root of its crate; none for what is of another crate.
fn from_the_root(
    path: Names,
    module: &Names,
    children: &BTreeMap<String, PathBuf>,
) -> Option<Names> {
    let mut at = module.clone();
    let mut rest = path.as_slice();
    match rest.first()?.as_str() {
        "crate" => (at, rest) = (Vec::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {}
        child if children.contains_key(child) => {}
        _ => return None,
    }
    while let Some("super") = rest.first().map(String::as_str) {
        at.pop();
        rest = &rest[1..];
    }
    at.extend_from_slice(rest);
    Some(at)
}

/// The module whose file defines what a path names.
fn defined_in(path: &Names, modules: &Modules) -> Names {
    let known = (0..=path.len())
        .rev()
        .find(|n| modules.contains_key(&path[..*n]))
        .unwrap_or_default();
    let Some(name) = path.get(known) else {
        return path.clone();
    };
    let module = &modules[&path[..known]];
    if let Some(passed_on) = module.passed_on.get(name) {
        let further = [passed_on.as_slice(), &path[known + 1..]].concat();
        return if further == *path {
            path[..known].to_vec()
        } else {
            defined_in(&further, modules)
        };
    }
    path[..known].to_vec()
}

/// Sets of modules each of which can be reached from each other.
fn rings(edges: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<BTreeSet<Names>> {
    let reached = |from: &Names| {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Names> = edges[from].iter().collect();
        while let Some(module) = next.pop() {
            if reached.insert(module.clone()) {
                next.extend(&edges[module]);
            }
        }
        reached
    };
    let all: BTreeMap<&Names, BTreeSet<Names>> = edges
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let ring = |module: &Names| -> BTreeSet<Names> {
        all[module]
            .iter()
            .filter(|other| all[*other].contains(module))
            .cloned()
            .collect()
    };
    let found: BTreeSet<BTreeSet<Names>> = edges
        .keys()
        .map(ring)
        .filter(|ring| ring.len() > 2)
        .collect();
    found.into_iter().collect()
}

#[test]
fn no_ring_of_more_than_two_files() {
    let mut found = Vec::new();
    for folder in tree::crates() {
        let source = folder.join("src");
        let Some(root) = ["lib.rs", "main.rs"]
            .iter()
            .map(|name| source.join(name))
            .find(|file| file.exists())
        else {
            continue;
        };
        let mut modules = Modules::new();
        read(&root, &Vec::new(), &mut modules);
        let edges: BTreeMap<Names, BTreeSet<Names>> = modules
            .iter()
            .map(|(at, module)| {
                let used = module
                    .uses
                    .iter()
                    .map(|path| defined_in(path, &modules))
                    .filter(|used| used != at);
                (at.clone(), used.collect())
            })
            .collect();
        for ring in rings(&edges) {
            let within = |from: &Names| {
                let to = edges[from]
                    .intersection(&ring)
                    .map(|to| to.join("::"))
                    .collect::<Vec<_>>();
                format!("    {} uses {}", from.join("::"), to.join(", "))
            };
            let lines: Vec<String> = ring.iter().map(within).collect();
            found.push(format!(
                "{}:\n{}",
                tree::crate_name(&folder),
                lines.join("\n")
            ));
        }
    }
    assert!(
        found.is_empty(),
        "files that import each other in a ring:\n{}",
        found.join("\n")
    );
}
