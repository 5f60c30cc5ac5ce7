//! A run as one file: another machine adds it, makes it again, and gets the same results to the last bit.

use crate::support::{Finished, Place, pair};
use std::fs;
use std::path::{Path, PathBuf};

/// A simulated measurement in which chance has a part.
fn by_chance() -> String {
    format!(
        "{} 3 from a to b bulk_put 1000*200 over tcp across n in simulated",
        pair("loss 1%")
    )
}

/// Makes a run of that name and its archive.
fn archived(place: &Place, name: &str, arguments: &[&str]) -> PathBuf {
    let words = [&["run", "--name", name], arguments].concat();
    place.stackline(&words).succeeds();
    let file = format!("{name}.tar.gz");
    let done = place.stackline(&["archive", name, "-o", &file]);
    assert!(done.succeeds().out.contains("digest"), "{}", done.out);
    place.path(&file)
}

/// `runs` with the archive as argument, in another place.
fn with_archive(place: &Place, word: &str, archive: &Path) -> Finished {
    place.stackline(&["runs", word, archive.to_str().unwrap()])
}

#[test]
fn another_machine_makes_the_run_again_and_gets_the_same() {
    let (here, there) = (Place::new(), Place::new());
    here.write("sizes", "100\n5000\n");
    let text = by_chance().replace("1000*200", "empirical(file \"sizes\")*200");
    let archive = archived(&here, "wan", &["-e", &text, "--seed", "7", "--trace"]);
    assert!(!there.path("sizes").exists());
    let again = with_archive(&there, "again", &archive);
    let words = "are the same to the last bit as those of";
    assert!(again.succeeds().out.contains(words), "{}", again.out);
    assert_eq!(there.runs().len(), 2);
    let compared = there.stackline(&["compare", "last~1", "last"]);
    assert!(
        compared
            .succeeds()
            .out
            .contains("the same to the last bit (digest"),
        "{}",
        compared.out
    );
    // What stands below are times between points of the two traces.
    let measurements = compared.out.split("median unit times").next().unwrap();
    assert!(
        measurements.contains("the same\n") && !measurements.contains("no difference seen"),
        "{}",
        compared.out
    );
    there
        .stackline(&["run", "-e", &by_chance(), "--seed", "8", "--name", "other"])
        .succeeds();
    let first = there.runs().remove(0).display().to_string();
    let other = there
        .stackline(&["compare", "--json", &first, "other"])
        .json();
    assert_eq!(
        (&other["same"], &other["digest"]),
        (&false.into(), &serde_json::Value::Null)
    );
}

#[test]
fn an_archive_has_stable_bytes_and_is_added_once() {
    let (here, there) = (Place::new(), Place::new());
    let archive = archived(&here, "a", &["-e", &by_chance()]);
    here.stackline(&["archive", "last", "-o", "second"])
        .succeeds();
    let bytes = fs::read(&archive).unwrap();
    assert_eq!(bytes, fs::read(here.path("second")).unwrap());
    let added = with_archive(&there, "add", &archive);
    assert!(added.succeeds().out.starts_with("added "), "{}", added.out);
    let twice = with_archive(&there, "add", &archive);
    assert!(
        twice
            .succeeds()
            .out
            .contains("is kept already, the same to the last bit"),
        "{}",
        twice.out
    );
    there.stackline(&["archive"]).succeeds();
    let name = there.runs()[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let path = there.path(&format!("{name}.stackline.tar.gz"));
    assert_eq!(
        fs::read(path).unwrap(),
        bytes,
        "what was added has the same archive"
    );
    let listed = there.stackline(&["runs", "--json"]).json();
    assert_eq!(listed["runs"][0]["from_archive"], true);
    let show = |place: &Place| {
        place
            .stackline(&["show", "--csv", "last"])
            .succeeds()
            .out
            .clone()
    };
    assert_eq!(show(&here), show(&there));
}

#[test]
fn what_runs_for_real_is_made_again_only_by_trust() {
    let (here, there) = (Place::new(), Place::new());
    let archive = archived(&here, "live", &["-e", "2 rr 32*10 over unix"]);
    with_archive(&there, "add", &archive).succeeds();
    there
        .stackline(&["runs", "again", "live"])
        .fails(2, &["came in an archive", "may start programs"])
        .hints("--trust");
    let trusted = there.stackline(&["runs", "again", "last", "--trust"]);
    assert!(
        trusted.succeeds().err.contains("only simulated runs"),
        "{}",
        trusted.err
    );
    here.stackline(&["runs", "again", "last"]).succeeds();
}

#[test]
fn a_changed_specification_is_noticed() {
    let place = Place::new();
    place
        .stackline(&["run", "--name", "x", "-e", &by_chance()])
        .succeeds();
    let run = place.runs()[0].clone();
    place.stackline(&["runs", "again", "x"]).succeeds();
    // A run of an earlier version has no inputs and no checksums.
    fs::remove_file(run.join("inputs.json")).unwrap();
    let status = fs::read_to_string(run.join("status.json")).unwrap();
    let mut status: serde_json::Value = serde_json::from_str(&status).unwrap();
    status["sums"] = serde_json::json!({});
    fs::write(run.join("status.json"), status.to_string()).unwrap();
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let again = place.stackline(&["runs", "again", &name]);
    assert!(
        again.succeeds().out.contains("the same to the last bit"),
        "{}",
        again.out
    );
    fs::write(
        run.join("specification.stackline"),
        by_chance().replace("1%", "2%"),
    )
    .unwrap();
    let changed = place.stackline(&["runs", "again", &name]);
    changed.fails(1, &["the simulated results differ", "so does the plan"]);
}

#[test]
fn what_is_not_an_archive_is_refused() {
    let place = Place::new();
    place.write("a.tar.gz", "no archive");
    place
        .stackline(&["runs", "add", "a.tar.gz"])
        .fails(2, &["not a sound archive"])
        .hints("stackline archive");
    place
        .stackline(&["runs", "add", "nothing"])
        .fails(2, &["cannot read nothing"]);
    place
        .stackline(&["show", "./a.tar.gz"])
        .fails(2, &["is a file, not a run"])
        .hints("runs add");
    let archive = archived(&place, "a", &["-e", "1 rr 32*5 over unix"]);
    place
        .stackline(&["run", archive.to_str().unwrap()])
        .fails(2, &["a specification is a text"])
        .hints("runs again FILE");
}
