//! The emulated world: real stacks of real processes. Each host has a network namespace of its own; an emulator process
//! carries packets between them in real time.

use super::live::{describe_agent_machines, processor_notes, run, run_traced};
use super::simulated::{BUSIEST, network_of};
use crate::backend::{Backend, RunContext, RunOutput};
use crate::network_tap::{PacketStreams, RunTapRecorder, TraceClockStamp};
use crate::recording::{RunRecording, Traces};
use crate::tracing::Tracing;
use serde_json::{Map, Value, json};
use stackline_core::catalogue::PacketContent;
use stackline_core::catalogue::is_over_ipv6;
use stackline_core::error::Error;
use stackline_core::network::Network;
use stackline_core::plan::{HostPlan, Measurement, MeasurementPart, Plan, Via, World};
use stackline_core::procedure::{self, OperationCall};
use stackline_core::random::Seed;
use stackline_core::run_record::{EmulationRecord, NetworkRecord, PortRecord, WakeUp};
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::time::Instant;
use stackline_dissect::frame_locator::{Carries, FlowAt, FrameLocator};
use stackline_emu::client::Emulation;
use stackline_emu::engine::{
    EmulatedPortReport, EmulatorOptions, EmulatorReport, NetworkEventRecorder,
};
use stackline_live::clock::ahead_of_monotonic_ns;
use stackline_live::coordinator::{AgentsReport, Coordinator, hosts_of_plan};
use stackline_net::{NetworkEvent, NetworkPacket, Tap};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The networks of a plan that are emulated, by name.
pub(crate) struct Emulated<'p> {
    plan: &'p Plan,
    networks: BTreeMap<&'p str, EmulatedAgentNetwork<'p>>,
    traces: Traces,
}

/// One emulated network with agents on its hosts. The fields are dropped in order: the agents end before the network
/// does.
struct EmulatedAgentNetwork<'p> {
    /// Dropped before the network is taken down.
    _in_use: EmulationInUse,
    coordinator: Coordinator<'p>,
    agents: AgentsReport,
    emulation: Emulation,
    /// The emulator's report of the latest run.
    report: Option<EmulatorReport>,
}

impl<'p> Emulated<'p> {
    /// Starts the emulators of the plan's networks, and agents on those of their hosts that have something to do.
    pub(crate) fn open(context: &RunContext<'p>) -> Result<Self, Error> {
        let plan = context.plan;
        let wanted = |network: &&Network| {
            plan.measurements
                .iter()
                .any(|m| m.world == World::Emulated && m.across.as_deref() == Some(&network.name))
        };
        let networks = plan.networks.iter().filter(wanted);
        let networks = networks
            .map(|network| {
                Ok((
                    network.name.as_str(),
                    EmulatedAgentNetwork::open(context, network)?,
                ))
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            plan,
            networks,
            traces: context.traces.clone(),
        })
    }
}

impl<'p> EmulatedAgentNetwork<'p> {
    fn open(context: &RunContext<'p>, network: &Network) -> Result<Self, Error> {
        let seed = Seed::root(context.plan.seed);
        let emulation = Emulation::private(
            &context.launcher.program,
            network,
            seed,
            &EmulatorOptions::default(),
        )?;
        let mut launcher = context.launcher.clone();
        let here = |measurement: &Measurement| {
            measurement.world == World::Emulated
                && measurement.across.as_deref() == Some(&network.name)
        };
        let mut hosts = hosts_of_plan(context.plan, here);
        for (name, host) in &mut hosts {
            let seat = emulation.host(name).ok_or_else(|| {
                Error::input(format!("network {} has no host {name}", network.name))
            })?;
            let share = seat.share.as_ref().map(|(share, _)| *share).or(host.share);
            *host = HostPlan {
                via: Via::Local,
                address: Some(seat.address.to_string()),
                share,
                ..host.clone()
            };
            launcher
                .within
                .insert(name.clone(), (seat.user.clone(), seat.net.clone()));
            launcher
                .addresses_v6
                .extend(seat.address_v6.map(|address| (name.clone(), address)));
        }
        let (coordinator, agents) = Coordinator::start(hosts, &launcher, context.interrupted)?;
        let in_use = EmulationInUse(Arc::new(AtomicBool::new(true)));
        watch(&emulation, &in_use, Arc::clone(context.interrupted))?;
        Ok(Self {
            _in_use: in_use,
            coordinator,
            agents,
            emulation,
            report: None,
        })
    }
}

impl EmulatedAgentNetwork<'_> {
    /// Makes one run on a network that is restarted with the run's own seed.
    fn run(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        recording: Option<RunRecording>,
        tracing: Option<&mut Tracing>,
        directory: &Path,
    ) -> Result<(RunOutput, EmulatorReport), Error> {
        let seed = scheduled.seed.child("network");
        let request = recording.as_ref().map(serde_json::to_value).transpose();
        let request = request
            .map_err(|e| Error::measurement(format!("cannot write the recording settings: {e}")))?;
        self.emulation.restart(seed, request)?;
        let restarted_ns = stackline_events::clock::now_ns();
        let output = match tracing {
            None => run(&mut self.coordinator, scheduled),
            Some(tracing) => {
                let output = run_traced(&mut self.coordinator, scheduled, tracing, directory);
                tracing.traced.network_ns = Some(restarted_ns);
                output
            }
        };
        let report = self.emulation.report();
        // The restart without a request ends the recording, also of a run that failed.
        let finished = recording.map_or(Ok(()), |_| self.emulation.restart(seed, None));
        let output = output.map_err(through_the_network)?;
        finished?;
        Ok((output, report?))
    }

    /// Chooses the ports on which the responders of a traced run listen, so that the emulator can tell to which flow a
    /// packet belongs. Returns these flows.
    fn flows(&self, scheduled: &ScheduledRun<'_>, tracing: &mut Tracing) -> Vec<FlowAt> {
        let mut flows = Vec::new();
        tracing.ports.clear();
        for (part, first) in scheduled.measurement.parts.iter().zip(&tracing.flows) {
            let chosen = FIRST_PORT + u16::try_from(first % PORTS).unwrap_or(0);
            let port = part
                .stack
                .number("port")
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(chosen);
            tracing.ports.push(port);
            if is_over_ipv6(&part.stack) {
                continue;
            }
            let seat = part.to.as_ref().and_then(|to| self.emulation.host(to));
            let Some(IpAddr::V4(address)) = seat.map(|seat| seat.address.into()) else {
                continue;
            };
            let carries = carries(part);
            flows.extend((0..part.replicas).filter_map(|replica| {
                let port = port.checked_add(u16::try_from(replica).ok()?)?;
                Some(FlowAt {
                    responder: SocketAddrV4::new(address, port),
                    flow: first + replica,
                    carries,
                })
            }));
        }
        flows
    }
}

/// The first port of responders in traced runs. The range lies below the ports that a kernel gives to connecting
/// sockets.
const FIRST_PORT: u16 = 10_000;
/// The number of these ports; flows use them in turn.
const PORTS: u32 = 12_000;

/// How the packets of a part show which bytes or units they carry.
fn carries(part: &MeasurementPart) -> Carries {
    let calls = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::RpcCall(..) | OperationCall::RpcAwaitCallInd(_)
        )
    };
    let steps = &part.procedure.initiator;
    match part.stack.facts.packets {
        // A connection that several pairs share is no pair's stream.
        PacketContent::Framed if part.stack.number("streams").unwrap_or(1) > 1 => Carries::Nothing,
        PacketContent::Stream | PacketContent::Framed => Carries::Stream,
        // Each connection numbers its units from the beginning.
        PacketContent::Datagrams if procedure::repeats_connections(steps) => Carries::Nothing,
        PacketContent::Datagrams if procedure::contains_call(steps, &calls) => Carries::Calls,
        PacketContent::Datagrams => Carries::Units {
            both_ways: procedure::both_ways(steps),
        },
        PacketContent::Blasts => Carries::Blasts {
            sealed: part.stack.flag("sealed"),
        },
        PacketContent::Unknown => Carries::Nothing,
    }
}

/// Replaces a hint about firewalls: here nothing but the emulated network lies between two hosts.
fn through_the_network(fault: Error) -> Error {
    if fault
        .hint
        .as_deref()
        .is_some_and(|hint| hint.contains("a firewall"))
    {
        return fault.hint(
            "the network loses every packet, or its round trip is longer than the stack's timeout",
        );
    }
    fault
}

/// That runs need an emulated network: its end is not that of the command any more when this is dropped.
struct EmulationInUse(Arc<AtomicBool>);

impl Drop for EmulationInUse {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Interrupts the run when the emulator process ends while it is in use, since no packet would arrive any more.
fn watch(
    emulation: &Emulation,
    in_use: &EmulationInUse,
    interrupted: Arc<AtomicBool>,
) -> Result<(), Error> {
    let in_use = Arc::clone(&in_use.0);
    let watched = emulation.lease().try_clone_to_owned();
    let watched =
        watched.map_err(|e| Error::environment(format!("cannot watch the emulator: {e}")))?;
    std::thread::spawn(move || {
        stackline_emu::client::wait_until_gone(&watched);
        if in_use.load(Ordering::Relaxed) {
            interrupted.store(true, Ordering::Relaxed);
        }
    });
    Ok(())
}

impl Backend for Emulated<'_> {
    fn make(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&mut Tracing>,
    ) -> Result<RunOutput, Error> {
        let network = network_of(self.plan, scheduled)?;
        let missing = || Error::environment(format!("network {} is not emulated", network.name));
        let scene = self
            .networks
            .get_mut(network.name.as_str())
            .ok_or_else(missing)?;
        let mut tracing = tracing;
        let mut recording = self
            .traces
            .recording_of(network, scheduled, tracing.as_deref())?;
        if let (Some(recording), Some(tracing)) = (&mut recording, tracing.as_deref_mut()) {
            recording.real = Some((scene.flows(scheduled, tracing), ahead_of_monotonic_ns()));
        }
        let directory = &self.traces.directory;
        let (output, report) = scene
            .run(scheduled, recording, tracing, directory)
            .map_err(|fault| {
                if !stackline_emu::client::is_gone(scene.emulation.lease()) {
                    return fault;
                }
                let (line, name) = (scheduled.measurement.line, &network.name);
                Error::measurement(format!(
                    "line {line}: the emulator of network {name} exited in the middle of a run"
                ))
                .hint("it was killed, or the machine ran out of memory")
            })?;
        let record = record(&network.name, &report);
        scene.report = Some(report);
        Ok(output.across(&record))
    }

    fn environment(&mut self, done: bool) -> Value {
        let networks = self.networks.iter_mut().map(|(name, scene)| {
            let hosts = describe_agent_machines(&mut scene.coordinator, &scene.agents, done);
            let report = scene.report.clone().or_else(|| scene.emulation.report().ok());
            let (mechanisms, round_trip) =
                report.map_or((Vec::new(), None), |report| (report.mechanisms, report.round_trip));
            let known = json!({"mechanisms": mechanisms, "calibration": {"round_trip": round_trip}, "hosts": hosts});
            ((*name).to_string(), known)
        });
        json!({"networks": networks.collect::<Map<String, Value>>()})
    }

    fn reference(&self) -> Option<String> {
        self.networks
            .values()
            .find_map(|scene| scene.coordinator.same_clock())
            .map(str::to_owned)
    }

    fn notes(&self) -> Vec<String> {
        self.networks
            .values()
            .flat_map(|scene| processor_notes(&scene.agents))
            .collect()
    }

    fn wake_up(&self) -> Option<WakeUp> {
        self.networks
            .values()
            .find_map(|scene| scene.agents.wake_up.values().next().copied())
    }
}

/// The record of what the emulated network did, from the emulator's report.
fn record(name: &str, report: &EmulatorReport) -> NetworkRecord {
    let port = |port: &EmulatedPortReport| PortRecord {
        name: format!("{}>{}", port.ends.0, port.ends.1),
        packets: port.packets,
        bytes: port.bytes,
        marked: port.marked,
        duplicated: port.duplicated,
        drops: port.drops.iter().cloned().collect(),
    };
    let emulation = EmulationRecord {
        departures: report.lateness.count,
        lateness_p50_ns: report.lateness.p50.0,
        lateness_p99_ns: report.lateness.p99.0,
        lateness_max_ns: report.lateness.max.0,
        lost: report.lost.all(),
        cpu_share: report.cpu,
        round_trip_ns: report.round_trip.map(|trip| trip.p50.0),
        overload: report.overload.clone(),
    };
    let ports = report.ports.iter().map(port).collect();
    NetworkRecord {
        emulation: Some(emulation),
        ..NetworkRecord::notable(name, ports, BUSIEST)
    }
}

/// The request with which a client has [`recorders`] record the events of all packets, of any program, into the event
/// logs of `directory` (an absolute path). They take at most `most_bytes`; of more a sample is kept. Flows are numbered
/// in the order in which they begin (`NET_FLOW`).
///
/// # Errors
/// When the request cannot be written as JSON.
pub fn record_all(directory: &Path, most_bytes: u64) -> Result<Value, Error> {
    let recording = RunRecording::of_all(directory, most_bytes);
    serde_json::to_value(recording)
        .map_err(|e| Error::measurement(format!("cannot write the recording settings: {e}")))
}

/// Makes the recorder that a client of the emulator process requested.
///
/// # Errors
/// One sentence, when a file cannot be made.
pub fn recorders(
    network: &Network,
    request: &Value,
) -> Result<Box<dyn NetworkEventRecorder>, String> {
    let recording: RunRecording = serde_json::from_value(request.clone())
        .map_err(|e| format!("cannot read the recording settings: {e}"))?;
    let (flows, ahead_ns) = recording.real.clone().unwrap_or_default();
    let frames = if recording.learns {
        FrameLocator::learning()
    } else {
        FrameLocator::new(&flows)
    };
    let streams = PacketStreams {
        frames,
        ..PacketStreams::default()
    };
    let recorder = recording
        .recorder(network, TraceClockStamp::default(), streams)
        .map_err(|fault| fault.message)?;
    Ok(Box::new(ShiftedRunRecorder(recorder, ahead_ns)))
}

/// A recorder in the emulator process, and the ns by which the time of events is ahead of the monotonic clock.
struct ShiftedRunRecorder(RunTapRecorder, i64);

impl NetworkEventRecorder for ShiftedRunRecorder {
    fn begin(&mut self, monotonic_ns: u64) {
        self.0.begin(monotonic_ns.saturating_add_signed(self.1));
    }

    fn record(
        &mut self,
        at: Instant,
        place: stackline_net::NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<&[u8]>,
    ) {
        self.0.record(at, place, what, packet);
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        self.0.finish().map(drop)
    }
}
