//! Makes all runs of a plan, each in its world (live, emulated or simulated), and writes them into a run directory.
//!
//! The crate decides nothing about networks, stacks or statistics: `core::run_schedule` says which run comes next, the
//! worlds make it, `analyze` (through [`StopRule`]) says when `until` is reached. It reads no flag and prints nothing.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`spec_source`] | the text of a specification to a checked plan, with every world there is |
//! | [`network_stack`] | the one network, or the one stack, that an application is carried out across |
//! | [`declared_networks`] | the network that a specification declares for a program's host |
//! | [`running_networks`] | emulated networks that are up, by name |
//! | [`link_by_text`] | new values of a link, as a person writes them |
//! | `run_sequence` | all runs of a plan, in order |
//! | `paired_runs` | the runs of two plans, in pairs |
//! | `runs_of_seeds` | the same under many seeds, simulated |
//! | `backend` | what a world does for a run |
//! | `worlds` | the three worlds |
//! | `run_writer` | what a run yields, kept as it comes |
//! | `tracing` | which events belong to which run |
//! | `recording` | which runs are recorded, and where |
//! | `network_tap` | what happens in a network, as events and packets |

mod backend;
pub mod declared_networks;
pub mod link_by_text;
mod markdown_reference;
pub mod network_stack;
mod network_tap;
mod paired_runs;
mod recording;
mod run_sequence;
mod run_writer;
pub mod running_networks;
mod runs_of_seeds;
pub mod spec_source;
mod tracing;
mod worlds;

pub use backend::RunContext;
pub use paired_runs::{PairedSide, PairsOutcome, make_pairs};
pub use recording::Traces;
pub use run_sequence::{RunsOutcome, make_runs};
pub use run_writer::{RunProgress, RunWriter, StopRule};
pub use runs_of_seeds::{make_runs_of_seeds, simulate, simulate_within};
pub use worlds::{record_all, recorders};
