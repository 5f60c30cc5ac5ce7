//! What findings are computed from.

use crate::lifelines::Lifelines;
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;

/// The contents of a run directory.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisInput<'r> {
    /// What was to be done.
    pub plan: &'r Plan,
    /// What was done.
    pub records: &'r [RunRecord],
    /// What is known about the events.
    pub index: &'r Index,
    /// The events, each host's in its own time.
    pub events: &'r EventTable,
    /// Their lifelines, in reference time.
    pub lifelines: &'r Lifelines,
}
