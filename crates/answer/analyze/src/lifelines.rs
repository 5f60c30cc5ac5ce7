//! Lifelines (Tierney et al. 1996, section 4): the events of each data unit in the order of time, across monitor points and
//! hosts, in the reference host's time.
//!
//! Plain data; [`crate::assemble`] makes it of events.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stackline_events::EventValue;
use std::fmt;

/// What a unit is called in its events: a number, or the text that stands for one in a foreign log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(Box<str>),
}

impl Id {
    /// The id that a text names.
    #[must_use]
    pub fn of(text: &str) -> Self {
        EventValue::of(text)
            .number()
            .map_or_else(|| Self::Text(text.into()), Self::Number)
    }

    /// The number, where it is one.
    #[must_use]
    pub const fn number(&self) -> Option<i64> {
        if let Self::Number(number) = self {
            Some(*number)
        } else {
            None
        }
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// As text, so that no reader takes it for a number that it may round.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::of(&text))
    }
}

/// All lifelines of a run, or of selected events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifelines {
    /// Monitor points in the order a unit meets them: the vertical axis.
    pub points: Vec<LifelinePoint>,
    /// One line a unit, in the order of their first passage.
    pub lines: Vec<Lifeline>,
    /// Passages of all lines, each line's together and in the order of the points. Where clocks are wrong or two things
    /// happen at once, a passage can be earlier than the one before it: shown, never hidden.
    pub passages: Vec<LifelinePassage>,
    /// What can happen to units beside their way: retransmissions, drops, marks.
    pub marked: Vec<LifelinePoint>,
    /// What did, each line's together and in the order of time; their `point` is one of `marked`.
    pub marks: Vec<LifelinePassage>,
    /// Names of what lines are coloured by: a server, a stack, a flow.
    pub groups: Vec<String>,
    /// Errors of the clocks of each pair of hosts that neighbouring points lie on, ns; what is shorter is not known.
    pub clock_error_ns: u64,
}

/// A place that emits one keyword.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LifelinePoint {
    /// What.
    pub keyword: String,
    /// Where.
    pub host: String,
    /// A port of the network (`edge>udjat`) or a direction of a stream (`there`, `back`); empty where there is only one.
    pub place: String,
    /// The service that is asked there, `web:80`, where a host both answers and asks; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
}

/// What one unit met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifeline {
    /// The unit's id.
    pub unit: Id,
    /// Which group it belongs to.
    pub group: u32,
    /// The flow it went on, where that is known.
    pub flow: Option<u32>,
    /// Its first passage.
    pub first: u32,
    /// How many passages it has.
    pub count: u32,
    /// The first of its marks.
    pub first_mark: u32,
    /// How many it has.
    pub mark_count: u32,
    /// Size, bytes, where it is known; a call's and its response's together.
    pub bytes: Option<u64>,
    /// How many of these are its response's; absent where it has none, or where it is not known.
    #[serde(default)]
    pub response_bytes: Option<u64>,
    /// What became of it.
    pub outcome: LifelineOutcome,
}

/// One event on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifelinePassage {
    /// When, in reference time, ns.
    pub at_ns: u64,
    /// Index of the monitor point.
    pub point: u32,
    /// Row of the event in the table it was made of, for its other data; `u32::MAX` when it is not kept.
    pub row: u32,
}

/// What became of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LifelineOutcome {
    /// It met every point that others meet.
    #[default]
    Complete,
    /// It met all but those that a cache spares (the paper's near-vertical lines).
    CacheHit,
    /// It was requested again and arrived: how often it was sent again on the way.
    Retried {
        /// How often.
        times: u32,
    },
    /// It was given up at a point: its server recorded that, or a later request replaced it.
    Flushed {
        /// Index of the last point it met.
        after: u32,
    },
    /// Its events end at a point though the run went on.
    NeverArrived {
        /// Index of the last point it met.
        after: u32,
    },
    /// Recording ended, or its run was over, while it was under way: no loss.
    Unfinished {
        /// Index of the last point it met.
        after: u32,
    },
    /// Its first events are missing: it was under way when recording began, or they were lost.
    Headless {
        /// Index of the first point it met.
        before: u32,
    },
}

impl Lifeline {
    /// Whether it came to where ways end, from where they begin.
    #[must_use]
    pub const fn has_arrived(&self) -> bool {
        matches!(
            self.outcome,
            LifelineOutcome::Complete | LifelineOutcome::CacheHit | LifelineOutcome::Retried { .. }
        )
    }
}

impl Lifelines {
    /// Whether a line is of a connection, and of no data unit.
    #[must_use]
    pub fn is_connection(&self, line: &Lifeline) -> bool {
        let first = self
            .passages_of(line)
            .first()
            .map(|passage| self.points[passage.point as usize].keyword.as_str());
        line.flow.is_some() && matches!(first, Some("APP_CONNECT" | "APP_CONNECTED"))
    }

    /// The passages of a line.
    #[must_use]
    pub fn passages_of(&self, line: &Lifeline) -> &[LifelinePassage] {
        &self.passages[line.first as usize..(line.first + line.count) as usize]
    }

    /// What happened to a line beside its way.
    #[must_use]
    pub fn marks_of(&self, line: &Lifeline) -> &[LifelinePassage] {
        &self.marks[line.first_mark as usize..(line.first_mark + line.mark_count) as usize]
    }
}
