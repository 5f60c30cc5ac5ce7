//! Writes the IMPs' status reports to the trace, as `IMP_REPORT` and `IMP_LINE` events: the counts since the previous report, and the
//! present state. An IMP is a packet switch of the ARPANET.

use crate::papers::host_messages::{ImpStatusReport, LineReport};
use crate::run_trace::SimTraceLog;
use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
use stackline_events::EventValue;
use stackline_events::catalogue::rows::{ImpLine, ImpReport};

/// Writes the events, each from two successive reports.
#[derive(Debug, Default)]
pub(crate) struct ImpLog {
    /// The previous reports of all IMPs, and when they were made.
    before: Option<(Instant, Vec<ImpStatusReport>)>,
}

impl ImpLog {
    /// Emits the events for the reports of all IMPs at one time. The first call emits nothing: later ones are compared with it.
    pub(crate) fn emit_reports(
        &mut self,
        log: &SimTraceLog,
        network: &Network,
        at: Instant,
        reports: Vec<ImpStatusReport>,
    ) {
        if let Some((since, before)) = &self.before {
            let interval = at.since(*since);
            if interval == Duration::ZERO {
                return;
            }
            for (number, (now, before)) in reports.iter().zip(before).enumerate() {
                // In a trace, the switches are numbered after the hosts.
                let host = network.hosts.len() + number;
                imp(log, host, at, interval, now, before);
                for (line, last) in now.lines.iter().zip(&before.lines) {
                    self::line(log, host, network, at, interval, line, last);
                }
            }
        }
        self.before = Some((at, reports));
    }
}

/// Emits the event of one IMP: its counts between two reports.
fn imp(
    log: &SimTraceLog,
    host: usize,
    at: Instant,
    interval: Duration,
    now: &ImpStatusReport,
    before: &ImpStatusReport,
) {
    let (counts, last) = (&now.counts, &before.counts);
    let worked = now.busy.0.saturating_sub(before.busy.0);
    let (free, promised, all, through) = now.buffers;
    let since = |now: u64, before: u64| EventValue::from(now.saturating_sub(before));
    let data = ImpReport {
        interval_ns: interval.0.into(),
        packets: since(counts.packets, last.packets),
        messages_sent: since(counts.messages.0, last.messages.0),
        messages_received: since(counts.messages.1, last.messages.1),
        unreachable: since(counts.unreachable, last.unreachable),
        cpu_ppm: (worked * 1_000_000 / interval.0.max(1)).into(),
        reassembly_free: free.into(),
        reassembly_promised: promised.into(),
        reassembly_all: all.into(),
        through: through.into(),
    };
    log.emit(host, at, |log, at_ns| data.write(log, at_ns));
}

/// Emits the event of one line of an IMP: its counts between two reports.
fn line(
    log: &SimTraceLog,
    host: usize,
    network: &Network,
    at: Instant,
    interval: Duration,
    now: &LineReport,
    before: &LineReport,
) {
    let (counts, last) = (&now.counts, &before.counts);
    let port = network.port_name(now.port).unwrap_or_default();
    let since = |now: u64, before: u64| EventValue::from(now.saturating_sub(before));
    let data = ImpLine {
        interval_ns: interval.0.into(),
        port: EventValue::Text(&port),
        up: i64::from(now.is_up).into(),
        busy_ns: since(now.busy.0, before.busy.0),
        packets: since(counts.packets, last.packets),
        bits: since(counts.bits, last.bits),
        again: since(counts.again, last.again),
        refused: since(counts.refused, last.refused),
        duplicates: since(counts.duplicates, last.duplicates),
        downs: since(counts.downs, last.downs),
    };
    log.emit(host, at, |log, at_ns| data.write(log, at_ns));
}
