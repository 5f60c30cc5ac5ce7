//! Sorts the events of one host by time in bounded memory.
//!
//! Events arrive nearly in order. Some are held in memory; when they are too many, the earlier half is written to a
//! file, so an event that is late by less than what is held costs nothing. A later one begins a second file; the files
//! are merged at the end.

use super::merge::{self, SortedEventFile};
use super::parquet::EventFileWriter;
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_events::EventTable;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Most files that are written at once.
const OPEN: usize = 4;

/// Most row groups of a file: the metadata of each is in memory until the file is complete.
const LONGEST: usize = 512;

/// Collects the events of a host and sorts them.
#[derive(Debug)]
pub(super) struct Sorter {
    /// The beginning of the paths of its temporary files.
    scratch: PathBuf,
    /// Events in memory.
    pending: EventTable,
    /// Files that are being written.
    open: Vec<SortedRun>,
    /// Files that are complete.
    closed: Vec<SortedEventFile>,
    /// Number of files created so far, for their names.
    made: usize,
    /// Most row groups of a file; then another file begins.
    longest: usize,
    stop: SortStopSignal,
}

/// A file of sorted events that is being written.
#[derive(Debug)]
struct SortedRun {
    path: PathBuf,
    writer: EventFileWriter<BufWriter<File>>,
    /// Time of its first event, ns.
    first_ns: u64,
    /// Time of its last event, ns.
    last_ns: u64,
    /// Row groups written so far.
    portions: usize,
}

impl Sorter {
    /// A sorter without events; `scratch` is the beginning of the paths of its temporary files.
    pub(super) fn new(scratch: PathBuf, stop: &SortStopSignal) -> Self {
        let (pending, open, closed) = Default::default();
        Self {
            scratch,
            pending,
            open,
            closed,
            made: 0,
            longest: LONGEST,
            stop: stop.clone(),
        }
    }

    /// Adds rows of a table.
    pub(super) fn push(&mut self, table: &EventTable, rows: impl Iterator<Item = usize> + Clone) {
        self.pending.extend(table, rows);
    }

    /// Approximate memory that it holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.pending)
    }

    /// Writes the earlier half of the events in memory to a file.
    pub(super) fn relieve(&mut self) -> Result<(), Error> {
        let order = self.pending.by_time();
        let (now, later) = order.split_at(order.len().div_ceil(2));
        let mut rest = EventTable::default();
        rest.extend(&self.pending, later.iter().map(|row| *row as usize));
        let pending = std::mem::replace(&mut self.pending, rest);
        self.place(&pending, now)
    }

    /// Writes rows in the order of time, each to a file whose last event is not later.
    fn place(&mut self, table: &EventTable, mut rows: &[u32]) -> Result<(), Error> {
        let at = |row: u32| table.at_ns[row as usize];
        while let Some(&first) = rows.first() {
            let first = at(first);
            // Rows that a file with a later last event can take go to that file.
            let further = self
                .open
                .iter()
                .map(|run| run.last_ns)
                .filter(|last| *last > first)
                .min();
            let count = further.map_or(rows.len(), |further| {
                rows.partition_point(|row| at(*row) < further)
            });
            self.stop.check(count)?;
            // The closest fit, so that the others can still take earlier events.
            let behind = self
                .open
                .iter()
                .enumerate()
                .filter(|(_, run)| run.last_ns <= first);
            let found = behind
                .max_by_key(|(_, run)| run.last_ns)
                .map(|(index, _)| index);
            let index = match found {
                Some(index) if self.open[index].portions < self.longest => index,
                Some(full) => {
                    let run = self.open.remove(full);
                    self.closed.push(run.close()?);
                    self.begin(first)?
                }
                None => self.begin(first)?,
            };
            let run = &mut self.open[index];
            run.writer.push(table, &rows[..count])?;
            run.portions += 1;
            run.last_ns = at(rows[count - 1]);
            rows = &rows[count..];
        }
        Ok(())
    }

    /// Begins a file whose first event is at `first_ns`. Returns its index in `open`.
    fn begin(&mut self, first_ns: u64) -> Result<usize, Error> {
        if self.open.len() == OPEN {
            // Closes the file with the earliest last event; the latest one takes events that come in order.
            let behind = (0..OPEN)
                .min_by_key(|index| self.open[*index].last_ns)
                .unwrap_or(0);
            let run = self.open.remove(behind);
            self.closed.push(run.close()?);
        }
        let path = self.scratch.with_extension(format!("{}.sorted", self.made));
        self.made += 1;
        let file = files::create(&path).map_err(|cause| Error::writing(&path, &cause))?;
        let writer = EventFileWriter::new(BufWriter::new(file), &path)?;
        self.open.push(SortedRun {
            path,
            writer,
            first_ns,
            last_ns: first_ns,
            portions: 0,
        });
        Ok(self.open.len() - 1)
    }

    /// Writes all events to `to`, together with those of the file `also`, if there is one. Returns how many events
    /// this sorter had, and how many the file has.
    pub(super) fn finish(mut self, also: Option<&Path>, to: &Path) -> Result<(u64, u64), Error> {
        let pending = std::mem::take(&mut self.pending);
        self.place(&pending, &pending.by_time())?;
        drop(pending);
        for run in std::mem::take(&mut self.open) {
            self.closed.push(run.close()?);
        }
        let came = self.closed.iter().map(|source| source.rows).sum();
        if let Some(also) = also {
            self.closed.insert(0, SortedEventFile::open(also)?);
        }
        if let [only] = &self.closed[..] {
            fs::rename(&only.path, to).map_err(|cause| Error::writing(to, &cause))?;
            return Ok((came, came));
        }
        let all = merge::to_file(self.closed, &self.scratch, to, &self.stop)?;
        Ok((came, all))
    }
}

/// Approximate memory of a table, in bytes.
pub(super) fn bytes_of(table: &EventTable) -> usize {
    let data: usize = table
        .data
        .iter()
        .map(|column| column.texts.len() * 12)
        .sum();
    let more: usize = table.more.iter().map(|(_, text)| text.len() + 32).sum();
    table.len() * 16 + data + more + table.names.bytes()
}

impl SortedRun {
    fn close(self) -> Result<SortedEventFile, Error> {
        let (mut file, rows) = self.writer.finish()?;
        std::io::Write::flush(&mut file).map_err(|cause| Error::writing(&self.path, &cause))?;
        Ok(SortedEventFile {
            path: self.path,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            rows,
            scratch: true,
            clock: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_table;
    use super::*;
    use proptest::prelude::*;
    use stackline_events::EventValue;

    /// Pushes events at these times, relieving after each `hold` of them; the times in the file, and how many files it took.
    fn sorted(times: &[u64], hold: usize) -> (Vec<u64>, usize) {
        sorted_in(times, hold, LONGEST)
    }

    fn sorted_in(times: &[u64], hold: usize, longest: usize) -> (Vec<u64>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(directory.path().join("khons"), &SortStopSignal::default());
        sorter.longest = longest;
        for times in times.chunks(hold) {
            let mut table = EventTable::default();
            for at in times {
                table.push("A", "khons", *at, &[EventValue::Number(*at as i64)]);
            }
            sorter.push(&table, 0..table.len());
            sorter.relieve().unwrap();
        }
        let to = directory.path().join("khons.parquet");
        let files = sorter.made;
        let count = sorter.finish(None, &to).unwrap();
        assert_eq!(count, (times.len() as u64, times.len() as u64));
        let table = read_table(&to).unwrap();
        assert!((0..table.len()).all(|row| table.number(row, 0) == Some(table.at_ns[row] as i64)));
        (table.at_ns, files)
    }

    #[test]
    fn what_is_nearly_in_order_takes_one_file() {
        let times: Vec<u64> = (0..1000)
            .map(|n| if n % 10 == 0 { n - 5.min(n) } else { n })
            .collect();
        let (at, files) = sorted(&times, 40);
        assert!(at.is_sorted() && files == 1, "{files}");
    }

    #[test]
    fn two_logs_one_after_the_other_take_two_files() {
        let times: Vec<u64> = (0..500).chain(0..500).collect();
        let (at, files) = sorted(&times, 40);
        assert!(at.is_sorted() && files == 2, "{files}");
    }

    #[test]
    fn a_long_log_takes_files_one_after_the_other() {
        let times: Vec<u64> = (0..1000).collect();
        let (at, files) = sorted_in(&times, 40, 5);
        assert!(at == times && files == 5, "{files}");
    }

    #[test]
    fn no_order_at_all_is_sorted_too() {
        let times: Vec<u64> = (0..800_u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50)
            .collect();
        let mut expected = times.clone();
        expected.sort_unstable();
        let (at, files) = sorted(&times, 8);
        assert_eq!(at, expected);
        assert!(files > 32, "more than are merged at once: {files}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn everything_comes_out_in_order(times in proptest::collection::vec(0_u64..99, 1..120), hold in 1_usize..20) {
            let mut expected = times.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted(&times, hold).0, expected);
        }
    }
}
