//! What an agent makes of what it is told: messages, garbage, jobs that end early, peers without the run's secret.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;

use common::{Agent, measurement, ready, tasks, tasks_of_part};
use stackline_core::plan::Stack;
use stackline_live::control::{FromAgent, LONGEST_LINE, ToAgent};
use stackline_live::error::Blame;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Goes on until it is ended.
const ENDLESS: &str = "1 bulk_get 1000*1000000000 over tcp;";

#[test]
fn it_ends_when_it_is_asked_to_and_when_its_pipe_closes() {
    let mut agent = Agent::start();
    agent.say(&ToAgent::Clock);
    assert!(matches!(agent.hear(), Some(FromAgent::Clock { .. })));
    agent.say(&ToAgent::Quit);
    assert!(agent.ended().is_ok());
    assert!(Agent::start().abandon().is_ok());
}

#[test]
fn what_is_no_message_ends_it_with_an_error_and_its_jobs_with_it() {
    for garbage in [
        "GET / HTTP/1.1\r\n",
        "{\"end\":{\"job\":-1}}\n",
        "{}\n",
        "{\"go\":{\"job\":7}\n",
        "{\"listen\":{\"job\":1,\"task\":{}}}\n",
        "[[[[[[[[\n",
        "\n",
    ] {
        let [mut initiators, mut responders] = ready(tasks(ENDLESS));
        responders.go();
        initiators.go();
        initiators.say_bytes(garbage.as_bytes());
        let error = initiators.ended().unwrap_err();
        assert!(
            error.message.starts_with("not a control message"),
            "{error}"
        );
        // Its end of the connection time goes with it.
        assert!(responders.outcome().is_err(), "{garbage}");
        assert!(responders.abandon().is_ok());
    }
}

#[test]
fn a_line_without_an_end_takes_no_more_memory_than_the_longest_line() {
    let mut agent = Agent::start();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..LONGEST_LINE >> 20 {
        agent.say_bytes(&piece);
    }
    let error = agent.ended().unwrap_err();
    assert!(error.message.contains("longer than 64 MiB"), "{error}");
}

#[test]
fn a_task_that_no_plan_holds_fails_alone() {
    let [initiate, respond] = tasks("1 rr 32*100 over tcp;");
    let (mut initiators, mut responders) = (Agent::start(), Agent::start());
    let mut other = respond.clone();
    other.stack = Stack::plain("carrier-pigeon");
    let mut many = respond.clone();
    many.work.replicas = 1_000_000;
    for (job, task, word) in [(7, other, "carrier-pigeon"), (8, many, "1000000 pairs")] {
        let task = Box::new(task);
        responders.say(&ToAgent::Listen { job, task });
        let Some(FromAgent::Failed { job: failed, error }) = responders.hear() else {
            panic!("it takes {word}");
        };
        assert_eq!((failed, error.blame), (job, Blame::Input));
        assert!(error.message.contains(word), "{error}");
    }
    // Jobs that are not there are nothing to go or to end, and the agent goes on.
    responders.say(&ToAgent::Go { job: 7 });
    responders.say(&ToAgent::End { job: 7, now: true });
    let addresses = responders.listen(respond);
    initiators.connect(initiate, &addresses);
    initiators.is_ready();
    initiators.go();
    assert_eq!(initiators.outcome().unwrap().calls.n(), 100);
    assert!(responders.outcome().is_ok());
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
}

#[test]
fn a_number_of_addresses_that_is_not_that_of_the_pairs_is_refused() {
    let [initiate, _] = tasks("1 parallel over tcp: 3 rr 32*10;");
    let mut initiators = Agent::start();
    initiators.connect(initiate, &["1".into(), "2".into()]);
    let error = initiators.outcome().unwrap_err();
    assert!(error.message.contains("number of addresses"), "{error}");
    assert!(initiators.abandon().is_ok());
}

#[test]
fn who_has_another_secret_is_closed_and_the_run_goes_on_with_who_has_it() {
    for over in ["tcp", "unix"] {
        let text = format!("1 rr 32*50 over {over};");
        let [initiate, respond] = tasks(&text);
        let (mut initiators, mut responders) = (Agent::start(), Agent::start());
        let addresses = responders.listen(respond);
        let mut stranger = initiate.clone();
        stranger.token = *b"of another run!!";
        initiators.connect(stranger, &addresses);
        // A connection is there before anything is proved: the stranger hears of it with its first call.
        initiators.is_ready();
        initiators.go();
        let error = initiators.outcome().unwrap_err();
        assert_eq!(error.blame, Blame::Measurement, "{over}: {error}");
        initiators.connect(initiate, &addresses);
        initiators.is_ready();
        initiators.go();
        assert_eq!(initiators.outcome().unwrap().calls.n(), 50, "{over}");
        assert!(responders.outcome().is_ok(), "{over}");
        assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
    }
}

#[test]
fn a_secret_that_differs_in_its_last_byte_is_another_and_one_in_pieces_is_the_same() {
    let [_, respond] = tasks("1 rr 4*1 over tcp;");
    let token = respond.token;
    let mut responders = Agent::start();
    let port = responders.listen(respond)[0].parse::<u16>().unwrap();
    let dial = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(common::HANGS)).unwrap();
        stream
    };
    let _says_nothing = dial();
    let (first, rest) = token.split_at(8);
    let mut friend = dial();
    friend.write_all(first).unwrap();
    let mut wrong = token;
    wrong[15] ^= 1;
    let mut stranger = dial();
    stranger.write_all(&wrong).unwrap();
    // When this one is closed, those before it have been looked at.
    let closed = stranger.read(&mut [0; 1]);
    let hung = closed.as_ref().err().map(std::io::Error::kind);
    assert!(
        !matches!(closed, Ok(1)) && hung != Some(ErrorKind::WouldBlock),
        "{closed:?}"
    );
    friend.write_all(rest).unwrap();
    friend.write_all(b"call").unwrap();
    friend.read_exact(&mut [0; 4]).unwrap();
    drop(friend);
    let observed = responders.outcome();
    assert!(observed.is_ok(), "{observed:?}");
    assert!(responders.abandon().is_ok());
}

#[test]
fn a_job_that_waits_for_a_connection_ends_at_once_when_it_is_stopped() {
    for over in ["tcp", "unix", "udp", "blast"] {
        let [_, respond] = tasks(&format!("1 bulk_get 1000*10 over {over};"));
        let mut responders = Agent::start();
        responders.listen(respond);
        responders.end(true);
        let observed = responders
            .outcome()
            .unwrap_or_else(|e| panic!("{over}: {e}"));
        assert_eq!(observed.record.sent_units, 0, "{over}");
        assert!(responders.abandon().is_ok());
    }
}

#[test]
fn a_job_that_moves_data_ends_at_once_with_what_it_has_seen() {
    let [mut initiators, mut responders] = ready(tasks(ENDLESS));
    responders.go();
    initiators.go();
    initiators.end(true);
    assert!(initiators.outcome().is_ok());
    // Its peer sees a connection that is gone.
    assert!(responders.outcome().is_err());
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
}

#[test]
fn who_waits_at_the_barrier_may_be_stopped_there() {
    let [mut initiators, mut responders] = ready(tasks(ENDLESS));
    initiators.end(true);
    assert_eq!(initiators.outcome().unwrap().elapsed_ns, 0);
    responders.end(true);
    let _ = responders.outcome();
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
}

#[test]
fn a_load_ends_cleanly_between_two_passes_when_it_is_no_longer_wanted() {
    let text = "1 background over tcp: rr 32*10 | 2 rr 100*3;";
    let measurement = measurement(text).unwrap();
    let [mut initiators, mut responders] = ready(tasks_of_part(&measurement, 1));
    responders.go();
    initiators.go();
    initiators.end(false);
    responders.end(false);
    assert!(initiators.outcome().is_ok() && responders.outcome().is_ok());
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
}

#[test]
fn an_agent_that_dies_takes_its_end_of_each_connection_with_it() {
    let text = "1 parallel over tcp: 3 bulk_put 1000*1000000000;";
    let [mut initiators, mut responders] = ready(tasks(text));
    responders.go();
    initiators.go();
    assert!(
        initiators.abandon().is_ok(),
        "a pipe that closes is no error"
    );
    let error = responders.outcome().unwrap_err();
    assert_eq!(error.blame, Blame::Measurement);
    assert!(error.message.contains("closed the connection"), "{error}");
    assert!(responders.abandon().is_ok());
}

#[test]
fn a_time_limit_counts_from_the_clock_start_and_both_sides_say_so() {
    let [mut initiators, mut responders] =
        ready(tasks("1 timelimit 0.05 bulk_put 1000*1000000000 over tcp;"));
    responders.go();
    initiators.go();
    let put = initiators.outcome().unwrap();
    let got = responders.outcome().unwrap();
    assert!(put.limited && got.limited);
    assert!(put.elapsed_ns >= 50_000_000, "{}", put.elapsed_ns);
    assert_eq!(put.record.sent_units, got.record.received_units);
    assert!(got.record.received_units > 0);
    assert!(initiators.abandon().is_ok() && responders.abandon().is_ok());
}
