//! A job at an agent: one side (initiators or responders) of one part of a run. It starts the threads of the endpoints, holds them at a
//! barrier until their clocks start, ends them, and gathers what they observed. A replica is one endpoint of the side, by index.

use crate::barrier::Barrier;
use crate::buffers::{LiveThreadBuffers, REGION_BYTES};
use crate::cancel::{LimitTimer, LiveCancelFlags};
use crate::control::AgentTask;
use crate::cpu_placement;
use crate::error::{Error, Result};
use crate::files::AgentFileDirectory;
use crate::foreign_watch::{self, ForeignWatch};
use crate::reactor::Reactor;
use crate::stacks::connection_group::{ConnectionGroup, GroupMember, NamedConnections};
use crate::stacks::contract::{ForeignCall, LiveConnectParameters, LiveStack};
use crate::stacks::{self, FlowTrace};
use crate::usage::{self, Meter};
use crate::world::{self, LiveConnectionSource, SharedLiveJob};
use stackline_core::catalogue::OptionTable;
use stackline_core::plan::{DataAccess, Size};
use stackline_core::procedure::{self, PairSide};
use stackline_endpoint as endpoint;
use stackline_endpoint::observation::{EndpointObservation, SideObservation, gather};
use stackline_monitor::HostSample;
use stackline_os::coroutine::Coroutine;
use stackline_os::thread as system;
use stackline_proto::datagram::call_timeout;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Stack size of a benchmark thread, bytes; untouched pages cost nothing.
const THREAD_STACK: usize = 256 << 10;
/// Longest time between two interruptions of a waiting datagram call, which reads the clock then.
const TICK: Duration = Duration::from_millis(100);
/// Time between two interruptions of the threads of a job that is being ended.
const END_TICK: Duration = Duration::from_millis(5);

/// What a job reports to the agent.
#[derive(Debug)]
pub enum JobEvent {
    /// The responder with this replica index listens at this address.
    Listening(u32, String),
    /// All threads wait at the barrier.
    Ready,
    /// One endpoint is done, with what it observed or why it failed.
    Observed(Box<Result<EndpointObservation>>),
}

/// How a job reports: into the agent's mailbox, with the job's number.
pub type Notify = Arc<dyn Fn(JobEvent) + Send + Sync>;

/// A running job.
#[derive(Debug)]
pub struct AgentJob {
    flags: Arc<LiveCancelFlags>,
    barrier: Arc<Barrier>,
    limit_timer: Option<Arc<LimitTimer>>,
    threads: Vec<JoinHandle<()>>,
    /// The state of the host when the measured period began.
    host_before: HostSample,
    /// What the endpoints that are done observed.
    observed: Vec<EndpointObservation>,
    /// Where each responder listens, by replica; `None` until it reports.
    addresses: Vec<Option<String>>,
    /// How many endpoints are not done.
    missing: u32,
    /// Time between two interruptions of waiting datagram calls.
    tick: Duration,
    /// Over a plug-in: what its endpoints are in.
    foreign: Option<ForeignWatch>,
}

impl AgentJob {
    /// Creates the responders; their addresses and everything else are reported later.
    ///
    /// # Errors
    /// An [`Error`] when the task is not permitted, the stack is unknown or a thread cannot be started.
    pub fn listen(task: AgentTask, files: &AgentFileDirectory, notify: Notify) -> Result<Self> {
        Self::start(task, &[], files, notify, None)
    }

    /// Creates the initiators, which connect and then wait at the barrier. `named` are the connections that they may share with other jobs.
    ///
    /// # Errors
    /// As for `listen`; a refused connection is reported later.
    pub fn connect(
        task: AgentTask,
        addresses: &[String],
        files: &AgentFileDirectory,
        notify: Notify,
        named: &mut NamedConnections,
    ) -> Result<Self> {
        if addresses.len() != task.work.replicas as usize {
            return Err(Error::measurement(
                "the number of addresses differs from the number of replicas",
            ));
        }
        Self::start(task, addresses, files, notify, Some(named))
    }

    fn start(
        task: AgentTask,
        addresses: &[String],
        files: &AgentFileDirectory,
        notify: Notify,
        named: Option<&mut NamedConnections>,
    ) -> Result<Self> {
        task.check()?;
        let protocol = stacks::require_stack(&task.stack.name)?;
        let unit = unit_bytes(&task)?;
        let flags = Arc::new(LiveCancelFlags::default());
        let limit = task.work.own_time_limit();
        let limit_timer = limit
            .map(|limit| LimitTimer::new(limit, Arc::clone(&flags)))
            .transpose();
        let mut job = Self {
            flags,
            barrier: Arc::new(Barrier::default()),
            limit_timer: limit_timer
                .map_err(|e| Error::environment(format!("cannot create a timer: {e}")))?,
            threads: Vec::with_capacity(task.work.replicas as usize),
            host_before: HostSample::now(),
            observed: Vec::new(),
            addresses: vec![None; task.work.replicas as usize],
            missing: task.work.replicas,
            tick: tick(&task),
            foreign: foreign_watch(protocol, &task),
        };
        let work = Arc::new(task.work.clone());
        let members = members(&task, addresses, named);
        let task = Arc::new(task);
        let bench = |replica: u32| Bench {
            task: Arc::clone(&task),
            work: Arc::clone(&work),
            replica,
            member: members.get(replica as usize).cloned(),
            address: addresses.get(replica as usize).cloned(),
            unit,
            files: files.clone(),
            flags: Arc::clone(&job.flags),
            barrier: Arc::clone(&job.barrier),
            limit_timer: job.limit_timer.clone(),
            protocol,
            foreign: job
                .foreign
                .as_ref()
                .map(|watch| watch.call(replica))
                .unwrap_or_default(),
            notify: Arc::clone(&notify),
        };
        let threads = threads(&task);
        for first in 0..threads {
            let benches = (first..task.work.replicas)
                .step_by(threads as usize)
                .map(bench)
                .collect();
            // On a failure the job is dropped, which ends and joins those that were started.
            job.threads.push(spawn(benches)?);
        }
        job.watch(&task, &notify);
        Ok(job)
    }

    /// Stores one responder's address. Returns the addresses of all responders once none is missing.
    pub fn listening(&mut self, replica: u32, address: String) -> Option<Vec<String>> {
        if let Some(place) = self.addresses.get_mut(replica as usize) {
            *place = Some(address);
        }
        let all: Option<Vec<String>> = self.addresses.iter().cloned().collect();
        if all.is_some() {
            self.prepared();
        }
        all
    }

    /// Notes that its endpoints listen, or wait at the barrier.
    pub fn prepared(&mut self) {
        self.foreign.iter_mut().for_each(ForeignWatch::prepared);
    }

    /// Notifies when all threads wait at the barrier.
    fn watch(&self, task: &AgentTask, notify: &Notify) {
        if task.work.side == PairSide::Responder {
            return;
        }
        let (barrier, notify, replicas) = (
            Arc::clone(&self.barrier),
            Arc::clone(notify),
            task.work.replicas,
        );
        // This thread sleeps on the barrier's condition variable and ends before the clock starts.
        let _ = std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || {
                barrier.until_waiting(replicas);
                notify(JobEvent::Ready);
            });
    }

    /// Opens the barrier: the measured period begins.
    pub fn go(&mut self) {
        self.host_before = HostSample::now();
        self.barrier.open();
    }

    /// Ends the job: at once if `now`; otherwise endless loops stop cleanly, as at a time limit.
    pub fn end(&self, now: bool) {
        if now {
            self.flags.end()
        } else {
            self.flags.reach_limit()
        }
        if now {
            self.foreign.iter().for_each(ForeignWatch::end);
            self.barrier.open();
        }
    }

    /// Sends every running thread a signal so that a blocked system call returns and the thread checks its flags. Returns whether any
    /// thread still runs.
    pub fn interrupt(&self) -> bool {
        let running = self.threads.iter().filter(|thread| !thread.is_finished());
        running.map(system::interrupt).count() > 0
    }

    /// How long the agent waits before it calls [`Self::look_after`] again; `None` if the threads need no interruption: a job over a
    /// reliable stack of ours that is not being ended.
    #[must_use]
    pub fn tick(&self, reliable: bool) -> Option<Duration> {
        match (self.flags.ended(), reliable) {
            (true, _) => Some(END_TICK),
            (false, false) => Some(self.tick),
            (false, true) => self.foreign.as_ref().map(|_| foreign_watch::LOOK),
        }
    }

    /// Interrupts the threads if they need it. Returns the error if a plug-in's function does not return in its time.
    pub fn look_after(&mut self, reliable: bool) -> Option<Error> {
        let expires = self
            .foreign
            .as_mut()
            .is_some_and(|watch| watch.look(Instant::now()));
        if self.flags.ended() || !reliable || expires {
            self.interrupt();
        }
        self.overdue()
    }

    fn overdue(&self) -> Option<Error> {
        let runs = |replica: usize| {
            self.threads
                .get(replica)
                .is_some_and(|thread| !thread.is_finished())
        };
        self.foreign.as_ref()?.overdue(Instant::now(), runs)
    }

    /// Stores what one endpoint observed. Returns the observations of all, gathered, once none is missing.
    pub fn observed(&mut self, observation: EndpointObservation) -> Option<SideObservation> {
        self.observed.push(observation);
        self.missing = self.missing.saturating_sub(1);
        (self.missing == 0).then(|| self.all_observed())
    }

    fn all_observed(&mut self) -> SideObservation {
        let host = self.host_before.until(&HostSample::now());
        let mut all = gather(std::mem::take(&mut self.observed));
        all.record.host = Some(host);
        all
    }

    /// Ends the job at once and waits for its threads. Returns the error if a plug-in keeps one of them; then they are left running.
    pub fn end_and_join(&mut self) -> Option<Error> {
        self.end(true);
        while self.interrupt() {
            if let Some(stuck) = self.overdue() {
                self.threads.clear();
                return Some(stuck);
            }
            std::thread::sleep(END_TICK);
        }
        for thread in self.threads.drain(..) {
            // A panic in an endpoint was caught and reported as its outcome.
            let _ = thread.join();
        }
        None
    }
}

impl Drop for AgentJob {
    fn drop(&mut self) {
        let _ = self.end_and_join();
        if let Some(limit_timer) = &self.limit_timer {
            limit_timer.dismiss();
        }
    }
}

/// What watches over the endpoints of a job whose stack is code of others in this process.
fn foreign_watch(protocol: &dyn LiveStack, task: &AgentTask) -> Option<ForeignWatch> {
    let code = protocol
        .own_code(&task.stack)
        .filter(|code| code.in_agent)?;
    let calls = (0..task.work.replicas).map(|_| Arc::default()).collect();
    Some(ForeignWatch::new(code.name, calls))
}

/// The time between two clock reads of a waiting datagram call: a tenth of its timeout, between 1 ms and [`TICK`].
fn tick(task: &AgentTask) -> Duration {
    let timeout = Duration::from_nanos(call_timeout(&task.stack).0.min(60_000_000_000));
    (timeout / 10).clamp(Duration::from_millis(1), TICK)
}

/// How many threads drive the endpoints of a side: one per endpoint, unless the stack's option `threads` is given.
fn threads(task: &AgentTask) -> u32 {
    let written = task
        .stack
        .number("threads")
        .and_then(|threads| u32::try_from(threads).ok());
    written.unwrap_or(u32::MAX).clamp(1, task.work.replicas)
}

/// The places of the endpoints among those that share a connection, by replica; none where each has its own.
fn members(
    task: &AgentTask,
    addresses: &[String],
    named: Option<&mut NamedConnections>,
) -> Vec<GroupMember> {
    let pairs = task.work.replicas;
    let streams = u16::try_from(task.stack.pairs_per_connection()).unwrap_or(u16::MAX);
    if let (Some(named), Some(_)) = (named, task.stack.word(OptionTable::CONNECTION.name)) {
        return named.join(&connection_name(task, addresses), pairs, streams);
    }
    if streams < 2 {
        return Vec::new();
    }
    let groups = ConnectionGroup::divide(pairs, streams);
    let of_group = |group: Arc<ConnectionGroup>| {
        (0..streams).map(move |number| GroupMember::new(Arc::clone(&group), number))
    };
    let members = groups.into_iter().flat_map(of_group);
    members.take(pairs as usize).collect()
}

/// The name of the connections that a job shares with others, and all that has to be the same: the server, and the other options.
fn connection_name(task: &AgentTask, addresses: &[String]) -> String {
    let mut stack = task.stack.clone();
    stack.options.remove(OptionTable::STREAMS.name);
    let address = addresses.first().map_or("", String::as_str);
    let end = address.find("://").map_or(0, |at| at + 3);
    let host = address[end..].split(['/', '?']).next().unwrap_or_default();
    format!("{stack} {host}")
}

/// Starts one thread that runs these endpoints: as coroutines if the stack's option `threads` is given, else one after the other (then
/// there is only one).
fn spawn(benches: Vec<Bench>) -> Result<JoinHandle<()>> {
    let replica = benches.first().map_or(0, |bench| bench.replica);
    let shares = benches.iter().any(|bench| bench.member.is_some());
    let work = move || match benches.first().map(|bench| settle(&bench.task, replica)) {
        Some(Err(error)) => benches
            .iter()
            .for_each(|bench| bench.report(Err(error.clone()))),
        _ if benches
            .iter()
            .any(|bench| bench.task.stack.number("threads").is_some()) =>
        {
            drive(benches)
        }
        _ => benches.into_iter().for_each(|bench| bench.work(None)),
    };
    let builder = std::thread::Builder::new()
        .name("endpoint".into())
        .stack_size(THREAD_STACK);
    // Threads that share a connection share its descriptors.
    let spawned = if shares {
        builder.spawn(work)
    } else {
        system::spawn_with_own_file_table(builder, work)
    };
    spawned.map_err(|e| {
        Error::environment(format!("cannot start thread {replica} of the part: {e}"))
            .hint("use fewer replicas, or raise the process limit (ulimit -u)")
    })
}

/// Runs several endpoints on the calling thread, each as a coroutine, until all are done.
fn drive(benches: Vec<Bench>) {
    let Some((notify, barrier, flags)) = benches.first().map(|bench| {
        (
            Arc::clone(&bench.notify),
            Arc::clone(&bench.barrier),
            Arc::clone(&bench.flags),
        )
    }) else {
        return;
    };
    let meter = Rc::new(Meter::default());
    let coroutine = |bench: Bench| {
        let meter = Rc::clone(&meter);
        Coroutine::new(THREAD_STACK, move || bench.work(Some(meter))).map_err(|e| {
            Error::environment(format!(
                "cannot allocate a thread stack for an endpoint: {e}"
            ))
            .hint("use fewer replicas")
        })
    };
    let coroutines: Result<Vec<_>> = benches.into_iter().map(coroutine).collect();
    if let Err(error) = coroutines.and_then(|all| Reactor::new(all, &barrier, &flags)?.run(drop)) {
        notify(JobEvent::Observed(Box::new(Err(error))));
    }
}

/// Everything one endpoint needs to run. Its thread opens the sockets and files itself, because it has a file table of its own.
struct Bench {
    task: Arc<AgentTask>,
    work: Arc<endpoint::EndpointTask>,
    replica: u32,
    /// Its place among those that share a connection.
    member: Option<GroupMember>,
    /// Where an initiator connects to; `None` for a responder.
    address: Option<String>,
    /// Size that buffers are made for, bytes.
    unit: usize,
    files: AgentFileDirectory,
    flags: Arc<LiveCancelFlags>,
    barrier: Arc<Barrier>,
    limit_timer: Option<Arc<LimitTimer>>,
    protocol: &'static dyn LiveStack,
    /// Where it writes which function of a plug-in it is in.
    foreign: Arc<ForeignCall>,
    notify: Notify,
}

impl Bench {
    fn report(&self, result: Result<EndpointObservation>) {
        (self.notify)(JobEvent::Observed(Box::new(result)));
    }

    /// Runs the endpoint's program and reports the outcome. `meter` counts the thread's CPU time if it drives several endpoints.
    fn work(mut self, meter: Option<Rc<Meter>>) {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.observe(meter)));
        // The last of a group delivers the rest of their connection, for which a job that is over gives no time.
        self.member = None;
        let bug = |_| {
            Err(Error::measurement(
                "a benchmark thread failed: this is a bug in stackline",
            ))
        };
        self.report(result.unwrap_or_else(bug));
    }

    fn observe(&self, meter: Option<Rc<Meter>>) -> Result<EndpointObservation> {
        let task = &self.task;
        // Open the files before listening: as soon as a responder listens, an initiator may connect.
        let buffers = LiveThreadBuffers::new(
            Arc::clone(&self.flags),
            &self.files,
            &task.source,
            &task.destination,
            self.unit,
        )?;
        let role = self.role()?;
        let (barrier, limit_timer) = (Arc::clone(&self.barrier), self.limit_timer.clone());
        let shared = SharedLiveJob {
            barrier,
            limit_timer,
            meter,
        };
        world::run(
            task,
            Arc::clone(&self.work),
            self.replica,
            role,
            buffers,
            shared,
        )
    }

    fn role(&self) -> Result<LiveConnectionSource> {
        let parameters = self.parameters();
        match &self.address {
            Some(address) => {
                let connector = self.protocol.connector(&parameters, address)?;
                Ok(LiveConnectionSource::Connect(match self.flow_trace() {
                    Some(flow_trace) => flow_trace.connector(connector),
                    None => connector,
                }))
            }
            None => {
                let listener = self.protocol.listen(&parameters)?;
                (self.notify)(JobEvent::Listening(self.replica, listener.address()));
                Ok(LiveConnectionSource::Accept(match self.flow_trace() {
                    Some(flow_trace) => flow_trace.listener(listener),
                    None => listener,
                }))
            }
        }
    }

    fn parameters(&self) -> LiveConnectParameters {
        let task = &self.task;
        LiveConnectParameters {
            stack: task.stack.clone(),
            token: task.token,
            carries_data: task.work.carries_data,
            replica: self.replica,
            bind: task.bind,
            member: self.member.clone(),
            foreign: Arc::clone(&self.foreign),
        }
    }

    /// What identifies this endpoint's flow in events; `None` if the run is not traced.
    fn flow_trace(&self) -> Option<FlowTrace> {
        let flow = self.task.flow? + self.replica;
        Some(FlowTrace::new(
            flow,
            self.task.work.side,
            procedure::both_ways(&self.task.work.steps),
        ))
    }
}

/// Pins the calling thread, sets its niceness and the precision of its timers. `thread` is its index among the threads of the job.
fn settle(task: &AgentTask, thread: u32) -> Result<()> {
    match (
        task.cpu,
        task.cores.get(thread as usize % task.cores.len().max(1)),
    ) {
        (Some(cpu), _) => cpu_placement::pin(cpu)?,
        // The user did not ask for this core, so failing to get it is no error: the record says that the thread is not pinned.
        (None, Some(core)) => drop(cpu_placement::pin(*core)),
        (None, None) => {}
    }
    if task.nice != 0 {
        usage::set_nice(task.nice).map_err(|e| {
            Error::environment(format!("the niceness {} is not permitted: {e}", task.nice))
        })?;
    }
    // The default timer slack lets the kernel wake a paced sender up to 50 us late. A failure is ignored: lateness is recorded anyway.
    let _ = nix::sys::prctl::set_timerslack(1);
    Ok(())
}

/// The size, in bytes, that buffers are made for: the largest data unit. An error if all buffers of the job would take more than half of
/// the available memory.
fn unit_bytes(task: &AgentTask) -> Result<usize> {
    let largest = |size: &Size| match size {
        Size::Bytes(bytes) => *bytes,
        Size::Drawn(_) => 1 << 16,
    };
    let unit = largest(&task.work.data.unit).max(largest(&task.work.data.reply));
    let regions = [&task.source, &task.destination]
        .into_iter()
        .filter(|end| **end == DataAccess::VirtualMemory)
        .count();
    let each = unit
        .saturating_mul(2)
        .saturating_add(regions as u64 * REGION_BYTES as u64);
    let wanted = each.saturating_mul(u64::from(task.work.replicas));
    let available = available_memory().unwrap_or(u64::MAX);
    if wanted > available / 2 {
        return Err(Error::environment(format!(
            "data units of {}, plus any VIRTUAL MEMORY, need more than half of this host's memory (replicas: {}; available: {})",
            stackline_core::units::format_size(unit),
            task.work.replicas,
            stackline_core::units::format_size(available)
        ))
        .hint("use more but smaller data units, or fewer replicas"));
    }
    usize::try_from(unit)
        .map_err(|_| Error::input("the data unit is larger than the address space"))
}

/// `MemAvailable` of `/proc/meminfo`, bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_ascii_whitespace()
        .next()?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}
