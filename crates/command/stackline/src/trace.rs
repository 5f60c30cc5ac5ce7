//! `stackline trace`: programs that are not ours, as they are, on hosts of an emulated network or here: their requests as a run,
//! with what limits them.

mod network_events;
mod process_threads;
mod programs;
mod ptrace_source;
mod recorder;
mod thread_directory;
mod tls_key_log;
mod trace_sources;

use crate::contents_notice;
use crate::diagnose;
use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::flags::TraceScopeFlag;
use crate::net::{is_host, link_of_text, open_host_network};
use crate::output;
use crate::run::listen_for_ctrl_c;
use network_events::{OnNetwork, Queues};
use process_threads::{own_thread, own_threads};
use programs::{HERE, RunningPrograms, TracedProgram};
pub(crate) use ptrace_source::ptrace;
use recorder::RequestRecorder;
use stackline_core::plan::Plan;
use stackline_core::trace_index::{HostTrace, Index};
use stackline_core::units;
use stackline_events::clock;
use stackline_monitor::observe::observation_cost::ObservationCost;
use stackline_requests::{ObservedHost, Unknown};
use stackline_runs::events::{SortStopSignal, Spooling, write_index};
use stackline_runs::{RunDirectory, runs_root};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tls_key_log::KeyLog;
use trace_sources::{Sources, TracedHost};

/// How often what was seen is taken.
const TAKE: Duration = Duration::from_millis(10);
/// After the last program has ended, its connections are looked at for so long.
const AFTER: Duration = Duration::from_millis(30);

/// Traces programs, keeps a run, says what limits their requests.
pub(crate) fn trace(flags: &flags::TraceFlags) -> Result {
    let programs = match (flags.words.is_empty(), flags.pid.is_empty()) {
        (true, false) => Vec::new(),
        (false, true) => programs::programs(&flags.words)?,
        (true, true) => {
            return Err(Error::input("there is nothing to trace")
                .hint("stackline trace -- COMMAND starts a program, --pid PID joins one"));
        }
        (false, false) => {
            return Err(Error::input("programs are named, and --pid too")
                .hint("trace the ones or the others"));
        }
    };
    if let Some(gone) = flags.pid.iter().find(|pid| !is_there(**pid)) {
        return Err(Error::input(format!("there is no process {gone}"))
            .hint("`pgrep -n NAME` prints a program's number"));
    }
    if let Some(change) = flags.tries.first().filter(|_| flags.on.is_none()) {
        return Err(Error::input(format!(
            "there is no network on which `{change}` could be tried"
        ))
        .hint("--try changes a link of the network that --on names"));
    }
    programs
        .iter()
        .try_for_each(TracedProgram::can_be_started)?;
    let mut stage = TraceSetting::of(flags, &programs)?;
    for change in &flags.tries {
        if let Some(network) = &mut stage.network {
            link_of_text(&network.emulation.describe()?.network, change)?;
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    let (first, ended) = once(flags, &mut stage, programs.clone(), &stop, &flags.name)?;
    report(flags, &first)?;
    for change in &flags.tries {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        try_again(flags, &mut stage, &programs, &stop, change, &first)?;
    }
    // Programs that ran already go on: an interruption is how their trace ends.
    Ok(if stop.load(Ordering::Relaxed) && flags.pid.is_empty() {
        Exit::Interrupted
    } else {
        code(ended)
    })
}

/// Runs the programs once, and keeps what was seen as a run of that name.
fn once(
    flags: &flags::TraceFlags,
    stage: &mut TraceSetting,
    programs: Vec<TracedProgram>,
    stop: &Arc<AtomicBool>,
    name: &str,
) -> Result<(TraceOutcome, Option<ExitStatus>)> {
    let mut sources = Sources::open(&stage.doors, flags.see, &pids(flags))?;
    let directory = RunDirectory::create(
        &runs_root(),
        name,
        SystemTime::now(),
        flags.sharing.access(),
    )?;
    let path = directory.path().to_path_buf();
    let programs = sources.stopping(programs)?;
    let traced = TraceSession::new(flags, stage, sources, &directory)?;
    match traced.run(flags, stage, programs, stop) {
        Ok(done) => {
            directory.finish(&[], true, None)?;
            Ok(done)
        }
        Err(error) => {
            // Nothing was traced: nothing is kept, nor written any more.
            if let Some(on) = &mut stage.network {
                let _ = on.emulation.end_recording();
            }
            drop(directory);
            let _ = std::fs::remove_dir_all(&path);
            Err(error)
        }
    }
}

/// Runs the programs again where one link of the network is another, and compares.
fn try_again(
    flags: &flags::TraceFlags,
    stage: &mut TraceSetting,
    programs: &[TracedProgram],
    stop: &Arc<AtomicBool>,
    change: &str,
    first: &TraceOutcome,
) -> Result<()> {
    let Some(on) = &mut stage.network else {
        return Ok(());
    };
    let network = on.emulation.describe()?.network;
    let (link, new) = link_of_text(&network, change)?;
    on.emulation.change(link, new)?;
    let second = once(
        flags,
        stage,
        programs.to_vec(),
        stop,
        &format!("{}-try", flags.name),
    );
    if let Some(on) = &mut stage.network {
        on.emulation.change(link, network.links[link].clone())?;
    }
    let (second, _) = second?;
    output::say(&format_args!(
        "with {change}: {}",
        compared(&first.totals, &second.totals)
    ));
    output::say(&format_args!("kept in {}", second.path.display()));
    Ok(())
}

/// The times of requests that no other was made for, before and after.
fn compared(before: &[u64], after: &[u64]) -> String {
    let median = |times: &[u64]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times.get(times.len() / 2).map(|ns| *ns as f64 / 1e9)
    };
    match (median(before), median(after)) {
        (Some(was), Some(is)) => format!(
            "{} requests, median {} instead of {} of {}: {:.2} times as fast",
            after.len(),
            units::format_time(is),
            units::format_time(was),
            before.len(),
            was / is.max(1e-9)
        ),
        _ => "no request was seen, so there is nothing to compare".to_owned(),
    }
}

/// Traces one program on a host of a network (`net exec --trace`).
pub(crate) fn trace_one_program(
    text: &flags::SpecTextFlags,
    host: &str,
    command: &[OsString],
) -> Result {
    let words = [&[host.into(), "--".into()], command].concat();
    trace(&flags::TraceFlags {
        on: text.spec.clone(),
        pid: Vec::new(),
        duration: None,
        see: TraceScopeFlag::Calls,
        keep_contents: false,
        decipher: false,
        name: "trace".into(),
        sharing: flags::Sharing::default(),
        json: false,
        tries: Vec::new(),
        words,
    })
}

/// What this thread starts is traced from its first moment: so is the thread itself. And programs that run.
fn pids(flags: &flags::TraceFlags) -> Vec<u32> {
    if flags.pid.is_empty() {
        vec![own_thread()]
    } else {
        flags.pid.clone()
    }
}

fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Where programs run.
struct TraceSetting {
    doors: Vec<TracedHost>,
    hosts: Vec<ObservedHost>,
    /// The network's hosts, where it is one.
    network: Option<OnNetwork>,
    /// Where programs write the secrets of their TLS sessions, if they are asked to.
    keys: Option<KeyLog>,
}

impl TraceSetting {
    fn of(flags: &flags::TraceFlags, programs: &[TracedProgram]) -> Result<Self> {
        let keys = KeyLog::of(flags.decipher, flags.on.is_some())?;
        let Some(on) = &flags.on else {
            return Self::here(programs, keys);
        };
        let word = on.to_string_lossy().into_owned();
        let text = flags::SpecTextFlags {
            spec: Some(on.clone()),
            ..flags::SpecTextFlags::default()
        };
        let first = programs.first().map_or("", |program| program.host.as_str());
        if first == HERE {
            return Err(Error::input("a program on a network needs a host").hint(format!(
                "stackline trace --on {word} HOST -- COMMAND; `stackline net show {word}` shows the hosts"
            )));
        }
        let (emulation, network) = open_host_network(&text, first)?;
        for program in programs {
            is_host(&network, &program.host)?;
        }
        let network = OnNetwork::uses(word, emulation)?;
        let handles = network.emulation.hosts().to_vec();
        let doors = handles.iter().map(|host| TracedHost {
            name: host.name.clone(),
            net: Some((host.net.clone(), host.user.clone())),
        });
        let hosts = handles.iter().map(|host| ObservedHost {
            name: host.name.clone(),
            addresses: vec![host.address.into()],
        });
        Ok(Self {
            doors: doors.collect(),
            hosts: hosts.collect(),
            network: Some(network),
            keys,
        })
    }

    fn here(programs: &[TracedProgram], keys: Option<KeyLog>) -> Result<Self> {
        if let Some(other) = programs.iter().find(|program| program.host != HERE) {
            return Err(
                Error::input(format!("{} is no host: there is no network", other.host))
                    .hint("--on NETWORK names the network; `here` is this machine"),
            );
        }
        let addresses = nix::ifaddrs::getifaddrs().map_err(|error| {
            Error::environment(format!(
                "the addresses of this machine cannot be read: {error}"
            ))
        })?;
        let ip = |address: nix::ifaddrs::InterfaceAddress| {
            let address = address.address?;
            let four = address
                .as_sockaddr_in()
                .map(|four| std::net::IpAddr::V4(four.ip()));
            four.or_else(|| {
                address
                    .as_sockaddr_in6()
                    .map(|six| std::net::IpAddr::V6(six.ip()))
            })
        };
        let addresses = addresses.filter_map(ip).collect();
        let door = TracedHost {
            name: HERE.into(),
            net: None,
        };
        Ok(Self {
            doors: vec![door],
            hosts: vec![ObservedHost {
                name: HERE.into(),
                addresses,
            }],
            network: None,
            keys,
        })
    }

    /// The command of a program: itself, or entered into its host; it writes its secrets where they are read.
    fn command(&self, program: &TracedProgram) -> Result<Command> {
        let mut command = self.entered(program)?;
        if let Some(keys) = &self.keys {
            command.env(tls_key_log::VARIABLE, keys.path());
        }
        Ok(command)
    }

    fn entered(&self, program: &TracedProgram) -> Result<Command> {
        let Some(OnNetwork { word, .. }) = &self.network else {
            let mut command = Command::new(&program.command[0]);
            command.args(&program.command[1..]);
            return Ok(command);
        };
        let own = std::env::current_exe().map_err(|error| {
            Error::environment(format!("this program cannot find itself: {error}"))
        })?;
        let mut command = Command::new(own);
        command
            .args(["net", "exec", "--of-trace", word, &program.host, "--"])
            .args(&program.command);
        Ok(command)
    }
}

/// What came of a trace.
struct TraceOutcome {
    path: std::path::PathBuf,
    /// Of requests that no other was made for, ns.
    totals: Vec<u64>,
    requests: u64,
    foreign: u64,
    by_protocol: BTreeMap<&'static str, u64>,
    programs: Vec<(String, String, String)>,
    unknown: Unknown,
    packets: u64,
    lost_packets: u64,
    records: u64,
    lost_records: u64,
    absent: BTreeMap<String, String>,
    notes: Vec<String>,
    seconds: f64,
    cost_s: f64,
    /// What it cost programs to be looked at.
    cost: Option<ObservationCost>,
    /// Programs were stopped at their calls.
    stopped: bool,
}

/// A trace that goes on.
struct TraceSession {
    sources: Sources,
    recorder: RequestRecorder,
    /// What happens within the network is recorded there.
    queues: Option<Queues>,
    keys: Option<tls_key_log::KeyLogReader>,
    notes: Vec<String>,
    spool: Spooling,
    path: std::path::PathBuf,
    began: Instant,
}

impl TraceSession {
    fn new(
        flags: &flags::TraceFlags,
        stage: &mut TraceSetting,
        sources: Sources,
        directory: &RunDirectory,
    ) -> Result<Self> {
        let is_here = stage.network.is_none();
        let only_traced =
            is_here && (sources.has_stopped() || sources.has_sockets() && sources.has_threads());
        let mut recorder = RequestRecorder::new(
            stage.hosts.clone(),
            sources.has_threads(),
            only_traced,
            flags.keep_contents,
        );
        let keys = stage.keys.as_ref().map(KeyLog::reader);
        if let Some(keys) = &keys {
            recorder = recorder.with_secrets(keys.secrets.clone());
        }
        match flags.pid.is_empty() {
            true => recorder.who.trace_children_of(own_thread()),
            false => flags.pid.iter().for_each(|pid| recorder.who.trace(*pid)),
        }
        let path = directory.path().to_path_buf();
        let spool = Spooling::of(&path)?;
        let (mut queues, mut notes) = (None, Vec::new());
        if is_here && !only_traced {
            notes.push(
                "packets do not show whose they are: requests of all programs of this machine are kept".to_owned(),
            );
        }
        if let Some(network) = &mut stage.network {
            queues = network.record(&path)?;
            network.ports(&mut recorder);
            match &queues {
                Some(queues) => recorder = recorder.with_doors_apart(queues.doors()),
                None => notes.push(network.unrecorded()),
            }
        }
        Ok(Self {
            sources,
            recorder,
            queues,
            keys,
            notes,
            spool,
            path,
            began: Instant::now(),
        })
    }

    /// Starts the programs, looks until the last of them has ended, keeps what was seen.
    fn run(
        mut self,
        flags: &flags::TraceFlags,
        stage: &mut TraceSetting,
        programs: Vec<TracedProgram>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(TraceOutcome, Option<ExitStatus>)> {
        let over = Arc::new(AtomicBool::new(false));
        let looking = Arc::clone(&over);
        let looker = std::thread::Builder::new()
            .name("trace".into())
            .spawn(move || {
                let looked = self.look(&looking);
                (self, looked)
            });
        let looker = looker
            .map_err(|error| Error::environment(format!("no thread can be started: {error}")))?;
        let ended = carry_out(flags, stage, programs, stop);
        over.store(true, Ordering::Relaxed);
        let (traced, looked) = looker.join().map_err(|_| {
            Error::measurement("what was seen could not be kept: a thread panicked")
        })?;
        let cost_s = looked?;
        Ok((traced.finish(cost_s, stage)?, ended?))
    }

    /// Takes what is seen until it is over; CPU seconds that this took.
    fn look(&mut self, over: &AtomicBool) -> Result<f64> {
        let before = stackline_monitor::clock::thread_cpu_s();
        self.recorder.observed_by(own_threads());
        while !over.load(Ordering::Relaxed) {
            std::thread::sleep(TAKE);
            self.take(false)?;
        }
        std::thread::sleep(AFTER);
        self.take(true)?;
        Ok(stackline_monitor::clock::thread_cpu_s() - before)
    }

    fn take(&mut self, end: bool) -> Result<()> {
        let now_ns = clock::now_ns();
        let (lost_packets, lost_records) = (self.sources.lost_packets, self.sources.lost_records);
        self.keys
            .iter_mut()
            .for_each(tls_key_log::KeyLogReader::read);
        let recorder = &mut self.recorder;
        let (spool, mut relieved) = (&self.spool, Ok(()));
        self.sources.take(now_ns, end, |at_ns, seen| {
            recorder.see(at_ns, seen);
            if relieved.is_ok() {
                relieved = recorder.relieve(spool);
            }
        })?;
        relieved?;
        let packets = self.sources.lost_packets - lost_packets;
        let seen = self.sources.packets + self.sources.records;
        self.recorder.lost(
            now_ns,
            packets,
            self.sources.lost_records - lost_records,
            seen,
        );
        self.recorder.advance(now_ns, &self.spool)
    }

    fn finish(mut self, cost_s: f64, stage: &mut TraceSetting) -> Result<TraceOutcome> {
        if let Some(keys) = self.keys.take().filter(|keys| keys.learnt > 0) {
            self.notes.push(format!(
                "secrets of TLS sessions were read and are not kept: {}",
                keys.learnt
            ));
        }
        if let Some(on) = &mut stage.network {
            self.notes.extend(on.notes()?);
        }
        let stopped = self.sources.has_stopped();
        let cost = self.sources.close();
        if let Some(cost) = &cost {
            self.recorder.cost(clock::now_ns(), cost);
        }
        let unknown = self.recorder.finish(&self.spool)?;
        if let (Some(queues), Some(network)) = (self.queues.take(), &mut stage.network) {
            let recorder = &self.recorder;
            // What there is of it counts, even if not all could be kept.
            let whole = network.emulation.end_recording();
            let damaged = queues.settle(
                &self.spool,
                |origin| recorder.flow_of(origin),
                recorder.free_flow(),
            )?;
            self.notes.extend(
                whole
                    .err()
                    .map(|error| format!("queues of the network are not recorded whole: {error}")),
            );
            self.notes.extend(
                (damaged > 0)
                    .then(|| format!("{damaged} bytes of the network's events are damaged")),
            );
        }
        let reference = self.recorder.hosts().first().cloned().unwrap_or_default();
        let left_out = unknown.left_out.names();
        let mut index = Index {
            reference: reference.clone(),
            left_out,
            ..Index::default()
        };
        self.recorder.index(&mut index);
        let absent = self.sources.absent.clone();
        let own = BTreeMap::from([("trace".to_owned(), cost_s)]);
        let kept: Vec<String> = self
            .recorder
            .keeps_contents()
            .then(|| contents_notice::OF_REQUESTS.to_owned())
            .into_iter()
            .collect();
        self.notes.extend(kept.iter().cloned());
        let host = HostTrace {
            cost_s: own,
            absent: absent.clone(),
            notes: kept,
            ..HostTrace::default()
        };
        index.hosts.insert(reference, host);
        for (host, settled) in self.spool.settle(&SortStopSignal::default())? {
            settled.record_in(index.hosts.entry(host).or_default());
        }
        write_index(&self.path, &index)?;
        let programs = self
            .recorder
            .programs
            .iter()
            .map(|((place, name), protocols)| {
                (
                    place.clone(),
                    name.clone(),
                    protocols.iter().copied().collect::<Vec<_>>().join(", "),
                )
            });
        Ok(TraceOutcome {
            path: self.path,
            totals: self.recorder.totals(),
            requests: self.recorder.count,
            foreign: self.recorder.foreign,
            by_protocol: self.recorder.by_protocol.clone(),
            programs: programs.collect(),
            unknown,
            packets: self.sources.packets,
            lost_packets: self.sources.lost_packets,
            records: self.sources.records,
            lost_records: self.sources.lost_records,
            absent,
            notes: self.notes,
            seconds: self.began.elapsed().as_secs_f64(),
            cost_s,
            cost,
            stopped,
        })
    }
}

/// Starts programs and waits for the last, or waits for the time that was asked for.
fn carry_out(
    flags: &flags::TraceFlags,
    stage: &TraceSetting,
    programs: Vec<TracedProgram>,
    stop: &Arc<AtomicBool>,
) -> Result<Option<ExitStatus>> {
    if programs.is_empty() {
        let until = flags.duration.map(|time| Instant::now() + time);
        while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
            if !flags.pid.iter().any(|pid| is_there(*pid)) {
                break;
            }
            std::thread::sleep(TAKE);
        }
        return Ok(None);
    }
    let mut running =
        RunningPrograms::start(programs, |program| stage.command(program), stop, |_| {})?;
    running.wait(stop);
    Ok(running.end())
}

/// Ends as the last program did.
fn code(ended: Option<ExitStatus>) -> Exit {
    let Some(ended) = ended else {
        return Exit::Done;
    };
    match ended
        .code()
        .or_else(|| ended.signal().map(|signal| 128 + signal))
    {
        Some(0) | None => Exit::Done,
        Some(code) => Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Says what was seen, and what limits.
fn report(flags: &flags::TraceFlags, done: &TraceOutcome) -> Result<()> {
    let path = &done.path;
    for (place, program, protocols) in &done.programs {
        let program = if program.is_empty() {
            "(not seen)"
        } else {
            program
        };
        output::say(&format_args!("{place:<12} {program:<20} {protocols}"));
    }
    let protocols: Vec<String> = done
        .by_protocol
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let requests = match done.requests {
        0 => "no request was seen".to_owned(),
        1 => format!("1 request ({})", protocols.join(", ")),
        count => format!("{count} requests ({})", protocols.join(", ")),
    };
    output::say(&format_args!(
        "{requests} of {} packets and {} records in {}; lost: {} packets, {} records; tracing took {} of CPU",
        done.packets,
        done.records,
        units::format_time(done.seconds),
        done.lost_packets,
        done.lost_records,
        units::format_time(done.cost_s)
    ));
    done.cost
        .iter()
        .for_each(|cost| output::say(&format_args!("{}", cost_words(cost, done.stopped))));
    for note in notes(done).into_iter().chain(done.unknown.left_out.lines()) {
        output::say(&format_args!("note: {note}"));
    }
    let (findings, note) = diagnose::after_a_run(path)?;
    note.iter()
        .for_each(|note| output::say(&format_args!("note: {note}")));
    let run = path
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if flags.json {
        let mut json =
            stackline_report::findings_json(&path.display().to_string(), true, &findings);
        json["left_out"] = serde_json::json!(done.unknown.left_out.names());
        return output::json(&json, false);
    }
    let plan = Plan {
        seed: 0,
        hosts: BTreeMap::new(),
        networks: Vec::new(),
        measurements: Vec::new(),
    };
    let (first, others) = findings.split_at(findings.len().min(1));
    // On stdout is what the programs print, and may be kept in a file.
    output::say(&format_args!(
        "{}",
        stackline_report::findings(&plan, first).trim_end()
    ));
    if !others.is_empty() {
        let kinds: Vec<&str> = others.iter().map(|finding| finding.kind).collect();
        output::say(&format_args!(
            "and {} more ({}): `stackline diagnose {run}`",
            others.len(),
            kinds.join(", ")
        ));
    }
    output::say(&format_args!(
        "kept in {}; see `stackline lifelines {run}`, `diagnose {run}`, `open {run}`",
        path.display()
    ));
    Ok(())
}

/// What it cost programs to be looked at.
fn cost_words(cost: &ObservationCost, stopped: bool) -> String {
    let (without, with) = cost.medians_ns;
    let (whose, what) = if stopped {
        ("", "")
    } else {
        ("both ends ", " of CPU")
    };
    format!(
        "to be looked at: a message and its answer took {whose}{}{what} instead of {} (medians of {} and {} batches, quartiles {} from them)",
        units::format_time(with / 1e9),
        units::format_time(without / 1e9),
        cost.batches.1,
        cost.batches.0,
        units::format_time(cost.spread_ns / 1e9)
    )
}

fn notes(done: &TraceOutcome) -> Vec<String> {
    let unknown = &done.unknown;
    let mut notes: Vec<String> = done
        .absent
        .iter()
        .map(|(what, why)| format!("not looked at: {what}: {why}"))
        .collect();
    let counts = [
        (
            unknown.midway,
            "connections were there before: what their first requests were is not known",
        ),
        (
            unknown.lost_bytes,
            "bytes of connections were not captured; requests with them are not known",
        ),
        (
            unknown.early_sockets,
            "bytes went through sockets that were there before: when they were read is not known",
        ),
        (
            unknown.one_way,
            "connections were seen in one direction only: no requests are told of them",
        ),
        (done.foreign, "requests of other programs were left out"),
    ];
    notes.extend(
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    notes.extend(done.notes.iter().cloned());
    notes
}
