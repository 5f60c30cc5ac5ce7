//! Many pairs on one thread: everything a pair on a thread of its own does.

use crate::support::{Place, number, until};
use nix::sys::signal::Signal;

/// Stacks whose connections one thread can drive.
const STACKS: [&str; 3] = [
    "tcp(threads = 1)",
    "mptcp(threads = 2)",
    "unix(threads = 1)",
];

fn over(stacks: &[&str], texts: &[&str]) -> String {
    let each = |stack: &&str| {
        texts
            .iter()
            .map(|text| format!("{text} over {stack}; "))
            .collect::<String>()
    };
    stacks.iter().map(each).collect()
}

#[test]
fn every_kind_of_measurement_moves_what_it_should() {
    let place = Place::new();
    let texts = [
        "2 8 rr 32, 5000*50",
        "2 8 bulk_put 100000*40",
        "2 8 bulk_get 3000*400",
        "2 8 connect_disconnect 0*30",
    ];
    let measured = place.measure(&over(&STACKS, &texts));
    for each in measured.chunks(texts.len()) {
        assert_eq!(
            number(&each[0], "/response_s/n"),
            2.0 * 8.0 * 50.0,
            "{}",
            each[0]
        );
        assert_eq!(
            number(&each[1], "/responder/received_bytes"),
            2.0 * 8.0 * 4e6,
            "{}",
            each[1]
        );
        assert_eq!(
            number(&each[2], "/initiator/received_bytes"),
            2.0 * 8.0 * 1.2e6,
            "{}",
            each[2]
        );
        assert_eq!(
            number(&each[3], "/connect_s/n"),
            2.0 * 8.0 * 30.0,
            "{}",
            each[3]
        );
        assert_eq!(
            each[0].pointer("/initiator/settings/receive").unwrap(),
            "epoll"
        );
    }
}

#[test]
fn all_pairs_go_on_at_the_same_time() {
    let place = Place::new();
    // Each pair waits 20 ms twenty times: one after the other, they cannot be done before 12 s.
    let measured = place.measure(&over(&STACKS, &["1 30 rr 32*20 constant(20 ms)"]));
    for each in measured {
        assert!(number(&each, "/elapsed_s/mean") < 12.0, "{each}");
    }
}

#[test]
fn a_thread_more_is_all_it_takes() {
    let place = Place::new();
    let started = place.running("1 rr 32*10; 1 40 rr 32*100000000 over tcp(threads = 2)");
    // The first measurement has one on each side; it is over.
    until("both agents have two", || {
        let counts = place
            .processes()
            .into_iter()
            .map(|process| process.threads_named("endpoint"));
        (counts.filter(|n| *n > 0).collect::<Vec<_>>() == [2, 2]).then_some(())
    });
    started.has_kept(1).process().signal(Signal::SIGINT);
    started.finish().fails(130, &["interrupted"]);
}

#[test]
fn what_the_thread_used_is_counted_once() {
    let place = Place::new();
    let measured = place.measure("1 timelimit 0.5 32 rr 32 over tcp(threads = 1)");
    for side in ["initiator", "responder"] {
        let used = |name: &str| number(&measured[0], &format!("/cpu/{side}/{name}"));
        let (used, elapsed) = (
            used("user_s") + used("system_s"),
            number(&measured[0], "/elapsed_s/mean"),
        );
        assert!(
            used > 0.0 && used < 1.1 * elapsed,
            "{side}: {used} of {elapsed}"
        );
    }
}

#[test]
fn a_trace_keeps_the_units_of_the_pairs_apart() {
    let place = Place::new();
    place
        .stackline(&[
            "run",
            "--trace",
            "--name",
            "t",
            "-e",
            "1 6 rr 32*20 over tcp(threads = 1)",
        ])
        .succeeds();
    let shown = place.stackline(&["lifelines", "t"]);
    shown.succeeds();
    assert!(
        shown.out.contains("complete                 120  100 %"),
        "{}",
        shown.out
    );
}
