//! Flow-control window of a protocol above the transport (HTTP/2's, RFC 9113, 5.2): of a stream, or of the connection that several streams share.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{LEAST_TRIP_S, MeasuredPart};
use crate::statistics::to_f64;
use stackline_core::stack::OptionValue;
use stackline_core::units;
use stackline_model::pipe;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "flow_control_window",
    meaning: "the flow-control window of a stream, or of the connection that streams share, is smaller than what the path holds",
    find: &[Find::Part(find)],
};

/// The rates, as shares of what a window allows in a round trip, at which the window accounts for the rate: libraries enlarge a window when a
/// part of it has been read, and each enlargement waits for what comes before it.
const ACCOUNTED: std::ops::RangeInclusive<f64> = 0.4..=1.15;

/// The window that is full first.
struct LimitingWindow {
    /// The option that sets it.
    option: &'static str,
    bytes: u64,
    /// How many pairs share it.
    pairs: f64,
    /// What all streams of the connection may have in flight, bytes.
    of_connection: f64,
}

fn limiting_window(part: &MeasuredPart<'_>) -> Option<LimitingWindow> {
    let window = |option| part.setting_bytes(option, true);
    let (stream, connection) = (window("window")?, window("connection_window")?);
    let streams = part.plan.stack.number("streams").map_or(1.0, to_f64);
    let pairs = streams.min(part.replicas());
    Some(if to_f64(stream) * pairs <= to_f64(connection) {
        LimitingWindow {
            option: "window",
            bytes: stream,
            pairs: 1.0,
            of_connection: to_f64(stream) * pairs,
        }
    } else {
        LimitingWindow {
            option: "connection_window",
            bytes: connection,
            pairs,
            of_connection: to_f64(connection),
        }
    })
}

/// Whether such a window is full before that of the transport is: then what a sender reports of its receiver's window is about this one.
pub(crate) fn is_full_first(part: &MeasuredPart<'_>) -> bool {
    let transport = part.receive_buffer();
    limiting_window(part)
        .is_some_and(|window| transport.is_none_or(|bytes| window.of_connection < to_f64(bytes)))
}

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if part.work.is_answered() {
        return None;
    }
    let window = limiting_window(part)?;
    let trip = part.round_trip_s().filter(|trip| *trip >= LEAST_TRIP_S)?;
    let lets = pipe::window_limited_bit_s(to_f64(window.bytes) / window.pairs, trip)?;
    let needed = part.bandwidth_delay_bytes()?;
    let share = (1.0 - context.measurement.fullness(part)?) * part.weight;
    let accounted = ACCOUNTED.contains(&(part.pair_bit_s() / lets));
    if share < LEAST || window.of_connection >= needed || !accounted {
        return None;
    }
    let whose = if window.option == "window" {
        "the flow-control window of the stream".to_owned()
    } else if window.pairs > 1.0 {
        format!(
            "the flow-control window of the connection, which {} streams share,",
            window.pairs
        )
    } else {
        "the flow-control window of the connection".to_owned()
    };
    let sentence = format!(
        "{whose} is smaller than what the path holds: with {} per round trip of {}, it allows {} of the path's {}",
        units::format_size(window.bytes),
        units::format_time(trip),
        units::format_rate(lets * window.pairs),
        units::format_rate(part.bottleneck_bit_s()?)
    );
    let figure = format!(
        "sent at {}; `{} = {}`",
        units::format_rate(part.rate_bit_s()),
        window.option,
        units::format_size(window.bytes)
    );
    let enough = (2.0 * needed) as u64;
    // In traced runs, the units that have waited for it.
    let waited = if window.option == "window" {
        context.measurement.rows("STREAM_RELEASED")
    } else {
        context.measurement.rows("CONNECTION_RELEASED")
    };
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.evidence(figure, &waited));
    Some(finding.attempt_by(
        format!("`{} = {}`", window.option, units::format_size(enough)),
        PlanChange::Option(part.index, window.option, OptionValue::Number(enough)),
    ))
}
