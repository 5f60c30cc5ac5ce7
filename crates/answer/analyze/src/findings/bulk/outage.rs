//! Outage: a link that carries nothing for some time.

use crate::findings::bulk::shared::lost_data;
use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::link_outages::LinkOutage;
use crate::statistics::to_f64;
use stackline_core::time::Duration;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "outage",
    meaning: "a link carries nothing for some time because its rate is 0, it loses everything, or a host is down",
    find: &[Find::Measurement(find), Find::Rest(for_good)],
};

/// Confidence if events show the waits.
const SEEN: f64 = 0.95;
/// Confidence without events, where the cost is computed from the specification and the records.
const UNSEEN: f64 = 0.75;

fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (measurement, costs) = (&context.measurement, &context.outages);
    if costs.share < LEAST {
        return None;
    }
    let cost = |outage: &&LinkOutage| costs.places.get(&outage.place).copied().unwrap_or(0.0);
    let outages = measurement.outages.iter();
    let worst = outages.max_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let sentence = format!(
        "the link {} {}, which costs {} of the time",
        worst.place,
        worst.words(longest(context)),
        percent(costs.share)
    );
    let rows = costs.rows.get(&worst.place).map_or(&[][..], Vec::as_slice);
    let what = format!(
        "nothing got through for {} of the time",
        percent(costs.share)
    );
    let sure = if costs.seen { SEEN } else { UNSEEN };
    let finding = KIND
        .finding(context, costs.share, sure, sentence)
        .because(measurement.evidence(what, rows));
    Some(attempt(finding, worst))
}

/// The finding about data dropped during an outage and never retransmitted.
fn for_good(context: &FindingContext<'_>, found: &[Finding]) -> Option<Finding> {
    let measurement = &context.measurement;
    if found
        .iter()
        .any(|finding| finding.kind == KIND.name && finding.share >= LEAST)
    {
        return None;
    }
    let (lost, sent) = lost_data::count_missing(measurement)?;
    let dropped = |outage: &LinkOutage| {
        let rows = measurement.rows("NET_DROP").into_iter();
        rows.filter(|row| measurement.is_in_outage(*row, outage))
            .collect::<Vec<u32>>()
    };
    let each = measurement
        .outages
        .iter()
        .map(|outage| (outage, dropped(outage)));
    let (outage, rows) = each.max_by_key(|(_, rows)| rows.len())?;
    let here = lost.min(rows.len() as u64);
    let share = to_f64(here) / to_f64(sent.max(1));
    if share <= lost_data::MOST {
        return None;
    }
    let sentence = format!(
        "the link {} {}: {here} of {sent} units ({:.1} %) lost and never retransmitted",
        outage.place,
        outage.words(longest(context)),
        100.0 * share
    );
    let what = format!("packets dropped during the outage: {}", rows.len());
    let finding = KIND
        .finding(context, share, SEEN, sentence)
        .of_units()
        .because(measurement.evidence(what, &rows));
    Some(attempt(finding, outage).attempt(lost_data::ANOTHER_STACK))
}

fn attempt(finding: Finding, outage: &LinkOutage) -> Finding {
    finding.attempt_by(
        format!(
            "keep the link {} up, or add a second path in parallel",
            outage.place
        ),
        PlanChange::NoOutage(outage.ends.clone()),
    )
}

/// The end of the longest run, as time since its network began: later outages do not matter.
fn longest(context: &FindingContext<'_>) -> Duration {
    let measurement = &context.measurement;
    let of = |part: &crate::findings::measured::part::MeasuredPart<'_>| {
        let ends = part.records.iter().map(|record| {
            let begins = measurement.clock_begins(part.index, record.run);
            begins.0.saturating_add(record.elapsed_ns)
        });
        ends.max().unwrap_or(0)
    };
    Duration(measurement.parts.iter().map(of).max().unwrap_or(0))
}
