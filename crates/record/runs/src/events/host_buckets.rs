//! Events of many hosts: kept in files in which each host's are together, and sorted host by host at the end.

use super::parquet::{EventColumnSelection, EventFileReader, EventFileWriter};
use super::sort::{Sorter, bytes_of};
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_events::EventTable;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files that are read at once.
const OPEN: usize = 64;

/// Events of many hosts.
#[derive(Debug, Default)]
pub(super) struct HostBuckets {
    scratch: PathBuf,
    /// Hosts in the order they were met: their numbers.
    numbers: BTreeMap<String, u32>,
    names: Vec<String>,
    pending: EventTable,
    /// Files in which the events of hosts follow one another in the order of their numbers.
    files: Vec<PathBuf>,
    made: usize,
}

impl HostBuckets {
    /// Without events; `scratch` is the beginning of the paths of files it makes.
    pub(super) fn new(scratch: PathBuf) -> Self {
        Self {
            scratch,
            ..Self::default()
        }
    }

    /// Whether it has events of a host.
    pub(super) fn has(&self, host: &str) -> bool {
        self.numbers.contains_key(host)
    }

    /// Of how many hosts it has events.
    pub(super) const fn hosts(&self) -> usize {
        self.names.len()
    }

    /// About how many bytes of memory it holds.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.pending)
    }

    /// Adds events of a host.
    pub(super) fn push(
        &mut self,
        table: &EventTable,
        host: &str,
        rows: impl Iterator<Item = usize> + Clone,
    ) {
        if !self.has(host) {
            self.numbers
                .insert(host.to_owned(), self.names.len() as u32);
            self.names.push(host.to_owned());
        }
        self.pending.extend(table, rows);
    }

    fn number(&self, host: &str) -> u32 {
        self.numbers.get(host).copied().unwrap_or(u32::MAX)
    }

    /// Writes what is held.
    pub(super) fn relieve(&mut self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        let numbers: Vec<u32> = (0..pending.names.len())
            .map(|name| self.number(pending.names.text(name as u32)))
            .collect();
        let mut rows: Vec<u32> = (0..pending.len() as u32).collect();
        rows.sort_by_key(|row| numbers[pending.host[*row as usize] as usize]);
        let path = self.path();
        let mut writer = begin(&path)?;
        writer.push(&pending, &rows)?;
        end(writer, &path)?;
        self.files.push(path);
        if self.files.len() >= OPEN {
            self.join()
        } else {
            Ok(())
        }
    }

    fn path(&mut self) -> PathBuf {
        self.made += 1;
        self.scratch
            .with_extension(format!("{}.buckets", self.made))
    }

    /// Makes one file of all.
    fn join(&mut self) -> Result<(), Error> {
        let path = self.path();
        let mut writer = begin(&path)?;
        let mut inputs = self.inputs()?;
        for host in 0..self.names.len() as u32 {
            for input in &mut inputs {
                input.take(host, &self.numbers, |table, rows| {
                    let rows: Vec<u32> = rows.map(|row| row as u32).collect();
                    writer.push(table, &rows)
                })?;
            }
        }
        end(writer, &path)?;
        for old in std::mem::replace(&mut self.files, vec![path]) {
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    fn inputs(&self) -> Result<Vec<HostFileInput>, Error> {
        let open = |path: &PathBuf| {
            Ok(HostFileInput {
                reader: EventFileReader::open(path, &EventColumnSelection::all())?,
                batch: EventTable::default(),
                row: 0,
            })
        };
        self.files.iter().map(open).collect()
    }

    /// Gives each host and a sorter that has all its events; `held` bytes of them are held back at most.
    pub(super) fn finish(
        mut self,
        held: usize,
        stop: &SortStopSignal,
        mut give: impl FnMut(&str, Sorter) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.names.is_empty() {
            return Ok(());
        }
        self.relieve()?;
        let mut inputs = self.inputs()?;
        for (number, name) in self.names.iter().enumerate() {
            let mut sorter = Sorter::new(
                self.scratch.with_file_name(format!("bucket-{number}")),
                stop,
            );
            for input in &mut inputs {
                input.take(number as u32, &self.numbers, |table, rows| {
                    sorter.push(table, rows);
                    if sorter.bytes() > held {
                        sorter.relieve()
                    } else {
                        Ok(())
                    }
                })?;
            }
            give(name, sorter)?;
        }
        Ok(())
    }
}

fn begin(path: &Path) -> Result<EventFileWriter<BufWriter<File>>, Error> {
    let file = files::create(path).map_err(|cause| Error::writing(path, &cause))?;
    EventFileWriter::new(BufWriter::new(file), path)
}

fn end(writer: EventFileWriter<BufWriter<File>>, path: &Path) -> Result<(), Error> {
    let (mut file, _) = writer.finish()?;
    file.flush().map_err(|cause| Error::writing(path, &cause))
}

/// A file in which hosts follow one another.
struct HostFileInput {
    reader: EventFileReader,
    batch: EventTable,
    row: usize,
}

impl HostFileInput {
    /// Gives the events of a host, which come next if there are any.
    fn take(
        &mut self,
        host: u32,
        numbers: &BTreeMap<String, u32>,
        mut give: impl FnMut(&EventTable, std::ops::Range<usize>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            if self.row == self.batch.len() {
                let Some(batch) = self.reader.next_batch()? else {
                    return Ok(());
                };
                (self.batch, self.row) = (batch, 0);
            }
            let name = self.batch.host[self.row];
            if numbers.get(self.batch.names.text(name)) != Some(&host) {
                return Ok(());
            }
            let same = self.batch.host[self.row..]
                .iter()
                .take_while(|other| **other == name)
                .count();
            give(&self.batch, self.row..self.row + same)?;
            self.row += same;
        }
    }
}
