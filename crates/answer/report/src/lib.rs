//! Answers as people and programs read them: aligned tables, JSON, plans, pictures, a page.
//!
//! It turns values into text and never measures, reads a file or prints. Every number carries its unit; what is absent
//! is shown as absent.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`table`](mod@table) | summaries, one row each, and below what one has to know about them |
//! | [`json`](mod@json) | the stable schema of `--json` |
//! | [`comparison`](mod@comparison) | one run against another |
//! | [`findings`](mod@findings) | what limits a run, what proves it, what to try |
//! | [`lifelines`](mod@lifelines) | where the time of data units went, and the slowest of them |
//! | [`prediction`](mod@prediction) | what closed forms say, beside a run |
//! | [`paper`](mod@paper) | a paper made again: printed, formula, simulated, measured |
//! | [`plan`](mod@plan) | what exactly will be done |
//! | [`chart`](mod@chart) | curves over two axes as a picture |
//! | [`factors`](mod@factors) | which factors of an experiment matter |
//! | [`drawing`](mod@drawing) | a network as a picture |
//! | [`ncc`](mod@ncc) | what IMPs and lines did, as the Network Control Center had it |
//! | [`picture`](mod@picture) | lifelines as a picture, for papers |
//! | [`results_picture`](mod@results_picture) | figures of measurements with their intervals as a picture |
//! | [`scene`](mod@scene) | pictures as SVG, PNG and PDF |
//! | [`monitored`](mod@monitored) | what monitors saw over time, as a chart |
//! | [`page`](mod@page) | a whole run as one file for a browser |
//! | [`manual_text`](mod@manual_text) | a chapter of a manual as text for a terminal |
//! | [`topology`](mod@topology) | a network: hosts, links, and what lies between each two hosts |

pub mod chart;
mod colours;
pub mod comparison;
mod connections;
mod csv;
mod defaults;
pub mod display;
pub mod drawing;
pub mod factors;
mod figure;
pub mod findings;
mod grid;
pub mod json;
mod kept_runs;
mod lifeline_selection;
pub mod lifelines;
pub mod manual_text;
mod markup_escape;
pub mod monitored;
mod named_requests;
pub mod ncc;
mod notes;
pub mod page;
pub mod paper;
mod phrases;
pub mod picture;
pub mod plan;
pub mod prediction;
mod procedure;
pub mod results_picture;
pub mod scene;
pub mod sheet;
pub mod table;
#[cfg(test)]
mod testing;
pub mod topology;

pub use chart::{Chart, chart};
pub use comparison::{
    comparison, comparison_json, gate_json, request_comparison, segment_comparison,
    segment_comparison_json,
};
pub use connections::{connections, connections_json};
pub use csv::csv;
pub use drawing::{LinkUse, drawing, drawing_in_use};
pub use figure::Percentile;
pub use findings::{findings, findings_json, first_finding, wrapped};
pub use json::{ReportHeader, json};
pub use kept_runs::{headline_figure, kept_run_table};
pub use lifelines::{lifelines, lifelines_gnuplot, lifelines_json};
pub use named_requests::named_requests;
pub use ncc::{ncc, ncc_each, ncc_json};
pub use notes::{Note, Weight};
pub use page::page;
pub use paper::{paper, paper_json};
pub use plan::plan;
pub use prediction::{prediction, prediction_json};
pub use table::{TableOptions, table, table_rows};
pub use topology::{topology, topology_json};
