//! The table of findings in docs/JSON.md is the list of kinds; `UPDATE_GOLDEN=1` writes it anew.

use std::{env, fs, path::Path};

use stackline_analyze::findings::KINDS;

const HEAD: &str = "| kind | means |\n| --- | --- |\n";

#[test]
fn the_document_has_every_kind_with_its_meaning() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/JSON.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let (table, after) = rest.split_once("\n\n").unwrap();
    let rows: Vec<String> = KINDS.iter().map(|kind| format!("| `{}` | {} |", kind.name, kind.meaning)).collect();
    let wanted = rows.join("\n");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, format!("{before}{HEAD}{wanted}\n\n{after}")).unwrap();
    } else {
        assert_eq!(table, wanted, "`UPDATE_GOLDEN=1 cargo test -p stackline-analyze --test kinds` writes it anew");
    }
}

#[test]
fn each_kind_has_a_name_of_its_own() {
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}
