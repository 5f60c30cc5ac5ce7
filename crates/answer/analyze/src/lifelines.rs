//! The data of lifelines (Tierney et al. 1996, section 4): the events of each unit in the order of its way, across monitor points
//! and hosts, in the reference host's time.
//!
//! A unit is a piece of an application's data (a data unit, a call with its response) or a connection. A monitor point is a place
//! that emits events of one keyword. [`crate::assemble`] makes lifelines of events.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stackline_events::EventValue;
use std::fmt;

/// The id of a unit in its events: a number, or in foreign logs also a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(Box<str>),
}

impl Id {
    /// Reads an id from a text: a number if the text is one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        EventValue::parse(text)
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

/// Serialised as text: many JSON readers would round a large number.
impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

/// All lifelines of a run, or of selected events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifelines {
    /// Monitor points in the order a unit meets them: the vertical axis.
    pub points: Vec<LifelinePoint>,
    /// The lifelines in the order of their first passage; a unit that is requested again has several.
    pub lines: Vec<Lifeline>,
    /// Passages of all lines, each line's together and in the order of the points. If clocks are wrong or two things happen at once, a
    /// passage can be earlier than the one before it; that is kept as it is.
    pub passages: Vec<LifelinePassage>,
    /// The points of events beside the units' way: retransmissions, drops, marks.
    pub marked: Vec<LifelinePoint>,
    /// The events at these points, each line's together and in the order of time; their `point` is an index into `marked`.
    pub marks: Vec<LifelinePassage>,
    /// Names of the groups of lines: servers, hosts, stacks or flows.
    pub groups: Vec<String>,
    /// The largest clock error of any two hosts that follow each other on a line, ns; shorter times between hosts are not reliable.
    pub clock_error_ns: u64,
}

/// A place that emits one keyword.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LifelinePoint {
    /// The keyword of its events.
    pub keyword: String,
    /// The host that emits them.
    pub host: String,
    /// A port of the network (`edge>udjat`) or a direction of a stream (`there`, `back`); empty where there is only one.
    pub place: String,
    /// The service of its flows, such as `web:80`, in runs where a host both answers and calls services; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service: String,
}

/// The way of one unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifeline {
    /// The unit's id.
    pub unit: Id,
    /// Index of its group in [`Lifelines::groups`].
    pub group: u32,
    /// The number of the flow that carried it, if known.
    pub flow: Option<u32>,
    /// Index of its first passage in [`Lifelines::passages`].
    pub first: u32,
    /// The number of its passages.
    pub count: u32,
    /// Index of its first mark in [`Lifelines::marks`].
    pub first_mark: u32,
    /// The number of its marks.
    pub mark_count: u32,
    /// Size in bytes, if known; of a call, the request and the response together.
    pub bytes: Option<u64>,
    /// How many of these bytes are the response's; absent if there is no response or its size is not known.
    #[serde(default)]
    pub response_bytes: Option<u64>,
    /// What became of it.
    pub outcome: LifelineOutcome,
}

/// One event on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifelinePassage {
    /// Reference time, ns.
    pub at_ns: u64,
    /// Index of the monitor point in [`Lifelines::points`], of marks in [`Lifelines::marked`].
    pub point: u32,
    /// Row of the event in its table, where the event's other data are; `u32::MAX` if it was not recorded.
    pub row: u32,
}

/// What became of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LifelineOutcome {
    /// It arrived, nothing of it was sent again, and no cache spared a part of its way.
    #[default]
    Complete,
    /// It arrived, and a server had it in memory (the near-vertical lines of the paper).
    CacheHit,
    /// It arrived, and something of it was sent again or dropped on the way.
    Retried {
        /// How many retransmissions, or without any how many drops.
        times: u32,
    },
    /// It was given up: an event says so, or it ends inside a host that then received a newer request.
    Flushed {
        /// Index of the last point it passed.
        after: u32,
    },
    /// Its events end at a point although the run went on: it was lost.
    NeverArrived {
        /// Index of the last point it passed.
        after: u32,
    },
    /// The recording or its run ended while it was under way; this is not a loss.
    Unfinished {
        /// Index of the last point it passed.
        after: u32,
    },
    /// Its first events are missing: it was under way when recording began, or they were lost.
    Headless {
        /// Index of the first point it passed.
        before: u32,
    },
}

impl Lifeline {
    /// Whether the unit passed its whole way, from a beginning to an end.
    #[must_use]
    pub const fn has_arrived(&self) -> bool {
        matches!(
            self.outcome,
            LifelineOutcome::Complete | LifelineOutcome::CacheHit | LifelineOutcome::Retried { .. }
        )
    }
}

impl Lifelines {
    /// Whether a line is that of a connection, and not of a data unit.
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

    /// The events beside a line's way: retransmissions, drops, marks.
    #[must_use]
    pub fn marks_of(&self, line: &Lifeline) -> &[LifelinePassage] {
        &self.marks[line.first_mark as usize..(line.first_mark + line.mark_count) as usize]
    }
}
