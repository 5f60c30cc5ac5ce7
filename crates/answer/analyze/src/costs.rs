//! CPU time per unit of work (per GB, per call or connection): of the two sides' threads, and of their whole hosts.

use crate::groups::{GroupRun, SummaryGroup};
use crate::machines::{MachineDestination, machine, on_one};
use crate::statistics::to_f64;
use crate::summary::{CpuCost, RepeatedWork, Summary};
use stackline_core::plan::{MeasurementPart, Plan};
use stackline_core::run_record::HostUsage;

/// Least measured period for the costs of hosts, seconds: a host counts CPU time in steps of 10 ms, and a shorter period has too few
/// of them.
const LEAST_S: f64 = 0.1;
/// The key in [`Summary::absent`] for the reason why hosts have no cost.
const HOST_CPU: &str = "host_cpu";

/// The work of all runs together.
#[derive(Clone, Copy, Debug)]
struct RunWorkTotals {
    /// Gigabytes (10^9 bytes) of data units that arrived.
    gb: f64,
    /// Millions of calls, or of connections where no calls were made.
    millions: f64,
}

impl RunWorkTotals {
    fn from_runs(runs: &[GroupRun<'_>], work: Option<RepeatedWork>) -> Self {
        let gb = to_f64(runs.iter().map(GroupRun::bytes).sum()) / 1e9;
        let times = work.map_or(0, |work| runs.iter().map(|run| run.times(work)).sum());
        Self {
            gb,
            millions: to_f64(times) / 1e6,
        }
    }
}

/// Sets all costs of a summary whose sides are set already. A cost is absent if no CPU time or no work was recorded.
pub(crate) fn costs(
    plan: &Plan,
    group: &SummaryGroup<'_>,
    summary: &mut Summary,
    runs: &[GroupRun<'_>],
) {
    let done = RunWorkTotals::from_runs(runs, summary.rate_of);
    let (initiator, responder) = (
        summary.initiator.usage.cpu_s(),
        summary.responder.usage.cpu_s(),
    );
    let sides = CpuCost {
        both: initiator + responder,
        initiator,
        responder,
    };
    (summary.cpu_s_per_gb, summary.cpu_us_per_call) =
        (per(&sides, done.gb), per(&sides, done.millions));
    if done.gb <= 0.0 && done.millions <= 0.0 {
        return;
    }
    match of_hosts(plan, group, summary, runs) {
        Ok(hosts) => {
            (summary.host_cpu_s_per_gb, summary.host_cpu_us_per_call) =
                (per(&hosts, done.gb), per(&hosts, done.millions));
        }
        Err(reason) => _ = summary.absent.insert(HOST_CPU.to_owned(), reason),
    }
}

/// CPU seconds per unit of `work`; with `work` in millions, microseconds per unit. `None` if there is no work or no CPU time.
fn per(cpu: &CpuCost, work: f64) -> Option<CpuCost> {
    (work > 0.0 && cpu.both > 0.0).then(|| CpuCost {
        both: cpu.both / work,
        initiator: cpu.initiator / work,
        responder: cpu.responder / work,
    })
}

/// CPU seconds of the hosts in all runs; if both sides are on one machine, it counts once. Else the reason why it is not known.
fn of_hosts(
    plan: &Plan,
    group: &SummaryGroup<'_>,
    summary: &Summary,
    runs: &[GroupRun<'_>],
) -> Result<CpuCost, String> {
    let several = |of: fn(&MeasurementPart) -> Option<&str>| {
        let machines: Vec<MachineDestination<'_>> = group
            .parts
            .iter()
            .map(|part| machine(plan, of(part)))
            .collect();
        machines.windows(2).any(|pair| pair[0] != pair[1])
    };
    if several(|part| part.from.as_deref()) || several(|part| part.to.as_deref()) {
        return Err("the parts ran on different hosts".to_owned());
    }
    let known = |run: &GroupRun<'_>| {
        let records = || run.records.iter();
        records().any(|r| r.initiator.host.is_some())
            && records().any(|r| r.responder.host.is_some())
    };
    let hosts = summary
        .initiator
        .host
        .as_ref()
        .zip(summary.responder.host.as_ref());
    let (initiator, responder) = hosts
        .filter(|_| runs.iter().all(known))
        .ok_or_else(|| "the CPU time of a host is unknown for some runs".to_owned())?;
    let period = initiator.elapsed_s.min(responder.elapsed_s) / to_f64(runs.len().max(1) as u64);
    if period < LEAST_S {
        let units = stackline_core::units::format_time(period);
        return Err(format!(
            "a run lasted {units}, but hosts count CPU time in steps of 10 ms"
        ));
    }
    let (of_initiator, of_responder) = (busy_s(initiator), busy_s(responder));
    let one = group.parts.first().is_some_and(|part| on_one(plan, part));
    let longer = if initiator.elapsed_s >= responder.elapsed_s {
        of_initiator
    } else {
        of_responder
    };
    let both = if one {
        longer
    } else {
        of_initiator + of_responder
    };
    Ok(CpuCost {
        both,
        initiator: of_initiator,
        responder: of_responder,
    })
}

fn busy_s(host: &HostUsage) -> f64 {
    host.user_s + host.system_s + host.interrupt_s
}
