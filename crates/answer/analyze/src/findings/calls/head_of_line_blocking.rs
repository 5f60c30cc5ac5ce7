//! Head-of-line blocking of one connection: several streams share a connection of TCP, which gives none of them anything of what is behind a
//! lost segment (RFC 9114, 2; RFC 9293, 3.4).

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::run_record::Histogram;
use stackline_core::stack::FlowControl;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "head_of_line_blocking",
    meaning: "streams that share a connection of TCP wait for segments that others of them have lost",
    find: &[Find::Part(find)],
};

/// The least number of calls of which a median is taken.
const LEAST_CALLS: u64 = 20;
/// How many medians a call takes at least that has waited for a lost segment.
const SLOW: f64 = 1.5;
/// Confidence: that the calls beyond the median waited for lost segments is likely where segments were lost, and not proven.
const LIKELY: f64 = 0.6;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let streams = part.plan.stack.number("streams")?;
    let pairs = to_f64(streams).min(part.replicas());
    let is_over_tcp = part.plan.stack.facts.flow_control == FlowControl::KernelBuffers;
    let lost = part.retransmits().filter(|lost| *lost > 0)?;
    let calls = part.calls();
    if pairs < 2.0 || !is_over_tcp || calls.n() < LEAST_CALLS {
        return None;
    }
    let slow = SlowCalls::among(&calls)?;
    // Of the streams that wait for a lost segment, one has lost it.
    let others = (pairs - 1.0) / pairs;
    let own = (slow.beyond_ns * others / to_f64(calls.sum.max(1))).min(1.0);
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "a lost segment holds up all streams of its connection: {pairs} pairs share one, and {} of {} calls took {} more than the median of {}, most of it for what other streams had lost: {}",
        slow.calls,
        calls.n(),
        units::format_time(slow.beyond_ns / 1e9 / to_f64(slow.calls.max(1))),
        units::format_time(to_f64(slow.median_ns) / 1e9),
        part.of_its_time(own)
    );
    let figure = format!("{} retransmitted", units::counted(lost, "segment"));
    let finding = KIND
        .finding(context, share, LIKELY, sentence)
        .because(context.measurement.figure(figure));
    Some(
        finding
            .attempt_by(
                "a connection for each pair (without `streams`), which its own losses alone hold up",
                PlanChange::Unset(part.index, "streams"),
            )
            .attempt(format!("`quic(streams = {streams})` or `http3(streams = {streams})`, whose streams wait for their own losses alone")),
    )
}

/// Calls that took much longer than the median.
struct SlowCalls {
    median_ns: u64,
    calls: u64,
    /// What they took beyond the median, together.
    beyond_ns: f64,
}

impl SlowCalls {
    fn among(calls: &Histogram) -> Option<Self> {
        let half = calls.n().div_ceil(2);
        let mut before = 0;
        let (median_ns, _) = *calls.counts.iter().find(|(_, n)| {
            before += n;
            before >= half
        })?;
        let is_slow = |value: u64| to_f64(value) >= SLOW * to_f64(median_ns);
        let slow = || calls.counts.iter().filter(|(value, _)| is_slow(*value));
        Some(Self {
            median_ns,
            calls: slow().map(|(_, n)| n).sum(),
            beyond_ns: slow()
                .map(|(value, n)| to_f64(value - median_ns) * to_f64(*n))
                .sum(),
        })
    }
}
