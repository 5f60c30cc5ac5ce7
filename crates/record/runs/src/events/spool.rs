//! The spool: event logs that a run in progress appends to, one file for each host. At the end of the run they are
//! converted to Parquet. If the run is killed, what it recorded is in the logs and can be read.

use super::lock::{EventsLock, RunScratchDirectory};
use super::paths::{EVENT_LOG_EXTENSION, event_log_files, events_path};
use super::sort::Sorter;
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_core::trace_index::HostTrace;
use stackline_events::event_log::EventLogPieces;
use stackline_events::file_sinks::append;
use stackline_events::{EventLog, EventTable};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Most bytes of events that are held in memory while an event log is sorted.
const HELD: usize = 64 << 20;

/// Appends to the event logs of a run's hosts.
#[derive(Debug)]
pub struct Spool {
    run: PathBuf,
}

/// The event logs of a run in progress. While this value lives, only a [`Spool`] of the same run can add to its
/// events.
#[derive(Debug)]
pub struct Spooling {
    spool: Spool,
    lock: EventsLock,
}

impl Spool {
    /// The spool of a run. The caller ensures that a [`Spooling`] of the run lives.
    #[must_use]
    pub fn new(run: &Path) -> Self {
        Self {
            run: run.to_owned(),
        }
    }

    /// Appends an event log, which must define all names that it uses.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is left in the file then.
    pub fn append(&self, host: &str, event_log: &EventLog) -> Result<(), Error> {
        let path = events_path(&self.run, host)?.with_extension(EVENT_LOG_EXTENSION);
        files::make_events(&self.run).map_err(|cause| Error::write_failed(&path, &cause))?;
        let appended = files::append(&path).and_then(|mut file| {
            let length = file.metadata()?.len();
            append(&mut file, length, event_log.bytes())
        });
        appended.map_err(|cause| Error::write_failed(&path, &cause))
    }
}

impl Spooling {
    /// The event logs of a run, locked for this process.
    ///
    /// # Errors
    /// When another process is writing the run's events, or they cannot be written.
    pub fn start(run: &Path) -> Result<Self, Error> {
        Ok(Self {
            spool: Spool::new(run),
            lock: EventsLock::take(run)?,
        })
    }

    /// The event logs without their lock, for those who append while this value lives.
    #[must_use]
    pub const fn logs(&self) -> &Spool {
        &self.spool
    }

    /// See [`Spool::append`].
    ///
    /// # Errors
    /// Those of [`Spool::append`].
    pub fn append(&self, host: &str, event_log: &EventLog) -> Result<(), Error> {
        self.spool.append(host, event_log)
    }

    /// Converts every event log to a sorted Parquet file, or merges it into the existing one, then removes the log.
    /// Returns the counts by host. Memory does not grow with the length of a log.
    ///
    /// # Errors
    /// When a log cannot be converted, or `stop` ends the sorting; that log stays then.
    pub fn settle(&self, stop: &SortStopSignal) -> Result<BTreeMap<String, Settled>, Error> {
        let mut hosts = BTreeMap::new();
        for log_path in event_log_files(&self.spool.run)? {
            settle(&log_path, &self.lock.scratch("logs")?, stop, &mut hosts)?;
        }
        Ok(hosts)
    }
}

/// Converts the event logs that a killed run left.
pub(super) fn settle_left(
    run: &Path,
    lock: &EventsLock,
    stop: &SortStopSignal,
) -> Result<BTreeMap<String, Settled>, Error> {
    let mut hosts = BTreeMap::new();
    for log_path in event_log_files(run)? {
        if log_path.with_extension("parquet").is_file() {
            // The run was killed after the file was complete and before the log was removed: the file has all events
            // of the log.
            fs::remove_file(&log_path).map_err(|cause| Error::writing(&log_path, &cause))?;
        } else {
            settle(&log_path, &lock.scratch("logs")?, stop, &mut hosts)?;
        }
    }
    Ok(hosts)
}

/// The result of converting a host's event logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Events stored.
    pub recorded: u64,
    /// Bytes from the first damaged record on, which could not be read.
    pub damaged: u64,
}

impl Settled {
    /// Enters the counts into the host's trace record.
    pub fn record_in(self, of: &mut HostTrace) {
        of.recorded = self.recorded;
        if self.damaged > 0 {
            // How many events the damaged bytes held is unknown; counting one shows that some are lost.
            of.lost += 1;
            of.notes.push(format!(
                "damaged bytes in its events: {}; the events in them are lost",
                self.damaged
            ));
        }
    }
}

/// Sorts an event log into the Parquet file beside it, which is renamed into place when complete. Adds the counts to
/// `hosts`.
fn settle(
    log_path: &Path,
    scratch: &RunScratchDirectory,
    stop: &SortStopSignal,
    hosts: &mut BTreeMap<String, Settled>,
) -> Result<(), Error> {
    let mut sorter = Sorter::new(scratch.join("log"), stop);
    let mut pieces = open_pieces(log_path)?;
    let (mut counts, mut last) = (BTreeMap::<String, u64>::new(), None);
    while let Some(piece) = read_next_table(&mut pieces, log_path)? {
        stop.check(piece.len())?;
        // The file name may encode or cut the host's name; the events have the full name.
        for same in piece.host.chunk_by(|one, other| one == other) {
            *counts
                .entry(piece.names.text(same[0]).to_owned())
                .or_default() += same.len() as u64;
        }
        last = piece
            .host
            .last()
            .map(|host| piece.names.text(*host).to_owned());
        sorter.push(&piece, 0..piece.len());
        if sorter.bytes() > HELD {
            sorter.relieve()?;
        }
    }
    let (made, to) = (scratch.join("ready"), log_path.with_extension("parquet"));
    if !to.is_file() || !counts.is_empty() {
        let (came, all) = sorter.finish(Some(to.as_path()).filter(|to| to.is_file()), &made)?;
        files::sync_file(&made)?;
        fs::rename(&made, &to).map_err(|cause| Error::writing(&to, &cause))?;
        if let Some(host) = &last {
            *counts.entry(host.clone()).or_default() += all - came;
        }
    }
    fs::remove_file(log_path).map_err(|cause| Error::writing(log_path, &cause))?;
    for (host, count) in counts {
        hosts.entry(host).or_default().recorded += count;
    }
    if pieces.damaged() > 0 {
        let stem = || {
            log_path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        hosts.entry(last.unwrap_or_else(stem)).or_default().damaged += pieces.damaged();
    }
    Ok(())
}

/// Reads a whole event log, which may still be written; it ends at a truncated record.
pub(super) fn read_event_log(path: &Path) -> Result<EventTable, Error> {
    let (mut table, mut pieces) = (EventTable::default(), open_pieces(path)?);
    while let Some(piece) = read_next_table(&mut pieces, path)? {
        table.append(&piece);
    }
    Ok(table)
}

pub(super) fn open_pieces(path: &Path) -> Result<EventLogPieces<File>, Error> {
    files::open(path)
        .map(EventLogPieces::new)
        .map_err(|cause| Error::reading(path, &cause))
}

pub(super) fn read_next_table(
    pieces: &mut EventLogPieces<File>,
    path: &Path,
) -> Result<Option<EventTable>, Error> {
    pieces
        .next_table()
        .map_err(|cause| Error::reading(path, &cause))
}

#[cfg(test)]
mod tests {
    use super::super::run_events::read_run;
    use super::*;
    use stackline_events::{EventValue, keyword};

    #[test]
    fn event_logs_become_one_sorted_file() {
        let run = tempfile::tempdir().unwrap();
        let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
        let spool = Spooling::start(run.path()).unwrap();
        for (at, keyword) in [(5, send), (3, drop)] {
            let mut event_log = EventLog::default();
            event_log.host("khons");
            event_log.push(keyword, at, &[at.into()]);
            spool.append("khons", &event_log).unwrap();
        }
        assert!(spool.append("", &EventLog::default()).is_err());
        assert_eq!(
            read_run(run.path()).unwrap().len(),
            2,
            "readable before the end"
        );
        let settled = Settled {
            recorded: 2,
            damaged: 0,
        };
        assert_eq!(
            spool.settle(&SortStopSignal::default()).unwrap(),
            BTreeMap::from([("khons".to_owned(), settled)])
        );
        let table = read_run(run.path()).unwrap();
        let lines: Vec<String> = (0..2).map(|row| table.event(row).to_string()).collect();
        assert_eq!(
            lines,
            ["NET_DROP; khons; 0; 3; 3", "APP_SEND; khons; 0; 5; 5"]
        );
        assert!(event_log_files(run.path()).unwrap().is_empty());
        spool.append("khons", &log_of("khons", 4, "x")).unwrap();
        let settled = Settled {
            recorded: 3,
            damaged: 0,
        };
        assert_eq!(
            spool.settle(&SortStopSignal::default()).unwrap()["khons"],
            settled,
            "what was there stays"
        );
        assert_eq!(read_run(run.path()).unwrap().at_ns, [3, 4, 5]);
        assert_eq!(
            fs::read_dir(run.path().join(files::EVENTS))
                .unwrap()
                .count(),
            1,
            "nothing else is left"
        );
    }

    #[test]
    fn nothing_unfinished_is_left_where_an_event_log_cannot_be_settled() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spooling::start(run.path()).unwrap();
        spool.append("khons", &log_of("khons", 1, "x")).unwrap();
        let events = run.path().join(files::EVENTS);
        fs::create_dir_all(events.join("khons.parquet/in the way")).unwrap();
        assert!(spool.settle(&SortStopSignal::default()).is_err());
        assert_eq!(
            fs::read_dir(&events).unwrap().count(),
            2,
            "the event log and what was there"
        );
    }

    fn log_of(host: &str, at: u64, text: &str) -> EventLog {
        let mut event_log = EventLog::default();
        event_log.host(host);
        event_log.push(
            keyword::intern("APP_SEND"),
            at,
            &[at.into(), EventValue::Text(text)],
        );
        event_log
    }

    #[test]
    fn a_host_has_its_own_name_and_damage_is_reported() {
        let run = tempfile::tempdir().unwrap();
        let spool = Spooling::start(run.path()).unwrap();
        spool.append("a b", &log_of("a b", 1, "x")).unwrap();
        let cut = log_of("a b", 2, "cut off").bytes()[..60].to_vec();
        spool.append("a b", &EventLog::from_bytes(cut)).unwrap();
        let settled = spool.settle(&SortStopSignal::default()).unwrap();
        assert_eq!(settled.keys().collect::<Vec<_>>(), ["a b"]);
        let mut host = HostTrace::default();
        settled["a b"].record_in(&mut host);
        assert_eq!((host.recorded, host.lost), (1, 1));
        assert!(
            host.notes[0].contains("damaged bytes in its events"),
            "{:?}",
            host.notes
        );
    }

    /// In a process of its own, in which no file may be longer than some bytes.
    #[test]
    fn an_event_log_that_does_not_fit_on_the_disk_leaves_nothing_of_it() {
        const WITHIN: &str = "STACKLINE_TEST_SHORT_FILES";
        if std::env::var_os(WITHIN).is_none() {
            let name = "events::spool::tests::an_event_log_that_does_not_fit_on_the_disk_leaves_nothing_of_it";
            let script = format!("trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact {name}");
            let mut shell = std::process::Command::new("bash");
            let shell = shell
                .arg("-c")
                .arg(script)
                .arg(std::env::current_exe().unwrap())
                .env(WITHIN, "1");
            let done = shell.output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let run = tempfile::tempdir().unwrap();
        let spool = Spooling::start(run.path()).unwrap();
        spool.append("khons", &log_of("khons", 1, "x")).unwrap();
        let long = log_of("khons", 2, &"y".repeat(4090));
        assert!(spool.append("khons", &long).unwrap_err().is_disk_full);
        spool.append("khons", &log_of("khons", 3, "z")).unwrap();
        assert_eq!(read_run(run.path()).unwrap().at_ns, [1, 3]);
    }
}
