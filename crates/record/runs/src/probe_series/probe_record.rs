//! One record of a series of probes, and its line in a file.

use super::log_linear::{classes, counts};
use serde::{Deserialize, Serialize};
use stackline_core::run_record::Histogram;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most bytes of a line that is read.
pub(super) const LONGEST_LINE: usize = 16 << 20;
/// Most bytes of a reason that are kept.
const LONGEST_REASON: usize = 400;

/// What one probe yielded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// When it was due, ms since 1970 (UTC).
    pub at_ms: u64,
    /// How long it took, in ms.
    pub took_ms: u64,
    /// Probes before it that were not made because an earlier one still went on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// What each measurement yielded, in the order of the specification.
    pub measurements: Vec<ProbedMeasurement>,
}

/// What a measurement of a probe yielded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbedMeasurement {
    /// The measurement as written.
    pub text: String,
    /// The number of counted runs.
    pub runs: u32,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What the times are of; absent without times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<ProbedWork>,
    /// Times of its calls, else of its connects, in ns. A record has each to 1.6 %; sum, least and largest are exact.
    #[serde(
        default,
        skip_serializing_if = "has_no_values",
        with = "histogram_json"
    )]
    pub times_ns: Histogram,
    /// Mean throughput of its runs in bit/s, if data units were moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bit_s: Option<f64>,
    /// Data units or calls that were lost, where the stack counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Kinds of findings with how sure each is, 0 to 1; absent if the probe was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<BTreeMap<String, f64>>,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbedWork {
    /// Calls.
    Calls,
    /// Connects plus disconnects.
    Connects,
}

impl ProbeRecord {
    /// Whether a measurement failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.measurements.iter().any(|one| one.failure.is_some())
    }

    /// When it was due.
    #[must_use]
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.at_ms)
    }

    /// The line of a file: a checksum (CRC-32 in hexadecimal), a space, JSON, a line feed.
    pub(super) fn line(&self) -> serde_json::Result<String> {
        let mut record = self.clone();
        let reasons = record.measurements.iter_mut();
        reasons.for_each(|one| one.failure = one.failure.as_deref().map(shortened));
        let json = serde_json::to_string(&record)?;
        Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())))
    }

    /// The record of a line without its line feed; `None` of a damaged one.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let (sum, rest) = line.split_at_checked(8)?;
        let json = rest.strip_prefix(b" ")?;
        let sum = u32::from_str_radix(str::from_utf8(sum).ok()?, 16).ok()?;
        if crc32fast::hash(json) != sum {
            return None;
        }
        serde_json::from_slice(json).ok()
    }
}

fn shortened(reason: &str) -> String {
    let end = (0..=LONGEST_REASON.min(reason.len()))
        .rev()
        .find(|at| reason.is_char_boundary(*at));
    reason[..end.unwrap_or_default()].to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn has_no_values(histogram: &Histogram) -> bool {
    histogram.counts.is_empty()
}

/// Histograms in few bytes: `[[step, n], ...]`, and what is exact.
mod histogram_json {
    use super::{Histogram, classes, counts};
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct CompactHistogram {
        /// Classes: how far each is from the one before, how many values it has.
        classes: Vec<(u32, u64)>,
        sum: u64,
        squares: f64,
        min_max: Option<(u64, u64)>,
    }

    pub(super) fn serialize<S: Serializer>(
        histogram: &Histogram,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        CompactHistogram {
            classes: classes(histogram),
            sum: histogram.sum,
            squares: histogram.squares,
            min_max: histogram.min_max,
        }
        .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
        let compact = CompactHistogram::deserialize(from)?;
        let counts = counts(&compact.classes);
        let counts = counts.ok_or_else(|| D::Error::custom("the classes are not a histogram's"))?;
        let is_ordered = compact.min_max.is_none_or(|(least, most)| least <= most);
        if !is_ordered || !compact.squares.is_finite() {
            return Err(D::Error::custom("the sums are not a histogram's"));
        }
        Ok(Histogram {
            counts,
            sum: compact.sum,
            squares: compact.squares,
            min_max: compact.min_max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_gives_the_record_back_and_a_changed_one_nothing() {
        let record = ProbeRecord {
            at_ms: 1_767_225_599_000,
            took_ms: 12,
            skipped: 1,
            measurements: vec![ProbedMeasurement {
                text: "rr 32*1000 over tcp".to_owned(),
                runs: 1,
                failure: Some("ü".repeat(300)),
                timed: Some(ProbedWork::Calls),
                times_ns: Histogram {
                    counts: vec![(40, 2), (63, 1)],
                    sum: 143,
                    squares: 7169.0,
                    min_max: Some((40, 63)),
                },
                throughput_bit_s: Some(1.5e9),
                lost: Some(0),
                findings: Some([("queue_drop".to_owned(), 0.9)].into()),
            }],
        };
        let line = record.line().unwrap();
        let mut expected = record;
        expected.measurements[0].failure = Some("ü".repeat(200));
        assert_eq!(
            ProbeRecord::parse(line.trim_end().as_bytes()),
            Some(expected)
        );
        let mut changed = line.trim_end().as_bytes().to_vec();
        changed[30] ^= 1;
        assert_eq!(ProbeRecord::parse(&changed), None);
    }

    proptest! {
        #[test]
        fn any_line_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ProbeRecord::parse(&bytes);
            // With a right sum, JSON alone decides.
            let mut line = format!("{:08x} ", crc32fast::hash(&bytes)).into_bytes();
            line.extend(&bytes);
            let _ = ProbeRecord::parse(&line);
        }
    }
}
