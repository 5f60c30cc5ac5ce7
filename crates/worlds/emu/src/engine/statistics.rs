//! Counters and histograms of the data path: no allocation, a few additions a frame.

use super::header::Unsupported;
use super::report::{EmulatedTrafficCount, EmulatorTimeSpread, FOR_NO_HOST, LostFrameCounts};
use hdrhistogram::Histogram;
use stackline_core::time::Duration;
use stackline_net::SegmentSizes;
use std::io;

/// Why a frame does not belong to this network; in the order of [`FOREIGN`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForeignFrameReason {
    NotIpv4,
    Malformed,
    Segmentation,
    UnknownHost,
    TooLong,
    Unreadable,
    Refused,
    SentEarlier,
}

const FOREIGN: [&str; 8] = [
    "not IPv4",
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
            Unsupported::NotIpv4 => Self::NotIpv4,
            Unsupported::Malformed => Self::Malformed,
            Unsupported::Segmentation => Self::Segmentation,
        }
    }
}

/// Times in a histogram, the exact maximum, and the number above a bound.
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

    /// Number above the bound.
    pub(crate) const fn above(&self) -> u64 {
        self.above
    }

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

/// Everything that is counted.
pub(crate) struct EmulatorStatistics {
    pub(crate) received: EmulatedTrafficCount,
    pub(crate) sent: EmulatedTrafficCount,
    foreign: [u64; FOREIGN.len()],
    pub(crate) lost: LostFrameCounts,
    pub(crate) lateness: EmulatorTimeHistogram,
    pub(crate) waited: EmulatorTimeHistogram,
}

impl EmulatorStatistics {
    /// All zero; departures later than `tolerable` are counted.
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

    pub(crate) fn count_foreign(&mut self, why: ForeignFrameReason) {
        self.foreign[why as usize] += 1;
    }

    pub(crate) fn count_too_long(&mut self, frames: u64) {
        self.foreign[ForeignFrameReason::TooLong as usize] += frames;
    }

    /// Foreign frames by reason, with packets between hosts without a path; without zeros.
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

/// Counts a frame.
pub(crate) const fn count(traffic: &mut EmulatedTrafficCount, segments: SegmentSizes) {
    traffic.frames += 1;
    traffic.packets += segments.count as u64;
    traffic.bytes += segments.bytes();
}
