//! What a rule removes and what it spares, also while others remove and write.

use super::*;
use crate::{RunDirectory, RunFileAccess};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::UNIX_EPOCH;

fn made(root: &Path, name: &str, at: u64, note: &str) -> PathBuf {
    let started = UNIX_EPOCH + Duration::from_secs(at);
    let run = RunDirectory::create(root, name, started, RunFileAccess::Private).unwrap();
    run.write_specification(note).unwrap();
    let path = run.path().to_owned();
    run.finish(&[], true, None).unwrap();
    path
}

fn nothing(_: &Path) -> Option<String> {
    None
}

fn chosen(root: &Path, rule: &PruneRule) -> Vec<KeptRun> {
    let now = SystemTime::now();
    to_prune(&RunList::open(root, now, nothing), rule, now)
}

fn names(runs: &[KeptRun]) -> Vec<&str> {
    runs.iter().map(|run| &run.name[16..]).collect()
}

fn tagged(run: &Path, tags: &[&str]) {
    let tags: BTreeSet<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    kept_run(run).unwrap().keep_tags(&tags).unwrap();
}

#[test]
fn large_runs_go_and_tags_protect_unless_the_rule_names_them() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    made(root, "small", 1, "");
    made(root, "large", 2, &"#".repeat(100_000));
    let tagged_run = made(root, "tagged", 3, &"#".repeat(100_000));
    let noted = made(root, "noted", 4, &"#".repeat(100_000));
    tagged(&tagged_run, &["nightly", "arm"]);
    tagged(&noted, &["nightly"]);
    kept_run(&noted).unwrap().keep_note("keep").unwrap();
    let larger = PruneRule {
        larger_than: Some(50_000),
        ..PruneRule::default()
    };
    assert_eq!(names(&chosen(root, &larger)), ["large"]);
    let nightly = PruneRule {
        tags: vec!["nightly".to_owned()],
        ..larger.clone()
    };
    assert_eq!(names(&chosen(root, &nightly)), ["tagged"]);
    let runs = chosen(root, &larger);
    kept_run(&runs[0].path).unwrap().keep_note("wait").unwrap();
    assert!(
        prune(runs, &larger).unwrap().is_empty(),
        "it got a note meanwhile"
    );
}

#[test]
fn two_that_prune_and_one_that_writes_at_once_all_succeed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for at in 0..60 {
        made(root, "old", at, "");
    }
    let all = PruneRule {
        keep: Some(0),
        ..PruneRule::default()
    };
    let removed = thread::scope(|scope| {
        let pruning = || scope.spawn(|| prune(chosen(root, &all), &all).unwrap().len());
        let threads = [pruning(), pruning()];
        let writer = scope.spawn(|| {
            for at in 100..130 {
                let started = UNIX_EPOCH + Duration::from_secs(at);
                let run =
                    RunDirectory::create(root, "new", started, RunFileAccess::Private).unwrap();
                run.write_specification("").unwrap();
                // What is complete may be removed at once; what is being written may not.
                run.finish(&[], true, None).unwrap();
            }
        });
        writer.join().unwrap();
        threads
            .map(|thread| thread.join().unwrap())
            .iter()
            .sum::<usize>()
    });
    assert!(removed >= 60, "{removed}");
    let rest = prune(chosen(root, &all), &all).unwrap().len();
    assert_eq!(removed + rest, 90);
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn what_killed_processes_left_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for name in [".removing-19700101-000000-a", ".adding-x", ".other"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    let left = |now| {
        remove_leftovers(root, now);
        fs::read_dir(root).unwrap().count()
    };
    assert_eq!(left(SystemTime::now()), 2, "it may still be unpacked");
    assert_eq!(left(SystemTime::now() + 2 * LEFT_BEHIND), 1);
}
