//! Tapes as they come, `RUN/events/HOST.tape`, until the run is over and they become Parquet: whatever kills a run, what was
//! recorded is there and can be read.

use super::events_path;
use super::sort::Sorter;
use crate::{Error, files};
use stackline_events::tape::Pieces;
use stackline_events::{Table, Tape};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes of events that are held back while a tape is sorted.
const HELD: usize = 64 << 20;

/// What a file of tapes is called behind its host's name.
pub(super) const TAPE: &str = "tape";

/// Appends tapes of a run's hosts.
#[derive(Debug)]
pub struct Spool {
    run: PathBuf,
}

impl Spool {
    /// Of that run.
    #[must_use]
    pub fn of(run: &Path) -> Self {
        Self { run: run.to_owned() }
    }

    /// Appends a tape that tells all its names itself.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, host: &str, tape: &Tape) -> Result<(), Error> {
        let path = events_path(&self.run, host)?.with_extension(TAPE);
        fs::create_dir_all(self.run.join(files::EVENTS)).map_err(|cause| Error::writing(&path, &cause))?;
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(tape.bytes())).map_err(|cause| Error::writing(&path, &cause))
    }

    /// Turns every tape into a sorted Parquet file, then takes it away. How many events each host has. Takes no more memory for a
    /// long tape than for a short one.
    ///
    /// # Errors
    /// When one cannot be; its tape is still there then.
    pub fn settle(self) -> Result<BTreeMap<String, u64>, Error> {
        let mut counts = BTreeMap::new();
        for tape in tapes(&self.run) {
            let host = tape.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let count = settle(&tape)?;
            fs::remove_file(&tape).map_err(|cause| Error::writing(&tape, &cause))?;
            counts.insert(host, count);
        }
        Ok(counts)
    }
}

/// Every file of tapes of a run.
pub(super) fn tapes(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join(files::EVENTS)).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == TAPE));
    found.sort_unstable();
    found
}

/// Sorts a tape into the Parquet file beside it, which takes its name when it is whole.
fn settle(tape: &Path) -> Result<u64, Error> {
    let mut sorter = Sorter::new(tape.with_extension("sorting"));
    let mut pieces = open(tape)?;
    while let Some(piece) = next(&mut pieces, tape)? {
        sorter.push(&piece, 0..piece.len());
        if sorter.bytes() > HELD {
            sorter.relieve()?;
        }
    }
    let (made, to) = (tape.with_extension("sorting.ready"), tape.with_extension("parquet"));
    let (count, _) = sorter.finish(None, &made)?;
    files::settle(&made)?;
    fs::rename(&made, &to).map_err(|cause| Error::writing(&to, &cause))?;
    Ok(count)
}

/// Everything on a file of tapes; a record that was cut off when the run was killed ends it.
pub(super) fn read_tape(path: &Path) -> Result<Table, Error> {
    let (mut table, mut pieces) = (Table::default(), open(path)?);
    while let Some(piece) = next(&mut pieces, path)? {
        table.append(&piece);
    }
    Ok(table)
}

fn open(path: &Path) -> Result<Pieces<File>, Error> {
    File::open(path).map(Pieces::of).map_err(|cause| Error::reading(path, &cause))
}

fn next(pieces: &mut Pieces<File>, path: &Path) -> Result<Option<Table>, Error> {
    pieces.next_table().map_err(|cause| Error::reading(path, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::keyword;

    #[test]
    fn tapes_become_one_sorted_file() {
        let run = tempfile::tempdir().unwrap();
        let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
        let spool = Spool::of(run.path());
        for (at, keyword) in [(5, send), (3, drop)] {
            let mut tape = Tape::default();
            tape.host("khons");
            tape.push(keyword, at, &[at.into()]);
            spool.append("khons", &tape).unwrap();
        }
        assert!(spool.append("", &Tape::default()).is_err());
        assert_eq!(super::super::read_run(run.path()).unwrap().len(), 2, "readable before the end");
        assert_eq!(spool.settle().unwrap(), BTreeMap::from([("khons".to_owned(), 2)]));
        let table = super::super::read_run(run.path()).unwrap();
        let lines: Vec<String> = (0..2).map(|row| table.event(row).to_string()).collect();
        assert_eq!(lines, ["NET_DROP; khons; 0; 3; 3", "APP_SEND; khons; 0; 5; 5"]);
        assert!(tapes(run.path()).is_empty());
    }
}
