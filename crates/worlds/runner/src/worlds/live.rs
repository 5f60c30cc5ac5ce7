//! The live world: agent processes on real hosts make the runs; a coordinator starts and directs them.

use crate::backend::{Backend, RunContext, RunOutput};
use crate::recording::{Traces, spool_event_logs, unkept};
use crate::tracing::{RunTrace, Tracing};
use serde_json::{Map, Value, json};
use stackline_core::error::Error;
use stackline_core::plan::World;
use stackline_core::run_record::WakeUp;
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::time::Duration;
use stackline_core::units;
use stackline_live::control::AgentHello;
use stackline_live::coordinator::{AgentsReport, Coordinator, hosts_of_plan};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// The agents of a plan, and what is known of their machines.
pub(crate) struct LiveAgentsWorld<'p> {
    coordinator: Coordinator<'p>,
    agents: AgentsReport,
    traces: Traces,
}

impl<'p> LiveAgentsWorld<'p> {
    /// Starts agents on the hosts of all live measurements.
    pub(crate) fn open(context: &RunContext<'p>) -> Result<Self, Error> {
        let hosts = hosts_of_plan(context.plan, |measurement| measurement.world == World::Live);
        let (mut coordinator, agents) =
            Coordinator::start(hosts, &context.launcher, context.interrupted)?;
        coordinator.place_local_pairs();
        Ok(Self {
            coordinator,
            agents,
            traces: context.traces.clone(),
        })
    }
}

impl Backend for LiveAgentsWorld<'_> {
    fn make(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&mut Tracing>,
    ) -> Result<RunOutput, Error> {
        match tracing {
            None => run(&mut self.coordinator, scheduled),
            Some(tracing) => run_traced(
                &mut self.coordinator,
                scheduled,
                tracing,
                &self.traces.directory,
            ),
        }
    }

    fn reference(&self) -> Option<String> {
        self.coordinator.same_clock().map(str::to_owned)
    }

    fn environment(&mut self, done: bool) -> Value {
        json!({ "hosts": describe_agent_machines(&mut self.coordinator, &self.agents, done) })
    }

    fn notes(&self) -> Vec<String> {
        processor_notes(&self.agents)
    }

    fn wake_up(&self) -> Option<WakeUp> {
        self.agents.wake_up.values().next().copied()
    }
}

/// Has agents make one run; measures the real time that it took.
pub(super) fn run(
    coordinator: &mut Coordinator<'_>,
    scheduled: &ScheduledRun<'_>,
) -> Result<RunOutput, Error> {
    let begun = Instant::now();
    let records = coordinator.make(scheduled)?;
    Ok(RunOutput {
        records,
        took: Duration::from_seconds(begun.elapsed().as_secs_f64()),
    })
}

/// Has agents make one run and trace it: event logs go into `directory`, everything else into `tracing`.
pub(super) fn run_traced(
    coordinator: &mut Coordinator<'_>,
    scheduled: &ScheduledRun<'_>,
    tracing: &mut Tracing,
    directory: &Path,
) -> Result<RunOutput, Error> {
    let begun = Instant::now();
    let mut keep = spool_event_logs(directory);
    let (records, traced) =
        coordinator.make_traced(scheduled, &tracing.flows, &tracing.ports, &mut keep);
    let took = Duration::from_seconds(begun.elapsed().as_secs_f64());
    tracing.traced = RunTrace {
        span_ns: traced.span_ns,
        network_ns: None,
        hosts: traced.hosts,
    };
    let records = records?;
    traced
        .unkept
        .map_or(Ok(RunOutput { records, took }), |cause| Err(unkept(cause)))
}

/// Notes for people about agents that a quota limits to a share of a processor.
pub(super) fn processor_notes(agents: &AgentsReport) -> Vec<String> {
    let note = |(name, (hello, _)): (&String, &(AgentHello, Value))| {
        let held = hello.share?;
        let got = held.measured.map_or(String::new(), |got| {
            format!(" (a test loop got {:.1}%)", f64::from(got) / 10.0)
        });
        let waits = units::format_time(held.waits_us as f64 / 1e6);
        let still = if held.waits_us > 0 {
            format!(", but the host also stalls for up to {waits} at a time")
        } else {
            String::new()
        };
        Some(format!(
            "a quota limits {name} to {} of a processor{got}: on average, this is equivalent to a slower processor{still}",
            held.given
        ))
    };
    agents.hosts.iter().filter_map(note).collect()
}

/// Describes the agents' machines for `environment.json`: fixed properties, their state before the runs and, once all
/// is done, after.
pub(super) fn describe_agent_machines(
    coordinator: &mut Coordinator<'_>,
    agents: &AgentsReport,
    done: bool,
) -> Map<String, Value> {
    // After a failure an agent may be gone; the environment then lacks its end and says so by null.
    let after = if done {
        coordinator.samples().unwrap_or_default()
    } else {
        BTreeMap::new()
    };
    let machine = |name: &String| {
        let (hello, fixed) = agents.hosts.get(name)?;
        let state = |sample: Option<&Value>| sample.map_or(Value::Null, |s| s["state"].clone());
        let (before, later) = (state(agents.before.get(name)), state(after.get(name)));
        let change = after.get(name).map_or(Value::Null, |s| s["since"].clone());
        Some(json!({
            "agent": {"version": hello.version, "pid": hello.pid, "machine": hello.machine},
            "static": fixed,
            "dynamic": {"before": before, "after": later, "during": change},
            "wake_up": agents.wake_up.get(name),
            "share": hello.share,
        }))
    };
    agents
        .hosts
        .keys()
        .filter_map(|name| Some((name.clone(), machine(name)?)))
        .collect()
}
