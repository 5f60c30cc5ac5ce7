//! A disk that others fill while a trace runs: events for which there is no room are counted, and the room for the end of the run is set
//! aside at its beginning.

use stackline_core::error::{Blame, Error, Result};
use stackline_events::EventLog;
use stackline_events::event_log::EventLogPieces;
use stackline_runs::events::Spool;
use std::fs;
use std::path::{Path, PathBuf};

/// The room that is set aside, bytes: the index and the status of a run fit, and the last events.
const RESERVED: std::ops::RangeInclusive<u64> = 256 << 10..=4 << 20;
/// The part of the room for events that is set aside.
const PART: u64 = 4;
/// The file that takes that room.
const RESERVE: &str = "reserve";

/// The events of a trace for which there was no room on the disk.
#[derive(Debug, Default)]
pub(crate) struct UnwrittenEvents {
    count: u64,
}

impl UnwrittenEvents {
    /// Appends an event log to the run; if the disk is full, its events are counted instead. Later ones are written if there is room again.
    ///
    /// # Errors
    /// When it cannot be written for another reason.
    pub(crate) fn append(&mut self, spool: &Spool, host: &str, log: &EventLog) -> Result<()> {
        match spool.append(host, log) {
            Err(error) if error.is_disk_full => {
                let mut pieces = EventLogPieces::new(log.bytes());
                while let Ok(Some(piece)) = pieces.next_table() {
                    self.count += piece.len() as u64;
                }
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Their number.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// A sentence for the report, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        let count = self.count;
        (count > 0).then(|| {
            format!("the disk was full: {count} events of this trace are lost, and requests with them; free some room, or set STACKLINE_RUNS to another disk")
        })
    }
}

/// Room on the disk of a run that nobody else can take. It is given back at the latest when this value is dropped.
#[derive(Debug)]
pub(crate) struct DiskReserve(PathBuf);

impl DiskReserve {
    /// Takes room in the directory of a run whose events may take `most_bytes`. Where there is none, nothing is set aside.
    pub(crate) fn take(run: &Path, most_bytes: u64) -> Self {
        let path = run.join(RESERVE);
        let bytes = (most_bytes / PART).clamp(*RESERVED.start(), *RESERVED.end());
        if fs::write(&path, vec![0; usize::try_from(bytes).unwrap_or(0)]).is_err() {
            let _ = fs::remove_file(&path);
        }
        Self(path)
    }

    /// Gives the room back, for the end of the run.
    pub(crate) fn give_back(&self) {
        // A file that is not there any more takes no room.
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for DiskReserve {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What is said where events could not be sorted at the end of a trace: they can be read all the same.
///
/// # Errors
/// The error itself, if the user stopped the sorting.
pub(crate) fn unsorted_note(error: stackline_runs::Error) -> Result<String> {
    match error.blame {
        Blame::Interrupted => Err(Error::from(error)),
        _ => Ok(format!(
            "the events of this trace stay as they were recorded, without their sorted form: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_aside_is_given_back() {
        let run = tempfile::tempdir().unwrap();
        let reserve = DiskReserve::take(run.path(), 2 << 20);
        let path = run.path().join(RESERVE);
        assert_eq!(fs::metadata(&path).unwrap().len(), 512 << 10);
        drop(reserve);
        assert!(!path.exists());
        // In a directory that does not exist there is no room.
        drop(DiskReserve::take(&run.path().join("absent"), 0));
    }
}
