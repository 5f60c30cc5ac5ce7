//! The simulated world: carries out one run of a measurement in virtual time, over the network model of `net` and real
//! protocol stacks.
//!
//! It reads no clock (but for moments that quinn-proto and rustls want and no result shows), opens no file or socket, starts no thread and draws nothing unseeded: the same scene gives the same
//! records and the same digest. Endpoints do and count what those of the live world do; processors cost nothing but what
//! the hosts' interfaces say.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`carry_out`] | start here: one run, from its scene to its records |
//! | `engine` | the loop: the network's next delivery, the next timer, which endpoint is polled; how a run goes on |
//! | `carrier` | what carries packets: links and switches, or IMPs |
//! | `host_messages` | packets as messages over IMPs |
//! | `imp_log` | what IMPs report of themselves, as events |
//! | [`messages`] | connections of an application that is no endpoint: whole messages, timers |
//! | [`ports`] | what ports of a network and processors of hosts did, as events of monitors |
//! | [`imps`] | networks of IMPs, and what their hosts send |
//! | `executor` | what endpoints share: the virtual time, timers, packets to send |
//! | `context` | what one endpoint has around it, and how it waits |
//! | `world` | the simulated world of an endpoint (`stackline_endpoint`) |
//! | `stacks` | one file a stack, one table a stack |
//! | `processor` | a host's processor: which work it does, and when that is done |
//! | `working` | what operations of programs take of it |
//! | `records` | what a run yields |
//! | `datagram` | what travels |
//! | `trace` | events of endpoints and machines, when they are wanted |
//! | `digest` | the digest of all network events |

mod carrier;
mod clock;
mod context;
mod datagram;
mod digest;
mod engine;
mod error;
mod executor;
mod host_messages;
mod imp_log;
pub mod imps;
mod job;
pub mod messages;
mod phase;
pub mod ports;
mod processor;
mod records;
mod stacks;
mod trace;
mod units;
mod working;
mod world;

pub use datagram::{Carried, Datagram};
pub use error::{Error, Result};
pub use stacks::catalogue;
pub use trace::Trace;
pub use working::Costs;

use stackline_core::catalogue::Capabilities;
use stackline_core::network::Network;
use stackline_core::plan::{Measurement, World};
use stackline_core::random::Seed;
use stackline_core::record::RunRecord;
use stackline_core::time::{Duration, Instant};
use stackline_net::{Counters, Tap};
use std::sync::atomic::AtomicBool;

/// What the simulated world can do: a host is a clock, an interface and its stacks; its processor takes the time that is said, and it has no files.
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

/// What one run needs.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'p> {
    /// The network it runs across.
    pub network: &'p Network,
    /// The measurement.
    pub measurement: &'p Measurement,
    /// Its index in the plan.
    pub index: usize,
    /// Which run of it, from 0.
    pub run: u32,
    /// Whether it is one of those that are left out of every total.
    pub warmup: bool,
    /// The seed of this run.
    pub seed: Seed,
    /// Where it is given up.
    pub limits: Limits,
    /// Set from outside to end it early, as interrupted.
    pub interrupted: Option<&'p AtomicBool>,
}

/// Where a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most virtual time.
    pub virtual_time: Duration,
    /// Most packets and steps at one instant: a sender that nothing slows down would go on for ever.
    pub steps_an_instant: u64,
}

impl Default for Limits {
    /// A day of virtual time, and four million steps at an instant.
    fn default() -> Self {
        Self { virtual_time: Duration(86_400_000_000_000), steps_an_instant: 4_000_000 }
    }
}

/// What one run yielded.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One record a part, as the live world makes them.
    pub records: Vec<RunRecord>,
    /// A hash of every event in its order: instant, place, what, size of the packet. Two runs with the same one went the
    /// same way.
    pub digest: u64,
    /// How many events there were: what happened to packets, deliveries, timers.
    pub events: u64,
    /// When the last of them was.
    pub virtual_time: Instant,
    /// What went through each direction of each link.
    pub ports: Vec<Counters>,
}

/// Carries out one run. `tap` receives every event of the network, and is given back.
///
/// # Errors
/// An [`Error`] when a host, stack, option or construct is not simulated, when the run is deadlocked, or when the
/// run does not end within its limits.
pub fn carry_out<T: Tap<Datagram>>(scene: &Scene<'_>, tap: T) -> Result<(Outcome, T)> {
    engine::Engine::new(scene, tap, None)?.carry_out()
}

/// The same, traced: events of endpoints and protocol machines go on the trace's tapes. Nothing else changes.
///
/// # Errors
/// As for [`carry_out`], and when the events cannot be kept.
pub fn trace<T: Tap<Datagram>>(scene: &Scene<'_>, tap: T, trace: Trace) -> Result<(Outcome, T)> {
    engine::Engine::new(scene, tap, Some(trace))?.carry_out()
}
