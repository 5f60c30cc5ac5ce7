//! Units of a session (a run without measurements, whose units are followed through events) that are sent one after another: the host that
//! asks waits for each unit before it asks for the next, and no resource is busy all the time.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::monitored::{PortSeen, ProcessorSeen};
use crate::findings::followed_units::session::{ALWAYS, LEAST_UNITS, SessionAnalysis};
use crate::findings::kind::FindingKind;
use crate::lifelines::{LifelinePassage, Lifelines};
use crate::statistics::to_f64;
use stackline_core::units;
use std::collections::BTreeMap;

/// Events that are at most this far apart count as simultaneous, ns.
const MOMENT: u64 = 1_000;
/// The least share of the time that a link must be busy to be worth changing.
const PART: f64 = 0.1;
/// If one direction takes this many times as long as the other, something other than distance takes the time.
const LONGER: f64 = 4.0;

/// Units that are sent one after another, and where their time goes.
pub(crate) struct SerialTurns<'s> {
    /// The number of units that were in flight alone.
    units: u64,
    /// The mean time of a unit.
    each_s: f64,
    /// The share of the session in which one of them was in flight.
    share: f64,
    /// Where most of their time is spent.
    place: TurnLocation<'s>,
    /// The share of their time that is spent there, 0 to 1.
    spent: f64,
    /// The mean time of a unit between hosts until it reaches the server.
    there_s: f64,
    /// The mean time of a unit between hosts on the way back.
    back_s: f64,
    /// The host that asks for the units.
    asker: &'s str,
}

/// What waits although nothing works on it: known from the direction that takes longer than distance explains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnWait {
    Requests,
    Answers,
}

/// Where units spend their time.
enum TurnLocation<'s> {
    /// At a host.
    Host(&'s str),
    /// In a host's processor, whichever events are around that.
    Processor(&'s ProcessorSeen),
    /// In transmission on a link.
    Link(&'s PortSeen),
}

/// The paths of units during which no other unit was in flight, in the order in which they began.
fn alone(lifelines: &Lifelines) -> Vec<&[LifelinePassage]> {
    let lines = lifelines
        .lines
        .iter()
        .filter(|line| line.flow.is_none())
        .map(|line| lifelines.passages_of(line));
    let mut paths: Vec<&[LifelinePassage]> = lines.filter(|path| path.len() > 1).collect();
    paths.sort_unstable_by_key(|path| path[0].at_ns);
    let (mut alone, mut until) = (Vec::new(), 0);
    for (at, path) in paths.iter().enumerate() {
        let is_behind =
            |path: &[LifelinePassage], until: u64| path[0].at_ns.saturating_add(MOMENT) >= until;
        let is_first = is_behind(path, until);
        until = until.max(path[path.len() - 1].at_ns);
        if is_first && paths.get(at + 1).is_none_or(|next| is_behind(next, until)) {
            alone.push(*path);
        }
    }
    alone
}

/// The time that units spent at each host and between hosts.
struct TimeByPlace<'s> {
    /// The host that asked for the units.
    asker: &'s str,
    /// The time at each host, ns.
    hosts: BTreeMap<&'s str, u64>,
    /// The time between hosts, except steps to the asker.
    there_ns: u64,
    /// The time of steps from other hosts to the asker.
    back_ns: u64,
}

impl<'s> TimeByPlace<'s> {
    fn from_lifelines(lifelines: &'s Lifelines, paths: &[&[LifelinePassage]]) -> Self {
        let host =
            |passage: &LifelinePassage| lifelines.points[passage.point as usize].host.as_str();
        let mut times = Self {
            asker: paths.first().map_or("", |path| host(&path[0])),
            hosts: BTreeMap::new(),
            there_ns: 0,
            back_ns: 0,
        };
        for pair in paths.iter().flat_map(|path| path.windows(2)) {
            let (from, to) = (host(&pair[0]), host(&pair[1]));
            let place = if from == to {
                times.hosts.entry(from).or_default()
            } else if to == times.asker {
                &mut times.back_ns
            } else {
                &mut times.there_ns
            };
            *place += pair[1].at_ns.saturating_sub(pair[0].at_ns);
        }
        times
    }
}

impl<'s> SerialTurns<'s> {
    /// Whether the units of a session are sent one after another, and where their time goes; `None` if something limits the session, or the
    /// busiest place takes nearly all of the time.
    pub(crate) fn from_log(
        log: &'s FindingEventLog<'_>,
        session: &'s SessionAnalysis,
    ) -> Option<Self> {
        if session.is_pressed() {
            return None;
        }
        let lifelines = log.input.lifelines;
        let alone = alone(lifelines);
        let lasted =
            |path: &&[LifelinePassage]| path[path.len() - 1].at_ns.saturating_sub(path[0].at_ns);
        let all_ns = alone.iter().map(lasted).fold(0, u64::saturating_add);
        let share = to_f64(all_ns) / session.span.length_ns();
        let units = alone.len() as u64;
        if units < LEAST_UNITS || share < ALWAYS {
            return None;
        }
        let spent = TimeByPlace::from_lifelines(lifelines, &alone);
        let (host, ns) = spent.hosts.into_iter().max_by_key(|(_, ns)| *ns)?;
        let processor = session
            .busiest()
            .map(|one| (TurnLocation::Processor(one), one.busy / share));
        let link = session
            .fullest()
            .map(|port| (TurnLocation::Link(port), port.busy / share));
        let at_host = (TurnLocation::Host(host), to_f64(ns) / to_f64(all_ns));
        let (place, at_place) = std::iter::once(at_host)
            .chain(processor)
            .chain(link)
            .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let each_s = |ns: u64| to_f64(ns) / to_f64(units) / 1e9;
        let turns = Self {
            units,
            each_s: each_s(all_ns),
            share,
            place,
            spent: at_place.min(1.0),
            there_s: each_s(spent.there_ns),
            back_s: each_s(spent.back_ns),
            asker: spent.asker,
        };
        (turns.costs() >= LEAST).then_some(turns)
    }

    /// The share of the time that could be saved if several units were in flight at once: all but the time at the busiest place.
    fn costs(&self) -> f64 {
        self.share * (1.0 - self.spent)
    }

    /// Whether requests or answers wait for something other than distance for most of the time; `None` if not.
    fn waits(&self) -> Option<TurnWait> {
        let is_most = |time: f64, other: f64| time >= LONGER * other && time >= self.each_s / 2.0;
        // If transmission on a link takes a good part of the time, unequal directions are normal.
        let is_link = matches!(self.place, TurnLocation::Link(_)) && self.spent >= PART;
        match (
            is_most(self.there_s, self.back_s),
            is_most(self.back_s, self.there_s),
        ) {
            _ if is_link => None,
            (true, _) => Some(TurnWait::Requests),
            (_, true) => Some(TurnWait::Answers),
            _ => None,
        }
    }

    /// The share of a unit's time that is spent at the busiest place, in words: the begin of a sentence that [`Self::rest`] ends.
    fn share(&self) -> String {
        let each = units::format_time(self.each_s);
        match self.spent >= LEAST {
            true => format!(
                "of the {each} that each takes, {} {}, and the rest",
                percent(self.spent),
                self.place()
            ),
            false => format!("the time for each, {each},"),
        }
    }

    /// The rest of a unit's time, in words.
    fn rest(&self) -> String {
        let (who, long, [one, other]) = match self.waits() {
            None => return "is spent on round trips or on a timer".to_owned(),
            Some(TurnWait::Requests) => ("requests wait", self.there_s, ["there", "back"]),
            Some(TurnWait::Answers) => ("answers wait", self.back_s, ["back", "there"]),
        };
        let short = self.there_s + self.back_s - long;
        format!(
            "is {} in transit {one} and {} in transit {other}: distance cannot explain this, so {who} for a timer, or for a program that polls",
            units::format_time(long),
            units::format_time(short)
        )
    }

    /// The busiest place in words.
    fn place(&self) -> String {
        match &self.place {
            TurnLocation::Host(host) => format!("is spent at {host}, more than at any other host"),
            TurnLocation::Processor(seen) => {
                format!("is work on {}, the busiest one", seen.name())
            }
            TurnLocation::Link(port) => format!("is transmission over {}", port.name),
        }
    }
}

/// The finding about units that are sent one after another.
pub(crate) fn serial_round_trips(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let turns = SerialTurns::from_log(log, session)?;
    let sentence = format!(
        "{} units are sent one after another, each only after the previous one has arrived: {} {}",
        turns.units,
        turns.share(),
        turns.rest()
    );
    let mut finding = kind.of_run(turns.costs(), 0.9, sentence);
    finding.evidence = session.operations(log);
    finding.evidence.extend(session.evidence(log));
    finding
        .evidence
        .extend(session.busiest().map(|processor| processor.evidence(log)));
    let finding = match turns.waits() {
        Some(TurnWait::Answers) => finding.attempt(format!(
            "answers sent immediately (`nodelay` of tcp at the answering end), and a program at {} that waits for them (no `polls`)",
            turns.asker
        )),
        Some(TurnWait::Requests) => finding.attempt(format!(
            "requests sent immediately (`nodelay` of tcp at {}), and no program in between that only polls (no `polls`)",
            turns.asker
        )),
        None => finding,
    };
    let finding = finding.attempt(
        "several in flight at once: request the next before the previous one has arrived (a display's level `pipelined`), or many together (`batched`)",
    );
    let link = session.fullest().filter(|port| port.busy >= PART);
    let finding = match link {
        Some(port) => finding.attempt(format!(
            "a faster link {}, which is now used {} of the time",
            port.name,
            percent(port.busy)
        )),
        None => finding,
    };
    Some(match turns.waits() {
        Some(_) => finding,
        None => {
            finding.attempt("a shorter path: a nearer host, fewer programs in between, acknowledgements sent immediately")
        }
    })
}
