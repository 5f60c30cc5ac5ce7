//! The run directory: its `results.parquet` and its events. Its layout and file formats are the stable record of what
//! was done in a run and what it yielded.
//!
//! The crate stores records and returns them exactly; it never measures, summarises or prints. It reads no clock: the
//! caller passes in when a run started.
//!
//!
//! | module | one idea |
//! | --- | --- |
//! | [`run_directory_writer`] | writing a run directory while a run goes on |
//! | [`claimed_run`] | one whose process ended early, for another that goes on |
//! | [`run_reader`] | reading one back, complete or not |
//! | [`kept_runs`] | what is kept, notes and tags, and its removal |
//! | [`run_list`] | the list of all kept runs, with an index that makes it fast |
//! | [`run_index`] | that index, to which each run adds its line when it ends |
//! | [`pruning`] | which runs a rule removes |
//! | [`archive`] | a run as one file, and back |
//! | [`probe_series`] | series of probes in bounded files |
//! | [`run_inputs`] | what a specification was given beside its text |
//! | [`results_digest`](mod@results_digest) | when two runs are equal to the last bit |
//! | [`result_columns`] | the table of columns of `results.parquet` |
//! | [`results`] | that table to Parquet and back |
//! | [`baseline`] | the figures of a run as a small text for a repository |
//! | [`events`] | files of events: Parquet, one a host, sorted by time; import and export |
//! | [`status`] | whether a run is complete |
//! | `named_file` | a file that a person named, and why it cannot be written |
//! | `checksums` | damage to Parquet files is noticed |
//! | `plausible` | records whose numbers cannot be added up are refused |
//! | [`error`] | one sentence, a cause and a hint |

pub mod archive;
pub mod baseline;
mod checksums;
pub mod claimed_run;
pub mod error;
pub mod events;
mod files;
pub mod kept_runs;
mod named_file;
mod plausible;
pub mod probe_series;
pub mod pruning;
mod replace;
pub mod result_columns;
pub mod results;
pub mod results_digest;
pub mod run_directory_writer;
pub mod run_index;
pub mod run_inputs;
pub mod run_list;
pub mod run_reader;
mod sha256;
pub mod status;
mod utc;

pub use baseline::{
    Baseline, BaselineMeasurement, MachineFacts, machines_in, machines_of, version_of,
};
pub use claimed_run::{ClaimedRun, has_room};
pub use error::Error;
pub use events::events_path;
pub use files::{RunFileAccess, create_within};
pub use named_file::{unwritten, write_file, write_file_by};
pub use replace::{replace, replace_with};
pub use results_digest::results_digest;
pub use run_directory_writer::{RunDirectory, new_directory};
pub use run_inputs::RunInputs;
pub use run_reader::{StoredRun, directory_of, located, names, runs_root};
pub use sha256::short_digest;
pub use status::RunStatus;
pub use utc::iso_utc;
