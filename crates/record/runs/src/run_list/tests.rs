//! Thousands of runs, some of which are not what they should be.

use super::*;
use crate::kept_runs::RunState;
use crate::run_index::{INDEX, index_ended_run};
use crate::{RunDirectory, RunFileAccess, files};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A run that ended at once; `at` orders runs by time.
fn made(root: &Path, name: &str, at: u64) -> PathBuf {
    let started = UNIX_EPOCH + Duration::from_secs(at);
    let run = RunDirectory::create(root, name, started, RunFileAccess::Private).unwrap();
    let path = run.path().to_owned();
    run.finish(&[], true, None).unwrap();
    path
}

fn nothing(_: &Path) -> Option<String> {
    None
}

/// A moment at which nothing of this test may change unnoticed any more.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_secs(60)
}

#[test]
fn a_run_is_read_once_and_again_when_it_changed() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    fn counted(_: &Path) -> Option<String> {
        READ.fetch_add(1, Ordering::Relaxed);
        Some("1.00 ms".to_owned())
    }
    let root = tempfile::tempdir().unwrap();
    let most = WORTH_INDEXING as u64;
    for at in 0..most {
        made(root.path(), "a", at);
    }
    let listed = |expected: usize| {
        READ.store(0, Ordering::Relaxed);
        let mut list = RunList::open(root.path(), later(), counted);
        let runs: Vec<KeptRun> = (0..list.len()).filter_map(|at| list.run(at)).collect();
        let bytes = list.bytes();
        assert_eq!(READ.load(Ordering::Relaxed), expected);
        assert_eq!(bytes, runs.iter().map(|run| run.bytes).sum::<u64>());
        assert!(runs.is_sorted_by(|one, next| one.name > next.name));
        list.store();
        runs
    };
    let runs = listed(WORTH_INDEXING);
    assert_eq!(listed(0).len(), WORTH_INDEXING);
    runs[3].keep_note("a new kernel").unwrap();
    let again = listed(1);
    assert_eq!(again[3].facts.note.as_deref(), Some("a new kernel"));
    assert_eq!(again[3].facts.headline.as_deref(), Some("1.00 ms"));
    assert!(runs[5].remove().unwrap());
    assert!(!runs[5].remove().unwrap(), "another process removed it");
    assert_eq!(listed(0).len(), WORTH_INDEXING - 1);
    fs::write(root.path().join(INDEX), "neither a header\nnor a run").unwrap();
    assert_eq!(listed(WORTH_INDEXING - 1).len(), WORTH_INDEXING - 1);
}

#[test]
fn a_run_that_ended_is_listed_without_being_opened() {
    fn opened(path: &Path) -> Option<String> {
        panic!("{} was opened", path.display())
    }
    let root = tempfile::tempdir().unwrap();
    for at in 0..WORTH_INDEXING as u64 + 5 {
        let run = made(root.path(), "a", at);
        index_ended_run(&run, Some(format!("{at}.0 ms")));
    }
    let index = fs::read_to_string(root.path().join(INDEX)).unwrap();
    assert_eq!(
        index.lines().count(),
        1 + 6,
        "a header, and those since there are many"
    );
    let mut list = RunList::open(root.path(), SystemTime::now(), opened);
    let newest = list.run(0).unwrap();
    assert_eq!(newest.facts.headline.as_deref(), Some("68.0 ms"));
    assert!(newest.bytes > 0);
    newest.keep_note("at once").unwrap();
    let list = RunList::open(root.path(), SystemTime::now(), opened);
    let noted = list.run_without_headline(0).unwrap();
    assert_eq!(noted.facts.note.as_deref(), Some("at once"));
    assert_eq!(noted.facts.headline, None, "its line is void");
}

#[test]
fn an_unfinished_run_is_not_indexed() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(INDEX), "").unwrap();
    let running = RunDirectory::create(root.path(), "a", UNIX_EPOCH, RunFileAccess::Private);
    let running = running.unwrap();
    index_ended_run(running.path(), None);
    assert_eq!(fs::read(root.path().join(INDEX)).unwrap(), b"");
}

#[test]
fn what_just_changed_is_not_indexed() {
    let root = tempfile::tempdir().unwrap();
    made(root.path(), "a", 1);
    let mut list = RunList::open(root.path(), SystemTime::now(), nothing);
    list.bytes();
    list.run(0);
    assert!(list.index.is_empty());
}

#[test]
fn each_bad_day_is_listed_with_what_is_wrong() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let half = made(root, "half", 1);
    fs::remove_file(half.join(files::STATUS)).unwrap();
    let torn = made(root, "torn", 2);
    fs::write(torn.join(files::STATUS), "{\"complete\": tr").unwrap();
    let newer = made(root, "newer", 3);
    let status = fs::read_to_string(newer.join(files::STATUS)).unwrap();
    let status = status.replace(env!("CARGO_PKG_VERSION"), "99.0.0");
    fs::write(newer.join(files::STATUS), &status).unwrap();
    let eventless = made(root, "eventless", 4);
    let status = fs::read_to_string(eventless.join(files::STATUS)).unwrap();
    let status = status.replacen('{', "{\"events\": {\"khons.parquet\": 1},", 1);
    fs::write(eventless.join(files::STATUS), status).unwrap();
    let started = UNIX_EPOCH + Duration::from_secs(5);
    let running = RunDirectory::create(root, "running", started, RunFileAccess::Private).unwrap();
    // Neither a run nor what is left of one.
    fs::create_dir_all(root.join("19700101-000006-other/data")).unwrap();
    fs::create_dir_all(root.join("project")).unwrap();
    fs::write(root.join("notes.txt"), "x").unwrap();

    let mut list = RunList::open(root, later(), nothing);
    let runs: Vec<KeptRun> = (0..list.len()).filter_map(|at| list.run(at)).collect();
    let of = |name: &str| runs.iter().find(|run| run.name.ends_with(name)).unwrap();
    assert_eq!(runs.len(), 5, "{runs:?}");
    let wrong = |name: &str| of(name).facts.wrong.clone().unwrap_or_default();
    assert!(wrong("-half").contains("status.json is missing"));
    assert!(wrong("-torn").contains("cannot be read"));
    assert!(wrong("-newer").contains("99.0.0, which is newer"));
    assert!(wrong("-eventless").contains("1 of 1 files of events are missing"));
    assert_eq!(of("-running").facts.state, RunState::Running);
    assert!(of("-running").remove().is_err());
    assert!(
        of("-half").remove().unwrap(),
        "it is certain that it was a run"
    );
    assert!(half.parent().unwrap().exists() && !half.exists());
    drop(running);
}
