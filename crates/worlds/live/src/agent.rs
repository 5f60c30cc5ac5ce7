//! The agent's main loop: a process that takes messages from the coordinator on one pipe and answers on another. It starts and ends jobs
//! (whose endpoints run on its threads) as messages ask for, and sends nothing while they measure, except answers to clock queries. When
//! the pipe closes it ends its jobs and exits, so that nothing is left behind on the host.

use crate::clock;
use crate::control::{self, AgentHello, AgentTask, FromAgent, HeldShare, PROTOCOL, ToAgent};
use crate::cpu_placement;
use crate::error::{self, Blame, Error, Result};
use crate::files::AgentFileDirectory;
use crate::job::{AgentJob, JobEvent};
use crate::recording::{self, AgentRecording, RecordedPieces};
use crate::stacks;
use crate::stacks::connection_group::NamedConnections;
use stackline_core::plan::ProcessorShare;
use stackline_events::clock as events;
use stackline_monitor::environment::{self, DynamicSample, EnvironmentSampler};
use stackline_os::processor_share::ControlGroup;
use stackline_os::thread as system;
use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Environment variable that gives an agent that was reached by TCP its coordinator's IP address.
pub(crate) const COORDINATOR: &str = "STACKLINE_COORDINATOR";

/// What the agent's loop reacts to.
enum AgentLoopEvent {
    /// A message of the coordinator and when it arrived.
    Message(Box<ToAgent>, Instant),
    /// The input is not a message.
    Unreadable(Error),
    /// The input has ended.
    Closed,
    /// A report of the job with this number.
    Job(u64, JobEvent),
}

/// What an agent may use of its machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentGrants<'d> {
    /// The directory under which jobs may access files, if any.
    pub files: Option<&'d Path>,
    /// The share of a processor that its control group limits the process to, if it is limited.
    pub share: Option<ProcessorShare>,
    /// Whether it loads plug-ins and starts programs that the coordinator names.
    pub own_stacks: bool,
}

/// Serves the coordinator at the other end of `input` and `output` until it sends Quit or the pipe closes.
///
/// # Errors
/// An [`Error`] when the input is not a message, the pipe breaks, or the control group cannot be made.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write,
    grants: AgentGrants<'_>,
) -> Result<()> {
    let share = grants.share;
    let group = share
        .map(|share| ControlGroup::make(&std::process::id().to_string(), share))
        .transpose()?;
    group.as_ref().map_or(Ok(()), ControlGroup::enter)?;
    let served = serve_in_group(input, output, grants, share.map(held));
    group.iter().for_each(ControlGroup::leave);
    served
}

/// Measures how much of a processor a share gives this process, which is in its control group by then.
fn held(given: ProcessorShare) -> HeldShare {
    // Shares are in thousandths of a processor; one loop cannot measure more than one processor.
    let measured = (given.0 < 1000)
        .then(stackline_os::processor_share::measured_share)
        .flatten();
    let (quota, period) = stackline_os::processor_share::quota_us(given);
    HeldShare {
        given,
        measured: measured.map(|share| (share * 1000.0) as u32),
        waits_us: period.saturating_sub(quota),
    }
}

fn serve_in_group(
    input: impl Read + Send + 'static,
    output: impl Write,
    grants: AgentGrants<'_>,
    share: Option<HeldShare>,
) -> Result<()> {
    shift_clock();
    system::make_interruptible()
        .map_err(|e| Error::environment(format!("cannot handle signals: {e}")))?;
    stackline_os::memory::keep_large_blocks_apart();
    cpu_placement::raise_file_limit();
    let (events, mailbox) = channel();
    let reader = events.clone();
    std::thread::spawn(move || read_messages(input, &reader));
    let mut agent = AgentLoop {
        output,
        files: AgentFileDirectory::under(grants.files),
        own_stacks: grants.own_stacks,
        jobs: BTreeMap::new(),
        named: NamedConnections::default(),
        stuck: None,
        events,
        sampler: EnvironmentSampler::new(),
        last: None,
        recording: None,
        pieces: RecordedPieces::default(),
        emission_ns: None,
        clock_error_ns: 0,
    };
    agent.send(&FromAgent::Hello(AgentHello { share, ..hello() }))?;
    agent.work(&mailbox)
}

/// Puts the messages of the input into the loop's mailbox until the input ends or is unreadable.
fn read_messages(input: impl Read, events: &Sender<AgentLoopEvent>) {
    let mut input = BufReader::new(input);
    loop {
        let event = match control::read(&mut input) {
            Ok(Some(message)) => AgentLoopEvent::Message(Box::new(message), Instant::now()),
            Ok(None) => AgentLoopEvent::Closed,
            Err(error) => AgentLoopEvent::Unreadable(error),
        };
        let last = !matches!(event, AgentLoopEvent::Message(..));
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// For tests of hosts whose clocks differ: shifts this agent's event clock if [`clock::SHIFT`] is set.
fn shift_clock() {
    if let Some(ahead_ns) = std::env::var(clock::SHIFT)
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
    {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(0);
        events::begin(Instant::now(), wall_ns.saturating_add_signed(ahead_ns));
    }
}

/// The greeting, without the share of a processor.
fn hello() -> AgentHello {
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_string()
    };
    let client = std::env::var(COORDINATOR)
        .or_else(|_| std::env::var("SSH_CONNECTION"))
        .ok();
    let machine = read("/proc/sys/kernel/random/boot_id");
    AgentHello {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL,
        pid: std::process::id(),
        clock: clock::identity(),
        network: clock::namespace("net"),
        machine,
        share: None,
        address: own_address(),
        coordinator: client.and_then(|c| c.split_ascii_whitespace().next().map(str::to_string)),
    }
}

/// The source address of packets to other networks (no packet is sent to find it). Without a route there, the address of an interface
/// that is up.
fn own_address() -> Option<String> {
    // Documentation addresses (RFC 5737, RFC 3849), which are on no local network; the port (discard) does not matter.
    const ELSEWHERE: [(&str, &str); 2] =
        [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let routed = ELSEWHERE
        .iter()
        .find_map(|(from, to)| source_address(from, to));
    routed.or_else(interface_address)
}

/// An address of an interface that is up and not loopback: the first IPv4 address, else the first IPv6 address that is not link-local.
fn interface_address() -> Option<String> {
    use nix::net::if_::InterfaceFlags;
    let addresses: Vec<_> = nix::ifaddrs::getifaddrs().ok()?.collect();
    let up = addresses.iter().filter(|interface| {
        interface.flags.contains(InterfaceFlags::IFF_UP)
            && !interface.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    });
    let found: Vec<_> = up.filter_map(|interface| interface.address).collect();
    let four = |address: &nix::sys::socket::SockaddrStorage| {
        Some(address.as_sockaddr_in()?.ip().to_string())
    };
    let six = |address: &nix::sys::socket::SockaddrStorage| {
        let ip = address.as_sockaddr_in6()?.ip();
        (!ip.is_unicast_link_local()).then(|| ip.to_string())
    };
    found
        .iter()
        .find_map(four)
        .or_else(|| found.iter().find_map(six))
}

/// The source address that the kernel's routing chooses for packets to `to`, from a UDP socket bound to `from`. No packet is sent.
pub(crate) fn source_address(from: &str, to: &str) -> Option<String> {
    let socket = UdpSocket::bind(from).ok()?;
    socket.connect(to).ok()?;
    socket
        .local_addr()
        .ok()
        .map(|address| address.ip().to_string())
}

struct RunningAgentJob {
    job: AgentJob,
    /// Whether its stack is reliable: then waiting calls need no interruption for a timeout.
    reliable: bool,
}

struct AgentLoop<W> {
    output: W,
    files: AgentFileDirectory,
    /// Whether it loads plug-ins and starts programs that the coordinator names.
    own_stacks: bool,
    jobs: BTreeMap<u64, RunningAgentJob>,
    /// The connections that several of its jobs share.
    named: NamedConnections,
    /// Why it takes no further job: a plug-in keeps one of its threads.
    stuck: Option<Error>,
    events: Sender<AgentLoopEvent>,
    sampler: EnvironmentSampler,
    /// The previous sample, to which the next is compared.
    last: Option<DynamicSample>,
    /// The recording of the present run, if it is traced.
    recording: Option<AgentRecording>,
    /// Recorded events that the coordinator has not taken yet.
    pieces: RecordedPieces,
    /// CPU time of emitting one event, ns; measured before the first recording.
    emission_ns: Option<f64>,
    /// If the agent reads the coordinator's clock: how far two readings of one moment may be apart, ns. Otherwise 0.
    clock_error_ns: u64,
}

impl<W: Write> AgentLoop<W> {
    fn work(&mut self, mailbox: &Receiver<AgentLoopEvent>) -> Result<()> {
        loop {
            let event = match self.tick() {
                None => mailbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => mailbox.recv_timeout(wait),
            };
            match event {
                Ok(AgentLoopEvent::Closed) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(AgentLoopEvent::Message(message, _)) if *message == ToAgent::Quit => {
                    return Ok(());
                }
                Ok(AgentLoopEvent::Message(message, came)) => self.handle(*message, came)?,
                Ok(AgentLoopEvent::Unreadable(error)) => return Err(error),
                Ok(AgentLoopEvent::Job(job, event)) => self.job_event(job, event)?,
                Err(RecvTimeoutError::Timeout) => self.look_after_jobs()?,
            }
        }
    }

    /// How long the loop may wait before it looks after its jobs; `None` if none needs it.
    fn tick(&self) -> Option<Duration> {
        self.jobs
            .values()
            .filter_map(|running| running.job.tick(running.reliable))
            .min()
    }

    /// Interrupts the waiting system calls of the jobs that need it, and gives up those in which a plug-in hangs.
    fn look_after_jobs(&mut self) -> Result<()> {
        let overdue: Vec<(u64, Error)> = self
            .jobs
            .iter_mut()
            .filter_map(|(job, running)| Some((*job, running.job.look_after(running.reliable)?)))
            .collect();
        let mut overdue = overdue.into_iter();
        overdue.try_for_each(|(job, error)| self.give_up(job, error))
    }

    /// Ends a job that has failed and reports why: a plug-in that does not let go of a thread explains what the measurement suffered from.
    fn give_up(&mut self, job: u64, error: Error) -> Result<()> {
        let ended = self.jobs.remove(&job);
        let stuck = ended.and_then(|mut running| running.job.end_and_join());
        if stuck.is_some() {
            self.stuck.clone_from(&stuck);
        }
        let is_cause = matches!(error.blame, Blame::Input | Blame::Environment);
        let error = stuck.filter(|_| !is_cause).unwrap_or(error);
        self.send(&FromAgent::Failed { job, error })
    }

    /// Refuses a job while a plug-in keeps a thread, and code that this agent was not given leave to run.
    fn permit(&self, task: &AgentTask) -> Result<()> {
        if let Some(stuck) = &self.stuck {
            return Err(stuck.clone());
        }
        let stack = stacks::find_stack(&task.stack.name);
        match stack.and_then(|stack| stack.own_code(&task.stack)) {
            Some(code) if !self.own_stacks => Err(Error::environment(format!(
                "this agent does not run {}: it serves whoever knows its secret",
                code.name
            ))
            .hint("start it with --allow-own-stacks: its coordinators can then run any program on that host")),
            _ => self.permit_files(task),
        }
    }

    /// Whether the stack may read the files that its options name.
    fn permit_files(&self, task: &AgentTask) -> Result<()> {
        let stack = stacks::find_stack(&task.stack.name);
        match stack.and_then(|stack| stack.file_option(&task.stack)) {
            Some(option) if !self.own_stacks => Err(Error::environment(format!(
                "this agent does not read the file that the option `{option}` names: it serves whoever knows its secret"
            ))
            .hint("write the request itself as JSON, and let the server say its types; or start the agent with --allow-own-stacks")),
            _ => Ok(()),
        }
    }

    fn send(&mut self, message: &FromAgent) -> Result<()> {
        control::write(&mut self.output, message)
            .map_err(|e| error::io_error("writing to the coordinator", &e))
    }

    /// Carries out a message that arrived at `came`, and answers it.
    fn handle(&mut self, message: ToAgent, came: Instant) -> Result<()> {
        match message {
            ToAgent::Environment => {
                self.send(&FromAgent::Environment(environment::static_environment()))
            }
            ToAgent::Sample => self.send_sample(),
            ToAgent::Calibrate => self.send(&FromAgent::Calibrated(cpu_placement::wake_up())),
            ToAgent::Length { file } => {
                let length = self.files.source(&file).map(|(_, length)| length);
                self.send(&FromAgent::Length(length))
            }
            ToAgent::Listen { job, task } => self.listen(job, *task),
            ToAgent::Connect {
                job,
                task,
                addresses,
            } => self.connect(job, *task, &addresses),
            ToAgent::Go { job } => {
                if let Some(running) = self.jobs.get_mut(&job) {
                    running.job.go();
                }
                Ok(())
            }
            ToAgent::End { job, now } => {
                self.end(job, now);
                Ok(())
            }
            ToAgent::Clock => {
                let heard_ns = events::at_ns(came);
                self.send(&FromAgent::Clock {
                    heard_ns,
                    answered_ns: events::now_ns(),
                    returned_ns: 0,
                })
            }
            ToAgent::SameClock { ahead_ns } => {
                let (moment, monotonic_ns, error_ns) = clock::read_clocks();
                events::begin(moment, monotonic_ns.saturating_add_signed(ahead_ns));
                self.clock_error_ns = error_ns;
                Ok(())
            }
            ToAgent::Record { host, monitors } => {
                let refused = self
                    .record(&host, monitors)
                    .err()
                    .map(|error| error.to_string());
                self.send(&FromAgent::Recording { refused })
            }
            ToAgent::StopRecording => self.stop_recording(),
            ToAgent::EventLog => self.hand_over_piece(),
            ToAgent::Quit => Ok(()),
        }
    }

    fn listen(&mut self, job: u64, task: AgentTask) -> Result<()> {
        let reliable = task.work.reliable;
        let permitted = self.permit(&task);
        let started =
            permitted.and_then(|()| AgentJob::listen(task, &self.files, self.notify(job)));
        self.started(job, reliable, started)
    }

    fn connect(&mut self, job: u64, task: AgentTask, addresses: &[String]) -> Result<()> {
        let reliable = task.work.reliable;
        if let Some(recording) = &self.recording {
            recording.follow(&[], addresses);
        }
        let permitted = self.permit(&task);
        let notify = self.notify(job);
        let started = permitted.and_then(|()| {
            AgentJob::connect(task, addresses, &self.files, notify, &mut self.named)
        });
        self.started(job, reliable, started)
    }

    fn end(&self, job: u64, now: bool) {
        if let Some(running) = self.jobs.get(&job) {
            running.job.end(now);
            if now {
                running.job.interrupt();
            }
        }
    }

    /// Sends the state of the host and what has changed since the previous sample.
    fn send_sample(&mut self) -> Result<()> {
        let sample = self.sampler.sample();
        let since = self
            .last
            .as_ref()
            .map(|last| environment::difference(last, &sample));
        let answer = serde_json::json!({"state": sample.to_json(), "since": since});
        self.last = Some(sample);
        self.send(&FromAgent::Sample(answer))
    }

    fn stop_recording(&mut self) -> Result<()> {
        let emission_ns = self.emission_ns.unwrap_or(0.0);
        let stopped = self
            .recording
            .take()
            .map(|recording| recording.stop(emission_ns));
        let (mut recorded, pieces) = stopped.unwrap_or_default();
        recorded.stamp_error_ns += self.clock_error_ns;
        recorded.notes.extend(clock::describe_clock_shift());
        self.pieces = pieces;
        self.send(&FromAgent::Recorded(Box::new(recorded)))
    }

    /// Sends the next piece of the recorded events; an empty one says that all were sent.
    fn hand_over_piece(&mut self) -> Result<()> {
        let piece = self
            .pieces
            .next()
            .map_err(|e| error::io_error("reading back the recorded events", &e))?;
        if piece.is_empty() {
            self.pieces = RecordedPieces::default();
        }
        control::write_event_log(&mut self.output, &piece)
            .map_err(|e| error::io_error("writing to the coordinator", &e))
    }

    fn record(&mut self, host: &str, monitors: bool) -> std::io::Result<()> {
        // A failed run may have left a recording, which is dropped.
        self.recording = None;
        self.pieces = RecordedPieces::default();
        if self.emission_ns.is_none() {
            self.emission_ns = Some(recording::emission_ns()?);
        }
        self.recording = Some(AgentRecording::start(host, monitors)?);
        Ok(())
    }

    /// Keeps a job that has started, or reports why it has not.
    fn started(&mut self, job: u64, reliable: bool, started: Result<AgentJob>) -> Result<()> {
        match started {
            Ok(running) => {
                self.jobs.insert(
                    job,
                    RunningAgentJob {
                        job: running,
                        reliable,
                    },
                );
                Ok(())
            }
            Err(error) => self.send(&FromAgent::Failed { job, error }),
        }
    }

    /// The function by which the threads of a job report to the loop.
    fn notify(&self, job: u64) -> Arc<dyn Fn(JobEvent) + Send + Sync> {
        let events = std::sync::Mutex::new(self.events.clone());
        Arc::new(move |event| {
            let events = events
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            // Sending fails only if the loop has ended, just before the process exits.
            let _ = events.send(AgentLoopEvent::Job(job, event));
        })
    }

    fn job_event(&mut self, job: u64, event: JobEvent) -> Result<()> {
        let Some(running) = self.jobs.get_mut(&job) else {
            return Ok(());
        };
        match event {
            JobEvent::Listening(replica, address) => {
                match running.job.listening(replica, address) {
                    Some(addresses) => {
                        if let Some(recording) = &self.recording {
                            recording.follow(&addresses, &[]);
                        }
                        self.send(&FromAgent::Listening { job, addresses })
                    }
                    None => Ok(()),
                }
            }
            JobEvent::Ready => {
                running.job.prepared();
                self.send(&FromAgent::Ready { job })
            }
            JobEvent::Observed(observed) => {
                match (*observed).map(|observed| running.job.observed(observed)) {
                    Ok(None) => Ok(()),
                    Ok(Some(observed)) => {
                        self.jobs.remove(&job);
                        self.send(&FromAgent::Done {
                            job,
                            observed: Box::new(observed),
                        })
                    }
                    Err(error) => self.give_up(job, error),
                }
            }
        }
    }
}
