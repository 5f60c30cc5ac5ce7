//! The live world: a plan carried out over real stacks between real processes.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`coordinator`] | drives agents through a plan, run by run |
//! | [`agent`] | the process at the other end of the pipe: creates and ends benchmark processes by message |
//! | [`control`] | the messages between them |
//! | [`launch`] | how an agent is started: child process or ssh |
//! | [`job`] | one side of one part: its threads, the gate they wait at, how they are ended |
//! | [`gate`] | where threads wait for their clocks to start |
//! | [`endpoint`] | one thread: walks the cursor over a connection, with the clock |
//! | [`stacks`] | the communication operations on each protocol stack: one file a stack |
//! | [`ends`] | where data units come from and go to |
//! | [`meter`] | CPU, counters and histograms of the measured period |
//! | [`placement`] | cores, priorities, and what waking another core costs |
//! | `recording` | one traced run at an agent: events kept until they are taken |
//! | [`files`] | the one directory an agent may touch |
//! | `sys` | the only unsafe code |
//!
//! It never parses the language, never computes a statistic and never prints.

pub mod agent;
pub mod clock;
pub mod control;
pub mod coordinator;
pub mod endpoint;
pub mod ends;
pub mod fault;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
pub mod job;
pub mod launch;
pub mod meter;
pub mod placement;
mod recording;
pub mod stacks;
mod sys;
