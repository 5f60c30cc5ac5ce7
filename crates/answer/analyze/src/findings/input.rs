//! What findings are computed from.

use crate::lifelines::Lifelines;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;

/// The contents of a run directory.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisInput<'r> {
    /// The plan: what was to be run.
    pub plan: &'r Plan,
    /// One record per run and part: what was measured.
    pub records: &'r [RunRecord],
    /// The index of the events: hosts with their clocks, flows, runs.
    pub index: &'r Index,
    /// The events, with times of their own hosts' clocks.
    pub events: &'r EventTable,
    /// The lifelines of units (the events of a unit in order), in reference time.
    pub lifelines: &'r Lifelines,
}
