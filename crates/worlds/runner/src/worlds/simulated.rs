//! The simulated world: runs in virtual time, exact and repeatable.

use super::clocks;
use crate::backend::{Backend, RunContext, RunOutput};
use crate::network_tap::{PacketStreams, TraceClockStamp};
use crate::recording::{Traces, spool_event_logs, unkept};
use crate::tracing::{RunTrace, Tracing};
use serde_json::{Value, json};
use stackline_core::error::Error;
use stackline_core::network::Network;
use stackline_core::plan::Plan;
use stackline_core::run_record::{NetworkRecord, PortRecord};
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::time::{Duration, Instant};
use stackline_events::EventLogs;
use stackline_net::{NodeIndex, PortCounters};
use stackline_sim::{SimRunLimits, SimRunOutcome, SimRunScene, SimTraceParameters};
use std::sync::atomic::AtomicBool;

/// The number of ports without drops, the busiest, that a record keeps.
pub(super) const BUSIEST: usize = 8;

/// The simulated world, and what its runs came to.
pub(crate) struct SimulatedWorld<'p> {
    plan: &'p Plan,
    interrupted: &'p AtomicBool,
    traces: Traces,
    /// Make every run twice; an error if the two differ.
    twice: bool,
    /// Simulated events of all runs.
    events: u64,
    /// The digests of all runs, combined into one.
    digest: u64,
    /// Simulated runs so far.
    runs: u64,
}

impl<'p> SimulatedWorld<'p> {
    pub(crate) fn new(context: &RunContext<'p>) -> Self {
        let RunContext {
            plan,
            interrupted,
            twice,
            ..
        } = context;
        Self {
            plan,
            interrupted,
            traces: context.traces.clone(),
            twice: *twice,
            events: 0,
            digest: 0,
            runs: 0,
        }
    }

    /// The number of runs, and the digest of all their events.
    pub(crate) const fn digest(&self) -> (u64, u64) {
        (self.runs, self.digest)
    }

    /// The parameters of a trace: its flows, its origin of time, and the event logs that endpoints and protocol
    /// machines write to.
    fn trace(&self, network: &Network, tracing: &Tracing) -> SimTraceParameters {
        // IMPs report too.
        let imps = network
            .switches
            .iter()
            .filter(|switch| switch.imp.is_some())
            .map(|switch| switch.name.clone());
        let hosts = network
            .hosts
            .iter()
            .map(|host| host.name.clone())
            .chain(imps);
        let event_logs = EventLogs::new(hosts, spool_event_logs(&self.traces.directory));
        SimTraceParameters {
            flows: tracing.flows.clone(),
            zero_ns: zero(network, tracing),
            event_logs,
        }
    }

    /// Makes the run again; an error if its events differ from those of the first time.
    fn same_again(scene: &SimRunScene<'_>, first: &SimRunOutcome) -> Result<(), Error> {
        let (second, ()) = stackline_sim::carry_out(scene, ())?;
        if (second.digest, second.events) == (first.digest, first.events) {
            return Ok(());
        }
        let (a, b) = ((first.events, first.digest), (second.events, second.digest));
        Err(Error::measurement(format!(
            "line {}: run {} differed when repeated: {} events with digest {:016x}, then {} with {:016x}",
            scene.measurement.line, scene.run, a.0, a.1, b.0, b.1
        ))
        .hint("this is a bug in stackline; the specification and the seed reproduce it"))
    }
}

impl Backend for SimulatedWorld<'_> {
    fn make(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&mut Tracing>,
    ) -> Result<RunOutput, Error> {
        let network = network_of(self.plan, scheduled)?;
        let scene = scene(network, scheduled, self.interrupted);
        let outcome = match self
            .traces
            .recording_of(network, scheduled, tracing.as_deref())?
        {
            Some(recording) => {
                let (stamp, streams) = tracing
                    .as_deref()
                    .map(|tracing| stamp_and_streams(network, scheduled, tracing))
                    .unwrap_or_default();
                let recorder = recording.recorder(network, stamp, streams)?;
                let simulated = match tracing.as_deref() {
                    Some(tracing) => {
                        stackline_sim::run_traced(&scene, recorder, self.trace(network, tracing))
                    }
                    None => stackline_sim::carry_out(&scene, recorder),
                };
                let (outcome, recorder) = simulated?;
                recorder.finish().map_err(unkept)?;
                outcome
            }
            None => stackline_sim::carry_out(&scene, ())?.0,
        };
        if self.twice {
            Self::same_again(&scene, &outcome)?;
        }
        self.runs += 1;
        self.events += outcome.events;
        self.digest = self.digest.rotate_left(5).wrapping_mul(0x0100_0000_01b3) ^ outcome.digest;
        if let Some(tracing) = tracing {
            tracing.traced = traced(network, scheduled, tracing, outcome.virtual_time);
        }
        Ok(run_output(network, outcome))
    }

    fn environment(&mut self, _: bool) -> Value {
        json!({
            "mechanisms": ["virtual time", "net: the network model", "tcp: proto, as in Linux", "smoltcp", "quic: quinn-proto", "saw, window, blast: proto"],
            "runs": self.runs,
            "events": self.events,
            "digest": format!("{:016x}", self.digest),
            "made_twice": self.twice,
        })
    }
}

/// How the network's events are stamped with times, and which packets belong to which flow.
fn stamp_and_streams(
    network: &Network,
    scheduled: &ScheduledRun<'_>,
    tracing: &Tracing,
) -> (TraceClockStamp, PacketStreams) {
    let node = |name: Option<&String>| {
        let at = name.and_then(|name| network.hosts.iter().position(|host| host.name == *name));
        NodeIndex(u32::try_from(at.unwrap_or(0)).unwrap_or(u32::MAX))
    };
    let parts = scheduled.measurement.parts.iter();
    let initiators = parts
        .flat_map(|part| (0..part.replicas).map(move |_| node(part.from.as_ref())))
        .collect();
    let first = tracing.flows.first().copied().unwrap_or(0);
    (
        TraceClockStamp::simulated(network, zero(network, tracing)),
        PacketStreams {
            first,
            initiators,
            ..PacketStreams::default()
        },
    )
}

/// What a right clock reads at the beginning of the run, ns: so late that no host's clock reads less than the run's
/// origin.
fn zero(network: &Network, tracing: &Tracing) -> u64 {
    tracing.origin_ns
        + network
            .hosts
            .iter()
            .map(|host| host.clock.behind_ns())
            .max()
            .unwrap_or(0)
}

/// What was traced beside the events, which are in the run directory already.
fn traced(
    network: &Network,
    scheduled: &ScheduledRun<'_>,
    tracing: &Tracing,
    end: Instant,
) -> RunTrace {
    let zero = zero(network, tracing);
    let hosts = clocks::faulty_clocks(network, zero, end, scheduled.seed.child("control"));
    RunTrace {
        span_ns: (zero, zero + end.0),
        network_ns: None,
        hosts,
    }
}

/// The output of a simulated run in the form that all worlds share.
pub(crate) fn run_output(network: &Network, outcome: SimRunOutcome) -> RunOutput {
    let took = Duration(outcome.virtual_time.0);
    RunOutput {
        records: outcome.records,
        took,
    }
    .across(&record(network, &outcome.ports))
}

/// The record of what went through the network's ports.
fn record(network: &Network, ports: &[PortCounters]) -> NetworkRecord {
    let of_port = |(port, name): (u32, String)| Some((name, ports.get(port as usize)?));
    let port = |(name, counters): (String, &PortCounters)| PortRecord {
        name,
        packets: counters.packets,
        bytes: counters.bytes,
        marked: counters.marked,
        duplicated: counters.duplicated,
        drops: counters
            .drops_by_reason()
            .map(|(reason, count)| (reason.to_string(), count))
            .collect(),
    };
    let ports = network.ports().filter_map(of_port).map(port).collect();
    NetworkRecord::notable(&network.name, ports, BUSIEST)
}

/// The network that the measurement of a run goes across.
pub(crate) fn network_of<'p>(
    plan: &'p Plan,
    scheduled: &ScheduledRun<'_>,
) -> Result<&'p Network, Error> {
    let name = scheduled.measurement.across.as_deref().unwrap_or_default();
    let missing = || {
        Error::input(format!(
            "line {}: unknown network `{name}`",
            scheduled.measurement.line
        ))
    };
    plan.networks
        .iter()
        .find(|network| network.name == name)
        .ok_or_else(missing)
}

/// The scene with which the simulator makes a run.
pub(crate) const fn scene<'s>(
    network: &'s Network,
    scheduled: &ScheduledRun<'s>,
    interrupted: &'s AtomicBool,
) -> SimRunScene<'s> {
    let (measurement, index, run) = (scheduled.measurement, scheduled.index, scheduled.run);
    SimRunScene {
        network,
        measurement,
        index,
        run,
        warmup: !scheduled.counted,
        seed: scheduled.seed,
        limits: SimRunLimits::USUAL,
        interrupted: Some(interrupted),
    }
}
