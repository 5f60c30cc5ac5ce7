//! The agents and the one mailbox they all write to: messages are sent, received, and waited for. `clocks` says which of them are clock
//! queries that are due, and what an answer to one yields.

use super::clocks::{AgentHostClock, RunningClockQueries};
use super::silence_limits;
use crate::control::{AgentHello, FromAgent, ToAgent};
use crate::error::{Blame, Error, Result};
use crate::launch::{AgentProcess, greeting};
use stackline_core::plan::HostPlan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How often it checks for an interruption.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// A wait longer than this before the first run is reported, and for what.
const UNSAID: Duration = Duration::from_secs(2);

/// Agents, and the one mailbox they all write to.
pub struct Coordinator<'p> {
    pub(super) hosts: BTreeMap<String, HostPlan>,
    pub(super) agents: BTreeMap<String, AgentProcess>,
    pub(super) hellos: BTreeMap<String, AgentHello>,
    pub(super) mailbox: Receiver<(String, Mail)>,
    pub(super) interrupted: &'p AtomicBool,
    /// Tells a person what is waited for.
    pub(super) say: fn(&str),
    /// Until when all questions about machines have to be answered.
    pub(super) answers_due: Option<Instant>,
    pub(super) next_job: u64,
    /// The first flow of each part, while a run is traced.
    pub(super) flows: Vec<u32>,
    /// The first port of each part's responders, where they are chosen.
    pub(super) ports: Vec<u16>,
    /// The cores that pairs take in turn whose ends are both here; none where the kernel places them.
    pub(super) cores_for_pairs: Vec<usize>,
    pub(super) clocks: BTreeMap<String, AgentHostClock>,
    pub(super) running_queries: RunningClockQueries,
    /// Events that a run recorded are being taken over.
    pub(super) taking_over_events: bool,
    /// An agent has died or is mute: nothing explains a failure better, and nothing more is to be had.
    pub(super) agent_lost: bool,
}

/// A wait for agents, reported to a person when it takes long.
pub(super) struct AgentWait {
    say: fn(&str),
    since: Instant,
    pub(super) until: Instant,
    said: bool,
}

impl AgentWait {
    pub(super) fn new(say: fn(&str), until: Instant) -> Self {
        Self {
            say,
            since: Instant::now(),
            until,
            said: false,
        }
    }

    /// Says once what is waited for.
    pub(super) fn note(&mut self, what: &str) {
        if self.since.elapsed() > UNSAID && !std::mem::replace(&mut self.said, true) {
            let most = self
                .until
                .saturating_duration_since(self.since)
                .as_secs_f64()
                .round();
            (self.say)(&format!(
                "waiting up to {most} s for {what}; press Ctrl-C to stop"
            ));
        }
    }
}

pub(super) enum Mail {
    /// The first of each agent; `None` when there will be none.
    Greeting(Option<AgentHello>),
    Message(Box<FromAgent>),
    Closed,
    Unreadable(Error),
}

impl Coordinator<'_> {
    pub(super) fn unless_interrupted(&self) -> Result<()> {
        // What was recorded until then is worth the moment that it takes.
        if self.interrupted.load(Ordering::Relaxed) && !self.taking_over_events {
            return Err(Error::new(Blame::Interrupted, "interrupted"));
        }
        Ok(())
    }

    pub(super) fn ask_one<T>(
        &mut self,
        host: &str,
        question: &ToAgent,
        answer: impl Fn(FromAgent) -> Option<T>,
    ) -> Result<T> {
        self.send(host, question)?;
        let until = self.answers_due.into_iter().fold(
            Instant::now() + silence_limits::answer_limit(),
            Instant::min,
        );
        let mut waiting = AgentWait::new(self.say, until);
        loop {
            let (from, message) =
                self.awaited(&mut waiting, &format!("an answer from the agent on {host}"))?;
            if from == host
                && let Some(value) = answer(message)
            {
                return Ok(value);
            }
        }
    }

    pub(super) fn send(&mut self, host: &str, message: &ToAgent) -> Result<()> {
        match self.agents.get_mut(host) {
            Some(agent) => agent.send(message),
            None => Err(Error::measurement(format!("host {host} has no agent"))),
        }
    }

    /// The next message of any agent; `None` when none comes until then.
    pub(super) fn receive(&mut self, until: Instant) -> Result<Option<(String, FromAgent)>> {
        loop {
            self.unless_interrupted()?;
            self.ask_clocks()?;
            match self
                .mailbox
                .recv_timeout(LOOK.min(until.saturating_duration_since(Instant::now())))
            {
                Ok((host, Mail::Message(message))) if self.take_clock_answer(&host, &message) => {}
                Ok((host, Mail::Message(message))) => return Ok(Some((host, *message))),
                Ok((_, Mail::Greeting(_))) => {}
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(error))) => {
                    return Err(error.within(&format!("agent on host {host}")));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(silence_error()),
            }
        }
    }

    /// The next message of any agent, while no clock runs.
    pub(super) fn awaited(
        &mut self,
        waiting: &mut AgentWait,
        what: &str,
    ) -> Result<(String, FromAgent)> {
        while Instant::now() < waiting.until {
            waiting.note(what);
            if let Some(message) = self.receive(waiting.until.min(Instant::now() + LOOK))? {
                return Ok(message);
            }
        }
        Err(self.mute(silence_error()))
    }

    /// An agent does not answer: it is not asked again.
    pub(super) fn mute(&mut self, error: Error) -> Error {
        self.agent_lost = true;
        error
    }

    pub(super) fn died(&mut self, host: &str) -> Error {
        self.agent_lost = true;
        match self.agents.get_mut(host) {
            Some(agent) => agent.died(),
            None => Error::measurement(format!("the agent on host {host} is gone")),
        }
    }

    /// Sends the clock queries that are due.
    fn ask_clocks(&mut self) -> Result<()> {
        for host in self.running_queries.hosts_due(Instant::now()) {
            self.running_queries.begin_query(&host);
            self.send(&host, &ToAgent::Clock)?;
        }
        Ok(())
    }

    /// Whether a message answers such a query, which is taken then.
    fn take_clock_answer(&mut self, host: &str, message: &FromAgent) -> bool {
        let Some(exchange) = self.running_queries.take_answer(host, message) else {
            return false;
        };
        self.clocks
            .entry(host.to_owned())
            .or_default()
            .take(exchange);
        true
    }
}

/// Agents are asked all at once to end; then each is waited for.
impl Drop for Coordinator<'_> {
    fn drop(&mut self) {
        self.agents.values_mut().for_each(AgentProcess::quit);
    }
}

pub(super) fn read_mail(
    name: String,
    mut output: std::io::BufReader<std::process::ChildStdout>,
    mail: Sender<(String, Mail)>,
) {
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

pub(super) fn silence_error() -> Error {
    Error::measurement("an agent has stopped answering")
        .hint("its host is overloaded, suspended or unreachable")
}
