//! The live world: a plan carried out over real protocol stacks between real processes.
//!
//! A coordinator starts one agent process per host; an agent runs jobs. A job is one side (the initiators or the responders) of one
//! part of a run, for all its replicas (its pairs of endpoints).
//!
//! | module | one idea |
//! | --- | --- |
//! | [`coordinator`] | drives agents through a plan, run by run |
//! | [`agent`] | the process at the other end of the pipe: creates and ends jobs as messages ask for |
//! | [`control`] | the messages between the coordinator and its agents |
//! | [`launch`] | how an agent is started or reached: child process, ssh, TCP, a command |
//! | [`remote`] | an agent that listens at a TCP port, and the connection to it: TLS and a shared secret |
//! | [`job`] | one side of one part: its threads, how they are started and ended |
//! | [`world`] | what an endpoint program (`stackline_endpoint`) calls to connect, transfer, wait and read the clock |
//! | [`barrier`] | where threads wait for their clocks to start |
//! | [`cancel`] | what makes threads stop: flags and the time limit |
//! | [`stacks`] | the communication operations on each protocol stack: one file a stack |
//! | [`buffers`] | where data units come from and go to |
//! | [`usage`] | CPU time and counters of the measured period |
//! | [`cpu_placement`] | cores, priorities, and what waking another core costs |
//! | [`push`] | posts to web servers outside the run, from a bounded queue |
//! | `reactor` | one thread that drives many endpoints, by epoll |
//! | `readiness` | how an endpoint on such a thread waits for a descriptor or a moment |
//! | `recording` | one traced run at an agent: its events, kept until the coordinator takes them |
//! | `silence_limits` | how long an agent may be silent, and take to answer |
//! | `ssh_destination` | the host behind a destination of ssh |
//! | [`services`] | servers for clients that others have written |
//! | `iperf3_messages` | what both sides of iperf3 say to each other |
//! | [`files`] | the one directory an agent may touch |
//! | `foreign_call`, `foreign_watch` | which function of a plug-in an endpoint is in, and for how long |
//!
//! This crate never parses the language, never computes a statistic and never prints. It has no unsafe code.

pub mod agent;
pub mod barrier;
pub mod buffers;
pub mod cancel;
mod child_end;
pub mod clock;
pub mod control;
pub mod coordinator;
pub mod cpu_placement;
pub mod error;
pub mod files;
mod foreign_call;
mod foreign_watch;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod iperf3_messages;
pub mod job;
pub mod launch;
pub mod push;
mod reactor;
mod readiness;
mod recording;
pub mod remote;
pub mod services;
mod silence_limits;
mod ssh_destination;
pub mod stacks;
pub mod usage;
pub mod world;

pub use stackline_os::memory::keep_large_blocks_apart;

use stackline_core::catalogue::Capabilities;
use stackline_core::plan::World;

/// What the live world supports: everything except measurements across a declared network, because it uses the network that the hosts
/// have.
pub const CAPABILITIES: Capabilities = Capabilities {
    world: World::Live,
    networks: false,
    ..Capabilities::EVERYTHING
};

/// The cores of this machine that this process may use.
#[must_use]
pub fn cores() -> Vec<usize> {
    cpu_placement::allowed_cores()
}
