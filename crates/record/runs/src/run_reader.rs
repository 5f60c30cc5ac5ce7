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
mod tests;
