//! The runs in the directory of runs: what each measured, how it ended and how much disk space it takes; notes about
//! runs, and their removal.

use crate::events::read_index;
use crate::replace::replace_inside_with;
use crate::run_directory_writer::is_being_written;
use crate::run_reader::names;
use crate::{Error, RunStatus, files};
use serde::Deserialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The longest note, in bytes.
pub const LONGEST_NOTE: usize = 4096;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Everything planned was done.
    Complete,
    /// The run was interrupted, failed or was killed.
    Incomplete,
    /// The process that writes the run is alive.
    Running,
    /// The run's status cannot be read.
    Damaged,
}

impl RunState {
    /// The state's name in JSON, such as `complete`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Running => "running",
            Self::Damaged => "damaged",
        }
    }
}

/// A run in the directory of runs, without its results and events.
#[derive(Clone, Debug)]
pub struct KeptRun {
    /// The name of the run's directory.
    pub name: String,
    /// The path of the run's directory.
    pub path: PathBuf,
    /// When the run started, UTC, ISO 8601; empty where that is unknown.
    pub started: String,
    /// How the run ended, or whether it is still running.
    pub state: RunState,
    /// The measurements as written; for an import its sources; empty for a trace.
    pub about: Vec<String>,
    /// The user's note about the run.
    pub note: Option<String>,
    /// Size of its files, in bytes.
    pub bytes: u64,
}

impl KeptRun {
    fn read(root: &Path, name: String) -> Self {
        let path = root.join(&name);
        let status = RunStatus::read(&path);
        let state = match &status {
            Err(_) => RunState::Damaged,
            Ok(status) if status.complete => RunState::Complete,
            Ok(_) if is_being_written(&path) => RunState::Running,
            Ok(_) => RunState::Incomplete,
        };
        Self {
            started: status.map(|status| status.started).unwrap_or_default(),
            state,
            about: about(&path),
            note: files::read(&path.join(files::NOTE))
                .ok()
                .map(|note| note.trim_end().to_owned()),
            bytes: bytes(&path),
            name,
            path,
        }
    }

    /// When the run's status was last written; `None` where that cannot be read.
    #[must_use]
    pub fn ended(&self) -> Option<SystemTime> {
        fs::symlink_metadata(self.path.join(files::STATUS))
            .and_then(|status| status.modified())
            .ok()
    }

    /// Whether no process is writing it, and its status shows that the directory is a run.
    const fn is_removable(&self) -> bool {
        matches!(self.state, RunState::Complete | RunState::Incomplete)
    }

    /// Removes the run's directory. It is not an error if the directory does not exist any more.
    ///
    /// # Errors
    /// When the run is being written, is damaged, belongs to another user, or cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        // Any directory may have a file named `status.json`: a directory is removed only if it certainly is a run.
        if self.state == RunState::Damaged {
            return Err(Error::input(
                format!(
                    "{} was not removed: its status.json is not that of a run",
                    self.path.display()
                ),
                "look at what it holds, and remove it with `rm -r` if it is no longer needed",
            ));
        }
        if is_being_written(&self.path) {
            return Err(Error::input(
                format!("the run at {} is still being written", self.path.display()),
                "interrupt the command that writes it, then try again",
            ));
        }
        files::must_be_own(&self.path)?;
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::new(
                format!("cannot remove {}", self.path.display()),
                "check that its directory and the parent directory are writable",
            )
            .because(&error)),
            _ => Ok(()),
        }
    }

    /// Stores a note about the run in place of an earlier one; an empty note removes it.
    ///
    /// # Errors
    /// When the note is too long, or the run's directory cannot be written.
    pub fn keep_note(&self, note: &str) -> Result<(), Error> {
        if note.len() > LONGEST_NOTE {
            return Err(Error::input(
                format!("the note is {} bytes long", note.len()),
                format!("notes may be at most {LONGEST_NOTE} bytes long"),
            ));
        }
        files::must_be_own(&self.path)?;
        let path = self.path.join(files::NOTE);
        if !note.trim().is_empty() {
            return replace_inside_with(&path, format!("{}\n", note.trim()).as_bytes());
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::writing(&path, &error)),
            _ => Ok(()),
        }
    }
}

/// The runs under `root`, newest first. Each is read when the iterator reaches it.
pub fn kept_runs(root: &Path) -> impl Iterator<Item = KeptRun> {
    let mut all = names(root);
    all.reverse();
    let root = root.to_owned();
    all.into_iter().map(move |name| KeptRun::read(&root, name))
}

/// The run with this directory; `None` where the path has no usable name.
#[must_use]
pub fn kept_run(path: &Path) -> Option<KeptRun> {
    let name = path.file_name()?.to_str()?.to_owned();
    Some(KeptRun::read(path.parent()?, name))
}

/// Which runs to remove; a run is removed if any of the criteria applies.
#[derive(Clone, Copy, Debug, Default)]
pub struct PruneRule {
    /// Removes all but this number of the newest runs.
    pub keep: Option<usize>,
    /// Removes runs that ended longer ago than this.
    pub older_than: Option<Duration>,
    /// Removes the oldest runs until the rest takes at most this many bytes.
    pub most_bytes: Option<u64>,
}

/// The runs that a rule removes, newest first. Runs that are being written, are damaged or have a note are never
/// removed.
#[must_use]
pub fn to_prune(root: &Path, rule: PruneRule, now: SystemTime) -> Vec<KeptRun> {
    let mut sum = 0_u64;
    let mut pruned = Vec::new();
    for (at, run) in kept_runs(root).enumerate() {
        let stays = !run.is_removable() || run.note.is_some();
        let age = run.ended().and_then(|ended| now.duration_since(ended).ok());
        let is_old = rule
            .older_than
            .is_some_and(|most| age.is_some_and(|age| age > most));
        let is_beyond = rule.keep.is_some_and(|keep| at >= keep);
        if stays || !(is_old || is_beyond) {
            sum = sum.saturating_add(run.bytes);
        }
        // Once a run exceeds the limit, all older ones are removed too, however small they are.
        let is_large = rule.most_bytes.is_some_and(|most| sum > most);
        if (is_old || is_beyond || is_large) && !stays {
            pruned.push(run);
        }
    }
    pruned
}

/// The part of a plan that is needed here: the texts of its measurements.
#[derive(Deserialize)]
struct PlanTexts {
    measurements: Vec<MeasurementText>,
}

#[derive(Deserialize)]
struct MeasurementText {
    text: String,
}

/// What the run is about: the texts of its measurements, or the sources of its imports.
fn about(run: &Path) -> Vec<String> {
    let plan = files::read(&run.join(files::PLAN)).ok();
    let plan: Option<PlanTexts> = plan.and_then(|text| serde_json::from_str(&text).ok());
    let texts: Vec<String> = plan
        .into_iter()
        .flat_map(|plan| plan.measurements)
        .map(|measurement| measurement.text)
        .collect();
    if !texts.is_empty() {
        return texts;
    }
    let index = read_index(run).ok().flatten().unwrap_or_default();
    index
        .imports
        .into_iter()
        .map(|import| format!("import {}", import.source))
        .collect()
}

/// The size of a directory's files, in bytes, down to two levels of directories below it; links are not followed.
fn bytes(directory: &Path) -> u64 {
    fn folder_bytes(directory: &Path, depth: u32) -> u64 {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let size = |entry: fs::DirEntry| match entry.metadata() {
            Ok(found) if found.is_dir() && depth > 0 => folder_bytes(&entry.path(), depth - 1),
            Ok(found) if found.is_file() => found.len(),
            _ => 0,
        };
        entries.map(size).sum()
    }
    folder_bytes(directory, 2)
}
