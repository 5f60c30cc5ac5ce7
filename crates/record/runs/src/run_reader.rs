//! Reading a run directory back, complete or not.

use crate::events::event_files;
use crate::plausible::can_be_summed;
use crate::replace::replace_inside_with;
use crate::run_directory_writer::is_being_written;
use crate::{Error, RunStatus, files, results};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What a run directory holds.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Where it is.
    pub path: PathBuf,
    /// The specification as it was given; empty when the run was killed before it was kept.
    pub specification: String,
    /// When it started, UTC, ISO 8601; empty where its events were imported.
    pub started: String,
    /// What was to be done.
    pub plan: Plan,
    /// What the machines were like; null when the run was killed before that was known.
    pub environment: serde_json::Value,
    /// What was done, in the order it was done, warm-up runs too.
    pub records: Vec<RunRecord>,
    /// Whether everything planned was done.
    pub complete: bool,
    /// Why not, where the run could record it, or that it is still running and how far it is.
    pub reason: Option<String>,
    /// Whether the process that writes it lives.
    pub running: bool,
}

impl StoredRun {
    /// Reads a run directory: `results.parquet`, or the journal when the run was killed before that was written.
    /// A name without a slash is also looked for under [`runs_root`]: the directory's name, the name the run was given (of
    /// several runs the newest), or `last` for the newest run of all.
    ///
    /// # Errors
    /// When there is no such directory, it is not one of a run, or a file in it is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        open_under(&runs_root(), path)
    }

    /// Reads a directory for its events. One whose events were imported has no plan, no records and perhaps no status: they
    /// are empty then.
    ///
    /// # Errors
    /// When there is no such directory, it is neither of a run nor has events, or a file in it is damaged.
    pub fn open_events(path: &Path) -> Result<Self, Error> {
        with_events_under(&runs_root(), path)
    }

    /// Keeps what was found out about it, in place of what was kept before. A run of another user is only read, and nothing is kept.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn keep_findings(&self, findings: &serde_json::Value) -> Result<(), Error> {
        if !files::is_own(&self.path) {
            return Ok(());
        }
        replace_inside_with(
            &self.path.join(files::FINDINGS),
            format!("{findings:#}\n").as_bytes(),
        )
    }

    /// Writes the run's page into its directory; where. What has that name gives way to it, and links are not followed.
    ///
    /// # Errors
    /// When the run is another user's, or its directory cannot be written.
    pub fn keep_page(&self, page: &str) -> Result<PathBuf, Error> {
        let path = self.page();
        let elsewhere = "write the page elsewhere with `stackline report RUN -o FILE`";
        files::must_be_own(&self.path).map_err(|error| Error {
            hint: elsewhere.to_owned(),
            ..error
        })?;
        replace_inside_with(&path, page.as_bytes()).map(|()| path)
    }

    /// Where its page is, if it has been written.
    #[must_use]
    pub fn page(&self) -> PathBuf {
        self.path.join(files::PAGE)
    }

    /// Files of events that the run had at its end and that are missing now, by name.
    #[must_use]
    pub fn missing_events(&self) -> Vec<String> {
        let path = &self.path;
        if !files::is_there(&path.join(files::STATUS)) {
            return Vec::new();
        }
        let had = RunStatus::read(path)
            .map(|status| status.events)
            .unwrap_or_default();
        had.into_keys()
            .filter(|name| !files::is_there(&path.join(files::EVENTS).join(name)))
            .collect()
    }
}

/// Where runs are kept: `$STACKLINE_RUNS`, else `./stackline-runs`.
#[must_use]
pub fn runs_root() -> PathBuf {
    env::var_os("STACKLINE_RUNS")
        .filter(|v| !v.is_empty())
        .map_or_else(|| "stackline-runs".into(), PathBuf::from)
}

/// Bytes of when a run began, and the hyphen behind it.
const STAMP: usize = 16;

/// The names of the runs under `root`, oldest first; none when it cannot be read.
#[must_use]
pub fn names(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let runs = entries.filter(|entry| files::is_there(&entry.path().join(files::STATUS)));
    let mut names: Vec<String> = runs
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by(|a, b| order(a).cmp(&order(b)));
    names
}

/// By when runs began; of one second by name, and of one name by the number that the second and all after it got.
fn order(run: &str) -> (&str, &str, u64) {
    let (stamp, name) = run.split_at_checked(STAMP).unwrap_or((run, ""));
    let numbered = name
        .rsplit_once('-')
        .and_then(|(name, number)| Some((name, number.parse().ok()?)));
    let (name, number) = numbered.unwrap_or((name, 1));
    (stamp, name, number)
}

fn open_under(root: &Path, path: &Path) -> Result<StoredRun, Error> {
    let path = find(root, path)?;
    // Before the status: a run that ends in between is complete then, and not killed.
    let running = is_being_written(&path);
    let status = RunStatus::read(&path)?;
    status.check(&path)?;
    let (plan, environment) = (plan(&path)?, environment(&path)?);
    let specification = optional(&path.join(files::SPECIFICATION))?.unwrap_or_default();
    let records = records(&path)?;
    let RunStatus {
        complete,
        reason,
        started,
        ..
    } = status;
    let running = running && !complete && reason.is_none();
    let reason = reason.or_else(|| running.then(|| how_far(&plan, &records)));
    Ok(StoredRun {
        path,
        specification,
        started,
        plan,
        environment,
        records,
        complete,
        reason,
        running,
    })
}

/// That a run is still running, and what of it is done. Several seeds make more runs than the plan has.
fn how_far(plan: &Plan, records: &[RunRecord]) -> String {
    let counted = records.iter().filter(|record| !record.warmup);
    let done = counted
        .map(|record| (record.measurement, record.run))
        .collect::<BTreeSet<_>>()
        .len();
    let all: usize = plan
        .measurements
        .iter()
        .map(|measurement| measurement.runs as usize)
        .sum();
    let of = if done > all {
        String::new()
    } else {
        format!(" of {all}")
    };
    format!("it is still running; runs done: {done}{of}")
}

fn with_events_under(root: &Path, path: &Path) -> Result<StoredRun, Error> {
    let imported = candidates(root, path).find(|candidate| {
        files::is_there(&candidate.join(files::EVENTS))
            && !files::is_there(&candidate.join(files::PLAN))
    });
    let Some(path) = imported else {
        return open_under(root, path);
    };
    let running = is_being_written(&path);
    let status = files::is_there(&path.join(files::STATUS))
        .then(|| RunStatus::read(&path))
        .transpose()?;
    status.iter().try_for_each(|status| status.check(&path))?;
    if status.as_ref().is_some_and(|status| !status.complete) && event_files(&path).is_err() {
        return Err(without_anything(&path));
    }
    let plan = Plan {
        seed: 0,
        hosts: BTreeMap::new(),
        networks: Vec::new(),
        measurements: Vec::new(),
    };
    let (complete, reason, started) = status.map_or_else(
        || (true, None, String::new()),
        |status| (status.complete, status.reason, status.started),
    );
    let running = running && !complete;
    let reason = reason.or_else(|| running.then(|| "it is still being written".to_owned()));
    let (specification, environment) = (String::new(), serde_json::Value::Null);
    Ok(StoredRun {
        path,
        specification,
        started,
        plan,
        environment,
        records: Vec::new(),
        complete,
        reason,
        running,
    })
}

/// Where a run of that name may lie.
fn candidates(root: &Path, path: &Path) -> impl Iterator<Item = PathBuf> {
    let bare = path.components().count() == 1;
    let given = path
        .to_str()
        .filter(|_| bare)
        .and_then(|name| newest(root, name));
    [Some(path.to_owned()), bare.then(|| root.join(path)), given]
        .into_iter()
        .flatten()
}

/// The newest run that was given that name, or of all for `last`.
fn newest(root: &Path, name: &str) -> Option<PathBuf> {
    // The stamp and its hyphen, the name, and a number where the whole was taken.
    let given = |directory: &str| {
        let rest = directory.get(STAMP..)?.strip_prefix(name)?;
        Some(
            rest.is_empty()
                || rest
                    .strip_prefix('-')?
                    .bytes()
                    .all(|byte| byte.is_ascii_digit()),
        )
    };
    let mut found = names(root);
    // `last~2`: the third newest.
    if let Some(back) = name
        .strip_prefix("last~")
        .and_then(|back| back.parse().ok())
    {
        return found.iter().nth_back(back).map(|name| root.join(name));
    }
    if !found.iter().any(|directory| given(directory) == Some(true)) && name == "last" {
        // Runs that began in one second: by when their directories were made.
        return found
            .into_iter()
            .map(|name| root.join(name))
            .max_by_key(|path| {
                let stamp = path
                    .file_name()
                    .and_then(|name| name.to_str()?.get(..15))
                    .map(ToOwned::to_owned);
                (
                    stamp,
                    fs::metadata(path).and_then(|entry| entry.created()).ok(),
                )
            });
    }
    found.retain(|directory| given(directory) == Some(true));
    found.pop().map(|directory| root.join(directory))
}

/// The directory of a run that is named as [`StoredRun::open`] says.
#[must_use]
pub fn directory_of(path: &Path) -> Option<PathBuf> {
    find(&runs_root(), path).ok()
}

/// The directory of a run that is named as [`StoredRun::open`] says.
///
/// # Errors
/// No run has that name, or its directory cannot be read.
pub fn located(path: &Path) -> Result<PathBuf, Error> {
    find(&runs_root(), path)
}

fn find(root: &Path, path: &Path) -> Result<PathBuf, Error> {
    let found =
        candidates(root, path).find(|candidate| files::is_there(&candidate.join(files::STATUS)));
    let denied = || candidates(root, path).find(|candidate| is_denied(candidate));
    found.ok_or_else(|| {
        denied().map_or_else(
            || missing(root, path),
            |run| Error::reading(&run, &std::io::Error::from(ErrorKind::PermissionDenied)),
        )
    })
}

fn is_denied(run: &Path) -> bool {
    fs::symlink_metadata(run.join(files::STATUS))
        .is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn missing(root: &Path, path: &Path) -> Error {
    let all = names(root);
    let alike = path
        .to_str()
        .map_or_else(Vec::new, |word| alike(&all, word));
    let hint = match (all.last(), alike.as_slice()) {
        (None, _) => format!(
            "no runs are kept under {}; `stackline run SPEC` creates one",
            root.display()
        ),
        (Some(newest), []) => format!("the newest run under {} is {newest}", root.display()),
        (_, [one]) => format!("did you mean {one}?"),
        (_, several) => format!(
            "similar names under {}: {}",
            root.display(),
            several.join(", ")
        ),
    };
    Error::input(format!("no run at {}", path.display()), hint)
}

/// The newest runs that may have been meant: whose name contains the word, or was given as one that a slip of the pen makes of it.
fn alike<'n>(names: &'n [String], word: &str) -> Vec<&'n str> {
    const MOST: usize = 3;
    // The stamp and its hyphen stand before the name that was given.
    let meant =
        |name: &&str| name.contains(word) || is_one_edit(name.get(STAMP..).unwrap_or(name), word);
    names
        .iter()
        .rev()
        .map(String::as_str)
        .filter(|_| !word.is_empty())
        .filter(meant)
        .take(MOST)
        .collect()
}

/// Whether one letter more, less, other or exchanged with its neighbour makes one of the other.
fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let end = a[start..]
        .iter()
        .rev()
        .zip(b[start..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (a, b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    a.len().max(b.len()) == 1 || matches!((a, b), ([a, b], [c, d]) if (a, b) == (d, c))
}

fn plan(run: &Path) -> Result<Plan, Error> {
    let path = run.join(files::PLAN);
    let text = optional(&path)?.ok_or_else(|| {
        if event_files(run).is_ok() {
            let message = format!(
                "the run at {} has events but no measurements",
                run.display()
            );
            return Error::new(
                message,
                "`stackline lifelines`, `report` and `query` read events",
            );
        }
        if files::is_there(&run.join(files::EVENTS)) {
            return without_anything(run);
        }
        if is_being_written(run) {
            return Error::unfinished(run);
        }
        let message = format!(
            "the run at {} was stopped before its plan was saved",
            run.display()
        );
        Error::new(message, "it measured nothing; run the specification again")
    })?;
    serde_json::from_str(&text).map_err(|cause| Error::reading(&path, &cause))
}

/// That an import, or what watches a machine, had kept nothing when it was killed.
fn without_anything(run: &Path) -> Error {
    if is_being_written(run) {
        return Error::unfinished(run);
    }
    let message = format!(
        "the run at {} is incomplete: it was stopped before its events were kept",
        run.display()
    );
    Error::new(
        message,
        "it is empty; repeat `stackline import` or `stackline watch`",
    )
}

fn environment(run: &Path) -> Result<serde_json::Value, Error> {
    let path = run.join(files::ENVIRONMENT);
    let Some(text) = optional(&path)? else {
        return Ok(serde_json::Value::Null);
    };
    serde_json::from_str(&text).map_err(|cause| Error::reading(&path, &cause))
}

fn records(run: &Path) -> Result<Vec<RunRecord>, Error> {
    let results = run.join(files::RESULTS);
    let is_there = files::is_there(&results);
    let path = if is_there {
        results
    } else {
        run.join(files::JOURNAL)
    };
    let records = if is_there {
        results::read(&path)
    } else {
        journal(&path)
    }?;
    match can_be_summed(&records) {
        true => Ok(records),
        false => Err(Error::reading(
            &path,
            &"its numbers are too large to be summed",
        )),
    }
}

/// The records of the journal. A last line without an end was torn when the run was killed, and is left out.
fn journal(path: &Path) -> Result<Vec<RunRecord>, Error> {
    let mut bytes = Vec::new();
    match files::open_bounded(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(Error::reading(path, &cause)),
    }
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let lines = bytes[..whole]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).map_err(|cause| Error::reading(path, &cause)))
        .collect()
}

/// A text that may not be there yet.
fn optional(path: &Path) -> Result<Option<String>, Error> {
    if files::is_there(path) {
        files::read(path).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
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
            names[1].ends_with("19700101-000000-rr-2")
                && names[2].ends_with("19700101-000000-rr-3")
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
            "base",
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
}
