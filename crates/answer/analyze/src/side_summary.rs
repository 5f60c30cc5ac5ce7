//! Summarises one side (the initiators or the responders) of a group over its counted runs: sums, shares, and the last run's settings.

use crate::groups::{GroupRun, SummaryGroup, elapsed_s};
use crate::statistics::to_f64;
use crate::summary::{SideSummary, ThreadPlacement};
use stackline_core::plan::MeasurementPart;
use stackline_core::run_record::{HostUsage, RunRecord, SideRecord, TransportRecord};

/// Selects a side of a record.
pub(crate) type SideOf = fn(&RunRecord) -> &SideRecord;

/// The summary of one side.
pub(crate) fn summarise_side(
    group: &SummaryGroup<'_>,
    runs: &[GroupRun<'_>],
    side: SideOf,
) -> SideSummary {
    let mut out = SideSummary {
        host: host(runs, side),
        ..SideSummary::default()
    };
    // Pairs that share a connection use the transport together.
    let (mut replica_seconds, mut connection_seconds) = (0.0, 0.0);
    for record in runs.iter().flat_map(|run| &run.records) {
        add(&mut out, side(record));
        let pairs = record.replicas.max(1);
        let connections = group
            .part(record.part)
            .map_or(pairs, MeasurementPart::connections);
        replica_seconds += elapsed_s(record) * f64::from(pairs);
        connection_seconds += elapsed_s(record) * f64::from(connections);
    }
    let cpu = out.usage.cpu_s();
    out.cpu_share = (replica_seconds > 0.0 && cpu > 0.0).then(|| cpu / replica_seconds);
    shares(&mut out, runs, side, connection_seconds);
    out
}

fn add(out: &mut SideSummary, side: &SideRecord) {
    out.usage.add(&side.usage);
    out.received_units += side.received_units;
    out.received_bytes += side.received_bytes;
    out.sent_units += side.sent_units;
    out.sent_bytes += side.sent_bytes;
    out.settings.extend(
        side.settings
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    for (name, times) in &side.counts {
        let sum = out.counts.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*times);
    }
    out.placement = side
        .cpu
        .map(|(start, end, pinned)| ThreadPlacement { start, end, pinned })
        .or(out.placement);
    if let Some((start, stop)) = side.transport {
        let again = stop.retransmits.saturating_sub(start.retransmits);
        out.retransmits = Some(out.retransmits.unwrap_or(0) + again);
        out.transport = Some((start, stop));
    }
}

/// Sets the shares of time in which the transport was busy or limited.
fn shares(out: &mut SideSummary, runs: &[GroupRun<'_>], side: SideOf, connection_seconds: f64) {
    if out.transport.is_none() {
        return;
    }
    // Transports that do not report a time are left out of its sum; if none reports it, there is no sum.
    let spent = |get: fn(&TransportRecord) -> Option<f64>| -> Option<f64> {
        let transports = runs
            .iter()
            .flat_map(|run| &run.records)
            .filter_map(|record| side(record).transport);
        transports
            .filter_map(|(start, stop)| Some((get(&stop)? - get(&start)?).max(0.0)))
            .reduce(|a, b| a + b)
    };
    let busy = spent(|t| t.busy_s);
    let share = |time: Option<f64>, all: Option<f64>| {
        Some((time? / all.filter(|all| *all > 0.0)?).min(1.0))
    };
    let of_busy = |limited: Option<f64>| share(limited, busy);
    out.busy_share = share(busy, Some(connection_seconds));
    out.receive_window_limited_share = of_busy(spent(|t| t.receive_window_limited_s));
    out.send_buffer_limited_share = of_busy(spent(|t| t.send_buffer_limited_s));
}

/// The usage of the host, summed over runs. The parts of one run record the same host over nearly the same period, so only the
/// longest record of each run counts.
fn host(runs: &[GroupRun<'_>], side: SideOf) -> Option<HostUsage> {
    let longest = |run: &GroupRun<'_>| {
        let hosts = run
            .records
            .iter()
            .filter_map(|record| side(record).host.clone());
        hosts.max_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s))
    };
    runs.iter().filter_map(longest).reduce(sum)
}

fn sum(a: HostUsage, b: HostUsage) -> HostUsage {
    HostUsage {
        user_s: a.user_s + b.user_s,
        system_s: a.system_s + b.system_s,
        interrupt_s: a.interrupt_s + b.interrupt_s,
        steal_s: a.steal_s + b.steal_s,
        idle_s: a.idle_s + b.idle_s,
        swapped_pages: a.swapped_pages + b.swapped_pages,
        // If one value is unknown, so is the sum.
        throttled_s: a.throttled_s.zip(b.throttled_s).map(|(a, b)| a + b),
        elapsed_s: a.elapsed_s + b.elapsed_s,
        absent: a.absent.into_iter().chain(b.absent).collect(),
    }
}

/// The share of the host's CPU time that the hypervisor took (steal time).
pub(crate) fn steal_share(host: &HostUsage) -> f64 {
    let all = host.user_s + host.system_s + host.interrupt_s + host.steal_s + host.idle_s;
    if all > 0.0 { host.steal_s / all } else { 0.0 }
}

/// The sum of a count over both sides and all runs; `None` if none reports it.
pub(crate) fn sum_reported(
    runs: &[GroupRun<'_>],
    get: fn(&SideRecord) -> Option<u64>,
) -> Option<u64> {
    runs.iter()
        .flat_map(GroupRun::sides)
        .filter_map(get)
        .reduce(u64::saturating_add)
}

/// Lost units over units sent, or lost calls over calls made, in the runs that report losses.
pub(crate) fn lost_share(runs: &[GroupRun<'_>]) -> Option<f64> {
    let knowing = || {
        runs.iter()
            .filter(|run| run.sides().any(|side| side.lost.is_some()))
    };
    let sum =
        |get: fn(&SideRecord) -> u64| to_f64(knowing().flat_map(GroupRun::sides).map(get).sum());
    let (lost, sent) = (
        sum(|side| side.lost.unwrap_or(0)),
        sum(|side| side.sent_units),
    );
    let answered = to_f64(
        knowing()
            .map(|run| run.merged(|record| &record.calls).n())
            .sum(),
    );
    let all = if sent > 0.0 { sent } else { answered + lost };
    (all > 0.0).then(|| (lost / all).clamp(0.0, 1.0))
}
