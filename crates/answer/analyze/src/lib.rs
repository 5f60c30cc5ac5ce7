//! Run records to answers: statistics with their intervals, summaries with their flags, comparisons.
//!
//! It computes from what a run directory holds and never measures or prints. An average never stands alone, and what
//! cannot be known is absent.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`statistics`] | n, mean, sd, percentiles and the 95 % interval of the mean |
//! | [`bimodal`] | whether response times fall into two groups |
//! | [`summary`] | what a summary holds |
//! | [`summarise`](mod@summarise) | records to summaries |
//! | [`flags`] | what one has to know before believing the figures |
//! | [`imps`] | what IMPs reported to the Network Control Center |
//! | [`enough_runs`] | whether a measurement with `until` has been run often enough |
//! | [`compare`](mod@compare) | one run against another |
//! | [`compare_segments`](mod@compare_segments) | one trace against another |
//! | [`gate`] | whether a comparison passes a limit |
//! | [`network`] | what a modelled network did, and how well an emulated one kept its times |
//! | [`lifelines`](mod@lifelines) | what a lifeline is |
//! | [`data_fates`](mod@data_fates) | what was sent again or dropped and is on no lifeline |
//! | [`assemble`] | events to lifelines |
//! | [`clocks`] | which clocks of a log cannot be right, by causality |
//! | [`lifeline_statistics`] | all that is computed from lifelines |
//! | [`segments`](mod@segments) | where the time between points went |
//! | [`names`] | what points and the time between them are called |
//! | [`colouring`] | what lines are coloured by |
//! | [`stages`] | which points are one stage of the way |
//! | [`rates`](mod@rates) | bursts and averages of units, sender's side and receiver's |
//! | [`blocked`](mod@blocked) | when servers were blocked, and whether together |
//! | [`profile`](mod@profile) | what each host did with its time, what its units waited for |
//! | [`lifeline_percentiles`] | exact percentiles |
//! | [`captured_connections`](mod@captured_connections) | connections of captures |
//! | [`scope`](mod@scope) | what was looked for where nothing was measured |
//! | [`findings`] | what limits a run, with its evidence |
//! | [`predicted`] | predictions beside what was measured |

pub mod assemble;
mod backlog;
pub mod bimodal;
pub mod blocked;
pub mod captured_connections;
mod clock_error;
pub mod clocks;
pub mod colouring;
pub mod compare;
pub mod compare_segments;
mod core_sharing;
mod costs;
mod critical_path;
mod cut_buffers;
pub mod data_fates;
pub mod duration_filter;
pub mod enough_runs;
mod fairness;
pub mod findings;
pub mod flags;
pub mod gate;
mod groups;
pub mod imps;
pub mod lifeline_percentiles;
pub mod lifeline_statistics;
pub mod lifelines;
pub mod loaded_run;
mod machines;
pub mod names;
pub mod network;
mod outcomes;
pub mod predicted;
pub mod profile;
pub mod rates;
pub mod scope;
pub mod segments;
mod side_summary;
pub mod stages;
pub mod statistics;
pub mod summarise;
pub mod summary;
#[cfg(test)]
mod testing;

pub use compare::{
    ComparisonVerdict, Label, MeasurementComparison, MetricComparison, Pairing, compare,
    compare_stacks, rows_by_measurement,
};
pub use compare_segments::{SegmentComparison, compare_requests, compare_segments};
pub use core_sharing::CoreSharing;
pub use enough_runs::{half_width_share, interval_reached};
pub use gate::{GateOutcome, GateVerdict, WorseBy, judge_gate};
pub use statistics::{SampleStatistics, values_needed};
pub use summarise::summarise;
pub use summary::{
    CpuCost, EmulationSummary, NetworkSummary, PortSummary, RepeatedWork, RunMetric, RunValues,
    SideSummary, Summary, ThreadPlacement,
};
