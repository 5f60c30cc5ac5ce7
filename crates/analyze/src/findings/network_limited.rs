//! Network-limited: a link is full.

use super::context::Context;
use super::finding::{Finding, LEAST, percent};
use super::kind::{Find, Kind};
use super::measurement::Measurement;
use super::part::{Part, Work};
use super::path::FULL;
use crate::statistics::real;
use stackline_core::units;

pub(super) const KIND: Kind = Kind {
    name: "network_limited",
    meaning: "a link is used 90 % of the time or more",
    find: &[Find::Measurement(find)],
};

fn find(context: &Context<'_>) -> Option<Finding> {
    let measurement = &context.measurement;
    let port = measurement.fullest()?;
    let busy = measurement.busy(port);
    if busy < FULL {
        return None;
    }
    let calls = measurement.parts.iter().any(|part| part.work == Work::Calls);
    let share = if calls { waiting(measurement) } else { busy };
    if share < LEAST {
        return None;
    }
    let sentence = if calls {
        format!(
            "the link {} of {} is full ({} of the time): {} of the response time is waiting for it",
            port.name,
            port.rate(),
            percent(busy),
            percent(share)
        )
    } else {
        format!(
            "the link {} is full: {} of {} are used, by {} {}",
            port.name,
            percent(busy),
            port.rate(),
            port.streams,
            if port.streams == 1 { "stream" } else { "streams" }
        )
    };
    let figure = format!(
        "{}: {} packets, {} in {}",
        port.name,
        port.packets,
        units::size(port.bytes),
        units::time(measurement.span_s)
    );
    let finding = KIND.finding(context, share, 0.95, sentence).because(measurement.figure(figure));
    let finding = if calls {
        finding.attempt(format!("a shorter queue or an active one before {}: `queue fq_codel`", port.name))
    } else {
        finding.attempt(format!("a faster link {}, or fewer bytes: compression, caching", port.name))
    };
    Some(finding.attempt("other traffic over it at another time, or over another path"))
}

/// The share of response times beyond what the empty path takes.
fn waiting(measurement: &Measurement<'_>) -> f64 {
    let of = |part: &Part<'_>| {
        let calls = part.calls();
        let mean = real(calls.sum) / 1e9 / real(calls.n().max(1));
        let alone = part.round_trip_s().unwrap_or(mean);
        if mean > 0.0 { ((mean - alone) / mean).max(0.0) } else { 0.0 }
    };
    measurement.over_parts(of)
}
