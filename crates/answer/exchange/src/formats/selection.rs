//! Selects the events of a run for an export: by time, by unit, by duration. A unit is what a lifeline follows: a request, a piece of
//! data.

use stackline_analyze::duration_filter::DurationFilter;
use stackline_analyze::lifelines::{Id, Lifeline};
use stackline_analyze::loaded_run::{LoadedRun, origin_ns};
use stackline_core::error::Result;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_runs::events::{EventColumnSelection, Merged, read_batches, read_index};
use std::collections::BTreeSet;
use std::path::Path;

/// The selection.
#[derive(Clone, Debug, Default)]
pub struct ExportSelection {
    /// Whether times are converted to the reference host's clock, in formats that otherwise keep each host's own.
    pub reference: bool,
    /// The start of the range, s since the first event.
    pub from_s: Option<f64>,
    /// The end of the range, s since the first event.
    pub to_s: Option<f64>,
    /// The units; all units if empty.
    pub units: BTreeSet<Id>,
    /// A filter on how long the units took.
    pub took: DurationFilter,
}

/// A range of time by the reference host's clock: from, to, ns.
type ReferenceTimeRange = (u64, u64);

impl ExportSelection {
    /// Whether nothing is excluded.
    fn is_all(&self) -> bool {
        self.from_s.is_none() && self.to_s.is_none() && self.is_of_all_units()
    }

    /// Whether no unit is excluded.
    fn is_of_all_units(&self) -> bool {
        self.units.is_empty() && self.took.is_any()
    }

    /// The range of time; `origin_ns` is the time of the first event.
    fn span(&self, origin_ns: u64) -> ReferenceTimeRange {
        let moment = |since: f64| origin_ns.saturating_add((since * 1e9) as u64);
        (
            self.from_s.map_or(0, moment),
            self.to_s.map_or(u64::MAX, moment),
        )
    }

    /// Loads a run with only the selected events: whole lifelines that have an event in the time range, and events on no lifeline in that
    /// range.
    pub(crate) fn loaded(&self, run: &Path) -> Result<LoadedRun> {
        let mut loaded = LoadedRun::open(run, usize::MAX)?;
        if !self.is_all() {
            self.leave_out(&mut loaded);
        }
        Ok(loaded)
    }

    /// Removes the lifelines and events that are not selected.
    fn leave_out(&self, loaded: &mut LoadedRun) {
        let (events, lifelines) = (&loaded.events, &mut loaded.lifelines);
        let (from_ns, to_ns) = self.span(origin_ns(&loaded.index, events, lifelines));
        let wanted = |line: &Lifeline| {
            let mut times = lifelines
                .passages_of(line)
                .iter()
                .chain(lifelines.marks_of(line))
                .map(|passage| passage.at_ns);
            (self.units.is_empty() || self.units.contains(&line.unit))
                && self.took.has(lifelines, line)
                && times.any(|at| (from_ns..=to_ns).contains(&at))
        };
        let kept: Vec<Lifeline> = lifelines
            .lines
            .iter()
            .filter(|line| wanted(line))
            .cloned()
            .collect();
        let rows = |line: &Lifeline| {
            let passages = lifelines
                .passages_of(line)
                .iter()
                .chain(lifelines.marks_of(line));
            passages
                .map(|passage| passage.row as usize)
                .filter(|row| *row < events.len())
                .collect::<Vec<_>>()
        };
        // Events on no lifeline are kept unless units are selected.
        let loose = |row: &usize| {
            let clock = loaded
                .index
                .hosts
                .get(events.host(*row))
                .map(|host| &host.clock);
            let at_ns = clock.map_or(events.at_ns[*row], |clock| {
                clock.reference_ns(events.at_ns[*row])
            });
            self.is_of_all_units() && (from_ns..=to_ns).contains(&at_ns)
        };
        let mut keep: Vec<bool> = (0..events.len()).map(|row| loose(&row)).collect();
        lifelines
            .lines
            .iter()
            .flat_map(rows)
            .for_each(|row| keep[row] = false);
        kept.iter().flat_map(rows).for_each(|row| keep[row] = true);
        let mut places = vec![u32::MAX; events.len()];
        let mut fit = EventTable::default();
        let left = || (0..events.len()).filter(|row| keep[*row]);
        left().zip(0..).for_each(|(row, place)| places[row] = place);
        fit.extend(events, left());
        let place = |row: u32| places.get(row as usize).copied().unwrap_or(u32::MAX);
        lifelines
            .passages
            .iter_mut()
            .chain(&mut lifelines.marks)
            .for_each(|passage| passage.row = place(passage.row));
        lifelines.lines = kept;
        loaded.events = fit;
    }

    /// The units that are selected.
    fn ids(&self, run: &Path) -> Result<BTreeSet<Id>> {
        if self.took.is_any() {
            return Ok(self.units.clone());
        }
        let lifelines = LoadedRun::open(run, usize::MAX)?.lifelines;
        let chosen = |line: &&Lifeline| {
            (self.units.is_empty() || self.units.contains(&line.unit))
                && self.took.has(&lifelines, line)
        };
        Ok(lifelines
            .lines
            .iter()
            .filter(chosen)
            .map(|line| line.unit.clone())
            .collect())
    }

    /// The selected events in the order of time. If units are selected, only events that name one are included.
    pub(crate) fn merged(&self, run: &Path) -> Result<Merged> {
        let merged = Merged::open(run, self.reference)?;
        if self.is_all() {
            return Ok(merged);
        }
        let index = read_index(run)?.unwrap_or_default();
        let (from_ns, to_ns) = self.span(first_ns(run, &index)?);
        let (reference, units, all) = (self.reference, self.ids(run)?, self.is_of_all_units());
        Ok(merged.only(move |table, row| {
            let clock = index
                .hosts
                .get(table.host(row))
                .filter(|_| !reference)
                .map(|host| &host.clock);
            let at_ns = clock.map_or(table.at_ns[row], |clock| {
                clock.reference_ns(table.at_ns[row])
            });
            let unit = || table.value(row, 0).to_string();
            (from_ns..=to_ns).contains(&at_ns) && (all || units.contains(&Id::parse(&unit())))
        }))
    }
}

/// The time of the first event by the reference host's clock, ns.
fn first_ns(run: &Path, index: &Index) -> Result<u64> {
    let mut first = index
        .runs
        .iter()
        .map(|run| run.from_ns)
        .min()
        .unwrap_or(u64::MAX);
    read_batches(run, &EventColumnSelection::fields(&[]), |events| {
        for row in 0..events.len() {
            let clock = index.hosts.get(events.host(row)).map(|host| &host.clock);
            first = first.min(clock.map_or(events.at_ns[row], |clock| {
                clock.reference_ns(events.at_ns[row])
            }));
        }
    })?;
    Ok(first)
}
