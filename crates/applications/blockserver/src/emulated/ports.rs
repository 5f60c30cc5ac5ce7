//! The use of an emulated network's ports during a session: one process watches them and writes events to a file, line by line; the process
//! that keeps the session reads the file.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_emu::client::Emulation;
use stackline_emu::engine::EmulatedPortReport;
use stackline_events::catalogue::rows::{PortSetup, PortUse};
use stackline_events::text::{TextEvent, line};
use stackline_events::{EmittedEvent, EventEmitter};
use stackline_net::{DropReason, PortCounters};
use stackline_sim::port_events::{counters_since, port_setup, port_use};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the ports are read.
const EVERY: Duration = Duration::from_millis(100);
/// How often to check whether the session is over.
const STEP: Duration = Duration::from_millis(5);
/// How long the session may take to end when it is asked to.
const ENDING: Duration = Duration::from_secs(5);
/// The keywords of the events that are written and read.
const KEYWORDS: [&str; 2] = [PortSetup::KEYWORD, PortUse::KEYWORD];

/// Watches the ports until the child has ended; on an interruption the child is ended.
pub(crate) fn until_over(
    child: &mut Child,
    emulation: &mut Emulation,
    network: &Network,
    file: &Path,
    interrupted: &AtomicBool,
) -> Result<ExitStatus> {
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot watch the ports: {error}"));
    let mut out = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(failed)?;
    let mut text = String::new();
    let mut put = |event: &EmittedEvent<'_>| add_line(&mut text, event);
    for port in (0..).take(2 * network.links.len()) {
        port_setup(network, port, now_ns(), &mut put);
    }
    let (mut before, mut last) = (read(emulation)?, now_ns());
    let mut next = Instant::now() + EVERY;
    let mut ending = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        match ending {
            None if interrupted.load(Ordering::Relaxed) => {
                ending = Some(Instant::now());
                if let Ok(pid) = i32::try_from(child.id()) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
            }
            Some(since) if since.elapsed() > ENDING => drop(child.kill()),
            _ => {}
        }
        if Instant::now() >= next {
            next += EVERY;
            let (later, now) = (read(emulation)?, now_ns());
            let mut put = |event: &EmittedEvent<'_>| add_line(&mut text, event);
            for ((port, later), before) in (0..).zip(&later).zip(&before) {
                let did = counters_since(later, before);
                if did != PortCounters::default() {
                    port_use(network, port, now, now.saturating_sub(last), &did, &mut put);
                }
            }
            out.write_all(text.as_bytes()).map_err(failed)?;
            text.clear();
            (before, last) = (later, now);
        }
        std::thread::sleep(STEP);
    }
}

fn add_line(text: &mut String, event: &EmittedEvent<'_>) {
    *text += &line(event.keyword, event.host, event.at_ns, event.values);
    text.push('\n');
}

fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

fn read(emulation: &mut Emulation) -> Result<Vec<PortCounters>> {
    Ok(emulation.report()?.ports.iter().map(counters).collect())
}

fn counters(port: &EmulatedPortReport) -> PortCounters {
    let mut counters = PortCounters {
        packets: port.packets,
        bytes: port.bytes,
        marked: port.marked,
        duplicated: port.duplicated,
        busy: port.busy,
        spoilt: port.spoilt,
        ..PortCounters::default()
    };
    for (reason, drops) in DropReason::ALL.iter().zip(&mut counters.drops) {
        let words = reason.to_string();
        *drops = port
            .drops
            .iter()
            .filter(|(known, _)| *known == words)
            .map(|(_, count)| count)
            .sum();
    }
    counters
}

/// Emits the events of a file. An incomplete last line, or a file that cannot be read, gives nothing.
pub fn emit_watched_events(file: &Path, emit: &mut EventEmitter<'_>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for event in whole.lines().filter_map(|line| TextEvent::parse(line).ok()) {
        if KEYWORDS.contains(&event.keyword.as_str()) {
            event.emit(emit);
        }
    }
}
