//! Trace events of TCP through a trace instance of our own: retransmissions, congestion states, drops with their reasons, full
//! queues and resets, each with its exact time.
//!
//! It names the connection of an event where the kernel does, and counts events that the kernel lost. It does not decide
//! which connections are watched.

mod decode;
mod format;
mod instance;
mod pages;

use crate::address_pair::AddressPair;
use crate::clock::monotonic_ns;
use decode::Tracepoint;
pub(crate) use decode::{TcpEvent, TraceEvent};
use format::Format;
use instance::Instance;
use pages::{Layout, Records};
use stackline_events::clock;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Instant;

/// Kernel memory for each core's records, KiB.
const RING_KIB: u32 = 512;
/// The longest filter that is set: the kernel takes less than a page.
const LONGEST_FILTER: usize = 4_000;
/// Most pages that are read from one core's ring at once, twice what it holds: drops are those of the whole machine, and may
/// come as fast as they are read. The rest waits, or is lost and counted.
const MOST_PAGES: usize = 2 * (RING_KIB as usize) / 4;
/// Most sockets whose connection is kept; when there are more, all are cleared.
const MOST_SOCKETS: usize = 1 << 16;

/// The kernel's number of a trace event, such as `raw_syscalls/sys_enter`.
pub(crate) fn tracepoint_id(name: &str) -> Result<u64, String> {
    let text = instance::read_global(&format!("events/{name}/id"))?;
    text.trim().parse().map_err(|_| format!("tracefs events/{name}/id is no number"))
}

/// An instance of the kernel's tracing with the TCP events switched on.
pub(crate) struct KernelTrace {
    /// First, so that they are closed before the instance is removed.
    rings: Vec<(File, PathBuf)>,
    instance: Instance,
    events: HashMap<u16, (Tracepoint, &'static str, Format)>,
    layout: Layout,
    page: Vec<u8>,
    /// Events the kernel has lost so far.
    lost: u64,
    /// The connection of each socket.
    sockets: HashMap<u64, AddressPair>,
}

impl KernelTrace {
    /// Switches the events on. With ports, the kernel leaves out other connections where an event has ports. The second value
    /// lists the events that this kernel lacks.
    pub(crate) fn start(ports: &[u16]) -> Result<(Self, BTreeMap<String, String>), String> {
        let instance = Instance::create()?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &RING_KIB.to_string())?;
        let layout = instance.read("events/header_page")?;
        let layout = Layout::parse(&layout).ok_or("tracefs header_page is not as expected")?;
        let rings = instance.rings()?;
        let page = vec![0; layout.page];
        let mut trace =
            Self { rings, instance, events: HashMap::new(), layout, page, lost: 0, sockets: HashMap::new() };
        let mut absent = BTreeMap::new();
        for (tracepoint, name) in Tracepoint::ALL {
            if let Err(reason) = trace.switch_on(tracepoint, name, ports) {
                absent.insert(format!("kernel/{name}"), reason);
            }
        }
        if trace.events.is_empty() {
            Err("this kernel has none of the trace events".into())
        } else {
            Ok((trace, absent))
        }
    }

    fn switch_on(&mut self, tracepoint: Tracepoint, name: &'static str, ports: &[u16]) -> Result<(), String> {
        let format = self.instance.read(&format!("events/{name}/format"))?;
        let format = Format::parse(&format).ok_or("its format is not as expected")?;
        self.set_filter(tracepoint, name, &format, ports)?;
        self.instance.write(&format!("events/{name}/enable"), "1")?;
        self.events.insert(format.id, (tracepoint, name, format));
        Ok(())
    }

    fn set_filter(&self, tracepoint: Tracepoint, name: &str, format: &Format, ports: &[u16]) -> Result<(), String> {
        let no_reasons = "this kernel gives no reasons for drops";
        let mut filter = tracepoint.filter(format, ports).ok_or(no_reasons)?;
        if filter.len() > LONGEST_FILTER {
            filter = tracepoint.filter(format, &[]).ok_or(no_reasons)?;
        }
        self.instance.write(&format!("events/{name}/filter"), &filter)
    }

    /// Sets other ports from now on.
    pub(crate) fn set_ports(&self, ports: &[u16]) -> Result<(), String> {
        self.events
            .values()
            .try_for_each(|(tracepoint, name, format)| self.set_filter(*tracepoint, name, format, ports))
    }

    /// Reads the events since the last call, each with its time on the clock of events, ns. Returns how many the kernel lost.
    pub(crate) fn drain(&mut self, events: &mut Vec<(u64, TraceEvent)>) -> Result<u64, String> {
        let offset_ns = offset_ns();
        for (ring, _) in &mut self.rings {
            for _ in 0..MOST_PAGES {
                match ring.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(got) => {
                        for (at_ns, record) in Records::of(&self.page[..got], &self.layout) {
                            let at_ns = u64::try_from(i128::from(at_ns) + offset_ns).unwrap_or(0);
                            events.extend(decode(&self.events, record).map(|event| (at_ns, event)));
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("tracefs trace_pipe_raw: {error}")),
                }
            }
        }
        // Each core has a ring, and the event that names a socket's connection may be in another's.
        events.sort_by_key(|(at_ns, _)| *at_ns);
        self.name_connections(events);
        self.lost()
    }

    /// Fills in the connections of events that name a socket only.
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

    /// How many events the kernel lost since the last call.
    fn lost(&mut self) -> Result<u64, String> {
        let mut lost = 0;
        for (_, stats) in &self.rings {
            let text = std::fs::read_to_string(stats).map_err(|error| format!("tracefs stats: {error}"))?;
            lost += lost_of(&text);
        }
        let since = lost.saturating_sub(self.lost);
        self.lost = lost;
        Ok(since)
    }
}

fn decode(events: &HashMap<u16, (Tracepoint, &'static str, Format)>, record: &[u8]) -> Option<TraceEvent> {
    let id = u16::from_ne_bytes(*record.first_chunk()?);
    let (tracepoint, _, format) = events.get(&id)?;
    tracepoint.decode(format, record)
}

/// Events lost by one core, from its `stats`.
fn lost_of(text: &str) -> u64 {
    let lost = |line: &str| {
        let (name, count) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events").then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(lost).fold(0, u64::saturating_add)
}

/// How far the monotonic clock, which stamps the kernel's records, is behind the clock of events, ns.
fn offset_ns() -> i128 {
    let (before, read_at, after) = (monotonic_ns(), Instant::now(), monotonic_ns());
    clock::monotonic_to_now_ns(before + (after - before) / 2, read_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_losses_are_summed() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 400\ndropped events: 2\nread events: 9\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("overrun: x\noverrun\n"), 0);
    }
}
