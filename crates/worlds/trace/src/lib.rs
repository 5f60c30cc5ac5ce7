//! Traces unmodified programs on hosts of an emulated network or on this machine: starts or joins them, observes their packets,
//! sockets and threads, and stores their requests as a run.
//!
//! `stackline-requests` recognises requests, `stackline-analyze` finds what limits them. This crate reads no flags and prints
//! nothing.
//!
//! A door is the network interface at which packets leave or enter a host. A stopped program is one that `ptrace` stops at its
//! system calls, where the kernel's trace events are not available.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`program_trace`] | start here: one trace, from its programs to its run |
//! | [`scope`] | what is observed besides packets |
//! | [`programs`] | the programs of a trace: parsed from the command line, started, waited for, ended |
//! | `listening_processes` | whether a program listens at a socket |
//! | `proc_descendants` | which processes descend from which |
//! | `host_program_end` | when a program on a host of the network ended |
//! | [`joined_processes`] | processes that run already, found by process ID, container, systemd unit or control group |
//! | [`setting`] | where programs run: hosts of a network, this machine, network namespaces of joined processes |
//! | `outcome_words` | the outcome of a trace in words |
//! | [`calls`] | the process that stops a program at its system calls |
//! | `ptrace_source` | what stopped programs do, as events |
//! | `call_packets` | packets made from what calls sent and received |
//! | `trace_sources` | all sources that are read during a trace |
//! | `source_reading` | what one pass over all sources read, not decoded |
//! | `event_order` | decodes readings and puts their events in order of time |
//! | `trace_analysis` | turns readings into requests |
//! | `analysis_queue` | readings that wait for their analysis, and the low-priority thread that does it |
//! | `followed_threads` | follows processes by the kernel's numbers of their threads |
//! | `thread_directory` | which thread belongs to which program |
//! | `connect_attempts` | which thread made a connection attempt that failed |
//! | `datagram_owner_finder` | which process owns the socket of a datagram |
//! | `container_names` | the names of the containers of processes |
//! | `privileges` | the capabilities that observing needs and this process lacks, in words |
//! | `recorder` | turns what was observed into requests, and these into events |
//! | `full_disk` | events for which the disk has no room, and the room for the end of a run |
//! | `transfer_counters` | what the kernel said of connections that carry much data |
//! | `network_events` | what an emulated network records of itself during a trace |
//! | `tls_key_log` | TLS secrets that programs write down |

mod analysis_queue;
mod call_packets;
pub mod calls;
mod connect_attempts;
mod container_names;
mod datagram_owner_finder;
mod event_order;
mod followed_threads;
mod full_disk;
mod host_program_end;
pub mod joined_processes;
mod listening_processes;
mod network_events;
mod outcome_words;
mod privileges;
mod proc_descendants;
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
mod transfer_counters;
