//! The command as a user and a hostile network meet it: real processes over loopback, one file a subject.
//!
//! No test asserts a wall time tightly, needs root, or touches a process it did not start.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod support;

mod advice;
mod agents;
mod arpanet;
mod bad_days;
mod blasts;
mod blocks;
mod blocks_killed;
mod blocks_replay;
mod brokers;
mod bufferbloat;
mod captures;
mod client;
mod composers;
mod databases;
mod death;
mod display;
mod display_bench;
mod display_factors;
mod display_programs;
mod display_secrets;
mod display_simulated;
mod documents;
mod duckdb;
mod early_data;
mod emulated;
mod emulated_ends;
mod emulated_rights;
mod examples;
mod exchange;
mod factors;
mod far_end_datagrams;
mod far_ends;
mod file_servers;
mod files;
mod foreign;
mod foreign_captures;
mod foreign_exports;
mod framed;
mod ftam;
mod ftp;
mod gateway;
mod hostile;
mod hostile_runs;
mod input;
mod ip_options;
mod json;
mod json_schema;
mod kept;
mod keywords;
mod left;
mod lifelines;
mod losses;
mod net;
mod network;
mod one_side;
mod other_tools;
mod outputs;
mod over_all;
mod own_stacks;
mod packaging;
mod places;
mod planted;
mod predicted;
mod python;
mod quic_datagrams;
mod reading;
mod recorded;
mod report;
mod runs;
mod scale;
mod services;
mod session;
mod shown;
mod simulated;
mod spims;
mod ssh;
mod terminal;
mod together;
mod trace;
mod trace_doors;
mod trace_network;
mod trace_ptrace;
mod traces;
mod truth;
mod watch;
mod web_servers;
mod worlds;
mod x11;
