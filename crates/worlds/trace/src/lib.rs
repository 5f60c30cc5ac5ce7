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
//! | `listening_processes` | whether a program listens |
//! | `process_tree` | which processes descend from which |
//! | `host_program_end` | when a program ended on its host |
//! | [`joined_processes`] | processes that run already, by number, container, unit or control group |
//! | [`setting`] | where programs run: hosts of a network, this machine, network namespaces of what is joined |
//! | `outcome_words` | what came of it, in words |
//! | [`calls`] | the process that stops a program at its calls |
//! | `ptrace_source` | what programs do that are stopped so |
//! | `call_packets` | packets made of what calls sent and received |
//! | `trace_sources` | all that is looked at |
//! | `source_reading` | what one look gave, as it was read |
//! | `event_order` | the same decoded, in the order of time |
//! | `trace_analysis` | what was read to requests |
//! | `analysis_queue` | what waits for that, and the thread that does it behind all others |
//! | `followed_threads` | processes to follow, by the kernel's numbers of their threads |
//! | `thread_directory` | which thread is whose |
//! | `connect_attempts` | whose a connection was that never was set up |
//! | `datagram_owner_finder` | whose sockets datagrams pass |
//! | `container_names` | what the containers of processes are called |
//! | `privileges` | what looking needs and this process lacks, in words |
//! | `recorder` | what was seen to requests, and these to events |
//! | `network_events` | what happens within an emulated network meanwhile |
//! | `tls_key_log` | secrets of TLS that programs write down |

mod analysis_queue;
mod call_packets;
pub mod calls;
mod connect_attempts;
mod container_names;
mod datagram_owner_finder;
mod event_order;
mod followed_threads;
mod host_program_end;
pub mod joined_processes;
mod listening_processes;
mod network_events;
mod outcome_words;
mod privileges;
mod process_tree;
pub mod program_trace;
pub mod programs;
mod ptrace_source;
mod recorder;
pub mod scope;
pub mod setting;
mod source_reading;
mod thread_directory;
mod tls_key_log;
mod trace_analysis;
mod trace_sources;
