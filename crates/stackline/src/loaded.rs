//! A kept run with its events, all of them in memory: what lifelines, findings and the page are made of.

use crate::exit::Result;
use stackline_analyze::assemble::{self, Options};
use stackline_analyze::findings::Input;
use stackline_analyze::lifelines::Lifelines;
use stackline_core::trace::Index;
use stackline_events::Table;
use stackline_runs::Run;
use stackline_runs::events::{event_files, read_index, read_run};
use std::path::Path;

/// A run directory that has events; one whose events were imported has an empty plan and no records.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What the directory holds beside events.
    pub(crate) run: Run,
    /// What is known about the events; empty where they were imported.
    pub(crate) index: Index,
    /// All events, each host's in its own time.
    pub(crate) events: Table,
    /// Their lifelines, in reference time.
    pub(crate) lifelines: Lifelines,
}

impl Loaded {
    /// Reads a run: a directory, or its name under the runs directory.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let run = Run::open_events(path)?;
        let index = read_index(&run.path)?;
        let events = read_run(&run.path)?;
        let lifelines = assemble::lifelines(&events, index.as_ref(), &Options::default());
        Ok(Self { run, index: index.unwrap_or_default(), events, lifelines })
    }

    /// The same of a run that may have no events.
    pub(crate) fn whatever(path: &Path) -> Result<Self> {
        let run = Run::open_events(path)?;
        if event_files(&run.path).is_ok() {
            return Self::open(path);
        }
        Ok(Self { run, index: Index::default(), events: Table::default(), lifelines: Lifelines::default() })
    }

    /// What findings are computed from.
    pub(crate) fn input(&self) -> Input<'_> {
        let (plan, records) = (&self.run.plan, self.run.records.as_slice());
        Input { plan, records, index: &self.index, events: &self.events, lifelines: &self.lifelines }
    }
}
