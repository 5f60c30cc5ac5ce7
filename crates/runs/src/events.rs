//! Events of a run: `RUN/events/HOST.parquet`, one file a host, sorted by time of that host's own clock; and
//! `RUN/events/index.json`, what is known about them.
//!
//! The columns: `at_ns`, `keyword`, `host`, and for each data field `n1`, `t1`, `n2`, `t2`, ...: a whole number is in `n`, any
//! other text in `t`, a field that is not there in neither. What a foreign log has beyond 16 fields is in `more`.

mod export;
mod host_buckets;
mod import;
mod intake;
mod lock;
mod merge;
mod merged;
mod parquet;
mod sort;
mod spool;

pub use self::parquet::{Reader, Wanted, Writer, read_table, write_table};
pub use export::{export_tape, export_text};
pub use import::{Log, begins_tape, import_tape, import_text, rename_hosts};
pub use intake::{Intake, Taken};
pub use merged::Merged;
pub use spool::{Settled, Spool, Spooling};

use crate::{Error, files};
use stackline_core::trace::Index;
use stackline_events::Table;
use std::fs;
use std::path::{Path, PathBuf};

const INDEX: &str = "index.json";

/// The longest part of a host's name that a file's name takes over, in bytes.
const LONGEST_NAME: usize = 200;

/// Where the events of a host of a run lie. What of its name is no letter, digit, `_`, `-` or `.`, and a `.` at its beginning, becomes
/// `%` and two hexadecimal digits; a name that is long then is cut, `~` and a number that hangs on all of it follow.
///
/// # Errors
/// When the name is empty.
pub fn events_path(run: &Path, host: &str) -> Result<PathBuf, Error> {
    if host.is_empty() {
        return Err(Error::new("a host has an empty name", "give it one with `--host NAME=LOG`"));
    }
    let mut name = String::new();
    for (at, byte) in host.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && at > 0);
        if plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() > LONGEST_NAME {
        name.truncate(LONGEST_NAME - 40);
        name.push_str(&format!("~{:016x}", fnv(host.as_bytes())));
    }
    Ok(run.join(files::EVENTS).join(format!("{name}.parquet")))
}

/// The hash of Fowler, Noll and Vo, 1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Every Parquet file of events of a run, by name.
///
/// # Errors
/// When the run has no events at all.
pub fn event_files(run: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(run.join(files::EVENTS)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    found.sort_unstable();
    if found.is_empty() && spool::tapes(run).is_empty() {
        let message = format!("the run at {} has no events", run.display());
        return Err(Error::new(message, "`stackline run SPEC --trace` keeps them"));
    }
    Ok(found)
}

/// Where all events of a run are.
struct Whole {
    files: Vec<PathBuf>,
    /// What is not in a file of its own yet.
    tapes: Vec<Table>,
}

/// A run that is still being made may turn a tape into its file at any moment: the tape is looked for first, and where there is
/// one, the file beside it has the same events.
fn whole(run: &Path) -> Result<Whole, Error> {
    let (mut tapes, mut covered) = (Vec::new(), Vec::new());
    for path in spool::tapes(run) {
        match spool::read_tape(&path) {
            Ok(tape) => {
                tapes.push(tape);
                covered.push(path.with_extension("parquet"));
            }
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    let mut files = if tapes.is_empty() { event_files(run)? } else { event_files(run).unwrap_or_default() };
    files.retain(|file| !covered.contains(file));
    Ok(Whole { files, tapes })
}

/// All events of a run in one table, also of one that is still being made: fine for some millions of them.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_run(run: &Path) -> Result<Table, Error> {
    let mut table = Table::default();
    read_batches(run, &Wanted::all(), |batch| table.append(batch))?;
    Ok(table)
}

/// The events of a run table by table, host after host, with the columns that are wanted: however many there are. Of a run
/// that is still being made, what there is, with all columns.
///
/// # Errors
/// When there are none or a file is damaged.
pub fn read_batches(run: &Path, wanted: &Wanted, mut each: impl FnMut(&Table)) -> Result<(), Error> {
    let Whole { files, tapes } = whole(run)?;
    let mut batch = Table::default();
    for path in files {
        let mut reader = Reader::open(&path, wanted)?;
        while reader.next_into(&mut batch)? {
            each(&batch);
        }
    }
    tapes.iter().for_each(each);
    Ok(())
}

/// Keeps the index.
///
/// # Errors
/// When it cannot be written.
pub fn write_index(run: &Path, index: &Index) -> Result<(), Error> {
    let path = run.join(files::EVENTS).join(INDEX);
    fs::create_dir_all(run.join(files::EVENTS)).map_err(|cause| Error::writing(&path, &cause))?;
    let text = serde_json::to_string_pretty(index).map_err(|cause| Error::writing(&path, &cause))?;
    files::replace_with(&path, format!("{text}\n").as_bytes())
}

/// Reads the index; events that were imported have none.
///
/// # Errors
/// When it is damaged.
pub fn read_index(run: &Path) -> Result<Option<Index>, Error> {
    let path = run.join(files::EVENTS).join(INDEX);
    if !path.is_file() {
        return Ok(None);
    }
    serde_json::from_str(&files::read(&path)?).map(Some).map_err(|cause| Error::reading(&path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_of_a_file_within_the_directory() {
        let name = |host: &str| {
            let path = events_path(Path::new("run"), host).unwrap();
            assert_eq!(path.parent(), Some(Path::new("run/events")));
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(name("dpss1.lbl.gov"), "dpss1.lbl.gov.parquet");
        assert_eq!(name("../x"), "%2E.%2Fx.parquet");
        assert_eq!(name("a b"), "a%20b.parquet");
        let (long, other) = (name(&"x".repeat(4000)), name(&"x".repeat(4001)));
        assert!(long != other && long.len() < 255);
        assert!(events_path(Path::new("run"), "").is_err());
    }
}
