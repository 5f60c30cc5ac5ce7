//! Formats results for people and programs: aligned tables, JSON, plans, pictures, an HTML page.
//!
//! It turns values into text or pictures; it never measures, reads a file or prints. Every number has its unit, and an absent figure
//! is shown as absent.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`table`](mod@table) | summaries, one row each, with notes on them below |
//! | [`json`](mod@json) | the stable schema of `--json` |
//! | [`comparison`](mod@comparison) | one run against another |
//! | [`ci`] | verdicts as JUnit, Markdown and annotations |
//! | [`expectations`](mod@expectations) | what a specification expects, with its verdicts |
//! | [`regressions`](mod@regressions) | a gate against a baseline |
//! | [`paired_runs`](mod@paired_runs) | pairs of runs of two specifications |
//! | [`change_points`](mod@change_points) | where figures of kept runs changed; their series for Otava |
//! | [`bufferbloat`](mod@bufferbloat) | how much latency grows under load |
//! | [`findings`](mod@findings) | what limits a run, what proves it, what to try |
//! | [`lifelines`](mod@lifelines) | where the time of data units went, and the slowest units |
//! | [`prediction`](mod@prediction) | predictions, and what was measured |
//! | [`paper`](mod@paper) | the reproduction of a paper: printed, by formula, simulated, measured |
//! | [`plan`](mod@plan) | what a specification will do, with all defaults |
//! | [`chart`](mod@chart) | curves over two axes as a picture |
//! | [`plot`](mod@plot) | curves of sweeps and of calls: pictures, characters, rows, a page |
//! | [`factors`](mod@factors) | which factors of an experiment matter |
//! | [`drawing`](mod@drawing) | a network as a picture |
//! | [`ncc`](mod@ncc) | IMPs and lines of the ARPANET, as the Network Control Center reported them |
//! | [`picture`](mod@picture) | lifelines as a picture, for papers |
//! | [`results_picture`](mod@results_picture) | figures of measurements with their intervals as a picture |
//! | [`scene`](mod@scene) | pictures as SVG, PNG and PDF |
//! | [`monitored`](mod@monitored) | values of monitors over time, as a chart |
//! | [`page`](mod@page) | a whole run as one file for a browser |
//! | [`live_table`](mod@live_table) | the latest samples of monitors, redrawn in place |
//! | [`mistakes`](mod@mistakes) | mistakes of a specification, with their places in its text |
//! | [`terminal_text`](mod@terminal_text) | text that is safe and fit for a terminal |
//! | [`run_page`](mod@run_page) | the page of a run that was read |
//! | [`reference_pages`](mod@reference_pages) | findings, keywords and stacks as Markdown |
//! | [`help_topics`](mod@help_topics) | chapters of the language manual, and what findings mean |
//! | [`manual_text`](mod@manual_text) | a chapter of a manual as text for a terminal |
//! | [`topology`](mod@topology) | a network: hosts, links, and the path between each two hosts |

mod axes;
pub mod bufferbloat;
pub mod change_points;
pub mod chart;
pub mod ci;
mod colours;
pub mod comparison;
mod connections;
mod csv;
mod defaults;
pub mod display;
pub mod drawing;
mod event_json;
pub mod expectations;
pub mod factors;
mod figure;
pub mod findings;
mod grid;
pub mod help_topics;
pub mod json;
mod kept_runs;
mod lifeline_selection;
pub mod lifelines;
pub mod live_table;
pub mod manual_text;
mod markup_escape;
pub mod mistakes;
pub mod monitored;
mod named_requests;
pub mod ncc;
mod notes;
pub mod page;
pub mod paired_runs;
pub mod paper;
mod pens;
mod phrases;
pub mod picture;
pub mod plan;
pub mod plot;
pub mod prediction;
mod procedure;
pub mod reference_pages;
pub mod regressions;
mod request_names;
pub mod results_picture;
pub mod run_page;
pub mod scene;
pub mod sheet;
mod stacks;
pub mod table;
pub mod terminal_text;
#[cfg(test)]
mod testing;
pub mod topology;
mod transfers;

pub use change_points::{OtavaTable, SeriesRun, change_points, change_points_json, otava_table};
pub use chart::{Chart, chart};
pub use comparison::{
    compared_runs, compared_runs_json, comparison, comparison_json, gate_json, gate_lines,
    request_comparison, segment_comparison, segment_comparison_json,
};
pub use connections::{connections, connections_json};
pub use csv::csv;
pub use drawing::{LinkUse, drawing, drawing_in_use};
pub use event_json::write_event_json;
pub use expectations::{expectation_counts, expectations, expectations_json};
pub use figure::Percentile;
pub use findings::{findings, findings_json, first_finding, wrapped};
pub use json::{ReportHeader, json};
pub use kept_runs::{headline_figure, kept_run_table};
pub use lifelines::{lifelines, lifelines_gnuplot, lifelines_json};
pub use mistakes::{MistakenTexts, diagnostics_json, mistake, mistakes_json};
pub use named_requests::named_requests;
pub use ncc::{imp_map, ncc, ncc_each, ncc_each_json, ncc_json};
pub use notes::{Note, Weight, trace_note_lines};
pub use page::page;
pub use paired_runs::{PairedOutcome, paired_lines, paired_runs, paired_runs_json};
pub use paper::{paper, paper_json};
pub use plan::plan;
pub use prediction::{prediction, prediction_json};
pub use regressions::{regression_lines, regressions, regressions_json};
pub use request_names::request_names;
pub use run_page::run_page;
pub use stacks::{stack, stack_list};
pub use table::{TableOptions, table, table_rows};
pub use topology::{topology, topology_json};
pub use transfers::transfers;
