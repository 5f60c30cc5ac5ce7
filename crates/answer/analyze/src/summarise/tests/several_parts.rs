//! Parts that run together: their aggregate, how long it lasts, and background that has none.

use super::*;

#[test]
fn parallel_parts_have_an_aggregate() {
    let records = [moved(0, 0, 100), moved(1, 0, 50), moved(0, 1, 100)];
    let summaries = summarise(
        &plan(Composer::Parallel, vec![get("a"), get("b")]),
        &records,
    );
    let parts: Vec<&str> = summaries.iter().map(|s| s.part.as_str()).collect();
    assert_eq!(parts, ["a", "b", "all"]);
    // The second run was cut before part b was done: it is not a run of all parts.
    assert_eq!(
        summaries.iter().map(|s| s.runs).collect::<Vec<_>>(),
        [2, 1, 1]
    );
    assert_eq!(summaries[2].throughput_bit_s.unwrap().mean, 1.2e9);
    assert!(summaries[2].part_index.is_none());
}

#[test]
fn all_parts_together_last_as_long_as_the_longest() {
    let slow = RunRecord {
        elapsed_ns: 2_000_000_000,
        ..moved(1, 0, 100)
    };
    let summaries = summarise(
        &plan(Composer::Total, vec![get("a"), get("b")]),
        &[moved(0, 0, 100), slow],
    );
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].throughput_bit_s.unwrap().mean, 8e8);
}

#[test]
fn background_is_marked_and_has_no_aggregate() {
    let load = MeasurementPart {
        background: true,
        ..get("load")
    };
    let summaries = summarise(
        &plan(Composer::Background, vec![get("a"), load]),
        &[moved(0, 0, 1), moved(1, 0, 1)],
    );
    assert_eq!(
        summaries.iter().map(|s| s.background).collect::<Vec<_>>(),
        [false, true]
    );
}
