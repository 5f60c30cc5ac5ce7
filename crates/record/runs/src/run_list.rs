//! The list of all kept runs. An index beside them has what was read of each, so that thousands are listed at once; what
//! changed since is read again.

use crate::kept_runs::{KeptRun, RunFacts, directory_bytes, is_remainder};
use crate::run_index::{
    IndexedRun, PathStamp, RunStamp, WORTH_INDEXING, may_have_index, read_index_of, replace_index,
    stamp,
};
use crate::run_reader::names_with_remainders;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory that changed within so many seconds may change once more without showing another time.
const SETTLED_S: i64 = 2;

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
        let is_run = |run: &ListedRun| {
            run.stamp[1] != PathStamp::NOTHING || is_remainder(&root.join(&run.name))
        };
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
        if let Some(run) = self.indexed(at) {
            return Some(run);
        }
        let mut run = self.without_headline(at)?;
        run.facts.headline = (self.headline)(&run.path);
        let stamp = self.runs.get(at)?.stamp;
        self.keep(&run.name, stamp, run.bytes, Some(&run.facts));
        Some(run)
    }

    /// The same, perhaps without the figure that represents it, for which its results would have to be read.
    pub fn run_without_headline(&self, at: usize) -> Option<KeptRun> {
        self.indexed(at).or_else(|| self.without_headline(at))
    }

    fn without_headline(&self, at: usize) -> Option<KeptRun> {
        let name = self.runs.get(at)?.name.clone();
        let path = self.root.join(&name);
        Some(KeptRun {
            facts: RunFacts::read(&path),
            bytes: directory_bytes(&path),
            name,
            path,
        })
    }

    /// The run as the index has it, if that is as it is now.
    fn indexed(&self, at: usize) -> Option<KeptRun> {
        let ListedRun { name, stamp } = self.runs.get(at)?;
        let indexed = self.index.get(name).filter(|one| one.stamp == *stamp)?;
        Some(KeptRun {
            name: name.clone(),
            path: self.root.join(name),
            facts: indexed.facts.clone()?,
            bytes: indexed.bytes,
        })
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
        let is_settled =
            |stamp: &PathStamp| stamp.changed_s().saturating_add(SETTLED_S) < self.now_s;
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
        let gone = self.index.len() > self.runs.len();
        if !(self.changed || gone)
            || self.runs.len() < WORTH_INDEXING
            || !may_have_index(&self.root)
        {
            return;
        }
        let lines = self.runs.iter().filter_map(|run| self.index.get(&run.name));
        let _ = replace_index(&self.root, lines);
    }
}

#[cfg(test)]
mod tests;
