//! `stackline watch`: what this machine and its kernel do, live on a terminal, as lines in a pipe, kept as a run, or served as metrics.
//!
//! It starts no measurement; `run --trace` watches by itself.

mod secrets;
mod served_metrics;

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use served_metrics::ServedMetrics;
use stackline_core::trace_index::{HostTrace, Index, UNNAMED};
use stackline_events::{EventLog, EventRecord, text};
use stackline_monitor::snmp::{PORT, SnmpSwitch};
use stackline_monitor::{
    Config, INTERVALS, MonitorSession, Observed, WatchedConnections, WatchedPorts,
};
use stackline_redact::foreign_names::redact_foreign_name;
use stackline_redact::printable;
use stackline_report::live_table::LiveTable;
use stackline_runs::events::{SortStopSignal, Spooling, write_index};
use stackline_runs::{RunDirectory, runs_root};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write as _, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// How often it checks whether to end.
const CHECK: Duration = Duration::from_millis(20);
/// The shortest time between two takes of events.
const TAKE: Duration = Duration::from_millis(250);
/// The alternate screen, so that the text before comes back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Watches until the time is over or Ctrl-C comes; both are a normal end.
pub(crate) fn watch(flags: &flags::WatchFlags) -> Result {
    let config = config(flags)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let metrics = flags
        .listen
        .map(|address| ServedMetrics::start(address, config.interval))
        .transpose()?;
    if let Some(metrics) = &metrics {
        output::say(&format!("serving metrics at {}", metrics.url()));
    }
    let mut sink = WatchOutput::open(flags, &config.host)?;
    let (began, interval) = (Instant::now(), config.interval);
    let watch = MonitorSession::start(config);
    let mut count = 0;
    let mut add = |sink: &mut WatchOutput, log: &EventLog| {
        metrics.iter().for_each(|metrics| metrics.add(log));
        count += sink.take(log)?;
        Ok::<(), Error>(())
    };
    let mut taken = Instant::now();
    let is_over = || {
        flags
            .duration
            .is_some_and(|duration| began.elapsed() >= duration)
    };
    while !interrupted.load(Ordering::Relaxed) && !is_over() && !sink.is_closed() {
        std::thread::sleep(CHECK);
        if taken.elapsed() >= TAKE.max(interval / 2) {
            taken = Instant::now();
            add(&mut sink, &watch.take())?;
        }
    }
    let observed = watch.stop();
    let elapsed = began.elapsed();
    add(&mut sink, &observed.event_log)?;
    let kept = sink.finish(&observed)?;
    let lines = observed.lines(elapsed, interval, count);
    lines.iter().for_each(output::say);
    if let Some(path) = kept {
        output::say(&format!("kept in {path}"));
    }
    Ok(Exit::Done)
}

fn config(flags: &flags::WatchFlags) -> Result<Config> {
    if !(INTERVALS.0..=INTERVALS.1).contains(&flags.interval) {
        let what = format!(
            "--interval {:?} is not between {:?} and {:?}",
            flags.interval, INTERVALS.0, INTERVALS.1
        );
        return Err(Error::input(what).hint("the default is --interval 100ms"));
    }
    let ports: BTreeSet<u16> = flags.tcp.iter().copied().collect();
    let connections = match ports.is_empty() {
        true => WatchedConnections::All,
        false => WatchedConnections::Ports(WatchedPorts {
            local: ports.clone(),
            remote: ports,
        }),
    };
    let host = flags.host.clone().unwrap_or_else(host_name);
    let mut config = Config {
        interval: flags.interval,
        connections,
        ..Config::new(&host)
    };
    config.interfaces.clone_from(&flags.interface);
    config.system_calls = flags.system_calls;
    config.program_names = Some(redact_program);
    if !flags.snmp.is_empty() {
        let access = secrets::access(flags)?;
        let switch = |address: &String| SnmpSwitch {
            address: with_port(address),
            access: access.clone(),
        };
        config.switches = flags.snmp.iter().map(switch).collect();
    }
    Ok(config)
}

/// What is kept of a program's name, which the program itself may have set to anything.
fn redact_program(name: &str) -> String {
    printable(redact_foreign_name(name).as_bytes())
}

/// The address with the standard port where none is written: `switch1`, `192.0.2.7:1161`, `[::1]:161`, `::1`.
fn with_port(address: &str) -> String {
    let bare_six = address.parse::<std::net::Ipv6Addr>().is_ok();
    match address.rsplit_once(':') {
        _ if bare_six => format!("[{address}]:{PORT}"),
        Some((_, port)) if port.parse::<u16>().is_ok() => address.into(),
        _ => format!("{address}:{PORT}"),
    }
}

/// This machine's name.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        UNNAMED.0.into()
    } else {
        name.into()
    }
}

/// Where events go.
enum WatchOutput {
    /// Lines of the text form, or JSON, until the reader closes the pipe.
    Lines {
        json: bool,
        closed: bool,
    },
    Table(TableScreen),
    /// Nowhere else: they are served as metrics.
    Metrics,
    Directory {
        directory: Box<RunDirectory>,
        spool: Spooling,
        host: String,
    },
}

impl WatchOutput {
    fn open(flags: &flags::WatchFlags, host: &str) -> Result<Self> {
        if let Some(name) = &flags.keep {
            let directory = Box::new(RunDirectory::create(
                &runs_root(),
                name,
                SystemTime::now(),
                flags.sharing.access(),
            )?);
            let spool = Spooling::start(directory.path())?;
            return Ok(Self::Directory {
                directory,
                spool,
                host: host.into(),
            });
        }
        let redraws = stdout().is_terminal() && !output::is_dumb_terminal();
        if flags.listen.is_some() && !redraws && !flags.text && !flags.json {
            return Ok(Self::Metrics);
        }
        if flags.text || flags.json || !redraws {
            return Ok(Self::Lines {
                json: flags.json,
                closed: false,
            });
        }
        Ok(Self::Table(TableScreen::open(flags.interval)))
    }

    const fn is_closed(&self) -> bool {
        matches!(self, Self::Lines { closed: true, .. })
    }

    /// Takes events and returns their number.
    fn take(&mut self, log: &EventLog) -> Result<u64> {
        match self {
            Self::Lines { json, closed } => {
                let mut records: Vec<EventRecord<'_>> = log.records().collect();
                records.sort_by_key(|record| record.at_ns);
                let mut lines = Vec::new();
                for record in &records {
                    match json {
                        true => stackline_report::write_event_json(record, &mut lines),
                        false => {
                            text::write_line(
                                &mut lines,
                                record.keyword,
                                record.host,
                                record.at_ns,
                                &record.values,
                            );
                        }
                    }
                }
                *closed = *closed || !write_out(&lines)?;
                Ok(records.len() as u64)
            }
            Self::Table(table) => {
                let count = table.table.add(log);
                table.draw();
                Ok(count)
            }
            Self::Metrics => Ok(log.records().count() as u64),
            Self::Directory { spool, host, .. } => {
                spool.append(host, log)?;
                Ok(log.records().count() as u64)
            }
        }
    }

    /// Ends it and returns where the run was kept.
    fn finish(self, observed: &Observed) -> Result<Option<String>> {
        let Self::Directory {
            directory,
            spool,
            host,
        } = self
        else {
            return Ok(None);
        };
        let mut index = Index {
            reference: host.clone(),
            ..Index::default()
        };
        let (cost_s, absent, notes) = (
            observed.cost_s.clone(),
            observed.absent.clone(),
            observed.notes.clone(),
        );
        index.hosts.insert(
            host,
            HostTrace {
                cost_s,
                absent,
                notes,
                ..HostTrace::default()
            },
        );
        for (host, settled) in spool.settle(&SortStopSignal::default())? {
            settled.record_in(index.hosts.entry(host).or_default());
        }
        let path = directory.path().to_path_buf();
        write_index(&path, &index)?;
        directory.finish(&[], true, None)?;
        Ok(Some(path.display().to_string()))
    }
}

/// The table on this terminal's alternate screen.
struct TableScreen {
    table: LiveTable,
    began: Instant,
}

impl TableScreen {
    fn open(interval: Duration) -> Self {
        write_codes(ENTER);
        Self {
            table: LiveTable::new(interval),
            began: Instant::now(),
        }
    }

    /// Redraws it in place.
    fn draw(&self) {
        let columns = output::columns(stdout()).unwrap_or(100);
        let rows = output::rows(stdout()).unwrap_or(40);
        write_codes(&self.table.codes(self.began.elapsed(), columns, rows));
    }
}

impl Drop for TableScreen {
    fn drop(&mut self) {
        write_codes(LEAVE);
    }
}

/// Writes terminal codes without a buffer; there is nobody to report an error to when the terminal is gone.
fn write_codes(codes: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(codes.as_bytes()).and_then(|()| out.flush());
}

/// Writes to stdout; false when its reader is gone.
fn write_out(bytes: &[u8]) -> Result<bool> {
    if stdout().is_terminal() {
        return output::print(&String::from_utf8_lossy(bytes)).map(|()| true);
    }
    let mut out = stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(output::unwritten("stdout", &error)),
        Ok(()) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_has_the_standard_port_where_none_is_written() {
        for (written, meant) in [
            ("switch1", "switch1:161"),
            ("192.0.2.7:1161", "192.0.2.7:1161"),
            ("2001:db8::1", "[2001:db8::1]:161"),
            ("[2001:db8::1]:1161", "[2001:db8::1]:1161"),
        ] {
            assert_eq!(with_port(written), meant);
        }
    }
}
