//! A process that forks while it records and while its threads hold locks: the other one records nothing, ends, and can start
//! a recorder of its own.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "forking has no safe form; helpers of a test may fail it"
)]

use stackline_events::{EventLogFile, EventRecorder, MemoryEventSink, event, recorder};
use std::io::{Read, pipe};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// There is one recorder at a time in a process.
static ALONE: Mutex<()> = Mutex::new(());

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// What goes on in the process that was forked off; 0 when all is as it should be.
fn other(inherited: EventRecorder) -> i32 {
    if recorder::is_recording() {
        return 1;
    }
    event!("APP_SEND", 2);
    drop(inherited);
    let kept = MemoryEventSink::default();
    let Ok(own) = EventRecorder::start("udjat", kept.clone()) else {
        return 2;
    };
    event!("APP_SEND", 3);
    let thread = std::thread::spawn(|| event!("APP_OF_ANOTHER_THREAD", 4));
    if thread.join().is_err() || own.stop().recorded != 2 {
        return 3;
    }
    let event_log = kept.event_log();
    if event_log.records().any(|record| record.host != "udjat") {
        4
    } else {
        0
    }
}

#[test]
fn a_fork_records_nothing_until_it_starts_itself() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..20 {
        let kept = MemoryEventSink::default();
        let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
        event!("APP_SEND", 1);
        let mut recorder = Some(recorder);
        std::thread::scope(|scope| {
            // They take and give back rings, so that locks are held when the fork comes.
            let busy = scope.spawn(|| {
                for _ in 0..100 {
                    std::thread::spawn(|| event!("APP_BUSY")).join().unwrap();
                }
            });
            // SAFETY: the child ends through _exit and runs nothing of the test's harness.
            let process = unsafe { fork() };
            if process == 0 {
                let code = recorder.take().map_or(9, other);
                // SAFETY: it only ends the process.
                unsafe { _exit(code) }
            }
            let mut status = -1;
            // SAFETY: the process is a child of this one, the status a place of ours.
            assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
            assert_eq!(status, 0, "exit code {}", status >> 8);
            busy.join().unwrap();
        });
        let totals = recorder.unwrap().stop();
        assert_eq!((totals.recorded, totals.lost), (101, 0));
        assert!(
            kept.event_log()
                .records()
                .all(|record| record.host == "khons")
        );
    }
}

/// Descriptors of this process that lead to a file.
fn copies(path: &Path) -> i32 {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
        .count() as i32
}

#[test]
fn a_fork_that_lives_on_keeps_the_file_from_nobody() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("a.tape");
    let record = |host| EventRecorder::start(host, EventLogFile::open(&path)?);
    let recorder = record("khons").unwrap();
    event!("APP_SEND", 1);
    let (mut end, held) = pipe().unwrap();
    // SAFETY: the child ends through _exit and runs nothing of the test's harness.
    let process = unsafe { fork() };
    if process == 0 {
        drop(held);
        let open = copies(&path);
        let waited = end.read(&mut [0]);
        // SAFETY: it only ends the process.
        unsafe { _exit(open + 8 * i32::from(waited.is_err())) }
    }
    assert_eq!(recorder.stop().recorded, 1);
    let again = record("khons").map(|recorder| {
        event!("APP_SEND", 2);
        recorder.stop().recorded
    });
    drop(held);
    let mut status = -1;
    // SAFETY: the process is a child of this one, the status a place of ours.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    assert_eq!((again.unwrap(), status >> 8), (1, 0), "it has no copy");
    assert_eq!(copies(&path), 0);
}
