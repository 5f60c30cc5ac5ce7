//! Data that a link or its queue lost permanently: without retransmission it costs no time, but it is missing. Units lost elsewhere, such
//! as at a receiver's socket, are not attributed to a link. If some parts retransmit, drops cannot be attributed to missing units, so
//! nothing is reported.

use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::findings::measured::path::PathPort;
use crate::statistics::to_f64;
use stackline_core::run_record::RunRecord;

/// The greatest share of packets that real-time traffic may lose (ITU-T Y.1541, classes 0 to 4).
pub(crate) const MOST: f64 = 1e-3;

/// The units or calls of a record that never arrived; `None` if they are not counted.
fn lost_in(record: &RunRecord) -> Option<u64> {
    record
        .initiator
        .lost
        .into_iter()
        .chain(record.responder.lost)
        .reduce(u64::saturating_add)
}

/// The number of units or calls of a part that never arrived, over all runs.
pub(crate) fn lost_of(part: &MeasuredPart<'_>) -> u64 {
    part.records
        .iter()
        .filter_map(|record| lost_in(record))
        .sum()
}

/// The number of units or calls that never arrived, and of all that were sent; `None` if some part does not count them.
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

/// The port that dropped most by the count `drops`, with a finding of `kind` about the data lost permanently; `None` if at most the share
/// [`MOST`] was lost. `whose` begins the sentence (such as `the link`), `on_the_link` selects the drops shown as evidence.
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
    // Responses and fragments are dropped too, so drops are not units: the lost units are divided in proportion to drops.
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

/// Advice wherever data is lost permanently.
pub(crate) const ANOTHER_STACK: &str =
    "a stack that retransmits lost data (`tcp`, `blast`), or data that can be reconstructed (FEC)";
