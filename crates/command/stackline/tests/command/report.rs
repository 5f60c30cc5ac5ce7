//! The page and the pictures of a kept run, by their commands. What the page does in a browser is tested where it is made.

use crate::support::Place;
use std::fs;

const TRACED: &str = "network n { host a, b; switch x; link a - x 10 Mbit/s 4 ms; link x - b 10 Mbit/s 6 ms; } \
     2 from a to b rr 100*20 over tcp across n in simulated;";

fn traced(place: &Place) -> String {
    place
        .stackline(&["run", "--trace", "-e", TRACED])
        .succeeds();
    place
        .kept()
        .0
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_traced_run_becomes_one_page() {
    let place = Place::new();
    let run = traced(&place);
    let output = place.stackline(&["report", &run]);
    output.succeeds();
    let path = place.kept().0.join("report.html");
    assert!(output.out.trim().ends_with("report.html"), "{}", output.out);
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("Content-Security-Policy"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    place
        .stackline(&["report", &run, "-o", "elsewhere.html"])
        .succeeds();
    assert_eq!(
        fs::read_to_string(place.path("elsewhere.html"))
            .unwrap()
            .len(),
        page.len()
    );
}

#[test]
fn pictures_show_what_is_asked_for() {
    let place = Place::new();
    let run = traced(&place);
    let drawn =
        |more: &[&str]| place.stackline(&[&["report", &run, "--svg", "all.svg"], more].concat());
    drawn(&["--png", "all.png"]).succeeds();
    let lines = |name: &str| {
        fs::read_to_string(place.path(name))
            .unwrap()
            .matches("stroke-width=\"1.2\"")
            .count()
    };
    let all = lines("all.svg");
    assert!(all >= 40, "{all}");
    assert!(
        fs::read(place.path("all.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    drawn(&["--from", "0s", "--to", "30ms"]).succeeds();
    assert!(lines("all.svg") < all / 4);
    drawn(&["--units", "none"])
        .fails(2, &["no requested lifeline"])
        .hints("stackline lifelines");
    for (more, said) in [
        (["--from", "1s"].as_slice(), "--svg"),
        (&["--svg", "x.svg", "--to", "soon"], "200ms"),
    ] {
        let output = place.stackline(&[&["report", &run], more].concat());
        assert!(
            output.status.code() == Some(2) && output.err.contains(said),
            "{}",
            output.err
        );
    }
}

#[test]
fn a_field_of_monitors_is_drawn_over_time() {
    let place = Place::new();
    let run = traced(&place);
    let drawn =
        |field: &str| place.stackline(&["report", &run, "--svg", "cwnd.svg", "--monitor", field]);
    drawn("cwnd_bytes").succeeds();
    let svg = fs::read_to_string(place.path("cwnd.svg")).unwrap();
    assert!(
        svg.contains("cwnd_bytes, kB")
            && svg.contains("a stream 0")
            && svg.contains("stroke-width=\"2\""),
        "{svg}"
    );
    drawn("windows")
        .fails(2, &["no monitor in this run recorded windows"])
        .hints("cwnd_bytes");
    let output = place.stackline(&["report", &run, "--monitor", "cwnd_bytes"]);
    assert!(
        output.status.code() == Some(2) && output.err.contains("--svg <FILE>"),
        "{}",
        output.err
    );
}

#[test]
fn what_a_crafted_run_directory_holds_is_no_markup() {
    let place = Place::new();
    traced(&place);
    let run = place.kept().0;
    let hostile = "</script><img src=x onerror=alert(1)>";
    // Whoever crafts a run has no need of checksums.
    let status = fs::read_to_string(run.join("status.json")).unwrap();
    let mut status: serde_json::Value = serde_json::from_str(&status).unwrap();
    for sums in ["sums", "events"] {
        status.as_object_mut().unwrap().remove(sums).unwrap();
    }
    fs::write(run.join("status.json"), status.to_string()).unwrap();
    fs::write(run.join("specification.stackline"), hostile).unwrap();
    fs::write(
        run.join("environment.json"),
        serde_json::json!({hostile: hostile}).to_string(),
    )
    .unwrap();
    let mut events = stackline_events::EventTable::default();
    for at_ns in [1, 2, 3] {
        events.push(hostile, hostile, at_ns, &[hostile.into(), hostile.into()]);
    }
    stackline_runs::events::write_table(&run.join("events/c.parquet"), &events).unwrap();
    place
        .stackline(&["report", run.to_str().unwrap()])
        .succeeds();
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(!page.contains("<img") && page.matches("</script").count() == 2);
}

#[test]
fn a_run_without_events_has_a_page_but_no_picture() {
    let place = Place::new();
    place.stackline(&["run", "-e", TRACED]).succeeds();
    let run = place.kept().0;
    let name = run.to_str().unwrap();
    place.stackline(&["report", name]).succeeds();
    assert!(
        fs::read_to_string(run.join("report.html"))
            .unwrap()
            .starts_with("<!doctype html>")
    );
    place
        .stackline(&["report", name, "--svg", "x.svg"])
        .fails(3, &["has no events"])
        .hints("--trace");
}

/// A file of events of a run.
fn first_log(run: &std::path::Path) -> std::path::PathBuf {
    let mut files = fs::read_dir(run.join("events"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "parquet")
        })
        .unwrap()
}

#[test]
fn open_makes_the_newest_runs_page_and_hands_it_to_the_desktop() {
    let place = Place::new();
    place
        .stackline(&["open"])
        .fails(2, &["no runs are kept"])
        .hints("stackline run");
    traced(&place);
    let said = place.path("opened");
    let browser = place.script(
        "bin/xdg-open",
        &format!("#!/bin/sh\nprintf %s \"$1\" > {}\n", said.display()),
    );
    let path = std::env::join_paths([
        browser.parent().unwrap(),
        "/bin".as_ref(),
        "/usr/bin".as_ref(),
    ])
    .unwrap();
    let output = place.finish(place.command(&["open"]).env("PATH", &path));
    output.succeeds();
    let opened = fs::read_to_string(&said).unwrap();
    assert!(
        opened.ends_with("report.html") && output.out.contains(&opened),
        "{opened}"
    );
    let page = place.kept().0.join("report.html");
    let made = fs::read_to_string(&page).unwrap();
    // A page that is there is not made again, unless events came since.
    fs::write(&page, "as it was").unwrap();
    place
        .finish(place.command(&["open"]).env("PATH", &path))
        .succeeds();
    assert_eq!(fs::read_to_string(&page).unwrap(), "as it was");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let log = fs::File::options()
        .append(true)
        .open(first_log(&place.kept().0))
        .unwrap();
    log.set_modified(later).unwrap();
    place
        .finish(place.command(&["open"]).env("PATH", &path))
        .succeeds();
    assert_eq!(fs::read_to_string(&page).unwrap().len(), made.len());
    let output = place.finish(place.command(&["open"]).env("PATH", place.path("nowhere")));
    output.succeeds();
    assert!(
        output.out.contains("report.html") && output.err.contains("cannot open a browser"),
        "{}",
        output.err
    );
}
