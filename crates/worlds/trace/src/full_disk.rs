//! A disk that others fill while a trace runs: events for which there is no room are counted, and the room for the end of the run is set
//! aside at its beginning.

use stackline_core::error::{Blame, Error, Result};
use stackline_events::EventLog;
use stackline_events::event_log::EventLogPieces;
use stackline_runs::events::Spool;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

/// The room that is set aside, bytes: the index and the status of a run fit, and the last events.
const RESERVED: std::ops::RangeInclusive<u64> = 256 << 10..=4 << 20;
/// The part of the room for events that is set aside.
const PART: u64 = 4;
/// The name of the file that takes that room, until it is open.
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

/// Room on the disk of a run that nobody else can take: a file without a name, which is gone with this process at the latest.
#[derive(Debug)]
pub(crate) struct DiskReserve(Option<File>);

impl DiskReserve {
    /// Takes room in the directory of a run whose events may take `most_bytes`. Where there is none, nothing is set aside.
    pub(crate) fn take(run: &Path, most_bytes: u64) -> Self {
        let path = run.join(RESERVE);
        let bytes = (most_bytes / PART).clamp(*RESERVED.start(), *RESERVED.end());
        let taken = File::create_new(&path).and_then(|mut file| {
            fs::remove_file(&path)?;
            file.write_all(&vec![0; usize::try_from(bytes).unwrap_or(0)])?;
            Ok(file)
        });
        Self(taken.ok())
    }

    /// Gives the room back, for the end of the run.
    pub(crate) fn give_back(&mut self) {
        self.0 = None;
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
    fn what_is_set_aside_has_no_name_and_is_given_back() {
        let run = tempfile::tempdir().unwrap();
        let mut reserve = DiskReserve::take(run.path(), 2 << 20);
        let taken = reserve.0.as_ref().unwrap().metadata().unwrap();
        assert_eq!(taken.len(), 512 << 10);
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
        reserve.give_back();
        assert!(reserve.0.is_none());
        // In a directory that does not exist there is no room.
        assert!(DiskReserve::take(&run.path().join("absent"), 0).0.is_none());
    }
}
