//! Data that a link or its queue lost for good: without retransmission it costs no time, and yet it is missing. Units that
//! were lost elsewhere, at a receiver's socket for instance, are not attributed to a link. Where other parts retransmit what
//! the network drops of theirs, drops cannot be attributed, and there is no finding.

use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::findings::measured::path::PathPort;
use crate::statistics::to_f64;
use stackline_core::run_record::RunRecord;

/// What real-time traffic may lose at most (ITU-T Y.1541, classes 0 to 4).
pub(crate) const MOST: f64 = 1e-3;

/// What never arrived of a run's part; nothing where it is not counted.
fn lost_in(record: &RunRecord) -> Option<u64> {
    record
        .initiator
        .lost
        .into_iter()
        .chain(record.responder.lost)
        .reduce(u64::saturating_add)
}

/// Units, or calls, of a part that never arrived.
pub(crate) fn lost_of(part: &MeasuredPart<'_>) -> u64 {
    part.records
        .iter()
        .filter_map(|record| lost_in(record))
        .sum()
}

/// Units, or calls, that never arrived, and all that were sent; nothing where some part does not count them.
pub(crate) fn count_missing(measurement: &FindingMeasurement<'_>) -> Option<(u64, u64)> {
    let mut sum = (0_u64, 0_u64);
    for record in measurement.parts.iter().flat_map(|part| &part.records) {
        let lost = lost_in(record)?;
        let sent = record
            .initiator
            .sent_units
            .saturating_add(record.responder.sent_units);
        let all = if sent > 0 {
            sent
        } else {
            record.calls.n().saturating_add(lost)
        };
        sum = (sum.0.saturating_add(lost), sum.1.saturating_add(all));
    }
    Some(sum)
}

/// What was lost for good where `drops` counts it: the port that lost most, with a finding of that kind about it.
pub(crate) fn find_most_lossy_port<'c>(
    context: &'c FindingContext<'_>,
    kind: &FindingKind,
    whose: &str,
    drops: fn(&PathPort) -> u64,
    on_the_link: bool,
) -> Option<(&'c PathPort, Finding)> {
    let measurement = &context.measurement;
    let (lost, sent) = count_missing(measurement)?;
    let ports = || {
        measurement
            .ports
            .iter()
            .filter(|port| measurement.is_crossed(port))
    };
    let port = ports().max_by_key(|port| drops(port))?;
    let (these, all): (u64, u64) = (
        ports().map(drops).sum(),
        ports()
            .map(|p| p.link_drops() + p.queue_drops() + p.outage_drops)
            .sum(),
    );
    // Responses and fragments are dropped too: each place has its part of what was lost.
    let here = (to_f64(these) * (to_f64(lost) / to_f64(all.max(1))).min(1.0)).round();
    let share = here / to_f64(sent.max(1));
    if share <= MOST {
        return None;
    }
    let sentence = format!(
        "{whose} {} loses data permanently: {here} of {sent} units ({:.1} %), never retransmitted",
        port.name,
        100.0 * share
    );
    let what = format!(
        "{}: {}; in total, {lost} of {sent} units did not arrive",
        port.name,
        port.reasons()
    );
    let places = context
        .losses
        .places
        .iter()
        .filter(|place| place.on_the_link == on_the_link);
    let here = places.filter(|place| measurement.ports[place.port].name == port.name);
    let rows: Vec<u32> = here.flat_map(|place| place.rows.clone()).collect();
    Some((
        port,
        kind.finding(context, share, 0.95, sentence)
            .of_units()
            .because(measurement.evidence(what, &rows)),
    ))
}

/// What to try wherever data is lost for good.
pub(crate) const ANOTHER_STACK: &str =
    "a stack that retransmits lost data (`tcp`, `blast`), or data that can be reconstructed (FEC)";
