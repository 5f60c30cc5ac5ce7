//! What is looked at while programs run: packets at the doors of hosts, the kernel's trace events of sockets and threads. It brings
//! what they report into the order of time, some milliseconds late, and decides nothing.

use crate::exit::{Error, Result};
use stackline_monitor::capture::{Capture, Options};
use stackline_monitor::observe::cost::{Cost, PingPong};
use stackline_monitor::observe::existing::connections_of;
use stackline_monitor::observe::sockets::{SocketEvent, SocketTrace};
use stackline_monitor::observe::threads::{Also, ThreadEvent, ThreadTrace};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// Packets come in blocks that the kernel keeps for this long, and events of cores one after the other: what is younger is not in
/// order yet.
const SETTLES_NS: u64 = 60_000_000;
/// Kernel memory for the packets of each host.
const RING: usize = 32 << 20;

/// A host whose packets are looked at.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) name: String,
    /// Its network namespace, and the user namespace to enter first; this process's own without.
    pub(super) net: Option<(PathBuf, Option<PathBuf>)>,
}

/// What happened, and when.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    Packet { host: usize, outgoing: bool, length: u64, bytes: Vec<u8> },
    Socket(SocketEvent),
    Thread(ThreadEvent),
}

/// All that is looked at.
pub(super) struct Sources {
    captures: Vec<(usize, Capture)>,
    sockets: Option<SocketTrace>,
    threads: Option<ThreadTrace>,
    pending: Vec<(u64, u64, Seen)>,
    next: u64,
    pub(super) packets: u64,
    pub(super) lost_packets: u64,
    pub(super) records: u64,
    pub(super) lost_records: u64,
    /// What cannot be looked at, and why.
    pub(super) absent: BTreeMap<String, String>,
    measured: Measured,
}

/// What it costs to be looked at, as far as it has been measured.
#[derive(Debug, Default)]
struct Measured {
    /// Packets of this machine are looked at.
    is_here: bool,
    without: Vec<f64>,
    with: Vec<f64>,
    /// Whoever measures is left out of what is seen.
    threads: Vec<u32>,
    ports: Vec<u16>,
}

impl Measured {
    /// Whether a packet is of the measurement: a datagram over IPv4 between its ports.
    fn is_packet(&self, bytes: &[u8]) -> bool {
        let is_datagram = bytes.len() > 24 && bytes[0] == 0x45 && bytes[9] == 17;
        is_datagram && self.ports.contains(&u16::from_be_bytes([bytes[20], bytes[21]]))
    }
}

impl Sources {
    /// Looks at the packets of those hosts, and where `calls` says so at sockets and threads: of those processes, and of all that
    /// this thread starts from now on.
    pub(super) fn open(doors: &[Door], calls: bool, pids: &[u32]) -> Result<Self> {
        let is_here = doors.iter().any(|door| door.net.is_none());
        let mut measured = Measured { is_here, ..Measured::default() };
        let (mut absent, mut captures) = (BTreeMap::new(), Vec::new());
        if calls || is_here {
            measured.without = PingPong::start().and_then(PingPong::run).unwrap_or_default();
        }
        for (host, door) in doors.iter().enumerate() {
            let capture = open(door).map_err(|error| {
                let hint = "packets need root, or a network of your own: `--on NETWORK`";
                Error::environment(format!("packets of {} cannot be seen: {error}", door.name)).hint(hint)
            })?;
            captures.push((host, capture));
        }
        let (mut sockets, mut threads) = (None, None);
        if calls {
            match SocketTrace::start() {
                Ok((mut trace, missing)) => {
                    absent.extend(missing);
                    // Which connections their sockets are is not said otherwise of those that were there before.
                    let before = connections_of(pids);
                    if !before.is_empty()
                        && let Err(why) =
                            trace.probe(&before.iter().map(|(own, other)| own.port().min(other.port())).collect())
                    {
                        absent.insert("sockets that were there before".into(), why);
                    }
                    sockets = Some(trace);
                }
                Err(why) => drop(absent.insert("sockets".into(), why)),
            }
            match ThreadTrace::start(pids, Also { receives: true, ..Also::default() }) {
                Ok((trace, missing)) => {
                    threads = Some(trace);
                    absent.extend(missing);
                }
                Err(why) => drop(absent.insert("threads".into(), why)),
            }
        }
        let mut sources = Self {
            captures,
            sockets,
            threads,
            pending: Vec::new(),
            next: 0,
            packets: 0,
            lost_packets: 0,
            records: 0,
            lost_records: 0,
            absent,
            measured,
        };
        sources.measure();
        Ok(sources)
    }

    /// Measures what a message costs while all this looks, if it was measured before without.
    fn measure(&mut self) {
        if self.measured.without.is_empty() || !self.sees_loopback() {
            return;
        }
        let Ok(probe) = PingPong::start() else { return };
        self.measured.threads.extend(probe.threads);
        self.measured.ports.extend(probe.ports);
        if let Some(trace) = &mut self.threads
            && probe.threads.iter().any(|thread| trace.follow_thread(*thread).is_err())
        {
            return;
        }
        self.measured.with.extend(probe.run().unwrap_or_default());
    }

    /// Whether what passes over this machine's loopback is looked at by any source.
    const fn sees_loopback(&self) -> bool {
        self.measured.is_here || self.sockets.is_some() || self.threads.is_some()
    }

    /// Looks no longer. What it cost programs to be looked at, measured before, at the beginning, at the end and behind it.
    pub(super) fn close(&mut self) -> Option<Cost> {
        if !self.measured.with.is_empty() {
            self.measure();
        }
        (self.captures, self.sockets, self.threads) = (Vec::new(), None, None);
        let measured = &mut self.measured;
        if !measured.with.is_empty() {
            measured.without.extend(PingPong::start().and_then(PingPong::run).unwrap_or_default());
        }
        Cost::of(&measured.without, &measured.with)
    }

    /// Whether sockets are looked at.
    pub(super) const fn has_sockets(&self) -> bool {
        self.sockets.is_some()
    }

    /// Whether threads are.
    pub(super) const fn has_threads(&self) -> bool {
        self.threads.is_some()
    }

    /// Gives what happened, in the order of time, but for the last moments; at the `end` those too.
    pub(super) fn take(&mut self, now_ns: u64, end: bool, mut give: impl FnMut(u64, Seen)) -> Result<()> {
        self.packets(end)?;
        self.events()?;
        self.pending.sort_unstable_by_key(|(at_ns, number, _)| (*at_ns, *number));
        let until = if end { u64::MAX } else { now_ns.saturating_sub(SETTLES_NS) };
        let ready = self.pending.partition_point(|(at_ns, ..)| *at_ns <= until);
        self.pending.drain(..ready).for_each(|(at_ns, _, seen)| give(at_ns, seen));
        Ok(())
    }

    fn packets(&mut self, end: bool) -> Result<()> {
        let Self { captures, pending, next, packets, lost_packets, measured, .. } = self;
        let failed = |error: std::io::Error| Error::environment(format!("packets cannot be read: {error}"));
        for (host, capture) in captures {
            let mut put = |packet: stackline_monitor::capture::Packet<'_>| {
                if measured.is_packet(packet.bytes) {
                    return;
                }
                let (outgoing, length) = (packet.outgoing, u64::from(packet.length));
                let bytes = packet.bytes.to_vec();
                pending.push((packet.at_ns, *next, Seen::Packet { host: *host, outgoing, length, bytes }));
                *next += 1;
                *packets += 1;
            };
            if end {
                capture.drain_end(&mut put).map_err(failed)?;
            } else {
                capture.read(Some(std::time::Duration::ZERO), &mut put).map_err(failed)?;
            }
            *lost_packets += capture.lost().map_err(failed)?;
        }
        Ok(())
    }

    fn events(&mut self) -> Result<()> {
        let failed = |why: String| Error::environment(format!("the kernel's trace events cannot be read: {why}"));
        let (mut sockets, mut threads) = (Vec::new(), Vec::new());
        if let Some(trace) = &mut self.sockets {
            self.lost_records += trace.drain(&mut sockets).map_err(failed)?;
        }
        if let Some(trace) = &mut self.threads {
            self.lost_records += trace.drain(&mut threads).map_err(failed)?;
        }
        let measured = &self.measured;
        sockets.retain(|event| !measured.threads.contains(&event.thread));
        threads.retain(|event| !measured.threads.contains(&event.thread));
        self.records += (sockets.len() + threads.len()) as u64;
        for event in sockets {
            self.pending.push((event.at_ns, self.next, Seen::Socket(event)));
            self.next += 1;
        }
        for event in threads {
            self.pending.push((event.at_ns, self.next, Seen::Thread(event)));
            self.next += 1;
        }
        Ok(())
    }
}

fn open(door: &Door) -> std::io::Result<Capture> {
    let options = Options { ring_bytes: RING, ..Options::default() };
    let Some((net, user)) = &door.net else { return Capture::open(&options) };
    let net = File::open(net)?;
    let user = user.as_ref().map(File::open).transpose()?;
    Capture::open_in(net.as_fd(), user.as_ref().map(|user| user.as_fd()), &options)
}
