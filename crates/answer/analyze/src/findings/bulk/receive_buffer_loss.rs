//! Receive buffer loss: datagrams that reached their host and were dropped there because the receive buffer of their socket was full. Known
//! from the kernel's counter, or because nothing on the path dropped the missing datagrams.

use crate::findings::bulk::receiver_limited;
use crate::findings::bulk::shared::buffer_request::SocketBufferSide;
use crate::findings::bulk::shared::lost_data::{self, MOST};
use crate::findings::change::PlanChange;
use crate::findings::finding::Finding;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, opposite_side};
use crate::statistics::to_f64;
use stackline_core::stack::OptionValue;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "receive_buffer_loss",
    meaning: "the receive buffer of a socket drops datagrams that reached its host: more than 0.1 % of the data never arrives",
    find: &[Find::Rest(find)],
};

/// Confidence if the kernel counted the drops.
const COUNTED: f64 = 0.95;
/// Confidence if the receiver is the only place left that could have dropped the datagrams.
const LEFT_OVER: f64 = 0.8;
/// The kernel's counter is read only at intervals: if it shows at least this share of the missing datagrams, it stands for all of them.
const STANDS_FOR: f64 = 0.5;

fn find(context: &FindingContext<'_>, found: &[Finding]) -> Option<Finding> {
    let measurement = &context.measurement;
    let (lost, sent) = lost_data::count_missing(measurement)?;
    let dropped: u64 = measurement
        .ports
        .iter()
        .filter(|port| measurement.is_crossed(port))
        .map(|port| port.link_drops() + port.queue_drops() + port.outage_drops)
        .sum();
    let missing = lost.saturating_sub(dropped);
    if to_f64(missing) <= MOST * to_f64(sent) {
        return None;
    }
    let part = measurement
        .parts
        .iter()
        .max_by_key(|part| lost_data::lost_of(part))?;
    let counted = counted(measurement);
    let counts = to_f64(counted.errors) >= STANDS_FOR * to_f64(missing);
    let on_known_paths = measurement.network.is_some() || is_local(part);
    let sends_units = !matches!(part.work, PartWorkload::Calls | PartWorkload::Connects);
    if !(counts || on_known_paths && sends_units) {
        return None;
    }
    let share = to_f64(missing) / to_f64(sent.max(1));
    let confidence = if counts { COUNTED } else { LEFT_OVER };
    let what = if counts {
        format!(
            "datagrams dropped because a receive buffer was full: {} (kernel counter)",
            counted.errors
        )
    } else {
        format!("{lost} of {sent} units did not arrive; links and queues dropped {dropped}")
    };
    let away = found
        .iter()
        .any(|finding| finding.kind == receiver_limited::KIND.name);
    let mut words = sentence(part, missing, sent);
    if away {
        words += "; the reader does not keep up";
    }
    let finding = KIND
        .finding(context, share, confidence, words)
        .of_units()
        .because(measurement.evidence(what, &counted.rows));
    Some(tries(finding, part, away))
}

/// Adds the advice: a reader that reads sooner or faster, and a larger buffer.
fn tries(finding: Finding, part: &MeasuredPart<'_>, away: bool) -> Finding {
    let finding = match part.work.sender().filter(|_| away) {
        Some(sender) => finding.attempt_by(
            "a reader that does less between its reads, or fewer units",
            PlanChange::NoDelays(part.index, opposite_side(sender)),
        ),
        None => finding
            .attempt("a receiver that reads faster: a dedicated core, several datagrams per call"),
    };
    let bytes = larger(part);
    let larger = format!(
        "a larger receive buffer ({})",
        SocketBufferSide::Receive.option(part, bytes)
    );
    match bytes {
        Some(bytes) => {
            let value = OptionValue::Number(bytes);
            finding.attempt_by(
                larger,
                PlanChange::Option(part.index, "receive_buffer", value),
            )
        }
        None => finding.attempt(larger),
    }
}

fn sentence(part: &MeasuredPart<'_>, missing: u64, sent: u64) -> String {
    let receiver = part.ends().map_or(part.hosts.1.as_str(), |(_, host)| host);
    let size = part
        .setting_bytes("receive_buffer", true)
        .map_or_else(String::new, |bytes| {
            format!(" of {}", units::format_size(bytes))
        });
    format!(
        "the socket's receive buffer{size} on {receiver} loses data permanently: {missing} of {sent} units ({:.1} %) reached the host, found the buffer full and were not retransmitted",
        100.0 * to_f64(missing) / to_f64(sent.max(1))
    )
}

/// The buffer size to advise, bytes: eight times the requested one. A kernel reports twice what was requested, hence the factor 4 here.
fn larger(part: &MeasuredPart<'_>) -> Option<u64> {
    part.setting_bytes("receive_buffer", true)
        .map(|memory| memory.saturating_mul(4))
}

/// Whether both ends are on this machine, without a network between them.
fn is_local(part: &MeasuredPart<'_>) -> bool {
    part.plan.from.is_none() && part.plan.to.is_none()
}

/// The datagrams that a kernel counted as dropped at full receive buffers, and the rows of the events that say so.
struct CountedDrops {
    errors: u64,
    rows: Vec<u32>,
}

/// The drops counted on the hosts of this measurement, in intervals that overlap with a counted run.
fn counted(measurement: &FindingMeasurement<'_>) -> CountedDrops {
    let log = measurement.log;
    let mut drops = CountedDrops {
        errors: 0,
        rows: Vec::new(),
    };
    for row in measurement.intervals("NETSTAT_UDP") {
        let errors = log
            .number(row, "receive_buffer_errors")
            .and_then(|errors| u64::try_from(errors).ok())
            .unwrap_or(0);
        if errors > 0 {
            drops.errors = drops.errors.saturating_add(errors);
            drops.rows.push(row);
        }
    }
    drops
}
