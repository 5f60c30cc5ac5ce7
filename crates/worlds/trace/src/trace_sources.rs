//! The sources that are read while programs run: packets at the doors of hosts, the kernel's trace events of sockets and threads, or
//! where these are not available, the calls of programs that ptrace stops. It only reads; it decodes and interprets nothing.

use crate::call_packets::{CallPacket, CallPackets};
use crate::datagram_owner_finder::DatagramOwnerFinder;
use crate::event_order::EventOrder;
use crate::followed_threads::{FollowedProcess, ThreadFollower};
use crate::joined_processes::is_running;
use crate::privileges::{ADMINISTRATION, PACKETS};
use crate::programs::TracedProgram;
use crate::ptrace_source::{self, PtraceEvent, PtraceSource, StreamChange, StreamPiece};
use crate::scope::TraceScope;
use crate::source_reading::{PacketReading, SourceReading};
use crate::thread_directory::own_thread;
use stackline_core::error::{Error, Result};
use stackline_guard::scratch::{self, ScratchDirectory};
use stackline_monitor::capture::{Capture, CaptureOptions, Packet};
use stackline_monitor::clock::thread_cpu_s;
use stackline_monitor::observe::existing_connections::connections_of;
use stackline_monitor::observe::observation_cost::{ObservationCost, PingPong};
use stackline_monitor::observe::sockets::{SocketCoverage, SocketTrace};
use stackline_monitor::observe::thread_numbers::ThreadNumbers;
use stackline_monitor::observe::threads::{Also, ThreadTrace};
use stackline_monitor::observe::transfer_sampler::TransferSampler;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::Duration;

/// The least time between two samples of the connections that carry much data, ns.
const SAMPLED_NS: u64 = 200_000_000;
/// That time is at least so many times the CPU time of a sample: on machines with very many sockets, sampling must stay cheap.
const SAMPLE_COSTS: f64 = 100.0;
/// Kernel memory for the packets of each host, bytes.
const RING: usize = 32 << 20;

/// A host whose packets are captured.
#[derive(Clone, Debug)]
pub(crate) struct TracedHost {
    pub(crate) name: String,
    /// Its network namespace, and the user namespace to enter first if any; `None`: this process's own.
    pub(crate) net: Option<(PathBuf, Option<PathBuf>)>,
}

/// All sources of a trace.
#[derive(Default)]
pub(crate) struct Sources {
    /// The packet captures, by host number.
    captures: Vec<(usize, Capture)>,
    /// Samples the connections of hosts, by host number.
    transfers: Vec<(usize, TransferSampler)>,
    /// When they are sampled next, ns.
    next_sample_ns: u64,
    sockets: Option<SocketTrace>,
    threads: Option<ThreadTrace>,
    /// Finds the kernel's numbers of threads to follow.
    follower: ThreadFollower,
    datagram_owners: DatagramOwnerFinder,
    /// Processes that are followed since the last reading.
    newcomers: Vec<FollowedProcess>,
    /// The records of stopped programs; `None` if programs are not stopped.
    stopped: Option<Vec<PtraceSource>>,
    /// Makes packets from the calls of stopped programs, if packets may not be captured.
    made: Option<CallPackets>,
    /// The directory of the pipes of stopped programs.
    pipes: Option<ScratchDirectory>,
    /// How many bytes and packets the last reading had.
    packets_before: (usize, usize),
    /// What cannot be observed, and why.
    pub(crate) absent: BTreeMap<String, String>,
    measured: TraceOverhead,
}

/// Measurements of what observing costs programs, elapsed ns of each batch of messages.
#[derive(Debug, Default)]
struct TraceOverhead {
    /// Whether packets of this machine are captured.
    is_here: bool,
    /// Measured while nothing is observed.
    without: Vec<f64>,
    /// Measured while all sources observe.
    with: Vec<f64>,
    /// The threads that measure, by the kernel's numbers; their events are left out.
    threads: Vec<u32>,
    /// The ports of the measurement; their packets are left out.
    ports: Vec<u16>,
}

impl TraceOverhead {
    /// Whether a packet belongs to the measurement: a UDP datagram over IPv4 from one of its ports.
    fn is_packet(&self, bytes: &[u8]) -> bool {
        // The own probes are UDP over IPv4 without options.
        let is_datagram = bytes.len() > 24 && bytes[0] == 0x45 && bytes[9] == 17;
        is_datagram
            && self
                .ports
                .contains(&u16::from_be_bytes([bytes[20], bytes[21]]))
    }
}

/// Opens the packet captures of all hosts.
fn open_captures(doors: &[TracedHost]) -> Result<Vec<(usize, Capture)>> {
    let mut captures = Vec::new();
    for (host, door) in doors.iter().enumerate() {
        let capture = open(door).map_err(|error| {
            let needed = match (&door.net, PACKETS.is_there()) {
                (Some(_), true) => ADMINISTRATION,
                _ => PACKETS,
            };
            Error::environment(format!(
                "cannot capture packets of `{}`: {error}",
                door.name
            ))
            .hint(format!(
                "{}; an emulated network needs no privileges: `--on NETWORK`",
                needed.advice()
            ))
        })?;
        captures.push((host, capture));
    }
    Ok(captures)
}

/// Starts the trace of sockets, if possible; `absent` gets what it lacks, or why there is none.
fn open_socket_trace(pids: &[u32], absent: &mut BTreeMap<String, String>) -> Option<SocketTrace> {
    match SocketTrace::start(SocketCoverage::Transfers) {
        Ok((mut trace, missing)) => {
            absent.extend(missing);
            // Trace events do not show to which connections already existing sockets belong, so these are found by their ports.
            let before = connections_of(pids);
            if !before.is_empty()
                && let Err(why) = trace.probe(
                    &before
                        .iter()
                        .map(|(own, other)| own.port().min(other.port()))
                        .collect(),
                )
            {
                absent.insert("sockets that already existed".into(), why);
            }
            return Some(trace);
        }
        Err(why) => {
            absent.insert("sockets".into(), why);
        }
    }
    None
}

/// If the kernel's trace events are not available, puts one sentence into `absent`: why, what is done instead, and what the user can
/// do.
fn say_without_events(is_stopped: bool, absent: &mut BTreeMap<String, String>) {
    let (threads, sockets) = (absent.remove("threads"), absent.remove("sockets"));
    let Some(why) = threads.as_ref().or(sockets.as_ref()) else {
        return;
    };
    let instead = match (is_stopped, &sockets) {
        (true, _) => "; instead, programs are stopped at their calls (ptrace)",
        (false, Some(_)) => "; a request's program and the time it was read are unknown",
        (false, None) => "",
    };
    let advice = match ADMINISTRATION.is_there() {
        true => String::new(),
        false => format!("; {}", ADMINISTRATION.advice()),
    };
    let what = match (&threads, &sockets) {
        (Some(_), Some(_)) => "threads and the kernel's socket trace events",
        (Some(_), None) => "threads",
        (None, _) => "the kernel's socket trace events",
    };
    absent.insert(what.into(), format!("{why}{instead}{advice}"));
}

/// Starts the trace of threads, if possible; `absent` gets what it lacks, or why there is none.
fn open_thread_trace(
    pids: &[u32],
    follower: &mut ThreadFollower,
    absent: &mut BTreeMap<String, String>,
) -> Option<ThreadTrace> {
    let also = Also {
        receives: true,
        ..Also::default()
    };
    let (mut trace, missing) = ThreadTrace::start(&[], also)
        .map_err(|why| absent.insert("threads".into(), why))
        .ok()?;
    absent.extend(missing);
    for pid in pids {
        // Of this process only the thread that starts programs is followed, not the threads that observe.
        let followed = match *pid == own_thread() {
            true => follower.follow_own(*pid, &mut trace),
            false => follower.follow(*pid, &mut trace),
        };
        if let Err(why) = followed
            && is_running(*pid)
        {
            absent.insert(format!("process {pid}"), why);
        }
    }
    Some(trace)
}

impl Sources {
    /// Opens the captures of the hosts and, as `see` says, the traces of sockets and threads: of the processes `pids`, and of all
    /// that this thread starts from now on.
    pub(crate) fn open(doors: &[TracedHost], see: TraceScope, pids: &[u32]) -> Result<Self> {
        let calls = see == TraceScope::Calls;
        // Only started programs may be stopped at their calls, not processes that run already.
        let is_started = pids == [own_thread()];
        let is_here = doors.iter().any(|door| door.net.is_none());
        let mut measured = TraceOverhead {
            is_here,
            ..TraceOverhead::default()
        };
        // Before anything is open that it is to be compared with.
        if calls || is_here {
            measured.without = PingPong::start()
                .and_then(PingPong::run)
                .unwrap_or_default();
        }
        let mut absent = BTreeMap::new();
        let captures = open_captures(doors);
        // What started programs send and receive can also be seen in their calls.
        let by_calls = is_started && doors.len() == 1 && see != TraceScope::Packets;
        let makes_packets = captures.is_err() && is_here && by_calls;
        let captures = match captures {
            Err(_) if makes_packets => Vec::new(),
            captures => captures?,
        };
        let calls = calls && !makes_packets;
        let (mut sockets, mut threads) = (None, None);
        let (mut follower, unable) = ThreadFollower::start();
        match unable {
            Some(why) if calls => {
                absent.insert("threads".into(), why.clone());
                absent.insert("sockets".into(), why);
            }
            None if calls => {
                sockets = open_socket_trace(pids, &mut absent);
                threads = open_thread_trace(pids, &mut follower, &mut absent);
            }
            _ => {}
        }
        let is_forced = see == TraceScope::Ptrace || makes_packets;
        let stops = is_started && (is_forced || calls && sockets.is_none());
        say_without_events(stops, &mut absent);
        if makes_packets {
            absent.insert(
                "packets, trace events".into(),
                format!(
                    "only requests visible in the programs' calls (ptrace) are kept, without their delays in the network and within programs; {}",
                    PACKETS.advice()
                ),
            );
        }
        if stops {
            measured.without = ptrace_source::measured(false);
        }
        let mut sources = Self {
            captures,
            transfers: open_transfer_samplers(doors, &mut absent),
            sockets,
            threads,
            follower,
            datagram_owners: DatagramOwnerFinder::new(doors),
            stopped: stops.then(Vec::new),
            made: makes_packets.then(CallPackets::default),
            absent,
            measured,
            ..Self::default()
        };
        sources.measure();
        Ok(sources)
    }

    /// Measures what a message costs while all sources observe, if it was measured without before.
    fn measure(&mut self) {
        if self.measured.without.is_empty() {
            return;
        }
        if self.stopped.is_some() {
            self.measured.with.extend(ptrace_source::measured(true));
            return;
        }
        if !self.sees_loopback() {
            return;
        }
        let Ok(probe) = PingPong::start() else { return };
        let threads = probe.threads.map(|thread| (std::process::id(), thread));
        let threads = self.follower.kernel_numbers(&threads).unwrap_or_default();
        self.measured.threads.extend(&threads);
        self.measured.ports.extend(probe.ports);
        if let Some(trace) = &mut self.threads
            && trace.follow_threads(&threads).is_err()
        {
            return;
        }
        self.measured.with.extend(probe.run().unwrap_or_default());
    }

    /// The kernel's numbers of threads of this process.
    pub(crate) fn own_numbers(&mut self, threads: &[u32]) -> Vec<u32> {
        let process = std::process::id();
        let threads: Vec<(u32, u32)> = threads.iter().map(|thread| (process, *thread)).collect();
        // Without them, the time in which observing takes cores from programs is not seen.
        self.follower.kernel_numbers(&threads).unwrap_or_default()
    }

    /// The numbers of threads that are known so far.
    pub(crate) const fn numbers(&self) -> &ThreadNumbers {
        self.follower.numbers()
    }

    /// Follows another process from now on, with all its threads and all that they start; the next reading lists it.
    pub(crate) fn follow(&mut self, pid: u32) {
        let followed = match &mut self.threads {
            Some(trace) => self.follower.follow(pid, trace),
            None => Ok(()),
        };
        // It may have ended already.
        if followed.is_ok() {
            self.newcomers
                .push(FollowedProcess::look(pid, self.numbers()));
        }
    }

    /// Whether any source observes this machine's loopback.
    const fn sees_loopback(&self) -> bool {
        self.measured.is_here || self.sockets.is_some() || self.threads.is_some()
    }

    /// Closes all sources. Returns what observing cost programs, measured before it began, at its beginning, at its end, and after
    /// it.
    pub(crate) fn close(&mut self) -> Option<ObservationCost> {
        // Once more at the end: the machine may have become slower or faster meanwhile.
        if !self.measured.with.is_empty() {
            self.measure();
        }
        let stopped = self.stopped.take().is_some();
        (self.captures, self.sockets, self.threads) = (Vec::new(), None, None);
        self.transfers.clear();
        let measured = &mut self.measured;
        if !measured.with.is_empty() {
            measured.without.extend(match stopped {
                true => ptrace_source::measured(false),
                false => PingPong::start()
                    .and_then(PingPong::run)
                    .unwrap_or_default(),
            });
        }
        ObservationCost::compare(&measured.without, &measured.with)
    }

    /// Whether the kernel's trace events of sockets are read.
    pub(crate) const fn has_sockets(&self) -> bool {
        self.sockets.is_some()
    }

    /// Whether programs are stopped at their system calls.
    pub(crate) const fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Replaces the commands of the programs by those that stop them at their calls, if they are observed that way.
    pub(crate) fn stopping(&mut self, programs: Vec<TracedProgram>) -> Result<Vec<TracedProgram>> {
        let Some(stopped) = &mut self.stopped else {
            return Ok(programs);
        };
        let failed =
            |error| Error::environment(format!("cannot create a directory for pipes: {error}"));
        let directory = &*self
            .pipes
            .insert(scratch::create_directory("trace").map_err(failed)?);
        let contents = self.made.is_some();
        let each = programs.into_iter().enumerate().map(|(number, program)| {
            let ptrace_source = PtraceSource::create(directory, number, contents)?;
            let command = ptrace_source.command(&program.command)?;
            stopped.push(ptrace_source);
            Ok(TracedProgram {
                command,
                stopped: program.command.into_iter().next(),
                ..program
            })
        });
        each.collect()
    }

    /// Whether the kernel's trace events of threads are read.
    pub(crate) const fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// The decoder for the readings of these sources.
    pub(crate) fn order(&self) -> EventOrder {
        EventOrder::new(
            self.sockets.as_ref().map(SocketTrace::decoder),
            self.threads.as_ref().map(ThreadTrace::decoder),
            self.measured.threads.clone(),
        )
    }

    /// Reads what has come since the last reading; with `is_last` also what the kernel still holds back.
    pub(crate) fn read(&mut self, now_ns: u64, is_last: bool) -> Result<SourceReading> {
        let (bytes, packets) = self.packets_before;
        let mut reading = SourceReading {
            now_ns,
            is_last,
            newcomers: std::mem::take(&mut self.newcomers),
            packets: PacketReading::with_room_for(bytes, packets),
            ..SourceReading::default()
        };
        self.sample_transfers(&mut reading);
        self.read_packets(&mut reading)?;
        self.packets_before = reading.packets.size();
        let failed = |why: String| {
            Error::environment(format!("cannot read the kernel's trace events: {why}"))
        };
        if let Some(trace) = &mut self.sockets {
            trace.read(&mut reading.sockets).map_err(failed)?;
        }
        if let Some(trace) = &mut self.threads {
            trace.read(&mut reading.threads).map_err(failed)?;
        }
        reading.lost_records += reading.sockets.lost + reading.threads.lost();
        self.read_stopped(&mut reading)?;
        Ok(reading)
    }

    /// Samples the connections that carry much data, if it is time to.
    fn sample_transfers(&mut self, reading: &mut SourceReading) {
        let begin_ns = reading.now_ns;
        if self.transfers.is_empty() || begin_ns < self.next_sample_ns && !reading.is_last {
            return;
        }
        // Not elapsed time: on a machine whose cores are taken a sample would seem to cost what it waits.
        let begun_s = thread_cpu_s();
        let absent = &mut self.absent;
        self.transfers
            .retain_mut(|(host, sampler)| match sampler.sample() {
                Ok(samples) => {
                    let samples = samples.into_iter().map(|sample| (*host, sample));
                    reading.transfers.extend(samples);
                    true
                }
                Err(why) => {
                    absent.insert("TCP_INFO".into(), why);
                    false
                }
            });
        let pause_ns = (1e9 * SAMPLE_COSTS * (thread_cpu_s() - begun_s)) as u64;
        self.next_sample_ns = begin_ns + SAMPLED_NS.max(pause_ns);
    }

    fn read_packets(&mut self, reading: &mut SourceReading) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::environment(format!("cannot read packets: {error}"));
        for (host, capture) in &mut self.captures {
            let mut put = |packet: Packet<'_>| {
                if !self.measured.is_packet(packet.bytes) {
                    if self.threads.is_some() {
                        self.datagram_owners.see(*host, &packet);
                    }
                    reading.packets.push(*host, &packet);
                }
            };
            if reading.is_last {
                capture.drain_end(&mut put).map_err(failed)?;
            } else {
                capture
                    .read(Some(Duration::ZERO), &mut put)
                    .map_err(failed)?;
            }
            reading.lost_packets += capture.lost().map_err(failed)?;
        }
        let numbers = self.follower.numbers();
        let owners = self.datagram_owners.find().into_iter();
        reading.datagram_owners = owners
            .filter_map(|(ends, pid)| Some((ends, numbers.kernel(pid)?)))
            .collect();
        Ok(())
    }

    /// Reads the records of stopped programs.
    fn read_stopped(&mut self, reading: &mut SourceReading) -> Result<()> {
        let failed = |error| Error::environment(format!("cannot record socket calls: {error}"));
        let mut pieces = Vec::new();
        for ptrace_source in self.stopped.iter_mut().flatten() {
            for news in ptrace_source.drain().map_err(failed)? {
                match news {
                    PtraceEvent::Socket(event) => reading.stopped.0.push(event),
                    PtraceEvent::Thread(event) => reading.stopped.1.push(event),
                    PtraceEvent::Stream(piece) => pieces.push(piece),
                    PtraceEvent::Lost(count) => reading.lost_records += count,
                    PtraceEvent::Absent(why) => {
                        drop(self.absent.insert("sockets by ptrace".into(), why))
                    }
                }
            }
        }
        // Sorted by time, since a client writes before its server reads.
        pieces.sort_by_key(|piece| piece.at_ns);
        pieces
            .into_iter()
            .for_each(|piece| self.make_packets(piece, reading));
        Ok(())
    }

    /// Makes packets at this machine's door from a change of a stream.
    fn make_packets(&mut self, piece: StreamPiece, reading: &mut SourceReading) {
        let Some(made) = &mut self.made else { return };
        let socket = piece.socket;
        let packets = match piece.what {
            StreamChange::Begins(ends, has_accepted) => made.open(socket, ends, has_accepted),
            StreamChange::Passes { sent, bytes } => made.pass(socket, sent, &bytes),
            StreamChange::PassesUnread { sent, bytes } => made.pass_unread(socket, sent, bytes),
            StreamChange::Ends => made.end(socket),
        };
        reading.lost_records += made.take_lost();
        for CallPacket { outgoing, bytes } in packets {
            let packet = Packet {
                at_ns: piece.at_ns,
                interface: 0,
                outgoing,
                length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                bytes: &bytes,
            };
            reading.made.push(0, &packet);
        }
    }
}

/// Opens what samples the connections of hosts; `absent` gets why one has none.
fn open_transfer_samplers(
    doors: &[TracedHost],
    absent: &mut BTreeMap<String, String>,
) -> Vec<(usize, TransferSampler)> {
    let open = |door: &TracedHost| {
        let Some((net, user)) = &door.net else {
            return TransferSampler::open();
        };
        let why = |error: std::io::Error| error.to_string();
        let net = File::open(net).map_err(why)?;
        let user = user.as_ref().map(File::open).transpose().map_err(why)?;
        TransferSampler::open_in(net.as_fd(), user.as_ref().map(|user| user.as_fd()))
    };
    let mut opened = Vec::new();
    for (host, door) in doors.iter().enumerate() {
        match open(door) {
            Ok(sampler) => opened.push((host, sampler)),
            Err(why) => {
                absent.insert(format!("TCP_INFO of `{}`", door.name), why);
            }
        }
    }
    opened
}

/// Opens the packet capture of a host.
fn open(door: &TracedHost) -> std::io::Result<Capture> {
    let options = CaptureOptions {
        ring_bytes: RING,
        ..CaptureOptions::default()
    };
    let Some((net, user)) = &door.net else {
        return Capture::open(&options);
    };
    let net = File::open(net)?;
    let user = user.as_ref().map(File::open).transpose()?;
    Capture::open_in(
        net.as_fd(),
        user.as_ref().map(|user| user.as_fd()),
        &options,
    )
}
