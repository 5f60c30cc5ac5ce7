//! Sweeps as one design: in which order its runs are made, what fails in it, and how one that was stopped goes on.

use crate::bad_days::with_small_directory;
use crate::support::{Place, has_program, pair, skip};
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

/// Six rows of so many runs, with warm-ups.
fn sweep(runs: u32) -> String {
    format!(
        "{} {runs} warmup 1 from a to b rr N*3 over tcp, udp across n in simulated; N = 32, 1000, 20000",
        pair("")
    )
}

/// The newest run's results, as bytes.
fn results(place: &Place) -> Vec<u8> {
    fs::read(newest(place).join("results.parquet")).unwrap()
}

fn newest(place: &Place) -> PathBuf {
    place.runs().pop().unwrap()
}

/// The results of that run made without an interruption.
fn at_once(flags: &[&str], text: &str) -> Vec<u8> {
    let place = Place::new();
    let words = [&["run"], flags, &["-e", text]].concat();
    place.stackline(&words).succeeds();
    results(&place)
}

#[test]
fn a_killed_sweep_goes_on_and_its_results_are_those_of_one_that_was_not() {
    let text = sweep(300);
    for order in ["declared", "random"] {
        let flags = ["--order", order];
        let place = Place::new();
        let words = [&["run"], &flags[..], &["-e", &text]].concat();
        let started = place.start(&mut place.command(&words));
        started.has_kept(60).process().signal(Signal::SIGKILL);
        started.finish();
        let journal = newest(&place).join("runs.jsonl");
        let mut journal = fs::File::options().append(true).open(journal).unwrap();
        journal.write_all(b"{\"measurement\": 1, \"r").unwrap();
        let resumed = place.stackline(&["run", "--resume", "last"]);
        resumed.succeeds();
        assert!(
            resumed.out.contains("resumed: ") && resumed.out.contains("(it was killed)"),
            "{}",
            resumed.out
        );
        assert!(!resumed.out.contains("INCOMPLETE"), "{}", resumed.out);
        assert_eq!(place.runs().len(), 1);
        assert!(results(&place) == at_once(&flags, &text), "{order}");
        let over = place.stackline(&["run", "--resume", "last", "--json"]);
        assert!(over.err.contains("nothing is left"), "{}", over.err);
        assert_eq!(over.json()["complete"], true);
    }
}

#[test]
fn an_interrupted_sweep_says_how_it_goes_on() {
    let place = Place::new();
    let started = place.running(&sweep(300));
    started.has_kept(20).process().signal(Signal::SIGINT);
    let finished = started.finish();
    finished.fails(130, &["interrupted"]);
    let name = newest(&place);
    let name = name.file_name().unwrap().to_str().unwrap();
    let words: Vec<&str> = finished.out.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains(&format!("`stackline run --resume {name}`")),
        "{}",
        finished.out
    );
    place.stackline(&["run", "--resume", name]).succeeds();
    assert!(results(&place) == at_once(&[], &sweep(300)));
    let again = place.stackline(&["runs", "again", name]);
    again.succeeds();
    let said: Vec<&str> = again.out.split_whitespace().collect();
    assert!(
        said.join(" ").contains("the same to the last bit"),
        "{}",
        again.out
    );
}

#[test]
fn runs_of_many_seeds_go_on_with_the_first_that_is_missing() {
    let flags = ["--seeds", "5..400"];
    let place = Place::new();
    let text = sweep(1);
    let words = [&["run"], &flags[..], &["-e", &text]].concat();
    let started = place.start(&mut place.command(&words));
    started.has_kept(50).process().signal(Signal::SIGKILL);
    started.finish();
    place.stackline(&["run", "--resume", "last"]).succeeds();
    assert!(results(&place) == at_once(&flags, &text));
}

#[test]
fn what_cannot_go_on_says_why() {
    let place = Place::new();
    let text = sweep(300);
    let words = ["run", "--trace", "-e", &text];
    let started = place.start(&mut place.command(&words));
    started.has_kept(5).process().signal(Signal::SIGKILL);
    started.finish();
    place
        .stackline(&["run", "--resume", "last"])
        .fails(2, &["--trace", "do not fit together"])
        .hints("stackline runs again");
    place
        .stackline(&["run", "--resume", "nothing"])
        .fails(2, &["no run at nothing"]);
    for more in [
        &["-e", "1 rr"][..],
        &["--seed", "2"],
        &["--order", "random"],
    ] {
        let words = [&["run", "--resume", "last"], more].concat();
        let refused = place.stackline(&words);
        assert_eq!(refused.status.code(), Some(2), "{}", refused.err);
        assert!(refused.err.contains("--resume"), "{}", refused.err);
    }
}

#[test]
fn a_sweep_whose_disk_was_full_goes_on_when_there_is_room() {
    if !has_program("unshare", "util-linux") {
        return skip("no unshare");
    }
    let place = Place::new();
    place.write("spec", sweep(30));
    let script = "export STACKLINE_RUNS=full/runs; \"$1\" run spec; echo \"first: $?\"; \
        mount -o remount,size=64m full && \"$1\" run --resume last && exec \"$1\" runs again last";
    let shown = with_small_directory(&place, "96k", script);
    assert_eq!(shown.status.code(), Some(0), "{}{}", shown.out, shown.err);
    assert!(shown.err.contains("No space left"), "{}", shown.err);
    let said: Vec<&str> = shown.out.split_whitespace().collect();
    let said = said.join(" ");
    for word in ["first: 3", "resumed: ", "the same to the last bit"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_value_that_fails_ends_no_other_and_is_named() {
    // Of the packets of the way back each second one is lost, or each thousandth; who waits for it waits in vain.
    let text = "
        network lossy { host a, b; link a -> b 10 Mbit/s 1 ms; link b -> a 10 Mbit/s 1 ms loss every <L>; }
        procedure stuck {
          initiator { ConnectRequest; StartMeasurement; AwaitDataIndication(unit); StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; Delay(constant(1 ms)); DataRequest(unit); AwaitDisconnectIndication; }
        }
        2 from a to b stuck 100 over udp across lossy in simulated; L = 2, 1000";
    let place = Place::new();
    let shown = place.stackline(&["run", "--csv", "-e", text]);
    assert_eq!(shown.status.code(), Some(1), "{}{}", shown.out, shown.err);
    let rows: Vec<&str> = shown.out.lines().skip(1).collect();
    assert!(
        matches!(rows[..], [row] if row.contains("1000")),
        "{rows:?}"
    );
    let shown = place.stackline(&["run", "-e", text]);
    assert_eq!(shown.status.code(), Some(1), "{}{}", shown.out, shown.err);
    let said: Vec<&str> = shown.out.split_whitespace().collect();
    let said = said.join(" ");
    for words in ["failed: L = 2: ", "deadlocked", "INCOMPLETE", "--resume"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // What failed is tried again; what was done is not.
    let again = place.stackline(&["run", "--resume", "last"]);
    assert_eq!(again.status.code(), Some(1), "{}{}", again.out, again.err);
    assert!(
        again.out.contains("resumed: 2 runs were done"),
        "{}",
        again.out
    );
}

#[test]
fn the_order_is_kept_and_the_rows_stay_in_that_of_the_text() {
    let order_of = |place: &Place| -> serde_json::Value {
        let inputs = fs::read(newest(place).join("inputs.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&inputs).unwrap()["order"].clone()
    };
    let place = Place::new();
    let text = "4 rr 32*N over tcp, unix; N = 1, 2, 3";
    let shown = place.stackline(&["run", "--notes", "all", "-e", text]);
    shown.succeeds();
    let said: Vec<&str> = shown.out.split_whitespace().collect();
    assert!(
        said.join(" ").contains("in random order within each sweep"),
        "{}",
        shown.out
    );
    assert_eq!(order_of(&place), "sweeps");
    let journal = fs::read_to_string(newest(&place).join("runs.jsonl")).unwrap();
    let made = journal.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["measurement"].as_u64().unwrap_or_default()
    });
    let made: Vec<u64> = made.collect();
    assert!(made.len() == 24 && !made.is_sorted(), "{made:?}");
    let shown = place.stackline(&["show", "--json"]).json();
    let rows = shown["measurements"].as_array().unwrap().iter();
    let rows: Vec<String> = rows
        .map(|row| row["text"].as_str().unwrap().to_owned())
        .collect();
    let sizes = rows
        .iter()
        .map(|row| row.split("32*").nth(1).unwrap().get(..1).unwrap());
    assert_eq!(sizes.collect::<String>(), "112233", "{rows:?}");
    let place = Place::new();
    place
        .stackline(&["run", "--order", "declared", "-e", text])
        .succeeds();
    assert!(order_of(&place).is_null());
    let place = Place::new();
    place.stackline(&["run", "-e", &sweep(1)]).succeeds();
    assert!(order_of(&place).is_null(), "virtual time does not change");
}
