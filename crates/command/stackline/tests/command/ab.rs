//! `ab`: pairs of runs of two specifications until it is known which is better.

use crate::support::Place;
use std::fs;

/// Calls over a link of this delay, with a little chance so that runs differ.
fn calls(delay: &str) -> String {
    format!(
        "network n {{ host a, b; link a - b 100 Mbit/s {delay} jitter exponential(20 us); }}\n1 from a to b rr 32*50 over tcp across n in simulated;\n"
    )
}

#[test]
fn a_slower_specification_is_worse_and_an_equal_one_the_same_after_a_few_pairs() {
    let place = Place::new();
    place.write("a.stackline", calls("5 ms"));
    place.write("b.stackline", calls("5.5 ms"));
    let words = ["ab", "a.stackline", "b.stackline", "--junit", "ab.xml"];
    let worse = place.stackline(&words);
    assert_eq!(worse.status.code(), Some(4), "{}", worse.err);
    assert!(worse.out.contains("WORSE"), "{}", worse.out);
    assert!(worse.err.contains("B is worse after "), "{}", worse.err);
    assert!(
        worse.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        worse.out
    );
    let junit = fs::read_to_string(place.path("ab.xml")).unwrap();
    assert!(junit.contains("<failure "), "{junit}");
    // Both runs are kept, with a run for each pair.
    let shown = |name: &str| place.stackline(&["show", "--json", name]).succeeds().json();
    let runs = |name: &str| shown(name)["measurements"][0]["runs"].as_u64().unwrap();
    assert_eq!(runs("a-a"), runs("b-b"));
    assert!((3..20).contains(&runs("a-a")), "{}", runs("a-a"));
    let same = place.stackline(&["ab", "a.stackline", "a.stackline", "--name", "twice"]);
    assert!(
        same.succeeds().err.contains("the same within 5 %"),
        "{}",
        same.err
    );
    let better = place.stackline(&["ab", "b.stackline", "a.stackline", "--json"]);
    let json = better.succeeds().json();
    assert_eq!(json["figures"][0]["verdict"], "better");
    assert!(json["pairs"].as_u64().unwrap() < json["most_pairs"].as_u64().unwrap());
    assert!(json["runs"][1].as_str().unwrap().ends_with("a-b"), "{json}");
}

#[test]
fn too_few_pairs_are_undecided_with_how_many_would_do() {
    let place = Place::new();
    let text = calls("5 ms");
    let few = place.stackline(&["ab", "-e", &text, "-e", &text, "--most", "2"]);
    assert_eq!(few.status.code(), Some(5), "{}", few.err);
    assert!(few.err.contains("cannot say after 2 pairs"), "{}", few.err);
    assert!(few.err.contains("write `--most "), "{}", few.err);
}

#[test]
fn one_specification_is_run_over_two_stacks() {
    let place = Place::new();
    let text = calls("5 ms");
    let other = place.stackline(&["ab", "-e", &text, "--b-over", "tcp(nodelay)"]);
    assert!(
        other.succeeds().out.contains("the texts differ"),
        "{}",
        other.out
    );
    place
        .stackline(&["ab", "-e", &text])
        .fails(2, &["two specifications, but one is given"])
        .hints("--b-over");
    let bulk = text.replace("rr 32*50", "bulk_put 1000*50");
    place
        .stackline(&["ab", "-e", &text, "-e", &bulk])
        .fails(2, &["no measurement in common"]);
    let wrong = place.stackline(&["ab", "-e", &text, "-e", "1 rr 32"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.err);
    assert_eq!(place.runs().len(), 4, "a wrong specification keeps no run");
}
