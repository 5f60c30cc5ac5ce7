//! Adds events of any hosts in any order to a run's files, in bounded memory, completely or not at all.
//!
//! Each of the first hosts has a sorter. The events of further hosts are collected in buckets until the end, so that
//! thousands of hosts need no more memory or open files than a few.

use super::host_buckets::HostBuckets;
use super::lock::{EventsLock, RunScratchDirectory};
use super::paths::events_path;
use super::sort::Sorter;
use super::spool::{Settled, settle_left};
use super::stop::SortStopSignal;
use crate::{Error, RunStatus, files};
use stackline_events::EventTable;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of hosts that have a sorter of their own.
const SORTERS: usize = 64;
/// Most hosts of a run: each has a file.
const MOST: usize = 1 << 12;
/// Most bytes of events that are held in memory.
const HELD: usize = 96 << 20;

/// Events being added to a run.
#[derive(Debug)]
pub struct Intake {
    run: PathBuf,
    lock: EventsLock,
    scratch: RunScratchDirectory,
    stop: SortStopSignal,
    sorters: BTreeMap<String, Sorter>,
    buckets: HostBuckets,
    /// Number of events accepted, by host.
    came: BTreeMap<String, u64>,
    /// Most bytes of events held in memory.
    held: usize,
    /// Number of events left out because their hosts are beyond [`MOST`].
    beyond: u64,
    /// Number of events left out because no run can have them, by cause.
    refused: BTreeMap<&'static str, u64>,
}

/// The result of an intake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntakeResult {
    /// Number of events accepted, by host.
    pub hosts: BTreeMap<String, u64>,
    /// Number of events left out because the run already has the largest number of hosts.
    pub refused: u64,
    /// Event logs left by a killed run that were sorted first: the counts by host.
    pub settled: BTreeMap<String, Settled>,
}

impl Intake {
    /// Begins to add events to a run directory. As long as this value lives no other process can add events to it.
    ///
    /// # Errors
    /// When the directory cannot be written, or another process is writing its events.
    pub fn begin(run: &Path) -> Result<Self, Error> {
        Self::holding(run, HELD, &SortStopSignal::default())
    }

    /// Like [`Self::begin`], but sorting ends early when `stop` is raised.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn until(run: &Path, stop: &SortStopSignal) -> Result<Self, Error> {
        Self::holding(run, HELD, stop)
    }

    fn holding(run: &Path, held: usize, stop: &SortStopSignal) -> Result<Self, Error> {
        let lock = EventsLock::take(run)?;
        let scratch = lock.scratch("import")?;
        let buckets = HostBuckets::new(scratch.join("buckets"));
        Ok(Self {
            run: run.to_owned(),
            lock,
            scratch,
            stop: stop.clone(),
            sorters: BTreeMap::new(),
            buckets,
            came: BTreeMap::new(),
            held,
            beyond: 0,
            refused: BTreeMap::new(),
        })
    }

    /// The run that events are added to.
    #[must_use]
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// Number of events accepted so far, by host.
    #[must_use]
    pub const fn hosts(&self) -> &BTreeMap<String, u64> {
        &self.came
    }

    /// Number of events left out so far because no run can have them, by cause.
    #[must_use]
    pub const fn refused(&self) -> &BTreeMap<&'static str, u64> {
        &self.refused
    }

    /// Adds events. Events without a keyword or a host, and those after the year 2262, are left out and counted.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub fn push(&mut self, table: &EventTable) -> Result<(), Error> {
        let wrong = wrong(table);
        if (0..table.len()).any(|row| wrong(row).is_some()) {
            let mut fit = EventTable::default();
            (0..table.len())
                .filter_map(&wrong)
                .for_each(|cause| *self.refused.entry(cause).or_default() += 1);
            fit.extend(table, (0..table.len()).filter(|row| wrong(*row).is_none()));
            return self.push_fit(&fit);
        }
        self.push_fit(table)
    }

    /// Adds events that have a keyword, a host and a valid time.
    fn push_fit(&mut self, table: &EventTable) -> Result<(), Error> {
        if table.is_empty() {
            return Ok(());
        }
        self.stop.check(table.len())?;
        if table.host.iter().all(|host| *host == table.host[0]) {
            self.add(table, table.host(0), 0..table.len());
        } else {
            let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (row, host) in table.host.iter().enumerate() {
                rows.entry(*host).or_default().push(row as u32);
            }
            for (host, rows) in rows {
                self.add(
                    table,
                    table.names.text(host),
                    rows.iter().map(|row| *row as usize),
                );
            }
        }
        self.relieve()
    }

    /// Adds the rows of a table that belong to `host`.
    fn add(
        &mut self,
        table: &EventTable,
        host: &str,
        rows: impl ExactSizeIterator<Item = usize> + Clone,
    ) {
        let known = self.sorters.contains_key(host) || self.buckets.has(host);
        if !known && self.sorters.len() + self.buckets.hosts() >= MOST {
            self.beyond += rows.len() as u64;
            return;
        }
        *self.came.entry(host.to_owned()).or_default() += rows.len() as u64;
        if let Some(sorter) = self.sorters.get_mut(host) {
            return sorter.push(table, rows);
        }
        if self.sorters.len() < SORTERS {
            let mut sorter = Sorter::new(
                self.scratch.join(&format!("host-{}", self.sorters.len())),
                &self.stop,
            );
            sorter.push(table, rows);
            self.sorters.insert(host.to_owned(), sorter);
        } else {
            self.buckets.push(table, host, rows);
        }
    }

    /// Writes the largest parts to files until the rest is within the memory limit.
    fn relieve(&mut self) -> Result<(), Error> {
        loop {
            let sizes = self.sorters.values().map(Sorter::bytes);
            let all = sizes.clone().sum::<usize>() + self.buckets.bytes();
            if all <= self.held {
                return Ok(());
            }
            let most = sizes.max().unwrap_or(0);
            match self
                .sorters
                .values_mut()
                .find(|sorter| sorter.bytes() == most)
            {
                Some(sorter) if most >= self.buckets.bytes() => sorter.relieve()?,
                _ => self.buckets.relieve()?,
            }
        }
    }

    /// Adds all events to the run's files: writes each new file beside the old one, then renames them. Event logs left
    /// by a killed run are sorted before.
    ///
    /// # Errors
    /// When a file cannot be written. The run's files are unchanged then, unless a rename failed after others had
    /// succeeded.
    pub fn finish(&mut self) -> Result<IntakeResult, Error> {
        self.finish_if(|| true)
    }

    /// Like [`Self::finish`], unless `wanted` returns false. It is called when all files are ready and none has been
    /// replaced.
    ///
    /// # Errors
    /// Those of [`Self::finish`], and when `wanted` returns false.
    pub fn finish_if(&mut self, wanted: impl FnOnce() -> bool) -> Result<IntakeResult, Error> {
        let settled = settle_left(&self.run, &self.lock, &self.stop)?;
        let mut ready: Vec<(PathBuf, PathBuf)> = Vec::new();
        let (sorters, buckets) = (
            std::mem::take(&mut self.sorters),
            std::mem::take(&mut self.buckets),
        );
        let mut settle = |host: &str, sorter: Sorter, scratch: &RunScratchDirectory| {
            let to = events_path(&self.run, host)?;
            let made = scratch.join(&format!("{}.ready", ready.len()));
            sorter.finish(Some(to.as_path()).filter(|to| to.is_file()), &made)?;
            files::sync_file(&made)?;
            ready.push((made, to));
            Ok(())
        };
        for (host, sorter) in sorters {
            settle(&host, sorter, &self.scratch)?;
        }
        buckets.finish(self.held, &self.stop, |host, sorter| {
            settle(host, sorter, &self.scratch)
        })?;
        // Asked last: everything before it can be given up.
        if !wanted() {
            return Err(Error::interrupted(
                "its events were not kept: it was interrupted",
            ));
        }
        // All are complete and synced before the first takes its place.
        for (made, to) in ready {
            fs::rename(&made, &to).map_err(|cause| Error::writing(&to, &cause))?;
        }
        RunStatus::sum_again(&self.run)?;
        Ok(IntakeResult {
            hosts: std::mem::take(&mut self.came),
            refused: self.beyond,
            settled,
        })
    }
}

/// For a table: the function that says why the event in a row cannot be part of a run, if it cannot.
fn wrong(table: &EventTable) -> impl Fn(usize) -> Option<&'static str> {
    const LATEST: u64 = i64::MAX as u64;
    let empty = table.names.find("");
    move |row| match () {
        () if table.at_ns[row] > LATEST => Some("time out of range"),
        () if Some(table.keyword[row]) == empty => Some("no keyword"),
        () if Some(table.host[row]) == empty => Some("no host"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read_run, read_table};
    use super::*;
    use crate::events::Spooling;
    use stackline_events::{EventLog, EventValue, keyword};

    fn events(hosts: usize, from: u64, count: u64) -> EventTable {
        let mut table = EventTable::default();
        for at in from..from + count {
            table.push(
                "A",
                &format!("h{}", at as usize % hosts),
                at,
                &[EventValue::Number(at as i64)],
            );
        }
        table
    }

    #[test]
    fn few_hosts_and_many_get_a_file_each() {
        for (hosts, held) in [(1, 1), (3, 1 << 20), (SORTERS + 30, 4000)] {
            let run = tempfile::tempdir().unwrap();
            let mut intake = Intake::holding(run.path(), held, &SortStopSignal::default()).unwrap();
            for part in 0..20 {
                intake.push(&events(hosts, part * 100, 100)).unwrap();
            }
            let taken = intake.finish().unwrap();
            assert_eq!(
                (taken.hosts.len(), taken.hosts.values().sum::<u64>()),
                (hosts, 2000)
            );
            for host in 0..hosts {
                let table =
                    read_table(&events_path(run.path(), &format!("h{host}")).unwrap()).unwrap();
                let expected: Vec<u64> = (0..2000)
                    .filter(|at| *at as usize % hosts == host)
                    .collect();
                assert_eq!(table.at_ns, expected, "{hosts} hosts, host {host}");
                assert!((0..table.len()).all(|row| table.host(row) == format!("h{host}")));
            }
            drop(intake);
            let left = fs::read_dir(run.path().join(files::EVENTS))
                .unwrap()
                .count();
            assert_eq!(left, hosts, "nothing else is left");
        }
    }

    #[test]
    fn what_is_added_later_goes_into_the_same_files() {
        let run = tempfile::tempdir().unwrap();
        for from in [1000, 0] {
            let mut intake = Intake::begin(run.path()).unwrap();
            intake.push(&events(2, from, 1000)).unwrap();
            intake.finish().unwrap();
        }
        let table = read_run(run.path()).unwrap();
        assert_eq!(table.len(), 2000);
        let first: Vec<u64> = table.at_ns[..1000].to_vec();
        assert!(first.is_sorted() && first.iter().all(|at| at % 2 == 0));
    }

    #[test]
    fn an_intake_that_is_given_up_leaves_the_run_as_it_was() {
        let run = tempfile::tempdir().unwrap();
        let mut intake = Intake::holding(run.path(), 1, &SortStopSignal::default()).unwrap();
        intake.push(&events(2, 0, 1000)).unwrap();
        drop(intake);
        assert_eq!(
            fs::read_dir(run.path().join(files::EVENTS))
                .unwrap()
                .count(),
            0
        );
        assert!(read_run(run.path()).is_err());
    }

    #[test]
    fn hosts_beyond_the_room_of_a_run_are_counted() {
        let run = tempfile::tempdir().unwrap();
        let mut intake = Intake::begin(run.path()).unwrap();
        intake.push(&events(MOST + 3, 0, MOST as u64 + 3)).unwrap();
        assert_eq!((intake.beyond, intake.hosts().len()), (3, MOST));
    }

    #[test]
    fn what_no_run_can_have_is_counted() {
        let run = tempfile::tempdir().unwrap();
        let mut intake = Intake::begin(run.path()).unwrap();
        let mut table = EventTable::default();
        let last = i64::MAX as u64;
        for (keyword, host, at) in [
            ("A", "h", 1),
            ("A", "h", last),
            ("A", "h", last + 1),
            ("", "h", 2),
            ("A", "", 3),
        ] {
            table.push(keyword, host, at, &[EventValue::Text("")]);
        }
        intake.push(&table).unwrap();
        let expected = [("no host", 1), ("no keyword", 1), ("time out of range", 1)];
        assert_eq!(intake.refused(), &BTreeMap::from(expected));
        intake.finish().unwrap();
        assert_eq!(read_run(run.path()).unwrap().at_ns, [1, last]);
    }

    #[test]
    fn a_run_that_is_still_being_made_is_not_added_to_and_a_killed_one_keeps_its_event_logs() {
        let run = tempfile::tempdir().unwrap();
        let mut event_log = EventLog::default();
        event_log.host("h0");
        event_log.push(keyword::intern("A"), 5, &[]);
        let made = Spooling::start(run.path()).unwrap();
        made.append("h0", &event_log).unwrap();
        assert!(Intake::begin(run.path()).is_err());
        drop(made);
        let mut intake = Intake::begin(run.path()).unwrap();
        assert!(Spooling::start(run.path()).is_err());
        intake.push(&events(1, 0, 2)).unwrap();
        let taken = intake.finish().unwrap();
        assert_eq!(taken.settled["h0"].recorded, 1);
        assert_eq!(read_run(run.path()).unwrap().at_ns, [0, 1, 5]);
    }
}
