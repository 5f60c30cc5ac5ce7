//! Whether a measurement with `until` (a required width of the 95 % interval) has been repeated often enough.

use crate::groups::{groups, half_width_share as of_runs};
use stackline_core::plan::Measurement;
use stackline_core::run_record::RunRecord;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Half width of the 95 % interval over the mean of the main metric (throughput, else response time, else connect
/// time), the largest of the measured parts. `records` are those of this measurement, warm-up runs are left out.
/// Absent while there are fewer than two counted runs.
#[must_use]
pub fn half_width_share(measurement: &Measurement, records: &[&RunRecord]) -> Option<f64> {
    let measured = groups(measurement)
        .into_iter()
        .filter(|group| !group.background());
    let shares: Option<Vec<f64>> = measured
        .map(|group| of_runs(&group.runs(records.iter().copied())))
        .collect();
    shares?.into_iter().reduce(f64::max)
}

/// Whether the interval is as narrow as `until` requires; true without `until`.
#[must_use]
pub fn interval_reached(measurement: &Measurement, records: &[&RunRecord]) -> bool {
    let Some(until) = measurement.until else {
        return true;
    };
    half_width_share(measurement, records).is_some_and(|share| share <= until.share)
}

/// Whether all runs of each part have the same results; false if there is only one of each.
#[must_use]
pub fn all_runs_equal(records: &[RunRecord]) -> bool {
    let mut firsts = BTreeMap::new();
    let mut several = false;
    records
        .iter()
        .filter(|record| !record.warmup)
        .all(|record| {
            let alike = RunRecord {
                run: 0,
                ..record.clone()
            };
            let mut same = true;
            match firsts.entry((record.measurement, record.part)) {
                Entry::Vacant(place) => {
                    place.insert(alike);
                }
                Entry::Occupied(first) => (several, same) = (true, *first.get() == alike),
            }
            same
        })
        && several
}
