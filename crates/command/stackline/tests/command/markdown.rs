//! Specifications in fenced blocks of Markdown are checked, formatted and run where they stand.

use crate::support::{Place, pair};
use std::fs;

/// A document with a right, a wrong and another right specification; the wrong one can be put right.
fn document(second: &str) -> String {
    let first = format!(
        "{}\n1 from a to b rr 32*5 over tcp across n in simulated;",
        pair("")
    );
    format!(
        "# Ä measurement\n\n```stackline name=wan\n{first}\n```\n\n```sh\nstackline run README.md#wan\n```\n\n- item\n  ```stackline\n  {second}\n  ```\n\n```stackline\n1 rr 32*7 over unix;\n```\n"
    )
}

#[test]
fn a_block_runs_by_its_number_or_name_and_is_kept_alone() {
    let place = Place::new();
    place.write("README.md", document("1 rr 32*6 over unix;"));
    place.stackline(&["run", "README.md#3"]).succeeds();
    place.stackline(&["run", "README.md#wan"]).succeeds();
    let names: Vec<String> = place
        .runs()
        .iter()
        .map(|run| run.display().to_string())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("-README")),
        "{names:?}"
    );
    assert!(names.iter().any(|name| name.ends_with("-wan")), "{names:?}");
    let show = |name: &str| {
        let run = place
            .runs()
            .into_iter()
            .find(|run| run.display().to_string().ends_with(name));
        fs::read_to_string(run.unwrap().join("specification.stackline")).unwrap()
    };
    assert_eq!(show("-README"), "1 rr 32*7 over unix;\n");
    assert!(show("-wan").starts_with("network n {"));
    let again = place.stackline(&["runs", "again", "wan"]);
    assert!(
        again.succeeds().out.contains("the same to the last bit"),
        "{}",
        again.out
    );
    place
        .stackline(&["run", "README.md"])
        .fails(2, &["3 specifications, and none was chosen"])
        .hints("#1 or #wan (line 4), #2 (line 14), #3 (line 18)");
    place
        .stackline(&["plan", "README.md#4"])
        .fails(2, &["no specification 4"]);
    place.write("empty.md", "nothing");
    place
        .stackline(&["check", "empty.md"])
        .fails(2, &["has no specification"]);
}

#[test]
fn all_blocks_are_checked_with_the_lines_of_the_document() {
    let place = Place::new();
    place.write("README.md", document("1 rr 32*6 over unixx;"));
    let checked = place.stackline(&["check", "README.md"]);
    assert_eq!(checked.status.code(), Some(2), "{}", checked.err);
    assert!(checked.err.contains("README.md:14:"), "{}", checked.err);
    assert!(
        checked
            .out
            .contains("README.md#wan (line 4): ok, 1 measurement"),
        "{}",
        checked.out
    );
    assert!(
        checked.out.contains("README.md#3 (line 18): ok"),
        "{}",
        checked.out
    );
    let json = place
        .stackline(&["check", "--json", "README.md"])
        .out
        .clone();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let [mistake] = &json["diagnostics"].as_array().unwrap()[..] else {
        panic!("one mistake: {json}");
    };
    let line = "  1 rr 32*6 over unixx;";
    let column = line.find("unixx").unwrap() + 1;
    assert_eq!(mistake["line"], 14);
    assert_eq!(mistake["end_line"], 14);
    assert_eq!(mistake["column"], column);
    assert_eq!(mistake["end_column"], column + "unixx".len());
    assert_eq!(mistake["code"], "meaning");
    let oks: Vec<bool> = json["specifications"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["ok"].as_bool().unwrap())
        .collect();
    assert_eq!(oks, [true, false, true]);
    let one = place
        .stackline(&["check", "--json", "README.md#2"])
        .out
        .clone();
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["right"], document("1 rr 32*6 over unix;"));
}

#[test]
fn the_blocks_of_a_document_are_formatted_in_place() {
    let place = Place::new();
    let ugly = document("1   rr 32*6   over unix ;");
    place.write("README.md", &ugly);
    assert_eq!(
        place
            .stackline(&["fmt", "--check", "README.md"])
            .status
            .code(),
        Some(1)
    );
    place
        .stackline(&["fmt", "--write", "README.md#2"])
        .fails(2, &["all specifications of a Markdown file"]);
    let one = place.stackline(&["fmt", "README.md#2"]);
    assert_eq!(one.succeeds().out, "1 rr 32*6 over unix;\n");
    place.stackline(&["fmt", "--write", "README.md"]).succeeds();
    let formatted = fs::read_to_string(place.path("README.md")).unwrap();
    assert!(
        formatted.contains("\n- item\n  ```stackline\n  1 rr 32*6 over unix;\n  ```\n"),
        "{formatted}"
    );
    assert!(formatted.starts_with("# Ä measurement\n"));
    place.stackline(&["fmt", "--check", "README.md"]).succeeds();
    place.write("README.md", document("1 rr (;"));
    let wrong = place.stackline(&["fmt", "README.md"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.err.contains("README.md:14:"), "{}", wrong.err);
}

#[test]
fn standard_input_is_formatted_and_not_written_to() {
    let place = Place::new();
    let mut command = place.command(&["fmt", "-"]);
    let input = place.write("in", "10   rr 32*5 ;");
    command.stdin(fs::File::open(&input).unwrap());
    let done = command.output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "10 rr 32*5;\n");
    place
        .stackline(&["fmt", "--write", "-"])
        .fails(2, &["--write needs a file"]);
}
