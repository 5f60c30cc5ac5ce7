//! The coordinator's start: it starts one agent per host, waits for their greetings and asks what their machines are.
//!
//! The submodules drive the agents through runs. The coordinator keeps no statistics and does not know which run comes next: its caller
//! hands it one run after the other. Text for the user goes through the `say` function of the launcher.

mod clocks;
mod hosts;
mod jobs;
mod mailbox;
mod pair_placement;
mod run;
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

/// How long to wait, after the agents were started, until every one has sent its greeting; a login may ask for a password.
const LOGIN: Duration = Duration::from_secs(60);
/// How long all questions about the machines may take together. Besides, each single answer has [`crate::silence_limits::answer_limit`].
const QUESTIONS: Duration = Duration::from_secs(60);

/// What the agents reported before the first run, by host name.
#[derive(Clone, Debug, Default)]
pub struct AgentsReport {
    /// Greeting and static environment of each host.
    pub hosts: BTreeMap<String, (AgentHello, serde_json::Value)>,
    /// Dynamic environment of each host at the start.
    pub before: BTreeMap<String, serde_json::Value>,
    /// How long waking another core takes, by host.
    pub wake_up: BTreeMap<String, WakeUp>,
}

impl<'p> Coordinator<'p> {
    /// Starts an agent for every host, waits for the greetings and queries what the machines are. `interrupted` is set when the user
    /// stops the program; every wait checks it.
    ///
    /// # Errors
    /// An [`Error`] naming the host whose agent cannot be started, does not greet in time, or ends.
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
            addresses_v6: launcher.addresses_v6.clone(),
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

    /// From now on, pairs whose two ends run on this machine are pinned to cores by the rule of `pair_placement`, unless the plan names
    /// cores.
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

    /// The error when agents did not greet within [`LOGIN`]; its hint says how to start the first missing one.
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

    /// The hosts whose agents have not greeted yet.
    fn missing(&self) -> Vec<&str> {
        self.agents
            .keys()
            .map(String::as_str)
            .filter(|name| !self.hellos.contains_key(*name))
            .collect()
    }

    /// Asks for the state, the static environment and the wake-up cost of every host. Machines are queried one after the other, each
    /// once, however many agents run on it.
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

    /// The dynamic environment of every host: its state, and what happened since the previous call.
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

    /// Asks one agent of each machine and returns its answer for every host on that machine. `answer` picks the answer out of the
    /// messages, and returns `None` for others.
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
