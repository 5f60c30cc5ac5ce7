//! All events of a run in the order of time, however many, in portions.

use super::index::read_index;
use super::merge::{MergeInput, SortedEventFile, merge, overlap, reduce_files};
use super::parquet::{EventColumnSelection, EventFileReader};
use super::run_events::{RunEventFiles, find_run_event_files};
use super::stop::SortStopSignal;
use crate::Error;
use stackline_core::trace_index::{ClockCorrection, Index};
use stackline_events::EventTable;
use stackline_guard::scratch;
use std::path::{Path, PathBuf};

/// Approximate number of events in a portion.
const PORTION: usize = 1 << 16;

/// Most files that are read at once; with more hosts at one time, some are merged into temporary files first.
const OPEN: usize = 64;

/// The events of all hosts of a run.
pub struct Merged {
    /// The hosts' files.
    files: Vec<SortedEventFile>,
    /// The event logs of a run that is still being made.
    event_logs: Vec<MergeInput>,
    /// Most files that are read at once.
    open: usize,
    /// Selects the rows that are given; all when absent.
    keep: Option<RowFilter>,
}

/// Whether a row of a table is given.
type RowFilter = Box<dyn Fn(&EventTable, usize) -> bool>;

impl Merged {
    /// The events of a run, which may still be in progress. With `reference`, times are converted to the reference
    /// host's clock; otherwise they are those of each host's own clock.
    ///
    /// # Errors
    /// When the run has no events, or they cannot be read.
    pub fn open(run: &Path, reference: bool) -> Result<Self, Error> {
        let index = read_index(run)?.unwrap_or_default();
        let RunEventFiles { files, event_logs } = find_run_event_files(run)?;
        let source = |path: &PathBuf| {
            let clock = if reference {
                clock(path, &index)?
            } else {
                None
            };
            SortedEventFile::with_clock(path, clock)
        };
        let files = files.iter().map(source).collect::<Result<_, Error>>()?;
        let input = |table: EventTable| {
            let clock = (reference && !table.is_empty())
                .then(|| clock_of(table.host(0), &index))
                .flatten();
            MergeInput::table(table, clock)
        };
        Ok(Self {
            files,
            event_logs: event_logs.into_iter().map(input).collect(),
            open: OPEN,
            keep: None,
        })
    }

    /// Restricts the events to the rows for which `keep` returns true.
    #[must_use]
    pub fn only(self, keep: impl Fn(&EventTable, usize) -> bool + 'static) -> Self {
        Self {
            keep: Some(Box::new(keep)),
            ..self
        }
    }

    /// Passes all events to `give`: tables and the rows of them that come next.
    ///
    /// # Errors
    /// When a file is damaged, `give` fails, or there are too many hosts to read at once and the directory for
    /// temporary files has no room.
    pub fn each(
        mut self,
        mut give: impl FnMut(&EventTable, &[u32]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut held = None;
        if overlap(&self.files) > self.open {
            let made = scratch::create_directory("events").map_err(|cause| {
                Error::new(
                    format!("cannot create a temporary directory: {cause}"),
                    "set TMPDIR to a writable directory",
                )
            })?;
            let held = held.insert(made);
            reduce_files(
                &mut self.files,
                self.open,
                &held.path().join("hosts"),
                &SortStopSignal::default(),
            )?;
        }
        let mut inputs: Vec<MergeInput> = self.files.into_iter().map(MergeInput::file).collect();
        inputs.append(&mut self.event_logs);
        let keep = self.keep;
        merge(
            inputs,
            &EventColumnSelection::all(),
            PORTION,
            |table, rows| match &keep {
                None => give(table, rows),
                Some(keep) => {
                    let rows: Vec<u32> = rows
                        .iter()
                        .copied()
                        .filter(|row| keep(table, *row as usize))
                        .collect();
                    if rows.is_empty() {
                        Ok(())
                    } else {
                        give(table, &rows)
                    }
                }
            },
        )
    }
}

/// The clock correction of the host whose events a file has.
fn clock(path: &Path, index: &Index) -> Result<Option<ClockCorrection>, Error> {
    let first = EventFileReader::open(path, &EventColumnSelection::fields(&[]))?.next_batch()?;
    Ok(first
        .filter(|table| !table.is_empty())
        .and_then(|table| clock_of(table.host(0), index)))
}

fn clock_of(host: &str, index: &Index) -> Option<ClockCorrection> {
    index.hosts.get(host).map(|host| host.clock.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{Intake, write_index};
    use super::*;
    use stackline_core::trace_index::HostTrace;
    use stackline_events::EventValue;

    /// So many hosts with three events each at one time, or one host after the other.
    fn run(hosts: u64, apart_ns: u64) -> tempfile::TempDir {
        let run = tempfile::tempdir().unwrap();
        let (mut table, mut intake) = (EventTable::default(), Intake::begin(run.path()).unwrap());
        for n in 0..3 * hosts {
            let (host, nth) = (n / 3, n % 3);
            table.push(
                "A",
                &format!("h{host}"),
                1_000 + host * apart_ns + nth * hosts,
                &[EventValue::from(n)],
            );
        }
        intake.push(&table).unwrap();
        intake.finish().unwrap();
        run
    }

    fn times(merged: Merged) -> Vec<u64> {
        let mut times = Vec::new();
        merged
            .each(|table, rows| {
                times.extend(rows.iter().map(|row| table.at_ns[*row as usize]));
                Ok(())
            })
            .unwrap();
        times
    }

    #[test]
    fn hosts_of_one_time_that_are_too_many_are_merged_in_steps() {
        let run = run(40, 1);
        let merged = Merged {
            open: 8,
            ..Merged::open(run.path(), false).unwrap()
        };
        assert_eq!(overlap(&merged.files), 40);
        assert_eq!(times(merged), (1_000..1_120).collect::<Vec<u64>>());
    }

    #[test]
    fn hosts_one_after_the_other_are_opened_one_after_the_other() {
        let run = run(40, 1_000);
        let merged = Merged {
            open: 8,
            ..Merged::open(run.path(), false).unwrap()
        };
        assert_eq!(overlap(&merged.files), 1);
        let times = times(merged);
        assert!(times.is_sorted() && times.len() == 120);
    }

    #[test]
    fn merging_in_steps_sets_clocks_right_once() {
        let run = run(20, 1);
        let mut index = Index::default();
        for host in 0..20 {
            let clock = ClockCorrection {
                offset_ns: 500,
                ..ClockCorrection::default()
            };
            index.hosts.insert(
                format!("h{host}"),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            );
        }
        write_index(run.path(), &index).unwrap();
        let merged = Merged {
            open: 8,
            ..Merged::open(run.path(), true).unwrap()
        };
        assert_eq!(times(merged), (500..560).collect::<Vec<u64>>());
    }
}
