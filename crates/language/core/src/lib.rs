//! The vocabulary that every other crate uses: time, units, randomness, plans, the cursor over a program's operations,
//! run records.
//!
//! Nothing here reads a clock, opens a file or socket, starts a thread or draws unseeded randomness: the crate is
//! `no_std`, so such calls do not compile. Time and seeds are arguments.
//!
//!
//! | module | one idea |
//! | --- | --- |
//! | [`time`] | our own integer instant and duration, in nanoseconds |
//! | [`units`] | sizes, rates and times as people write and read them |
//! | [`quantity`] | sizes and times as flags have them |
//! | [`named`] | enumerations whose values people write by name |
//! | [`random`] | a named tree of seeds and the generators at its leaves |
//! | [`distribution`] | the distributions of the language |
//! | [`procedure`] | a benchmark procedure, compiled: steps and operations |
//! | [`procedure_cursor`] | walks a program and yields the next operation |
//! | [`plan`] | what will be done, as plain data |
//! | [`expectation`] | bounds of figures, and findings, that a measurement must meet |
//! | [`finding_names`] | the kinds of findings that an expectation may name |
//! | [`run_schedule`] | which run of a plan comes next, with which seed |
//! | [`network`] | a declared network, as plain data |
//! | [`far_end`] | the address of a server outside the run |
//! | [`error`] | the one error that reaches a user |
//! | [`routes`] | the way packets take through it |
//! | [`catalogue`] | what a stack is and what a world can do |
//! | [`stack_option`] | an option of a stack, its values and its help |
//! | [`stack`] | a stack and its options, as a plan has them |
//! | [`run_record`] | what one run yielded |
//! | [`interval_record`] | what the endpoints of a side did in each interval of a run |
//! | [`connection_count`] | what stacks count over the connections of a side |
//! | [`trace_index`] | what is known about a run's events |
//! | [`clock_offset`] | how far another host's clock is ahead, from exchanges of time stamps |

#![no_std]

extern crate alloc;

pub mod catalogue;
pub mod clock_offset;
pub mod connection_count;
pub mod distribution;
pub mod error;
pub mod expectation;
pub mod far_end;
pub mod finding_names;
pub mod interval_record;
pub mod named;
pub mod network;
pub mod plan;
pub mod procedure;
pub mod procedure_cursor;
pub mod quantity;
pub mod random;
pub mod routes;
pub mod run_record;
pub mod run_schedule;
pub mod socket_memory;
pub mod stack;
pub mod stack_option;
pub mod time;
pub mod trace_index;
pub mod units;
