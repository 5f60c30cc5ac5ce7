//! Runs that are read back: finished, damaged, cut short, imported, and found by their names.

use super::*;
use crate::events::{Intake, read_run, write_index};
use crate::{RunDirectory, RunFileAccess};
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

fn plan() -> Plan {
    Plan {
        seed: 42,
        hosts: Default::default(),
        networks: Vec::new(),
        measurements: Vec::new(),
    }
}

fn record(run: u32) -> RunRecord {
    RunRecord {
        run,
        elapsed_ns: 1_000,
        ..RunRecord::default()
    }
}

fn begun(root: &Path) -> RunDirectory {
    let mut directory =
        RunDirectory::create(root, "rr", UNIX_EPOCH, RunFileAccess::Private).unwrap();
    directory.write_specification("10 rr 32;").unwrap();
    directory.write_plan(&plan()).unwrap();
    directory
}

#[test]
fn a_finished_run_reads_back() {
    let root = tempfile::tempdir().unwrap();
    let directory = begun(root.path());
    directory
        .write_environment(&serde_json::json!({"kernel": "6.1"}))
        .unwrap();
    directory
        .finish(&[record(0), record(1)], true, None)
        .unwrap();
    let run = open_under(root.path(), Path::new("19700101-000000-rr")).unwrap();
    assert!(run.complete);
    assert_eq!(run.records, [record(0), record(1)]);
    assert_eq!(run.plan, plan());
    assert_eq!(run.specification, "10 rr 32;");
    assert_eq!(run.environment["kernel"], "6.1");
}

#[test]
fn of_many_of_one_second_the_newest_is_the_last_that_was_made() {
    let root = tempfile::tempdir().unwrap();
    let made: Vec<_> = (0..12)
        .map(|_| begun(root.path()).finish(&[], true, None).unwrap())
        .collect();
    drop(made);
    assert_eq!(
        newest(root.path(), "rr"),
        Some(root.path().join("19700101-000000-rr-12"))
    );
    let names = names(root.path());
    assert_eq!(
        (names[0].as_str(), names[11].as_str()),
        ("19700101-000000-rr", "19700101-000000-rr-12")
    );
    assert!(order("19700101-000001-a") > order("19700101-000000-b-7"));
}

#[test]
fn a_file_that_is_damaged_or_of_another_run_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let directory = begun(root.path());
    let path = directory.path().to_owned();
    directory
        .write_environment(&serde_json::json!({"kernel": "6.1"}))
        .unwrap();
    directory.finish(&[record(0)], true, None).unwrap();
    for (name, bytes) in [
        (
            files::PLAN,
            serde_json::to_string(&Plan { seed: 43, ..plan() }).unwrap(),
        ),
        (files::ENVIRONMENT, r#"{"kernel": "6.2"}"#.to_owned()),
        (files::SPECIFICATION, "11 rr 32;".to_owned()),
    ] {
        let right = fs::read(path.join(name)).unwrap();
        fs::write(path.join(name), bytes).unwrap();
        let error = StoredRun::open(&path).unwrap_err();
        assert!(
            error.message.contains(name) && error.message.contains("is damaged"),
            "{error}"
        );
        fs::write(path.join(name), right).unwrap();
    }
    let right = fs::read(path.join(files::RESULTS)).unwrap();
    results::write(&path.join(files::RESULTS), Some(&plan()), &[record(1)]).unwrap();
    assert!(
        StoredRun::open(&path)
            .unwrap_err()
            .message
            .contains("is damaged or belongs to another run")
    );
    fs::write(path.join(files::RESULTS), right).unwrap();
    // What is added later is summed up again.
    write_index(&path, &Index::default()).unwrap();
    assert!(StoredRun::open(&path).is_ok());
    fs::write(path.join(files::INDEX), "{}").unwrap();
    assert!(
        StoredRun::open(&path)
            .unwrap_err()
            .message
            .contains("index.json is damaged")
    );
}

#[test]
fn a_file_of_events_of_another_run_is_noticed_and_what_is_added_is_not() {
    let root = tempfile::tempdir().unwrap();
    let [one, other] = [1, 2].map(|at| {
        let directory = begun(root.path());
        let path = directory.path().to_owned();
        add(&path, at);
        directory.finish(&[], true, None).unwrap();
        path
    });
    let [ours, theirs] = [&one, &other].map(|run| run.join("events/h.parquet"));
    assert_eq!(read_run(&one).unwrap().at_ns, [1]);
    let right = fs::read(&ours).unwrap();
    fs::copy(&theirs, &ours).unwrap();
    assert!(
        read_run(&one)
            .unwrap_err()
            .message
            .contains("h.parquet is damaged or belongs to another run")
    );
    fs::write(&ours, right).unwrap();
    fs::copy(&theirs, one.join("events/another.parquet")).unwrap();
    assert!(
        read_run(&one)
            .unwrap_err()
            .message
            .contains("another.parquet is damaged or belongs to another run")
    );
    fs::remove_file(one.join("events/another.parquet")).unwrap();
    add(&one, 5);
    assert_eq!(read_run(&one).unwrap().at_ns, [1, 5]);
    fs::remove_file(&ours).unwrap();
    add(&one, 7);
    assert_eq!(read_run(&one).unwrap().at_ns, [7]);
}

fn add(run: &Path, at_ns: u64) {
    let (mut table, mut intake) = (EventTable::default(), Intake::begin(run).unwrap());
    table.push("A", "h", at_ns, &[]);
    intake.push(&table).unwrap();
    intake.finish().unwrap();
}

#[test]
fn a_killed_run_holds_what_was_done_and_says_that_it_is_incomplete() {
    let root = tempfile::tempdir().unwrap();
    let mut directory = begun(root.path());
    directory.append(&record(0)).unwrap();
    directory.append(&record(1)).unwrap();
    scribble(&directory, b"{\"measurement\":0,\"pa");
    let run = StoredRun::open(directory.path()).unwrap();
    assert!(!run.complete);
    assert_eq!(run.records, [record(0), record(1)]);
    assert_eq!(run.environment, serde_json::Value::Null);
}

fn scribble(directory: &RunDirectory, bytes: &[u8]) {
    let journal = directory.path().join(files::JOURNAL);
    fs::OpenOptions::new()
        .append(true)
        .open(journal)
        .unwrap()
        .write_all(bytes)
        .unwrap();
}

#[test]
fn a_damaged_journal_is_an_error_and_not_a_short_run() {
    let root = tempfile::tempdir().unwrap();
    let mut directory = begun(root.path());
    scribble(&directory, b"rubbish\n");
    directory.append(&record(0)).unwrap();
    assert!(
        StoredRun::open(directory.path())
            .unwrap_err()
            .message
            .starts_with("cannot read")
    );
}

#[test]
fn a_record_that_could_not_be_read_is_refused_and_the_others_are_kept() {
    let root = tempfile::tempdir().unwrap();
    let mut directory = begun(root.path());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut broken = record(1);
        broken.responder.usage.system_s = bad;
        directory.append(&record(0)).unwrap();
        let error = directory.append(&broken).unwrap_err();
        let said = "the record of measurement 0, part 0, run 1 was not saved: responder.usage.system_s is not a finite number";
        assert_eq!(error.to_string(), said);
    }
    assert_eq!(
        StoredRun::open(directory.path()).unwrap().records.len(),
        3,
        "a journal that can be read"
    );
    let mut broken = record(1);
    broken.calls.squares = f64::NAN;
    let path = directory.path().to_owned();
    let error = directory
        .finish(&[record(0), broken.clone(), record(2)], true, None)
        .unwrap_err();
    let run = StoredRun::open(&path).unwrap();
    assert_eq!(run.records, [record(0), record(2)]);
    assert_eq!((run.complete, run.reason), (false, Some(error.message)));
    assert!(results::write(&path.join(files::RESULTS), None, &[broken]).is_err());
    assert_eq!(
        StoredRun::open(&path).unwrap().records.len(),
        2,
        "the old file is untouched"
    );
}

#[test]
fn a_taken_name_gets_a_number() {
    let root = tempfile::tempdir().unwrap();
    let names: Vec<PathBuf> = (0..3)
        .map(|_| begun(root.path()).path().to_owned())
        .collect();
    assert!(
        names[1].ends_with("19700101-000000-rr-2") && names[2].ends_with("19700101-000000-rr-3")
    );
}

#[test]
fn an_incomplete_end_keeps_its_reason() {
    let root = tempfile::tempdir().unwrap();
    begun(root.path())
        .finish(&[], false, Some("the responder went away"))
        .unwrap();
    let run = open_under(root.path(), Path::new("19700101-000000-rr")).unwrap();
    assert_eq!(
        (run.complete, run.reason.as_deref()),
        (false, Some("the responder went away"))
    );
    assert!(run.records.is_empty());
}

#[test]
fn a_run_is_found_by_the_name_it_was_given_and_the_newest_by_last() {
    let root = tempfile::tempdir().unwrap();
    let make = |name: &str, second: u64| {
        let started = UNIX_EPOCH + Duration::from_secs(second);
        RunDirectory::create(root.path(), name, started, RunFileAccess::Private)
            .unwrap()
            .path()
            .to_owned()
    };
    let (old, base) = (make("base", 1), make("base", 7));
    let newest = make("base-line", 9);
    let found = |name: &str| find(root.path(), Path::new(name)).ok();
    assert_eq!(found("base"), Some(base.clone()));
    assert_eq!(found(old.file_name().unwrap().to_str().unwrap()), Some(old));
    assert_eq!(
        (found("last"), found("bas"), found("line")),
        (Some(newest), None, None)
    );
    let again = make("base", 7);
    assert_eq!(
        (found("base"), found("base-2")),
        (Some(again.clone()), Some(again))
    );
}

#[test]
fn a_missing_run_hints_at_the_newest() {
    let root = tempfile::tempdir().unwrap();
    let error = open_under(root.path(), Path::new("nothing")).unwrap_err();
    assert!(error.hint.contains("stackline run SPEC"), "{}", error.hint);
    begun(root.path());
    let error = open_under(root.path(), Path::new("nothing")).unwrap_err();
    assert_eq!(error.to_string(), "no run at nothing");
    assert!(
        error.hint.ends_with("is 19700101-000000-rr"),
        "{}",
        error.hint
    );
}

#[test]
fn a_missing_run_hints_at_names_like_it() {
    let root = tempfile::tempdir().unwrap();
    let hint = |word: &str| open_under(root.path(), Path::new(word)).unwrap_err().hint;
    for (name, second) in [("baseline", 1), ("other", 2), ("rr", 3)] {
        RunDirectory::create(
            root.path(),
            name,
            UNIX_EPOCH + Duration::from_secs(second),
            RunFileAccess::Private,
        )
        .unwrap();
    }
    for word in [
        "bas",
        "line",
        "basline",
        "baselines",
        "baesline",
        "bazeline",
    ] {
        assert_eq!(
            hint(word),
            "did you mean 19700101-000001-baseline?",
            "{word}"
        );
    }
    let begun = |word: &str| find(root.path(), Path::new(word)).ok();
    let baseline = root.path().join("19700101-000001-baseline");
    assert_eq!(begun("base"), Some(baseline.clone()));
    assert_eq!(begun("19700101-000001"), Some(baseline));
    let several = open_under(root.path(), Path::new("1970")).unwrap_err();
    assert_eq!(several.to_string(), "3 runs begin with 1970");
    assert!(
        hint("bslne").ends_with("is 19700101-000003-rr"),
        "three slips are another name"
    );
    assert!(
        hint("e").ends_with("19700101-000002-other, 19700101-000001-baseline"),
        "{}",
        hint("e")
    );
}

#[test]
fn a_directory_of_imported_events_needs_no_plan() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("old");
    fs::create_dir_all(path.join(files::EVENTS)).unwrap();
    let run = with_events_under(root.path(), Path::new("old")).unwrap();
    assert!(run.complete && run.plan.measurements.is_empty() && run.records.is_empty());
    assert!(with_events_under(root.path(), Path::new("nothing")).is_err());
    begun(root.path());
    let run = with_events_under(root.path(), Path::new("19700101-000000-rr")).unwrap();
    assert_eq!(run.plan.seed, 42, "a run that was measured keeps its plan");
}

#[test]
fn an_import_says_that_nothing_is_in_it_yet_and_when_killed_that_nothing_is() {
    let root = tempfile::tempdir().unwrap();
    let directory =
        RunDirectory::create(root.path(), "x", UNIX_EPOCH, RunFileAccess::Private).unwrap();
    let path = directory.path().to_owned();
    fs::create_dir_all(path.join("events/.unfinished-import-1")).unwrap();
    let opened = || {
        [StoredRun::open(&path), StoredRun::open_events(&path)]
            .map(|opened| opened.unwrap_err().message)
    };
    assert!(
        opened()
            .iter()
            .all(|said| said.contains("is still being written")),
        "{:?}",
        opened()
    );
    drop(directory);
    let ended = "is incomplete: it was stopped before its events were kept";
    assert!(
        opened().iter().all(|said| said.ends_with(ended)),
        "{:?}",
        opened()
    );
}

#[test]
fn a_run_without_a_plan_says_so() {
    let root = tempfile::tempdir().unwrap();
    let directory =
        RunDirectory::create(root.path(), "x", UNIX_EPOCH, RunFileAccess::Private).unwrap();
    let path = directory.path().to_owned();
    assert!(
        StoredRun::open(&path)
            .unwrap_err()
            .message
            .contains("is still being written")
    );
    drop(directory);
    assert!(
        StoredRun::open(&path)
            .unwrap_err()
            .message
            .ends_with("before its plan was saved")
    );
}
