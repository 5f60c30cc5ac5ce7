//! Drives agents through a plan: measurement by measurement, run by run.
//!
//! A run: responders listen, initiators connect and stand at the gate, loads start, the measured go; nothing is said
//! until the clocks have stopped. It keeps no statistics and prints nothing: an [`Observer`] is told of every run.

use crate::control::{FromAgent, Hello, Outcome, Task, ToAgent};
use crate::fault::{Blame, Fault, Result};
use crate::launch::{Agent, Launcher, greeting};
use crate::stacks::{self, Token};
use stackline_core::plan::{Access, Composer, Count, Data, HostPlan, Measurement, Part, Plan, Warmup};
use stackline_core::program::{self, Call, Side};
use stackline_core::random::Seed;
use stackline_core::record::RunRecord;
use stackline_core::record::WakeUp;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Name of the agent that initiates when a specification says no FROM.
pub const LOCAL_INITIATOR: &str = "(local initiator)";
/// Name of the agent that responds when it says no TO.
pub const LOCAL_RESPONDER: &str = "(local responder)";
/// Loads run this long before the measured part starts its clock.
const SETTLE: Duration = Duration::from_millis(100);
/// What a run may take beyond its time limit before it is given up.
const GRACE: Duration = Duration::from_secs(10);
/// What responders may take after the initiators are done.
const FINISH: Duration = Duration::from_secs(10);
/// What a loop may take to end by itself once it is told to.
const CLEAN_END: Duration = Duration::from_millis(300);
/// What a login may take until its agent greets.
const LOGIN: Duration = Duration::from_secs(60);
/// What an agent may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// A measurement without a time limit takes the time it takes.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Nice value of a load beside a part with priority.
const LOAD_NICE: i32 = 10;
/// How often an interruption is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Is told what happens.
pub trait Observer {
    /// All agents are there.
    fn agents(&mut self, agents: &AgentsReport);
    /// A run is about to begin; `counted` is false in the warm-up.
    fn begins(&mut self, measurement: usize, run: u32, counted: bool);
    /// A run is done: one record a part.
    fn done(&mut self, records: &[RunRecord]);
    /// Whether a measurement that repeats `until` an interval has enough runs.
    fn enough(&mut self, measurement: usize) -> bool;
}

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
    plan: &'p Plan,
    seed: Seed,
    agents: BTreeMap<String, Agent>,
    hellos: BTreeMap<String, Hello>,
    mailbox: Receiver<(String, Mail)>,
    interrupted: &'p AtomicBool,
    next_job: u64,
    /// An agent has died: nothing explains a failure better.
    bereft: bool,
}

enum Mail {
    /// The first of each agent; `None` when there will be none.
    Greeting(Option<Hello>),
    Message(Box<FromAgent>),
    Closed,
    Unreadable(Fault),
}

/// A job of the present run.
struct Placed {
    host: String,
    part: usize,
    side: Side,
    background: bool,
    outcome: Option<Outcome>,
    ending: bool,
}

type Jobs = BTreeMap<u64, Placed>;

impl<'p> Coordinator<'p> {
    /// Starts an agent for every host of the plan and asks each what its machine is.
    ///
    /// # Errors
    /// A [`Fault`] naming the host that has no agent.
    pub fn start(
        plan: &'p Plan,
        seed: u64,
        launcher: &Launcher,
        interrupted: &'p AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let hosts = hosts(plan);
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
        let mut coordinator =
            Self { plan, seed: Seed::root(seed), agents, hellos, mailbox, interrupted, next_job: 0, bereft: false };
        coordinator.greet()?;
        let report = coordinator.ask()?;
        observer.agents(&report);
        Ok(coordinator)
    }

    /// Waits until every agent has greeted.
    fn greet(&mut self) -> Result<()> {
        let until = Instant::now() + LOGIN;
        while self.hellos.len() < self.agents.len() {
            self.unless_interrupted()?;
            if Instant::now() > until {
                return Err(self.no_login());
            }
            match self.mailbox.recv_timeout(LOOK) {
                Ok((host, Mail::Greeting(hello))) => {
                    if let Some(agent) = self.agents.get_mut(&host) {
                        agent.greeted(hello.as_ref())?;
                    }
                    self.hellos.extend(hello.map(|hello| (host, hello)));
                }
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(fault))) => return Err(fault.within(&format!("agent of host {host}"))),
                Ok((_, Mail::Message(_))) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(silent()),
            }
        }
        Ok(())
    }

    fn no_login(&self) -> Fault {
        let missing: Vec<&str> =
            self.agents.keys().map(String::as_str).filter(|name| !self.hellos.contains_key(*name)).collect();
        Fault::environment(format!("no agent answers on {} within {} s", missing.join(", "), LOGIN.as_secs()))
            .hint("`ssh DESTINATION stackline agent` has to start at once and without a question")
    }

    fn unless_interrupted(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Fault { blame: Blame::Ended, message: "interrupted".into(), hint: None });
        }
        Ok(())
    }

    /// What every host is and does. A machine is asked once, however many of its agents there are, one after the other.
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
    /// A [`Fault`] when an agent is gone.
    pub fn samples(&mut self) -> Result<BTreeMap<String, serde_json::Value>> {
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
        let until = Instant::now() + ANSWER;
        loop {
            let (from, message) = self.receive(until)?.ok_or_else(silent)?;
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
            None => Err(Fault::measurement(format!("there is no agent of host {host}"))),
        }
    }

    /// The next message of any agent; `None` when none comes until then.
    fn receive(&mut self, until: Instant) -> Result<Option<(String, FromAgent)>> {
        loop {
            self.unless_interrupted()?;
            match self.mailbox.recv_timeout(LOOK.min(until.saturating_duration_since(Instant::now()))) {
                Ok((host, Mail::Message(message))) => return Ok(Some((host, *message))),
                Ok((_, Mail::Greeting(_))) => {}
                Ok((host, Mail::Closed)) => return Err(self.died(&host)),
                Ok((host, Mail::Unreadable(fault))) => return Err(fault.within(&format!("agent of host {host}"))),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(silent()),
            }
        }
    }

    fn died(&mut self, host: &str) -> Fault {
        self.bereft = true;
        match self.agents.get_mut(host) {
            Some(agent) => agent.died(),
            None => Fault::measurement(format!("the agent of host {host} is gone")),
        }
    }

    /// Carries out the whole plan.
    ///
    /// # Errors
    /// The first [`Fault`]; what was done before has been told to the observer.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Result<()> {
        for (index, measurement) in self.plan.measurements.iter().enumerate() {
            self.measure(index, measurement, observer).map_err(|fault| match fault.blame {
                Blame::Ended => fault,
                _ => fault.within(&format!("line {}: {}", measurement.line, measurement.text)),
            })?;
        }
        Ok(())
    }

    fn measure(&mut self, index: usize, measurement: &Measurement, observer: &mut dyn Observer) -> Result<()> {
        let warm_until = Instant::now();
        let mut warm = 0;
        let wanted = |warm: u32| match measurement.warmup {
            Warmup::Runs(runs) => warm < runs,
            Warmup::Time(time) => warm_until.elapsed() < Duration::from_nanos(time.0),
        };
        while wanted(warm) {
            self.one_run(index, measurement, warm, false, observer)?;
            warm += 1;
        }
        let most = measurement.until.map_or(measurement.runs, |until| until.at_most.max(measurement.runs));
        for run in 0..most {
            if run >= measurement.runs && observer.enough(index) {
                break;
            }
            self.one_run(index, measurement, run, true, observer)?;
        }
        Ok(())
    }

    fn one_run(
        &mut self,
        index: usize,
        measurement: &Measurement,
        run: u32,
        counted: bool,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        observer.begins(index, run, counted);
        let mut jobs = Jobs::new();
        let seed = self
            .seed
            .child("measurement")
            .index(index as u64)
            .child(if counted { "run" } else { "warmup" })
            .index(u64::from(run));
        let result = self.carry_out(measurement, seed, &mut jobs);
        if let Err(fault) = result {
            return Err(self.explain(fault, &mut jobs));
        }
        let records = records(measurement, index, run, counted, jobs);
        observer.done(&records);
        Ok(())
    }

    fn carry_out(&mut self, measurement: &Measurement, seed: Seed, jobs: &mut Jobs) -> Result<()> {
        for (number, part) in measurement.parts.iter().enumerate() {
            self.prepare(measurement, part, number, seed.child("part").index(number as u64), jobs)?;
        }
        let loads: Vec<u64> = jobs.iter().filter(|(_, job)| job.background).map(|(id, _)| *id).collect();
        let measured: Vec<u64> = jobs.iter().filter(|(_, job)| !job.background).map(|(id, _)| *id).collect();
        self.go(&loads, jobs)?;
        if !loads.is_empty() {
            self.pause(SETTLE)?;
        }
        self.go(&measured, jobs)?;
        let patience = measurement.time_limit.map_or(FOREVER, |limit| Duration::from_nanos(limit.0) + GRACE);
        if !self.until_done(jobs, patience, |job| job.side == Side::Responder || job.background)? {
            return Err(Fault::measurement("the run did not end with its time limit")
                .hint("data units so large, or a path so slow, that the last one is still on its way"));
        }
        self.finish(measurement, jobs)
    }

    /// Loads and responders that loop are told to end; the others end by themselves.
    fn finish(&mut self, measurement: &Measurement, jobs: &mut Jobs) -> Result<()> {
        let loops = measurement.time_limit.is_some() || jobs.values().any(|job| job.background);
        self.end(jobs, false, |job| job.background)?;
        // A clean end first: a sender that saw its limit tells its peer.
        if self.until_done(jobs, if loops { CLEAN_END } else { FINISH }, |_| false)? {
            return Ok(());
        }
        self.end(jobs, true, |_| true)?;
        if self.until_done(jobs, FINISH, |_| false)? { Ok(()) } else { Err(silent()) }
    }

    /// Tells jobs to end; what goes wrong in a load from then on is no failure.
    fn end(&mut self, jobs: &mut Jobs, now: bool, which: impl Fn(&Placed) -> bool) -> Result<()> {
        for (id, job) in jobs.iter_mut().filter(|(_, job)| job.outcome.is_none() && which(job)) {
            job.ending = true;
            self.send(&job.host, &ToAgent::End { job: *id, now })?;
        }
        Ok(())
    }

    /// Responders listen, then initiators connect; returns when the initiators stand at the gate.
    fn prepare(
        &mut self,
        measurement: &Measurement,
        part: &Part,
        number: usize,
        seed: Seed,
        jobs: &mut Jobs,
    ) -> Result<()> {
        let (from, to) =
            (part.from.as_deref().unwrap_or(LOCAL_INITIATOR), part.to.as_deref().unwrap_or(LOCAL_RESPONDER));
        let bind = self.bind(from, to);
        let token = token()?;
        let task = |side: Side, cpu: Option<usize>| task(measurement, part, side, cpu, seed, token, bind);
        let responder = self.job(to, number, Side::Responder, part.background, jobs);
        let listen =
            ToAgent::Listen { job: responder, task: Box::new(task(Side::Responder, part.cpu.1.or(self.host_cpu(to)))) };
        self.send(to, &listen)?;
        let addresses = self.await_one(jobs, |message| match message {
            FromAgent::Listening { job, addresses } if *job == responder => Some(addresses.clone()),
            _ => None,
        })?;
        let addresses = if stacks::find(&part.stack.name).is_some_and(|stack| stack.table().one_host) {
            addresses
        } else {
            self.reachable(from, to, &addresses)
        };
        let initiator = self.job(from, number, Side::Initiator, part.background, jobs);
        let dial = ToAgent::Dial {
            job: initiator,
            task: Box::new(task(Side::Initiator, part.cpu.0.or(self.host_cpu(from)))),
            addresses,
        };
        self.send(from, &dial)?;
        self.await_one(jobs, |message| match message {
            FromAgent::Ready { job } if *job == initiator => Some(()),
            _ => None,
        })
    }

    fn job(&mut self, host: &str, part: usize, side: Side, background: bool, jobs: &mut Jobs) -> u64 {
        self.next_job += 1;
        jobs.insert(
            self.next_job,
            Placed { host: host.to_string(), part, side, background, outcome: None, ending: false },
        );
        self.next_job
    }

    fn is_local(&self, host: &str) -> bool {
        self.agents.get(host).is_some_and(Agent::is_local)
    }

    /// Where a responder listens: on the address that was written (datagrams leave from the one they are sent to), on
    /// loopback when both ends are here, else on every address.
    fn bind(&self, from: &str, to: &str) -> IpAddr {
        let written = self.written_address(to);
        match written.as_deref().map(str::parse) {
            Some(Ok(address)) => address,
            None if self.is_local(from) && self.is_local(to) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    fn written_address(&self, host: &str) -> Option<String> {
        self.plan.hosts.get(host).and_then(|h| h.address.clone())
    }

    fn host_cpu(&self, host: &str) -> Option<usize> {
        self.plan.hosts.get(host).and_then(|h| h.cpu)
    }

    /// `host:port` for every port, as seen from the initiator's host.
    fn reachable(&self, from: &str, to: &str, ports: &[String]) -> Vec<String> {
        let written = self.written_address(to);
        let of_ssh = self.agents.get(to).and_then(Agent::destination);
        // A responder here with an initiator elsewhere: the address ssh came from.
        let of_us = self.hellos.get(from).and_then(|hello| hello.coordinator.clone()).filter(|_| !self.is_local(from));
        let host = written.or(of_ssh).or(of_us).unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host };
        ports.iter().map(|port| format!("{host}:{port}")).collect()
    }

    fn go(&mut self, ids: &[u64], jobs: &Jobs) -> Result<()> {
        // Responders first: what they note at this moment is before any clock starts.
        for side in [Side::Responder, Side::Initiator] {
            for id in ids {
                if let Some(job) = jobs.get(id).filter(|job| job.side == side && job.outcome.is_none()) {
                    self.send(&job.host, &ToAgent::Go { job: *id })?;
                }
            }
        }
        Ok(())
    }

    fn pause(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.unless_interrupted()?;
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Waits for the answer that `wanted` picks; other jobs' news is kept, a failure ends the wait.
    fn await_one<T>(&mut self, jobs: &mut Jobs, wanted: impl Fn(&FromAgent) -> Option<T>) -> Result<T> {
        let until = Instant::now() + ANSWER;
        loop {
            let (_, message) = self.receive(until)?.ok_or_else(silent)?;
            if let Some(answer) = wanted(&message) {
                return Ok(answer);
            }
            note(jobs, message)?;
        }
    }

    /// Waits until every job but the excused has told its outcome; false when that takes longer than `patience`.
    fn until_done(&mut self, jobs: &mut Jobs, patience: Duration, excused: impl Fn(&Placed) -> bool) -> Result<bool> {
        let until = Instant::now() + patience;
        while jobs.values().any(|job| job.outcome.is_none() && !excused(job)) {
            match self.receive(until)? {
                Some((_, message)) => note(jobs, message)?,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Ends a run that failed. Its jobs tell how they ended; an agent that is dead explains a peer that vanished or is not
    /// there, and so does a job that could not go on.
    fn explain(&mut self, fault: Fault, jobs: &mut Jobs) -> Fault {
        self.abandon(jobs);
        if self.bereft || !matches!(fault.blame, Blame::Measurement | Blame::Environment) {
            return fault;
        }
        let until = Instant::now() + FINISH;
        let mut best = fault;
        while jobs.values().any(|job| job.outcome.is_none()) {
            match self.receive(until) {
                Ok(Some((_, message))) => {
                    if let Err(other) = note(jobs, message)
                        && best.blame == Blame::Measurement
                        && matches!(other.blame, Blame::Input | Blame::Environment)
                    {
                        best = other;
                    }
                }
                Err(death) if death.blame != Blame::Ended => return death,
                Ok(None) | Err(_) => break,
            }
        }
        best
    }

    /// Tells every agent of a failed run to end its jobs.
    fn abandon(&mut self, jobs: &Jobs) {
        for (id, job) in jobs {
            // An agent that is gone has no jobs left to end.
            let _ = self.send(&job.host, &ToAgent::End { job: *id, now: true });
        }
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
            let letter = match crate::control::read(&mut output) {
                Ok(Some(message)) => Mail::Message(Box::new(message)),
                Ok(None) => Mail::Closed,
                Err(fault) => Mail::Unreadable(fault),
            };
            let last = !matches!(letter, Mail::Message(_));
            if mail.send((name.clone(), letter)).is_err() || last {
                return;
            }
        }
    });
}

fn silent() -> Fault {
    Fault::measurement("an agent does not answer any more").hint("its host is overloaded, suspended or gone")
}

/// Every host the plan uses.
fn hosts(plan: &Plan) -> BTreeMap<String, HostPlan> {
    let mut hosts = BTreeMap::new();
    let parts = plan.measurements.iter().flat_map(|m| &m.parts);
    for part in parts {
        for name in [part.from.as_deref().unwrap_or(LOCAL_INITIATOR), part.to.as_deref().unwrap_or(LOCAL_RESPONDER)] {
            let host = plan.hosts.get(name).cloned().unwrap_or_default();
            hosts.insert(name.to_string(), host);
        }
    }
    hosts
}

fn note(jobs: &mut Jobs, message: FromAgent) -> Result<()> {
    match message {
        FromAgent::Done { job, outcome } => {
            if let Some(placed) = jobs.get_mut(&job) {
                placed.outcome = Some(*outcome);
            }
            Ok(())
        }
        // News of a job of an earlier run says nothing about this one.
        FromAgent::Failed { job, fault } => match jobs.get_mut(&job) {
            // Its peer may have ended a moment earlier.
            Some(placed) if placed.ending && placed.background => {
                placed.outcome = Some(Outcome::default());
                Ok(())
            }
            Some(placed) => {
                placed.outcome = Some(Outcome::default());
                Err(fault.within(&side_name(placed)))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn side_name(placed: &Placed) -> String {
    let side = if placed.side == Side::Initiator { "initiator" } else { "responder" };
    if placed.host.starts_with('(') { side.to_string() } else { format!("{side} on {}", placed.host) }
}

/// 16 random bytes, the top bit of the eighth set so that no datagram's number looks like it.
fn token() -> Result<Token> {
    let mut token = Token::default();
    getrandom::fill(&mut token).map_err(|e| Fault::environment(format!("the system gives no random bytes: {e}")))?;
    token[7] |= 0x80;
    Ok(token)
}

fn task(
    measurement: &Measurement,
    part: &Part,
    side: Side,
    cpu: Option<usize>,
    seed: Seed,
    token: Token,
    bind: IpAddr,
) -> Task {
    let sends = |side: Side| {
        part.procedure.calls(side).iter().any(|call| matches!(call, Call::DataRequest(_) | Call::ReadFile(_)))
    };
    let takes = |side: Side| {
        part.procedure.calls(side).iter().any(|call| matches!(call, Call::AwaitDataIndication(_) | Call::WriteFile(_)))
    };
    let end = |access: &Access, mine: bool| match access {
        // A side that has no use for it needs neither file nor region.
        _ if !mine => Access::Memory,
        access => access.clone(),
    };
    let lower = measurement.composer == Composer::PriorityBackground && part.background;
    Task {
        side,
        steps: part.procedure.side(side).to_vec(),
        carries_data: part.procedure.carries_data(),
        // A load goes on until it is told to end, on the connection it has.
        data: if part.background { Data { count: Count::Unlimited, ..part.data.clone() } } else { part.data.clone() },
        stack: part.stack.clone(),
        source: end(&part.source, sends(side)),
        destination: end(&part.destination, takes(side)),
        seed,
        replicas: part.replicas,
        cpu,
        nice: if lower { LOAD_NICE } else { 0 },
        time_limit: if part.background { None } else { measurement.time_limit },
        background: part.background,
        token,
        bind,
    }
}

/// One record a part, from the outcomes of its two sides.
fn records(measurement: &Measurement, index: usize, run: u32, counted: bool, jobs: Jobs) -> Vec<RunRecord> {
    let mut records: Vec<RunRecord> = (0..measurement.parts.len())
        .map(|part| RunRecord {
            measurement: index,
            part,
            run,
            warmup: !counted,
            replicas: measurement.parts[part].replicas,
            ..RunRecord::default()
        })
        .collect();
    for placed in jobs.into_values() {
        let (Some(record), Some(outcome)) = (records.get_mut(placed.part), placed.outcome) else { continue };
        record.limited |= outcome.limited;
        record.lateness.merge(&outcome.lateness);
        match placed.side {
            Side::Initiator => {
                record.elapsed_ns = outcome.elapsed_ns;
                record.span_ns = outcome.span_ns;
                record.calls = outcome.calls;
                record.connects = outcome.connects;
                record.initiator = outcome.record;
            }
            Side::Responder => record.responder = outcome.record,
        }
    }
    for record in &mut records {
        if record.initiator.transport.is_none() {
            let part = &measurement.parts[record.part];
            let reason = if !program::repeats_connections(&part.procedure.initiator) {
                format!("{} tells nothing of itself", part.stack.name)
            } else {
                "no connection lasts from clock start to stop".into()
            };
            record.absent.insert("transport".into(), reason);
        }
    }
    records
}
