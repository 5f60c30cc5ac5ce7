//! A link: delay, losses, jitter, largest packet. Whether its ends exist is checked elsewhere.

use super::figures::{LARGEST_PACKET, delay, number, share};
use super::{queue, rate, schedule, traffic_control};
use crate::check::evaluate::{Bindings, fixed};
use crate::check::referenced_files::SpecFiles;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{DelayItem, JitterItem, LinkItem, LossItem, SpecValue};
use alloc::format;
use alloc::vec::Vec;
use stackline_core::distribution::Distribution;
use stackline_core::network::{FourStateLoss, Jitter, LossModel, NetworkLink, StepSchedule};
use stackline_core::time::Duration;

/// Least MTU, in bytes: every network with IPv4 carries packets of this size (RFC 791).
const LEAST_MTU: u64 = 68;
/// Largest number of a packet in a list of losses.
const LAST_PACKET: u64 = 1_000_000_000_000;

pub(super) fn resolve(
    item: &LinkItem,
    report: &mut DiagnosticReport,
    files: &mut SpecFiles<'_>,
) -> NetworkLink {
    let rate = rate::resolve(&item.rate, report, files);
    let (delay, delays) = delays(&item.delay, report);
    let loss = item
        .loss
        .as_ref()
        .map_or(LossModel::None, |item| loss(item, report));
    let duplicate = item.duplicate.as_ref();
    let mut link = NetworkLink {
        ends: (item.ends.0.text.clone(), item.ends.1.text.clone()),
        one_way: item.one_way,
        rate,
        delay,
        delays,
        jitter: item
            .jitter
            .as_ref()
            .and_then(|item| report.keep(jitter(item, files))),
        loss,
        duplicate: duplicate
            .and_then(|value| {
                report.keep(share(
                    value,
                    "a link cannot duplicate more than 100% of packets",
                ))
            })
            .unwrap_or_default(),
        mtu_bytes: item.mtu.as_ref().and_then(|value| report.keep(mtu(value))),
        charge: item.charge.unwrap_or_default(),
        queue: item.queue.as_ref().map(|item| queue::resolve(item, report)),
        ..NetworkLink::default()
    };
    if let Some(value) = item
        .jitter
        .as_ref()
        .and_then(|item| item.correlation.as_ref())
        && number(value) >= 100.0
    {
        report.push(traffic_control::constant(value));
    }
    traffic_control::resolve(item, &mut link, report);
    link
}

/// The delay of a link, and how it changes.
fn delays(
    item: &DelayItem,
    report: &mut DiagnosticReport,
) -> (Duration, Option<StepSchedule<Duration>>) {
    let one = |value: &SpecValue, report: &mut DiagnosticReport| {
        report.keep(delay(value, "the delay of a link"))
    };
    match item {
        DelayItem::Constant(value) => (one(value, report).unwrap_or_default(), None),
        DelayItem::Schedule(item) => {
            let begin = "specify the initial delay, as in `schedule(0 s 10 ms, ...)`";
            let delays = schedule::resolve(item, begin, report, one);
            (
                Duration::from_seconds(delays.mean(|delay| delay.seconds())),
                Some(delays),
            )
        }
    }
}

fn mtu(value: &SpecValue) -> Result<u64, Diagnostic> {
    fixed(value, "an MTU", LEAST_MTU, LARGEST_PACKET).map_err(|mistake| {
        mistake.hint("IP needs an MTU of at least 68 bytes; an IP packet has at most 65535 bytes")
    })
}

fn jitter(item: &JitterItem, files: &mut SpecFiles<'_>) -> Result<Jitter, Diagnostic> {
    let distribution = Bindings(&[]).distribution(&item.drawn, files)?;
    if let Distribution::Empirical(values) = &distribution {
        files.take_room(values.len(), item.drawn.span)?;
    }
    let correlation = item.correlation.as_ref();
    Ok(Jitter {
        distribution,
        correlation: correlation.map_or(0.0, |value| number(value).min(100.0) / 100.0),
        reorder: item.reordering,
    })
}

fn loss(item: &LossItem, report: &mut DiagnosticReport) -> LossModel {
    match item {
        LossItem::Schedule(item) => {
            let begin = "specify the initial loss, as in `schedule(0 s 0%, ...)`";
            LossModel::Schedule(schedule::resolve(item, begin, report, |step, report| {
                Some(loss(step, report))
            }))
        }
        LossItem::Share(value) => {
            let share = report.keep(share(value, "a link cannot lose more than 100% of packets"));
            share
                .filter(|share| *share > 0.0)
                .map_or(LossModel::None, LossModel::Independent)
        }
        LossItem::BitErrors(value) => {
            let share = report.keep(bit_errors(value));
            share
                .filter(|share| *share > 0.0)
                .map_or(LossModel::None, LossModel::BitErrors)
        }
        LossItem::Every(value) => report
            .keep(fixed(value, "the number after `every`", 1, LAST_PACKET))
            .map_or(LossModel::None, LossModel::Every),
        LossItem::Packets(values) => LossModel::List(packets(values, report)),
        LossItem::GilbertElliott(values) => gilbert_elliott(values, report),
        LossItem::GeModel(values) => ge_model(values, report),
        LossItem::FourStates(values) => four_states(values, report),
    }
}

fn bit_errors(value: &SpecValue) -> Result<f64, Diagnostic> {
    let share = number(value);
    if share <= 1.0 {
        return Ok(share);
    }
    let message = "a bit error rate must be between 0 and 1";
    Err(Diagnostic::error(
        value.span,
        message,
        "expected a probability such as `1e-6`",
    ))
}

/// The packet numbers of a list, which must ascend.
fn packets(values: &[SpecValue], report: &mut DiagnosticReport) -> Vec<u64> {
    let mut numbers: Vec<u64> = Vec::new();
    for value in values {
        let Some(number) = report.keep(fixed(value, "the packet number", 1, LAST_PACKET)) else {
            continue;
        };
        match numbers.last() {
            Some(last) if *last >= number => {
                let message = format!("packet {number} is listed after packet {last}");
                let diagnostic = Diagnostic::error(value.span, message, "expected a larger number");
                report.push(diagnostic.hint("write each number once, in ascending order"));
            }
            _ => numbers.push(number),
        }
    }
    numbers
}

/// A probability of a chain of states, in per cent; `otherwise` where it is not written.
fn transition(
    values: &[SpecValue],
    index: usize,
    otherwise: f64,
    report: &mut DiagnosticReport,
) -> f64 {
    let Some(value) = values.get(index) else {
        return otherwise;
    };
    let result = share(value, "a probability of a loss is above 100 per cent");
    report.keep(result).unwrap_or_default()
}

/// Gilbert-Elliott in the order and with the defaults of tc-netem(8): `gemodel p [r [1-h [1-k]]]`.
fn ge_model(values: &[SpecValue], report: &mut DiagnosticReport) -> LossModel {
    let to_bad = transition(values, 0, 0.0, report);
    LossModel::GilbertElliott {
        to_bad,
        to_good: transition(values, 1, 1.0 - to_bad, report),
        loss_bad: transition(values, 2, 1.0, report),
        loss_good: transition(values, 3, 0.0, report),
    }
}

/// The four states in the order and with the defaults of tc-netem(8): `state p13 [p31 [p32 [p23 [p14]]]]`.
fn four_states(values: &[SpecValue], report: &mut DiagnosticReport) -> LossModel {
    let p13 = transition(values, 0, 0.0, report);
    let chain = FourStateLoss {
        p13,
        p31: transition(values, 1, 1.0 - p13, report),
        p32: transition(values, 2, 0.0, report),
        p23: transition(values, 3, 1.0, report),
        p14: transition(values, 4, 0.0, report),
    };
    let sums = [
        (chain.p13 + chain.p14, [0, 4], "p13 and p14"),
        (chain.p31 + chain.p32, [1, 2], "p31 and p32"),
    ];
    for (sum, places, names) in sums {
        let last = places.into_iter().rev().find_map(|at| values.get(at));
        if let Some(value) = last.filter(|_| sum > 1.0 + 1e-9) {
            let message = format!("{names} together are above 100 per cent");
            let label = "both lead out of the same state";
            report.push(Diagnostic::error(value.span, message, label));
        }
    }
    LossModel::FourStates(chain)
}

fn gilbert_elliott(values: &[SpecValue], report: &mut DiagnosticReport) -> LossModel {
    let mut at = |index: usize, otherwise: f64| match values.get(index) {
        Some(value) => {
            let result = share(
                value,
                "a probability of `gilbert_elliott` is above 100 per cent",
            );
            report.keep(result).unwrap_or_default()
        }
        None => otherwise,
    };
    LossModel::GilbertElliott {
        to_bad: at(0, 0.0),
        to_good: at(1, 1.0),
        loss_good: at(2, 0.0),
        loss_bad: at(3, 1.0),
    }
}
