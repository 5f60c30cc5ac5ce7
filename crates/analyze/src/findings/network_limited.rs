//! Network-limited: a link is full.

use super::context::{Context, percent};
use super::measurement::{Measurement, Part, Work};
use super::{Finding, Kind, LEAST};
use crate::statistics::real;
use stackline_core::units;

/// From this share of the time on, a link is full: what a sawtooth leaves of one with half a buffer (Villamizar and Song
/// 1994: 7/8 for Reno without, more with one).
pub(crate) const FULL: f64 = 0.9;

pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
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
    let finding = context.finding(Kind::NetworkLimited, share, 0.95, sentence).because(measurement.figure(figure));
    let finding = if calls {
        finding.attempt(format!("a shorter queue or an active one before {}: `queue fq_codel`", port.name))
    } else {
        finding.attempt(format!("a faster link {}, or fewer bytes: compression, caching", port.name))
    };
    Some(finding.attempt("what else goes over it at another time or another way"))
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
