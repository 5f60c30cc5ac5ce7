//! The C client, compiled here and read back by the reader of this crate. Passed over, with a word, where there is no `cc`.
use crate::common::{Event, events, lines, read_event_log};
use stackline_events::EventValue;
use stackline_events::traceparent::Traceparent;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../clients/c")
}

/// Compiles C sources into a program; nothing where there is no compiler.
fn compiled(sources_named: &[&str], directory: &Path) -> Option<PathBuf> {
    let program = directory.join("program");
    match compiler(&["-O2"], sources_named, &program) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("passed over: there is no `cc` here, so the C client is not tested");
            None
        }
        output => {
            let output = output.unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(program)
        }
    }
}

/// The same with AddressSanitizer; nothing where the compiler has none.
fn sanitized(source: &str, directory: &Path) -> Option<PathBuf> {
    let program = directory.join("sanitized");
    let flags = ["-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"];
    let made = compiler(&flags, &[source], &program).is_ok_and(|output| output.status.success());
    if !made {
        eprintln!("passed over: `cc` has no AddressSanitizer here");
    }
    made.then_some(program)
}

fn compiler(flags: &[&str], sources_named: &[&str], program: &Path) -> std::io::Result<Output> {
    Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Wshadow",
            "-Werror",
            "-pthread",
        ])
        .args(flags)
        .arg("-o")
        .arg(program)
        .args(sources_named.iter().map(|name| sources().join(name)))
        .output()
}

/// Runs a part of the test program.
fn run(program: &Path, part: &str, events: &str) -> Output {
    let mut command = Command::new(program);
    // What lives as long as the process is not given back at its end.
    command
        .arg(part)
        .env("STACKLINE_EVENTS", events)
        .env("ASAN_OPTIONS", "detect_leaks=0");
    command.output().unwrap()
}

/// Recorded, lost and fault as the program printed them.
fn totals(output: &Output) -> [u64; 3] {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    numbers.try_into().unwrap()
}

#[test]
fn the_example_needs_nothing_but_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&["example.c"], directory.path()) else {
        return;
    };
    let event_log = directory.path().join("a.tape");
    let status = Command::new(program)
        .env("STACKLINE_EVENTS", format!("file:{}", event_log.display()))
        .status()
        .unwrap();
    assert!(status.success());
    let events = read_event_log(&event_log);
    assert_eq!(
        lines(&events),
        ["APP_SEND; 17; ; 0; 1500", "DPSS_START_WRITE; 17; set 3"]
    );
    assert!(
        events
            .iter()
            .all(|event| event.at_ns > 1_600_000_000_000_000_000 && !event.host.is_empty())
    );
}

#[test]
fn every_part_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&["test.c"], directory.path()) else {
        return;
    };
    let path = |name: &str| directory.path().join(name);
    let both = |part: &str| {
        let (event_log, text) = (path(&format!("{part}.tape")), path(&format!("{part}.log")));
        let totals = [
            totals(&run(
                &program,
                part,
                &format!("file:{}", event_log.display()),
            )),
            totals(&run(&program, part, &format!("text:{}", text.display()))),
        ];
        (totals, events(&event_log, &text))
    };
    let (counted, values) = both("values");
    assert_eq!(counted, [[5, 0, 0]; 2]);
    same_values(&values);
    let (counted, mut threads) = both("threads");
    assert_eq!(counted, [[10_000, 0, 0]; 2]);
    threads.sort_by_key(|event| event.numbers());
    let expected = (0..50).flat_map(|thread| (0..200).map(move |n| vec![thread, n]));
    assert!(threads.iter().map(Event::numbers).eq(expected));
    wrong_settings(&program);
    forks(&program, &path("forks.tape"), &path("child-%p.tape"));
    outlived(&program, &path("outlived.tape"));
    kills(&program, &path("killed.tape"));
    floods(&program, &path("flood.tape"));
    signals(&program, &path("signals.tape"));
    traceparents(&program);
}

/// The same program where a use of memory that was given back ends it.
#[test]
fn no_part_uses_what_was_freed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(program) = sanitized("test.c", directory.path()) else {
        return;
    };
    let path = |name: &str| directory.path().join(name);
    let counted = |part: &str| {
        totals(&run(
            &program,
            part,
            &format!("file:{}", path(part).display()),
        ))
    };
    assert_eq!(counted("renews"), [1, 0, 0]);
    assert_eq!(lines(&read_event_log(&path("renews"))), ["HAS_A_RING"]);
    assert_eq!(counted("values"), [5, 0, 0]);
    assert_eq!(counted("threads"), [10_000, 0, 0]);
    signals(&program, &path("signals.tape"));
    traceparents(&program);
    // Not forks: the sanitizer's own locks may be held by another thread at that moment, and stay so in the child.
}

/// What the Rust client reads or refuses the C client reads or refuses too, and makes the same unit of it.
fn traceparents(program: &Path) {
    let printed = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let later = printed.replacen("00", "cc", 1);
    let right = [
        printed.to_owned(),
        later.clone(),
        format!("{later}-what-will-be"),
        format!(" \t{printed}\t "),
        printed.replace("-01", "-ff"),
        printed.replace("-01", "-02"),
        printed.replace("0af7651916cd43dd", &"0".repeat(16)),
        printed.replace("b7ad6b7169203331", &"f".repeat(16)),
        format!("{later}-{}", "x".repeat(512 - 56)),
    ];
    let wrong = [
        printed.replacen("00", "ff", 1),
        format!("{printed}-more"),
        format!("{later}.more"),
        printed.to_uppercase(),
        printed.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
        printed.replace("b7ad6b7169203331", &"0".repeat(16)),
        printed.replace('-', "_"),
        printed[1..].to_owned(),
        printed[..54].to_owned(),
        String::new(),
        format!("{later}-{}", "x".repeat(513 - 56)),
        format!("{later}-{}", "x".repeat(1 << 20)),
    ];
    let parsed = |text: &String| match text.parse::<Traceparent>() {
        Ok(read) => format!("{} {read}\n", read.unit()),
        Err(_) => "none\n".to_owned(),
    };
    let expected: String = right.iter().chain(&wrong).map(parsed).collect();
    assert!(expected.starts_with(&format!("{} {printed}\n", 0x33e5_8050_75a0_02ad_i64)));
    assert_eq!(expected.matches("none").count(), wrong.len());
    let input = program.with_extension("input");
    std::fs::write(
        &input,
        right
            .iter()
            .chain(&wrong)
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let input = std::fs::File::open(input).unwrap();
    let output = Command::new(program)
        .arg("traceparents")
        .stdin(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// A handler that emits in the midst of another event neither waits for ever nor is forgotten.
fn signals(program: &Path, event_log: &Path) {
    assert_eq!(
        totals(&run(
            program,
            "signals",
            &format!("file:{}", event_log.display())
        )),
        [2, 2, 0]
    );
    let (mut lost, mut kept) = (0, Vec::new());
    for event in read_event_log(event_log) {
        match event.keyword.as_str() {
            "EVENTS_LOST" => lost += event.numbers()[0],
            keyword => kept.push(keyword.to_owned()),
        }
    }
    assert_eq!(
        (lost, kept),
        (
            2,
            vec!["INTERRUPTED_TWICE".to_owned(), "IN_HANDLER".to_owned()]
        )
    );
}

fn same_values(events: &[Event]) {
    let expected = [
        "EMPTY".to_owned(),
        format!("NUMBERS; -7; {0}; {1}; 200; 1", i64::MAX, i64::MIN),
        "TEXTS; a%3B b; 95%; %20edge%20; 100%253B; ? no utf-8 ä; ; ;".into(),
        format!("LONG; {}; ; 17", "x".repeat(4094)),
        "SIXTEEN; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11; 12; 13; 14; 15; 16".into(),
    ];
    assert_eq!(lines(events), expected);
    assert!(events.iter().all(|event| event.host == "c host"));
    assert_eq!(
        events[3].values().last(),
        Some(&EventValue::Number(17)),
        "a text that is a number is that number"
    );
}

fn wrong_settings(program: &Path) {
    assert!(run(program, "wrong", "").status.success());
    let refused = run(program, "values", "file:/dev/null/x");
    assert_eq!(refused.status.code(), Some(3));
}

fn forks(program: &Path, event_log: &Path, other: &Path) {
    let output = Command::new(program)
        .arg("forks")
        .env("STACKLINE_EVENTS", format!("file:{}", event_log.display()))
        .env("OTHER", format!("file:{}", other.display()))
        .output()
        .unwrap();
    assert_eq!(totals(&output), [2, 0, 0]);
    assert_eq!(lines(&read_event_log(event_log)), ["BEFORE", "AFTER"]);
    let children = std::fs::read_dir(other.parent().unwrap())
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let child = children.into_iter().find(|path| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("child-")
    });
    let events = read_event_log(&child.unwrap());
    assert_eq!(
        (lines(&events), events[0].host.as_str()),
        (vec!["CHILD".to_owned()], "child")
    );
}

/// A process that was forked off and lives on keeps the file from nobody.
fn outlived(program: &Path, event_log: &Path) {
    assert_eq!(
        totals(&run(
            program,
            "outlived",
            &format!("file:{}", event_log.display())
        )),
        [1, 0, 0]
    );
    assert_eq!(lines(&read_event_log(event_log)), ["FIRST", "SECOND"]);
}

/// What was drained outlives the process; a record that was cut off is taken away, and the file goes on.
fn kills(program: &Path, event_log: &Path) {
    let events = format!("file:{}", event_log.display());
    assert!(!run(program, "killed", &events).status.success());
    let bytes = std::fs::read(event_log).unwrap();
    std::fs::write(event_log, [&bytes[..], &bytes[..bytes.len() - 5]].concat()).unwrap();
    assert!(run(program, "exit", &events).status.success());
    assert_eq!(
        lines(&read_event_log(event_log)),
        ["BEFORE_THE_END", "AT_EXIT"]
    );
    let diary = event_log.with_extension("txt");
    std::fs::write(&diary, "dear diary, this is no event log").unwrap();
    assert_eq!(
        run(program, "exit", &format!("file:{}", diary.display()))
            .status
            .code(),
        Some(3)
    );
    assert_eq!(
        std::fs::read_to_string(diary).unwrap(),
        "dear diary, this is no event log"
    );
}

/// Faster than any disk, and onto one that is full: everything is counted.
fn floods(program: &Path, event_log: &Path) {
    let [recorded, lost, _] = totals(&run(
        program,
        "flood",
        &format!("file:{}", event_log.display()),
    ));
    assert_eq!(recorded + lost, 1_000_000);
    let (mut reported, mut sent) = (0, 0);
    for event in read_event_log(event_log) {
        match event.keyword.as_str() {
            "EVENTS_LOST" => reported += event.numbers()[0] as u64,
            _ => sent += 1,
        }
    }
    assert_eq!((sent, reported), (recorded, lost));
    let [recorded, lost, fault] = totals(&run(program, "threads", "text:/dev/full"));
    assert_eq!((recorded, lost), (0, 10_000));
    assert_ne!(fault, 0);
}
