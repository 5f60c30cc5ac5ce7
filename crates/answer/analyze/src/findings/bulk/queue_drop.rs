//! Queue drops: packets that the queue before a named link drops.

use crate::findings::bulk::shared::lost_data;
use crate::findings::bulk::shared::queues;
use crate::findings::bulk::synchronised_loss;
use crate::findings::bulk::undersized_buffer;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::path::PathPort;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "queue_drop",
    meaning: "a queue drops packets: this costs time, or more than 0.1 % of the data is lost",
    find: &[
        Find::Run(in_session),
        Find::Measurement(find),
        Find::Rest(for_good),
    ],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    network::queue_drop(&KIND, log)
}

/// Drops that cost less than this share of the time are often those of one overrun at the end of slow start, in whose recovery the link
/// stays in use: of ten such findings over randomly drawn specifications four were right.
const LITTLE: f64 = 0.12;
/// The greatest confidence of such a finding.
const UNSURE: f64 = 0.5;

/// The finding about drops that cost time, unless the buffer is too small for its streams or the streams lose packets together: kinds of
/// their own report that, and explain more.
fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (place, share) = queues::find_worst_queue(context)?;
    if queues::too_small(context, place).is_some()
        || queues::detect_synchronised_loss(context, place).is_some()
    {
        return None;
    }
    let port = &context.measurement.ports[place.port];
    let holds = port.hop.queue_bytes.map_or_else(String::new, |bytes| {
        format!(" (capacity {})", units::format_size(bytes as u64))
    });
    let others = match queues::count_dropping(context) {
        0 | 1 => String::new(),
        2 => "; with the drops of another queue this".to_owned(),
        all => format!("; with the drops of {} other queues this", all - 1),
    };
    let costs = if others.is_empty() {
        ", which"
    } else {
        &others
    };
    let sentence = format!(
        "the queue before {}{holds} drops packets ({}){costs} costs {} of the time",
        port.name,
        port.reasons(),
        percent(share)
    );
    let confidence = if share < LITTLE {
        context.losses.confidence.min(UNSURE)
    } else {
        context.losses.confidence
    };
    let finding = KIND
        .finding(context, share, confidence, sentence)
        .because(context.drops(place));
    Some(queues::add_queue_advice(
        context,
        context.with_stalls(finding),
        place,
    ))
}

/// The finding about data that queues lost permanently, unless their drops are already a finding for the time that they cost.
fn for_good(context: &FindingContext<'_>, found: &[Finding]) -> Option<Finding> {
    let kinds = [KIND, undersized_buffer::KIND, synchronised_loss::KIND];
    if found
        .iter()
        .any(|finding| kinds.iter().any(|kind| kind.name == finding.kind))
    {
        return None;
    }
    let (port, finding) = lost_data::find_most_lossy_port(
        context,
        &KIND,
        "the queue before",
        PathPort::queue_drops,
        false,
    )?;
    let finding = finding.attempt(format!(
        "fewer units per second, or a longer queue before {}",
        port.name
    ));
    Some(finding.attempt(lost_data::ANOTHER_STACK))
}
