//! Merges files of sorted events, holding a batch of each that overlaps the present moment and no more.

use super::parquet::{EventColumnSelection, EventFileReader, EventFileWriter, GROUP};
use super::stop::SortStopSignal;
use crate::{Error, files};
use stackline_core::trace_index::ClockCorrection;
use stackline_events::EventTable;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files that are read at once.
const OPEN: usize = 32;

/// A file of sorted events.
#[derive(Clone, Debug)]
pub(super) struct SortedEventFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// No event in it is earlier.
    pub(super) first_ns: u64,
    /// Nor later.
    pub(super) last_ns: u64,
    /// How many events it has.
    pub(super) rows: u64,
    /// Whether it goes away when it was merged.
    pub(super) scratch: bool,
    /// By what its times become those of the reference, where that is wanted; first and last are reference times then.
    pub(super) clock: Option<ClockCorrection>,
}

impl SortedEventFile {
    /// A file of a run.
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        Self::with_clock(path, None)
    }

    /// The same, in the time of the reference.
    pub(super) fn with_clock(path: &Path, clock: Option<ClockCorrection>) -> Result<Self, Error> {
        let reader = EventFileReader::open(path, &EventColumnSelection::fields(&[]))?;
        let (mut first_ns, mut last_ns) = reader.span_ns();
        if let Some(clock) = &clock {
            // A clock that was set back shows the same time twice, so the order is unknown.
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

/// Merges files into one; further ones that this needs on the way are called after `scratch`. How many events it has.
pub(super) fn to_file(
    mut sources: Vec<SortedEventFile>,
    scratch: &Path,
    to: &Path,
    stop: &SortStopSignal,
) -> Result<u64, Error> {
    reduce_files(&mut sources, OPEN, scratch, stop)?;
    write(sources, to, stop)
}

/// Merges files into fewer, until no more than `most` of them share a moment.
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
        // Behind the others of its time, so that files of about one size are merged.
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

/// The most sources that share a moment.
pub(super) fn overlap(sources: &[SortedEventFile]) -> usize {
    let mut ends: Vec<(u64, i32)> = sources
        .iter()
        .flat_map(|source| [(source.first_ns, -1), (source.last_ns, 1)])
        .collect();
    // At one moment, what begins counts before what ends.
    ends.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, end) in ends {
        open -= end;
        most = most.max(open);
    }
    most as usize
}

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
        // What cannot be taken away now goes with its directory.
        let _ = fs::remove_file(path);
    }
    Ok(rows)
}

/// Something that gives events in order.
pub(super) struct MergeInput {
    from: MergeSource,
    /// Nothing that is still to come is earlier.
    frontier: u64,
    clock: Option<ClockCorrection>,
}

enum MergeSource {
    /// A file that is opened when its time has come.
    Closed(PathBuf),
    Open(Box<EventFileReader>),
    /// Events at hand, in any order.
    Table(EventTable),
}

impl MergeInput {
    /// A file.
    pub(super) fn file(source: SortedEventFile) -> Self {
        Self {
            from: MergeSource::Closed(source.path),
            frontier: source.first_ns,
            clock: source.clock,
        }
    }

    /// Events at hand.
    pub(super) const fn table(table: EventTable, clock: Option<ClockCorrection>) -> Self {
        Self {
            from: MergeSource::Table(table),
            frontier: 0,
            clock,
        }
    }

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

/// Gives the events of all inputs in order, about `most` at a time: a table and its rows.
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
        // What is no whole portion waits for more, unless that were too much.
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
