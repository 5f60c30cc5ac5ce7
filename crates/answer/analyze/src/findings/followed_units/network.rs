//! What limits a session beyond its servers: a queue that drops, a link that loses, a full link, the receiver, a window, a buffer. A
//! session is a run without measurements, whose units are followed through events; servers are the hosts that units come back from. There
//! is one function for each kind of finding.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Evidence, Finding, LEAST, counted, percent};
use crate::findings::followed_units::left_over::is_known;
use crate::findings::followed_units::monitored::PortSeen;
use crate::findings::followed_units::session::SessionAnalysis;
use crate::findings::followed_units::transport::TransportSeen;
use crate::findings::kind::FindingKind;
use crate::findings::measured::path::FULL;
use crate::statistics::to_f64;
use stackline_core::units;

/// The least share of the time that a window or a buffer must limit senders to be the cause.
const HOLDS: f64 = 0.2;
/// A link that is busy for at least this share of the time is nearly full: with losses at its own queue it cannot carry more (see
/// `path::FULL`).
const NEARLY: f64 = FULL - 0.05;

/// A session and the kind of finding that is reported about it.
struct SessionReport<'l, 'c> {
    kind: &'l FindingKind,
    log: &'l FindingEventLog<'c>,
    session: &'l SessionAnalysis,
}

impl<'l, 'c> SessionReport<'l, 'c> {
    /// The session if it is pressed (see [`SessionAnalysis::is_pressed`]), and the share of the time that something beyond its servers
    /// limited it; `None` if that is less than [`LEAST`].
    fn of_pressed(kind: &'l FindingKind, log: &'l FindingEventLog<'c>) -> Option<(Self, f64)> {
        let session = log.session().filter(|session| session.is_pressed())?;
        let share = session.beyond_share();
        (share >= LEAST).then_some((Self { kind, log, session }, share))
    }

    /// A finding with this share and confidence and evidence of connections, ports and units; `None` if the share is less than [`LEAST`].
    fn finding(&self, share: f64, sure: f64, sentence: String) -> Option<Finding> {
        if share < LEAST {
            return None;
        }
        let (log, session) = (self.log, self.session);
        let mut finding = self.kind.of_run(share.min(1.0), sure, sentence);
        if let Some(seen) = &session.transport {
            finding.evidence.push(log.evidence(held(seen), &seen.rows));
        }
        let ports = session
            .ports
            .iter()
            .filter(|port| port.rate_bit_s.is_some());
        let mut ports: Vec<&PortSeen> = ports.collect();
        ports.sort_by(|a, b| b.busy.total_cmp(&a.busy));
        finding
            .evidence
            .extend(ports.iter().take(3).map(|port| carried(log, port)));
        finding.evidence.extend(session.evidence(log));
        Some(finding)
    }
}

/// What limited the servers' connections, in words.
fn held(seen: &TransportSeen) -> String {
    format!(
        "{}: the receiver's window held the sender back {} of the time, the send buffer {}, and received data lay unread {}; {} retransmitted",
        counted(seen.connections as u64, "connection"),
        percent(seen.window),
        percent(seen.send_buffer),
        percent(seen.unread),
        counted(seen.retransmits, "segment")
    )
}

/// Evidence of how busy a port was and what it dropped.
fn carried(log: &FindingEventLog<'_>, port: &PortSeen) -> Evidence {
    let rate = port
        .rate_bit_s
        .map_or_else(|| "unlimited".into(), units::format_rate);
    log.evidence(
        format!(
            "{}: {} of {rate} used{}",
            port.name,
            percent(port.busy),
            dropped(port)
        ),
        &port.rows,
    )
}

/// What a port dropped, in words: `, 12 cells dropped, 3 frames damaged`; empty if nothing was.
fn dropped(port: &PortSeen) -> String {
    let what = if port.cell_bytes.is_some() {
        "cell"
    } else {
        "packet"
    };
    let part = |n: u64, text: String| {
        if n > 0 {
            format!(", {text}")
        } else {
            String::new()
        }
    };
    part(
        port.queue_drops,
        format!("{} dropped", counted(port.queue_drops, what)),
    ) + &part(
        port.losses,
        format!("{} lost on the link", counted(port.losses, what)),
    ) + &part(
        port.spoilt,
        format!("{} damaged", counted(port.spoilt, "frame")),
    )
}

/// How many packets (or frames, if the port transmits cells) were missing because of its queue and because of its link.
fn gone(port: &PortSeen) -> (f64, f64) {
    let all = to_f64((port.queue_drops + port.losses).max(1));
    let frames = if port.cell_bytes.is_some() {
        to_f64(port.spoilt)
    } else {
        to_f64(port.queue_drops + port.losses)
    };
    (
        frames * to_f64(port.queue_drops) / all,
        frames * to_f64(port.losses) / all,
    )
}

/// The port with most losses of one kind, selected by `of` from [`gone`] (queue, link), and the share of the time that all losses of this
/// kind cost.
fn losses(session: &SessionAnalysis, of: fn((f64, f64)) -> f64) -> Option<(&PortSeen, f64)> {
    let all: f64 = session
        .ports
        .iter()
        .map(|port| gone(port).0 + gone(port).1)
        .sum();
    let these: f64 = session.ports.iter().map(|port| of(gone(port))).sum();
    let worst = session
        .ports
        .iter()
        .max_by(|a, b| of(gone(a)).total_cmp(&of(gone(b))))?;
    (these > 0.0).then(|| (worst, session.free_to_send() * these / all))
}

/// The finding about a queue that drops too much.
pub(crate) fn queue_drop(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    let (port, part) = losses(session, |(queue, _)| queue)?;
    let holds = port.holds_bytes.map_or_else(String::new, |bytes| {
        format!(" (capacity {})", units::format_size(bytes))
    });
    let again =
        session
            .resending
            .filter(|_| !session.loses())
            .map_or_else(String::new, |resending| {
                format!(
                    ", {} of that time for retransmissions",
                    percent(resending / share.max(resending).max(f64::MIN_POSITIVE))
                )
            });
    let sentence = format!(
        "the queue before {}{holds} drops too much{}: {}{again}, while {} of the link is used",
        port.name,
        dropped(port),
        session.costs(share),
        percent(port.busy)
    );
    let finding = report.finding(share * part, 0.9, sentence)?;
    let seen = session.transport.as_ref();
    let needs = seen.map_or(0, |seen| {
        seen.connections as u64 * seen.in_flight_bytes.max(2 * seen.segment_bytes)
    });
    let more = if needs > port.holds_bytes.unwrap_or(u64::MAX) {
        format!(
            "a queue of {} before {}, to hold what its connections have in flight at once",
            units::format_size(needs),
            port.name
        )
    } else {
        format!("a larger queue before {}", port.name)
    };
    let pace = if session.loses() {
        "paced senders (`--pace` of blocks), fewer units in a list, or a transport that retransmits"
    } else {
        "paced senders (`pace` of the host), or fewer units at once"
    };
    let finding = finding.attempt(more).attempt(pace);
    Some(if port.cell_bytes.is_some() {
        finding.attempt(
            "dropping whole frames instead of single cells (`early_packet_discard` of the switch)",
        )
    } else {
        finding
    })
}

/// The finding about a link that loses packets.
pub(crate) fn link_loss(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    let (port, part) = losses(session, |(_, link)| link)?;
    let rate = 100.0 * to_f64(port.losses) / to_f64(port.packets.max(1));
    let sentence = format!(
        "the link {} loses packets ({} of {}, {rate:.2} %): {}, while {} of the link is used",
        port.name,
        port.losses,
        port.packets,
        session.costs(share),
        percent(port.busy)
    );
    let finding = report.finding(share * part, 0.9, sentence)?;
    Some(finding.attempt(format!(
        "repair the link {} (cable, radio, interface errors)",
        port.name
    )))
}

/// The finding about a full link; or, if neither ports nor connections were monitored, that either the network or the receiver is the
/// limit.
pub(crate) fn network_limited(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    if let Some(found) = full(kind, log) {
        return Some(found);
    }
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    if let Some(port) = session.fullest().filter(|port| port.busy >= NEARLY) {
        let rate = port.rate_bit_s.map_or_else(String::new, units::format_rate);
        let sentence = format!(
            "the link {} is full: {} of {rate} is used{}, and {}",
            port.name,
            percent(port.busy),
            dropped(port),
            session.costs(share)
        );
        let finding = report.finding(share * port.busy, 0.95, sentence)?;
        let faster = format!(
            "a faster link {}, or fewer bytes: compression, caching, fewer units in a list",
            port.name
        );
        return Some(finding.attempt(faster));
    }
    if session.transport.is_some() || !session.ports.is_empty() {
        return None;
    }
    let sentence = format!(
        "the network or the receiver is the limit (the events do not show which): {}",
        session.costs(share)
    );
    let finding = report.finding(share, 0.6, sentence)?;
    Some(finding.attempt(
        "`--across SPEC` models the network and shows which port, link or end is responsible",
    ))
}

/// The finding about a full link in a session that is not pressed.
fn full(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session().filter(|session| !session.is_pressed())?;
    let port = session.full(log)?;
    let rate = port.rate_bit_s.map_or_else(String::new, units::format_rate);
    let sentence = format!(
        "the link {} is full: {} of {rate} is used",
        port.name,
        percent(port.busy)
    );
    let finding = SessionReport { kind, log, session }.finding(port.busy, 0.9, sentence)?;
    Some(finding.attempt(format!(
        "a faster link {}, or fewer bytes per request or answer",
        port.name
    )))
}

/// The finding about a receiving application that does not read what has arrived.
pub(crate) fn receiver_limited(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    if session.transport.is_none() {
        return by_ports(&report, share);
    }
    let seen = session
        .transport
        .as_ref()
        .filter(|seen| seen.unread >= HOLDS)?;
    let sentence = format!(
        "the receiver is the limit: received data lies unread {} of the time, its window holds servers back {}, and no link is more than {} full",
        percent(seen.unread),
        percent(seen.window),
        percent(session.used())
    );
    let part = seen.window.max(seen.unread) * (1.0 - session.used());
    let finding = report.finding(share * part, 0.95, sentence)?;
    let finding = finding
        .attempt("make the application read in a separate thread, or do less between its reads");
    Some(finding.attempt("request fewer units: a larger receive buffer would only delay them"))
}

/// The finding about the receiver where no monitor saw connections: ports drop nothing, and no link is full.
fn by_ports(report: &SessionReport<'_, '_>, share: f64) -> Option<Finding> {
    let session = report.session;
    let gone = session
        .ports
        .iter()
        .any(|port| port.queue_drops + port.losses + port.spoilt > 0);
    if session.ports.is_empty() || gone || session.used() >= NEARLY {
        return None;
    }
    let sentence = format!(
        "the receiver or its window is the limit: {}, no link is more than {} full, and no port drops anything",
        session.costs(share),
        percent(session.used())
    );
    let finding = report.finding(share * (1.0 - session.used()), 0.7, sentence)?;
    let finding = finding
        .attempt("make the application read in a separate thread, or do less between its reads");
    Some(finding.attempt(
        "larger buffers where the round trip is long (`--receive-buffer`, `--send-buffer`)",
    ))
}

/// The finding about a receiver's window that is too small for the path, although received data is read.
pub(crate) fn window_below_bdp(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    let seen = session
        .transport
        .as_ref()
        .filter(|seen| seen.window >= HOLDS && seen.unread < HOLDS)?;
    let sentence = format!(
        "the receiver's window holds servers back {} of the time, although received data is read promptly: at most {} can be in flight in a round trip of {}",
        percent(seen.window),
        units::format_size(seen.in_flight_bytes),
        trip(seen)
    );
    let finding = report.finding(share * seen.window * (1.0 - session.used()), 0.9, sentence)?;
    Some(finding.attempt(
        "a larger receive buffer at the client (`--receive-buffer`, `tcp(receive_buffer = ...)`)",
    ))
}

/// The finding about a send buffer that is too small for the path.
pub(crate) fn socket_buffer(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let (report, share) = SessionReport::of_pressed(kind, log)?;
    let session = report.session;
    let seen = session
        .transport
        .as_ref()
        .filter(|seen| seen.send_buffer >= HOLDS && seen.unread < HOLDS)?;
    let sentence = format!(
        "the servers' send buffers limit them {} of the time: at most {} can be in flight in a round trip of {}",
        percent(seen.send_buffer),
        units::format_size(seen.in_flight_bytes),
        trip(seen)
    );
    let finding = report.finding(
        share * seen.send_buffer * (1.0 - session.used()),
        0.9,
        sentence,
    )?;
    Some(finding.attempt("larger send buffers at the servers (`--send-buffer`, `tcp(send_buffer = ...)`); data in them can no longer be superseded"))
}

/// The longest round trip of the connections, in words.
fn trip(seen: &TransportSeen) -> String {
    units::format_time(to_f64(seen.round_trip_ns) / 1e9)
}

/// The finding that nothing is at its limit; `None` if it is known what takes the time.
pub(crate) fn healthy(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session().filter(|session| !is_known(log, session))?;
    let idle: Vec<f64> = session
        .servers()
        .map(|server| server.share(server.idle_ns))
        .collect();
    let least = idle.iter().copied().fold(1.0, f64::min);
    // If units are in flight all the time, something must be the limit, though it is unknown.
    let waits = session.is_waited_for(log);
    let (what, sure) = if waits {
        (
            "the limit is unknown, although units are in flight all the time",
            0.5,
        )
    } else {
        ("nothing is at its limit", 0.95)
    };
    let sentence = format!(
        "{what}: {} of {} units arrived, and each server was idle at least {} of the time",
        session.arrived,
        session.arrived + session.flushed + session.lost,
        percent(least)
    );
    let mut finding = kind.of_run(0.0, sure, sentence);
    finding.evidence = session.evidence(log);
    if waits {
        finding
            .evidence
            .extend(session.busiest().map(|processor| processor.evidence(log)));
        finding
            .evidence
            .extend(session.fullest().map(|port| carried(log, port)));
    }
    Some(finding)
}
