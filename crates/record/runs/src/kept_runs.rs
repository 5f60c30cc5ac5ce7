//! One run in the directory of runs: what it measured, how it ended and how much disk space it takes; its note, its tags
//! and its removal.

use crate::events::read_index;
use crate::replace::replace_inside_with;
use crate::run_directory_writer::is_being_written;
use crate::run_index::forget_indexed_run;
use crate::run_reader::{is_stamped, located, runs_root};
use crate::{Error, RunStatus, files};
use serde::{Deserialize, Serialize};
use stackline_core::plan::World;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The longest note, in bytes.
pub const LONGEST_NOTE: usize = 4096;
/// The longest tag, in bytes.
pub const LONGEST_TAG: usize = 64;
/// Most tags of a run.
pub const MOST_TAGS: usize = 64;
/// The beginning of the names that runs have while they are being removed.
pub(crate) const REMOVING: &str = ".removing-";

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// What is known of a run without its results and events, and what its files say only together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFacts {
    /// When the run started, UTC, ISO 8601; empty where that is unknown.
    pub started: String,
    /// How the run ended, or whether it is still running.
    pub state: RunState,
    /// Why it did not end as planned, where that is known.
    pub reason: Option<String>,
    /// What is wrong with its directory.
    pub wrong: Option<String>,
    /// The measurements as written; for an import its sources; empty for a trace.
    pub about: Vec<String>,
    /// The worlds of its measurements.
    pub worlds: Vec<World>,
    /// The hosts that its specification declares.
    pub hosts: Vec<String>,
    /// The user's note about the run.
    pub note: Option<String>,
    /// The user's tags of the run.
    pub tags: BTreeSet<String>,
    /// Whether it came in an archive.
    pub from_archive: bool,
    /// The figure that represents it, where the caller made one.
    pub headline: Option<String>,
}

/// What became of a directory that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is removed.
    Done,
    /// It did not exist any more.
    Gone,
    /// It stays, because a process is writing it.
    BeingWritten,
}

/// A run in the directory of runs, without its results and events.
#[derive(Clone, Debug)]
pub struct KeptRun {
    /// The name of the run's directory.
    pub name: String,
    /// The path of the run's directory.
    pub path: PathBuf,
    /// What is known of it.
    pub facts: RunFacts,
    /// Size of its files, in bytes.
    pub bytes: u64,
}

impl KeptRun {
    fn read(root: &Path, name: String) -> Self {
        let path = root.join(&name);
        Self {
            facts: RunFacts::read(&path),
            bytes: directory_bytes(&path),
            name,
            path,
        }
    }

    /// When the run started, UTC, ISO 8601; where only its directory's name says so, from that.
    #[must_use]
    pub fn began(&self) -> String {
        let stamp = self.name.get(..15).filter(|_| is_stamped(&self.name));
        match stamp.filter(|_| self.facts.started.is_empty()) {
            None => self.facts.started.clone(),
            Some(stamp) => format!(
                "{}-{}-{}T{}:{}:{}Z",
                &stamp[..4],
                &stamp[4..6],
                &stamp[6..8],
                &stamp[9..11],
                &stamp[11..13],
                &stamp[13..]
            ),
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
    pub(crate) const fn is_removable(&self) -> bool {
        matches!(self.facts.state, RunState::Complete | RunState::Incomplete)
    }

    /// Removes the run's directory. Returns whether it was there; it is not an error if another process removed it.
    ///
    /// # Errors
    /// When the run is being written, may not be a run at all, belongs to another user, or cannot be removed.
    pub fn remove(&self) -> Result<bool, Error> {
        match self.try_remove()? {
            Removal::Done => Ok(true),
            Removal::Gone => Ok(false),
            Removal::BeingWritten => Err(Error::input(
                format!("the run at {} is still being written", self.path.display()),
                "interrupt the command that writes it, then try again",
            )),
        }
    }

    /// Removes the run's directory, unless a process is writing it.
    ///
    /// The directory gets another name first: a process that is killed meanwhile leaves no half of a run under this one.
    ///
    /// # Errors
    /// When it may not be a run at all, belongs to another user, or cannot be removed.
    pub(crate) fn try_remove(&self) -> Result<Removal, Error> {
        // Any directory may have a file named `status.json`: a directory is removed only if it certainly is a run.
        if self.facts.state == RunState::Damaged && !is_remainder(&self.path) {
            return Err(Error::input(
                format!(
                    "{} was not removed: its status.json is not that of a run",
                    self.path.display()
                ),
                "look at what it holds, and remove it with `rm -r` if it is no longer needed",
            ));
        }
        if is_being_written(&self.path) {
            return Ok(Removal::BeingWritten);
        }
        files::must_be_own(&self.path)?;
        let gone_or_failed = |cause: std::io::Error| match cause.kind() {
            ErrorKind::NotFound => Ok(Removal::Gone),
            _ => Err(Error::new(
                format!("cannot remove {}", self.path.display()),
                "check that its directory and the parent directory are writable",
            )
            .because(&cause)),
        };
        let aside = self
            .path
            .parent()
            .map(|root| root.join(format!("{REMOVING}{}", self.name)));
        let target = match aside.filter(|aside| !files::is_there(aside)) {
            Some(aside) => match fs::rename(&self.path, &aside) {
                Ok(()) => aside,
                Err(cause) => return gone_or_failed(cause),
            },
            None => self.path.clone(),
        };
        match fs::remove_dir_all(&target) {
            Ok(()) => Ok(Removal::Done),
            Err(cause) => gone_or_failed(cause),
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
        self.keep_words(files::NOTE, note)
    }

    /// Stores tags in place of the earlier ones; none removes them.
    ///
    /// # Errors
    /// When there are too many or a word cannot be a tag, or the run's directory cannot be written.
    pub fn keep_tags(&self, tags: &BTreeSet<String>) -> Result<(), Error> {
        if let Some(wrong) = tags.iter().find(|tag| !is_tag(tag)) {
            return Err(Error::input(
                format!("`{wrong}` cannot be a tag"),
                format!(
                    "a tag is one word of at most {LONGEST_TAG} letters, digits and `.`, `_`, `-`, `:`, `/`, `=`"
                ),
            ));
        }
        if tags.len() > MOST_TAGS {
            return Err(Error::input(
                format!("the run would have {} tags", tags.len()),
                format!("a run may have at most {MOST_TAGS} tags; remove some with --remove"),
            ));
        }
        let lines: Vec<&str> = tags.iter().map(String::as_str).collect();
        self.keep_words(files::TAGS, &lines.join("\n"))
    }

    /// Writes a text that the user gave into a file of the run; removes the file if the text is empty.
    fn keep_words(&self, file: &str, words: &str) -> Result<(), Error> {
        files::must_be_own(&self.path)?;
        let path = self.path.join(file);
        let kept = if words.trim().is_empty() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(Error::writing(&path, &error))
                }
                _ => Ok(()),
            }
        } else {
            replace_inside_with(&path, format!("{}\n", words.trim()).as_bytes())
        };
        forget_indexed_run(&self.path);
        kept
    }
}

/// Whether a word can be a tag.
fn is_tag(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-:/=".contains(c);
    !word.is_empty()
        && word.len() <= LONGEST_TAG
        && !word.starts_with('-')
        && word.chars().all(plain)
}

impl RunFacts {
    /// Reads what the files of a run say. What cannot be read is left out, or stands in `wrong`.
    pub(crate) fn read(path: &Path) -> Self {
        let status = RunStatus::read(path);
        let state = match &status {
            Err(_) => RunState::Damaged,
            Ok(status) if status.complete => RunState::Complete,
            Ok(_) if is_being_written(path) => RunState::Running,
            Ok(_) => RunState::Incomplete,
        };
        let wrong = match &status {
            Ok(status) => what_is_wrong(path, status),
            Err(_) if !files::is_there(&path.join(files::STATUS)) => {
                Some("status.json is missing: the run was removed or copied in part".to_owned())
            }
            Err(error) => {
                let cause = error.cause.as_ref().unwrap_or(&error.message);
                Some(format!("status.json cannot be read: {cause}"))
            }
        };
        let plan = files::read(&path.join(files::PLAN)).ok();
        let plan: Option<PlanTexts> = plan.and_then(|text| serde_json::from_str(&text).ok());
        let plan = plan.unwrap_or_default();
        let used = |world: &World| {
            plan.measurements
                .iter()
                .any(|one| one.world == Some(*world))
        };
        let worlds = World::ALL.into_iter().filter(used).collect();
        let words = |file: &str| files::read(&path.join(file)).ok();
        let status = status.ok();
        Self {
            started: status
                .as_ref()
                .map(|status| status.started.clone())
                .unwrap_or_default(),
            state,
            reason: status.and_then(|status| status.reason),
            wrong,
            worlds,
            hosts: plan.hosts.into_keys().collect(),
            about: about(path, plan.measurements),
            note: words(files::NOTE).map(|note| note.trim_end().to_owned()),
            tags: words(files::TAGS)
                .into_iter()
                .flat_map(|tags| {
                    tags.lines()
                        .take(MOST_TAGS)
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
                .filter(|tag| is_tag(tag))
                .collect(),
            from_archive: files::is_there(&path.join(files::ARCHIVE)),
            headline: None,
        }
    }

    /// Whether they cannot change without a change of the directory: the run has ended.
    pub(crate) const fn is_final(&self) -> bool {
        match self.state {
            RunState::Complete => true,
            RunState::Incomplete => self.reason.is_some(),
            RunState::Running | RunState::Damaged => false,
        }
    }
}

/// What is wrong with a run whose status can be read: a newer version wrote it, or events are missing.
fn what_is_wrong(path: &Path, status: &RunStatus) -> Option<String> {
    let version = |text: &str| -> Vec<u64> {
        text.split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect()
    };
    let missing = status.events.keys();
    let missing = missing.filter(|name| !files::is_there(&path.join(files::EVENTS).join(name)));
    let missing = missing.count();
    if version(&status.stackline) > version(env!("CARGO_PKG_VERSION")) {
        return Some(format!(
            "made by stackline {:.20}, which is newer than this one ({})",
            status.stackline,
            env!("CARGO_PKG_VERSION")
        ));
    }
    (missing > 0).then(|| {
        format!(
            "{missing} of {} files of events are missing",
            status.events.len()
        )
    })
}

/// Whether a directory is what is left of a run: it is named as runs are, and has nothing that is not of a run.
pub(crate) fn is_remainder(path: &Path) -> bool {
    let own = path.file_name().and_then(|name| name.to_str());
    let entries = fs::read_dir(path).ok().map(|entries| entries.flatten());
    let known =
        |name: &str| files::ALL.contains(&name) || name.starts_with('.') && name.ends_with(".tmp");
    own.is_some_and(is_stamped)
        && entries.is_some_and(|mut entries| {
            entries.all(|entry| entry.file_name().to_str().is_some_and(known))
        })
}

/// The run with this directory; `None` where the path has no usable name.
#[must_use]
pub fn kept_run(path: &Path) -> Option<KeptRun> {
    let name = path.file_name()?.to_str()?.to_owned();
    Some(KeptRun::read(path.parent()?, name))
}

/// The run of that name, which may be one that was removed in part.
///
/// # Errors
/// When no run has that name.
pub fn named_run(name: &Path) -> Result<KeptRun, Error> {
    let path = located(name).or_else(|missing| {
        let candidates = [name.to_owned(), runs_root().join(name)];
        candidates
            .into_iter()
            .find(|path| is_remainder(path))
            .ok_or(missing)
    })?;
    kept_run(&path).ok_or_else(|| {
        Error::input(
            format!("{} is not the directory of a run", path.display()),
            "`stackline runs` lists them",
        )
    })
}

/// The part of a plan that is needed here.
#[derive(Default, Deserialize)]
struct PlanTexts {
    #[serde(default)]
    measurements: Vec<MeasurementText>,
    #[serde(default)]
    hosts: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct MeasurementText {
    text: String,
    #[serde(default)]
    world: Option<World>,
}

/// What the run is about: the texts of its measurements, or the sources of its imports.
fn about(run: &Path, measurements: Vec<MeasurementText>) -> Vec<String> {
    if !measurements.is_empty() {
        return measurements.into_iter().map(|one| one.text).collect();
    }
    let index = read_index(run).ok().flatten().unwrap_or_default();
    index
        .imports
        .into_iter()
        .map(|import| format!("import {}", import.source))
        .collect()
}

/// The size of a directory's files, in bytes, down to two levels of directories below it; links are not followed.
pub(crate) fn directory_bytes(directory: &Path) -> u64 {
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
