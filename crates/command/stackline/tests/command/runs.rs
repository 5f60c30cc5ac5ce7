//! The list of kept runs, notes about them, and their removal.

use crate::support::{Place, pair};
use std::path::PathBuf;

/// A place with runs `a`, `b` and `c`, in this order.
fn place() -> Place {
    let place = Place::new();
    for (name, count) in [("a", 10), ("b", 20), ("c", 30)] {
        let text = format!(
            "{} 2 from a to b rr 32*{count} over tcp across n in simulated",
            pair("")
        );
        place
            .stackline(&["run", "--name", name, "-e", &text])
            .succeeds();
    }
    place
}

fn listed(place: &Place, arguments: &[&str]) -> Vec<String> {
    let words = [&["runs", "--json"], arguments].concat();
    let json = place.stackline(&words).succeeds().json();
    let names = json["runs"].as_array().unwrap().iter();
    names
        .map(|run| run["name"].as_str().unwrap()[16..].to_owned())
        .collect()
}

#[test]
fn kept_runs_are_listed_newest_first_with_their_figures() {
    let place = place();
    assert_eq!(listed(&place, &[]), ["c", "b", "a"]);
    assert_eq!(listed(&place, &["rr 32*20"]), ["b"]);
    let table = place.stackline(&["runs"]).succeeds().out.clone();
    let newest = table.lines().nth(1).unwrap();
    assert!(
        newest.contains("-c ") && newest.contains(" ms") && newest.contains("rr 32*30"),
        "{table}"
    );
    place
        .stackline(&["list"])
        .fails(2, &["list"])
        .hints("`stackline runs`");
}

#[test]
fn a_run_is_named_by_how_many_are_newer() {
    let place = place();
    let run =
        |name: &str| place.stackline(&["show", "--json", name]).succeeds().json()["run"].clone();
    assert_eq!(run("last"), run("c"));
    assert_eq!(run("last~2"), run("a"));
    place
        .stackline(&["show", "last~3"])
        .fails(2, &["no run at last~3"]);
}

#[test]
fn a_note_is_kept_until_it_is_emptied() {
    let place = place();
    place
        .stackline(&["runs", "note", "b", "new kernel"])
        .succeeds();
    assert_eq!(listed(&place, &["new kernel"]), ["b"]);
    place.stackline(&["runs", "note", "b", ""]).succeeds();
    assert_eq!(listed(&place, &["new kernel"]), [""; 0]);
    place
        .stackline(&["runs", "note", "b", &"x".repeat(5000)])
        .fails(2, &["5000 bytes"]);
}

#[test]
fn runs_are_removed_by_name_or_by_a_rule_that_spares_notes() {
    let place = place();
    place
        .stackline(&["runs", "remove", "b", "nothing"])
        .fails(2, &["no run at nothing"]);
    assert_eq!(listed(&place, &[]), ["c", "b", "a"], "all or none");
    place
        .stackline(&["runs", "note", "a", "the baseline"])
        .succeeds();
    let prune = ["runs", "prune", "--keep", "1"];
    let dry = place.stackline(&[&prune[..], &["--dry-run"]].concat());
    assert!(
        dry.out.trim_end().ends_with("-b") && dry.err.contains("1 run,"),
        "{}",
        dry.out
    );
    assert_eq!(listed(&place, &[]).len(), 3);
    place.stackline(&prune).succeeds();
    assert_eq!(listed(&place, &[]), ["c", "a"]);
    place
        .stackline(&["runs", "prune", "--older-than", "30d"])
        .succeeds();
    place.stackline(&["runs", "remove", "last", "a"]).succeeds();
    assert!(
        place
            .stackline(&["runs"])
            .succeeds()
            .out
            .contains("no runs")
    );
    place.stackline(&["runs", "prune"]).fails(2, &["--keep"]);
}

#[test]
fn the_oldest_go_until_the_rest_has_room() {
    let place = place();
    let json = place.stackline(&["runs", "--json"]).succeeds().json();
    let bytes = |at: usize| json["runs"][at]["bytes"].as_u64().unwrap();
    let most = format!("{}", bytes(0) + bytes(1));
    place
        .stackline(&["runs", "prune", "--most-size", &most])
        .succeeds();
    assert_eq!(listed(&place, &[]), ["c", "b"]);
    place
        .stackline(&["runs", "prune", "--most-size", "1"])
        .succeeds();
    assert_eq!(listed(&place, &[]), [""; 0]);
}

#[test]
fn a_directory_that_is_not_a_runs_is_not_removed() {
    let place = Place::new();
    std::fs::create_dir(place.path("project")).unwrap();
    place.write("project/status.json", "{\"ok\": true}");
    place.write("project/source", "precious");
    place
        .stackline(&["runs", "remove", "./project"])
        .fails(2, &["not that of a run"]);
    assert!(place.path("project/source").exists());
}

#[test]
fn a_link_in_a_run_is_not_followed_when_it_is_removed() {
    let place = place();
    place.write("precious", "x");
    let json = place.stackline(&["runs", "--json"]).succeeds().json();
    let run = PathBuf::from(json["runs"][0]["path"].as_str().unwrap());
    std::os::unix::fs::symlink(place.path(""), run.join("elsewhere")).unwrap();
    place
        .stackline(&["runs", "remove", run.to_str().unwrap()])
        .succeeds();
    assert!(place.path("precious").exists() && !run.exists());
}

#[test]
fn runs_are_tagged_and_filtered_by_tag_world_and_date() {
    let place = place();
    place
        .stackline(&["run", "--name", "live", "-e", "1 rr 32*5 over unix"])
        .succeeds();
    place
        .stackline(&["runs", "tag", "b", "nightly", "arm"])
        .succeeds();
    place.stackline(&["runs", "tag", "c", "nightly"]).succeeds();
    assert_eq!(listed(&place, &["--tag", "nightly"]), ["c", "b"]);
    assert_eq!(listed(&place, &["--tag", "nightly", "--tag", "arm"]), ["b"]);
    assert_eq!(listed(&place, &["--in", "live"]), ["live"]);
    assert_eq!(
        listed(&place, &["--since", "1h", "--in", "simulated"]),
        ["c", "b", "a"]
    );
    assert_eq!(listed(&place, &["--since", "2999-01-01"]), [""; 0]);
    assert_eq!(listed(&place, &["arm"]), ["b"], "tags are texts too");
    assert_eq!(
        place.stackline(&["runs", "tag", "b"]).succeeds().out,
        "arm\nnightly\n"
    );
    place
        .stackline(&["runs", "tag", "b", "arm", "--remove"])
        .succeeds();
    assert_eq!(
        place.stackline(&["runs", "tag", "b"]).succeeds().out,
        "nightly\n"
    );
    place
        .stackline(&["runs", "tag", "b", "arm", "--remove"])
        .fails(2, &["has no tag arm"])
        .hints("nightly");
    place
        .stackline(&["runs", "tag", "b", "two words"])
        .fails(2, &["cannot be a tag"]);
    let table = place.stackline(&["runs"]).succeeds().out.clone();
    assert!(
        table.contains("[nightly] ") && table.contains(" simulated "),
        "{table}"
    );
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    let large = ["runs", "prune", "--larger", "1", "--dry-run"];
    let dry = place.stackline(&large).succeeds().out.clone();
    assert_eq!(
        dry.lines().map(|name| &name[16..]).collect::<Vec<_>>(),
        ["live", "a"]
    );
    place
        .stackline(&["runs", "prune", "--older", "1us", "--tag", "nightly"])
        .succeeds();
    assert_eq!(listed(&place, &[]), ["live", "a"]);
}

#[test]
fn a_run_is_named_by_the_beginning_of_one_name() {
    let place = Place::new();
    for name in ["baseline", "basement"] {
        place
            .stackline(&["run", "--name", name, "-e", "1 rr 32*5 over unix"])
            .succeeds();
    }
    let run =
        |name: &str| place.stackline(&["show", "--json", name]).succeeds().json()["run"].clone();
    assert_eq!(run("basel"), run("baseline"));
    place
        .stackline(&["show", "base"])
        .fails(2, &["2 runs begin with base"])
        .hints("-baseline or ");
    place
        .stackline(&["show", "bas"])
        .fails(2, &["no run at bas"]);
}

#[test]
fn bad_runs_are_listed_with_what_is_wrong_and_removed() {
    let place = place();
    let half = place.runs()[0].clone();
    std::fs::remove_file(half.join("status.json")).unwrap();
    let done = place.stackline(&["runs"]);
    let table = &done.succeeds().out;
    assert!(table.contains("damaged"), "{table}");
    assert!(done.err.contains("status.json is missing"), "{}", done.err);
    assert!(done.err.contains("3 runs under"), "{}", done.err);
    let json = place.stackline(&["runs", "--json"]).succeeds().json();
    assert_eq!(
        (&json["count"], &json["runs"][2]["state"]),
        (&3.into(), &"damaged".into())
    );
    let name = half.file_name().unwrap().to_str().unwrap();
    place.stackline(&["runs", "remove", name]).succeeds();
    assert_eq!(listed(&place, &[]), ["c", "b"]);
}

#[test]
fn an_interrupted_or_failed_run_says_so_in_the_list() {
    let place = Place::new();
    let text = "1 rr 32*5 over unix; 1 bulk_get 1000*10 < file nothing";
    place.stackline(&["run", "--name", "f", "-e", text]);
    let table = place.stackline(&["runs"]).succeeds().out.clone();
    assert!(table.contains(" failed "), "{table}");
    let json = place.stackline(&["runs", "--json"]).succeeds().json();
    assert!(json["runs"][0]["reason"].is_string(), "{json}");
}
