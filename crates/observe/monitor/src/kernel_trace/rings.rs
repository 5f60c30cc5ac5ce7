//! A trace instance and its rings, one for each core: switches events on, sets their filters, and reads their records.
//!
//! It counts the records that the kernel lost. It does not know what a record means.

use super::format::TraceEventFormat;
use super::instance::TraceInstance;
use super::pages::Layout;
use super::undecoded::UndecodedTrace;
use crate::clock::{monotonic_ns, monotonic_to_events_ns};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

/// The approximate size of a page of a ring, KiB.
const PAGE_KIB: u32 = 4;

/// An instance with some events switched on.
pub(crate) struct KernelTraceRings {
    /// Declared first, so that they are closed before the instance is removed.
    rings: Vec<CoreTraceRing>,
    instance: TraceInstance,
    layout: Layout,
    /// The most pages that are read of one core's ring at once, twice what it holds: events of a busy machine may come as fast as
    /// they are read. The rest waits, or is lost and counted.
    most_pages: u32,
    /// Records the kernel has lost so far.
    lost: u64,
}

/// The ring of one core.
struct CoreTraceRing {
    core: u32,
    records: File,
    stats: PathBuf,
}

impl KernelTraceRings {
    /// Creates an instance with `kib` KiB of kernel memory for each core. Its records have times of the monotonic clock.
    pub(crate) fn create(kib: u32) -> Result<Self, String> {
        let instance = TraceInstance::create()?;
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &kib.to_string())?;
        let layout = instance.read("events/header_page")?;
        let layout =
            Layout::parse(&layout).ok_or("tracefs header_page has an unexpected format")?;
        let rings = instance
            .rings()?
            .into_iter()
            .map(|(records, stats)| CoreTraceRing::new(records, stats))
            .collect();
        Ok(Self {
            rings,
            instance,
            layout,
            most_pages: 2 * kib / PAGE_KIB,
            lost: 0,
        })
    }

    /// The instance, for its other switches.
    pub(crate) fn instance(&self) -> &TraceInstance {
        &self.instance
    }

    /// The format of an event's records.
    pub(crate) fn format(&self, name: &str) -> Result<TraceEventFormat, String> {
        let text = self.instance.read(&format!("events/{name}/format"))?;
        TraceEventFormat::parse(&text).ok_or_else(|| "it has an unexpected format".into())
    }

    /// Sets the filter of an event; `0` removes it.
    pub(crate) fn filter(&self, name: &str, filter: &str) -> Result<(), String> {
        self.instance
            .write(&format!("events/{name}/filter"), filter)
    }

    /// Switches an event on.
    pub(crate) fn enable(&self, name: &str) -> Result<(), String> {
        self.instance.write(&format!("events/{name}/enable"), "1")
    }

    /// Reads the records since the last call, core by core, without decoding them.
    pub(crate) fn read(&mut self, into: &mut UndecodedTrace) -> Result<(), String> {
        into.begin(self.layout, monotonic_ns(), monotonic_to_events_ns());
        for ring in &mut self.rings {
            let mut all = false;
            for _ in 0..self.most_pages {
                match into.read_page(ring.core, |page| ring.records.read(page)) {
                    Ok(0) => all = true,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => all = true,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("tracefs trace_pipe_raw: {error}")),
                }
                if all {
                    break;
                }
            }
            into.end_core(ring.core, all);
        }
        into.lost = self.lost()?;
        Ok(())
    }

    /// How many records the kernel lost since the last call.
    fn lost(&mut self) -> Result<u64, String> {
        let mut lost = 0;
        for ring in &self.rings {
            let text = std::fs::read_to_string(&ring.stats)
                .map_err(|error| format!("tracefs stats: {error}"))?;
            lost += lost_of(&text);
        }
        let since = lost.saturating_sub(self.lost);
        self.lost = lost;
        Ok(since)
    }
}

impl CoreTraceRing {
    fn new(records: File, stats: PathBuf) -> Self {
        let name = stats.parent().and_then(|core| {
            core.file_name()?
                .to_str()?
                .strip_prefix("cpu")?
                .parse()
                .ok()
        });
        Self {
            core: name.unwrap_or(0),
            records,
            stats,
        }
    }
}

/// Records lost by one core, from its `stats`.
fn lost_of(text: &str) -> u64 {
    let lost = |line: &str| {
        let (name, count) = line.split_once(':')?;
        matches!(name, "overrun" | "commit overrun" | "dropped events")
            .then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(lost).fold(0, u64::saturating_add)
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
