//! The commands that only read: `check`, `plan`, `fmt`, `stacks`, `compare`.

use crate::support::{Place, number};
use serde_json::Value;

const TEXT: &str = "10   Bulk-Get  BYTES 64 KiB*2000 ;\n5 background : rr 32*1000 | <N> bulk_get 1024*3000; N = 0...2;";

#[test]
fn check_counts_what_is_right() {
    let place = Place::new();
    let output = place.stackline(&["check", "-e", TEXT]);
    assert_eq!(
        output.succeeds().out,
        "expression: ok, 4 measurements, 25 runs\n"
    );
    let json = place.stackline(&["check", "--json", "-e", TEXT]).json();
    assert_eq!(
        json,
        serde_json::json!({"ok": true, "measurements": 4, "runs": 25, "most_s": null, "diagnostics": []})
    );
    let limited = "10 warmup 2 timelimit 5 rr 32; 3 timelimit 500 ms bulk_get 1 KiB";
    let output = place.stackline(&["check", "-e", limited]);
    assert_eq!(
        output.succeeds().out,
        "expression: ok, 2 measurements, 13 runs, at most 61.5 s given the time limits\n"
    );
    assert!(
        place
            .stackline(&["plan", "-e", limited])
            .succeeds()
            .out
            .contains("at most 61.5 s given the time limits")
    );
}

#[test]
fn the_usual_form_is_its_own_usual_form() {
    let place = Place::new();
    place.write("a", TEXT);
    let once = place.stackline(&["fmt", "a"]).succeeds().out.clone();
    assert_ne!(once, TEXT);
    place.write("b", &once);
    assert_eq!(place.stackline(&["fmt", "b"]).succeeds().out, once);
    place.stackline(&["fmt", "--check", "b"]).succeeds();
    assert_eq!(
        place
            .stackline(&["fmt", "-e", "10  rr 32*10"])
            .succeeds()
            .out,
        "10 rr 32*10;\n"
    );
    assert_eq!(
        place
            .stackline(&["fmt", "--write", "-e", "1 rr 1*1"])
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        place.stackline(&["fmt", "--check", "a"]).status.code(),
        Some(1)
    );
    place.stackline(&["fmt", "--write", "a"]).succeeds();
    assert_eq!(std::fs::read_to_string(place.path("a")).unwrap(), once);
    let plan = |name: &str| place.stackline(&["plan", "--json", name]).json();
    assert_eq!(
        plan("a")["measurements"].as_array().unwrap().len(),
        plan("b")["measurements"].as_array().unwrap().len()
    );
}

#[test]
fn a_plan_shows_what_would_be_done_and_does_nothing() {
    let place = Place::new();
    let output = place.stackline(&[
        "plan",
        "-e",
        "10 warmup 2 rr 32, 64*10 over tcp(nodelay); 3 bulk_put 1 KiB*5 over udp",
    ]);
    for words in [
        "10 runs counted",
        "2 warm-up runs",
        "nodelay",
        "RPCCall 32 B -> 64 B",
        "AwaitConnectIndication",
        "udp",
        "repeat 5 times",
    ] {
        assert!(
            output.succeeds().out.contains(words),
            "no `{words}` in {}",
            output.out
        );
    }
    assert!(place.runs().is_empty());
    let json = place
        .stackline(&[
            "plan",
            "--json",
            "--seed",
            "7",
            "-e",
            "10 rr 32*10 over tcp, unix",
        ])
        .json();
    assert_eq!(json["seed"], 7);
    assert_eq!(json["measurements"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stack_prints_its_options_and_its_mapping() {
    let place = Place::new();
    let output = place.stackline(&["stacks", "TCP"]);
    for words in [
        "nodelay",
        "congestion = NAME",
        "StartBulkGet",
        "RPCCall",
        "sendfile",
        "shutdown(SHUT_WR)",
    ] {
        assert!(
            output.succeeds().out.contains(words),
            "no `{words}` in {}",
            output.out
        );
    }
    let all = place.stackline(&["stacks"]);
    for name in ["tcp", "mptcp", "unix", "udp"] {
        assert!(
            all.succeeds()
                .out
                .lines()
                .any(|line| line.starts_with(name)),
            "{}",
            all.out
        );
    }
    place.stackline(&["stacks", "--json"]).json();
    let simulated = place.stackline(&["stacks", "quic", "--in", "simulated"]);
    assert!(
        simulated.succeeds().out.contains("CONNECTION_CLOSE"),
        "{}",
        simulated.out
    );
    place
        .stackline(&["stacks", "unix", "--in", "simulated"])
        .fails(2, &["unknown stack unix in the simulated"]);
    place
        .stackline(&["stacks", "tpc"])
        .fails(2, &["unknown stack tpc"])
        .hints("tcp");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new();
    let line = format!(
        "'{}' stacks tcp | head -n 1; exit ${{PIPESTATUS[0]}}",
        crate::support::program()
    );
    let output = place.finish(std::process::Command::new("bash").args(["-c", &line]));
    assert_eq!(output.succeeds().out.lines().count(), 1);
}

#[test]
fn who_asks_for_json_gets_mistakes_as_json_too() {
    let place = Place::new();
    let output = place.stackline(&["run", "--json", "-e", "10 rr 32*10;\n10 rr 32*10 over tpc"]);
    let json: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(json["ok"], false);
    let mistake = &json["diagnostics"][0];
    assert_eq!([&mistake["line"], &mistake["column"]], [2, 18], "{mistake}");
    assert_eq!(
        [&mistake["text"], &mistake["hint"]],
        ["tpc", "did you mean `tcp`?"],
        "{mistake}"
    );
    let network = "network n { host a, b; link a - b 10mbit 20 ms; }";
    let json: Value = serde_json::from_str(
        &place
            .stackline(&["net", "show", "--json", "-e", network])
            .out,
    )
    .unwrap();
    assert_eq!(
        json["diagnostics"][0]["hint"], "write `10 Mbit/s`",
        "{json}"
    );
    let output = place.stackline(&["compare", "--json", "a", "b"]);
    let json: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(json["error"], "no run at a");
}

#[test]
fn a_specification_in_place_of_a_file_is_recognised() {
    Place::new()
        .stackline(&["run", "10 rr 32*100"])
        .fails(2, &["cannot be read"])
        .hints("-e '10 rr 32*100'");
    let cores = Place::new().stackline(&["run", "--cpu", "0-1", "-e", "1 rr 1*1"]);
    assert!(cores.err.contains("as in `--cpu 0,1`"), "{}", cores.err);
    assert!(
        Place::new()
            .stackline(&["query", "--help"])
            .succeeds()
            .out
            .contains("FROM results")
    );
}

#[test]
fn two_kept_runs_are_compared() {
    let place = Place::new();
    for name in ["before", "after"] {
        place
            .stackline(&[
                "run",
                "--name",
                name,
                "-e",
                "5 rr 32*500; 5 bulk_get 1024*500",
            ])
            .succeeds();
    }
    let runs = place.runs();
    let [before, after] =
        [&runs[0], &runs[1]].map(|run| run.file_name().unwrap().to_str().unwrap());
    let output = place.stackline(&["compare", before, after]);
    assert!(
        output.succeeds().out.contains("rr 32*500"),
        "{}",
        output.out
    );
    let json = place
        .stackline(&["compare", "--json", before, after])
        .json();
    assert!(json.to_string().contains("ratio"), "{json}");
    place.stackline(&["compare", "before", "last"]).succeeds();
    place
        .stackline(&["compare", "last"])
        .fails(2, &["nothing to compare"])
        .hints("over tcp, unix");
    let full = runs
        .iter()
        .map(|run| run.to_str().unwrap())
        .collect::<Vec<_>>();
    place.stackline(&["compare", full[0], full[1]]).succeeds();
    place
        .stackline(&["compare", before, "bfore"])
        .fails(2, &["no run at bfore"])
        .hints("-before?");
    assert!(
        place
            .stackline(&["compare", before, before])
            .succeeds()
            .err
            .contains("both arguments name the same run")
    );
    place
        .stackline(&["compare", before, "nothing"])
        .fails(2, &["no run at nothing"])
        .hints("the newest run");
}

#[test]
fn a_comparison_fails_where_it_is_asked_to() {
    let place = Place::new();
    let network = |rate: &str| format!("network n {{ host a, b; link a - b {rate} 1 ms; }} ");
    let run = |name: &str, rate: &str, over: &str| {
        let text = format!(
            "{}2 from a to b bulk_put 1000*100 over {over} across n in simulated",
            network(rate)
        );
        place
            .stackline(&["run", "--name", name, "-e", &text])
            .succeeds();
    };
    run("fast", "10 Mbit/s", "udp");
    run("slow", "5 Mbit/s", "udp");
    let code = |arguments: &[&str]| {
        place
            .stackline(&[&["compare"], arguments].concat())
            .status
            .code()
    };
    assert_eq!(code(&["fast", "slow", "--fail-above", "5%"]), Some(4));
    assert_eq!(code(&["fast", "slow", "--fail-above", "60%"]), Some(0));
    assert_eq!(code(&["slow", "fast", "--fail-above", "5"]), Some(0));
    let gate = |a: &str, b: &str| {
        place
            .stackline(&["compare", a, b, "--fail-above", "5%"])
            .err
    };
    let failed = gate("fast", "slow");
    assert!(
        failed.contains("failed: throughput of `from a to b bulk_put 1000*100 over udp across n in simulated` is worse by 48.8 %"),
        "{failed}"
    );
    assert!(!failed.contains("the texts differ"));
    let passed = place.stackline(&["compare", "slow", "fast", "--fail-above", "5", "--json"]);
    assert!(
        passed
            .err
            .contains("passed: nothing is shown to be worse by more than 5.0 %"),
        "{}",
        passed.err
    );
    assert_eq!(passed.succeeds().json()["gate"]["verdict"], "passed");
    run("otherwise", "10 Mbit/s", "tcp");
    let text = gate("fast", "otherwise");
    assert!(text.contains("note: the texts differ: `"), "{text}");
    run("both", "10 Mbit/s", "udp, tcp, quic");
    let stacks = place.stackline(&["compare", "both"]);
    let out = &stacks.succeeds().out;
    assert_eq!(
        ["over tcp", "over quic", "A: ", "B: "].map(|word| out.matches(word).count()),
        [1, 1, 2, 2],
        "{out}"
    );
}

#[test]
fn a_run_keeps_its_specification_and_environment() {
    let place = Place::new();
    let text = "# kept as it is\n2 rr 32*10;\n";
    place.write("mine.stackline", text);
    let json = place.stackline(&["run", "--json", "mine.stackline"]).json();
    let kept = place.kept();
    assert_eq!(json["run"], kept.0.to_str().unwrap());
    assert!(kept.0.to_str().unwrap().ends_with("-mine"));
    assert_eq!(
        std::fs::read_to_string(kept.0.join("specification.stackline")).unwrap(),
        text
    );
    assert_eq!(
        (&kept.status()["complete"], kept.journal()),
        (&Value::Bool(true), 2)
    );
    let environment: Value =
        serde_json::from_str(&std::fs::read_to_string(kept.0.join("environment.json")).unwrap())
            .unwrap();
    let host = &environment["worlds"]["live"]["hosts"]["(local initiator)"];
    assert!(number(host, "/agent/pid") > 1.0);
    for part in ["before", "after", "during"] {
        assert!(host["dynamic"][part].is_object(), "{host}");
    }
}

#[test]
fn a_comparison_that_cannot_tell_is_no_pass() {
    let place = Place::new();
    let net = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }";
    for (name, text) in [
        ("one", "1 from a to b rr 32*10 across n"),
        ("two", "2 from a to b rr 32*10 across n"),
        ("other", "2 from a to b bulk_put 1000*10 across n"),
        (
            "more",
            "2 from a to b rr 32*10 across n; 2 from a to b bulk_put 1000*10 across n",
        ),
    ] {
        place
            .stackline(&["run", "--name", name, "-e", &format!("{net} {text}")])
            .succeeds();
    }
    let judged = |a: &str, b: &str| place.stackline(&["compare", a, b, "--fail-above", "5%"]);
    judged("two", "two").succeeds();
    judged("two", "other").fails(2, &["nothing to compare"]);
    for (a, b, why) in [
        ("one", "one", "each side needs two"),
        ("one", "two", "each side needs two"),
        ("two", "more", "no measurement in common"),
    ] {
        let output = judged(a, b);
        assert_eq!(output.status.code(), Some(5), "{a} {b}: {}", output.err);
        assert!(
            output.err.contains("cannot decide whether") && output.err.contains(why),
            "{}",
            output.err
        );
    }
}
