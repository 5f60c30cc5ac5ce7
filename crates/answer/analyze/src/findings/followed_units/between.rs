//! Requests of a display that wait between two hosts on the way to the server: the path between is slower than requests come. For other
//! programs it is not known which events are ends of a path between hosts.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::followed_units::session::{ALWAYS, SessionAnalysis, union_length_ns};
use crate::findings::kind::FindingKind;
use crate::lifelines::LifelinePoint;
use crate::statistics::to_f64;
use stackline_core::units;
use stackline_events::catalogue::{Layer, find};
use std::collections::BTreeMap;

/// Units wait if the median takes at least this many times as long as the fastest.
const WAITS: u64 = 3;

/// The least mean number of units there at once: fewer are gathered by a transport rather than kept waiting.
const MANY: f64 = 8.0;

/// Units that wait between two hosts.
pub(crate) struct Between<'l> {
    /// The host that they come from.
    from: &'l str,
    /// The host that they go to.
    to: &'l str,
    /// The time that the fastest took, ns.
    fastest: u64,
    /// The median time, ns.
    median: u64,
    /// The share of the session in which any unit was there.
    share: f64,
    /// The mean number of units there, while any was.
    at_once: f64,
}

impl<'l> Between<'l> {
    /// The path on which units wait nearly all the time; of several the one with the greatest median. `None` if there is none, or a port or
    /// a processor is at its limit.
    pub(crate) fn find(log: &'l FindingEventLog<'_>, session: &SessionAnalysis) -> Option<Self> {
        // A full port or a processor at its limit is a finding of its own.
        if session.at_limit().is_some() || session.full(log).is_some() {
            return None;
        }
        let lifelines = log.input.lifelines;
        let known: Vec<bool> = lifelines.points.iter().map(is_displays).collect();
        if !known.contains(&true) {
            return None;
        }
        let host = |point: u32| lifelines.points[point as usize].host.as_str();
        let mut by_hosts: BTreeMap<(&str, &str), Vec<(u64, u64)>> = BTreeMap::new();
        for line in lifelines.lines.iter().filter(|line| line.flow.is_none()) {
            let passages = lifelines.passages_of(line);
            let Some(ends) = passages.last().map(|last| host(last.point)) else {
                continue;
            };
            for pair in passages.windows(2) {
                let (from, to) = (host(pair[0].point), host(pair[1].point));
                // Only the way to the server is looked at: the last step, back to the host where the unit ends, is not.
                if from != to
                    && to != ends
                    && pair.iter().all(|passage| known[passage.point as usize])
                {
                    by_hosts
                        .entry((from, to))
                        .or_default()
                        .push((pair[0].at_ns, pair[1].at_ns.max(pair[0].at_ns)));
                }
            }
        }
        let span = session.span.length_ns();
        let made = by_hosts.into_iter().filter_map(|((from, to), stays)| {
            let mut took: Vec<u64> = stays.iter().map(|(from, to)| to - from).collect();
            took.sort_unstable();
            let (fastest, median) = (*took.first()?, took[took.len() / 2]);
            let (all, there) = (took.iter().sum::<u64>(), union_length_ns(stays));
            let at_once = to_f64(all) / to_f64(there.max(1));
            Some(Self {
                from,
                to,
                fastest,
                median,
                share: to_f64(there) / span,
                at_once,
            })
        });
        let waits = |one: &Self| {
            one.share >= ALWAYS && one.at_once >= MANY && one.median >= WAITS * one.fastest.max(1)
        };
        made.filter(waits).max_by_key(|one| one.median)
    }
}

/// Whether a lifeline point is an event of a display.
fn is_displays(point: &LifelinePoint) -> bool {
    find(&point.keyword).is_some_and(|entry| entry.layer == Layer::Display)
}

/// Whether the units are requests of a display.
pub(crate) fn is_display(log: &FindingEventLog<'_>) -> bool {
    log.input.lifelines.points.iter().any(is_displays)
}

/// The finding that the path between two hosts is the limit.
pub(crate) fn network_limited(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let between = Between::find(log, session)?;
    let time = |ns: u64| units::format_time(to_f64(ns) / 1e9);
    let seen = if session.ports.is_empty() {
        String::new()
    } else {
        format!(
            ", and no link is more than {} full",
            percent(session.used())
        )
    };
    let sentence = format!(
        "the path between {} and {} is the limit: units wait there {} of the time, typically for {}, although the fastest takes only {}{seen}",
        between.from,
        between.to,
        percent(between.share),
        time(between.median),
        time(between.fastest)
    );
    let mut finding = kind.of_run(
        between.share.min(1.0),
        if session.ports.is_empty() { 0.8 } else { 0.7 },
        sentence,
    );
    finding.evidence = session.operations(log);
    finding.evidence.extend(session.evidence(log));
    if session.ports.is_empty() {
        let faster = format!(
            "a faster link between {} and {}, or fewer bytes per unit",
            between.from, between.to
        );
        return Some(
            finding
                .attempt(faster)
                .attempt("fewer units requested at once"),
        );
    }
    let finding = finding.attempt("remove what holds back data that is ready to be sent: use a larger transport window or buffer (`receive_buffer` at the display's end, `send_buffer`), or send small messages immediately (`nodelay` of tcp)");
    Some(finding.attempt("a shorter path, or fewer units requested at once"))
}
