//! The simulated world: carries out one run of a measurement in virtual time, over the network model of `net` and real
//! protocol stacks.
//!
//! The crate reads no clock (except for moments that quinn-proto and rustls require and no result shows), opens no file
//! or socket, starts no thread and draws nothing unseeded: the same scene gives the same records and the same digest.
//! Endpoints do and count what those of the live world do; processors take only the time that the hosts' interfaces and
//! program costs say. A "pair" is an initiator and a responder, with the connections between them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`carry_out`] | start here: one run, from its scene to its records |
//! | `scene`, `outcome` | what one run needs, what it yielded |
//! | `run_limits` | where a run is given up |
//! | `engine` | how a measured run goes on |
//! | `virtual_time` | the one loop: the network's next delivery, the next timer, which tasks are polled |
//! | `window_waits` | how what is sent waited for flow-control windows |
//! | `tasks` | async functions that run until they wait |
//! | `carrier` | what carries packets: links and switches, or IMPs |
//! | [`application`] | an application whose programs are async functions: time, processors, each other |
//! | [`messages`] | what its programs send each other: whole messages over connections, and V's messages |
//! | [`usage`] | what ports and processors did, interval by interval |
//! | [`port_events`] | what ports of a network and processors of hosts did, as events of monitors |
//! | [`papers`] | what only the papers need: networks of IMPs |
//! | `run_state` | what tasks share: the virtual time, timers, processors, packets to send |
//! | `context` | what one endpoint has around it, and how it waits |
//! | `world` | the simulated world of an endpoint (`stackline_endpoint`) |
//! | `stacks` | one file a stack, one table a stack |
//! | `processor` | a host's processor: which work it does, and when that is done |
//! | `host_work` | what operations of programs take of it |
//! | `records` | what a run yields |
//! | `datagram` | what travels |
//! | [`connection_info`] | what a connection's machine reports, as the data of `TCP_INFO` |
//! | `run_trace` | events of endpoints and machines, when they are wanted |
//! | `digest` | the digest of all network events |

pub mod application;
mod carrier;
mod clock;
pub mod connection_info;
mod context;
mod datagram;
mod digest;
mod engine;
mod error;
mod host_work;
mod job;
pub mod messages;
mod outcome;
pub mod papers;
pub mod port_events;
mod processor;
mod program_costs;
mod records;
mod run_limits;
mod run_state;
mod run_trace;
mod scene;
mod stacks;
mod start_phase;
mod stream_units;
mod tasks;
pub mod usage;
mod virtual_time;
mod window_waits;
mod world;

pub use datagram::{CarriedData, SimDatagram};
pub use error::{Error, Result};
pub use outcome::SimRunOutcome;
pub use program_costs::HostWorkCosts;
pub use run_limits::SimRunLimits;
pub use run_trace::SimTraceParameters;
pub use scene::SimRunScene;
pub use stacks::stack_tables;

use stackline_core::catalogue::Capabilities;
use stackline_core::plan::World;
use stackline_net::Tap;

/// What the simulated world can do. A host is a clock, an interface and its stacks; its processor takes the time that
/// the specification says, and it has no files.
pub const CAPABILITIES: Capabilities = Capabilities {
    world: World::Simulated,
    files: false,
    processors: false,
    shares: false,
    work: true,
    same_host: false,
    ethernet: false,
    imps: true,
    ..Capabilities::EVERYTHING
};

/// Carries out one run. `tap` receives every event of the network, and is returned at the end.
///
/// # Errors
/// An [`Error`] when a host, stack, option or construct is not simulated, when the run is deadlocked, or when the
/// run does not end within its limits.
pub fn carry_out<T: Tap<SimDatagram>>(
    scene: &SimRunScene<'_>,
    tap: T,
) -> Result<(SimRunOutcome, T)> {
    engine::SimRunEngine::new(scene, tap, None)?.carry_out()
}

/// Carries out one run and traces it: events of endpoints and protocol machines are written to the trace's logs.
/// Nothing else changes.
///
/// # Errors
/// As for [`carry_out`], and when the events cannot be kept.
pub fn run_traced<T: Tap<SimDatagram>>(
    scene: &SimRunScene<'_>,
    tap: T,
    trace: SimTraceParameters,
) -> Result<(SimRunOutcome, T)> {
    engine::SimRunEngine::new(scene, tap, Some(trace))?.carry_out()
}
