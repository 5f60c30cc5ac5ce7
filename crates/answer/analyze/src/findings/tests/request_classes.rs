//! Classes of situations in which a cause was missed or the wrong one named, three cases each: by evidence that decides, and without it.

use super::requests::{Planted, found, table, ten};
use super::*;
use stackline_events::{EventValue, unit_ids};

const SLOW_MS: i64 = 400;

/// A long answer of a slow disk: how long its server's thread waited for what while the answer left, and for the network.
fn long_answer(waits: &[(usize, i64)], socket_ms: i64) -> Planted {
    const SOCKET: usize = 7;
    let network = [(SOCKET, socket_ms)];
    let waits = waits.iter().chain(&network);
    Planted {
        bytes: (100, 5_000_000),
        work: waits.map(|(field, ms)| (*field, ms * MS as i64)).collect(),
        ..Planted::new(
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
        ..Planted::new(0, &[("there", 1), ("work", 20), ("back", 1)])
    };
    let transfer = Planted {
        client: "x",
        server: "y",
        bytes: (100, 50_000_000),
        is_callers: others,
        is_apart: true,
        ..Planted::new(0, &[("there", 1), ("sending", 4000), ("back", 1)])
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
            .ends_with("not counted: 10 from other programs"),
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
    let mut requests = ten(&Planted {
        is_apart: true,
        ..Planted::new(0, &[("there", 1), ("work", 5), ("back", 1)])
    });
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
fn a_name_has_the_count_and_the_mean_of_all_its_requests() {
    // More requests than rows are kept of, of which one in twenty takes longer.
    let requests = |slow: &'static str| -> Vec<Planted> {
        let one = |number: u64| {
            let (name, work) = match number % 20 {
                0 => (slow, 90),
                _ => ("GET /item", 6),
            };
            Planted {
                name,
                ..Planted::new(100 * number + 100, &[("work", work)])
            }
        };
        (0..300).map(one).collect()
    };
    let of_one = &found(&requests("GET /item"))[0];
    assert!(
        of_one.sentence.contains(" during GET /item: ") && of_one.sentence.contains("10.2 ms each"),
        "{of_one:?}"
    );
    assert!(
        of_one.evidence[0].what.starts_with("300 of 300 "),
        "{of_one:?}"
    );
    // 1.35 s of 3.06 s is of the slow ones: none of the two names has most of it.
    let of_two = &found(&requests("GET /slow"))[0];
    assert!(!of_two.sentence.contains(" during GET"), "{of_two:?}");
}

#[test]
fn what_was_not_captured_has_not_failed() {
    let given = |unknown| {
        let mut requests = ten(&Planted::new(0, &[("there", 5), ("back", 5)]));
        requests[3].unknown = Some(unknown);
        let events = table(&requests);
        let given = Given {
            events,
            ..request_account::nothing()
        };
        find_named_requests(&given.input())[0].failed
    };
    for unknown in [
        "some of its bytes were not captured",
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

#[test]
fn windows_of_an_answer_are_no_time_of_the_server() {
    // Ten segments leave, the others a round trip later; then as many again.
    for (bytes, sending) in [(30_000, 20), (45_000, 40), (60_000, 40)] {
        let one = Planted {
            bytes: (100, bytes),
            ..Planted::new(0, &[("there", 10), ("sending", sending), ("back", 10)])
        };
        let all = found(&ten(&one)[..3]);
        assert!(
            all.iter().all(|one| !one.kind.starts_with("server_")),
            "{bytes}: {all:?}"
        );
    }
    // What it had not written yet is its own.
    let paused = Planted {
        bytes: (100, 30_000),
        network: vec![(12, 40 * MS as i64)],
        ..Planted::new(0, &[("there", 1), ("sending", 41), ("back", 1)])
    };
    assert_eq!(found(&ten(&paused))[0].kind, "server_takes");
}

#[test]
fn questions_after_a_name_count_once_with_whom_waits_for_them() {
    let asks = |more: &[Planted]| {
        let one = Planted::new(1400, &[("lookup", 360), ("there", 5), ("back", 5)]);
        let all = found(&[&[one][..], more].concat());
        let takes = all[0].takes.clone().unwrap();
        (
            all[0].kind,
            (takes.total_s * 1e3).round(),
            (takes.of_s * 1e3).round(),
        )
    };
    let dns = |end_ms| Planted {
        protocol: "DNS",
        server: "dns",
        is_apart: true,
        ..Planted::new(end_ms, &[("there", 60), ("back", 60)])
    };
    assert_eq!(asks(&[]), ("slow_lookup", 360.0, 370.0));
    // Three questions, of which two have no name.
    let within = [dns(1150), dns(1270), dns(1390)];
    assert_eq!(asks(&within), ("slow_lookup", 360.0, 370.0));
    // One that nobody waits for is a request of its own.
    assert_eq!(asks(&[dns(3000)]).2, 490.0);
}

#[test]
fn short_waits_that_are_most_of_the_time_are_seen() {
    const DISK: usize = 5;
    let with = |disk_us: i64| {
        found(&ten(&Planted {
            work: vec![(DISK, disk_us * 1000)],
            ..Planted::new(0, &[("there", 0), ("work", 1), ("back", 0)])
        }))
    };
    let kinds = |disk_us| with(disk_us).iter().map(|one| one.kind).collect::<Vec<_>>();
    assert_eq!(kinds(730)[0], "server_disk");
    assert_eq!(kinds(250)[0], "server_disk");
    // A few of them are not worth a word.
    assert!(!kinds(50).contains(&"server_disk"));
    // Threads of one process hand locks to each other: only what is most of the time is worth a word.
    const LOCK: usize = 4;
    let locked = |lock_us: i64| {
        let all = found(&ten(&Planted {
            work: vec![(LOCK, lock_us * 1000)],
            ..Planted::new(0, &[("there", 0), ("work", 1), ("back", 0)])
        }));
        all.iter().any(|one| one.kind == "server_lock")
    };
    assert_eq!([330, 730].map(locked), [false, true]);
}

#[test]
fn what_few_of_many_requests_have_may_be_chance() {
    let slow = |count: usize, work_ms: i64| {
        let all: Vec<Planted> = (0..125)
            .map(|at| Planted {
                end_ms: 1000 + 500 * at as u64,
                ..Planted::new(
                    0,
                    &[
                        ("there", 0),
                        ("work", if at < count { work_ms } else { 0 }),
                        ("back", 1),
                    ],
                )
            })
            .collect();
        found(&all).iter().any(|one| one.kind == "server_takes")
    };
    // One of 125 has 8 % of the time: that happens. Three of them do not by chance, and people feel 200 ms.
    assert!(!slow(1, 11));
    assert!(slow(4, 11));
    assert!(slow(1, 200));
}

#[test]
fn what_most_of_a_cause_is_of_is_named_and_mixed_requests_are_not() {
    let of = |name: &'static str, work| Planted {
        name,
        ..Planted::new(0, &[("there", 1), ("work", work), ("back", 1)])
    };
    let sentence = |one: Planted, other: Planted| {
        let others = ten(&other).into_iter().map(|one| Planted {
            end_ms: one.end_ms + 20_000,
            ..one
        });
        let all: Vec<Planted> = ten(&one).into_iter().chain(others).collect();
        found(&all)[0].sentence.clone()
    };
    assert!(sentence(of("GET /report", 90), of("GET /", 2)).contains(" during GET /report: "));
    assert!(
        sentence(of("GET /item/7", 90), of("GET /item/9", 90)).contains(" during GET /item/:id: ")
    );
    assert!(!sentence(of("GET /report", 90), of("GET /sum", 80)).contains(" during GET"));
}

#[test]
fn a_stream_of_events_is_no_slow_answer() {
    let stream = |parts, paused_ms: i64| Planted {
        stream_parts: parts,
        bytes: (100, 5_000_000),
        network: vec![(12, paused_ms * MS as i64)],
        ..Planted::new(30_000, &[("there", 10), ("sending", 20_000), ("back", 10)])
    };
    let call = Planted::new(40_000, &[("there", 10), ("work", 30), ("back", 10)]);
    let kinds = |one: Planted| {
        let all = found(&[one, call.clone()]);
        (
            all[0].kind,
            all[0].takes.clone().unwrap().of_s.round() as i64,
        )
    };
    assert_eq!(kinds(stream(20, 19_900)), ("server_takes", 0));
    // An answer in one piece is waited for, and so is a stream that is sent without a rest.
    assert_eq!(kinds(stream(0, 19_900)), ("server_takes", 20));
    assert_eq!(kinds(stream(20, 100)).1, 20);
}

#[test]
fn a_long_answer_seen_at_its_client_alone_is_limited_by_a_rate() {
    let download = |bytes, back| Planted {
        bytes: (100, bytes),
        ..Planted::new(9_000, &[("work", 4), ("back", back)])
    };
    let (kind, takes) = {
        let all = found(&[download(3_000_000, 5_000)]);
        (all[0].kind, all[0].takes.clone().unwrap())
    };
    assert_eq!(kind, "request_rate");
    // But half of a round trip of 2 ms.
    assert!((takes.total_s - 4.999).abs() < 1e-6, "{takes:?}");
    assert_ne!(found(&[download(3_000, 50)])[0].kind, "request_rate");
}

#[test]
fn a_client_that_reads_slowly_takes_the_whole_wait() {
    let network = [(8, 3_514), (10, 4_892), (12, 892)];
    let download = |network: &[(usize, i64)]| {
        found(&[Planted {
            server: "a",
            bytes: (100, 24_000_000),
            work: vec![(2, 18 * MS as i64), (7, 3_512 * MS as i64)],
            network: network
                .iter()
                .map(|(field, ms)| (*field, ms * MS as i64))
                .collect(),
            ..Planted::new(9_000, &[("sending", 4_912), ("client_unread", 1)])
        }])
    };
    let all = download(&network);
    assert_eq!(all[0].kind, "client_reads_late", "{all:?}");
    assert!(all[0].share > 0.98, "{all:?}");
    let others = ["server_takes", "request_window"];
    assert!(all.iter().all(|one| !others.contains(&one.kind)), "{all:?}");
    // A server that pauses while the client has read all is to blame.
    let paused = download(&[(12, 3_000)]);
    assert_eq!(paused[0].kind, "server_takes", "{paused:?}");
}

/// Calls of 100 ms beside a connection by turns for 12 s, and a transfer of so many bytes between the same programs meanwhile.
fn beside_a_transfer(bytes: u64) -> Vec<Finding> {
    let calls = ten(&Planted {
        is_apart: true,
        ..Planted::new(0, &[("there", 1), ("work", 100), ("back", 1)])
    });
    let mut events = table(&calls);
    let end_ns = 13_000 * MS;
    let mut request = |flow: u32, kind: &str, sizes: [u64; 2]| {
        let row: [EventValue<'_>; 14] = [
            unit_ids::unit(flow, 0).into(),
            kind.into(),
            "by turns".into(),
            0.into(),
            "".into(),
            "".into(),
            "src".into(),
            "sink".into(),
            "iperf3".into(),
            if kind == "call" { "iperf3" } else { "" }.into(),
            sizes[0].into(),
            sizes[1].into(),
            0.into(),
            EventValue::Absent,
        ];
        let at_ns = if kind == "call" { end_ns } else { 1_000 * MS };
        events.push("REQUEST", "src", at_ns, &row);
    };
    request(50, "call", [149, 4]);
    request(51, "one way", [bytes, 0]);
    let mut times = vec![EventValue::Absent; 15];
    times[0] = unit_ids::unit(50, 0).into();
    times[1] = (12_000 * MS).into();
    times[8] = 0.into();
    times[9] = (12_000 * MS).into();
    events.push("REQUEST_TIME", "src", end_ns, &times);
    let mut transfer = vec![EventValue::from(0); 14];
    transfer[0] = stream(51, EventStreamDirection::There).into();
    (transfer[1], transfer[2]) = ("10.0.0.1:4000".into(), "10.0.0.2:5201".into());
    (transfer[3], transfer[7]) = ((12_000 * MS).into(), bytes.into());
    transfer.extend([EventValue::from("initiator"), "closed".into()]);
    events.push("TCP_CONNECTION", "src", 1_000 * MS, &transfer);
    of_events(&events)
}

#[test]
fn what_controls_a_transfer_is_no_slow_request() {
    let all = beside_a_transfer(15_000_000);
    let takes = all.iter().find(|one| one.kind == "server_takes").unwrap();
    assert!(takes.sentence.starts_with("httpd on b "), "{all:?}");
    assert!((takes.share - 100.0 / 102.0).abs() < 0.01, "{all:?}");
    assert!(
        takes.evidence[0]
            .what
            .ends_with("; not counted: 1 that lasts as long as the transfer that it controls"),
        "{all:?}"
    );
    // Few bytes are no transfer.
    let all = beside_a_transfer(1_000);
    let takes = all.iter().find(|one| one.kind == "server_takes").unwrap();
    assert!(takes.sentence.starts_with("iperf3 on sink "), "{all:?}");
}

#[test]
fn what_losses_leave_of_a_window_is_no_distance_of_an_upload() {
    // One quick one, then uploads of 30 kB that need many round trips; parts of each were sent again.
    let quick = Planted::new(900, &[("there", 2), ("work", 1), ("back", 1)]);
    let upload = |again: i64| Planted {
        bytes: (30_000, 200),
        network: vec![(1, again)],
        ..Planted::new(0, &[("there", 60), ("work", 1), ("back", 1)])
    };
    let first = |again: i64| {
        let all: Vec<Planted> = std::iter::once(quick.clone())
            .chain(ten(&upload(again)))
            .collect();
        found(&all)[0].kind
    };
    assert_eq!(first(1), "request_loss");
    assert_ne!(first(0), "request_loss");
}

#[test]
fn a_window_that_still_grows_is_not_the_senders() {
    let quick = Planted::new(900, &[("there", 20), ("work", 1), ("back", 1)]);
    let kinds = |more_ms: i64| -> Vec<&'static str> {
        let upload = Planted {
            bytes: (90_000, 200),
            stalls: vec![(1, more_ms * MS as i64)],
            ..Planted::new(0, &[("there", 20 + more_ms), ("work", 1), ("back", 1)])
        };
        let all: Vec<Planted> = std::iter::once(quick.clone()).chain(ten(&upload)).collect();
        found(&all).iter().map(|one| one.kind).collect()
    };
    // It stood still for one round trip, or for many.
    assert!(
        !kinds(21).contains(&"request_sender_window"),
        "{:?}",
        kinds(21)
    );
    assert!(
        kinds(200).contains(&"request_sender_window"),
        "{:?}",
        kinds(200)
    );
}

#[test]
fn deadlines_are_counted_together_whether_client_or_server_noticed_them() {
    let call = |number: u64| Planted {
        protocol: "gRPC",
        name: "/shop.Stock/Reserve",
        ..Planted::new(
            1000 + number * 500,
            &[("there", 1), ("work", 250), ("back", 1)],
        )
    };
    // The client resets its stream, or the server's answer says so; then that behind it passed its deadline too.
    let reset = |number: u64| Planted {
        status: "",
        unknown: Some("its stream was reset before its response"),
        gave_up: true,
        bytes: (46, 0),
        ..call(number)
    };
    let answered = Planted {
        status: "grpc-status 4",
        ..call(5)
    };
    let behind = Planted {
        client: "b",
        server: "c",
        parent: Some(5),
        ..answered.clone()
    };
    let all: Vec<Planted> = (0..5).map(reset).chain([answered, behind]).collect();
    let first = found(&all).swap_remove(0);
    assert_eq!(first.kind, "unanswered_requests");
    assert!(first.sentence.starts_with("6 of "), "{}", first.sentence);
}
