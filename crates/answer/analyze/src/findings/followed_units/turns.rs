//! Units of a session that go one after the other: whoever asks waits for each before it asks for the next, and no host is busy.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::monitored::{PortSeen, ProcessorSeen};
use crate::findings::followed_units::session::{ALWAYS, LEAST_UNITS, SessionAnalysis};
use crate::findings::kind::FindingKind;
use crate::lifelines::{LifelinePassage, Lifelines};
use crate::statistics::to_f64;
use stackline_core::units;
use std::collections::BTreeMap;

/// Points of one moment may be so far apart, ns.
const MOMENT: u64 = 1_000;
/// A link that is used for less of the time is not part of what to change.
const PART: f64 = 0.1;
/// No way is so many times as long as the one in the other direction: something else takes that time.
const LONGER: f64 = 4.0;

/// How units go one after the other.
pub(crate) struct SerialTurns<'s> {
    units: u64,
    /// What each takes, on the average, s.
    each_s: f64,
    /// Of the time, how much any of them was on its way.
    share: f64,
    /// Where most of their time is spent, and how much.
    place: TurnLocation<'s>,
    spent: f64,
    /// What each is between hosts until it is where it is done, and from there, s.
    there_s: f64,
    back_s: f64,
    asker: &'s str,
}

/// What waits though nothing works on it, by the way that takes longer than its distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnWait {
    Requests,
    Answers,
}

/// Where time is spent of units that go one after the other.
enum TurnLocation<'s> {
    /// At a host.
    Host(&'s str),
    /// At work in a host's processor, whichever of the way's points are around it.
    Processor(&'s ProcessorSeen),
    /// Bits on a link.
    Link(&'s PortSeen),
}

/// Paths of units that met no other on theirs, in the order in which they began.
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

/// Where units were: at each host, and between hosts on their way there and back.
struct TimeByPlace<'s> {
    /// The host that asked.
    asker: &'s str,
    hosts: BTreeMap<&'s str, u64>,
    there_ns: u64,
    back_ns: u64,
}

impl<'s> TimeByPlace<'s> {
    fn of(lifelines: &'s Lifelines, paths: &[&[LifelinePassage]]) -> Self {
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
    /// Of a session that nothing limits all the time: whether they go so, and what no host takes of their time.
    pub(crate) fn of(log: &'s FindingEventLog<'_>, session: &'s SessionAnalysis) -> Option<Self> {
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
        let spent = TimeByPlace::of(lifelines, &alone);
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

    /// The share of the time that would be saved where others were on their way meanwhile: the busiest place is left.
    fn costs(&self) -> f64 {
        self.share * (1.0 - self.spent)
    }

    /// Whether something other than distance takes most of the time.
    fn waits(&self) -> Option<TurnWait> {
        let is_most = |time: f64, other: f64| time >= LONGER * other && time >= self.each_s / 2.0;
        // Bits on a link take as long as they do.
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

    /// What of the time of each is spent where most is, in words.
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

    /// What is not spent there, in words.
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

    /// What is done there.
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

/// Each waits for the one before it.
pub(crate) fn serial_round_trips(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let session = log.session()?;
    let turns = SerialTurns::of(log, session)?;
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
