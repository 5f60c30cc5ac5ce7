//! `expect` in a specification: what `run` and `show` say of it, its exit codes, its reports.

use crate::support::{Finished, Place};

/// A link over which calls take 10 ms, always.
const LINK: &str = "network n { host a, b; link a - b 100 Mbit/s 5 ms; }\n";

/// What was printed, without line breaks of the table.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The JSON that a command printed, whatever its exit code is.
fn json_of(done: &Finished) -> serde_json::Value {
    serde_json::from_str(&done.out).unwrap()
}

fn calls(expected: &str) -> String {
    format!("{LINK}3 from a to b rr 32*200 over tcp across n in simulated expect {expected};\n")
}

#[test]
fn a_run_ends_by_what_its_specification_expects() {
    let place = Place::new();
    let run = |expected: &str| place.run(&calls(expected));
    let met = run("p99 < 20 ms, mean within 9 ms .. 11 ms, rate > 50/s");
    met.succeeds();
    assert!(met.out.contains("expectations: 3 met"), "{}", met.out);
    assert!(met.out.contains("met        p99 < 20 ms"), "{}", met.out);
    let missed = run("p99 < 5 ms, p99.99 < 20 ms, mean < 1 s");
    assert_eq!(missed.status.code(), Some(4), "{}", missed.out);
    for words in [
        "expectations: 1 met, 1 missed, 1 undecided",
        "MISSED p99 < 5 ms",
        "10000 values are needed, but only 600 were measured",
        "deterministic: all runs are equal",
    ] {
        let out = unbroken(&missed.out);
        assert!(out.contains(words), "no `{words}` in {}", missed.out);
    }
    // Kept with the run, so that it is judged again.
    let shown = place.stackline(&["show"]);
    assert_eq!(shown.status.code(), Some(4));
    let below = |text: &str| text.split("expectations:").nth(1).map(str::to_owned);
    assert_eq!(below(&shown.out), below(&missed.out));
    let open = run("p99.99 < 20 ms");
    assert_eq!(open.status.code(), Some(5), "{}", open.out);
}

#[test]
fn expectations_stand_in_json_and_leave_csv_alone() {
    let place = Place::new();
    place.write("bench.stackline", calls("p99 < 5 ms"));
    let json = place.stackline(&["run", "--json", "bench.stackline"]);
    assert_eq!(json.status.code(), Some(4));
    let one = &json_of(&json)["expectations"][0];
    assert_eq!(one["expectation"], "p99 < 5 ms");
    assert_eq!(
        (&one["verdict"], one["line"].as_u64()),
        (&"missed".into(), Some(2))
    );
    assert!(
        one["value"]
            .as_f64()
            .is_some_and(|value| (0.01..0.011).contains(&value))
    );
    let csv = place.stackline(&["show", "--csv"]);
    assert_eq!(csv.status.code(), Some(4));
    assert!(
        !csv.out.contains("MISSED") && csv.err.contains("MISSED"),
        "{}",
        csv.err
    );
    // Without expectations nothing is said of them, and programs find an empty list.
    let none = place.stackline(&[
        "run",
        "--json",
        "-e",
        &format!("{LINK}1 from a to b rr 32*10 across n"),
    ]);
    assert_eq!(
        none.succeeds().json()["expectations"],
        serde_json::json!([])
    );
}

#[test]
fn findings_decide_where_events_were_kept() {
    let place = Place::new();
    let text = format!(
        "{LINK}2 from a to b rr 32*50 over tcp across n in simulated expect finding serial_round_trips, finding not queue_drop;"
    );
    let untraced = place.stackline(&["run", "-e", &text]);
    let out = unbroken(&untraced.out);
    for words in ["undecided finding not queue_drop", "`run --trace`"] {
        assert!(out.contains(words), "no `{words}` in {out}");
    }
    assert_eq!(untraced.status.code(), Some(5));
    let traced = place.stackline(&["run", "--trace", "-e", &text]);
    assert!(
        traced.out.contains("met        finding not queue_drop"),
        "{}",
        traced.out
    );
}

#[test]
fn parts_have_expectations_of_their_own() {
    let place = Place::new();
    let text = format!(
        "{LINK}2 background across n in simulated expect mean < 1 s: from a to b rr 32*50 | from a to b bulk_put 1000*50 expect throughput > 1 Gbit/s;"
    );
    let run = place.run(&text);
    assert_eq!(run.status.code(), Some(4), "{}", run.out);
    assert!(run.out.contains("met        mean < 1 s"), "{}", run.out);
    assert!(
        run.out.contains("MISSED     throughput > 1 Gbit/s"),
        "{}",
        run.out
    );
    let total = format!(
        "{LINK}2 total across n in simulated expect throughput > 1 kbit/s: from a to b bulk_put 1000*50 | from b to a bulk_put 1000*50;"
    );
    assert!(place.run(&total).succeeds().out.contains("1 met"));
}

#[test]
fn reports_for_continuous_integration_name_what_failed() {
    let place = Place::new();
    place.write("bench.stackline", calls("p99 < 5 ms, mean < 1 s"));
    let flags = ["--junit", "run.xml", "--markdown", "run.md", "--github"];
    let run = place.stackline(&[&["run", "bench.stackline"], &flags[..]].concat());
    assert_eq!(run.status.code(), Some(4));
    let place_of = "::error file=bench.stackline,line=2,title=p99 < 5 ms::";
    assert!(run.err.contains(place_of), "{}", run.err);
    let xml = std::fs::read_to_string(place.path("run.xml")).unwrap();
    assert!(
        xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("name=\"p99 &lt; 5 ms\""),
        "{xml}"
    );
    let table = std::fs::read_to_string(place.path("run.md")).unwrap();
    assert!(table.contains("1 passed, 1 failed"), "{table}");
    let nowhere = place.stackline(&["run", "bench.stackline", "--junit", "no/such/run.xml"]);
    assert_eq!(nowhere.status.code(), Some(3), "{}", nowhere.err);
}

#[test]
fn what_cannot_be_expected_is_refused_before_anything_runs() {
    let place = Place::new();
    let check = |expected: &str| place.stackline(&["check", "-e", &calls(expected)]);
    check("p99 < 20 Mbit/s")
        .mistakes(&["`p99` is a time, not a rate of data"])
        .hints("`20 ms`");
    check("throughput > 1 Mbit/s")
        .mistakes(&["moves no data units"])
        .hints("`rate`");
    check("loss < 1%").mistakes(&["`tcp` delivers everything"]);
    check("cpu_per_call < 1 us").mistakes(&["no processor time in the simulated world"]);
    check("finding queue_drops")
        .mistakes(&["there is no kind of finding"])
        .hints("`queue_drop`");
    assert_eq!(place.runs().len(), 0);
}
