//! What is true by removal.

use crate::limit_cause::LimitCause;
use serde::Serialize;
use stackline_core::run_record::RunRecord;
use std::collections::BTreeMap;

/// Who is without a cause is at least so much sooner done, else it is no cause.
pub const CAUSE: f64 = 0.15;
/// What saves less than this is certainly none; between the two nobody is wrong.
pub const NONE: f64 = 0.04;

/// What each change saves, of the whole time: 0.4 means that without the cause 40 % of the time are gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredTruth {
    /// Savings by change; changes that take nothing away are absent.
    pub saves: BTreeMap<LimitCause, f64>,
}

/// Seconds of a run for all that was sent: where units never arrive, as many more as they would take at the rate of those that did.
#[must_use]
pub fn seconds_for_all(record: &RunRecord) -> f64 {
    let lost: u64 = [&record.initiator, &record.responder]
        .into_iter()
        .filter_map(|side| side.lost)
        .sum();
    let sent = record.initiator.sent_units + record.responder.sent_units;
    let arrived = sent.saturating_sub(lost).max(1);
    let more = if lost > 0 && sent > 0 {
        sent as f64 / arrived as f64
    } else {
        1.0
    };
    record.elapsed_ns as f64 / 1e9 * more
}

impl MeasuredTruth {
    /// From the time it took, and the times without each cause.
    #[must_use]
    pub fn new(took_s: f64, without: &BTreeMap<LimitCause, f64>) -> Self {
        let saves = without
            .iter()
            .map(|(change, other_s)| (*change, 1.0 - other_s / took_s))
            .collect();
        Self { saves }
    }

    /// What it certainly costs time, the most expensive first.
    #[must_use]
    pub fn causes(&self) -> Vec<LimitCause> {
        let mut causes: Vec<(f64, LimitCause)> = self
            .saves
            .iter()
            .filter(|(_, saves)| **saves >= CAUSE)
            .map(|(change, saves)| (*saves, *change))
            .collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        causes.into_iter().map(|(_, change)| change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_arrives_costs_its_part_of_the_time() {
        let mut record = RunRecord {
            elapsed_ns: 3_000_000_000,
            ..RunRecord::default()
        };
        record.initiator.sent_units = 400;
        assert!((seconds_for_all(&record) - 3.0).abs() < 1e-9);
        record.responder.lost = Some(100);
        assert!((seconds_for_all(&record) - 4.0).abs() < 1e-9);
    }
}
