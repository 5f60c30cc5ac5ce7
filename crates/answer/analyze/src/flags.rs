//! Flags of a summary: warnings that a reader should know before relying on the figures. The texts are stable: programs may look
//! for them.
//!
//! [`FLAGS`] says when each is raised.
//!
//! The flags are followed by the notes of both sides. Of notes that differ only in numbers, the last run's is taken.

use crate::bimodal::is_bimodal;
use crate::cut_buffers::find_cut_buffers;
use crate::generator_lateness::is_late;
use crate::groups::{GroupRun, SummaryGroup, elapsed_s, half_width_share};
use crate::machines::on_one;
use crate::side_summary::steal_share;
use crate::summary::Summary;
use stackline_core::distribution::Distribution;
use stackline_core::plan::{Measurement, MeasurementPart, Plan, UnitCount};
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide};
use stackline_core::run_record::{Histogram, RunRecord, SideRecord};
use std::collections::BTreeSet;

/// Every flag with the condition that raises it.
pub const FLAGS: [(&str, &str); 17] = [
    (
        "overload",
        "in at least one counted run, the machine could not keep up with the network it emulated, so the figures reflect the machine, not the network; `network.emulation` has the number of runs and the reasons",
    ),
    (
        "one run",
        "only one counted run, so there is no interval over runs",
    ),
    (
        "interval from calls",
        "the interval is over calls or connections, which are not independent of each other (raised with `one run`)",
    ),
    (
        "sd>5%",
        "the standard deviation over runs is more than 5 % of the mean (`normalised_sd` above 0.05)",
    ),
    (
        "bimodal",
        "response times fall into two groups, each with at least 5 % of them, with means at least a factor of 1.5 apart and Ashman's D above 4.5; needs at least 200 calls",
    ),
    (
        "until not reached",
        "the interval is wider than `until` requires",
    ),
    (
        "time limit",
        "the time limit cut short a run with a fixed number of units",
    ),
    ("paging", "major page faults (disk access) or swapping"),
    (
        "throttled",
        "a control group that contains an agent was throttled during a measured period",
    ),
    (
        "steal",
        "the hypervisor took more than 1 % of a host's CPU time",
    ),
    (
        "core full",
        "a side used at least 98 % of its thread's core, or of all its threads' cores if `threads` sets several",
    ),
    (
        "spin on one core",
        "at the start or end of the last run, a side with `receive = spin` was on the same core of the same machine as its peer, which needs that core to send",
    ),
    ("lost data", "data units were lost"),
    (
        "late",
        "paced operations started late: p99 above 1 ms, or above 10 % of the median interval",
    ),
    (
        "generator late",
        "the generator itself began calls late, beyond what unanswered calls delayed: p99 above 100 us; response times contain it, so they are not the server's alone",
    ),
    (
        "congestion NAME",
        "a congestion control algorithm other than cubic was used, and the specification does not name it",
    ),
    (
        "cut NAME",
        "a kernel gave a socket a smaller buffer than specified; the flag names the option, the number of bytes granted and the sysctl that limits it",
    ),
];

/// The entry of [`FLAGS`] for a flag of a summary; `None` for the notes of stacks, which are sentences.
#[must_use]
pub fn meaning(flag: &str) -> Option<(&'static str, &'static str)> {
    FLAGS.into_iter().find(|(name, _)| {
        flag == *name
            || name
                .strip_suffix("NAME")
                .is_some_and(|stem| flag.starts_with(stem))
    })
}

/// Above this standard deviation over the mean, `sd>5%` is raised.
const UNEVEN: f64 = 0.05;
/// Above this share of a host's CPU time, `steal` is raised.
const STEAL: f64 = 0.01;
/// From this share of a core on, `core full` is raised.
const FULL: f64 = 0.98;
/// `late`: the limit for the 99th percentile of the lateness, seconds.
const LATE_S: f64 = 1e-3;
/// `late`: the limit as a share of the shortest median interval, if that is less.
const LATE_SHARE: f64 = 0.1;
/// The congestion control algorithm that raises no flag: the default of Linux.
const USUAL_CONGESTION: &str = "cubic";

/// All flags of one summary whose figures are set already.
pub(crate) fn flags(
    plan: &Plan,
    m: &Measurement,
    group: &SummaryGroup<'_>,
    runs: &[GroupRun<'_>],
    summary: &Summary,
) -> Vec<String> {
    if runs.is_empty() {
        return Vec::new();
    }
    let calls = summary.response_s.is_some() || summary.connect_s.is_some();
    let raised = [
        (summary.overloaded() > 0, "overload"),
        (runs.len() == 1, "one run"),
        (runs.len() == 1 && calls, "interval from calls"),
        (summary.normalised_sd.is_some_and(|sd| sd > UNEVEN), "sd>5%"),
        (two_groups(runs), "bimodal"),
        (
            !group.background() && until_missed(m, runs),
            "until not reached",
        ),
        (cut_short(group, runs), "time limit"),
        (any_side(runs, paging), "paging"),
        (any_side(runs, throttled), "throttled"),
        (
            [&summary.initiator, &summary.responder]
                .iter()
                .any(|s| s.host.as_ref().is_some_and(|h| steal_share(h) > STEAL)),
            "steal",
        ),
        (core_full(runs), "core full"),
        (spins_on_one_core(plan, group, runs), "spin on one core"),
        (summary.lost.is_some_and(|lost| lost > 0), "lost data"),
        (late(group, summary), "late"),
        (
            summary.generator_lateness_s.as_ref().is_some_and(is_late),
            "generator late",
        ),
    ];
    let raised = raised
        .iter()
        .filter(|(up, _)| *up)
        .map(|(_, flag)| (*flag).to_owned());
    raised
        .chain(once_each(congestion(group, runs)))
        .chain(once_each(cut(m, group, runs)))
        .chain(once_each(notes(runs)))
        .collect()
}

/// The notes of both sides, the last run's first, so that [`once_each`] keeps those.
fn notes(runs: &[GroupRun<'_>]) -> Vec<String> {
    runs.iter()
        .rev()
        .flat_map(GroupRun::sides)
        .flat_map(|side| side.notes.iter().cloned())
        .collect()
}

/// Removes texts that differ from an earlier one only in digits.
pub(crate) fn once_each(texts: Vec<String>) -> Vec<String> {
    let mut shapes = BTreeSet::new();
    let shape = |text: &str| {
        text.chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    texts
        .into_iter()
        .filter(|text| shapes.insert(shape(text)))
        .collect()
}

fn any_side(runs: &[GroupRun<'_>], test: fn(&SideRecord) -> bool) -> bool {
    runs.iter().flat_map(GroupRun::sides).any(test)
}

fn two_groups(runs: &[GroupRun<'_>]) -> bool {
    let calls: Vec<Histogram> = runs
        .iter()
        .map(|run| run.merged(|record| &record.calls))
        .collect();
    is_bimodal(&Histogram::merged(&calls))
}

fn until_missed(measurement: &Measurement, runs: &[GroupRun<'_>]) -> bool {
    measurement
        .until
        .is_some_and(|until| half_width_share(runs).is_none_or(|share| share > until.share))
}

/// Whether the time limit ended a measured part that has a fixed number of units. A part without a number is meant to end by the
/// limit, and background load ends with what is measured.
fn cut_short(group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> bool {
    let counted = |index| {
        group
            .part(index)
            .is_some_and(|part| !part.background && part.data.count != UnitCount::Unlimited)
    };
    runs.iter()
        .flat_map(|run| &run.records)
        .any(|record| record.limited && counted(record.part))
}

fn paging(side: &SideRecord) -> bool {
    side.usage.major_faults > 0
        || side
            .host
            .as_ref()
            .is_some_and(|host| host.swapped_pages > 0)
}

fn throttled(side: &SideRecord) -> bool {
    side.host
        .as_ref()
        .and_then(|host| host.throttled_s)
        .is_some_and(|s| s > 0.0)
}

/// Whether a side's threads used their cores fully: the thread of a single pair, or the `threads` that drive all pairs.
fn core_full(runs: &[GroupRun<'_>]) -> bool {
    let threads = |record: &RunRecord, side: &SideRecord| match side.settings.get("threads") {
        Some(threads) => threads
            .parse()
            .ok()
            .map(|threads: u32| threads.min(record.replicas)),
        None => Some(1).filter(|_| record.replicas == 1),
    };
    runs.iter().flat_map(|run| &run.records).any(|record| {
        let elapsed = elapsed_s(record);
        let full = |side: &SideRecord| {
            threads(record, side).is_some_and(|n| {
                elapsed > 0.0 && side.usage.cpu_s() >= FULL * elapsed * f64::from(n)
            })
        };
        full(&record.initiator) || full(&record.responder)
    })
}

/// Whether, in the last run, a side that spins shared a core with its peer, in a part whose sides are on one machine. The last run
/// stands for all.
fn spins_on_one_core(plan: &Plan, group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> bool {
    let spins = |side: &SideRecord| {
        side.settings
            .get("receive")
            .is_some_and(|how| how == "spin")
    };
    let together = |record: &RunRecord| {
        let cores = record.initiator.cpu.zip(record.responder.cpu);
        cores.is_some_and(|((a, b, _), (c, d, _))| a == c || b == d)
    };
    let here = |record: &RunRecord| {
        group
            .part(record.part)
            .is_some_and(|part| on_one(plan, part))
    };
    let last = runs.last().into_iter().flat_map(|run| &run.records);
    last.filter(|record| here(record))
        .any(|r| (spins(&r.initiator) || spins(&r.responder)) && together(r))
}

/// Whether paced operations started later than the limits of the flag `late` allow.
fn late(group: &SummaryGroup<'_>, summary: &Summary) -> bool {
    let Some(lateness) = summary.lateness_s else {
        return false;
    };
    let shortest = group
        .parts
        .iter()
        .flat_map(|part| intervals(part))
        .filter(|s| *s > 0.0)
        .reduce(f64::min);
    lateness.p99 > shortest.map_or(LATE_S, |interval| LATE_S.min(LATE_SHARE * interval))
}

/// The median intervals of the paced operations of a part, in seconds.
fn intervals(part: &MeasurementPart) -> Vec<f64> {
    let paces = [PairSide::Initiator, PairSide::Responder]
        .into_iter()
        .flat_map(|side| part.procedure.calls(side));
    let drawn = paces.filter_map(|call| match call {
        OperationCall::Pace(DelayArgument::Timing(index)) => part.data.timings.get(*index),
        OperationCall::Pace(DelayArgument::Drawn(distribution)) => Some(distribution),
        _ => None,
    });
    drawn.map(Distribution::median).collect()
}

/// `congestion NAME` for each side that used an algorithm other than cubic which the specification does not name.
fn congestion(group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> Vec<String> {
    let named = |index| {
        group
            .part(index)
            .is_some_and(|part| part.stack.options.contains_key("congestion"))
    };
    let records = runs
        .iter()
        .flat_map(|run| &run.records)
        .filter(|record| !named(record.part));
    let used = records
        .flat_map(|r| [&r.initiator, &r.responder])
        .filter_map(|side| side.settings.get("congestion"));
    used.filter(|name| *name != USUAL_CONGESTION)
        .map(|name| format!("congestion {name}"))
        .collect()
}

/// `cut NAME` for each buffer that is smaller than requested.
fn cut(measurement: &Measurement, group: &SummaryGroup<'_>, runs: &[GroupRun<'_>]) -> Vec<String> {
    let of = |record: &RunRecord| -> Vec<String> {
        let Some(part) = group.part(record.part) else {
            return Vec::new();
        };
        [&record.initiator, &record.responder]
            .into_iter()
            .flat_map(|side| find_cut_buffers(&part.stack, measurement.world, side))
            .map(|cut| {
                format!(
                    "cut {} to {} B by {}",
                    cut.option, cut.given_bytes, cut.sysctl
                )
            })
            .collect()
    };
    runs.iter()
        .flat_map(|run| &run.records)
        .flat_map(|record| of(record))
        .collect()
}
