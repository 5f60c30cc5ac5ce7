//! Classes of situations in which a cause was missed or the wrong one named, three cases each: by evidence that decides, and without it.

use super::requests::{Planted, found, ten};
use super::*;

const SLOW_MS: i64 = 400;

/// A long answer of a slow disk: how long its server's thread waited for what while the answer left, and for the network.
fn long_answer(waits: &[(usize, i64)], socket_ms: i64) -> Planted {
    const SOCKET: usize = 7;
    let waits = waits.iter().chain(&[(SOCKET, socket_ms)]);
    Planted {
        bytes: (100, 5_000_000),
        work: waits.map(|(field, ms)| (*field, ms * MS as i64)).collect(),
        ..Planted::of(
            0,
            &[("there", 1), ("work", 1), ("sending", SLOW_MS), ("back", 1)],
        )
    }
}

#[test]
fn what_a_disk_holds_up_within_an_answer_is_the_disks() {
    const DISK: usize = 5;
    const SLEEP: usize = 6;
    let first = |one: &Planted| {
        let found = found(&ten(one));
        (found[0].kind, found[0].share)
    };
    let (kind, share) = first(&long_answer(&[(DISK, 380)], 0));
    assert_eq!(kind, "server_disk");
    assert!((share - 380.0 / 403.0).abs() < 0.01, "{share}");
    // The same within one host, where nothing is on its way.
    let within = Planted {
        server: "a",
        ..long_answer(&[(DISK, 380)], 0)
    };
    assert_eq!(first(&within).0, "server_disk");
    // A timer that is waited for between parts is no disk.
    assert_eq!(first(&long_answer(&[(SLEEP, 380)], 0)).0, "server_sleeps");
    // Where the thread waited for the network as long, a quicker disk would have changed nothing.
    assert_eq!(first(&long_answer(&[(DISK, 150)], 250)).0, "request_rate");
    // Nor is it the disk where that was read before the answer began.
    let before = Planted {
        parts: vec![
            ("there", 1),
            ("work", 40),
            ("sending", SLOW_MS),
            ("back", 1),
        ],
        ..long_answer(&[(DISK, 40)], 0)
    };
    assert_eq!(first(&before).0, "request_rate");
}

/// Calls of 20 ms of the program that the trace is about, beside long transfers of another one.
fn beside(callers: Option<bool>, others: Option<bool>) -> Vec<Planted> {
    let call = Planted {
        is_callers: callers,
        is_apart: true,
        ..Planted::of(0, &[("there", 1), ("work", 20), ("back", 1)])
    };
    let transfer = Planted {
        client: "x",
        server: "y",
        bytes: (100, 50_000_000),
        is_callers: others,
        is_apart: true,
        ..Planted::of(0, &[("there", 1), ("sending", 4000), ("back", 1)])
    };
    ten(&call).into_iter().chain(ten(&transfer)).collect()
}

#[test]
fn what_runs_beside_the_traced_program_ranks_behind_it() {
    let all = found(&beside(Some(true), Some(false)));
    assert_eq!(all[0].kind, "server_takes");
    assert!(all[0].sentence.starts_with("httpd on b "), "{all:?}");
    assert!(
        (all[0].share - 20.0 / 22.0).abs() < 0.01,
        "{}",
        all[0].share
    );
    assert!(
        all[0].evidence[0]
            .what
            .ends_with("10 of programs beside do not count"),
        "{all:?}"
    );
    assert!(all.iter().all(|one| one.kind != "request_rate"), "{all:?}");
}

#[test]
fn without_a_caller_all_requests_count() {
    // Programs that were joined are all alike, and a last program that asks nothing is none.
    for (callers, others) in [
        (None, None),
        (Some(false), Some(false)),
        (None, Some(false)),
    ] {
        let all = found(&beside(callers, others));
        assert_eq!(all[0].kind, "request_rate", "{callers:?} {others:?}");
    }
}

#[test]
fn failures_beside_the_traced_program_are_said_all_the_same() {
    let mut requests = beside(Some(true), Some(false));
    requests[15].status = "503";
    let all = found(&requests);
    assert_eq!(all[0].kind, "failed_requests", "{all:?}");
}

#[test]
fn few_that_have_most_of_it_are_said_beside_the_mean() {
    let mut requests = ten(&Planted::of(0, &[("there", 1), ("work", 5), ("back", 1)]));
    requests.extend(requests.clone().into_iter().map(|one| Planted {
        end_ms: one.end_ms + 5000,
        ..one
    }));
    requests[7].parts = vec![("there", 1), ("work", 800), ("back", 1)];
    let all = found(&requests);
    assert_eq!(all[0].kind, "server_takes");
    assert!(all[0].sentence.contains("; 1 of them 800 ms"), "{all:?}");
    // Where all are alike nothing is said.
    requests[7].parts = vec![("there", 1), ("work", 6), ("back", 1)];
    assert!(!found(&requests)[0].sentence.contains("of them"));
}

#[test]
fn what_was_not_captured_has_not_failed() {
    let given = |unknown| {
        let mut requests = ten(&Planted::of(0, &[("there", 5), ("back", 5)]));
        requests[3].unknown = Some(unknown);
        let events = super::requests::table(&requests);
        let given = Given {
            events,
            ..super::request_account::nothing()
        };
        crate::findings::find_named_requests(&given.input())[0].failed
    };
    for unknown in [
        "bytes of it were not captured",
        "it was under way when the trace ended",
    ] {
        assert_eq!(given(unknown), 0, "{unknown}");
    }
    for unknown in [
        "nothing answered it",
        "the server reset its connection",
        "its answer was cut off",
    ] {
        assert_eq!(given(unknown), 1, "{unknown}");
    }
}
