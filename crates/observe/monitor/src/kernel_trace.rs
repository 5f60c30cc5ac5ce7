//! Trace events of TCP, through a tracefs instance of this process: retransmissions, congestion states, drops with their reasons,
//! full queues and resets, each with its exact time.
//!
//! It names the connection of an event if the kernel does, and counts events that the kernel lost. It does not decide which
//! connections are watched.

mod decode;
pub(crate) mod format;
mod instance;
pub(crate) mod pages;
mod rings;
mod undecoded;

use crate::address_pair::AddressPair;
use decode::Tracepoint;
pub(crate) use decode::{TcpEvent, TraceEvent, address_pair};
pub(crate) use format::TraceEventFormat;
pub(crate) use instance::{read_global, sweep};
pub(crate) use rings::KernelTraceRings;
use std::collections::{BTreeMap, HashMap};
pub use undecoded::UndecodedTrace;

/// Kernel memory for the records of each core, KiB.
const RING_KIB: u32 = 512;
/// The longest filter that is set, bytes: the kernel takes less than a page (4 KiB).
const LONGEST_FILTER: usize = 4_000;
/// The most sockets whose connection is kept; when there are more, all are forgotten.
const MOST_SOCKETS: usize = 1 << 16;

/// The kernel's number of a trace event, such as `raw_syscalls/sys_enter`.
pub(crate) fn tracepoint_id(name: &str) -> Result<u64, String> {
    let text = read_global(&format!("events/{name}/id"))?;
    text.trim()
        .parse()
        .map_err(|_| format!("tracefs events/{name}/id is not a number"))
}

/// An instance of the kernel's tracing with the TCP events switched on.
pub(crate) struct KernelTrace {
    rings: KernelTraceRings,
    undecoded: UndecodedTrace,
    /// The events that are switched on, by the number their records begin with.
    events: HashMap<u16, (Tracepoint, &'static str, TraceEventFormat)>,
    /// The connection of each socket, by the kernel's address of the socket.
    sockets: HashMap<u64, AddressPair>,
}

impl KernelTrace {
    /// Switches the events on. If ports are given, the kernel leaves out other connections, for events whose records have ports. The
    /// second value lists the events that this kernel lacks, with the reasons.
    pub(crate) fn start(ports: &[u16]) -> Result<(Self, BTreeMap<String, String>), String> {
        let mut trace = Self {
            rings: KernelTraceRings::create(RING_KIB)?,
            undecoded: UndecodedTrace::default(),
            events: HashMap::new(),
            sockets: HashMap::new(),
        };
        let mut absent = BTreeMap::new();
        for (tracepoint, name) in Tracepoint::ALL {
            if let Err(reason) = trace.switch_on(tracepoint, name, ports) {
                absent.insert(format!("kernel/{name}"), reason);
            }
        }
        if trace.events.is_empty() {
            Err("this kernel provides none of the required trace events".into())
        } else {
            Ok((trace, absent))
        }
    }

    fn switch_on(
        &mut self,
        tracepoint: Tracepoint,
        name: &'static str,
        ports: &[u16],
    ) -> Result<(), String> {
        let format = self.rings.format(name)?;
        self.set_filter(tracepoint, name, &format, ports)?;
        self.rings.enable(name)?;
        self.events.insert(format.id, (tracepoint, name, format));
        Ok(())
    }

    fn set_filter(
        &self,
        tracepoint: Tracepoint,
        name: &str,
        format: &TraceEventFormat,
        ports: &[u16],
    ) -> Result<(), String> {
        let no_reasons = "this kernel does not report drop reasons";
        let mut filter = tracepoint.filter(format, ports).ok_or(no_reasons)?;
        if filter.len() > LONGEST_FILTER {
            filter = tracepoint.filter(format, &[]).ok_or(no_reasons)?;
        }
        self.rings.filter(name, &filter)
    }

    /// Replaces the ports of all filters.
    pub(crate) fn set_ports(&self, ports: &[u16]) -> Result<(), String> {
        self.events
            .values()
            .try_for_each(|(tracepoint, name, format)| {
                self.set_filter(*tracepoint, name, format, ports)
            })
    }

    /// Reads the events since the last call, each with its time on the clock of events, ns. Returns how many the kernel lost.
    pub(crate) fn drain(&mut self, events: &mut Vec<(u64, TraceEvent)>) -> Result<u64, String> {
        self.rings.read(&mut self.undecoded)?;
        self.undecoded.each(|at_ns, _, record| {
            events.extend(decode(&self.events, record).map(|event| (at_ns, event)));
        });
        // Events are sorted, as each core has its own ring, and the event that names a socket's connection may be in another one.
        events.sort_by_key(|(at_ns, _)| *at_ns);
        self.name_connections(events);
        Ok(self.undecoded.lost)
    }

    /// Fills in the connections of events that name only a socket.
    fn name_connections(&mut self, events: &mut [(u64, TraceEvent)]) {
        for (_, event) in events {
            match (event.socket, event.pair) {
                (Some(socket), Some(pair)) => {
                    if self.sockets.len() >= MOST_SOCKETS {
                        self.sockets.clear();
                    }
                    self.sockets.insert(socket, pair);
                }
                (Some(socket), None) => event.pair = self.sockets.get(&socket).copied(),
                _ => {}
            }
        }
    }
}

fn decode(
    events: &HashMap<u16, (Tracepoint, &'static str, TraceEventFormat)>,
    record: &[u8],
) -> Option<TraceEvent> {
    let id = u16::from_ne_bytes(*record.first_chunk()?);
    let (tracepoint, _, format) = events.get(&id)?;
    tracepoint.decode(format, record)
}
