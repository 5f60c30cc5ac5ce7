//! Agents and the mailbox they all write to: started, greeted, questioned about their machines, driven through runs.
//!
//! It keeps no statistics, prints nothing and does not know which run comes next: it is given one turn after the other.

mod run;
mod silence;
mod trace;

pub use trace::{Keep, Traced};

use crate::control::{FromAgent, Hello, ToAgent};
use crate::error::{Blame, Error, Result};
use crate::launch::{Agent, Launcher, greeting};
use stackline_core::plan::{HostPlan, Measurement, Plan};
use stackline_core::record::WakeUp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Name of the agent that initiates when a specification says no FROM.
pub const LOCAL_INITIATOR: &str = "(local initiator)";
/// Name of the agent that responds when it says no TO.
pub const LOCAL_RESPONDER: &str = "(local responder)";
/// What a login may take until its agent greets.
const LOGIN: Duration = Duration::from_secs(60);
/// What agents may take to say what their machines are, as a whole; each has half of [`silence::silence`] for an answer besides.
const QUESTIONS: Duration = Duration::from_secs(60);
/// How often it checks for an interruption.
const LOOK: Duration = Duration::from_millis(100);
/// Who waits longer than this before the first run is told for what.
const UNSAID: Duration = Duration::from_secs(2);

/// What is known of the agents before the first run.
#[derive(Clone, Debug, Default)]
pub struct AgentsReport {
    /// Greeting and static environment of each host.
    pub hosts: BTreeMap<String, (Hello, serde_json::Value)>,
    /// Dynamic environment of each host at the start.
    pub before: BTreeMap<String, serde_json::Value>,
    /// What waking a core costs, by host.
    pub wake_up: BTreeMap<String, WakeUp>,
}

/// Agents, and the one mailbox they all write to.
pub struct Coordinator<'p> {
    hosts: BTreeMap<String, HostPlan>,
    agents: BTreeMap<String, Agent>,
    hellos: BTreeMap<String, Hello>,
    mailbox: Receiver<(String, Mail)>,
    interrupted: &'p AtomicBool,
    /// Tells a person what is waited for.
    say: fn(&str),
    /// Until when all questions about machines have to be answered.
    questions: Option<Instant>,
    next_job: u64,
    /// The first flow of each part, while a run is traced.
    flows: Vec<u32>,
    /// The first port of each part's responders, where they are chosen.
    ports: Vec<u16>,
    clocks: BTreeMap<String, trace::HostClock>,
    asking: trace::Asking,
    /// What a run recorded is being taken over.
    taking: bool,
    /// An agent has died or is mute: nothing explains a failure better, and nothing more is to be had.
    bereft: bool,
}

/// A wait for agents, of which a person is told when it takes long.
struct Waiting {
    say: fn(&str),
    since: Instant,
    until: Instant,
    said: bool,
}

impl Waiting {
    fn new(say: fn(&str), until: Instant) -> Self {
        Self { say, since: Instant::now(), until, said: false }
    }

    /// Says once what is waited for.
    fn note(&mut self, what: &str) {
        if self.since.elapsed() > UNSAID && !std::mem::replace(&mut self.said, true) {
            let most = self.until.saturating_duration_since(self.since).as_secs_f64().round();
            (self.say)(&format!("waiting for {what}, {most} s at most; Ctrl-C ends it"));
        }
    }
}

enum Mail {
    /// The first of each agent; `None` when there will be none.
    Greeting(Option<Hello>),
    Message(Box<FromAgent>),
    Closed,
    Unreadable(Error),
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
            questions: None,
            next_job: 0,
            flows: Vec::new(),
            ports: Vec::new(),
            clocks: BTreeMap::new(),
            asking: trace::Asking::default(),
            taking: false,
            bereft: false,
        };
        coordinator.greet()?;
        coordinator.questions = Some(Instant::now() + QUESTIONS);
        let report = coordinator.ask()?;
        coordinator.questions = None;
        Ok((coordinator, report))
    }

    /// Waits until every agent has greeted.
    fn greet(&mut self) -> Result<()> {
        let until = Instant::now() + LOGIN;
        let mut waiting = Waiting::new(self.say, until);
        while self.hellos.len() < self.agents.len() {
            self.unless_interrupted()?;
            if Instant::now() > until {
                return Err(self.no_login());
            }
            waiting.note(&format!("the agents of {}", self.missing().join(", ")));
            match self.mailbox.recv_timeout(LOOK) {
                Ok((host, Mail::Greeting(hello))) => {
                    if let Some(agent) = self.agents.get_mut(&host) {
                        agent.greeted(hello.as_ref())?;
                    }
                    self.hellos.extend(hello.map(|hello| (host, hello)));
                }
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(error))) => return Err(error.within(&format!("agent of host {host}"))),
                Ok((_, Mail::Message(_))) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(silent()),
            }
        }
        Ok(())
    }

    fn no_login(&self) -> Error {
        let missing = self.missing();
        Error::environment(format!("no agent answers on {} within {} s", missing.join(", "), LOGIN.as_secs()))
            .hint("`ssh DESTINATION stackline agent` has to start at once and without a prompt")
    }

    /// Whose agents have not greeted.
    fn missing(&self) -> Vec<&str> {
        self.agents.keys().map(String::as_str).filter(|name| !self.hellos.contains_key(*name)).collect()
    }

    fn unless_interrupted(&self) -> Result<()> {
        // What was recorded until then is worth the moment that it takes.
        if self.interrupted.load(Ordering::Relaxed) && !self.taking {
            return Err(Error::new(Blame::Interrupted, "interrupted"));
        }
        Ok(())
    }

    /// What every host is and does. A machine is queried once, however many of its agents there are, one after the other.
    fn ask(&mut self) -> Result<AgentsReport> {
        let mut report = AgentsReport { before: self.samples()?, ..AgentsReport::default() };
        let environments = self
            .ask_machines(&ToAgent::Environment, |m| if let FromAgent::Environment(v) = m { Some(v) } else { None })?;
        for (name, environment) in environments {
            if let Some(hello) = self.hellos.get(&name) {
                report.hosts.insert(name, (hello.clone(), environment));
            }
        }
        report.wake_up =
            self.ask_machines(&ToAgent::Calibrate, |m| if let FromAgent::Calibrated(v) = m { Some(v) } else { None })?;
        Ok(report)
    }

    /// What every host does now, and did since the last time.
    ///
    /// # Errors
    /// An [`Error`] when an agent is gone.
    pub fn samples(&mut self) -> Result<BTreeMap<String, serde_json::Value>> {
        if self.bereft {
            return Err(silent());
        }
        self.ask_machines(&ToAgent::Sample, |m| if let FromAgent::Sample(v) = m { Some(v) } else { None })
    }

    /// One answer a machine, given to each of its hosts.
    fn ask_machines<T: Clone>(
        &mut self,
        question: &ToAgent,
        answer: impl Fn(FromAgent) -> Option<T>,
    ) -> Result<BTreeMap<String, T>> {
        let hosts: Vec<(String, String)> =
            self.hellos.iter().map(|(name, hello)| (name.clone(), hello.machine.clone())).collect();
        let mut machines: BTreeMap<String, T> = BTreeMap::new();
        for (name, machine) in &hosts {
            if !machines.contains_key(machine) {
                machines.insert(machine.clone(), self.ask_one(name, question, &answer)?);
            }
        }
        Ok(hosts.into_iter().filter_map(|(name, machine)| Some((name, machines.get(&machine)?.clone()))).collect())
    }

    fn ask_one<T>(&mut self, host: &str, question: &ToAgent, answer: impl Fn(FromAgent) -> Option<T>) -> Result<T> {
        self.send(host, question)?;
        let until = self.questions.into_iter().fold(Instant::now() + silence::answer(), Instant::min);
        let mut waiting = Waiting::new(self.say, until);
        loop {
            let (from, message) = self.awaited(&mut waiting, &format!("an answer of the agent of {host}"))?;
            if from == host
                && let Some(value) = answer(message)
            {
                return Ok(value);
            }
        }
    }

    fn send(&mut self, host: &str, message: &ToAgent) -> Result<()> {
        match self.agents.get_mut(host) {
            Some(agent) => agent.send(message),
            None => Err(Error::measurement(format!("there is no agent of host {host}"))),
        }
    }

    /// The next message of any agent; `None` when none comes until then.
    fn receive(&mut self, until: Instant) -> Result<Option<(String, FromAgent)>> {
        loop {
            self.unless_interrupted()?;
            self.ask_clocks()?;
            match self.mailbox.recv_timeout(LOOK.min(until.saturating_duration_since(Instant::now()))) {
                Ok((host, Mail::Message(message))) if self.is_clock_told(&host, &message) => {}
                Ok((host, Mail::Message(message))) => return Ok(Some((host, *message))),
                Ok((_, Mail::Greeting(_))) => {}
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(error))) => return Err(error.within(&format!("agent of host {host}"))),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(silent()),
            }
        }
    }

    /// The next message of any agent, while no clock runs.
    fn awaited(&mut self, waiting: &mut Waiting, what: &str) -> Result<(String, FromAgent)> {
        while Instant::now() < waiting.until {
            waiting.note(what);
            if let Some(message) = self.receive(waiting.until.min(Instant::now() + LOOK))? {
                return Ok(message);
            }
        }
        Err(self.mute(silent()))
    }

    /// An agent does not answer: it is not asked again.
    fn mute(&mut self, error: Error) -> Error {
        self.bereft = true;
        error
    }

    fn died(&mut self, host: &str) -> Error {
        self.bereft = true;
        match self.agents.get_mut(host) {
            Some(agent) => agent.died(),
            None => Error::measurement(format!("the agent of host {host} is gone")),
        }
    }
}

/// Agents are told all at once to end; then each is waited for.
impl Drop for Coordinator<'_> {
    fn drop(&mut self) {
        self.agents.values_mut().for_each(Agent::quit);
    }
}

fn read_mail(name: String, mut output: std::io::BufReader<std::process::ChildStdout>, mail: Sender<(String, Mail)>) {
    std::thread::spawn(move || {
        let hello = greeting(&mut output);
        let there = hello.is_some();
        if mail.send((name.clone(), Mail::Greeting(hello))).is_err() || !there {
            return;
        }
        loop {
            let letter = match crate::control::read_from_agent(&mut output) {
                Ok(Some(message)) => Mail::Message(Box::new(message)),
                Ok(None) => Mail::Closed,
                Err(error) => Mail::Unreadable(error),
            };
            let last = !matches!(letter, Mail::Message(_));
            if mail.send((name.clone(), letter)).is_err() || last {
                return;
            }
        }
    });
}

fn silent() -> Error {
    Error::measurement("an agent does not answer any more").hint("its host is overloaded, suspended or gone")
}

/// Every host that the chosen measurements of a plan use.
pub fn hosts(plan: &Plan, chosen: impl Fn(&Measurement) -> bool) -> BTreeMap<String, HostPlan> {
    let mut hosts = BTreeMap::new();
    let parts = plan.measurements.iter().filter(|measurement| chosen(measurement)).flat_map(|m| &m.parts);
    for part in parts {
        for name in [part.from.as_deref().unwrap_or(LOCAL_INITIATOR), part.to.as_deref().unwrap_or(LOCAL_RESPONDER)] {
            let host = plan.hosts.get(name).cloned().unwrap_or_default();
            hosts.insert(name.to_string(), host);
        }
    }
    hosts
}
