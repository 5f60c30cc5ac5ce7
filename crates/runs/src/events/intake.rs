//! Takes in events of any hosts in any order and adds them to a run's files, in bounded memory, whole or not at all.
//!
//! Events of the first hosts go straight into a sorter each. Those of further hosts are kept together, host by host, in files of their own until
//! the end, so that thousands of hosts need no more memory or open files than a few.

use super::crowd::Crowd;
use super::events_path;
use super::sort::Sorter;
use crate::{Error, files};
use stackline_events::Table;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Hosts that have a sorter each.
const STRAIGHT: usize = 64;
/// Most hosts of a run: each is a file.
const MOST: usize = 1 << 12;
/// Bytes of events that are held back.
const HELD: usize = 96 << 20;

/// Events on their way into a run.
#[derive(Debug)]
pub struct Intake {
    run: PathBuf,
    scratch: PathBuf,
    straight: BTreeMap<String, Sorter>,
    crowd: Crowd,
    /// Events that came, by host.
    came: BTreeMap<String, u64>,
    held: usize,
    /// Events of hosts beyond [`MOST`].
    refused: u64,
}

/// What an intake did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Events that came, by host.
    pub hosts: BTreeMap<String, u64>,
    /// Events that were left out because a run has no room for their hosts.
    pub refused: u64,
}

impl Intake {
    /// Begins to add to a run directory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(run: &Path) -> Result<Self, Error> {
        Self::holding(run, HELD)
    }

    pub(crate) fn holding(run: &Path, held: usize) -> Result<Self, Error> {
        // What a killed one left behind is in nobody's way and is taken away by the next of the same number.
        let scratch = run.join(files::EVENTS).join(format!(".import-{}", std::process::id()));
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).map_err(|cause| Error::writing(&scratch, &cause))?;
        let crowd = Crowd::new(scratch.join("crowd"));
        Ok(Self {
            run: run.to_owned(),
            scratch,
            straight: BTreeMap::new(),
            crowd,
            came: BTreeMap::new(),
            held,
            refused: 0,
        })
    }

    /// The run that is added to.
    #[must_use]
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// Events that came so far, by host.
    #[must_use]
    pub const fn hosts(&self) -> &BTreeMap<String, u64> {
        &self.came
    }

    /// Adds events.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn push(&mut self, table: &Table) -> Result<(), Error> {
        if table.is_empty() {
            return Ok(());
        }
        if table.host.iter().all(|host| *host == table.host[0]) {
            self.add(table, table.host(0), 0..table.len());
        } else {
            let mut rows: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (row, host) in table.host.iter().enumerate() {
                rows.entry(*host).or_default().push(row as u32);
            }
            for (host, rows) in rows {
                self.add(table, table.names.text(host), rows.iter().map(|row| *row as usize));
            }
        }
        self.relieve()
    }

    fn add(&mut self, table: &Table, host: &str, rows: impl ExactSizeIterator<Item = usize> + Clone) {
        let known = self.straight.contains_key(host) || self.crowd.has(host);
        if !known && self.straight.len() + self.crowd.hosts() >= MOST {
            self.refused += rows.len() as u64;
            return;
        }
        *self.came.entry(host.to_owned()).or_default() += rows.len() as u64;
        if let Some(sorter) = self.straight.get_mut(host) {
            return sorter.push(table, rows);
        }
        if self.straight.len() < STRAIGHT {
            let mut sorter = Sorter::new(self.scratch.join(format!("host-{}", self.straight.len())));
            sorter.push(table, rows);
            self.straight.insert(host.to_owned(), sorter);
        } else {
            self.crowd.push(table, host, rows);
        }
    }

    /// Sends on what is most, until what is held back is within its bound.
    fn relieve(&mut self) -> Result<(), Error> {
        loop {
            let sizes = self.straight.values().map(Sorter::bytes);
            let all = sizes.clone().sum::<usize>() + self.crowd.bytes();
            if all <= self.held {
                return Ok(());
            }
            let most = sizes.max().unwrap_or(0);
            match self.straight.values_mut().find(|sorter| sorter.bytes() == most) {
                Some(sorter) if most >= self.crowd.bytes() => sorter.relieve()?,
                _ => self.crowd.relieve()?,
            }
        }
    }

    /// Adds everything to the run's files: first each beside its own, then all in their place.
    ///
    /// # Errors
    /// When they cannot be written; the run's files are as they were, unless one could be replaced and another not.
    pub fn finish(mut self) -> Result<Taken, Error> {
        let mut ready: Vec<(PathBuf, PathBuf)> = Vec::new();
        let (straight, crowd) = (std::mem::take(&mut self.straight), std::mem::take(&mut self.crowd));
        let mut settle = |host: &str, sorter: Sorter, scratch: &Path| {
            let to = events_path(&self.run, host)?;
            let made = scratch.join(format!("{}.ready", ready.len()));
            sorter.finish(Some(to.as_path()).filter(|to| to.is_file()), &made)?;
            files::settle(&made)?;
            ready.push((made, to));
            Ok(())
        };
        for (host, sorter) in straight {
            settle(&host, sorter, &self.scratch)?;
        }
        crowd.finish(self.held, |host, sorter| settle(host, sorter, &self.scratch))?;
        for (made, to) in ready {
            fs::rename(&made, &to).map_err(|cause| Error::writing(&to, &cause))?;
        }
        Ok(Taken { hosts: std::mem::take(&mut self.came), refused: self.refused })
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        // What cannot be taken away is in nobody's way.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read_run, read_table};
    use super::*;
    use stackline_events::Value;

    fn events(hosts: usize, from: u64, count: u64) -> Table {
        let mut table = Table::default();
        for at in from..from + count {
            table.push("A", &format!("h{}", at as usize % hosts), at, &[Value::Number(at as i64)]);
        }
        table
    }

    #[test]
    fn a_few_hosts_and_a_crowd_get_a_file_each() {
        for (hosts, held) in [(1, 1), (3, 1 << 20), (STRAIGHT + 30, 4000)] {
            let run = tempfile::tempdir().unwrap();
            let mut intake = Intake::holding(run.path(), held).unwrap();
            for part in 0..20 {
                intake.push(&events(hosts, part * 100, 100)).unwrap();
            }
            let taken = intake.finish().unwrap();
            assert_eq!((taken.hosts.len(), taken.hosts.values().sum::<u64>()), (hosts, 2000));
            for host in 0..hosts {
                let table = read_table(&events_path(run.path(), &format!("h{host}")).unwrap()).unwrap();
                let expected: Vec<u64> = (0..2000).filter(|at| *at as usize % hosts == host).collect();
                assert_eq!(table.at_ns, expected, "{hosts} hosts, host {host}");
                assert!((0..table.len()).all(|row| table.host(row) == format!("h{host}")));
            }
            let left = fs::read_dir(run.path().join(files::EVENTS)).unwrap().count();
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
        let mut intake = Intake::holding(run.path(), 1).unwrap();
        intake.push(&events(2, 0, 1000)).unwrap();
        drop(intake);
        assert_eq!(fs::read_dir(run.path().join(files::EVENTS)).unwrap().count(), 0);
        assert!(read_run(run.path()).is_err());
    }

    #[test]
    fn hosts_beyond_the_room_of_a_run_are_counted() {
        let run = tempfile::tempdir().unwrap();
        let mut intake = Intake::begin(run.path()).unwrap();
        intake.push(&events(MOST + 3, 0, MOST as u64 + 3)).unwrap();
        assert_eq!((intake.refused, intake.hosts().len()), (3, MOST));
    }
}
