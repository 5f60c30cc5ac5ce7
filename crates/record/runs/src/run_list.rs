//! The list of all kept runs. An index beside them has what was read of each, so that thousands are listed at once; what
//! changed since is read again.

use crate::files;
use crate::kept_runs::{KeptRun, RunFacts, directory_bytes, is_remainder};
use crate::run_reader::names_with_remainders;
use serde::{Deserialize, Serialize};
use stackline_guard::files::read_text;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The index, in the directory of runs: a header, then a run a line, as JSON.
const INDEX: &str = ".index.jsonl";
/// The largest index that is read, in bytes.
const LARGEST_INDEX: u64 = 256 << 20;
/// From how many runs on an index is kept; fewer are read quickly enough.
const WORTH_INDEXING: usize = 64;
/// A directory that changed within so many seconds may change once more without showing another time.
const SETTLED_S: i64 = 2;

/// The state of a file or directory: its inode, and seconds and nanoseconds of its last change.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
struct PathStamp(u64, i64, i64);

/// The states of what changes when a run changes: its directory, its status, its events.
type RunStamp = [PathStamp; 3];

/// The state of what does not exist.
const NOTHING: PathStamp = PathStamp(0, 0, 0);

/// The first line of an index. One of another version is not used: its figures may be worded otherwise.
#[derive(PartialEq, Serialize, Deserialize)]
struct IndexHeader {
    index: u32,
    stackline: String,
}

impl IndexHeader {
    fn own() -> Self {
        Self {
            index: 1,
            stackline: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// A line of the index.
#[derive(Clone, Serialize, Deserialize)]
struct IndexedRun {
    name: String,
    stamp: RunStamp,
    bytes: u64,
    /// What else is known; absent where only the size was needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<RunFacts>,
}

/// A directory that is or was a run.
struct ListedRun {
    name: String,
    stamp: RunStamp,
}

/// The kept runs of a directory, newest first.
pub struct RunList {
    root: PathBuf,
    runs: Vec<ListedRun>,
    index: HashMap<String, IndexedRun>,
    /// Makes the figure that represents a run.
    headline: fn(&Path) -> Option<String>,
    /// Whether the index has to be written.
    changed: bool,
    now_s: i64,
}

impl RunList {
    /// The runs under `root`. `headline` makes the figure that represents a complete run; `now` tells which files may still
    /// change.
    #[must_use]
    pub fn open(root: &Path, now: SystemTime, headline: fn(&Path) -> Option<String>) -> Self {
        let stamped = names_with_remainders(root)
            .into_iter()
            .map(|name| ListedRun {
                stamp: stamp(&root.join(&name)),
                name,
            });
        // A directory that has only the form of a run's name may be anything.
        let is_run =
            |run: &ListedRun| run.stamp[1] != NOTHING || is_remainder(&root.join(&run.name));
        let mut runs: Vec<ListedRun> = stamped.filter(is_run).collect();
        runs.reverse();
        let now_s = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self {
            index: read_index_of(root),
            root: root.to_owned(),
            runs,
            headline,
            changed: false,
            now_s: i64::try_from(now_s).unwrap_or(i64::MAX),
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The run at a place of the list. It is read only if the index does not have it as it is now; `None` beyond the end.
    pub fn run(&mut self, at: usize) -> Option<KeptRun> {
        let ListedRun { name, stamp } = self.runs.get(at)?;
        let (name, stamp, path) = (name.clone(), *stamp, self.root.join(name));
        let indexed = self.index.get(&name).filter(|one| one.stamp == stamp);
        if let Some(IndexedRun {
            bytes,
            facts: Some(facts),
            ..
        }) = indexed
        {
            return Some(KeptRun {
                name,
                path,
                facts: facts.clone(),
                bytes: *bytes,
            });
        }
        let mut facts = RunFacts::read(&path);
        facts.headline = (self.headline)(&path);
        let run = KeptRun {
            bytes: directory_bytes(&path),
            name,
            path,
            facts,
        };
        self.keep(&run.name, stamp, run.bytes, Some(&run.facts));
        Some(run)
    }

    /// The disk space that all runs take, in bytes. Runs that are being written count as they were when they were first
    /// listed.
    pub fn bytes(&mut self) -> u64 {
        let mut sum = 0_u64;
        for at in 0..self.runs.len() {
            let ListedRun { name, stamp } = &self.runs[at];
            let indexed = self.index.get(name).filter(|one| one.stamp == *stamp);
            let bytes = match indexed {
                Some(one) => one.bytes,
                None => {
                    let (name, stamp) = (name.clone(), *stamp);
                    let bytes = directory_bytes(&self.root.join(&name));
                    self.keep(&name, stamp, bytes, None);
                    bytes
                }
            };
            sum = sum.saturating_add(bytes);
        }
        sum
    }

    /// Puts into the index what cannot change unnoticed.
    fn keep(&mut self, name: &str, stamp: RunStamp, bytes: u64, facts: Option<&RunFacts>) {
        let is_settled = |stamp: &PathStamp| stamp.1.saturating_add(SETTLED_S) < self.now_s;
        if !stamp.iter().all(is_settled) || facts.is_some_and(|facts| !facts.is_final()) {
            self.changed |= self.index.remove(name).is_some();
            return;
        }
        let line = IndexedRun {
            name: name.to_owned(),
            stamp,
            bytes,
            facts: facts.cloned(),
        };
        self.index.insert(name.to_owned(), line);
        self.changed = true;
    }

    /// Writes the index if something in it changed and there are many runs. An index that cannot be written is not an
    /// error: the next list takes longer.
    pub fn store(self) {
        let is_own = fs::metadata(&self.root)
            .is_ok_and(|about| about.uid() == nix::unistd::geteuid().as_raw());
        let gone = self.index.len() > self.runs.len();
        if !(self.changed || gone) || self.runs.len() < WORTH_INDEXING || !is_own {
            return;
        }
        let mut text = Vec::new();
        let header = serde_json::to_writer(&mut text, &IndexHeader::own());
        let lines = self.runs.iter().filter_map(|run| self.index.get(&run.name));
        let written = header.and_then(|()| {
            lines.into_iter().try_for_each(|line| {
                text.push(b'\n');
                serde_json::to_writer(&mut text, line)
            })
        });
        text.push(b'\n');
        if written.is_ok() && text.len() as u64 <= LARGEST_INDEX {
            // Only its user may read it, as runs are by default; and nobody sees half of it.
            let file = tempfile::NamedTempFile::new_in(&self.root);
            let _ = file.and_then(|mut file| {
                file.write_all(&text)?;
                Ok(file.persist(self.root.join(INDEX))?)
            });
        }
    }
}

/// The present state of a run's directory.
fn stamp(run: &Path) -> RunStamp {
    let state = |path: &Path| {
        fs::symlink_metadata(path).map_or(NOTHING, |about| {
            PathStamp(about.ino(), about.mtime(), about.mtime_nsec())
        })
    };
    [
        state(run),
        state(&run.join(files::STATUS)),
        state(&run.join(files::EVENTS)),
    ]
}

/// The index under `root`; empty where there is none, or it cannot be used. Lines that cannot be read are left out.
fn read_index_of(root: &Path) -> HashMap<String, IndexedRun> {
    let text = read_text(&root.join(INDEX), LARGEST_INDEX).unwrap_or_default();
    let mut lines = text.lines();
    let header = lines
        .next()
        .and_then(|line| serde_json::from_str::<IndexHeader>(line).ok());
    if header != Some(IndexHeader::own()) {
        return HashMap::new();
    }
    let runs = lines.filter_map(|line| serde_json::from_str::<IndexedRun>(line).ok());
    runs.map(|run| (run.name.clone(), run)).collect()
}

#[cfg(test)]
mod tests;
