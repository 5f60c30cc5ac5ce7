//! Keeps what a run yields as it comes, shows progress on a terminal, decides whether an interval is narrow enough.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};
use stackline_core::plan::Plan;
use stackline_core::record::RunRecord;
use stackline_core::record::WakeUp;
use stackline_events::RunDirectory;
use stackline_live::coordinator::{AgentsReport, Observer};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};

/// Told of every run by the coordinator.
pub(crate) struct Keeper<'p> {
    plan: &'p Plan,
    directory: RunDirectory,
    records: Vec<RunRecord>,
    agents: AgentsReport,
    bar: ProgressBar,
    /// The first thing that could not be kept.
    trouble: Option<stackline_events::Error>,
}

impl<'p> Keeper<'p> {
    pub(crate) fn new(plan: &'p Plan, directory: RunDirectory) -> Self {
        let runs: u64 = plan.measurements.iter().map(|m| u64::from(m.runs)).sum();
        let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(runs), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {wide_msg}") {
            bar.set_style(style);
        }
        Self { plan, directory, records: Vec::new(), agents: AgentsReport::default(), bar, trouble: None }
    }

    pub(crate) fn path(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// What waking a core costs on the first host that could tell.
    pub(crate) fn wake_up(&self) -> Option<WakeUp> {
        self.agents.wake_up.values().next().copied()
    }

    /// Writes the environment with what the hosts do after the last run.
    pub(crate) fn environment(&mut self, after: &BTreeMap<String, Value>) {
        let environment = environment(&self.agents, after);
        if let Err(error) = self.directory.write_environment(&environment) {
            self.trouble.get_or_insert(error);
        }
    }

    /// Closes the run directory.
    pub(crate) fn finish(
        self,
        complete: bool,
        reason: Option<&str>,
    ) -> Result<Vec<RunRecord>, stackline_events::Error> {
        self.bar.finish_and_clear();
        self.directory.finish(&self.records, complete, reason)?;
        self.trouble.map_or(Ok(self.records), Err)
    }
}

impl Observer for Keeper<'_> {
    fn agents(&mut self, agents: &AgentsReport) {
        self.agents = agents.clone();
        self.environment(&BTreeMap::new());
    }

    fn begins(&mut self, measurement: usize, _: u32, counted: bool) {
        let text = self.plan.measurements.get(measurement).map_or("", |m| m.text.as_str());
        self.bar.set_message(if counted { text.to_string() } else { format!("warm-up: {text}") });
    }

    fn done(&mut self, records: &[RunRecord]) {
        for record in records {
            if let Err(error) = self.directory.append(record) {
                self.trouble.get_or_insert(error);
            }
        }
        self.records.extend_from_slice(records);
        if records.iter().any(|record| !record.warmup) {
            self.bar.inc(1);
        }
    }

    fn enough(&mut self, measurement: usize) -> bool {
        self.plan.measurements.get(measurement).is_none_or(|plan| {
            let records: Vec<RunRecord> =
                self.records.iter().filter(|r| r.measurement == measurement).cloned().collect();
            stackline_analyze::interval_reached(plan, &records)
        })
    }
}

fn environment(agents: &AgentsReport, after: &BTreeMap<String, Value>) -> Value {
    let mut hosts = Map::new();
    for (name, (hello, fixed)) in &agents.hosts {
        let state = |sample: Option<&Value>| sample.map_or(Value::Null, |s| s["state"].clone());
        let (before, later) = (state(agents.before.get(name)), state(after.get(name)));
        let change = after.get(name).map_or(Value::Null, |s| s["since"].clone());
        let host = json!({
            "agent": {"version": hello.version, "pid": hello.pid, "machine": hello.machine},
            "static": fixed,
            "dynamic": {"before": before, "after": later, "during": change},
            "wake_up": agents.wake_up.get(name),
        });
        hosts.insert(name.clone(), host);
    }
    json!({"stackline": env!("CARGO_PKG_VERSION"), "world": "live", "hosts": hosts})
}
