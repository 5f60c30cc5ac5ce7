//! The kernel's trace events of TCP, through an instance of its tracing that is our own: exact instants of retransmissions,
//! of the sender's view of loss, of drops with their reason, of full queues and resets.
//!
//! It says which connection a record is about where the kernel does, and what was lost of the records themselves. Whose
//! connection that is, the caller decides.

mod decode;
mod format;
mod instance;
mod pages;

use crate::clock::monotonic_ns;
use decode::Event;
pub(crate) use decode::{Ends, Happened, What};
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
/// Longest filter the kernel is given: it takes less than a page.
const LONGEST_FILTER: usize = 4_000;
/// Most pages that are read of one core's ring at once, twice what it holds: records of drops are of the whole machine, and
/// may come as fast as they are read. What is left waits, or is lost and counted.
const MOST_PAGES: usize = 2 * (RING_KIB as usize) / 4;
/// Sockets whose connection is remembered; all are forgotten when there are more.
const MOST_SOCKETS: usize = 1 << 16;

/// The kernel's trace events of TCP.
pub(crate) struct Kernel {
    /// First, so that they are closed before the instance goes.
    rings: Vec<(File, PathBuf)>,
    instance: Instance,
    events: HashMap<u16, (Event, &'static str, Format)>,
    layout: Layout,
    page: Vec<u8>,
    /// Records the kernel had no room for, as told so far.
    lost: u64,
    /// The connection of each socket.
    sockets: HashMap<u64, Ends>,
}

impl Kernel {
    /// Switches them on, of connections with one of these ports where the kernel can tell, or of all when there is none. The
    /// second value is what this kernel does not tell.
    pub(crate) fn start(ports: &[u16]) -> Result<(Self, BTreeMap<String, String>), String> {
        let instance = Instance::make()?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &RING_KIB.to_string())?;
        let layout = instance.read("events/header_page")?;
        let layout = Layout::parse(&layout).ok_or("tracefs header_page is not as expected")?;
        let rings = instance.rings()?;
        let page = vec![0; layout.page];
        let mut kernel =
            Self { rings, instance, events: HashMap::new(), layout, page, lost: 0, sockets: HashMap::new() };
        let mut absent = BTreeMap::new();
        for (event, name) in Event::ALL {
            if let Err(reason) = kernel.switch_on(event, name, ports) {
                absent.insert(format!("kernel/{name}"), reason);
            }
        }
        if kernel.events.is_empty() {
            Err("this kernel has none of the trace events".into())
        } else {
            Ok((kernel, absent))
        }
    }

    fn switch_on(&mut self, event: Event, name: &'static str, ports: &[u16]) -> Result<(), String> {
        let format = self.instance.read(&format!("events/{name}/format"))?;
        let format = Format::parse(&format).ok_or("its format is not as expected")?;
        self.set_filter(event, name, &format, ports)?;
        self.instance.write(&format!("events/{name}/enable"), "1")?;
        self.events.insert(format.id, (event, name, format));
        Ok(())
    }

    fn set_filter(&self, event: Event, name: &str, format: &Format, ports: &[u16]) -> Result<(), String> {
        let useless = "this kernel does not say why it drops packets";
        let mut filter = event.filter(format, ports).ok_or(useless)?;
        if filter.len() > LONGEST_FILTER {
            filter = event.filter(format, &[]).ok_or(useless)?;
        }
        self.instance.write(&format!("events/{name}/filter"), &filter)
    }

    /// Other ports from now on.
    pub(crate) fn follow(&self, ports: &[u16]) -> Result<(), String> {
        self.events.values().try_for_each(|(event, name, format)| self.set_filter(*event, name, format, ports))
    }

    /// What was recorded since the last time, with its moment in the time of events, ns; and how many records the kernel
    /// had no room for.
    pub(crate) fn drain(&mut self, happened: &mut Vec<(u64, Happened)>) -> Result<u64, String> {
        let offset = offset();
        for (ring, _) in &mut self.rings {
            for _ in 0..MOST_PAGES {
                match ring.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(got) => {
                        for (at_ns, record) in Records::of(&self.page[..got], &self.layout) {
                            let at_ns = u64::try_from(i128::from(at_ns) + offset).unwrap_or(0);
                            happened.extend(decode(&self.events, record).map(|what| (at_ns, what)));
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("tracefs trace_pipe_raw: {error}")),
                }
            }
        }
        // Each core has a ring; sockets are known by records that may stand in another's.
        happened.sort_by_key(|(at_ns, _)| *at_ns);
        self.name_sockets(happened);
        self.lost()
    }

    /// Fills in the connections of records that only know a socket.
    fn name_sockets(&mut self, happened: &mut [(u64, Happened)]) {
        for (_, happened) in happened {
            match (happened.socket, happened.ends) {
                (Some(socket), Some(ends)) => {
                    if self.sockets.len() >= MOST_SOCKETS {
                        self.sockets.clear();
                    }
                    self.sockets.insert(socket, ends);
                }
                (Some(socket), None) => happened.ends = self.sockets.get(&socket).copied(),
                _ => {}
            }
        }
    }

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

fn decode(events: &HashMap<u16, (Event, &'static str, Format)>, record: &[u8]) -> Option<Happened> {
    let id = u16::from_ne_bytes(*record.first_chunk()?);
    let (event, _, format) = events.get(&id)?;
    event.decode(format, record)
}

/// Records a core had no room for, from its `stats`.
fn lost_of(text: &str) -> u64 {
    let of = |line: &str| {
        let (name, count) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events").then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(of).fold(0, u64::saturating_add)
}

/// What the monotonic clock, which stamps the records, is behind the time of events, ns.
fn offset() -> i128 {
    let (before, read_at, after) = (monotonic_ns(), Instant::now(), monotonic_ns());
    clock::monotonic_to_now_ns(before + (after - before) / 2, read_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lost_is_added_up() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 400\ndropped events: 2\nread events: 9\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("overrun: x\noverrun\n"), 0);
    }
}
