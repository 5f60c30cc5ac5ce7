//! Agents and coordinators that are killed, stopped or interrupted in the middle of it.

use crate::support::{Finished, Place, Started, pair, stacks, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

/// Short runs, so that some are finished, and so many that there is a middle.
const LONG: &str = "100000 rr 32*200 over ";

#[test]
fn an_agent_that_is_killed() {
    let hosts = [(0, "(local initiator)"), (1, "(local responder)")];
    for (stack, (which, host)) in stacks::that_answer("live")
        .into_iter()
        .flat_map(|stack| hosts.map(|host| (stack.clone(), host)))
    {
        let place = Place::new();
        let started = place.running(&format!("{LONG}{stack}"));
        started.has_kept(3).agents(2)[which].signal(Signal::SIGKILL);
        let output = started.finish();
        output.fails(
            1,
            &[
                "line 1: 100000 rr 32*200",
                "the agent on host",
                host,
                "killed by signal 9",
            ],
        );
        assert!(output.out.contains("INCOMPLETE"), "{}", output.out);
        let kept = place.kept();
        kept.incomplete("killed by signal 9");
        assert!(kept.journal() >= 3);
    }
}

#[test]
fn an_agent_that_is_killed_within_a_long_run() {
    let stacks = stacks::with(
        stacks::that_answer("live"),
        &["udp(batch = 16)", "saw(packet = 500)"],
    );
    for (application, which) in [
        ("bulk_get", 0),
        ("bulk_get", 1),
        ("bulk_put", 0),
        ("bulk_put", 1),
    ] {
        for stack in &stacks {
            let place = Place::new();
            let started = place.running(&format!(
                "1 rr 32*10; 1 {application} 1000*1000000000 over {stack}"
            ));
            started.has_kept(1).agents(2)[which].signal(Signal::SIGKILL);
            started.finish().fails(1, &["killed by signal 9"]);
            assert_eq!(place.kept().incomplete("killed by signal 9").journal(), 1);
        }
    }
}

#[test]
fn an_interruption() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new();
        let started = place.running(&format!("{LONG}tcp"));
        started.has_kept(3).process().signal(signal);
        let output = started.finish();
        output.fails(130, &["interrupted"]);
        assert!(output.out.contains("INCOMPLETE"), "{}", output.out);
        assert!(place.kept().incomplete("interrupted").journal() >= 3);
    }
}

#[test]
fn an_interruption_of_a_simulated_run() {
    let network = "network n { host a, b; link a - b 1 Gbit/s 1 ms; }";
    let text = |stack: &str| {
        format!(
            "{network} 1 from a to b rr 32*10 across n in simulated; 1 from a to b bulk_put 1 KiB 100 GB over {stack} across n in simulated"
        )
    };
    for (stack, signal) in [
        ("tcp", Signal::SIGINT),
        ("udp", Signal::SIGTERM),
        ("quic", Signal::SIGHUP),
    ] {
        let place = Place::new();
        let started = place.running(&text(stack));
        started.has_kept(1).process().signal(signal);
        let output = started.finish();
        output.fails(130, &["interrupted"]);
        assert!(output.out.contains("INCOMPLETE"), "{}", output.out);
        assert_eq!(place.kept().incomplete("interrupted").journal(), 1);
    }
}

#[test]
fn an_interruption_of_many_short_simulated_runs() {
    let text = format!(
        "{} 100000 from a to b rr 32*5 over tcp across n in simulated",
        pair("")
    );
    for more in [&[][..], &["--trace"], &["--seeds", "1..3"]] {
        let place = Place::new();
        let started = place.start(&mut place.command(&[&["run", "-e", &text], more].concat()));
        until("it has begun", || (!place.runs().is_empty()).then_some(()));
        started.process().signal(Signal::SIGTERM);
        started.finish().fails(130, &["interrupted"]);
    }
}

#[test]
fn an_interruption_within_a_long_run() {
    let waits = "procedure idle { initiator { ConnectRequest; StartMeasurement; Delay(constant(1000)); StopMeasurement; \
                 DisconnectRequest; } responder { AwaitConnectIndication; AwaitDisconnectIndication; } } 1 idle 1*1";
    let stacks = stacks::with(stacks::that_answer("live"), &["udp(gso)", "window(sealed)"]);
    let bulk = |what: &str| {
        stacks
            .iter()
            .map(|stack| format!("1 {what} 1000*1000000000 over {stack}"))
            .collect::<Vec<_>>()
    };
    let idle = ["1 rr 32*10 constant(1000)".to_owned(), waits.to_owned()];
    for measurement in [&bulk("bulk_get")[..], &bulk("bulk_put"), &idle].concat() {
        let place = Place::new();
        let started = place.running(&format!("1 rr 32*10; {measurement}"));
        started.has_kept(1).process().signal(Signal::SIGINT);
        started.finish().fails(130, &["interrupted"]);
        assert_eq!(place.kept().incomplete("interrupted").journal(), 1);
    }
}

#[test]
fn a_stopped_agent_does_not_keep_an_interruption_waiting() {
    for which in [0, 1] {
        let place = Place::new();
        let started = place.running(&format!("{LONG}tcp"));
        started.has_kept(1).agents(2)[which].signal(Signal::SIGSTOP);
        started.process().signal(Signal::SIGINT);
        started.finish().fails(130, &["interrupted"]);
        place.kept().incomplete("interrupted");
    }
}

#[test]
fn a_mute_agent_is_not_waited_for_without_limit() {
    for which in [0, 1] {
        let place = Place::new();
        let mut command = place.command(&["run", "-e", "1 rr 32*10; 1 rr 32*1000000000 over tcp"]);
        let started = place.start(command.env("STACKLINE_SILENCE_S", "1"));
        started.has_kept(1).agents(2)[which].signal(Signal::SIGSTOP);
        started
            .finish()
            .fails(1, &["stopped answering"])
            .hints("suspended");
        place.kept().incomplete("stopped answering");
    }
}

#[test]
fn agents_of_a_killed_coordinator_go_away_by_themselves() {
    for text in [
        "100000 rr 32*200 over tcp, unix",
        "2 rr 32*10; 1 bulk_get 1000*1000000000 over udp",
        "2 rr 32*10; 1 rr 32*10 constant(1000)",
    ] {
        let place = Place::new();
        let started = place.running(text);
        started.has_kept(2).process().signal(Signal::SIGKILL);
        let output = started.finish();
        assert_eq!(output.status.code(), None);
        place.empties();
        let kept = place.kept();
        assert_eq!(kept.status()["complete"], false);
        assert!(kept.journal() >= 2);
        let name = kept.0.file_name().unwrap().to_str().unwrap().to_string();
        let output = place.stackline(&["compare", &name, &name]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "what was done can still be read: {}",
            output.err
        );
        assert!(
            output.err.contains("is incomplete (it was killed)"),
            "{}",
            output.err
        );
    }
}

#[test]
fn the_process_that_measures_for_a_paper_ends_with_its_parent() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let place = Place::new();
        // It would measure for minutes.
        let words = [
            "reproduce",
            "blast",
            "--transfers",
            "10",
            "--precision",
            "50",
            "--runs",
            "100000",
        ];
        let started = place.start(&mut place.command(&words));
        until("it measures", || {
            place
                .processes()
                .into_iter()
                .find(|process| process.is("measure"))
        });
        started.process().signal(signal);
        assert_eq!(started.finish().status.code(), None);
        place.empties();
    }
}

/// Interrupts a command when it is so. It is stopped whenever that is looked at, so that it has not gone on when the signal comes.
fn interrupt_when(place: &Place, started: &Started, what: &str, is_so: impl Fn() -> bool) {
    let all = |signal: Signal| {
        for process in place.processes() {
            // It may have ended.
            let _ = kill(Pid::from_raw(process.0), signal);
        }
    };
    until(what, || {
        all(Signal::SIGSTOP);
        let so = is_so();
        if so {
            started.process().signal(Signal::SIGINT);
        }
        all(Signal::SIGCONT);
        so.then_some(())
    });
}

#[test]
fn an_interruption_does_not_wait_for_findings() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b bulk_put 1000*30000 over tcp across n in simulated",
        pair("")
    );
    let started = place.start(&mut place.command(&["run", "--trace", "-e", &text]));
    started.has_kept(1);
    interrupt_when(&place, &started, "all is kept", || {
        place.kept().status()["complete"] == true
    });
    let output = started.finish();
    assert_eq!(output.status.code(), Some(130), "{}", output.err);
    assert!(
        output.out.contains("interrupted before the diagnosis"),
        "{}",
        output.out
    );
    place.stackline(&["show"]).succeeds();
}

#[test]
fn every_command_says_that_a_traced_run_was_killed() {
    let place = Place::new();
    let text = format!(
        "{} 1000 from a to b bulk_put 1000*100 over tcp across n in simulated",
        pair("")
    );
    let started = place.start(&mut place.command(&["run", "--trace", "-e", &text]));
    started.has_kept(2).process().signal(Signal::SIGKILL);
    started.finish();
    for (words, output) in answers(&place) {
        let said = format!("{}{}", output.out, output.err).to_lowercase();
        assert!(
            output.status.success() && said.contains("incomplete"),
            "{words:?}: {}",
            output.err
        );
    }
}

#[test]
fn every_command_says_that_a_run_is_still_running_and_how_far_it_is() {
    let place = Place::new();
    // A tenth of a second each.
    let text = "100000 rr 32*10 constant(10 ms) over tcp";
    for trace in [&["--trace"][..], &[]] {
        let started = place.start(&mut place.command(&[&["run", "-e", text], trace].concat()));
        started.has_kept(2);
        for (words, output) in answers(&place) {
            let said = format!("{}{}", output.out, output.err);
            let untraced = trace.is_empty()
                && ["lifelines", "export"]
                    .iter()
                    .any(|word| words.starts_with(word));
            assert!(
                untraced || said.contains("it is still running; runs done: "),
                "{words}: {said}"
            );
            assert!(untraced || said.contains(" of 100000"), "{words}: {said}");
            assert!(!said.contains("killed"), "{words}: {said}");
        }
        let shown = answer(&place, &["show", "--json"]).json();
        assert_eq!(
            (&shown["complete"], &shown["running"]),
            (&false.into(), &true.into())
        );
        assert!(
            shown["measurements"][0]["runs"]
                .as_u64()
                .is_some_and(|runs| runs >= 2)
        );
        started.process().signal(Signal::SIGKILL);
        started.finish();
        // Its agents go away by themselves.
        place.empties();
        let killed = place.stackline(&["show", "--json"]).json();
        assert_eq!(
            (&killed["running"], &killed["reason"]),
            (&false.into(), &serde_json::Value::Null)
        );
        fs::remove_dir_all(place.kept().0).unwrap();
    }
}

/// What each command that reads a run says of the only one.
fn answers(place: &Place) -> Vec<(String, Finished)> {
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    let commands = [
        &["show", run][..],
        &["lifelines", run],
        &["diagnose", run],
        &["compare", run, run],
        &["export", run, "--text"],
        &["report", run],
        &["open", run],
    ];
    commands
        .into_iter()
        .map(|words| (words.join(" "), answer(place, words)))
        .collect()
}

/// What a command says beside others that go on.
fn answer(place: &Place, words: &[&str]) -> Finished {
    let output = place.command(words).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Finished {
        status: output.status,
        out,
        err,
    }
}

#[test]
fn an_interrupted_import_keeps_nothing_whatever_it_waits_for() {
    for (signal, into) in [
        (Signal::SIGINT, false),
        (Signal::SIGTERM, true),
        (Signal::SIGHUP, false),
    ] {
        let place = Place::new();
        place.write("a.log", "A; h; 0; 5; 1\n");
        place
            .stackline(&["import", "a.log", "--name", "old"])
            .succeeds();
        let old = place.stackline(&["export", "old", "--text"]);
        nix::unistd::mkfifo(&place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let given: &[&str] = if into { &["--into", "old"] } else { &[] };
        // Nobody writes into the pipe.
        let started =
            place.start(&mut place.command(&[&["import", "--as", "text", "pipe"], given].concat()));
        let begun = || {
            place
                .runs()
                .iter()
                .any(|run| fs::read_dir(run.join("events")).is_ok_and(has_unfinished))
        };
        until("it has begun", || begun().then_some(()));
        started.process().signal(signal);
        started
            .finish()
            .fails(130, &["the import was interrupted: nothing was kept"])
            .hints("again");
        assert_eq!(place.runs().len(), 1, "the old one");
        assert_eq!(place.stackline(&["export", "old", "--text"]).out, old.out);
    }
}

fn has_unfinished(mut events: fs::ReadDir) -> bool {
    events.any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".unfinished")
    })
}

#[test]
fn every_command_says_that_an_import_was_killed() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let started = place.start(&mut place.command(&["import", "--as", "text", "pipe"]));
    until("it has begun", || {
        place
            .runs()
            .iter()
            .any(|run| run.join("events").is_dir())
            .then_some(())
    });
    for (_, output) in answers(&place) {
        output
            .fails(3, &["is incomplete: it is still being written"])
            .hints("wait");
    }
    started.process().signal(Signal::SIGKILL);
    started.finish();
    for (_, output) in answers(&place) {
        output
            .fails(
                3,
                &["is incomplete: it was stopped before its events were kept"],
            )
            .hints("repeat");
    }
}

#[test]
fn an_interruption_does_not_wait_until_all_events_are_sorted() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b bulk_put 1000*80000 over tcp across n in simulated",
        pair("")
    );
    let started = place.start(&mut place.command(&["run", "--trace", "-e", &text]));
    started.has_kept(1);
    let sorts = || fs::read_dir(place.kept().0.join("events")).is_ok_and(has_unfinished);
    interrupt_when(&place, &started, "its events are sorted", sorts);
    let output = started.finish();
    output.fails(130, &["its events were not sorted: it was interrupted"]);
    assert!(output.out.contains("INCOMPLETE"), "{}", output.out);
    let kept = place.kept();
    kept.incomplete("its events were not sorted");
    let mut left = fs::read_dir(kept.0.join("events")).unwrap();
    assert!(left.any(|entry| {
        entry
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "tape")
    }));
    place.stackline(&["show"]).succeeds();
}
