//! Counters and histograms of the data path. Counting allocates nothing and costs a few additions per frame.

use super::header::Unsupported;
use super::report::{EmulatedTrafficCount, EmulatorTimeSpread, FOR_NO_HOST, LostFrameCounts};
use hdrhistogram::Histogram;
use stackline_core::time::Duration;
use stackline_net::SegmentSizes;
use std::io;

/// Why a frame was not forwarded although the machine was fast enough; in the order of [`FOREIGN`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForeignFrameReason {
    NotIp,
    NeighbourTalk,
    Malformed,
    Segmentation,
    UnknownHost,
    TooLong,
    Unreadable,
    Refused,
    SentEarlier,
}

/// The reasons in words, for the report.
const FOREIGN: [&str; 9] = [
    "neither IPv4 nor IPv6",
    "neighbour discovery and multicast reports",
    "malformed",
    "unsupported segmentation type",
    FOR_NO_HOST,
    "larger than the maximum packet size",
    "undeliverable by the kernel",
    "refused by the receiving interface",
    "sent before the network was started",
];

impl From<Unsupported> for ForeignFrameReason {
    fn from(unsupported: Unsupported) -> Self {
        match unsupported {
            Unsupported::NotIp => Self::NotIp,
            Unsupported::NeighbourTalk => Self::NeighbourTalk,
            Unsupported::Malformed => Self::Malformed,
            Unsupported::Segmentation => Self::Segmentation,
        }
    }
}

/// A histogram of times in ns, with the exact maximum and the number of times above a bound.
pub(crate) struct EmulatorTimeHistogram {
    histogram: Histogram<u64>,
    max: u64,
    bound: u64,
    above: u64,
}

/// Longest time the histogram resolves, in ns: a minute.
const LONGEST: u64 = 60_000_000_000;

impl EmulatorTimeHistogram {
    fn new(bound: Duration) -> io::Result<Self> {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 2).map_err(io::Error::other)?;
        Ok(Self {
            histogram,
            max: 0,
            bound: bound.0,
            above: 0,
        })
    }

    /// Adds a time, in ns.
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.max = self.max.max(ns);
        self.above += u64::from(ns > self.bound);
    }

    fn clear(&mut self) {
        self.histogram.reset();
        self.max = 0;
        self.above = 0;
    }

    /// Number of times above the bound.
    pub(crate) const fn above(&self) -> u64 {
        self.above
    }

    /// The number of times, their quantiles and their maximum.
    pub(crate) fn spread(&self) -> EmulatorTimeSpread {
        let at = |quantile| Duration(self.histogram.value_at_quantile(quantile).min(self.max));
        EmulatorTimeSpread {
            count: self.histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Duration(self.max),
        }
    }
}

/// All counters and histograms of the data path, since the last restart.
pub(crate) struct EmulatorStatistics {
    /// What the hosts sent into the network.
    pub(crate) received: EmulatedTrafficCount,
    /// What left the network for hosts.
    pub(crate) sent: EmulatedTrafficCount,
    /// Frames by [`ForeignFrameReason`].
    foreign: [u64; FOREIGN.len()],
    /// Frames lost because the machine could not keep up.
    pub(crate) lost: LostFrameCounts,
    /// How long after they were due frames were sent.
    pub(crate) lateness: EmulatorTimeHistogram,
    /// How long frames had waited when they were read.
    pub(crate) waited: EmulatorTimeHistogram,
}

impl EmulatorStatistics {
    /// All counts are zero. Departures later than `tolerable` count as late.
    pub(crate) fn new(tolerable: Duration) -> io::Result<Self> {
        Ok(Self {
            received: EmulatedTrafficCount::default(),
            sent: EmulatedTrafficCount::default(),
            foreign: [0; FOREIGN.len()],
            lost: LostFrameCounts::default(),
            lateness: EmulatorTimeHistogram::new(tolerable)?,
            waited: EmulatorTimeHistogram::new(Duration(u64::MAX))?,
        })
    }

    pub(crate) fn clear(&mut self) {
        self.received = EmulatedTrafficCount::default();
        self.sent = EmulatedTrafficCount::default();
        self.foreign = [0; FOREIGN.len()];
        self.lost = LostFrameCounts::default();
        self.lateness.clear();
        self.waited.clear();
    }

    /// Counts a frame that is not forwarded for this reason.
    pub(crate) fn count_foreign(&mut self, why: ForeignFrameReason) {
        self.foreign[why as usize] += 1;
    }

    /// Counts frames longer than any packet.
    pub(crate) fn count_too_long(&mut self, frames: u64) {
        self.foreign[ForeignFrameReason::TooLong as usize] += frames;
    }

    /// The numbers of frames that were not forwarded, by reason; reasons with zero are left out. `without_path` is the number of packets
    /// between hosts that no path connects.
    pub(crate) fn foreign(&self, without_path: u64) -> Vec<(String, u64)> {
        let all = FOREIGN
            .into_iter()
            .zip(self.foreign)
            .chain([("no path between its hosts", without_path)]);
        all.filter(|(_, count)| *count > 0)
            .map(|(why, count)| (why.into(), count))
            .collect()
    }
}

/// Adds a frame with these segments to the traffic.
pub(crate) const fn count(traffic: &mut EmulatedTrafficCount, segments: SegmentSizes) {
    traffic.frames += 1;
    traffic.packets += segments.count as u64;
    traffic.bytes += segments.bytes();
}
