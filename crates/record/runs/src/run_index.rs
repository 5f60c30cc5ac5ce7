//! The index beside the kept runs: what was read of each, a run a line, so that thousands are listed without opening them. A run
//! that ends adds its own line.

use crate::files;
use crate::kept_runs::{RunFacts, directory_bytes};
use serde::{Deserialize, Serialize};
use stackline_guard::files::read_text;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The index, in the directory of runs: a header, then a run a line, as JSON. Of two lines of one run the later holds.
pub(crate) const INDEX: &str = ".index.jsonl";
/// The largest index that is read or added to, in bytes.
const LARGEST_INDEX: u64 = 256 << 20;
/// From how many runs on an index is kept; fewer are read quickly enough.
pub(crate) const WORTH_INDEXING: usize = 64;

/// The state of a file or directory: its inode, and seconds and nanoseconds of its last change.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathStamp(u64, i64, i64);

impl PathStamp {
    /// The state of what does not exist.
    pub(crate) const NOTHING: Self = Self(0, 0, 0);

    /// When it last changed, in seconds since 1970.
    pub(crate) const fn changed_s(self) -> i64 {
        self.1
    }
}

/// The states of what changes when a run changes: its directory, its status, its events.
pub(crate) type RunStamp = [PathStamp; 3];

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
pub(crate) struct IndexedRun {
    pub(crate) name: String,
    pub(crate) stamp: RunStamp,
    pub(crate) bytes: u64,
    /// What else is known; absent where only the size was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) facts: Option<RunFacts>,
}

/// The present state of a run's directory.
pub(crate) fn stamp(run: &Path) -> RunStamp {
    let state = |path: &Path| {
        fs::symlink_metadata(path).map_or(PathStamp::NOTHING, |about| {
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
pub(crate) fn read_index_of(root: &Path) -> HashMap<String, IndexedRun> {
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

/// Replaces the index by one with these runs. Only its user may read it, as runs are by default; and nobody sees half of it.
pub(crate) fn replace_index<'r>(
    root: &Path,
    runs: impl Iterator<Item = &'r IndexedRun>,
) -> io::Result<()> {
    let mut text = serde_json::to_vec(&IndexHeader::own())?;
    for run in runs {
        text.push(b'\n');
        serde_json::to_writer(&mut text, run)?;
    }
    text.push(b'\n');
    if text.len() as u64 > LARGEST_INDEX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut file = tempfile::NamedTempFile::new_in(root)?;
    file.write_all(&text)?;
    file.persist(root.join(INDEX))?;
    Ok(())
}

/// Whether a directory belongs to this user, so that an index may be kept in it.
pub(crate) fn may_have_index(root: &Path) -> bool {
    fs::metadata(root).is_ok_and(|about| about.uid() == nix::unistd::geteuid().as_raw())
}

/// Adds a run that has ended to the index, with the figure that represents it: then a list need not open it. Where few runs are
/// kept there is no index. One that cannot be written is not an error: the next list takes longer.
pub fn index_ended_run(run: &Path, headline: Option<String>) {
    let (Some(root), Some(name)) = (run.parent(), run.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let root = if root.as_os_str().is_empty() {
        Path::new(".")
    } else {
        root
    };
    let has_index = || files::is_there(&root.join(INDEX));
    let has_many = || {
        let entries = fs::read_dir(root).into_iter().flatten();
        entries.take(WORTH_INDEXING).count() == WORTH_INDEXING
    };
    if !may_have_index(root) || !(has_index() || has_many()) {
        return;
    }
    // The state comes before the facts: what changes in between shows as another state later.
    let stamp = stamp(run);
    let facts = RunFacts {
        headline,
        ..RunFacts::read(run)
    };
    if !facts.is_final() {
        return;
    }
    let line = IndexedRun {
        name: name.to_owned(),
        stamp,
        bytes: directory_bytes(run),
        facts: Some(facts),
    };
    let _ = add_line(root, &line);
}

/// Makes the index forget a run whose files are changed: a change within a tick of the file system's clock would not show.
pub(crate) fn forget_indexed_run(run: &Path) {
    let root = run.parent().filter(|root| !root.as_os_str().is_empty());
    let name = run.file_name().and_then(|name| name.to_str());
    if let (Some(root), Some(name)) = (root, name)
        && files::is_there(&root.join(INDEX))
    {
        let line = IndexedRun {
            name: name.to_owned(),
            stamp: [PathStamp::NOTHING; 3],
            bytes: 0,
            facts: None,
        };
        let _ = add_line(root, &line);
    }
}

/// Appends a line by one write, so that lines of several processes do not mix. An index that is replaced meanwhile lacks it,
/// which costs the next list the reading of one run.
fn add_line(root: &Path, line: &IndexedRun) -> io::Result<()> {
    let mut text = Vec::new();
    let path = root.join(INDEX);
    let mut options = File::options();
    options
        .append(true)
        .mode(0o600)
        .custom_flags(files::no_links());
    let mut file = match options.open(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            serde_json::to_writer(&mut text, &IndexHeader::own())?;
            text.push(b'\n');
            options.create_new(true).open(&path)?
        }
        opened => opened?,
    };
    if file.metadata()?.len() > LARGEST_INDEX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    serde_json::to_writer(&mut text, line)?;
    text.push(b'\n');
    file.write_all(&text)
}
