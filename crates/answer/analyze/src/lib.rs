//! Computes the answers of a run from its records and events: statistics with their intervals, summaries with their flags,
//! comparisons, lifelines, findings.
//!
//! It reads what a run directory holds; it never measures or prints. A mean is never given without its spread, and a figure
//! that cannot be known is absent.
//!
//! A *unit* is one piece of an application's data (a data unit, a call with its response, a connection); a *lifeline* is the
//! series of events of one unit, across hosts, in the clock of the reference host.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`statistics`] | n, mean, sd, percentiles and the 95 % interval of the mean |
//! | [`bimodal`] | whether response times fall into two groups |
//! | [`summary`] | the data of a summary |
//! | [`summarise`](mod@summarise) | makes summaries of run records |
//! | [`flags`] | warnings about the figures of a summary, such as `overload` |
//! | [`bufferbloat`] | how much latency grows under load, its grade |
//! | [`curves`](mod@curves) | a figure over a swept variable, distributions of calls |
//! | [`imps`] | what IMPs reported to the Network Control Center |
//! | [`enough_runs`] | whether a measurement with `until` has been run often enough |
//! | [`compare`](mod@compare) | one run against another |
//! | [`compare_segments`](mod@compare_segments) | one trace against another |
//! | [`compared_runs`] | two runs, or the stacks of one, with their traces |
//! | [`gate`] | whether a comparison passes a limit |
//! | [`regression_gate`] | whether a run is worse than a baseline, with a stated error rate |
//! | [`anytime_interval`] | an interval that may be looked at after each value |
//! | [`paired_gate`] | whether one side of pairs of runs is worse, judged after each pair |
//! | [`change_points`](mod@change_points) | where a series of figures changed |
//! | [`kept_series`] | a figure of kept runs of the same measurement, in time order |
//! | [`baseline_runs`] | a baseline from a run, and a gate against one |
//! | [`expectations`] | whether results are as the specification expects them |
//! | [`network`] | packets, drops and marks of a modelled network; how late an emulated one sent its packets |
//! | [`lifelines`](mod@lifelines) | the data of lifelines |
//! | [`data_fates`](mod@data_fates) | retransmissions and drops that are on no lifeline |
//! | [`selected_lifelines`] | some lifelines of a run, and notes on those that are shown |
//! | [`assemble`] | makes lifelines of events |
//! | [`clocks`] | finds hosts whose clocks contradict causality, and corrects them |
//! | [`lifeline_statistics`] | all statistics that are computed from lifelines |
//! | [`segments`](mod@segments) | the time between two monitor points, over all lifelines |
//! | [`names`] | the names of monitor points and of the segments between them |
//! | [`colouring`] | by what property lifelines are coloured |
//! | [`stages`] | which monitor points form one stage of a unit's way |
//! | [`rates`](mod@rates) | throughput of units, at the sender and at the receiver |
//! | [`blocked`](mod@blocked) | when servers were blocked, and whether several were at the same time |
//! | [`profile`](mod@profile) | how each host spent its time, what its units waited for |
//! | [`lifeline_percentiles`] | exact percentiles |
//! | [`captured_connections`](mod@captured_connections) | the TCP connections of packet captures |
//! | [`scope`](mod@scope) | what was analysed of a run without measurements |
//! | [`findings`] | what limits a run, with its evidence |
//! | [`predicted`] | predictions paired with what was measured |

pub mod anytime_interval;
pub mod assemble;
mod backlog;
pub mod baseline_runs;
pub mod bimodal;
pub mod blocked;
pub mod bufferbloat;
pub mod captured_connections;
pub mod change_points;
mod clock_error;
pub mod clocks;
pub mod colouring;
pub mod compare;
pub mod compare_segments;
pub mod compared_runs;
mod core_sharing;
mod costs;
mod critical_path;
pub mod curves;
mod cut_buffers;
pub mod data_fates;
pub mod duration_filter;
pub mod enough_runs;
pub mod expectations;
mod fairness;
pub mod findings;
pub mod flags;
pub mod gate;
mod groups;
pub mod imps;
pub mod kept_series;
pub mod lifeline_percentiles;
pub mod lifeline_statistics;
pub mod lifelines;
pub mod loaded_run;
mod log_ratio;
mod machines;
pub mod names;
pub mod network;
mod outcomes;
pub mod paired_gate;
pub mod predicted;
pub mod profile;
pub mod rates;
pub mod regression_gate;
pub mod scope;
mod segment_runs;
pub mod segments;
pub mod selected_lifelines;
mod side_summary;
pub mod stages;
pub mod statistics;
pub mod summarise;
pub mod summary;
#[cfg(test)]
mod testing;

pub use compare::{
    ComparisonVerdict, Label, MeasurementComparison, MetricComparison, Pairing, compare,
    compare_by, compare_stacks, rows_by_measurement,
};
pub use compare_segments::{SegmentComparison, compare_requests, compare_segments};
pub use core_sharing::CoreSharing;
pub use enough_runs::{all_runs_equal, half_width_share, interval_reached};
pub use expectations::{
    DiagnosedFindings, ExpectationVerdict, JudgedExpectation, expects_findings, judge_expectations,
};
pub use gate::{GateOutcome, GateVerdict, WorseBy, judge_gate};
pub use paired_gate::{is_decided, judge_pairs};
pub use regression_gate::{
    ComparedFigure, GateFigure, JudgedFigure, RegressionOutcome, RegressionRule, RegressionVerdict,
    judge_regressions, judge_with_segments,
};
pub use statistics::{SampleStatistics, values_needed};
pub use summarise::summarise;
pub use summary::{
    CpuCost, EmulationSummary, NetworkSummary, PortSummary, RepeatedWork, RunMetric, RunValues,
    SideSummary, Summary, ThreadPlacement,
};
