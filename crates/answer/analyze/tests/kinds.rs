//! The tables of findings and of flags in docs/JSON.md are the lists in the code; `UPDATE_GOLDEN=1` writes them anew.

use std::{env, fs, path::Path};

use stackline_analyze::findings::KINDS;
use stackline_analyze::flags::FLAGS;
use stackline_core::finding_names::{FINDINGS_OF_MEASUREMENTS, FINDINGS_OF_PROGRAMS};

#[test]
fn the_document_has_every_kind_and_every_flag_with_its_meaning() {
    let kinds: Vec<(&str, &str)> = KINDS.iter().map(|kind| (kind.name, kind.meaning)).collect();
    document_has("| kind | means |\n| --- | --- |\n", &kinds);
    document_has("| flag | when |\n| --- | --- |\n", &FLAGS);
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn document_has(head: &str, list: &[(&str, &str)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/JSON.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(head).unwrap();
    let (table, after) = rest.split_once("\n\n").unwrap();
    let rows: Vec<String> = list
        .iter()
        .map(|(name, meaning)| format!("| `{name}` | {meaning} |"))
        .collect();
    let wanted = rows.join("\n");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, format!("{before}{head}{wanted}\n\n{after}")).unwrap();
    } else {
        assert_eq!(
            table, wanted,
            "`UPDATE_GOLDEN=1 cargo test -p stackline-analyze --test kinds` writes it anew"
        );
    }
}

#[test]
fn each_kind_has_a_name_of_its_own() {
    let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KINDS.len());
}

#[test]
fn a_specification_may_expect_every_kind() {
    let mut named = [FINDINGS_OF_MEASUREMENTS, FINDINGS_OF_PROGRAMS].concat();
    named.sort_unstable();
    let mut kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    kinds.sort_unstable();
    assert_eq!(
        named, kinds,
        "core::finding_names lists the kinds that `expect finding` takes"
    );
}
