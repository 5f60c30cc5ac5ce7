//! Sessions: a session is a run without measurements, whose data units are followed over several hosts through the events of its programs
//! (the events of one unit are its lifeline). The analysis shows where the units' time went, host by host, and what ports and connections
//! did meanwhile.
//!
//! A session is *pressed* if a twentieth of its units was given up or lost, or something limited it nearly all the time. The code knows no
//! keywords of particular programs, only those of monitors and `PORT_SETUP`.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Evidence, Finding, percent};
use crate::findings::followed_units::limits::{LimitingStretch, answering, keyword, limiting};
use crate::findings::followed_units::monitored::{
    PortSeen, ProcessorSeen, SessionSpan, ports, processors,
};
use crate::findings::followed_units::transport::{TransportSeen, resending_share, stuck};
use crate::findings::measured::path::FULL;
use crate::lifelines::{Lifeline, LifelineOutcome};
use crate::names::point_name;
use crate::profile::{HostStretch, Profile, profiles};
use crate::statistics::to_f64;
use stackline_events::catalogue::{DataFate, fate};
use std::collections::BTreeMap;

/// The least number of units that must come back (or be given up) to make a session.
pub(crate) const LEAST_UNITS: u64 = 20;
/// A session is pressed if at least this share of its units was given up or lost.
const GIVEN_UP: f64 = 0.05;
/// What limits a host for at least this share of the time limits the session, even if no unit is given up.
pub(crate) const ALWAYS: f64 = 0.85;
/// The most servers that are reported one by one.
const SERVERS: usize = 8;

/// The results of analysing a session.
#[derive(Debug)]
pub(crate) struct SessionAnalysis {
    /// How each host spent its time, by stretch (the path of units between two events).
    pub(crate) profiles: Vec<Profile>,
    /// The number of units that came back to the host that asked for them.
    pub(crate) arrived: u64,
    /// The number of units that were given up.
    pub(crate) flushed: u64,
    /// The number of units that were given up, by the index of the last lifeline point that they reached.
    pub(crate) last_met: BTreeMap<u32, u64>,
    /// The number of units that were asked for and never seen again, although there was time for it.
    pub(crate) lost: u64,
    /// The stretches that limited inside hosts.
    pub(crate) inside: Vec<LimitingStretch>,
    /// What limited beyond the servers (the hosts that answer).
    pub(crate) beyond: Option<LimitingStretch>,
    /// The ports seen by monitors.
    pub(crate) ports: Vec<PortSeen>,
    /// The processors seen by monitors.
    pub(crate) processors: Vec<ProcessorSeen>,
    /// The servers' connections, where monitors saw them.
    pub(crate) transport: Option<TransportSeen>,
    /// The share of the time that servers waited for retransmissions: blocked while something was retransmitted, or without any
    /// acknowledgement. `None` if no events could have shown it.
    pub(crate) resending: Option<f64>,
    /// The time range from the first event of a unit to the last.
    pub(crate) span: SessionSpan,
}

impl SessionAnalysis {
    /// Analyses the events of a run; `None` if the plan has measurements, or too few units come back.
    pub(crate) fn from_log(log: &FindingEventLog<'_>) -> Option<Self> {
        let lifelines = log.input.lifelines;
        if !log.input.plan.measurements.is_empty() {
            return None;
        }
        let units = UnitCounts::from_log(log)?;
        let profiles = profiles(lifelines);
        let (inside, mut beyond) = limiting(&profiles, log);
        let mut servers: Vec<&str> = answering(&profiles)
            .map(|profile| profile.host.as_str())
            .collect();
        if units.back + units.flushed() < LEAST_UNITS || servers.is_empty() {
            // Hardly anything came back: hosts that have data to send and get none of it through are taken for the servers.
            servers = stuck(log);
            if units.asked < LEAST_UNITS || (servers.is_empty() && units.lost < LEAST_UNITS) {
                return None;
            }
            let hosts = servers.iter().map(|host| ((*host).to_owned(), 1.0));
            let share = if servers.is_empty() {
                units.lost_share()
            } else {
                1.0
            };
            beyond = Some(LimitingStretch::beyond(share, hosts.collect()));
        } else if units.back * 2 < units.arrived {
            return None;
        }
        // A unit that is lost and not retransmitted delays nobody: its cost is the share of missing units.
        let share = units.lost_share();
        if share >= GIVEN_UP && beyond.as_ref().is_none_or(|limit| limit.share < share) {
            let hosts = beyond.map_or_else(Vec::new, |limit| limit.hosts);
            beyond = Some(LimitingStretch::beyond(share, hosts));
        }
        let transport = TransportSeen::from_log(log, &servers);
        let resending = resending_share(log, servers.len(), units.span, transport.as_ref());
        Some(Self {
            profiles,
            arrived: units.back,
            flushed: units.flushed(),
            last_met: units.last_met,
            lost: units.lost,
            inside,
            beyond,
            ports: ports(log, units.span),
            processors: processors(log, units.span),
            transport,
            resending,
            span: units.span,
        })
    }

    /// Whether the session is pressed: more was asked for than its resources could do.
    pub(crate) fn is_pressed(&self) -> bool {
        let given_up = to_f64(self.flushed + self.lost)
            / to_f64((self.flushed + self.lost + self.arrived).max(1));
        let always = |limit: &LimitingStretch| limit.share >= ALWAYS;
        given_up >= GIVEN_UP || self.inside.iter().chain(&self.beyond).any(always)
    }

    /// The share of the time that something beyond the servers limited them.
    pub(crate) fn beyond_share(&self) -> f64 {
        self.beyond.as_ref().map_or(0.0, |limit| limit.share)
    }

    /// The busiest port, of those whose rate is known.
    pub(crate) fn fullest(&self) -> Option<&PortSeen> {
        self.ports
            .iter()
            .filter(|port| port.rate_bit_s.is_some())
            .max_by(|a, b| a.busy.total_cmp(&b.busy))
    }

    /// A port that is busy nearly all the time, while units are in flight nearly all the time.
    pub(crate) fn full(&self, log: &FindingEventLog<'_>) -> Option<&PortSeen> {
        self.fullest()
            .filter(|port| port.busy >= FULL && self.is_waited_for(log))
    }

    /// The busiest processor.
    pub(crate) fn busiest(&self) -> Option<&ProcessorSeen> {
        self.processors
            .iter()
            .max_by(|a, b| a.busy.total_cmp(&b.busy))
    }

    /// A processor that is busy nearly all the time.
    pub(crate) fn at_limit(&self) -> Option<&ProcessorSeen> {
        self.busiest().filter(|processor| processor.busy >= ALWAYS)
    }

    /// Adds evidence and advice to a finding that a processor is the limit.
    pub(crate) fn processor_limits(
        &self,
        log: &FindingEventLog<'_>,
        processor: &ProcessorSeen,
        finding: Finding,
    ) -> Finding {
        let mut finding = finding;
        finding.evidence.push(processor.evidence(log));
        finding.evidence.extend(self.evidence(log));
        finding.attempt(format!(
            "a faster processor in {}, or less work there per request",
            processor.host
        ))
    }

    /// The share of the time in which the busiest link was transmitting.
    pub(crate) fn used(&self) -> f64 {
        self.fullest().map_or(0.0, |port| port.busy.min(1.0))
    }

    /// The share of the time in which nothing but losses limited the network: no busy link, no window, no buffer.
    pub(crate) fn free_to_send(&self) -> f64 {
        let held = self
            .transport
            .as_ref()
            .map_or(0.0, |seen| (seen.window + seen.send_buffer).min(1.0));
        (1.0 - self.used()) * (1.0 - held)
    }

    /// Whether units are in flight nearly all the time.
    pub(crate) fn is_waited_for(&self, log: &FindingEventLog<'_>) -> bool {
        let lifelines = log.input.lifelines;
        let lines = lifelines
            .lines
            .iter()
            .filter(|line| line.flow.is_none())
            .map(|line| lifelines.passages_of(line));
        let spans = lines
            .filter_map(|passages| Some((passages.first()?.at_ns, passages.last()?.at_ns)))
            .collect();
        to_f64(union_length_ns(spans)) / self.span.length_ns() >= ALWAYS
    }

    /// The server that is idle least, if it has units nearly all the time.
    pub(crate) fn always_busy(&self) -> Option<&Profile> {
        let idle = |server: &&Profile| server.share(server.idle_ns);
        self.servers()
            .filter(|server| idle(server) <= 1.0 - ALWAYS)
            .min_by(|a, b| idle(a).total_cmp(&idle(b)))
    }

    /// Servers: hosts that units come back from.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &Profile> {
        answering(&self.profiles)
    }

    /// Evidence of where the time of units went, where units were given up, and how many were lost.
    pub(crate) fn evidence(&self, log: &FindingEventLog<'_>) -> Vec<Evidence> {
        let mut made = vec![self.figure(log, self.account(log))];
        made.extend((self.flushed > 0).then(|| self.given_up(log)));
        made.extend((self.lost > 0).then(|| self.figure(log, self.never_came())));
        made
    }

    /// How many units were lost, in words.
    fn never_came(&self) -> String {
        format!(
            "{} of {} units never arrived",
            self.lost,
            self.lost + self.flushed + self.arrived
        )
    }

    /// What the limit costs, in words: lost units, or the time that servers wait to send.
    pub(crate) fn costs(&self, share: f64) -> String {
        if self.loses() {
            format!("{}, and none of them was retransmitted", self.never_came())
        } else {
            format!("servers wait to send {} of the time", percent(share))
        }
    }

    /// Whether so many units were lost that they are the cost of the limit.
    pub(crate) fn loses(&self) -> bool {
        to_f64(self.lost) / to_f64((self.lost + self.flushed + self.arrived).max(1)) >= GIVEN_UP
    }

    /// Evidence of how each server spent its time.
    pub(crate) fn operations(&self, log: &FindingEventLog<'_>) -> Vec<Evidence> {
        self.servers()
            .take(SERVERS)
            .map(|server| self.figure(log, operation(log, server)))
            .collect()
    }

    /// Evidence that is a figure of the whole session; it names the first units.
    pub(crate) fn figure(&self, log: &FindingEventLog<'_>, what: String) -> Evidence {
        let units = log
            .input
            .lifelines
            .lines
            .iter()
            .filter(|line| line.flow.is_none())
            .take(3);
        let units = units.map(|line| line.unit.to_string()).collect();
        Evidence {
            what,
            from_ns: self.span.from_ns,
            to_ns: self.span.to_ns,
            units,
            events: Vec::new(),
        }
    }

    /// The shares of all units' time by stretch, all hosts of a stretch together, in words.
    fn account(&self, log: &FindingEventLog<'_>) -> String {
        let lifelines = log.input.lifelines;
        let mut sums: BTreeMap<(&str, &str), (u32, u64)> = BTreeMap::new();
        let mut all = 0_u64;
        let mut add = |from: u32, to: u32, ns: u64| {
            let key = (keyword(log, from), keyword(log, to));
            let sum = sums.entry(key).or_insert((from, 0));
            sum.1 = sum.1.saturating_add(ns);
            all = all.saturating_add(ns);
        };
        for line in lifelines.lines.iter().filter(|line| line.flow.is_none()) {
            for pair in lifelines.passages_of(line).windows(2) {
                if lifelines.points[pair[0].point as usize].host
                    != lifelines.points[pair[1].point as usize].host
                {
                    add(
                        pair[0].point,
                        pair[1].point,
                        pair[1].at_ns.saturating_sub(pair[0].at_ns),
                    );
                }
            }
        }
        let stretches = self.profiles.iter().flat_map(|profile| &profile.stretches);
        stretches.for_each(|stretch| add(stretch.from, stretch.to, stretch.unit_ns));
        let mut parts: Vec<(u32, String, f64)> = sums
            .into_iter()
            .map(|((from, to), (at, ns))| {
                (
                    at,
                    format!("{from} to {to}"),
                    to_f64(ns) / to_f64(all.max(1)),
                )
            })
            .filter(|(.., share)| *share >= 0.01)
            .collect();
        parts.sort_by_key(|(at, ..)| *at);
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(_, name, share)| format!("{name} {}", percent(share)))
            .collect();
        format!("shares of all units' time: {}", parts.join(", "))
    }

    /// Evidence of units that were given up, by the event after which they were.
    fn given_up(&self, log: &FindingEventLog<'_>) -> Evidence {
        let mut by_keyword: BTreeMap<&str, (u32, u64)> = BTreeMap::new();
        for (point, n) in &self.last_met {
            by_keyword
                .entry(keyword(log, *point))
                .or_insert((*point, 0))
                .1 += n;
        }
        let mut parts: Vec<(u32, String)> = by_keyword
            .into_iter()
            .map(|(name, (at, n))| {
                (
                    at,
                    format!("{} after {name}", percent(to_f64(n) / to_f64(self.flushed))),
                )
            })
            .collect();
        parts.sort_unstable();
        let parts: Vec<String> = parts.into_iter().map(|(_, text)| text).collect();
        let all = self.flushed + self.arrived;
        let what = format!(
            "{} of {all} units were abandoned: {}",
            self.flushed,
            parts.join(", ")
        );
        let lifelines = log.input.lifelines;
        let is_flush = |keyword: &str| fate(keyword) == Some(DataFate::Flushed);
        let marks = lifelines
            .marks
            .iter()
            .filter(|mark| is_flush(&lifelines.marked[mark.point as usize].keyword));
        let rows: Vec<u32> = marks
            .map(|mark| mark.row)
            .filter(|row| *row != u32::MAX)
            .collect();
        log.evidence(what, &rows)
    }
}

/// Counts of a run's units.
struct UnitCounts {
    /// All units.
    asked: u64,
    /// Units that arrived at the end of their path.
    arrived: u64,
    /// The units of `arrived` that came back to the host that asked for them, over at least two other points.
    back: u64,
    /// Units that were never seen after they were asked for, although there was time for it.
    lost: u64,
    /// Units that were given up, by the index of the last lifeline point that they reached.
    last_met: BTreeMap<u32, u64>,
    /// The time range of all their events.
    span: SessionSpan,
}

impl UnitCounts {
    /// Counts the units of a run; `None` if it has none.
    fn from_log(log: &FindingEventLog<'_>) -> Option<Self> {
        let lifelines = log.input.lifelines;
        let lines = || lifelines.lines.iter().filter(|line| line.flow.is_none());
        let comes_back = |line: &Lifeline| {
            let passages = lifelines.passages_of(line);
            let host = |at: usize| &lifelines.points[passages[at].point as usize].host;
            line.has_arrived() && line.count > 2 && host(0) == host(line.count as usize - 1)
        };
        let is_lost = is_lost(log);
        let mut last_met: BTreeMap<u32, u64> = BTreeMap::new();
        for line in lines().filter(|line| !is_lost(line)) {
            if let LifelineOutcome::Flushed { after } = line.outcome {
                *last_met.entry(after).or_default() += 1;
            }
        }
        let moments = || {
            lines()
                .flat_map(|line| lifelines.passages_of(line))
                .map(|passage| passage.at_ns)
        };
        Some(Self {
            asked: count(lines(), |_| true),
            arrived: count(lines(), Lifeline::has_arrived),
            back: count(lines(), comes_back),
            lost: count(lines(), &is_lost),
            last_met,
            span: SessionSpan {
                from_ns: moments().min()?,
                to_ns: moments().max()?,
            },
        })
    }

    fn flushed(&self) -> u64 {
        self.last_met.values().sum()
    }

    fn lost_share(&self) -> f64 {
        to_f64(self.lost) / to_f64(self.asked.max(1))
    }
}

/// Whether a unit was never seen after it was asked for. The newest units do not count, as there was no time for them to come back.
fn is_lost(log: &FindingEventLog<'_>) -> impl Fn(&Lifeline) -> bool {
    let lifelines = log.input.lifelines;
    let begun = |line: &Lifeline| {
        lifelines
            .passages_of(line)
            .first()
            .map_or(0, |first| first.at_ns)
    };
    let all = || {
        lifelines
            .lines
            .iter()
            .filter(|line| line.flow.is_none())
            .map(begun)
    };
    let newest = all()
        .max()
        .filter(|newest| all().min() != Some(*newest))
        .unwrap_or(u64::MAX);
    move |line| {
        let is_over = matches!(
            line.outcome,
            LifelineOutcome::Flushed { .. } | LifelineOutcome::NeverArrived { .. }
        );
        is_over && line.count == 1 && line.mark_count == 0 && begun(line) < newest
    }
}

fn count<'l>(
    lines: impl Iterator<Item = &'l Lifeline>,
    wanted: impl Fn(&'l Lifeline) -> bool,
) -> u64 {
    lines.filter(|line| wanted(line)).count() as u64
}

/// The time that lies in at least one of these intervals (begin, end), ns.
pub(crate) fn union_length_ns(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut until, mut sum) = (0, 0);
    for (from, to) in intervals {
        sum += to.saturating_sub(until.max(from));
        until = until.max(to);
    }
    sum
}

/// The name of a stretch: `START_READ to END_READ`; for equal points `after` the point.
pub(crate) fn stretch_name(log: &FindingEventLog<'_>, from: u32, to: u32) -> String {
    let point = |at: u32| point_name(&log.input.lifelines.points[at as usize]);
    if from == to {
        return format!("after {}", point(from));
    }
    format!("{} to {}", point(from), point(to))
}

/// How a server spent its time, in one line.
fn operation(log: &FindingEventLog<'_>, server: &Profile) -> String {
    let of = |stretch: &HostStretch| {
        let name = stretch_name(log, stretch.from, stretch.to);
        let at_once = if stretch.at_once() >= 1.05 {
            format!(" ({:.1} at once)", stretch.at_once())
        } else {
            String::new()
        };
        format!("{name} {}{at_once}", percent(server.share(stretch.busy_ns)))
    };
    let busy: Vec<String> = server
        .stretches
        .iter()
        .filter(|one| server.share(one.busy_ns) >= 0.01)
        .map(of)
        .collect();
    let idle = percent(server.share(server.idle_ns));
    if busy.is_empty() {
        return format!("{} was idle {idle} of the time", server.host);
    }
    format!(
        "{}, shares of the time: {}; idle {idle}",
        server.host,
        busy.join(", ")
    )
}
