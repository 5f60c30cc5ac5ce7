//! Traces unmodified programs once and stores what was observed as a run. One thread (`Looker`) reads the sources, another analyses
//! what was read, and the calling thread starts the programs and waits for their end.

use crate::analysis_queue::AnalysisQueue;
use crate::container_names::ContainerNames;
use crate::followed_threads::FollowedProcess;
use crate::full_disk::{DiskReserve, unsorted_note};
use crate::host_program_end::HostProgramEnd;
use crate::joined_processes::JoinedProcesses;
use crate::network_events::NetworkEvents;
use crate::programs::{EarlyEnd, ProgramsEnd, RunningPrograms, TracedProgram};
use crate::recorder::RequestRecorder;
use crate::scope::TraceScope;
use crate::setting::TraceSetting;
use crate::thread_directory::{ThreadDirectory, own_thread, own_threads};
use crate::tls_key_log::KeyLog;
use crate::trace_analysis::TraceAnalysis;
use crate::trace_sources::Sources;
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::{HostTrace, Index};
use stackline_core::units;
use stackline_events::clock;
use stackline_monitor::clock::thread_cpu_s;
use stackline_monitor::observe::observation_cost::ObservationCost;
use stackline_requests::{ObservationEnd, Unknown, contents};
use stackline_runs::events::disk_sample::bound_by_free_space;
use stackline_runs::events::{SortStopSignal, Spooling, write_index};
use stackline_runs::{RunDirectory, RunFileAccess, runs_root};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often the sources are read.
const READ: Duration = Duration::from_millis(10);
/// For this long after the last program has ended, its connections are still observed.
const AFTER: Duration = Duration::from_millis(30);
/// If fewer bytes may be taken because the disk has few, a note says so: a trace of an hour may take more.
const SCARCE_BYTES: u64 = 1 << 30;
/// If a signal ended the trace, it may have ended the programs too, up to this long before it was noticed here, ns.
const SIGNAL_NS: u64 = 50_000_000;

/// How programs are traced.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// What is observed besides packets.
    pub scope: TraceScope,
    /// Processes that run already and are joined; `None` if programs are started.
    pub joined: Option<JoinedProcesses>,
    /// How long joined processes are traced; `None`: until they end or the user stops it.
    pub duration: Option<Duration>,
    /// The most space of events on disk, bytes; if more requests come, a sample of them is kept.
    pub most_disk: u64,
    /// Whether names of requests are kept in full.
    pub keep_contents: bool,
    /// Who may read the run.
    pub access: RunFileAccess,
    /// What programs print goes to standard error: standard output is for the findings as JSON.
    pub programs_to_stderr: bool,
}

impl TraceOptions {
    /// The joined processes, or else this thread: what it starts is traced from its first moment.
    fn traced_pids(&self) -> Vec<u32> {
        self.joined
            .as_ref()
            .map_or_else(|| vec![own_thread()], JoinedProcesses::pids)
    }
}

/// A program of which requests were seen, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenProgram {
    /// Its host, or its address if it is not on an observed host.
    pub place: String,
    /// Its name; empty if it is not known.
    pub name: String,
    /// The protocols that it used.
    pub protocols: String,
}

/// The outcome of a trace.
#[derive(Debug)]
pub struct TraceOutcome {
    /// The directory of the run.
    pub path: PathBuf,
    /// Durations of requests that were made for no other request, ns.
    pub call_times: Vec<u64>,
    /// How many requests there were, by protocol.
    pub by_protocol: BTreeMap<&'static str, u64>,
    /// How many requests of other programs were left out.
    pub foreign: u64,
    /// The programs that were seen.
    pub programs: Vec<SeenProgram>,
    /// What is not known of connections.
    pub unknown: Unknown,
    /// Packets that were seen.
    pub packets: u64,
    /// Packets that were lost.
    pub lost_packets: u64,
    /// Records of sockets and threads that were seen.
    pub records: u64,
    /// Records that were lost.
    pub lost_records: u64,
    /// What could not be observed, and why.
    pub absent: BTreeMap<String, String>,
    /// Further notes.
    pub notes: Vec<String>,
    /// How long the trace took, s.
    pub seconds: f64,
    /// The CPU time of observing and analysing, s.
    pub cost_s: f64,
    /// What observing cost the traced programs, if it was measured.
    pub cost: Option<ObservationCost>,
    /// Whether programs were stopped at their system calls (ptrace).
    pub stopped: bool,
    /// The exit status of the last program, if programs were started.
    pub ended: Option<ExitStatus>,
}

/// Runs the programs once, and stores what was observed as a run of that name.
///
/// # Errors
/// If nothing can be observed, a program cannot be started, or the run cannot be stored; then there is no run.
pub fn trace_once(
    options: &TraceOptions,
    setting: &mut TraceSetting,
    programs: Vec<TracedProgram>,
    stop: &Arc<AtomicBool>,
    name: &str,
) -> Result<TraceOutcome> {
    let looker = Looker::start()?;
    let mut sources = Sources::open(&setting.hosts, options.scope, &options.traced_pids())?;
    let directory = RunDirectory::create(&runs_root(), name, SystemTime::now(), options.access)?;
    let path = directory.path().to_path_buf();
    let programs = sources.stopping(programs)?;
    let mut session = TraceSession::new(options, setting, sources, &directory)?;
    session.analysis.recorder.expect_programs(programs.len());
    match session.run(looker, options, setting, programs, stop) {
        Ok(outcome) => {
            directory.finish(&[], true, None)?;
            Ok(outcome)
        }
        Err(error) => {
            // The trace failed: the run is removed. Further errors are ignored, as the first one is returned.
            if let Some(emulation) = setting.emulation() {
                let _ = emulation.end_recording();
            }
            drop(directory);
            let _ = std::fs::remove_dir_all(&path);
            Err(error)
        }
    }
}

/// A trace in progress.
struct TraceSession {
    sources: Sources,
    analysis: TraceAnalysis,
    /// The recorded events of the network, if there is one.
    events: Option<NetworkEvents>,
    notes: Vec<String>,
    joined: Option<JoinedProcesses>,
    /// The moment from which the trace itself ends programs.
    end: ObservationEnd,
    /// Set when no joined process is left.
    gone: Arc<AtomicBool>,
    path: PathBuf,
    reserve: DiskReserve,
    began: Instant,
}

/// What is said of a trace from its beginning on. `is_of_all`: packets of all programs are kept; `most_disk`: what events may take on disk,
/// bytes, where `wanted` was asked for.
fn notes_at_start(is_of_all: bool, most_disk: u64, wanted: u64) -> Vec<String> {
    let of_all = is_of_all.then(|| {
        "packets do not identify their program: requests from all programs on this machine are kept"
            .to_owned()
    });
    let of_disk = (most_disk < wanted.min(SCARCE_BYTES)).then(|| {
        format!(
            "events of this trace may take {} on disk, a quarter of what is free there",
            units::format_size(most_disk)
        )
    });
    of_all.into_iter().chain(of_disk).collect()
}

/// A directory of threads without entries; names of containers are looked for on this machine only.
fn thread_directory(sources: &Sources, is_here: bool) -> ThreadDirectory {
    let containers = ContainerNames::new(is_here);
    ThreadDirectory::new(sources.numbers().clone(), containers, is_here)
}

impl TraceSession {
    fn new(
        options: &TraceOptions,
        setting: &mut TraceSetting,
        sources: Sources,
        directory: &RunDirectory,
    ) -> Result<Self> {
        let is_here = setting.network.is_none();
        let only_traced =
            is_here && (sources.has_stopped() || sources.has_sockets() && sources.has_threads());
        let mut recorder = RequestRecorder::new(
            setting.addresses.clone(),
            sources.has_threads(),
            only_traced,
            options.keep_contents,
            thread_directory(&sources, is_here),
        );
        let end = ObservationEnd::default();
        recorder = recorder.observed_until(end.clone());
        let most_disk = bound_by_free_space(options.most_disk, directory.path());
        recorder = recorder.with_disk(most_disk);
        let keys = setting.keys.as_ref().map(KeyLog::reader);
        if let Some(keys) = &keys {
            recorder = recorder.with_secrets(keys.secrets.clone());
        }
        match &options.joined {
            None => recorder.who.trace_children_of(own_thread()),
            Some(joined) => joined.pids().into_iter().for_each(|pid| {
                recorder
                    .who
                    .trace(&FollowedProcess::look(pid, sources.numbers()));
            }),
        }
        let path = directory.path().to_path_buf();
        let spool = Spooling::start(&path)?;
        let mut events = None;
        let mut notes = setting.notes.clone();
        let is_of_all = is_here && !only_traced;
        notes.extend(notes_at_start(is_of_all, most_disk, options.most_disk));
        if let Some(network) = &mut setting.network {
            // The network's events and the trace's get half of the space on disk each.
            events = network.record(&path, most_disk / 2)?;
            network.ports(&mut recorder);
            match &events {
                Some(events) => {
                    let apart = recorder.with_doors_apart(events.doors());
                    recorder = apart.with_disk(most_disk / 2);
                }
                None => notes.push(network.unrecorded()),
            }
        }
        let analysis = TraceAnalysis {
            order: sources.order(),
            recorder,
            keys,
            spool,
        };
        Ok(Self {
            sources,
            analysis,
            events,
            notes,
            joined: options.joined.clone(),
            end,
            gone: Arc::default(),
            reserve: DiskReserve::take(&path, most_disk),
            path,
            began: Instant::now(),
        })
    }

    /// Starts the programs, observes them until the last one has ended, and stores the run.
    fn run(
        self,
        looker: Looker,
        options: &TraceOptions,
        setting: &mut TraceSetting,
        programs: Vec<TracedProgram>,
        stop: &Arc<AtomicBool>,
    ) -> Result<TraceOutcome> {
        let over = Arc::new(AtomicBool::new(false));
        let gone = Arc::clone(&self.gone);
        let (end, began) = (self.end.clone(), self.began);
        looker.give(self, Arc::clone(&over));
        let ended = carry_out(options, setting, programs, [stop, &gone], &end);
        // The time of the analysis afterwards is no time of the trace.
        let seconds = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        let (mut session, cost_s) = looker.join()?;
        let early = ended.as_ref().map_or(&[][..], |ended| &ended.early);
        session.analysis.recorder.programs_ended(early);
        let outcome = session.finish(cost_s, setting)?;
        let ended = ended?;
        let early = ended.early.iter().map(EarlyEnd::in_words);
        Ok(TraceOutcome {
            ended: ended.last,
            seconds,
            // Programs that ended early come first: they explain why there is little to see.
            notes: early.chain(ended.silent).chain(outcome.notes).collect(),
            ..outcome
        })
    }

    /// Reads the sources until `over` is set, while another thread of lowest priority analyses the readings. Returns the CPU seconds
    /// of both.
    fn look(self, over: &AtomicBool) -> Result<(Self, f64)> {
        let Self {
            mut sources,
            analysis,
            events,
            notes,
            mut joined,
            end,
            gone,
            path,
            reserve,
            began,
        } = self;
        let queue = Arc::new(AnalysisQueue::new(analysis));
        let working = Arc::clone(&queue);
        let worker = std::thread::Builder::new()
            .name("trace-requests".into())
            .spawn(move || working.work())
            .map_err(no_thread)?;
        queue.observed_by(sources.own_numbers(&own_threads()));
        let before = thread_cpu_s();
        let mut refreshed = Instant::now();
        let mut read = || {
            while !over.load(Ordering::Relaxed) && !worker.is_finished() {
                std::thread::sleep(READ);
                queue.push(sources.read(clock::now_ns(), false)?);
                queue.relieve(READ)?;
                if let Some(joined) = &mut joined
                    && refreshed.elapsed() >= joined.interval()
                {
                    refreshed = Instant::now();
                    joined
                        .refresh()
                        .into_iter()
                        .for_each(|pid| sources.follow(pid));
                    gone.store(joined.are_gone(), Ordering::Relaxed);
                }
            }
            std::thread::sleep(AFTER);
            queue.push(sources.read(clock::now_ns(), true)?);
            Ok(())
        };
        // Whichever part fails, the worker thread has ended when this returns.
        let read = read();
        let finished = queue.finish();
        let worked_s = worker.join().map_err(|_| panicked())?;
        let worked_s = read.and(finished).and(worked_s)?;
        let cost_s = worked_s + thread_cpu_s() - before;
        let queue = Arc::into_inner(queue).ok_or_else(panicked)?;
        let analysis = queue.into_analysis();
        let looked = Self {
            sources,
            analysis,
            events,
            notes,
            joined,
            end,
            gone,
            path,
            reserve,
            began,
        };
        Ok((looked, cost_s))
    }

    /// Reports the remaining requests and writes the run.
    fn finish(mut self, cost_s: f64, setting: &mut TraceSetting) -> Result<TraceOutcome> {
        let learnt = self.analysis.keys.as_ref().map_or(0, |keys| keys.learnt);
        if learnt > 0 {
            self.notes
                .push(format!("TLS session secrets read but not kept: {learnt}"));
        }
        if let Some(network) = &mut setting.network {
            self.notes.extend(network.notes()?);
        }
        let stopped = self.sources.has_stopped();
        let cost = self.sources.close();
        if let Some(cost) = &cost {
            self.analysis.recorder.cost(clock::now_ns(), cost);
        }
        self.reserve.give_back();
        let unknown = self.analysis.recorder.finish(&self.analysis.spool)?;
        let unowned = self.analysis.recorder.unowned;
        if unowned > 0 {
            self.notes.push(format!(
                "QUIC requests kept without their program because its socket closed too soon: {unowned}"
            ));
        }
        self.adopt_network_events(setting)?;
        let unwritten = self.analysis.recorder.unwritten.note();
        self.notes.extend(unwritten);
        self.index(cost_s, &unknown)?;
        let TraceAnalysis {
            order, recorder, ..
        } = &self.analysis;
        let programs = recorder
            .programs
            .iter()
            .map(|((place, name), protocols)| SeenProgram {
                place: place.clone(),
                name: name.clone(),
                protocols: protocols.iter().copied().collect::<Vec<_>>().join(", "),
            });
        let requests = recorder.requests();
        Ok(TraceOutcome {
            call_times: requests.call_times().collect(),
            by_protocol: requests.by_protocol().clone(),
            programs: programs.collect(),
            foreign: recorder.foreign,
            path: self.path,
            unknown,
            packets: order.packets,
            lost_packets: order.lost_packets,
            records: order.records,
            lost_records: order.lost_records,
            absent: self.sources.absent,
            notes: self.notes,
            seconds: self.began.elapsed().as_secs_f64(),
            cost_s,
            cost,
            stopped,
            ended: None,
        })
    }

    /// Moves the network's recorded events into the run.
    fn adopt_network_events(&mut self, setting: &mut TraceSetting) -> Result<()> {
        let (Some(events), Some(network)) = (self.events.take(), &mut setting.network) else {
            return Ok(());
        };
        let TraceAnalysis {
            recorder, spool, ..
        } = &self.analysis;
        // An incomplete recording is used too, with a note.
        let whole = network.emulation.end_recording();
        let settled = events.settle(
            spool,
            |origin| recorder.flow_of(origin),
            recorder.free_flow(),
        );
        let damaged = match settled {
            Ok(damaged) => damaged,
            Err(error) => {
                self.notes
                    .push(format!("the network's events are not all kept: {error}"));
                0
            }
        };
        self.notes.extend(
            whole
                .err()
                .map(|error| format!("the network's queues are only partly recorded: {error}")),
        );
        self.notes.extend(
            (damaged > 0).then(|| format!("damaged bytes in the network's events: {damaged}")),
        );
        Ok(())
    }

    /// Writes the index of the run.
    fn index(&mut self, cost_s: f64, unknown: &Unknown) -> Result<()> {
        let reference = self
            .analysis
            .recorder
            .hosts()
            .first()
            .cloned()
            .unwrap_or_default();
        let mut index = Index {
            reference: reference.clone(),
            left_out: unknown.left_out.names(),
            flows: self.analysis.recorder.requests().flows().cloned().collect(),
            ..Index::default()
        };
        let contents = self
            .analysis
            .recorder
            .keeps_contents()
            .then(|| contents::OF_REQUESTS.to_owned());
        self.notes.extend(contents.clone());
        let sample = self.analysis.recorder.sample_note();
        self.notes.extend(sample.clone());
        let host = HostTrace {
            lost: self.analysis.recorder.unwritten.count(),
            cost_s: BTreeMap::from([("trace".to_owned(), cost_s)]),
            absent: self.sources.absent.clone(),
            notes: contents.into_iter().chain(sample).collect(),
            ..HostTrace::default()
        };
        index.hosts.insert(reference, host);
        match self.analysis.spool.settle(&SortStopSignal::default()) {
            Ok(hosts) => {
                for (host, settled) in hosts {
                    settled.record_in(index.hosts.entry(host).or_default());
                }
            }
            Err(error) => self.notes.push(unsorted_note(error)?),
        }
        Ok(write_index(&self.path, &index)?)
    }
}

/// The thread that reads the sources. It is started before this process's threads are traced, as the threads that they start are
/// traced too.
struct Looker {
    session: Sender<(TraceSession, Arc<AtomicBool>)>,
    thread: JoinHandle<Result<(TraceSession, f64)>>,
}

impl Looker {
    /// Starts the thread, which waits for its session.
    fn start() -> Result<Self> {
        let (session, given) = mpsc::channel::<(TraceSession, Arc<AtomicBool>)>();
        let thread = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || {
                let (session, over) = given.recv().map_err(|_| panicked())?;
                session.look(&over)
            });
        let thread = thread.map_err(no_thread)?;
        Ok(Self { session, thread })
    }

    /// Gives the thread its session; it reads until `over` is set.
    fn give(&self, session: TraceSession, over: Arc<AtomicBool>) {
        // If the thread has ended, `join` returns why.
        let _ = self.session.send((session, over));
    }

    /// Waits for the thread; returns the session and the CPU seconds that it took.
    fn join(self) -> Result<(TraceSession, f64)> {
        self.thread.join().map_err(|_| panicked())?
    }
}

fn no_thread(error: io::Error) -> Error {
    Error::environment(format!("cannot start a thread: {error}"))
}

fn no_descriptor(error: io::Error) -> Error {
    Error::environment(format!(
        "cannot pass standard error on to a program: {error}"
    ))
}

fn panicked() -> Error {
    Error::measurement("the trace was lost: a thread panicked")
}

/// Starts the programs and waits for the last one, or waits for the requested duration if processes were joined. `stop`: the user
/// ends the trace; `gone`: no joined process is left; `end` is set when the last program has ended.
fn carry_out(
    options: &TraceOptions,
    setting: &TraceSetting,
    programs: Vec<TracedProgram>,
    [stop, gone]: [&Arc<AtomicBool>; 2],
    end: &ObservationEnd,
) -> Result<ProgramsEnd> {
    if programs.is_empty() {
        let until = options.duration.map(|time| Instant::now() + time);
        while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
            if gone.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(READ);
        }
        return Ok(ProgramsEnd::default());
    }
    // If the file cannot be made, the moment at which the end is noticed counts.
    let last_end = HostProgramEnd::new().ok();
    let (last, number) = (programs.len() - 1, Cell::new(0));
    let command = |program: &TracedProgram| {
        let is_last = number.replace(number.get() + 1) == last;
        let mut command = setting.command(program, last_end.as_ref().filter(|_| is_last))?;
        if options.programs_to_stderr {
            let stderr = io::stderr()
                .as_fd()
                .try_clone_to_owned()
                .map_err(no_descriptor)?;
            command.stdout(stderr);
        }
        Ok(command)
    };
    let mut running = RunningPrograms::start(programs, command, stop, |_| {})?;
    running.wait(stop);
    // A terminal sends its signal to the programs at the same time.
    let slack_ns = if stop.load(Ordering::Relaxed) {
        SIGNAL_NS
    } else {
        0
    };
    let noticed_ns = clock::now_ns().saturating_sub(slack_ns);
    let ended_ns = last_end.and_then(|end| end.at_ns()).unwrap_or(u64::MAX);
    end.set_moment(noticed_ns.min(ended_ns));
    Ok(running.end(stop.load(Ordering::Relaxed)))
}
