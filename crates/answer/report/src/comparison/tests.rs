//! Comparisons as people and programs read them.

use super::*;
use crate::testing::{a_plan, golden, records, summaries};
use stackline_analyze::{Summary, compare, summarise};

/// The same run with everything a fifth faster and at a greater cost, but for the second measurement.
fn faster() -> Vec<Summary> {
    let mut records = records();
    for record in records.iter_mut().filter(|record| record.measurement != 1) {
        record.elapsed_ns = record.elapsed_ns * 4 / 5;
        record.initiator.usage.system_s *= 1.5;
    }
    summarise(&a_plan(), &records)
}

#[test]
fn differences_and_none() {
    let comparisons = compare(&summaries(), &faster());
    golden("comparison.txt", &comparison(&comparisons));
    assert!(
        comparison(&comparisons)
            .lines()
            .all(|line| line.chars().count() <= 116)
    );
    golden(
        "comparison.json",
        &format!("{:#}\n", comparison_json(&comparisons[..1])),
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let text = comparison(&compare(&summaries(), &summaries()));
    assert!(text.contains("no difference seen"), "{text}");
    for verdict in ["faster", "slower", "less", "more"] {
        assert!(!text.contains(verdict), "{text}");
    }
}

#[test]
fn what_is_only_in_one() {
    let text = comparison(&compare(&summaries()[..1], &[]));
    assert!(text.ends_with("  only in the first run\n"), "{text}");
    assert_eq!(comparison(&[]), "nothing to compare\n");
}
