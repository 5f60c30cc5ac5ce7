//! Retransmission stalls: waits prolonged by a retransmission of the very bytes waited for, where no record shows who dropped them.

use crate::findings::finding::{Finding, LEAST, counted, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "retransmission_stall",
    meaning: "waits include a retransmission of the awaited bytes, and no record shows where the originals were dropped",
    find: &[Find::Measurement(find)],
};

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (losses, stalls) = (&context.losses, &context.losses.stalls);
    // Retransmissions due to reordering are a finding of their own.
    if context.needless_resends.is_some() {
        return None;
    }
    let named = losses.places.iter().any(|place| place.part > 0.0);
    if named || losses.stalled < LEAST || stalls.waits == 0 {
        return None;
    }
    let each = stalls.seconds / stalls.waits as f64;
    let waits = match stalls.waits {
        1 => "1 wait includes a retransmission of the awaited bytes and takes".to_owned(),
        n => format!("{n} waits include a retransmission of the awaited bytes and take"),
    };
    let longest = match stalls.waits {
        1 => String::new(),
        _ => format!(
            ", the longest {} longer",
            units::format_time(stalls.longest_s)
        ),
    };
    let sentence = format!(
        "{waits} {} longer than usual ({} of the time in all){longest}",
        units::format_time(each),
        percent(losses.stalled)
    );
    let finding = KIND.finding(context, losses.stalled, stalls.confidence, sentence);
    let what = format!(
        "{} of awaited bytes",
        counted(stalls.rows.len() as u64, "retransmission")
    );
    Some(
        finding
            .because(context.measurement.log.evidence(what, &stalls.rows))
            .attempt("find out where packets are dropped: interfaces (`ip -s link`), switches (`stackline watch --snmp`), queues (`tc -s qdisc`)")
            .attempt("for short exchanges, a lower minimum retransmission timeout: `ip route change ... rto_min 20ms`"),
    )
}
