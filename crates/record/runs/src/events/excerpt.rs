//! Decides which part of a run's events is read when they are too many to be held in memory: whole runs, taken from
//! each measurement in turn, or the beginning of the first run when not even one fits.

use super::parquet::{EventColumnSelection, EventFileReader};
use super::run_events::{RunEventFiles, find_run_event_files, read_batches};
use crate::Error;
use stackline_core::trace_index::{Index, RunSpan};
use stackline_events::EventTable;
use std::collections::BTreeMap;
use std::path::Path;

/// A part of the events of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventExcerpt {
    /// Number of events of the whole run directory.
    pub of: u64,
    /// The runs that are included completely, in the form of the index.
    pub runs: Vec<RunSpan>,
    /// The included intervals, in reference time, ns; ascending.
    windows: Vec<(u64, u64)>,
}

/// Maps an event's position in the excerpt to its row in its host's file. For each host: stretches of consecutive
/// rows, each as the first position and its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcerptRows(BTreeMap<String, Vec<(u32, u32)>>);

impl ExcerptRows {
    /// The row in the host's file of the event at position `place` of the host's events in the excerpt.
    #[must_use]
    pub fn row(&self, host: &str, place: u32) -> u32 {
        let stretches = self.0.get(host).map_or(&[][..], Vec::as_slice);
        let at = stretches.partition_point(|(first, _)| *first <= place);
        at.checked_sub(1)
            .map_or(place, |at| stretches[at].1 + (place - stretches[at].0))
    }
}

impl EventExcerpt {
    /// The excerpt to read when at most `most` events can be held; `None` when all of them fit.
    ///
    /// # Errors
    /// When the run has no events or they cannot be read.
    pub fn select(run: &Path, index: &Index, most: u64) -> Result<Option<Self>, Error> {
        let of = count(run)?;
        if of <= most {
            return Ok(None);
        }
        let mut spans = index.runs.clone();
        spans.sort_by_key(|span| span.from_ns);
        let chosen = choose(&spans, &counts(run, index, &spans)?, most);
        let windows = if chosen.is_empty() {
            let first = spans.iter().position(|span| !span.warmup);
            vec![beginning(
                run,
                index,
                first.map_or((0, u64::MAX), |at| window(&spans, at)),
                most,
            )?]
        } else {
            chosen.iter().map(|at| window(&spans, *at)).collect()
        };
        let runs = chosen.into_iter().map(|at| spans[at].clone()).collect();
        Ok(Some(Self { of, runs, windows }))
    }

    /// Whether it includes a run completely.
    #[must_use]
    pub fn has(&self, measurement: usize, run: u32, warmup: bool) -> bool {
        self.runs
            .iter()
            .any(|span| (span.measurement, span.run, span.warmup) == (measurement, run, warmup))
    }

    /// Passes the events of the excerpt to `each`, table by table, host after host, with the wanted columns.
    ///
    /// # Errors
    /// When the events cannot be read.
    pub fn read(
        &self,
        run: &Path,
        index: &Index,
        wanted: &EventColumnSelection,
        mut each: impl FnMut(&EventTable),
    ) -> Result<ExcerptRows, Error> {
        let mut rows = ExcerptRows::default();
        // For each host: how many of its events were read, and how many of them are in the excerpt.
        let mut met: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        read_batches(run, wanted, |batch| {
            let times = reference_times(batch, index);
            let mut kept = Vec::new();
            for (row, at_ns) in times.enumerate() {
                let host = batch.host(row);
                if !met.contains_key(host) {
                    met.insert(host.to_owned(), (0, 0));
                }
                let Some((read, taken)) = met.get_mut(host) else {
                    continue;
                };
                if self.contains(at_ns) {
                    rows.take(host, *taken, *read);
                    *taken += 1;
                    kept.push(row);
                }
                *read += 1;
            }
            if !kept.is_empty() {
                let mut part = EventTable::default();
                part.extend(batch, kept.into_iter());
                each(&part);
            }
        })?;
        Ok(rows)
    }

    /// Whether a moment (reference time, ns) is in one of the intervals.
    fn contains(&self, at_ns: u64) -> bool {
        let at = self.windows.partition_point(|(_, to)| *to < at_ns);
        self.windows.get(at).is_some_and(|(from, _)| *from <= at_ns)
    }
}

impl ExcerptRows {
    /// Records that an event at position `place` is at `row`: begins a stretch unless it continues the last one.
    fn take(&mut self, host: &str, place: u32, row: u32) {
        let follows = |(first, at): &(u32, u32)| row - at == place - first;
        match self.0.get_mut(host) {
            Some(stretches) if stretches.last().is_some_and(follows) => {}
            Some(stretches) => stretches.push((place, row)),
            None => drop(self.0.insert(host.to_owned(), vec![(place, row)])),
        }
    }
}

/// Number of events of a run directory.
fn count(run: &Path) -> Result<u64, Error> {
    let RunEventFiles { files, event_logs } = find_run_event_files(run)?;
    let mut count: u64 = event_logs.iter().map(|table| table.len() as u64).sum();
    for file in files {
        count += EventFileReader::open(&file, &EventColumnSelection::fields(&[]))?.rows();
    }
    Ok(count)
}

/// Number of events of each run. Events between two runs count for the later one.
fn counts(run: &Path, index: &Index, spans: &[RunSpan]) -> Result<Vec<u64>, Error> {
    let mut counts = vec![0; spans.len()];
    if spans.is_empty() {
        return Ok(counts);
    }
    read_batches(run, &EventColumnSelection::fields(&[]), |batch| {
        for at_ns in reference_times(batch, index) {
            counts[spans
                .partition_point(|span| span.to_ns < at_ns)
                .min(spans.len() - 1)] += 1;
        }
    })?;
    Ok(counts)
}

/// Indices of the runs that fit into `most` events: the first run of each measurement, then the second of each, and so
/// on; in the order of time.
fn choose(spans: &[RunSpan], counts: &[u64], most: u64) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..spans.len()).filter(|at| !spans[*at].warmup).collect();
    turns.sort_by_key(|at| (spans[*at].run, spans[*at].measurement));
    let mut left = most;
    turns.retain(|at| {
        let fits = counts[*at] <= left;
        left -= if fits { counts[*at] } else { 0 };
        fits
    });
    turns.sort_unstable();
    turns
}

/// The interval of a run, extended to its neighbours, because connections are opened before the run and closed after
/// it.
fn window(spans: &[RunSpan], at: usize) -> (u64, u64) {
    let before = at
        .checked_sub(1)
        .map_or(0, |before| spans[before].to_ns + 1);
    let to_ns = spans.get(at + 1).map_or(u64::MAX, |next| {
        next.from_ns.saturating_sub(1).max(spans[at].to_ns)
    });
    (before.min(spans[at].from_ns), to_ns)
}

/// The beginning of an interval, just long enough for `most` events.
fn beginning(
    run: &Path,
    index: &Index,
    window_ns: (u64, u64),
    most: u64,
) -> Result<(u64, u64), Error> {
    let (from_ns, to_ns) = window_ns;
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let mut earliest: Vec<u64> = Vec::new();
    let shorten = |earliest: &mut Vec<u64>| {
        if earliest.len() > most {
            earliest.select_nth_unstable(most);
            earliest.truncate(most);
        }
    };
    read_batches(run, &EventColumnSelection::fields(&[]), |batch| {
        earliest.extend(
            reference_times(batch, index).filter(|at_ns| (from_ns..=to_ns).contains(at_ns)),
        );
        if earliest.len() / 2 > most {
            shorten(&mut earliest);
        }
    })?;
    shorten(&mut earliest);
    Ok((from_ns, earliest.into_iter().max().unwrap_or(to_ns)))
}

/// The time of each event of a table, converted to the reference clock, ns.
fn reference_times(table: &EventTable, index: &Index) -> impl Iterator<Item = u64> {
    let clocks: Vec<_> = (0..table.names.len() as u32)
        .map(|name| {
            index
                .hosts
                .get(table.names.text(name))
                .map(|host| &host.clock)
        })
        .collect();
    let at = move |row: usize| {
        let at_ns = table.at_ns[row];
        clocks[table.host[row] as usize].map_or(at_ns, |clock| clock.reference_ns(at_ns))
    };
    (0..table.len()).map(at)
}

#[cfg(test)]
mod tests {
    use super::super::write_index;
    use super::*;
    use crate::events::Intake;
    use stackline_core::trace_index::{ClockCorrection, HostTrace};

    /// Three runs of two measurements, ten events each on each of two hosts, of which one is 500 ns ahead.
    fn traced() -> (tempfile::TempDir, Index) {
        let run = tempfile::tempdir().unwrap();
        let (mut table, mut intake) = (EventTable::default(), Intake::begin(run.path()).unwrap());
        let mut index = Index::default();
        for (at, (measurement, number)) in [(0, 0), (0, 1), (1, 0)].into_iter().enumerate() {
            let from_ns = 1_000_000 * (1 + at as u64);
            for nth in 0..10 {
                table.push("A", "h", from_ns + nth, &[]);
                table.push("A", "ahead", from_ns + nth + 500, &[]);
            }
            index.runs.push(RunSpan {
                measurement,
                run: number,
                warmup: false,
                from_ns,
                to_ns: from_ns + 9,
                network_ns: None,
            });
        }
        let clock = ClockCorrection {
            offset_ns: 500,
            ..ClockCorrection::default()
        };
        index.hosts.insert(
            "ahead".into(),
            HostTrace {
                clock,
                ..HostTrace::default()
            },
        );
        intake.push(&table).unwrap();
        intake.finish().unwrap();
        write_index(run.path(), &index).unwrap();
        (run, index)
    }

    fn read(run: &Path, index: &Index, most: u64) -> (EventExcerpt, ExcerptRows, EventTable) {
        let excerpt = EventExcerpt::select(run, index, most).unwrap().unwrap();
        let mut events = EventTable::default();
        let rows = excerpt
            .read(run, index, &EventColumnSelection::all(), |part| {
                events.append(part)
            })
            .unwrap();
        (excerpt, rows, events)
    }

    #[test]
    fn what_fits_has_no_excerpt() {
        let (run, index) = traced();
        assert_eq!(EventExcerpt::select(run.path(), &index, 60).unwrap(), None);
        assert!(
            EventExcerpt::select(run.path(), &index, 59)
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn whole_runs_of_each_measurement_in_turn() {
        let (run, index) = traced();
        let (excerpt, rows, events) = read(run.path(), &index, 45);
        assert_eq!((excerpt.of, events.len()), (60, 40));
        assert!(excerpt.has(0, 0, false) && excerpt.has(1, 0, false) && !excerpt.has(0, 1, false));
        // A host's events of the third run stand behind those of the second in its file, and at once behind the first's here.
        assert_eq!(
            [9, 10, 19].map(|place| rows.row("ahead", place)),
            [9, 20, 29]
        );
    }

    #[test]
    fn a_run_that_does_not_fit_is_read_from_its_beginning_and_not_whole() {
        let (run, index) = traced();
        let (excerpt, rows, events) = read(run.path(), &index, 8);
        assert_eq!(excerpt.runs, []);
        assert_eq!(
            events.at_ns.iter().filter(|at| **at >= 1_000_500).count(),
            4,
            "in reference time both are alike"
        );
        assert_eq!((events.len(), rows.row("h", 3)), (8, 3));
    }

    #[test]
    fn events_without_runs_are_read_from_the_first_on() {
        let (run, _) = traced();
        let (excerpt, _, events) = read(run.path(), &Index::default(), 25);
        assert_eq!((excerpt.runs.len(), events.len()), (0, 25));
    }
}
