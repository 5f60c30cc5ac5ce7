//! Reads a run directory back, complete or not, and finds runs by name.

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

/// The contents of a run directory.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The directory's path.
    pub path: PathBuf,
    /// The specification as it was given; empty when the run was killed before it was stored.
    pub specification: String,
    /// When the run started, UTC, ISO 8601; empty where its events were imported.
    pub started: String,
    /// The plan.
    pub plan: Plan,
    /// Description of the machines; null when the run was killed before it was stored.
    pub environment: serde_json::Value,
    /// The records, in the order they were made, including those of warm-up runs.
    pub records: Vec<RunRecord>,
    /// Whether everything planned was done.
    pub complete: bool,
    /// Why the run is not complete, where this is known; for a run in progress, how far it is.
    pub reason: Option<String>,
    /// Whether the process that writes the run is alive.
    pub running: bool,
}

impl StoredRun {
    /// Reads a run directory: `results.parquet`, or the journal when the run was killed before the results were
    /// written.
    ///
    /// A name without a slash is also looked for under [`runs_root`]: a directory's name, the name that a run was
    /// given (of several runs the newest), `last` for the newest run of all, or `last~2` for the third newest; also for
    /// the one run whose directory's name or given name begins with it, if it has at least four letters.
    ///
    /// # Errors
    /// When there is no such directory, it is not a run, or a file in it is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        open_under(&runs_root(), path)
    }

    /// Reads a run directory for its events. A run whose events were imported has no plan, no records and perhaps no
    /// status; these are empty then.
    ///
    /// # Errors
    /// When there is no such directory, it is neither a run nor has events, or a file in it is damaged.
    pub fn open_events(path: &Path) -> Result<Self, Error> {
        with_events_under(&runs_root(), path)
    }

    /// Stores findings about the run in place of earlier ones. Nothing is stored in a run of another user.
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

    /// Writes the run's report page into its directory and returns the path. Whatever has that name is replaced, and
    /// links are not followed.
    ///
    /// # Errors
    /// When the run belongs to another user, or its directory cannot be written.
    pub fn keep_page(&self, page: &str) -> Result<PathBuf, Error> {
        let path = self.page();
        let elsewhere = "write the page elsewhere with `stackline report RUN -o FILE`";
        files::must_be_own(&self.path).map_err(|error| Error {
            hint: elsewhere.to_owned(),
            ..error
        })?;
        replace_inside_with(&path, page.as_bytes()).map(|()| path)
    }

    /// The path of the report page; the page may not exist yet.
    #[must_use]
    pub fn page(&self) -> PathBuf {
        self.path.join(files::PAGE)
    }

    /// Whether the report page exists and is newer than the events and findings that it is made of.
    #[must_use]
    pub fn has_fresh_page(&self) -> bool {
        let changed = |path: &Path| {
            fs::symlink_metadata(path)
                .and_then(|about| about.modified())
                .ok()
        };
        let events = self.path.join(files::EVENTS);
        let within = fs::read_dir(&events)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let made_of = within.chain([events.clone(), self.path.join(files::FINDINGS)]);
        let newest = made_of.filter_map(|path| changed(&path)).max();
        let page = self.page();
        fs::symlink_metadata(&page).is_ok_and(|there| there.is_file()) && changed(&page) >= newest
    }

    /// The name of its directory, as a title.
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.path.file_name();
        name.map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The names of event files that the run had at its end and that are missing.
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

/// The directory of runs: `$STACKLINE_RUNS`, otherwise `./stackline-runs`.
#[must_use]
pub fn runs_root() -> PathBuf {
    env::var_os("STACKLINE_RUNS")
        .filter(|v| !v.is_empty())
        .map_or_else(|| "stackline-runs".into(), PathBuf::from)
}

/// Length of a run name's time stamp and the hyphen behind it, in bytes.
const STAMP: usize = 16;

/// The names of the runs under `root`, oldest first; none when it cannot be read.
#[must_use]
pub fn names(root: &Path) -> Vec<String> {
    named_by(root, |_| false)
}

/// The names of the runs under `root` and of what may be left of runs, oldest first: directories named as runs are.
pub(crate) fn names_with_remainders(root: &Path) -> Vec<String> {
    named_by(root, is_stamped)
}

/// The names of directories under `root` that have a status or are `accepted` without one, oldest first. Those that begin
/// with a full stop are runs that are being removed or added.
fn named_by(root: &Path, accepted: impl Fn(&str) -> bool) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_run = |name: &String| {
        !name.starts_with('.')
            && (accepted(name) || files::is_there(&root.join(name).join(files::STATUS)))
    };
    let mut names: Vec<String> = names.filter(is_run).collect();
    names.sort_by(|a, b| order(a).cmp(&order(b)));
    names
}

/// Whether a name begins as the names of run directories do: `20261120-235831-`.
pub(crate) fn is_stamped(name: &str) -> bool {
    let stamp = name.as_bytes().get(..STAMP);
    name.len() > STAMP
        && stamp.is_some_and(|stamp| {
            let fits = |(at, byte): (usize, &u8)| match at {
                8 | 15 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            };
            stamp.iter().enumerate().all(fits)
        })
}

/// The sort key of run names: the time stamp; in the same second the name; with the same name the number that was
/// appended.
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
    // Read before the status: a run that ends in between is then found complete, and not taken for killed.
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

/// The text that a run is in progress, and how much is done. With several seeds there may be more runs than the plan
/// has.
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

/// The paths where a run of that name may be.
fn candidates(root: &Path, path: &Path) -> impl Iterator<Item = PathBuf> {
    let bare = path.components().count() == 1;
    let given = path
        .to_str()
        .filter(|_| bare)
        .and_then(|name| newest(root, name));
    let begun = path
        .to_str()
        .filter(|_| bare && given.is_none())
        .and_then(|word| match &begun_by(&names(root), word)[..] {
            [one] => Some(root.join(one)),
            _ => None,
        });
    [
        Some(path.to_owned()),
        bare.then(|| root.join(path)),
        given,
        begun,
    ]
    .into_iter()
    .flatten()
}

/// The least length of a prefix that names a run: that of a year.
const LEAST_PREFIX: usize = 4;

/// The runs whose directory's name, or given name, begins with that word.
fn begun_by<'n>(names: &'n [String], word: &str) -> Vec<&'n String> {
    let begins = |name: &&String| {
        name.starts_with(word) || name.get(STAMP..).is_some_and(|name| name.starts_with(word))
    };
    match word.len() >= LEAST_PREFIX && !word.starts_with("last") {
        true => names.iter().filter(begins).collect(),
        false => Vec::new(),
    }
}

/// The newest run that was given that name; for `last` the newest of all.
fn newest(root: &Path, name: &str) -> Option<PathBuf> {
    // A directory is named by time stamp and hyphen, name, and a number where the name was taken.
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
    // `last~2` is the third newest.
    if let Some(back) = name
        .strip_prefix("last~")
        .and_then(|back| back.parse().ok())
    {
        return found.iter().nth_back(back).map(|name| root.join(name));
    }
    if !found.iter().any(|directory| given(directory) == Some(true)) && name == "last" {
        // Runs that began in the same second are ordered by when their directories were created.
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

/// The directory of a run that is named as for [`StoredRun::open`]; `None` when it is not found.
#[must_use]
pub fn directory_of(path: &Path) -> Option<PathBuf> {
    find(&runs_root(), path).ok()
}

/// The directory of a run that is named as for [`StoredRun::open`].
///
/// # Errors
/// When no run has that name, or its directory cannot be read.
pub fn located(path: &Path) -> Result<PathBuf, Error> {
    find(&runs_root(), path)
}

/// The path of the run that `path` names.
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

/// The error that there is no such run, with a hint at similar names.
fn missing(root: &Path, path: &Path) -> Error {
    let all = names(root);
    if path.is_file() {
        let hint = "if it is an archive, `stackline runs add FILE` adds it to the kept runs";
        return Error::input(format!("{} is a file, not a run", path.display()), hint);
    }
    let begun = path
        .to_str()
        .map_or_else(Vec::new, |word| begun_by(&all, word));
    if let [first, second, ..] = &begun[..] {
        let message = format!("{} runs begin with {}", begun.len(), path.display());
        return Error::input(
            message,
            format!("write more of the name, such as {first} or {second}"),
        );
    }
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

/// The newest runs that may have been meant: those whose name contains the word, or differs from it by one typing
/// error.
fn alike<'n>(names: &'n [String], word: &str) -> Vec<&'n str> {
    const MOST: usize = 3;
    // Time stamp and hyphen precede the name that was given.
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

/// Whether one insertion, deletion, substitution or exchange of neighbouring letters turns one text into the other.
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

/// The error that an import or `stackline watch` had stored nothing when it was stopped.
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

/// The records of the journal. A last line without a line break is incomplete because the run was killed, and is left
/// out.
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

/// The text of a file; `None` where it does not exist.
fn optional(path: &Path) -> Result<Option<String>, Error> {
    if files::is_there(path) {
        files::read(path).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
