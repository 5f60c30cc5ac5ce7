//! Alerts as text: conditions of figures, failures and findings, and how long they last.

#![allow(clippy::unwrap_used, reason = "a text that is refused fails the test")]

use stackline_core::expectation::{ExpectedCondition, ExpectedFigure, FigureBound};
use stackline_spec::AlertTextCondition;
use std::time::Duration;

#[test]
fn an_alert_is_a_condition_and_how_long_it_lasts() {
    let rule = stackline_spec::alert_text("p99 > 50 ms for 5m").unwrap();
    let FigureBound::Above(bound) = (match rule.condition {
        AlertTextCondition::Expected(ExpectedCondition::Figure(
            ExpectedFigure::Percentile(99.0),
            bound,
        )) => bound,
        other => panic!("{other:?}"),
    }) else {
        panic!("not above")
    };
    assert!((bound - 0.05).abs() < 1e-12);
    assert_eq!(rule.hold, Duration::from_secs(300));
    assert_eq!(rule.text, "p99 > 50 ms for 5m");
    let rule = stackline_spec::alert_text("failures > 10 %").unwrap();
    assert_eq!(
        rule.condition,
        AlertTextCondition::Failures(FigureBound::Above(0.1))
    );
    assert_eq!(rule.hold, Duration::ZERO);
    let rule = stackline_spec::alert_text("finding queue_drop for 90 s").unwrap();
    assert_eq!(
        rule.condition,
        AlertTextCondition::Expected(ExpectedCondition::Finding("queue_drop".to_owned()))
    );
    let rule = stackline_spec::alert_text("throughput < 90 Mbit/s for 2min").unwrap();
    assert_eq!(
        rule.condition,
        AlertTextCondition::Expected(ExpectedCondition::Figure(
            ExpectedFigure::Throughput,
            FigureBound::Below(90e6)
        ))
    );
}

#[test]
fn what_is_wrong_in_an_alert_is_said() {
    for (text, message) in [
        ("", "unexpected end"),
        ("speed > 5 ms", "unknown figure `speed`"),
        ("p99 > 5", "`p99` is a time and needs its unit"),
        ("p99 > 5 %", "`p99` is a time, not a share"),
        ("failures > 5 ms", "`failures` is a share, not a time"),
        ("p99 > 5 ms for ever", "an alert lasts for a time"),
        ("p99 > 5 ms for 0s", "an alert lasts for a time"),
        ("p99 > <X> ms", "an alert has no variables"),
        ("p99 > 5 ms, p50 > 1 ms", "unexpected"),
        ("finding nothing_like_it", "no kind of finding"),
    ] {
        let mistakes = stackline_spec::alert_text(text).unwrap_err();
        let all: Vec<&str> = mistakes.iter().map(|one| one.message.as_str()).collect();
        assert!(all.join("; ").contains(message), "{text}: {all:?}");
    }
}
