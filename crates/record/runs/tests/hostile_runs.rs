//! A run that somebody else made can do no more than be refused: its reader follows no link, waits for no pipe, reads nothing without an
//! end, and writes nothing outside of it.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use nix::sys::stat::Mode;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::trace_index::Index;
use stackline_events::{EventLog, keyword};
use stackline_runs::events::{SortStopSignal, Spooling, read_index, read_run, write_index};
use stackline_runs::{RunDirectory, RunFileAccess, StoredRun};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A complete run with one record and one event.
fn run(root: &Path) -> PathBuf {
    run_for(root, RunFileAccess::Private)
}

fn run_for(root: &Path, access: RunFileAccess) -> PathBuf {
    let mut directory = RunDirectory::create(root, "rr", UNIX_EPOCH, access).unwrap();
    let record = RunRecord {
        elapsed_ns: 1_000,
        ..RunRecord::default()
    };
    directory.write_specification("10 rr 32;").unwrap();
    directory
        .write_plan(&Plan {
            seed: 1,
            hosts: Default::default(),
            networks: Vec::new(),
            measurements: Vec::new(),
        })
        .unwrap();
    directory.write_environment(&serde_json::json!({})).unwrap();
    directory.append(&record).unwrap();
    let spool = Spooling::start(directory.path()).unwrap();
    let mut log = EventLog::default();
    log.host("khons");
    log.push(keyword::intern("APP_SEND"), 1, &[]);
    spool.append("khons", &log).unwrap();
    spool.settle(&SortStopSignal::default()).unwrap();
    let path = directory.path().to_owned();
    write_index(&path, &Index::default()).unwrap();
    directory.finish(&[record], true, None).unwrap();
    path
}

/// All that readers read of a run.
fn read(run: &Path) -> Result<(), stackline_runs::Error> {
    StoredRun::open(run)?;
    read_index(run)?;
    read_run(run).map(drop)
}

const FILES: &[&str] = &[
    "status.json",
    "plan.json",
    "specification.stackline",
    "environment.json",
    "results.parquet",
    "events/index.json",
    "events/khons.parquet",
    "events",
];

#[test]
fn what_is_no_regular_file_inside_is_refused() {
    type Make = fn(&Path, &Path);
    let kinds: [(&str, Make); 4] = [
        ("a link to the right file", |path, right| {
            symlink(right, path).unwrap()
        }),
        ("a pipe", |path, _| {
            nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap()
        }),
        ("a link to a device", |path, _| {
            symlink("/dev/zero", path).unwrap()
        }),
        ("a socket", |path, _| {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap())
        }),
    ];
    for name in FILES {
        for (kind, make) in kinds {
            let (ours, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (path, right) = (run(ours.path()), others.path().join("moved"));
            read(&path).unwrap();
            fs::rename(path.join(name), &right).unwrap();
            make(&path.join(name), &right);
            let error = read(&path).expect_err(&format!("{kind} in the place of {name} was read"));
            assert!(!error.hint.is_empty(), "{error:?}");
        }
    }
}

#[test]
fn a_file_without_an_end_is_refused() {
    for name in FILES
        .iter()
        .filter(|name| !name.ends_with("khons.parquet") && **name != "events")
    {
        let root = tempfile::tempdir().unwrap();
        let path = run(root.path());
        File::create(path.join(name))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let error = read(&path).expect_err(&format!("a terabyte of {name} was read"));
        assert!(
            error.to_string().contains("more than") || error.to_string().contains("larger"),
            "{name}: {error:?}"
        );
    }
}

#[test]
fn readers_write_nothing_through_links() {
    let (root, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, precious) = (run(root.path()), others.path().join("precious"));
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, path.join("findings.json")).unwrap();
    symlink(others.path().join("new"), path.join("report.html")).unwrap();
    let kept = StoredRun::open(&path).unwrap();
    kept.keep_findings(&serde_json::json!([])).unwrap();
    let page = kept.keep_page("<p>").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert!(!others.path().join("new").exists());
    assert_eq!(fs::read_to_string(page).unwrap(), "<p>");
    // A name that a file elsewhere has too, as an archive may unpack it.
    fs::remove_file(path.join("findings.json")).unwrap();
    fs::hard_link(&precious, path.join("findings.json")).unwrap();
    kept.keep_findings(&serde_json::json!([])).unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    // A directory of events that leads elsewhere: nothing is added there.
    fs::rename(path.join("events"), others.path().join("events")).unwrap();
    symlink(others.path().join("events"), path.join("events")).unwrap();
    let before = fs::read_dir(others.path().join("events")).unwrap().count();
    assert!(write_index(&path, &Index::default()).is_err() && Spooling::start(&path).is_err());
    assert_eq!(
        fs::read_dir(others.path().join("events")).unwrap().count(),
        before
    );
}

#[test]
fn a_run_is_its_user_s_unless_it_is_shared() {
    fn modes(path: &Path, found: &mut Vec<(String, u32)>) {
        let mode = fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        found.push((
            path.file_name().unwrap().to_string_lossy().into_owned(),
            mode,
        ));
        if path.is_dir() {
            fs::read_dir(path)
                .unwrap()
                .for_each(|entry| modes(&entry.unwrap().path(), found));
        }
    }
    for (access, expected) in [
        (RunFileAccess::Private, [0o700, 0o600]),
        (RunFileAccess::Shared, [0o755, 0o644]),
    ] {
        let root = tempfile::tempdir().unwrap();
        let path = run_for(root.path(), access);
        StoredRun::open(&path)
            .unwrap()
            .keep_findings(&serde_json::json!([]))
            .unwrap();
        let mut found = Vec::new();
        modes(&path, &mut found);
        assert!(
            found.len() > 8 && found.iter().all(|(_, mode)| expected.contains(mode)),
            "{access:?}: {found:?}"
        );
    }
}

#[test]
fn events_that_are_missing_are_named() {
    let root = tempfile::tempdir().unwrap();
    let path = run(root.path());
    assert_eq!(
        StoredRun::open(&path).unwrap().missing_events(),
        Vec::<String>::new()
    );
    fs::remove_file(path.join("events/khons.parquet")).unwrap();
    assert_eq!(
        StoredRun::open(&path).unwrap().missing_events(),
        ["khons.parquet"]
    );
}

/// Gives something to another user, links themselves; only root can.
fn give_away(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::read_dir(path)
            .unwrap()
            .for_each(|entry| give_away(&entry.unwrap().path()));
    }
    std::os::unix::fs::lchown(path, Some(65_534), Some(65_534)).unwrap();
}

#[test]
fn nothing_is_written_into_a_run_of_another_user() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let path = run(root.path());
    give_away(&path);
    let before = fs::read_dir(&path).unwrap().count();
    let kept = StoredRun::open(&path).unwrap();
    assert!(Spooling::start(&path).is_err() && write_index(&path, &Index::default()).is_err());
    assert!(kept.keep_page("<p>").unwrap_err().hint.contains("-o FILE"));
    kept.keep_findings(&serde_json::json!([])).unwrap();
    assert_eq!(fs::read_dir(&path).unwrap().count(), before);
}

#[test]
fn outputs_avoid_what_others_put_into_a_directory_for_all() {
    let (public, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::set_permissions(public.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let (precious, out) = (own.path().join("precious"), public.path().join("out"));
    fs::write(&precious, "precious").unwrap();
    // A file of one's own under another name.
    fs::hard_link(&precious, &out).unwrap();
    stackline_runs::replace_with(&out, b"x").unwrap_err();
    fs::remove_file(&out).unwrap();
    if nix::unistd::geteuid().is_root() {
        symlink(&precious, &out).unwrap();
        give_away(&out);
        stackline_runs::replace_with(&out, b"x").unwrap_err();
        fs::remove_file(&out).unwrap();
        // Nobody reads this pipe: it would be waited for.
        nix::unistd::mkfifo(&out, Mode::S_IRWXU).unwrap();
        give_away(&out);
        stackline_runs::replace_with(&out, b"x").unwrap_err();
        fs::remove_file(&out).unwrap();
        // The directory of all runs, too.
        symlink(own.path(), &out).unwrap();
        give_away(&out);
        RunDirectory::create(&out, "rr", UNIX_EPOCH, RunFileAccess::Private).unwrap_err();
        fs::remove_file(&out).unwrap();
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    stackline_runs::replace_with(&out, b"x").unwrap();
    let links = own.path().join("link");
    symlink(&precious, &links).unwrap();
    stackline_runs::replace_with(&links, b"ours").unwrap();
    assert_eq!(
        fs::read_to_string(&precious).unwrap(),
        "ours",
        "one's own link in one's own directory is followed"
    );
}
