//! Events of many hosts in bounded memory: written to files in which each host's events are adjacent, and sorted host
//! by host at the end.

use super::parquet::{EventColumnSelection, EventFileReader, EventFileWriter};
use super::sort::{Sorter, bytes_of};
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_events::EventTable;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The largest number of files that are read at once.
const OPEN: usize = 64;

/// Collects the events of many hosts.
#[derive(Debug, Default)]
pub(super) struct HostBuckets {
    /// The beginning of the paths of its temporary files.
    scratch: PathBuf,
    /// The number of each host: its position in `names`.
    numbers: BTreeMap<String, u32>,
    /// The hosts in the order in which their first events came.
    names: Vec<String>,
    /// Events in memory, not yet written to a file.
    pending: EventTable,
    /// The files, in each of which the events are grouped by host, in the order of the hosts' numbers.
    files: Vec<PathBuf>,
    /// Number of files created so far, for their names.
    made: usize,
}

impl HostBuckets {
    /// An empty collection; `scratch` is the beginning of the paths of its temporary files.
    pub(super) fn new(scratch: PathBuf) -> Self {
        Self {
            scratch,
            ..Self::default()
        }
    }

    /// Whether it has events of this host.
    pub(super) fn has(&self, host: &str) -> bool {
        self.numbers.contains_key(host)
    }

    /// The number of hosts that it has events of.
    pub(super) const fn hosts(&self) -> usize {
        self.names.len()
    }

    /// Approximate memory that it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.pending)
    }

    /// Adds the events of a host that are in these rows of a table.
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

    /// Writes the events in memory to a new file, grouped by host; merges the files when there are [`OPEN`].
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

    /// Merges all files into one.
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

    /// Passes each host with a sorter that has all its events to `give`; each sorter holds at most about `held` bytes
    /// in memory.
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

/// A reader of a file in which the events are grouped by host.
struct HostFileInput {
    reader: EventFileReader,
    batch: EventTable,
    /// The next row of `batch`.
    row: usize,
}

impl HostFileInput {
    /// Passes the events of a host to `give`, if they come next in the file.
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
