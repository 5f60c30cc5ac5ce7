//! What IMPs report of themselves as events of a trace: what each did since its last report, and how it is.

use crate::papers::host_messages::{ImpStatusReport, LineReport};
use crate::run_trace::SimTraceLog;
use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
use stackline_events::catalogue::rows::{ImpLine, ImpReport};
use stackline_events::{EventValue, Keyword};

static IMP_REPORT: Keyword = Keyword::new("IMP_REPORT");
static IMP_LINE: Keyword = Keyword::new("IMP_LINE");

/// What they reported last.
#[derive(Debug, Default)]
pub(crate) struct ImpLog {
    before: Option<(Instant, Vec<ImpStatusReport>)>,
}

impl ImpLog {
    /// Tells reports of all IMPs at a moment; the first is what the others begin from.
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
    log.emit(host, at, &IMP_REPORT, &data.values());
}

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
    log.emit(host, at, &IMP_LINE, &data.values());
}
