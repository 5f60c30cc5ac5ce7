//! Runs `until` an interval is narrow: by throughput, or by calls.

use super::*;
use crate::{half_width_share, interval_reached};
use stackline_core::plan::StoppingCriterion;

/// As a writer of runs has them.
fn borrowed(records: &[RunRecord]) -> Vec<&RunRecord> {
    records.iter().collect()
}

#[test]
fn until_is_reached_by_a_narrow_interval() {
    let mut plan = plan(Composer::Basic, vec![get("a")]);
    plan.measurements[0].until = Some(StoppingCriterion {
        share: 0.1,
        at_most: 9,
    });
    let measurement = &plan.measurements[0];
    let records = [moved(0, 0, 100), moved(0, 1, 102), moved(0, 2, 101)];
    assert!(
        !interval_reached(measurement, &borrowed(&records[..1])),
        "one run has no interval"
    );
    assert!(
        !interval_reached(measurement, &borrowed(&records[..2])),
        "t = 12.7 at two runs"
    );
    assert!(interval_reached(measurement, &borrowed(&records)));
    assert!(
        (half_width_share(measurement, &borrowed(&records)).unwrap()
            - 4.302_65 / 101.0 / 3.0_f64.sqrt())
        .abs()
            < 1e-6
    );
    assert_eq!(
        summarise(&plan, &records[..2])[0].flags,
        ["until not reached"]
    );
}

#[test]
fn until_uses_calls_without_throughput() {
    let mut plan = plan(Composer::Basic, vec![rr()]);
    plan.measurements[0].until = Some(StoppingCriterion {
        share: 0.02,
        at_most: 9,
    });
    let records = [
        called(0, &[1000, 9000]),
        called(1, &[1010, 9010]),
        called(2, &[990, 8990]),
    ];
    assert!(
        interval_reached(&plan.measurements[0], &borrowed(&records)),
        "the means agree, however the calls differ"
    );
    assert!(!interval_reached(&plan.measurements[0], &[]));
}
