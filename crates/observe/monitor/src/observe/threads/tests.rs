//! Records of threads as a kernel wrote them, and a program that sleeps, computes and waits.

use super::*;
use crate::clock::{monotonic_ns, monotonic_to_events_ns};
use crate::kernel_trace::TraceEventFormat;
use crate::observe::accounting::{ThreadTimes, Times};
use proptest::prelude::*;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const KINDS: [ThreadTraceKind; 12] = [
    ThreadTraceKind::Switch,
    ThreadTraceKind::Woken,
    ThreadTraceKind::Ready,
    ThreadTraceKind::Begins,
    ThreadTraceKind::Forks,
    ThreadTraceKind::Executes,
    ThreadTraceKind::Exits,
    ThreadTraceKind::Calls(Call::Futex),
    ThreadTraceKind::Returns(Call::Futex),
    ThreadTraceKind::Faults,
    ThreadTraceKind::DiskStarts,
    ThreadTraceKind::DiskEnds,
];

fn sample(kind: ThreadTraceKind) -> TraceEventFormat {
    let text = match kind {
        ThreadTraceKind::Switch => include_str!("../samples/6.18/sched_switch"),
        ThreadTraceKind::Woken => include_str!("../samples/6.18/sched_waking"),
        ThreadTraceKind::Ready => include_str!("../samples/6.18/sched_wakeup"),
        ThreadTraceKind::Begins => include_str!("../samples/6.18/task_newtask"),
        ThreadTraceKind::Forks => include_str!("../samples/6.18/sched_process_fork"),
        ThreadTraceKind::Executes => include_str!("../samples/6.18/sched_process_exec"),
        ThreadTraceKind::Exits => include_str!("../samples/6.18/sched_process_exit"),
        ThreadTraceKind::Calls(_) => include_str!("../samples/6.18/sys_enter_futex"),
        ThreadTraceKind::Returns(_) => include_str!("../samples/6.18/sys_exit_futex"),
        ThreadTraceKind::Faults => include_str!("../samples/6.18/page_fault_user"),
        ThreadTraceKind::DiskStarts => include_str!("../samples/6.18/block_io_start"),
        ThreadTraceKind::DiskEnds => include_str!("../samples/6.18/block_io_done"),
    };
    TraceEventFormat::parse(text).unwrap()
}

/// A record of thread 7 with these bytes at these places.
fn record(length: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = vec![0; length];
    record[4] = 7;
    for (at, bytes) in parts {
        record[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    record
}

fn decoded(kind: ThreadTraceKind, record: &[u8]) -> Vec<(u32, ThreadChange)> {
    decode::decode(kind, &sample(kind), 3, record)
        .map(|event| (event.thread, event.what))
        .collect()
}

#[test]
fn a_switch_is_two_events() {
    for (state, left) in [
        (0_u64, Left::Preempted),
        (0x100, Left::Preempted),
        (1, Left::Sleeping),
        (2, Left::Disk),
        (8, Left::Stopped),
        (0x10, Left::Dead),
        (0x20, Left::Dead),
        (0x40, Left::Stopped),
        (0x80, Left::Sleeping),
    ] {
        let bytes = record(64, &[(24, &[7]), (32, &state.to_ne_bytes()), (56, &[9])]);
        let expected = [
            (7, ThreadChange::Leaves { state: left }),
            (9, ThreadChange::Runs { core: 3, after: 7 }),
        ];
        assert_eq!(decoded(ThreadTraceKind::Switch, &bytes), expected);
        assert_eq!(
            decoded(ThreadTraceKind::Switch, &bytes[..58]),
            [],
            "too short"
        );
    }
}

#[test]
fn a_wake_up_says_by_whom_and_whether_in_an_interrupt() {
    let woken = |flags: u8| {
        decoded(
            ThreadTraceKind::Woken,
            &record(36, &[(2, &[flags]), (24, &[9])]),
        )
    };
    assert_eq!(
        woken(0),
        [(
            9,
            ThreadChange::Woken {
                by: 7,
                in_interrupt: false
            }
        )]
    );
    assert_eq!(
        woken(0x10),
        [(
            9,
            ThreadChange::Woken {
                by: 7,
                in_interrupt: true
            }
        )]
    );
    assert_eq!(
        decoded(ThreadTraceKind::Ready, &record(36, &[(24, &[9])])),
        [(9, ThreadChange::Ready)]
    );
}

#[test]
fn a_new_thread_is_of_the_same_process_or_of_another() {
    let begins = |flags: u64| {
        decoded(
            ThreadTraceKind::Begins,
            &record(42, &[(8, &[9]), (32, &flags.to_ne_bytes())]),
        )
    };
    assert_eq!(
        begins(0x1_0f00),
        [(
            7,
            ThreadChange::Forked {
                child: 9,
                is_process: Some(false)
            }
        )]
    );
    assert_eq!(
        begins(0x4100),
        [(
            7,
            ThreadChange::Forked {
                child: 9,
                is_process: Some(true)
            }
        )]
    );
    let forks = decoded(ThreadTraceKind::Forks, &record(24, &[(20, &[9])]));
    assert_eq!(
        forks,
        [(
            7,
            ThreadChange::Forked {
                child: 9,
                is_process: None
            }
        )]
    );
}

#[test]
fn a_program_has_a_name_and_may_take_another_threads_number() {
    let place = 20_u32 | 5 << 16;
    let executes = |old: u8| {
        decoded(
            ThreadTraceKind::Executes,
            &record(
                25,
                &[
                    (8, &place.to_ne_bytes()),
                    (12, &[7]),
                    (16, &[old]),
                    (20, b"/b/c\0"),
                ],
            ),
        )
    };
    let expected = (
        7,
        ThreadChange::Executes {
            name: "/b/c".into(),
        },
    );
    assert_eq!(executes(7), std::slice::from_ref(&expected));
    assert_eq!(
        executes(8),
        [expected, (8, ThreadChange::Leaves { state: Left::Dead })]
    );
}

#[test]
fn a_call_has_its_first_argument_and_its_result() {
    let call = Call::Futex;
    let calls = decoded(
        ThreadTraceKind::Calls(call),
        &record(64, &[(16, &[0xcd, 0xab])]),
    );
    assert_eq!(
        calls,
        [(
            7,
            ThreadChange::Calls {
                call,
                argument: 0xabcd
            }
        )]
    );
    let returns = decoded(
        ThreadTraceKind::Returns(call),
        &record(24, &[(16, &(-11_i64).to_ne_bytes())]),
    );
    assert_eq!(returns, [(7, ThreadChange::Returns { call, result: -11 })]);
    assert_eq!(
        decoded(ThreadTraceKind::Exits, &record(33, &[(32, &[1])])),
        [(7, ThreadChange::Exits { last: true })]
    );
}

#[test]
fn the_end_of_a_disk_request_is_its_beginners() {
    let start = |letters: &[u8], pages: u8| {
        decoded(
            ThreadTraceKind::DiskStarts,
            &record(
                64,
                &[(8, &[1]), (16, &[2]), (29, &[16 * pages]), (34, letters)],
            ),
        )
    };
    for (letters, pages, operation) in [
        (&b"RA"[..], 1, DiskOperation::Read),
        (b"FWFS", 2, DiskOperation::Write),
        (b"FWS", 0, DiskOperation::Flush),
        (b"DS", 1, DiskOperation::Other),
    ] {
        let expected = ThreadChange::DiskStarts {
            device: 1,
            sector: 2,
            bytes: u32::from(pages) * 4_096,
            operation,
        };
        assert_eq!(start(letters, pages), [(7, expected)]);
    }
    let mut requests = HashMap::new();
    let event = |thread, what| ThreadEvent {
        at_ns: 0,
        thread,
        what,
    };
    let end = event(
        99,
        ThreadChange::DiskEnds {
            device: 1,
            sector: 2,
        },
    );
    assert_eq!(
        with_its_thread(&mut requests, end.clone()),
        None,
        "its begin was not seen"
    );
    let (thread, what) = start(b"W", 1).remove(0);
    assert!(with_its_thread(&mut requests, event(thread, what)).is_some());
    assert_eq!(
        with_its_thread(&mut requests, end).map(|event| event.thread),
        Some(7)
    );
}

#[test]
fn threads_that_are_not_followed_are_left_out() {
    let mut followed = HashSet::from([1]);
    let mut is_seen = |thread, what| {
        of_followed(
            &mut followed,
            ThreadEvent {
                at_ns: 0,
                thread,
                what,
            },
        )
        .is_some()
    };
    assert!(!is_seen(2, ThreadChange::Runs { core: 0, after: 1 }));
    assert!(is_seen(
        1,
        ThreadChange::Forked {
            child: 2,
            is_process: None
        }
    ));
    assert!(is_seen(2, ThreadChange::Runs { core: 0, after: 1 }));
    assert!(is_seen(2, ThreadChange::Leaves { state: Left::Dead }));
    assert!(
        !is_seen(2, ThreadChange::Ready),
        "another thread has its number"
    );
    assert!(
        is_seen(
            3,
            ThreadChange::Executes {
                name: String::new()
            }
        ),
        "it took the number of another"
    );
    assert!(is_seen(3, ThreadChange::Ready));
}

proptest! {
    #[test]
    fn any_record_is_harmless(record in proptest::collection::vec(any::<u8>(), 0..80)) {
        for kind in KINDS {
            let _ = decode::decode(kind, &sample(kind), 0, &record).count();
        }
    }
}

/// Not a test: the program that the next ones follow. It prints its thread and the times of each part, and what waits for a lock.
#[test]
#[ignore = "is run by other tests"]
fn the_followed_program() {
    if std::env::var_os("STACKLINE_FOLLOWED").is_none() {
        return;
    }
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let mut times = vec![monotonic_ns()];
    let mut part = |work: &mut dyn FnMut()| {
        work();
        times.push(monotonic_ns());
    };
    part(&mut || std::thread::sleep(Duration::from_millis(30)));
    part(&mut || burn(Duration::from_millis(20)));
    part(&mut || wait_for_a_lock(Duration::from_millis(30)));
    part(&mut || sync_a_file());
    part(&mut || assert!(Command::new("true").status().unwrap().success()));
    let words: Vec<String> = times.iter().map(u64::to_string).collect();
    let thread = nix::unistd::gettid();
    println!("\nPARTS {thread} {}", words.join(" "));
}

/// Uses a core for so long, however often it is preempted.
fn burn(length: Duration) {
    let began = crate::clock::thread_cpu_s();
    while crate::clock::thread_cpu_s() - began < length.as_secs_f64() {}
}

fn wait_for_a_lock(length: Duration) {
    let (lock, (sender, receiver)) = (Mutex::new(()), std::sync::mpsc::channel());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let held = lock.lock().unwrap();
            sender.send(()).unwrap();
            std::thread::sleep(length);
            drop(held);
        });
        receiver.recv().unwrap();
        drop(lock.lock().unwrap());
    });
}

fn sync_a_file() {
    let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.write_all(&vec![1; 1 << 20]).unwrap();
    file.sync_all().unwrap();
}

/// The program, which waits for a byte before it begins.
fn program() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "observe::threads::tests::the_followed_program",
            "--ignored",
            "--nocapture",
        ])
        .env("STACKLINE_FOLLOWED", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets it begin; its thread, and the begin of its parts with the end of the last, on the clock of events.
fn let_run(program: &mut Child) -> (u32, Vec<u64>) {
    program.stdin.take().unwrap().write_all(b"x").unwrap();
    let lines: Vec<String> = BufReader::new(program.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert!(program.wait().unwrap().success(), "{lines:?}");
    let line = lines
        .iter()
        .find_map(|line| line.strip_prefix("PARTS "))
        .unwrap();
    let mut words = line.split(' ').map(|word| word.parse::<u64>().unwrap());
    let thread = u32::try_from(words.next().unwrap()).unwrap();
    let offset_ns = monotonic_to_events_ns();
    (
        thread,
        words
            .map(|at| u64::try_from(i128::from(at) + offset_ns).unwrap())
            .collect(),
    )
}

fn started(pids: &[u32], also: Also) -> Option<ThreadTrace> {
    match ThreadTrace::start(pids, also) {
        Ok((trace, absent)) => {
            assert!(
                !absent.keys().any(|name| name.contains("sched")),
                "{absent:?}"
            );
            Some(trace)
        }
        Err(reason) => {
            stackline_testing::skip(reason);
            None
        }
    }
}

/// Adds the events up to now: how many were lost.
fn drain(trace: &mut ThreadTrace, out: &mut Vec<ThreadEvent>) -> u64 {
    let mut read = UndecodedThreads::default();
    trace.read(&mut read).unwrap();
    trace.decoder().decode(&read, out);
    read.lost()
}

/// Whether a wait lasted so many ms. While it is due, the thread may still be on its way to it, on a core or waiting for one; its
/// end may be late by what was `late_ns`, and by 5 ms since other programs share the cores.
fn lasted(wait_ns: u64, expected_ms: u64, own: &Times, late_ns: u64) -> bool {
    let expected_ns = expected_ms * 1_000_000;
    let least_ns = expected_ns.saturating_sub(own.ready_ns + own.running_ns);
    (least_ns..expected_ns + late_ns + 5_000_000).contains(&wait_ns)
}

#[test]
fn a_programs_time_is_divided_by_what_it_waited_for() {
    let mut program = program();
    let Some(mut trace) = started(
        &[program.id()],
        Also {
            disk: true,
            ..Also::default()
        },
    ) else {
        program.kill().unwrap();
        program.wait().unwrap();
        return;
    };
    let (thread, parts) = let_run(&mut program);
    let mut events = Vec::new();
    assert_eq!(drain(&mut trace, &mut events), 0);
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    let mut times = ThreadTimes::default();
    events.iter().for_each(|event| times.see(event));
    let each: Vec<Times> = parts
        .windows(2)
        .map(|part| times.times(thread, part[0], part[1]))
        .collect();
    let [sleeps, burns, waits, syncs, spawns] = each[..] else {
        panic!("{each:?}")
    };
    assert!(lasted(sleeps.sleep_ns, 30, &sleeps, 0), "{sleeps:?}");
    assert!(
        burns.running_ns.abs_diff(20_000_000) < 2_000_000 && burns.sleep_ns + burns.lock_ns == 0,
        "{burns:?}"
    );
    let children = children(&events, thread);
    let [(holder, Some(false)), (process, Some(true))] = children[..] else {
        panic!("{children:?}")
    };
    let held = times.times(holder, parts[2], parts[3]);
    assert!(
        lasted(waits.lock_ns, 30, &waits, held.ready_ns + held.running_ns),
        "{waits:?} {held:?}"
    );
    assert!(
        syncs.disk_ns > 0 && syncs.lock_ns + syncs.sleep_ns + syncs.socket_ns == 0,
        "{syncs:?}"
    );
    assert!(
        spawns.child_ns > 0 && spawns.lock_ns + spawns.sleep_ns + spawns.socket_ns == 0,
        "{spawns:?}"
    );
    for (part, times) in parts.windows(2).zip(&each) {
        assert_eq!(times.total_ns(), part[1] - part[0]);
        assert_eq!(
            (times.unseen_ns, times.other_ns, times.gone_ns),
            (0, 0, 0),
            "{times:?}"
        );
    }
    the_children_are_followed(&events, thread, holder, process);
}

/// The threads that a thread begins, and whether each is of a new process.
fn children(events: &[ThreadEvent], thread: u32) -> Vec<(u32, Option<bool>)> {
    let child = |event: &ThreadEvent| match event.what {
        ThreadChange::Forked { child, is_process } if event.thread == thread => {
            Some((child, is_process))
        }
        _ => None,
    };
    events.iter().filter_map(child).collect()
}

/// Who held the lock wakes the thread, and the program that it started is seen until its end.
fn the_children_are_followed(events: &[ThreadEvent], thread: u32, holder: u32, process: u32) {
    let of = |thread| {
        events
            .iter()
            .filter(move |event| event.thread == thread)
            .map(|event| &event.what)
    };
    assert!(of(thread).any(|what| *what
        == ThreadChange::Woken {
            by: holder,
            in_interrupt: false
        }));
    assert!(of(holder).any(|what| matches!(
        what,
        ThreadChange::Calls {
            call: Call::ClockNanosleep,
            ..
        }
    )));
    assert!(
        of(process)
            .any(|what| matches!(what, ThreadChange::Executes { name } if name.ends_with("/true")))
    );
    assert!(of(process).any(|what| *what == ThreadChange::Exits { last: true }));
    let ends = of(process).next_back();
    assert_eq!(ends, Some(&ThreadChange::Leaves { state: Left::Dead }));
}

#[test]
fn nobody_is_traced_until_followed() {
    let Some(mut trace) = started(&[], Also::default()) else {
        return;
    };
    let mut events = Vec::new();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(drain(&mut trace, &mut events), 0);
    assert_eq!(events, []);
    let (mut decoder, mut read) = (trace.decoder(), UndecodedThreads::default());
    assert!(trace.follow(last_thread()).is_err(), "there is none");
    trace.follow(std::process::id()).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    trace.read(&mut read).unwrap();
    decoder.decode(&read, &mut events);
    let thread = nix::unistd::gettid().as_raw().cast_unsigned();
    let call = Call::ClockNanosleep;
    assert!(
        events.iter().any(|event| event.thread == thread
            && event.what == ThreadChange::Returns { call, result: 0 })
    );
}
