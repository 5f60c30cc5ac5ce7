//! The series of a run as data: kinds, panels, lines, points; and how intervals of events are counted.

use serde::Serialize;
use stackline_core::plan::Measurement;
use stackline_core::run_record::RunRecord;
use stackline_core::trace_index::RunSpan;
use stackline_core::units::Quantity;

/// About how many intervals there are by default.
const BINS: f64 = 60.0;
/// Most intervals.
pub(crate) const MOST_BINS: f64 = 10_000.0;
/// Most lines of a panel; more could not be distinguished.
pub const MOST_LINES: usize = 6;

/// What a panel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Bits of data units that arrived, by pair and all together.
    Throughput,
    /// Calls that ended, or connections.
    Calls,
    /// Response times of the calls that ended: median, 99th percentile, longest.
    Latency,
    /// Congestion windows of the senders.
    Window,
    /// Smoothed round trips of the senders.
    RoundTrip,
    /// Segments that were sent again.
    Retransmissions,
    /// The fullest state of each port's queue.
    Queue,
    /// Datagrams that were lost.
    Lost,
    /// Interarrival jitter (RFC 3550, section 6.4.1).
    Jitter,
    /// Use of cores.
    Processor,
}

impl SeriesKind {
    /// All, in the order of the panels.
    pub const ALL: [Self; 10] = [
        Self::Throughput,
        Self::Calls,
        Self::Latency,
        Self::Window,
        Self::RoundTrip,
        Self::Retransmissions,
        Self::Queue,
        Self::Lost,
        Self::Jitter,
        Self::Processor,
    ];

    /// The word of the command line and of CSV.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Calls => "calls",
            Self::Latency => "latency",
            Self::Window => "cwnd",
            Self::RoundTrip => "rtt",
            Self::Retransmissions => "retransmits",
            Self::Queue => "queue",
            Self::Lost => "lost",
            Self::Jitter => "jitter",
            Self::Processor => "cpu",
        }
    }

    /// What is written above the panel.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Calls => "calls a second",
            Self::Latency => "response time of the calls that ended",
            Self::Window => "congestion window",
            Self::RoundTrip => "smoothed round trip",
            Self::Retransmissions => "segments retransmitted",
            Self::Queue => "fullest state of queues",
            Self::Lost => "datagrams lost",
            Self::Jitter => "interarrival jitter",
            Self::Processor => "use of cores",
        }
    }

    /// What its values are.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::Throughput => Quantity::Rate,
            Self::Calls => Quantity::Frequency,
            Self::Latency | Self::RoundTrip | Self::Jitter => Quantity::Time,
            Self::Window | Self::Queue => Quantity::Size,
            Self::Retransmissions | Self::Lost => Quantity::Number,
            Self::Processor => Quantity::Percent,
        }
    }

    /// Whether it is of datagrams alone, or of calls alone: then its absence needs no words.
    pub(crate) const fn is_special(self) -> bool {
        matches!(
            self,
            Self::Calls | Self::Latency | Self::Lost | Self::Jitter
        )
    }
}

/// The series of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeSeries {
    /// Index of the measurement.
    pub measurement: usize,
    /// Its text.
    pub text: String,
    /// Index of the run.
    pub run: u32,
    /// From clock start to clock stop, s.
    pub length_s: f64,
    /// What there is, in the order of [`SeriesKind::ALL`].
    pub panels: Vec<SeriesPanel>,
    /// What there is not.
    pub absent: Vec<AbsentSeries>,
}

/// Lines of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesPanel {
    /// What it shows.
    pub kind: SeriesKind,
    /// The length of its intervals, s.
    pub every_s: f64,
    /// The lines; at least one.
    pub lines: Vec<SeriesLine>,
    /// How many lines were left out because there are too many.
    pub left_out: usize,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesLine {
    /// What it is of; empty if there is only one.
    pub name: String,
    /// Its points by time.
    pub points: Vec<SeriesPoint>,
}

/// The value of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesPoint {
    /// When the interval began, s since the clock started.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// The value in base units: bit/s, 1/s, s, bytes, percent.
    pub value: f64,
}

impl SeriesPoint {
    /// The middle of its interval, s.
    #[must_use]
    pub fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }
}

/// Why there is no panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsentSeries {
    /// What is absent.
    pub kind: SeriesKind,
    /// The reason.
    pub reason: String,
    /// Whether it says something of the run: not that datagrams alone have it, or calls alone.
    pub is_notable: bool,
}

/// The panels of one source, by kind.
pub(crate) type SeriesLines = Vec<(SeriesKind, Vec<SeriesLine>)>;

/// A run whose series are asked for.
pub(crate) struct SeriesRun<'r> {
    pub(crate) measurement: &'r Measurement,
    pub(crate) index: usize,
    pub(crate) run: u32,
    /// Its records, by part.
    pub(crate) records: Vec<&'r RunRecord>,
    /// When it was traced, if it was.
    pub(crate) span: Option<&'r RunSpan>,
}

impl SeriesRun<'_> {
    /// The name of a part, or of one of its pairs; empty if there is only one line.
    pub(crate) fn name(&self, part: usize, pair: Option<u32>) -> String {
        let plan = self.measurement.parts.get(part);
        let mut words = Vec::new();
        if self.measurement.parts.len() > 1 {
            let what = plan.map_or("part", |plan| plan.procedure.name.as_str());
            words.push(format!("part {} {what}", part + 1));
        }
        match (pair, plan.map_or(1, |plan| plan.replicas)) {
            (Some(pair), 2..) => words.push(format!("pair {}", pair + 1)),
            (None, pairs @ 2..) => words.push(format!("all {pairs} pairs")),
            _ => {}
        }
        words.join(", ")
    }
}

/// Intervals of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeriesBins {
    /// When the clock started, ns of reference time.
    pub(crate) origin_ns: u64,
    pub(crate) every_ns: u64,
    pub(crate) length_ns: u64,
}

impl SeriesBins {
    /// The interval of a moment; `None` outside the measured period. What ends with the clock belongs to the last one.
    pub(crate) fn index(self, at_ns: u64) -> Option<usize> {
        let since = at_ns.checked_sub(self.origin_ns)?;
        let last = self.count() - 1;
        (since <= self.length_ns).then(|| ((since / self.every_ns) as usize).min(last))
    }

    pub(crate) fn count(self) -> usize {
        (self.length_ns.div_ceil(self.every_ns) as usize).max(1)
    }

    /// The point of an interval.
    pub(crate) fn point(self, index: usize, value: f64) -> SeriesPoint {
        let from_ns = index as u64 * self.every_ns;
        let to_ns = (from_ns + self.every_ns).min(self.length_ns);
        SeriesPoint {
            from_s: from_ns as f64 * 1e-9,
            to_s: to_ns as f64 * 1e-9,
            value,
        }
    }

    /// A line with a value for each interval that has one.
    pub(crate) fn line(
        self,
        name: String,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> SeriesLine {
        let points = values.into_iter().enumerate();
        let points = points.filter_map(|(index, value)| Some(self.point(index, value?)));
        SeriesLine {
            name,
            points: points.collect(),
        }
    }

    /// The length of an interval, s; the last may be shorter.
    pub(crate) fn seconds(self, index: usize) -> f64 {
        let point = self.point(index, 0.0);
        point.to_s - point.from_s
    }
}

/// A length of time for about as many intervals as wanted: 1, 2 or 5 times a power of ten.
pub(crate) fn round_interval_s(length_s: f64) -> f64 {
    let least = (length_s / BINS).max(1e-6);
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    step.unwrap_or(10.0 * power)
}
