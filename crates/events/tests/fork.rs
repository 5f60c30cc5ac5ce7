//! A process that forks while it records and while its threads hold locks: the other one records nothing, ends, and can start
//! a recorder of its own.
#![allow(unsafe_code, clippy::unwrap_used, reason = "forking has no safe form; helpers of a test may fail it")]

use stackline_events::{Memory, Recorder, event, recorder};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// What goes on in the process that was forked off; 0 when all is as it should be.
fn other(inherited: Recorder) -> i32 {
    if recorder::on() {
        return 1;
    }
    event!("APP_SEND", 2);
    drop(inherited);
    let kept = Memory::default();
    let Ok(own) = Recorder::start("udjat", kept.clone()) else { return 2 };
    event!("APP_SEND", 3);
    let thread = std::thread::spawn(|| event!("APP_OF_ANOTHER_THREAD", 4));
    if thread.join().is_err() || own.stop().recorded != 2 {
        return 3;
    }
    let tape = kept.tape();
    if tape.records().any(|record| record.host != "udjat") { 4 } else { 0 }
}

#[test]
fn a_fork_records_nothing_until_it_starts_itself() {
    for _ in 0..20 {
        let kept = Memory::default();
        let recorder = Recorder::start("khons", kept.clone()).unwrap();
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
        assert!(kept.tape().records().all(|record| record.host == "khons"));
    }
}
