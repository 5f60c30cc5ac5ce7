//! The coordinator's state: the agents and the one mailbox that all their messages arrive in. This file sends messages, receives them
//! and waits for them; while it waits during a traced run it also sends the clock queries that `clocks` says are due.

use super::clocks::{AgentHostClock, RunningClockQueries};
use crate::control::{AgentHello, FromAgent, ToAgent};
use crate::error::{Blame, Error, Result};
use crate::launch::{AgentProcess, greeting};
use crate::silence_limits;
use stackline_core::plan::HostPlan;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Longest time between two checks for an interruption by the user.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// A wait for agents that takes longer than this is reported to the user.
const UNSAID: Duration = Duration::from_secs(2);

/// The agents of a session, by host name, and the one mailbox that all their messages arrive in.
pub struct Coordinator<'p> {
    pub(super) hosts: BTreeMap<String, HostPlan>,
    pub(super) agents: BTreeMap<String, AgentProcess>,
    /// The greetings that have arrived.
    pub(super) hellos: BTreeMap<String, AgentHello>,
    /// What the agents sent, with the host's name.
    pub(super) mailbox: Receiver<(String, Mail)>,
    /// Set when the user interrupts the program.
    pub(super) interrupted: &'p AtomicBool,
    /// Shows the user a line of text about a wait.
    pub(super) say: fn(&str),
    /// Addresses of IPv6 that hosts have beside those of the plan, by host.
    pub(super) addresses_v6: BTreeMap<String, Ipv6Addr>,
    /// Deadline for all questions about the machines together; `None` once they are answered.
    pub(super) answers_due: Option<Instant>,
    /// The number given to the last job.
    pub(super) next_job: u64,
    /// The first flow of each part, while a run is traced.
    pub(super) flows: Vec<u32>,
    /// The first port of each part's responders, while a traced run prescribes them.
    pub(super) ports: Vec<u16>,
    /// The cores that pairs with both ends on this machine are pinned to in turn; empty leaves them to the kernel's scheduler.
    pub(super) cores_for_pairs: Vec<usize>,
    pub(super) clocks: BTreeMap<String, AgentHostClock>,
    /// The clock queries during a run.
    pub(super) running_queries: RunningClockQueries,
    /// Whether recorded events are being taken over; an interruption by the user has to wait until that is done.
    pub(super) taking_over_events: bool,
    /// Whether an agent has died or stopped answering: no agent is asked again, and no other error explains a failure better.
    pub(super) agent_lost: bool,
}

/// A wait for agents, reported to the user if it takes long.
pub(super) struct AgentWait {
    say: fn(&str),
    since: Instant,
    pub(super) until: Instant,
    /// Whether the wait was reported.
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

    /// Reports what is waited for, once, after [`UNSAID`].
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

/// What a reader thread puts into the mailbox.
pub(super) enum Mail {
    /// Always the first; `None` if the agent's output ended (or went on about other things) without a greeting.
    Greeting(Option<AgentHello>),
    Message(Box<FromAgent>),
    /// The agent's output has ended.
    Closed,
    /// The agent's output is not a message.
    Unreadable(Error),
}

impl Coordinator<'_> {
    /// An error if the user has interrupted the program.
    pub(super) fn unless_interrupted(&self) -> Result<()> {
        // Taking over the events recorded so far is short, so the interruption waits for it.
        if self.interrupted.load(Ordering::Relaxed) && !self.taking_over_events {
            return Err(Error::new(Blame::Interrupted, "interrupted"));
        }
        Ok(())
    }

    /// Sends a question to one host's agent and waits for the message from which `answer` returns a value; other messages are dropped.
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

    /// The next message of any agent that is not the answer to a clock query of a run; `None` if none comes before `until`.
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

    /// The next message of any agent while no measurement's clock runs. If none comes in time, the agents count as lost. `what` is what
    /// the user reads about a long wait.
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

    /// Notes that an agent does not answer, so that none is asked again. Returns `error`.
    pub(super) fn mute(&mut self, error: Error) -> Error {
        self.agent_lost = true;
        error
    }

    /// The error for an agent whose output has ended.
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

    /// Takes the answer to a clock query of a run; returns false for any other message.
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

/// Asks all agents to end before dropping them one by one, which waits for each: so they end at the same time.
impl Drop for Coordinator<'_> {
    fn drop(&mut self) {
        self.agents.values_mut().for_each(AgentProcess::quit);
    }
}

/// Starts a thread that reads an agent's greeting and messages into the mailbox until its output ends.
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

/// The error for an agent that does not answer.
pub(super) fn silence_error() -> Error {
    Error::measurement("an agent has stopped answering")
        .hint("its host is overloaded, suspended or unreachable")
}
