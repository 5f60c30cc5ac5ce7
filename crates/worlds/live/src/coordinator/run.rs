//! Carries out one run: responders listen, initiators connect and wait at the barrier, background loads start, then the measured jobs
//! start. No message is sent while their clocks run, except clock queries and, after a long silence, a check that agents still answer.

use super::hosts::{LOCAL_INITIATOR, LOCAL_RESPONDER};
use super::jobs::{Jobs, RunningJob, note_job_message};
use super::mailbox::{AgentWait, Coordinator, LOOK, silence_error};
use super::pair_placement::cores_of_pairs;
use crate::agent::source_address;
use crate::control::{AgentTask, FromAgent, ToAgent};
use crate::error::{Blame, Error, Result};
use crate::launch::AgentProcess;
use crate::silence_limits::{answer_limit, silence_limit};
use crate::stacks;
use crate::stacks::server_patience::LATEST;
use stackline_core::catalogue::{IP_FAMILY, OptionValue, is_over_ipv6};
use stackline_core::far_end::is_address;
use stackline_core::plan::{Composer, DataAccess, Measurement, MeasurementPart, Stack, UnitCount};
use stackline_core::procedure::{OperationCall, PairSide};
use stackline_core::random::Seed;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_endpoint::records::{MeasurementRun, make_records};
use stackline_endpoint::{self as endpoint};
use stackline_proto::datagram::DatagramToken;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Background loads run this long before the measured part starts its clock.
const SETTLE: Duration = Duration::from_millis(100);
/// How much longer than its time limit a run may take before it is given up.
const GRACE: Duration = Duration::from_secs(10);
/// How long responders may take to end after the initiators are done, and all jobs after they were ended.
const FINISH: Duration = Duration::from_secs(10);
/// How long jobs with endless loops may take to end cleanly before they are interrupted.
const CLEAN_END: Duration = Duration::from_millis(300);
/// How long to wait for a run without a time limit: in effect without end.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Nice value of a background load in a measurement that gives the measured part priority.
const LOAD_NICE: i32 = 10;

/// How much longer than its time limit a run of this measurement may take: clients of servers of others end themselves.
fn grace(measurement: &Measurement) -> Duration {
    let mut servers = measurement
        .parts
        .iter()
        .filter_map(|part| part.to.as_deref());
    match servers.any(is_address) {
        true => GRACE + LATEST,
        false => GRACE,
    }
}

impl Coordinator<'_> {
    /// Makes one run and returns one record per part.
    ///
    /// # Errors
    /// An [`Error`] that names the measurement.
    pub fn make(&mut self, scheduled: &ScheduledRun<'_>) -> Result<Vec<RunRecord>> {
        let mut jobs = Jobs::new();
        let measurement = scheduled.measurement;
        if let Err(error) = self.carry_out(measurement, scheduled.seed, &mut jobs) {
            let error = self.explain(error, &mut jobs);
            return Err(match self.blame_own_code(error, measurement, &jobs) {
                error if error.blame == Blame::Interrupted => error,
                error => error.within(&format!("line {}: {}", measurement.line, measurement.text)),
            });
        }
        let run = MeasurementRun {
            measurement,
            index: scheduled.index,
            run: scheduled.run,
            warmup: !scheduled.counted,
        };
        let observed = |running: RunningJob| Some((running.part, running.side, running.observed?));
        Ok(make_records(&run, jobs.into_values().filter_map(observed)))
    }

    /// Prepares all parts, starts them, and waits until they have ended. `jobs` then holds the outcomes.
    fn carry_out(&mut self, measurement: &Measurement, seed: Seed, jobs: &mut Jobs) -> Result<()> {
        let mut placed_pairs = 0;
        for (number, part) in measurement.parts.iter().enumerate() {
            let part = self.with_length(part, jobs)?;
            let cores = self.place(&part, &mut placed_pairs);
            let seed = seed.child("part").index(number as u64);
            self.prepare(measurement, &part, number, seed, cores, jobs)?;
        }
        let loads: Vec<u64> = jobs
            .iter()
            .filter(|(_, job)| job.background)
            .map(|(id, _)| *id)
            .collect();
        let measured: Vec<u64> = jobs
            .iter()
            .filter(|(_, job)| !job.background)
            .map(|(id, _)| *id)
            .collect();
        self.go(&loads, jobs)?;
        if !loads.is_empty() {
            self.pause(SETTLE)?;
        }
        self.go(&measured, jobs)?;
        let patience = measurement.time_limit.map_or(FOREVER, |limit| {
            Duration::from_nanos(limit.0) + grace(measurement)
        });
        if !self.until_done(jobs, patience, |job| {
            job.side == PairSide::Responder || job.background
        })? {
            return Err(overrun());
        }
        self.finish(measurement, jobs)
    }

    /// Ends what is left of a run: background loads are stopped, responders end by themselves; what does not end in time is interrupted.
    fn finish(&mut self, measurement: &Measurement, jobs: &mut Jobs) -> Result<()> {
        let loops = measurement.time_limit.is_some() || jobs.values().any(|job| job.background);
        self.end(jobs, false, |job| job.background)?;
        // First a clean end, in which a sender that reached its limit informs its peer.
        if self.until_done(jobs, if loops { CLEAN_END } else { FINISH }, |_| false)? {
            return Ok(());
        }
        self.end(jobs, true, |_| true)?;
        if self.until_done(jobs, FINISH, |_| false)? {
            Ok(())
        } else {
            Err(self.mute(silence_error()))
        }
    }

    /// Sends End to the chosen jobs that still run. A background load that fails from then on does not fail the run.
    fn end(
        &mut self,
        jobs: &mut Jobs,
        now: bool,
        which: impl Fn(&RunningJob) -> bool,
    ) -> Result<()> {
        for (id, job) in jobs
            .iter_mut()
            .filter(|(_, job)| job.observed.is_none() && which(job))
        {
            job.ending = true;
            self.send(&job.host, &ToAgent::End { job: *id, now })?;
        }
        Ok(())
    }

    /// A part that sends a whole file: asks the sender's host for the file's length and stores it as the amount to send, because both
    /// ends need it before they begin. Any other part is returned unchanged.
    fn with_length<'p>(
        &mut self,
        part: &'p MeasurementPart,
        jobs: &mut Jobs,
    ) -> Result<Cow<'p, MeasurementPart>> {
        let (UnitCount::WholeFile, DataAccess::File(file)) = (part.data.count, &part.source) else {
            return Ok(Cow::Borrowed(part));
        };
        let sender = if sends(part, PairSide::Initiator) {
            part.from.as_deref().unwrap_or(LOCAL_INITIATOR)
        } else {
            part.to.as_deref().unwrap_or(LOCAL_RESPONDER)
        };
        self.send(sender, &ToAgent::Length { file: file.clone() })?;
        let length = self.await_one(jobs, |message| match message {
            FromAgent::Length(length) => Some(length.clone()),
            _ => None,
        })?;
        let mut part = part.clone();
        part.data.count = UnitCount::Amount(length?);
        Ok(Cow::Owned(part))
    }

    /// The cores for a part's initiators and responders; none if the plan names a core for either end or either end is not on this
    /// machine. `placed_pairs` counts the pairs of this run that were placed so far.
    fn place(&self, part: &MeasurementPart, placed_pairs: &mut usize) -> [Vec<usize>; 2] {
        let (from, to) = ends(part);
        let chosen = [
            part.cpu.0,
            part.cpu.1,
            self.host_cpu(from),
            self.host_cpu(to),
        ];
        let here = self.is_local(from) && self.is_local(to);
        if !here || chosen.iter().any(Option::is_some) {
            return [Vec::new(), Vec::new()];
        }
        let cores = cores_of_pairs(part, &self.cores_for_pairs, *placed_pairs);
        *placed_pairs += part.replicas as usize;
        cores
    }

    /// Has the responders of part `number` listen, then the initiators connect. Returns when the initiators wait at the barrier.
    fn prepare(
        &mut self,
        measurement: &Measurement,
        part: &MeasurementPart,
        number: usize,
        seed: Seed,
        [initiators, responders]: [Vec<usize>; 2],
        jobs: &mut Jobs,
    ) -> Result<()> {
        let (from, to) = ends(part);
        let bind = self.bind(from, to, &part.stack)?;
        let token = token()?;
        let flow = self.flows.get(number).copied();
        let stack = listens_at(&part.stack, self.ports.get(number).copied());
        let task = |side: PairSide, cpu: Option<usize>, cores: Vec<usize>| AgentTask {
            flow,
            stack: stack.clone(),
            cores,
            ..task(measurement, part, side, cpu, seed, token, bind)
        };
        let addresses = match part.to.as_deref().filter(|to| is_address(to)) {
            Some(far_end) => vec![far_end.to_string(); part.replicas as usize],
            None => {
                let cpu = part.cpu.1.or(self.host_cpu(to));
                let listen = task(PairSide::Responder, cpu, responders);
                self.listen(part, number, listen, jobs)?
            }
        };
        let initiator = self.job(from, number, PairSide::Initiator, part.background, jobs);
        let connect = ToAgent::Connect {
            job: initiator,
            task: Box::new(task(
                PairSide::Initiator,
                part.cpu.0.or(self.host_cpu(from)),
                initiators,
            )),
            addresses,
        };
        self.send(from, &connect)?;
        self.await_one(jobs, |message| match message {
            FromAgent::Ready { job } if *job == initiator => Some(()),
            _ => None,
        })
    }

    /// Has the responders of part `number` listen. Returns their addresses, as the initiators reach them.
    fn listen(
        &mut self,
        part: &MeasurementPart,
        number: usize,
        task: AgentTask,
        jobs: &mut Jobs,
    ) -> Result<Vec<String>> {
        let (_, to) = ends(part);
        let responder = self.job(to, number, PairSide::Responder, part.background, jobs);
        let listen = ToAgent::Listen {
            job: responder,
            task: Box::new(task),
        };
        self.send(to, &listen)?;
        let addresses = self.await_one(jobs, |message| match message {
            FromAgent::Listening { job, addresses } if *job == responder => Some(addresses.clone()),
            _ => None,
        })?;
        self.reachable(part, addresses)
    }

    /// Adds a job to `jobs` and returns its new number.
    fn job(
        &mut self,
        host: &str,
        part: usize,
        side: PairSide,
        background: bool,
        jobs: &mut Jobs,
    ) -> u64 {
        self.next_job += 1;
        jobs.insert(
            self.next_job,
            RunningJob {
                host: host.to_string(),
                part,
                side,
                background,
                observed: None,
                ending: false,
            },
        );
        self.next_job
    }

    fn is_local(&self, host: &str) -> bool {
        self.agents.get(host).is_some_and(AgentProcess::is_local)
    }

    /// The address that a responder listens on: the one written in the plan (so that datagrams are answered from the address they were
    /// sent to), else loopback if both ends are on this machine, else every address.
    fn bind(&self, from: &str, to: &str, stack: &Stack) -> Result<IpAddr> {
        Ok(
            match self.written_address(to, stack)?.as_deref().map(str::parse) {
                Some(Ok(address)) => address,
                None if self.is_local(from) && self.is_local(to) => loopback(stack),
                _ => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            },
        )
    }

    /// The address that the plan gives for a host.
    ///
    /// # Errors
    /// It is of another version of IP than the stack asks for.
    fn written_address(&self, host: &str, stack: &Stack) -> Result<Option<String>> {
        let written = self.hosts.get(host).and_then(|h| h.address.clone());
        let wanted = stack.word(IP_FAMILY.name);
        let literal = written
            .as_deref()
            .and_then(|text| IpAddr::from_str(text).ok());
        match (literal, wanted) {
            (Some(IpAddr::V4(_)), Some("ipv6")) => match self.addresses_v6.get(host) {
                Some(address) => Ok(Some(address.to_string())),
                None => Err(other_version(host, "IPv4", "IPv6")),
            },
            (Some(IpAddr::V6(_)), Some("ipv4")) => Err(other_version(host, "IPv6", "IPv4")),
            _ => Ok(written),
        }
    }

    /// The core that the plan gives for all parts on a host.
    fn host_cpu(&self, host: &str) -> Option<usize> {
        self.hosts.get(host).and_then(|h| h.cpu)
    }

    /// Where the responders on host `to` listen, as the initiator's host `from` reaches them: `host:port` for a port (behind a `/` it may
    /// have a fingerprint), and any other address, such as the name of a socket, as it is.
    fn reachable(&self, part: &MeasurementPart, addresses: Vec<String>) -> Result<Vec<String>> {
        let (from, to) = ends(part);
        let is_port = |address: &String| {
            let port = address.split('/').next();
            port.is_some_and(|port| port.parse::<u16>().is_ok())
        };
        if !addresses.iter().any(is_port) {
            return Ok(addresses);
        }
        let written = self.written_address(to, &part.stack)?;
        let of_agent = self.agents.get(to).and_then(AgentProcess::destination);
        let host = written
            .or(of_agent)
            .or_else(|| self.address_by_greeting(from, to))
            .unwrap_or_else(|| loopback(&part.stack).to_string());
        let host = if host.parse::<Ipv6Addr>().is_ok() {
            format!("[{host}]")
        } else {
            host
        };
        let reached = |address: String| match is_port(&address) {
            true => format!("{host}:{address}"),
            false => address,
        };
        Ok(addresses.into_iter().map(reached).collect())
    }

    /// The address of host `to` according to the greetings, if neither the plan nor the way its agent is reached gives one. For an agent
    /// started by a command it is its own address; for this machine it is the address by which the initiator's host reaches it. `None`
    /// if both are in one network namespace: they use loopback.
    fn address_by_greeting(&self, from: &str, to: &str) -> Option<String> {
        let (from_hello, to_hello) = (self.hellos.get(from)?, self.hellos.get(to)?);
        let in_one_network = from_hello.network.is_some() && from_hello.network == to_hello.network;
        if self.agents.get(to).is_some_and(AgentProcess::is_by_command) {
            return to_hello.address.clone().filter(|_| !in_one_network);
        }
        let towards = |there: IpAddr| {
            let any = if there.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            // The port (9, discard) does not matter: connecting a UDP socket sends nothing.
            source_address(any, &SocketAddr::new(there, 9).to_string())
        };
        let there = || from_hello.address.as_ref()?.parse().ok();
        let of_coordinator = from_hello.coordinator.clone();
        of_coordinator
            .or_else(|| there().and_then(towards))
            .filter(|_| !in_one_network && !self.is_local(from))
    }

    /// Starts the measured period of these jobs.
    fn go(&mut self, ids: &[u64], jobs: &Jobs) -> Result<()> {
        // Responders first, so that the host state that they sample at this moment is from before any clock starts.
        for side in [PairSide::Responder, PairSide::Initiator] {
            for id in ids {
                if let Some(job) = jobs
                    .get(id)
                    .filter(|job| job.side == side && job.observed.is_none())
                {
                    self.send(&job.host, &ToAgent::Go { job: *id })?;
                }
            }
        }
        Ok(())
    }

    /// Sleeps, unless the user interrupts.
    fn pause(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.unless_interrupted()?;
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Waits for the message from which `wanted` returns a value. Outcomes of jobs that come meanwhile are stored; a job's failure is
    /// the error.
    fn await_one<T>(
        &mut self,
        jobs: &mut Jobs,
        wanted: impl Fn(&FromAgent) -> Option<T>,
    ) -> Result<T> {
        let mut waiting = AgentWait::new(self.say, Instant::now() + answer_limit());
        loop {
            let (_, message) = self.awaited(&mut waiting, "an agent to prepare a run")?;
            if let Some(answer) = wanted(&message) {
                return Ok(answer);
            }
            note_job_message(jobs, message)?;
        }
    }

    /// Waits until every job that is not `excused` has reported its outcome. Returns false if that takes longer than `patience`.
    fn until_done(
        &mut self,
        jobs: &mut Jobs,
        patience: Duration,
        excused: impl Fn(&RunningJob) -> bool,
    ) -> Result<bool> {
        let until = Instant::now() + patience;
        while jobs
            .values()
            .any(|job| job.observed.is_none() && !excused(job))
        {
            match self.receive(until.min(Instant::now() + silence_limit()))? {
                Some((_, message)) => note_job_message(jobs, message)?,
                None if Instant::now() >= until => return Ok(false),
                None => self.are_alive(jobs)?,
            }
        }
        Ok(true)
    }

    /// Ends a run that failed, and returns the error that explains it best. A measurement error such as a vanished peer is often caused
    /// elsewhere: the death of an agent, or another job's input or environment error, replaces it.
    fn explain(&mut self, error: Error, jobs: &mut Jobs) -> Error {
        self.abandon(jobs);
        if self.agent_lost || !matches!(error.blame, Blame::Measurement | Blame::Environment) {
            return error;
        }
        let until = Instant::now() + FINISH;
        let mut best = error;
        while jobs.values().any(|job| job.observed.is_none()) {
            match self.receive(until) {
                Ok(Some((_, message))) => {
                    if let Err(other) = note_job_message(jobs, message)
                        && explains_better(&other, &best)
                    {
                        best = other;
                    }
                }
                Err(death) if death.blame != Blame::Interrupted => return death,
                Ok(None) | Err(_) => break,
            }
        }
        best
    }

    /// The error of a run whose agent died. If the user's own code ran in that agent, the error blames that code and not the agent.
    fn blame_own_code(&self, error: Error, measurement: &Measurement, jobs: &Jobs) -> Error {
        let own_code = |job: &RunningJob| {
            let stack = &measurement.parts.get(job.part)?.stack;
            let code = stacks::find_stack(&stack.name)?.own_code(stack)?;
            let agent = self.agents.get(&job.host)?;
            code.in_agent.then_some((code.name, agent))
        };
        let in_agents = || jobs.values().filter_map(own_code);
        let crashed = in_agents().find_map(|(name, agent)| Some((name, agent, agent.crash()?)));
        if let Some((name, agent, signal)) = crashed {
            let (host, words) = (&agent.name, agent.last_words());
            let message = format!("{name} ended the agent on host {host} with {signal}{words}");
            return Error::environment(message).hint(
                "a debugger shows where: `ulimit -c unlimited` and `coredumpctl gdb`, or call its functions from a program of your own",
            );
        }
        match in_agents().next() {
            Some((name, _)) if self.agent_lost && error.hint.is_none() => {
                error.hint(format!("{name} runs in the agents and may have ended one"))
            }
            _ => error,
        }
    }

    /// Asks the agents of a failed run to end its jobs at once.
    fn abandon(&mut self, jobs: &Jobs) {
        for (id, job) in jobs {
            // An error means that the agent is gone, and its jobs with it.
            let _ = self.send(
                &job.host,
                &ToAgent::End {
                    job: *id,
                    now: true,
                },
            );
        }
    }
}

/// The error of a run that goes on after its time limit.
fn overrun() -> Error {
    Error::measurement("the run did not end at its time limit").hint(
        "the data units are so large, or the path is so slow, that the last one is still in flight",
    )
}

/// Whether a job's error says more about why a run failed than `best`. What a machine or the specification is to blame for is a cause; that
/// a run goes on says nothing of why.
fn explains_better(other: &Error, best: &Error) -> bool {
    let is_cause = |error: &Error| matches!(error.blame, Blame::Input | Blame::Environment);
    best.blame == Blame::Measurement && is_cause(other)
        || *best == overrun() && other.blame != Blame::Interrupted
}

/// The hosts of a part's initiators and responders.
fn ends(part: &MeasurementPart) -> (&str, &str) {
    (
        part.from.as_deref().unwrap_or(LOCAL_INITIATOR),
        part.to.as_deref().unwrap_or(LOCAL_RESPONDER),
    )
}

/// The stack with its option `port` set to `port`, if it has that option and the plan does not set it.
fn listens_at(stack: &Stack, port: Option<u16>) -> Stack {
    let mut stack = stack.clone();
    let has = stacks::find_stack(&stack.name)
        .is_some_and(|known| known.table().options.iter().any(|o| o.name == "port"));
    if let Some(port) = port.filter(|_| has) {
        stack
            .options
            .entry("port".into())
            .or_insert(OptionValue::Number(u64::from(port)));
    }
    stack
}

/// 16 random bytes. The top bit of the eighth byte is set: a `udp` datagram begins with its little-endian 64-bit number, which never
/// gets that high, so no number looks like a token.
fn token() -> Result<DatagramToken> {
    let mut token = DatagramToken::default();
    getrandom::fill(&mut token)
        .map_err(|e| Error::environment(format!("cannot get random bytes from this host: {e}")))?;
    token[7] |= 0x80;
    Ok(token)
}

/// Whether endpoints of this side use their data source.
fn sends(part: &MeasurementPart, side: PairSide) -> bool {
    part.procedure.calls(side).iter().any(|call| {
        matches!(
            call,
            OperationCall::DataRequest(_) | OperationCall::ReadFile(_)
        )
    })
}

/// The loopback address for a stack.
fn loopback(stack: &Stack) -> IpAddr {
    if is_over_ipv6(stack) {
        IpAddr::V6(Ipv6Addr::LOCALHOST)
    } else {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }
}

/// The error when a host's address is of the wrong version of IP.
fn other_version(host: &str, has: &str, wanted: &str) -> Error {
    Error::input(format!(
        "the address of host {host} is of {has}, but `family` asks for {wanted}"
    ))
    .hint(format!(
        "give the host an address of {wanted} with `at`, or omit `family`"
    ))
}

/// What the agent of one side of a part is to carry out; the caller fills in cores and flow.
fn task(
    measurement: &Measurement,
    part: &MeasurementPart,
    side: PairSide,
    cpu: Option<usize>,
    seed: Seed,
    token: DatagramToken,
    bind: IpAddr,
) -> AgentTask {
    let takes = |side: PairSide| {
        part.procedure.calls(side).iter().any(|call| {
            matches!(
                call,
                OperationCall::AwaitDataIndication(_) | OperationCall::WriteFile(_)
            )
        })
    };
    let end = |access: &DataAccess, mine: bool| match access {
        // A side that does not use its source (or destination) should not open a file or allocate a region for it.
        _ if !mine => DataAccess::Memory,
        access => access.clone(),
    };
    let lower = measurement.composer == Composer::PriorityBackground && part.background;
    let reliable = stacks::find_stack(&part.stack.name)
        .is_none_or(|stack| stack.table().with_options_of(&part.stack).reliable);
    AgentTask {
        work: endpoint::EndpointTask::new(measurement, part, side, seed, reliable),
        stack: part.stack.clone(),
        source: end(&part.source, sends(part, side)),
        destination: end(&part.destination, takes(side)),
        cpu,
        cores: Vec::new(),
        nice: if lower { LOAD_NICE } else { 0 },
        token,
        bind,
        flow: None,
    }
}
