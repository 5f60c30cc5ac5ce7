//! Stage-limited: in a session (a run without measurements, whose units are followed through events), a stage of the units' path inside a
//! host, such as a disk, a processor or a service, is busy while units wait for it.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::between::Between;
use crate::findings::followed_units::limits::{LimitingStretch, keyword};
use crate::findings::followed_units::session::{SessionAnalysis, stretch_name};
use crate::findings::followed_units::turns::SerialTurns;
use crate::findings::kind::{Find, FindingKind};
use stackline_events::catalogue::is_work;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "stage_limited",
    meaning: "for units tracked across hosts: a stage of their path within a host (a disk, a processor, a service) is fully busy while units wait for it, and nothing waits after it",
    find: &[Find::Run(find)],
};

/// One host is named alone if it has at least this share of the limit of all hosts.
const MOSTLY: f64 = 0.6;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    // If units wait between two hosts, they are also held up before that: not a stage's fault.
    let session = log
        .session()
        .filter(|session| Between::find(log, session).is_none())?;
    if !session.is_pressed() {
        return busy(log, session);
    }
    let limit = session
        .inside
        .iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    if limit.share < LEAST {
        return None;
    }
    let (name, hosts) = (stretch_name(log, limit.from, limit.to), hosts(limit));
    let waits = if limit.has_room {
        "units wait for it there and none wait after it"
    } else {
        "units are held there"
    };
    let sentence = format!(
        "the stage {name} at {hosts} is the limit: {} of the time, {waits}",
        percent(limit.share)
    );
    let mut finding = KIND.of_run(
        limit.share.min(1.0),
        if limit.has_room { 0.9 } else { 0.7 },
        sentence,
    );
    finding.evidence = session.operations(log);
    finding.evidence.extend(session.evidence(log));
    if limit.has_room && !is_work(keyword(log, limit.to)) {
        let more = format!(
            "more or faster hardware for {name} at {hosts}: disks for reads, otherwise processors"
        );
        return Some(finding.attempt(more).attempt(
            "more memory for data that is requested repeatedly, units spread over more hosts, or fewer units requested at once",
        ));
    }
    let faster = format!("faster hardware at {hosts}, or less work there per request");
    Some(
        finding
            .attempt(faster)
            .attempt("fewer requests, each for more units"),
    )
}

/// The finding about a server that always has units, though no single stretch (path between two events) of it is the limit.
fn busy(log: &FindingEventLog<'_>, session: &SessionAnalysis) -> Option<Finding> {
    let server = session.always_busy().filter(|_| {
        session.at_limit().is_none() && SerialTurns::from_log(log, session).is_none()
    })?;
    let serves = server
        .stretches
        .iter()
        .filter(|stretch| stretch.waits_for.is_none());
    let most = serves.max_by_key(|stretch| stretch.busy_ns)?;
    let share = server.share(most.busy_ns);
    let sentence = format!(
        "{} always has units to process, and no single stage of their path is the limit; the largest share, {}, is {}",
        server.host,
        percent(share),
        stretch_name(log, most.from, most.to)
    );
    let mut finding = KIND.of_run(share.min(1.0), 0.5, sentence);
    finding.evidence = session.operations(log);
    finding.evidence.extend(session.evidence(log));
    Some(finding.attempt(format!(
        "faster hardware at {}, or less work there per request",
        server.host
    )))
}

/// The hosts that a limit is on, in words: all of them, or the one that has most of it.
fn hosts(limit: &LimitingStretch) -> String {
    let all: f64 = limit.hosts.iter().map(|(_, share)| share).sum();
    let some: Vec<&str> = match limit.hosts.first() {
        Some((host, share)) if *share >= MOSTLY * all => vec![host.as_str()],
        _ => limit
            .hosts
            .iter()
            .filter(|(_, share)| *share >= LEAST)
            .take(8)
            .map(|(host, _)| host.as_str())
            .collect(),
    };
    match some.as_slice() {
        [] => "its host".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
