//! What IMPs report of themselves as events of a trace: what each did since its last report, and how it is.

use crate::papers::host_messages::{ImpStatusReport, LineReport};
use crate::run_trace::SimTraceLog;
use stackline_core::network::Network;
use stackline_core::time::{Duration, Instant};
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
    let values = [
        interval.0,
        counts.packets.saturating_sub(last.packets),
        counts.messages.0.saturating_sub(last.messages.0),
        counts.messages.1.saturating_sub(last.messages.1),
        counts.unreachable.saturating_sub(last.unreachable),
        worked * 1_000_000 / interval.0.max(1),
        free.into(),
        promised.into(),
        all.into(),
        through.into(),
    ];
    log.emit(host, at, &IMP_REPORT, &values.map(EventValue::from));
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
    let values = [
        interval.0.into(),
        EventValue::Text(&port),
        i64::from(now.is_up).into(),
        since(now.busy.0, before.busy.0),
        since(counts.packets, last.packets),
        since(counts.bits, last.bits),
        since(counts.again, last.again),
        since(counts.refused, last.refused),
        since(counts.duplicates, last.duplicates),
        since(counts.downs, last.downs),
    ];
    log.emit(host, at, &IMP_LINE, &values);
}
