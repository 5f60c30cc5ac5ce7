//! Agents and the mailbox they all write to: started, greeted, questioned about their machines, driven through runs.
//!
//! It keeps no statistics and does not know which run comes next: its caller hands it one run after the other. What it says goes through
//! the launcher.

mod clocks;
mod hosts;
mod jobs;
mod mailbox;
mod pair_placement;
mod run;
mod silence_limits;
mod silent_agents;
mod traced_run;

pub use hosts::{LOCAL_INITIATOR, LOCAL_RESPONDER, hosts_of_plan};
pub use mailbox::Coordinator;
pub use traced_run::{KeepHostLog, LiveRunTrace};

use crate::control::{AgentHello, FromAgent, ToAgent};
use crate::cpu_placement;
use crate::error::{Error, Result};
use crate::launch::{AgentProcess, Launcher};
use clocks::RunningClockQueries;
use mailbox::{AgentWait, LOOK, Mail, read_mail, silence_error};
use stackline_core::plan::HostPlan;
use stackline_core::run_record::WakeUp;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What a login may take until its agent greets.
const LOGIN: Duration = Duration::from_secs(60);
/// What agents may take to say what their machines are, as a whole; each has half of [`silence_limits::silence_limit`] for an answer besides.
const QUESTIONS: Duration = Duration::from_secs(60);

/// What is known of the agents before the first run.
#[derive(Clone, Debug, Default)]
pub struct AgentsReport {
    /// Greeting and static environment of each host.
    pub hosts: BTreeMap<String, (AgentHello, serde_json::Value)>,
    /// Dynamic environment of each host at the start.
    pub before: BTreeMap<String, serde_json::Value>,
    /// What waking a core costs, by host.
    pub wake_up: BTreeMap<String, WakeUp>,
}

impl<'p> Coordinator<'p> {
    /// Starts an agent for every host and queries what its machine is.
    ///
    /// # Errors
    /// An [`Error`] naming the host that has no agent.
    pub fn start(
        hosts: BTreeMap<String, HostPlan>,
        launcher: &Launcher,
        interrupted: &'p AtomicBool,
    ) -> Result<(Self, AgentsReport)> {
        let mut agents = BTreeMap::new();
        let (mail, mailbox) = channel();
        for (name, host) in &hosts {
            let mut agent = launcher.start(name, host)?;
            if let Some(output) = agent.take_output() {
                read_mail(name.clone(), output, mail.clone());
            }
            agents.insert(name.clone(), agent);
        }
        let hellos = BTreeMap::new();
        let mut coordinator = Self {
            hosts,
            agents,
            hellos,
            mailbox,
            interrupted,
            say: launcher.say,
            answers_due: None,
            next_job: 0,
            flows: Vec::new(),
            ports: Vec::new(),
            cores_for_pairs: Vec::new(),
            clocks: BTreeMap::new(),
            running_queries: RunningClockQueries::default(),
            taking_over_events: false,
            agent_lost: false,
        };
        coordinator.greet()?;
        coordinator.answers_due = Some(Instant::now() + QUESTIONS);
        let report = coordinator.ask()?;
        coordinator.answers_due = None;
        Ok((coordinator, report))
    }

    /// From now on pairs whose ends are both here have cores by one rule, where nobody chose cores.
    pub fn place_local_pairs(&mut self) {
        self.cores_for_pairs = cpu_placement::allowed_cores();
    }

    /// Waits until every agent has greeted.
    fn greet(&mut self) -> Result<()> {
        let until = Instant::now() + LOGIN;
        let mut waiting = AgentWait::new(self.say, until);
        while self.hellos.len() < self.agents.len() {
            self.unless_interrupted()?;
            if Instant::now() > until {
                return Err(self.no_login());
            }
            waiting.note(&format!("an answer from {}", self.missing().join(", ")));
            match self.mailbox.recv_timeout(LOOK) {
                Ok((host, Mail::Greeting(hello))) => {
                    if let Some(agent) = self.agents.get_mut(&host) {
                        agent.greeted(hello.as_ref())?;
                    }
                    self.hellos.extend(hello.map(|hello| (host, hello)));
                }
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(error))) => {
                    return Err(error.within(&format!("agent on host {host}")));
                }
                Ok((_, Mail::Message(_))) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(silence_error()),
            }
        }
        Ok(())
    }

    fn no_login(&self) -> Error {
        let missing = self.missing();
        Error::environment(format!(
            "no agent answered on {} within {} s",
            missing.join(", "),
            LOGIN.as_secs()
        ))
        .hint(
            missing
                .iter()
                .find_map(|host| self.agents.get(*host))
                .map_or("start it again", AgentProcess::how_to_start),
        )
    }

    /// Whose agents have not greeted.
    fn missing(&self) -> Vec<&str> {
        self.agents
            .keys()
            .map(String::as_str)
            .filter(|name| !self.hellos.contains_key(*name))
            .collect()
    }

    /// What every host is and does. A machine is queried once, however many of its agents there are, one after the other.
    fn ask(&mut self) -> Result<AgentsReport> {
        let mut report = AgentsReport {
            before: self.samples()?,
            ..AgentsReport::default()
        };
        let environments = self.ask_machines(&ToAgent::Environment, |m| {
            if let FromAgent::Environment(v) = m {
                Some(v)
            } else {
                None
            }
        })?;
        for (name, environment) in environments {
            if let Some(hello) = self.hellos.get(&name) {
                report.hosts.insert(name, (hello.clone(), environment));
            }
        }
        report.wake_up = self.ask_machines(&ToAgent::Calibrate, |m| {
            if let FromAgent::Calibrated(v) = m {
                Some(v)
            } else {
                None
            }
        })?;
        Ok(report)
    }

    /// What every host does now, and did since the last time.
    ///
    /// # Errors
    /// An [`Error`] when an agent is gone.
    pub fn samples(&mut self) -> Result<BTreeMap<String, serde_json::Value>> {
        if self.agent_lost {
            return Err(silence_error());
        }
        self.ask_machines(&ToAgent::Sample, |m| {
            if let FromAgent::Sample(v) = m {
                Some(v)
            } else {
                None
            }
        })
    }

    /// One answer a machine, given to each of its hosts.
    fn ask_machines<T: Clone>(
        &mut self,
        question: &ToAgent,
        answer: impl Fn(FromAgent) -> Option<T>,
    ) -> Result<BTreeMap<String, T>> {
        let hosts: Vec<(String, String)> = self
            .hellos
            .iter()
            .map(|(name, hello)| (name.clone(), hello.machine.clone()))
            .collect();
        let mut machines: BTreeMap<String, T> = BTreeMap::new();
        for (name, machine) in &hosts {
            if !machines.contains_key(machine) {
                machines.insert(machine.clone(), self.ask_one(name, question, &answer)?);
            }
        }
        Ok(hosts
            .into_iter()
            .filter_map(|(name, machine)| Some((name, machines.get(&machine)?.clone())))
            .collect())
    }
}
