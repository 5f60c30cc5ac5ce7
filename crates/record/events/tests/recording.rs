//! Recorders as programs have them: threads that come and go, sinks that fail, files that outlive their process. There is one
//! recorder at a time in a process, so each test here holds the same lock.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_events::{
    EventLog, EventLogFile, EventRecorder, EventSink, EventTextFile, MemoryEventSink, TextEvent,
    event,
};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keyword and first number of every event of an event log.
fn events(event_log: &EventLog) -> Vec<(String, i64)> {
    let number = |values: &[stackline_events::EventValue<'_>]| {
        values
            .first()
            .and_then(|value| value.number())
            .unwrap_or(-1)
    };
    event_log
        .records()
        .map(|record| (record.keyword.to_owned(), number(&record.values)))
        .collect()
}

fn event_log_of(path: &Path) -> EventLog {
    EventLog::from_bytes(fs::read(path).unwrap())
}

#[test]
fn thousands_of_threads_come_and_go() {
    let _alone = alone();
    let kept = MemoryEventSink::default();
    let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
    for round in 0..20 {
        std::thread::scope(|scope| {
            for thread in 0..200_i64 {
                scope.spawn(move || (0..5).for_each(|_| event!("APP_SEND", round * 200 + thread)));
            }
        });
    }
    let totals = recorder.stop();
    assert_eq!((totals.recorded, totals.lost), (20_000, 0));
    let mut units: Vec<i64> = events(&kept.event_log())
        .into_iter()
        .map(|(_, unit)| unit)
        .collect();
    units.sort_unstable();
    assert!(
        units
            .chunks(5)
            .enumerate()
            .all(|(unit, same)| same == [unit as i64; 5])
    );
}

#[test]
fn a_thread_that_ends_while_nobody_records_leaves_nothing() {
    let _alone = alone();
    let recorder = EventRecorder::start("khons", MemoryEventSink::default()).unwrap();
    let (stopped, go) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let thread = {
        let (stopped, go) = (Arc::clone(&stopped), Arc::clone(&go));
        std::thread::spawn(move || {
            event!("APP_SEND", 1);
            go.store(true, Ordering::Release);
            while !stopped.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            event!("APP_SEND", 2);
        })
    };
    while !go.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let first = recorder.stop();
    let kept = MemoryEventSink::default();
    let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
    stopped.store(true, Ordering::Release);
    thread.join().unwrap();
    assert_eq!((first.recorded, recorder.stop().recorded), (1, 1));
    assert_eq!(events(&kept.event_log()), [("APP_SEND".to_owned(), 2)]);
}

#[test]
fn what_is_lost_is_reported() {
    /// Says when it is asked first, and takes nothing until it may.
    struct Slow {
        is_asked: Arc<AtomicBool>,
        go: Arc<AtomicBool>,
        kept: MemoryEventSink,
    }
    impl EventSink for Slow {
        fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
            self.is_asked.store(true, Ordering::Release);
            wait_for(&self.go);
            self.kept.take(event_log)
        }
    }
    let _alone = alone();
    let (is_asked, go, kept) = (
        Arc::<AtomicBool>::default(),
        Arc::<AtomicBool>::default(),
        MemoryEventSink::default(),
    );
    let slow = Slow {
        is_asked: Arc::clone(&is_asked),
        go: Arc::clone(&go),
        kept: kept.clone(),
    };
    let recorder = EventRecorder::start("khons", slow).unwrap();
    // Nothing is taken any more once the sink is asked: a first ring has room for 350,000 records, and no more come.
    event!("APP_SEND", 0);
    wait_for(&is_asked);
    let emitted = 600_000;
    (1..emitted).for_each(|n| event!("APP_SEND", n));
    go.store(true, Ordering::Release);
    let totals = recorder.stop();
    assert!(
        totals.lost > 0 && totals.recorded + totals.lost == emitted,
        "{totals:?}"
    );
    let lost = events(&kept.event_log())
        .into_iter()
        .filter(|(keyword, _)| keyword == "EVENTS_LOST");
    assert_eq!(
        lost.map(|(_, count)| count as u64).sum::<u64>(),
        totals.lost
    );
}

fn wait_for(what: &AtomicBool) {
    while !what.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_costs_events_but_nothing_else() {
    /// Has room again after a while.
    struct Full(u64, MemoryEventSink);
    impl EventSink for Full {
        fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
            self.0 = self.0.saturating_sub(1);
            if self.0 > 0 {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                self.1.take(event_log)
            }
        }
    }
    let _alone = alone();
    let kept = MemoryEventSink::default();
    let recorder = EventRecorder::start("khons", Full(3, kept.clone())).unwrap();
    let (mut emitted, mut arrived) = (0, Vec::new());
    // Until the sink has kept something.
    while !arrived.iter().any(|(_, keyword, _)| keyword == "APP_SEND") {
        event!("APP_SEND", emitted);
        emitted += 1;
        arrived.extend(records(&kept.event_log()));
        std::thread::yield_now();
    }
    let totals = recorder.stop();
    arrived.extend(records(&kept.event_log()));
    assert!(totals.fault.is_some() && totals.lost > 0, "{totals:?}");
    assert_eq!(totals.recorded + totals.lost, emitted);
    assert!(
        arrived.iter().all(|(host, _, _)| host == "khons"),
        "host and names were defined again"
    );
    let lost = arrived
        .iter()
        .filter(|(_, keyword, _)| keyword == "EVENTS_LOST")
        .map(|(_, _, count)| *count as u64);
    assert_eq!(lost.sum::<u64>(), totals.lost);
}

/// Host, keyword and first number of every event of an event log.
fn records(event_log: &EventLog) -> Vec<(String, String, i64)> {
    let events = events(event_log).into_iter().zip(event_log.records());
    events
        .map(|((keyword, number), record)| (record.host.to_owned(), keyword, number))
        .collect()
}

#[test]
fn a_device_without_room_is_named_at_the_end() {
    let _alone = alone();
    // A device is no one's: that somebody locked it stops nobody.
    let other = fs::File::options().write(true).open("/dev/full").unwrap();
    other.lock().unwrap();
    let recorder = EventRecorder::start(
        "khons",
        EventTextFile::open(Path::new("/dev/full")).unwrap(),
    )
    .unwrap();
    (0..100).for_each(|n| event!("APP_SEND", n));
    let totals = recorder.stop();
    assert_eq!((totals.recorded, totals.lost), (0, 100));
    assert!(totals.fault.unwrap().contains("No space left"));
    drop(other);
}

#[test]
fn both_forms_hold_the_same() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let (event_log, text) = (
        directory.path().join("a.tape"),
        directory.path().join("a.log"),
    );
    let emit = || {
        event!("APP_SEND", 7, None::<i64>, "a; b", -3);
        event!("DPSS_START_WRITE", "set 3", "");
    };
    let recorder = EventRecorder::start("khons", EventLogFile::open(&event_log).unwrap()).unwrap();
    emit();
    assert_eq!(recorder.stop().recorded, 2);
    let recorder = EventRecorder::start("khons", EventTextFile::open(&text).unwrap()).unwrap();
    emit();
    assert_eq!(recorder.stop().recorded, 2);
    let of_event_log: Vec<String> = event_log_of(&event_log)
        .records()
        .map(|record| stackline_events::text::line(record.keyword, record.host, 0, &record.values))
        .collect();
    let lines = fs::read_to_string(&text).unwrap();
    let of_text: Vec<String> = lines
        .lines()
        .map(|line| {
            TextEvent {
                at_ns: 0,
                ..line.parse().unwrap()
            }
            .to_string()
        })
        .collect();
    assert_eq!(
        of_event_log,
        [
            "APP_SEND; khons; 0; 0; 7; ; a%3B b; -3",
            "DPSS_START_WRITE; khons; 0; 0; set 3; ;"
        ]
    );
    assert_eq!(of_event_log, of_text);
}

#[test]
fn a_file_goes_on_where_a_killed_process_left_it() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let (event_log, text) = (
        directory.path().join("a.tape"),
        directory.path().join("a.log"),
    );
    let once = |n: i64| {
        for sink in [
            Box::new(EventLogFile::open(&event_log).unwrap()) as Box<dyn EventSink>,
            Box::new(EventTextFile::open(&text).unwrap()),
        ] {
            let recorder = EventRecorder::start("khons", sink).unwrap();
            event!("APP_SEND", n);
            let _ = recorder.stop();
        }
    };
    once(1);
    for path in [&event_log, &text] {
        let mut bytes = fs::read(path).unwrap();
        bytes.extend_from_slice(&bytes.clone()[..bytes.len() - 3]);
        fs::write(path, bytes).unwrap();
    }
    once(2);
    // What was cut off of the event log was a host, its name and the last event but a word.
    assert_eq!(
        events(&event_log_of(&event_log))
            .iter()
            .map(|(_, n)| *n)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    let lines = fs::read_to_string(&text).unwrap();
    let last: TextEvent = lines.lines().last().unwrap().parse().unwrap();
    assert_eq!(
        (lines.lines().count(), last.data),
        (3, vec!["2".to_owned()])
    );
}

#[test]
fn nobody_elses_file_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("a"), directory.path().join("b.tape"));
    fs::write(&path, "dear diary").unwrap();
    assert_eq!(
        EventLogFile::open(&path).unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "dear diary");
    let first = EventLogFile::open(&other).unwrap();
    assert!(
        EventLogFile::open(&other)
            .unwrap_err()
            .to_string()
            .contains("%p")
    );
    drop(first);
    assert!(EventLogFile::open(&other).is_ok());
}

#[test]
fn an_event_of_a_thread_that_is_taken_down_is_lost_but_counted() {
    /// Emits when its thread's values are destroyed, after the ring of that thread was given back.
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            event!("APP_STOP", 2);
        }
    }
    thread_local! { static LATE: Late = const { Late }; }
    let _alone = alone();
    let kept = MemoryEventSink::default();
    let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
    std::thread::spawn(|| {
        // Values are destroyed in the order in which they were first used.
        event!("APP_START", 1);
        LATE.with(|_| ());
    })
    .join()
    .unwrap();
    let totals = recorder.stop();
    assert_eq!(totals.recorded + totals.lost, 2, "{totals:?}");
}

#[test]
fn two_threads_at_full_speed_are_counted_to_the_last() {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    struct Counting;
    impl EventSink for Counting {
        fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
            TAKEN.fetch_add(event_log.bytes().len() as u64, Ordering::Relaxed);
            Ok(())
        }
    }
    let _alone = alone();
    let recorder = EventRecorder::start("khons", Counting).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..500_000).for_each(|n| event!("APP_SEND", n, 0, 0, 1500)));
        }
    });
    let totals = recorder.stop();
    assert_eq!(totals.recorded + totals.lost, 1_000_000);
    assert!(TAKEN.load(Ordering::Relaxed) >= totals.recorded * 48);
}

/// The example is a program of its own, as its environment says where events go.
#[test]
fn the_example_does_what_the_environment_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("%p.tape");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |events: String| {
        let mut command = std::process::Command::new(&cargo);
        command.args([
            "run",
            "--quiet",
            "--offline",
            "-p",
            "stackline-events",
            "--example",
            "emit",
        ]);
        command
            .env("STACKLINE_EVENTS", events)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap()
    };
    let output = run(format!("file:{}", path.display()));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "2 recorded, 0 lost\n",
        "{output:?}"
    );
    let file = fs::read_dir(directory.path())
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path();
    assert_eq!(
        events(&event_log_of(&file)),
        [
            ("APP_SEND".to_owned(), 17),
            ("DPSS_START_WRITE".to_owned(), 17)
        ]
    );
    assert_eq!(
        String::from_utf8_lossy(&run("off".into()).stdout),
        "0 recorded, 0 lost\n"
    );
    let wrong = run("tcp:1".into());
    assert!(
        !wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("hint: "),
        "{wrong:?}"
    );
}
