//! Programs that are not ours, as they are, on hosts of an emulated network or on this machine: started or joined, looked at, and their
//! requests kept as a run.
//!
//! What a request is, `stackline-requests` says; what limits it, `stackline-analyze`. It reads no flag and prints nothing.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`program_trace`] | start here: a trace, from its programs to its run |
//! | [`scope`] | what is looked at beside packets |
//! | [`programs`] | programs: named, started, waited for, ended |
//! | [`process_tree`] | processes and those that they started |
//! | `outcome_words` | what came of it, in words |
//! | [`calls`] | the process that stops a program at its calls |
//! | `ptrace_source` | what programs do that are stopped so |
//! | `trace_sources` | all that is looked at, in the order of time |
//! | `followed_threads` | processes to follow, by the kernel's numbers of their threads |
//! | `thread_directory` | which thread is whose |
//! | `recorder` | what was seen to requests, and these to events |
//! | `network_events` | what happens within an emulated network meanwhile |
//! | `tls_key_log` | secrets of TLS that programs write down |

pub mod calls;
mod followed_threads;
mod network_events;
mod outcome_words;
pub mod process_tree;
pub mod program_trace;
pub mod programs;
mod ptrace_source;
mod recorder;
pub mod scope;
mod thread_directory;
mod tls_key_log;
mod trace_sources;
