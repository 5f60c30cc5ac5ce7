//! Merges files of sorted events, holding in memory only a batch of each file that overlaps the current time.

use super::parquet::{EventColumnSelection, EventFileReader, EventFileWriter, GROUP};
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_core::trace_index::ClockCorrection;
use stackline_events::EventTable;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Most files that are read at once.
const OPEN: usize = 32;

/// A file of sorted events.
#[derive(Clone, Debug)]
pub(super) struct SortedEventFile {
    /// The file's path.
    pub(super) path: PathBuf,
    /// A bound: no event in the file is earlier, ns.
    pub(super) first_ns: u64,
    /// A bound: no event in the file is later, ns.
    pub(super) last_ns: u64,
    /// Number of events in the file.
    pub(super) rows: u64,
    /// Whether the file is temporary, and is removed after it was merged.
    pub(super) scratch: bool,
    /// The correction that converts its times to reference time, where that is wanted; `first_ns` and `last_ns` are
    /// reference times then.
    pub(super) clock: Option<ClockCorrection>,
}

impl SortedEventFile {
    /// A file of a run, in the time of its host's own clock.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        Self::with_clock(path, None)
    }

    /// A file of a run, with times converted by `clock` if there is one.
    pub(super) fn with_clock(path: &Path, clock: Option<ClockCorrection>) -> Result<Self, Error> {
        let reader = EventFileReader::open(path, &EventColumnSelection::fields(&[]))?;
        let (mut first_ns, mut last_ns) = reader.span_ns();
        if let Some(clock) = &clock {
            // After a step back a clock shows the same time twice, so the bounds are unknown.
            let set = !clock.steps.is_empty();
            first_ns = if set { 0 } else { clock.reference_ns(first_ns) };
            last_ns = if set {
                u64::MAX
            } else {
                clock.reference_ns(last_ns)
            };
        }
        Ok(Self {
            path: path.to_owned(),
            first_ns,
            last_ns,
            rows: reader.rows(),
            scratch: false,
            clock,
        })
    }
}

/// Merges files into the file `to` and returns its number of events. Temporary files get paths that begin like
/// `scratch`.
pub(super) fn to_file(
    mut sources: Vec<SortedEventFile>,
    scratch: &Path,
    to: &Path,
    stop: &SortStopSignal,
) -> Result<u64, Error> {
    reduce_files(&mut sources, OPEN, scratch, stop)?;
    write(sources, to, stop)
}

/// Merges files into fewer, until at most `most` of them overlap at any time.
pub(super) fn reduce_files(
    sources: &mut Vec<SortedEventFile>,
    most: usize,
    scratch: &Path,
    stop: &SortStopSignal,
) -> Result<(), Error> {
    sources.sort_by_key(|source| source.first_ns);
    let mut made = 0;
    while overlap(sources) > most {
        let some: Vec<SortedEventFile> = sources.drain(..OPEN.min(sources.len())).collect();
        let path = scratch.with_extension(format!("{made}.merged"));
        made += 1;
        let first_ns = some.iter().map(|source| source.first_ns).min().unwrap_or(0);
        let last_ns = some.iter().map(|source| source.last_ns).max().unwrap_or(0);
        let rows = write(some, &path, stop)?;
        // Behind the others of its time, so that files of similar size are merged with each other.
        let at = sources.partition_point(|source| source.first_ns <= first_ns);
        let at = if at == 0 { sources.len() } else { at };
        sources.insert(
            at,
            SortedEventFile {
                path,
                first_ns,
                last_ns,
                rows,
                scratch: true,
                clock: None,
            },
        );
        sources.sort_by_key(|source| source.first_ns);
    }
    Ok(())
}

/// The largest number of files that overlap at one moment.
pub(super) fn overlap(sources: &[SortedEventFile]) -> usize {
    let mut ends: Vec<(u64, i32)> = sources
        .iter()
        .flat_map(|source| [(source.first_ns, -1), (source.last_ns, 1)])
        .collect();
    // At the same moment beginnings (-1) are sorted before ends (1).
    ends.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, end) in ends {
        open -= end;
        most = most.max(open);
    }
    most as usize
}

/// Merges files into one, removes the temporary ones, and returns the number of events.
fn write(sources: Vec<SortedEventFile>, to: &Path, stop: &SortStopSignal) -> Result<u64, Error> {
    let scratch: Vec<PathBuf> = sources
        .iter()
        .filter(|source| source.scratch)
        .map(|source| source.path.clone())
        .collect();
    let file = files::create(to).map_err(|cause| Error::writing(to, &cause))?;
    let mut writer = EventFileWriter::new(BufWriter::new(file), to)?;
    let inputs = sources.into_iter().map(MergeInput::file).collect();
    merge(
        inputs,
        &EventColumnSelection::all(),
        GROUP,
        |table, rows| {
            stop.check(rows.len())?;
            writer.push(table, rows)
        },
    )?;
    let (mut file, rows) = writer.finish()?;
    file.flush().map_err(|cause| Error::writing(to, &cause))?;
    for path in scratch {
        // A file that cannot be removed is removed with its directory.
        let _ = fs::remove_file(path);
    }
    Ok(rows)
}

/// A source of events for a merge.
pub(super) struct MergeInput {
    from: MergeSource,
    /// A bound: no event still to come is earlier, ns.
    frontier: u64,
    /// The correction that converts its times to reference time.
    clock: Option<ClockCorrection>,
}

/// Where a source gets its events from.
enum MergeSource {
    /// A file that has not been opened yet, because its time has not come.
    Closed(PathBuf),
    Open(Box<EventFileReader>),
    /// Events in memory, in any order.
    Table(EventTable),
}

impl MergeInput {
    /// A source that reads a file.
    pub(super) fn file(source: SortedEventFile) -> Self {
        Self {
            from: MergeSource::Closed(source.path),
            frontier: source.first_ns,
            clock: source.clock,
        }
    }

    /// A source that gives a table.
    pub(super) const fn table(table: EventTable, clock: Option<ClockCorrection>) -> Self {
        Self {
            from: MergeSource::Table(table),
            frontier: 0,
            clock,
        }
    }

    /// The next events of the source; `None` at its end.
    fn next(&mut self, wanted: &EventColumnSelection) -> Result<Option<EventTable>, Error> {
        if let MergeSource::Closed(path) = &self.from {
            self.from = MergeSource::Open(Box::new(EventFileReader::open(path, wanted)?));
        }
        let batch = match &mut self.from {
            MergeSource::Open(reader) => reader.next_batch()?,
            MergeSource::Table(table) => {
                Some(std::mem::take(table)).filter(|table| !table.is_empty())
            }
            MergeSource::Closed(_) => None,
        };
        let Some(mut batch) = batch else {
            return Ok(None);
        };
        if let Some(clock) = &self.clock {
            batch
                .at_ns
                .iter_mut()
                .for_each(|at| *at = clock.reference_ns(*at));
        }
        self.frontier = self.frontier.max(batch.at_ns.last().copied().unwrap_or(0));
        Ok(Some(batch))
    }
}

/// Passes the events of all sources in the order of time to `give`, about `most` at a time, as a table and the rows of
/// it that come next.
pub(super) fn merge(
    mut inputs: Vec<MergeInput>,
    wanted: &EventColumnSelection,
    most: usize,
    mut give: impl FnMut(&EventTable, &[u32]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut pool, mut enough) = (EventTable::default(), most);
    while let Some(index) = (0..inputs.len()).min_by_key(|index| inputs[*index].frontier) {
        match inputs[index].next(wanted)? {
            Some(batch) if pool.is_empty() => pool = batch,
            Some(batch) => pool.append(&batch),
            None => drop(inputs.remove(index)),
        }
        if pool.len() < enough {
            continue;
        }
        let order = pool.by_time();
        let bound = inputs
            .iter()
            .map(|input| input.frontier)
            .min()
            .unwrap_or(u64::MAX);
        let ready = order.partition_point(|row| pool.at_ns[*row as usize] <= bound);
        // Events that do not fill a portion wait for more, until the pool has grown by a quarter of a portion.
        let now = ready - ready % most;
        enough = pool.len() + most / 4;
        if now == 0 {
            continue;
        }
        give(&pool, &order[..now])?;
        let mut rest = EventTable::default();
        rest.extend(&pool, order[now..].iter().map(|row| *row as usize));
        pool = rest;
        enough = most;
    }
    give(&pool, &pool.by_time())
}
