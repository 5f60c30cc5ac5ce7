//! Sender-limited: the sending host is limited by the specified pace of its interface or by the option `rate` of its stack.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::measured::path::FULL;
use crate::statistics::to_f64;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "sender_limited",
    meaning: "the sending interface is paced, or the stack sends at its specified `rate`",
    find: &[Find::Measurement(find)],
};

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let of_stack = || {
        context
            .measurement
            .parts
            .iter()
            .filter_map(|part| by_stack(context, part))
            .max_by(|a, b| a.share.total_cmp(&b.share))
    };
    by_interface(context).or_else(of_stack)
}

/// The finding about a stack that sends at the rate of its option `rate`, while the path could carry more.
fn by_stack(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let PartWorkload::Bulk(sender) = part.work else {
        return None;
    };
    let rate = to_f64(part.plan.stack.number("rate").filter(|_| part.grants())?);
    let each = part.pair_bit_s();
    let kept = (each / rate).min(1.0);
    if kept < FULL || context.measurement.is_full(part) || part.paces(sender) {
        return None;
    }
    let (host, stack) = (part.ends()?.0, &part.plan.stack.name);
    let sentence = format!(
        "the sender is the limit: the `rate` option of `{stack}` on {host} is {}, and the stack sends at that rate {}",
        units::format_rate(rate),
        part.of_its_time(kept)
    );
    let figure = format!(
        "sent at {}, as set by the `rate` option",
        units::format_rate(each)
    );
    // While the path is full, the path is the limit and not the sender.
    let share = kept.min(1.0 - context.measurement.fullness(part).unwrap_or(0.0)) * part.weight;
    let finding = KIND
        .finding(context, share, 0.95, sentence)
        .because(context.measurement.figure(figure));
    Some(finding.attempt(format!(
        "a higher `rate` for `{stack}`, if the path can take it, or no `rate`"
    )))
}

/// The finding about an interface that sends at its pace all the time.
fn by_interface(context: &FindingContext<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let port = measurement
        .ports
        .iter()
        .filter(|port| port.paced && port.streams > 0 && port.packets > 0);
    let port = port.max_by(|a, b| a.busy_s().total_cmp(&b.busy_s()))?;
    let busy = measurement.busy(port);
    // If a link is full, a sender paced to its share of it loses nothing.
    let full = measurement
        .fullest()
        .is_some_and(|port| measurement.busy(port) >= FULL);
    if busy < FULL || full {
        return None;
    }
    let host = &port.hop.ends.0;
    let sentence = format!(
        "the sender is the limit: the interface of {host} is paced to {}, and sends at that rate {} of the time",
        port.rate(),
        percent(busy)
    );
    let figure = format!(
        "{}: {} packets paced to {}",
        port.name,
        port.packets,
        port.rate()
    );
    let finding = KIND
        .finding(context, busy, 0.95, sentence)
        .because(measurement.figure(figure));
    let advice = format!("a higher `pace` for {host}, if the links beyond it can take it");
    let twice = port
        .hop
        .rate_bit_s
        .map(|rate| PlanChange::Pace(vec![host.clone()], 2.0 * rate));
    Some(match twice {
        Some(twice) => finding.attempt_by(advice, twice),
        None => finding.attempt(advice),
    })
}
