//! Where things stand in the tree: its root, its folders of crates, its crates by name.
#![allow(dead_code, reason = "each test uses a part")]
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_string()
}

/// The folders inside `crates/`, but for `query`, a workspace of its own.
pub(crate) fn groups() -> Vec<PathBuf> {
    let mut groups = folders(&root().join("crates"));
    groups.retain(|group| name_of(group) != "query");
    groups
}

/// The folders of all crates.
pub(crate) fn crates() -> Vec<PathBuf> {
    let all = groups()
        .iter()
        .flat_map(|group| folders(group))
        .collect::<Vec<_>>();
    all.into_iter()
        .filter(|folder| folder.join("Cargo.toml").exists())
        .collect()
}

/// The name of the crate in a folder, without `stackline-`.
pub(crate) fn crate_name(folder: &Path) -> String {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let name = manifest
        .lines()
        .find_map(|line| line.strip_prefix("name = \""));
    let name = name.unwrap().trim_end_matches('"');
    name.trim_start_matches("stackline-").to_string()
}

/// A path that begins with the name of a crate: `live/src/stacks`.
pub(crate) fn in_crate(path: &str) -> PathBuf {
    let (name, rest) = path.split_once('/').unwrap_or((path, ""));
    let folder = crates()
        .into_iter()
        .find(|folder| crate_name(folder) == name);
    folder
        .unwrap_or_else(|| panic!("there is no crate `{name}`"))
        .join(rest)
}
