//! All events of a run, also of one that is still being made.

use super::parquet::{Reader, Wanted};
use super::paths::{self, event_files};
use super::spool::read_tape;
use crate::{Error, Status};
use stackline_events::Table;
use std::path::{Path, PathBuf};

/// Where all events of a run are.
pub(super) struct Whole {
    pub(super) files: Vec<PathBuf>,
    /// What is not in a file of its own yet.
    pub(super) tapes: Vec<Table>,
}

/// A run that is still being made may turn a tape into its file at any moment: the tape is looked for first, and where there is
/// one, the file beside it has the same events.
pub(super) fn whole(run: &Path) -> Result<Whole, Error> {
    let (mut tapes, mut covered) = (Vec::new(), Vec::new());
    for path in paths::tapes(run)? {
        match read_tape(&path) {
            Ok(tape) => {
                tapes.push(tape);
                covered.push(path.with_extension("parquet"));
            }
            Err(_) if !path.exists() => {}
            Err(error) => return Err(error),
        }
    }
    let mut files = if tapes.is_empty() {
        event_files(run)?
    } else {
        event_files(run).unwrap_or_default()
    };
    files.retain(|file| !covered.contains(file));
    Status::check_events(run, &files)?;
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
pub fn read_batches(
    run: &Path,
    wanted: &Wanted,
    mut each: impl FnMut(&Table),
) -> Result<(), Error> {
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
